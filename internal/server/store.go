package server

import (
	"fmt"
	"os"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/memstore"
	"github.com/nixiemq/nixie/internal/store/pebblestore"
)

// openStore opens the engine that the configuration asks for.
func openStore(o Options) (store.Store, error) {
	if o.Config.DataDir == config.Memory {
		return memstore.New(memstore.Options{Clock: o.Clock}), nil
	}
	if err := os.MkdirAll(o.Config.DataDir, 0o750); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return pebblestore.Open(o.Config.DataDir, pebblestore.Options{
		Logger:  o.Log,
		Clock:   o.Clock,
		OnFatal: o.OnFatal,
	})
}
