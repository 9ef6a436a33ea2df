package combiner

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/store"
)

// putOff is put of a batch that nobody waits for.
func putOff(k string, bytes int) *store.Batch {
	b := put(k, bytes)
	b.PutOff()
	return b
}

// What nobody waits for shares the commit of what comes next; it waits for that only so
// long, and the order stays.
func TestWhatIsPutOff(t *testing.T) {
	t.Parallel()
	type step struct {
		after time.Duration // after the step before
		key   string        // a small letter is put off
		bytes int
	}
	const ms = time.Millisecond
	tests := map[string]struct {
		steps []step
		want  []string // groups, with the time at which they were applied
	}{
		"it goes with the next batch":             {[]step{{0, "a", 10}, {ms / 2, "B", 10}}, []string{"a B at 500µs"}},
		"several go with the next":                {[]step{{0, "a", 10}, {ms / 4, "b", 10}, {ms / 4, "C", 10}}, []string{"a b C at 500µs"}},
		"alone it waits a little":                 {[]step{{0, "a", 10}}, []string{"a at 1ms"}},
		"all that waits goes together":            {[]step{{0, "a", 10}, {ms / 2, "b", 10}}, []string{"a b at 1ms"}},
		"what has come since may wait once more":  {[]step{{0, "a", 10}, {ms / 4, "B", 10}, {ms / 2, "c", 10}}, []string{"a B at 250µs", "c at 2ms"}},
		"much does not wait":                      {[]step{{0, "a", 300}, {ms / 4, "b", 300}}, []string{"a b at 250µs"}},
		"what comes behind others goes with them": {[]step{{0, "A", 10}, {0, "b", 10}, {0, "C", 10}}, []string{"A at 0s", "b C at 100µs"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &slow{syncTime: ms / 10}
				c, o := bed(t, e, Options{MergeBytes: 2000, Clock: clock.System{}})
				begin, applied := time.Now(), 1 // the claim
				var got, answered, handed []string
				look := func() {
					synctest.Wait()
					e.mu.Lock()
					defer e.mu.Unlock()
					for ; applied < len(e.groups); applied++ {
						got = append(got, fmt.Sprintf("%s at %v", e.groups[applied], time.Since(begin)))
					}
				}
				wait := func(d time.Duration) {
					for ; d > 0; d -= ms / 20 {
						time.Sleep(ms / 20)
						look()
					}
				}
				for _, s := range tt.steps {
					wait(s.after)
					b := put(s.key, s.bytes)
					if s.key >= "a" {
						b = putOff(s.key, s.bytes)
					}
					handed = append(handed, s.key)
					o.Commit(b, func(err error) {
						if err != nil {
							t.Error(err)
						}
						answered = append(answered, s.key)
					})
					look()
				}
				wait(3 * PutOffTime)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("groups (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(handed, answered); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
				c.Close()
			})
		})
	}
}

// Who waits for room, for the shard or for the end does not wait for the time of what
// is put off.
func TestNobodyWaitsForWhatIsPutOff(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(t *testing.T, c *Combiner, o *Owner){
		"room": func(t *testing.T, c *Combiner, o *Owner) {
			o.Commit(putOff("b", 480), func(error) {})
			o.Commit(putOff("c", 480), func(error) {})
			o.Commit(putOff("d", 480), func(error) {})
		},
		"release": func(t *testing.T, c *Combiner, o *Owner) {
			if err := o.Release(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"next owner": func(t *testing.T, c *Combiner, o *Owner) {
			if _, err := c.Acquire(t.Context(), 1, "next"); err != nil {
				t.Error(err)
			}
		},
		"end": func(t *testing.T, c *Combiner, o *Owner) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, o := bed(t, &slow{}, Options{MergeBytes: 1 << 20, Clock: &clock.Manual{}}) // the time never comes
				answered := make(chan error, 1)
				o.Commit(putOff("a", 480), func(err error) { answered <- err })
				synctest.Wait()
				if len(answered) > 0 {
					t.Error("it was not put off")
				}
				then(t, c, o)
				if err := <-answered; err != nil {
					t.Error(err)
				}
				c.Close()
			})
		})
	}
}
