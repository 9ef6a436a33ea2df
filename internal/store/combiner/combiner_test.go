package combiner

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/store"
)

// A slow engine takes a time to apply and to sync, and notes what it was given.
type slow struct {
	applyTime, syncTime time.Duration
	failAt              int // Wait of this commit, 1 the first, fails; 0: none

	mu     sync.Mutex
	groups []string
	waits  int
}

var errDisk = errors.New("disk gone")

func (s *slow) Apply(items []Item) (Commit, error) {
	time.Sleep(s.applyTime)
	var names []string
	for _, i := range items {
		if i.Batch == nil {
			names = append(names, fmt.Sprintf("claim %d", i.Epoch))
			continue
		}
		names = append(names, string(i.Batch.Ops()[0].Key))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = append(s.groups, strings.Join(names, " "))
	return s, nil
}

func (s *slow) Wait() error {
	time.Sleep(s.syncTime)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits++; s.waits == s.failAt {
		return errDisk
	}
	return nil
}

func limits() store.Limits {
	return store.Limits{BatchBytes: 1000, KeyBytes: 100, ValueBytes: 500, InFlightBytes: 1000}
}

// bed is an owner of shard 1 of a combiner over an engine.
func bed(t *testing.T, e Engine, o Options) (*Combiner, *Owner) {
	t.Helper()
	if o.Limits == (store.Limits{}) {
		o.Limits = limits()
	}
	c := New(e, o)
	owner, err := c.Acquire(t.Context(), 1, "test")
	if err != nil {
		t.Fatal(err)
	}
	return c, owner
}

func put(k string, bytes int) *store.Batch {
	b := &store.Batch{}
	b.Put([]byte(k), make([]byte, bytes))
	return b
}

func TestGroups(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		applyTime time.Duration
		merge     int
		bytes     int
		want      []string
	}{
		"the first goes alone, the rest is merged": {time.Second, 0, 10, []string{"claim 1", "0", "1 2 3 4 5"}},
		"a group keeps to its bytes":               {time.Second, 80, 10, []string{"claim 1", "0", "1 2 3", "4 5"}},
		"a batch above the bound goes alone":       {time.Second, 20, 10, []string{"claim 1", "0", "1", "2", "3", "4", "5"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &slow{applyTime: tt.applyTime, syncTime: time.Second}
				c, o := bed(t, e, Options{MergeBytes: tt.merge})
				go o.Commit(put("0", tt.bytes), func(error) {}) // is in the engine for a second
				synctest.Wait()
				for i := 1; i < 6; i++ {
					o.Commit(put(fmt.Sprint(i), tt.bytes), func(error) {})
				}
				c.Close()
				if diff := cmp.Diff(tt.want, e.groups); diff != "" {
					t.Errorf("groups (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Who commits while a group is on its way shares the next, unless it is much.
func TestWhatIsAppliedWhileTheDiskIsBusy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		bytes int
		want  []string
	}{
		"little waits":  {10, []string{"claim 1", "0"}},
		"much does not": {200, []string{"claim 1", "0", "1 2", "3 4"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &slow{syncTime: time.Second}
				l := limits()
				l.InFlightBytes = 10_000
				c, o := bed(t, e, Options{Limits: l, MergeBytes: 1600})
				for i := range 5 {
					o.Commit(put(fmt.Sprint(i), tt.bytes), func(error) {})
					synctest.Wait()
				}
				if diff := cmp.Diff(tt.want, e.groups); diff != "" {
					t.Errorf("applied before the first was durable (-want +got):\n%s", diff)
				}
				c.Close()
			})
		})
	}
}

// Committers who are answered together commit together again.
func TestCommittersShareEachSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &slow{syncTime: time.Second}
		c, o := bed(t, e, Options{Clock: clock.System{}})
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				answer := make(chan error, 1)
				for range 10 {
					o.Commit(put(fmt.Sprint(w), 10), func(err error) { answer <- err })
					<-answer
				}
			})
		}
		start := time.Now()
		wg.Wait()
		// Two crowds that take turns would need twenty, and do so until it is known that
		// all come back.
		if took := time.Since(start); took > 16*time.Second {
			t.Errorf("ten turns of a sync of 1 s each took %v", took)
		}
		c.Close()
	})
}

func TestCommitWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, o := bed(t, &slow{syncTime: time.Second}, Options{})
		start := time.Now()
		var after []time.Duration
		for i := range 6 {
			o.Commit(put(fmt.Sprint(i), 480), func(error) {})
			after = append(after, time.Since(start))
			synctest.Wait() // so that each is a group of its own
		}
		// Three of about 500 bytes pass before more than 1000 are unanswered; after a
		// second the first is answered, after two all that waited meanwhile.
		want := []time.Duration{0, 0, 0, time.Second, 2 * time.Second, 2 * time.Second}
		if diff := cmp.Diff(want, after); diff != "" {
			t.Errorf("Commit returned (-want +got):\n%s", diff)
		}
		c.Close()
	})
}

func TestCloseFreesWhoWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, o := bed(t, &slow{syncTime: time.Hour}, Options{})
		answers := make(chan error, 4)
		go func() {
			for i := range 4 {
				o.Commit(put(fmt.Sprint(i), 480), func(err error) { answers <- err })
			}
		}()
		synctest.Wait()
		c.Close()
		for i, want := range []error{nil, nil, nil, store.ErrClosed} {
			if err := <-answers; !errors.Is(err, want) {
				t.Errorf("answer %d: %v, want %v", i, err, want)
			}
		}
	})
}

func TestLaterOwnerFreesWhoWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, o := bed(t, &slow{syncTime: time.Hour}, Options{})
		answers := make(chan error, 4)
		go func() {
			for i := range 4 {
				o.Commit(put(fmt.Sprint(i), 480), func(err error) { answers <- err })
			}
		}()
		synctest.Wait()
		if _, err := c.Acquire(t.Context(), 1, "next"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		for i, want := range []error{nil, nil, nil, store.ErrFenced} {
			if err := <-answers; !errors.Is(err, want) {
				t.Errorf("answer %d: %v, want %v", i, err, want)
			}
		}
		c.Close()
	})
}

// What the engine could not make durable is unknown, what had not reached it is
// refused.
func TestEngineFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, o := bed(t, &slow{syncTime: time.Second, failAt: 2}, Options{})
		answers := make(chan error, 4)
		commit := func(i int) { o.Commit(put(fmt.Sprint(i), 10), func(err error) { answers <- err }) }
		commit(0) // the engine's second commit, after the claim
		if err := <-answers; !errors.Is(err, store.ErrUnknown) || !errors.Is(err, errDisk) {
			t.Errorf("%v, want ErrUnknown and the engine's", err)
		}
		commit(1)
		if err := <-answers; !errors.Is(err, store.ErrClosed) || !errors.Is(err, errDisk) || errors.Is(err, store.ErrUnknown) {
			t.Errorf("%v, want ErrClosed and the engine's", err)
		}
		if _, err := c.Acquire(t.Context(), 1, "next"); !errors.Is(err, errDisk) {
			t.Errorf("acquire: %v", err)
		}
		c.Close()
	})
}

func TestEpochsGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &slow{}
		c, first := bed(t, e, Options{Epochs: map[uint16]uint64{1: 41, 2: 7}})
		second, err := c.Acquire(t.Context(), 1, "second")
		if err != nil {
			t.Fatal(err)
		}
		if first.Epoch() != 42 || second.Epoch() != 43 {
			t.Errorf("epochs %d and %d, want 42 and 43", first.Epoch(), second.Epoch())
		}
		c.Close()
		if diff := cmp.Diff([]string{"claim 42", "claim 43"}, e.groups); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func BenchmarkHandOver(b *testing.B) {
	c := New(&nothing{}, Options{Limits: store.Limits{BatchBytes: 1 << 20, KeyBytes: 100, ValueBytes: 1 << 20, InFlightBytes: 1 << 20}})
	defer c.Close()
	o, err := c.Acquire(b.Context(), 1, "bench")
	if err != nil {
		b.Fatal(err)
	}
	batch := put("k", 100)
	answer := make(chan error, 1)
	done := func(err error) { answer <- err }
	b.ReportAllocs()
	for b.Loop() {
		o.Commit(batch, done)
		<-answer
	}
}

// nothing is an engine that costs nothing.
type nothing struct{}

func (n *nothing) Apply([]Item) (Commit, error) { return n, nil }
func (n *nothing) Wait() error                  { return nil }
