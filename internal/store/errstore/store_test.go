package errstore

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/memstore"
	"github.com/nixiemq/nixie/internal/store/storetest"
)

// Without faults it is as good a store as the one in it.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Opener {
		var mu sync.Mutex
		var left *memstore.Store // by a crash
		return storetest.Opener{
			Forgets: true,
			Open: func(storetest.TB) store.Store {
				mu.Lock()
				defer mu.Unlock()
				s := left
				if left = nil; s == nil {
					s = memstore.New(memstore.Options{Crashable: true, Limits: store.Limits{BatchBytes: 2 << 20, ValueBytes: 1 << 20, InFlightBytes: 1 << 20}})
				}
				return Wrap(s)
			},
			Crash: func(_ storetest.TB, s store.Store) {
				mu.Lock()
				defer mu.Unlock()
				left = s.(*Store).Store.(*memstore.Store).Crash()
			},
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	fault := errors.New("injected")
	tests := map[string]struct {
		fault Fault
		keys  []string // of commits 1, 2, 3, the second of which meets the fault
		third error
	}{
		"refused":         {Fault{Err: fault}, []string{"1", "3"}, nil},
		"applied":         {Fault{Err: fault, Applied: true}, []string{"1", "2", "3"}, nil},
		"dead":            {Fault{Err: fault, Dead: true}, []string{"1"}, fault},
		"applied and end": {Fault{Err: fault, Applied: true, Dead: true}, []string{"1", "2"}, fault},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Wrap(memstore.New(memstore.Options{}))
			defer s.Close()
			h, err := s.Acquire(t.Context(), 1, "test")
			if err != nil {
				t.Fatal(err)
			}
			s.Fail(2, tt.fault)
			for i, want := range []error{nil, fault, tt.third} {
				var b store.Batch
				b.Put(fmt.Append(nil, i+1), nil)
				answer := make(chan error, 1)
				h.Commit(&b, func(err error) { answer <- err })
				if err := <-answer; !errors.Is(err, want) {
					t.Errorf("commit %d: %v, want %v", i+1, err, want)
				}
			}
			var keys []string
			h.Scan(nil, nil, func(k, _ []byte) bool { keys = append(keys, string(k)); return true })
			if fmt.Sprint(keys) != fmt.Sprint(tt.keys) {
				t.Errorf("%q, want %q", keys, tt.keys)
			}
			select {
			case <-h.Lost():
				if !tt.fault.Dead {
					t.Error("lost")
				}
			default:
				if tt.fault.Dead {
					t.Error("not lost")
				}
			}
		})
	}
}

func TestHoldKeepsLaterAnswersBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := Wrap(memstore.New(memstore.Options{}))
		defer s.Close()
		h, err := s.Acquire(t.Context(), 1, "test")
		if err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		s.FailWhen(func(_ uint16, b *store.Batch) (Fault, bool) {
			return Fault{Hold: hold}, string(b.Ops()[0].Key) == "1"
		})
		answers := make(chan int, 3)
		for i := range 3 {
			var b store.Batch
			b.Put(fmt.Append(nil, i), nil)
			h.Commit(&b, func(error) { answers <- i })
		}
		synctest.Wait()
		if len(answers) != 1 {
			t.Errorf("%d answers while the second is held, want 1", len(answers))
		}
		close(hold)
		for i := range 3 {
			if got := <-answers; got != i {
				t.Errorf("answer %d where %d was due", got, i)
			}
		}
	})
}
