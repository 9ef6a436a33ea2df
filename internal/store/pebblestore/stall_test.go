package pebblestore

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/store"
)

// Commits that already wait inside Pebble when the disk becomes full do not wait for
// ever: the store ends as if it had kept them out.
func TestStallOnAFullDisk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		during func(r *reserve) // each time that the disk is found full
		ends   bool
	}{
		"commits wait":            {func(*reserve) {}, true},
		"they go on now and then": {func(r *reserve) { r.stall(false); r.stall(true) }, false},
		"a table is written, and they wait all the same": {func(r *reserve) { r.wrote() }, true},
		"nobody waits for a table":                       {func(r *reserve) { r.stall(false) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := Options{FS: vfs.NewMem(), FullTime: 10 * time.Second, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)}
				r := newReserve(o, "data")
				var ended []error
				r.fatal = func(err error) { ended = append(ended, err) }
				r.stall(true)
				began := time.Now()
				for len(ended) == 0 && time.Since(began) < time.Minute {
					r.onFull()
					c.during(r)
				}
				switch took := time.Since(began); {
				case !c.ends && len(ended) > 0:
					t.Errorf("ended after %v: %v", took, ended)
				case c.ends && (len(ended) != 1 || !errors.Is(ended[0], store.ErrFull) || took < 10*time.Second || took > 11*time.Second):
					t.Errorf("ended after %v: %v, want ErrFull after 10s", took, ended)
				}
			})
		})
	}
}
