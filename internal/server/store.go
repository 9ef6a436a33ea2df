package server

import (
	"errors"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/memstore"
	"github.com/nixiemq/nixie/internal/store/pebblestore"
)

// openStore opens the engine that the configuration asks for.
func openStore(o Options, d *descriptors) (store.Store, error) {
	if o.Config.DataDir == config.Memory {
		return memstore.New(memstore.Options{Clock: o.Clock}), nil
	}
	return pebblestore.Open(o.Config.DataDir, pebblestore.Options{
		Logger:        o.Log,
		Clock:         o.Clock,
		OnFatal:       o.OnFatal,
		MaxOpenTables: d.tables,
	})
}

// InUse reports whether a start failed because another process has the data directory.
func InUse(err error) bool { return errors.Is(err, store.ErrHeld) }

// NoRoom reports whether a start failed because the disk under the data directory is
// full. It can be tried again when there is room.
func NoRoom(err error) bool { return errors.Is(err, store.ErrFull) }
