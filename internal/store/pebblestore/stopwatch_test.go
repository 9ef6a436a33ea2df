package pebblestore

import (
	"math/rand/v2"
	"time"

	"github.com/nixiemq/nixie/internal/clock"
)

// A stopwatch adds up how long things take.
type stopwatch struct{ total time.Duration }

func (w *stopwatch) time(f func()) {
	start := clock.System{}.Now()
	f()
	w.total += clock.System{}.Now().Sub(start)
}

// randomBytes cannot be compressed.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}
