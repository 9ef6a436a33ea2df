// Package storetest is the one suite that every engine behind package store has
// to pass. What the package comment of store calls the laws is a test here.
//
//	func TestStore(t *testing.T) { storetest.Run(t, newOpener) }
package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/store"
)

// An Opener is the ground on which the store of one test stands, over closes
// and crashes.
type Opener struct {
	// Open opens the store on what the last Close or Crash has left; at first on
	// nothing. The suite closes each store it opens.
	Open func(t TB) store.Store
	// Crash takes the power from an open store: what was not durable may be
	// gone. The suite closes it afterwards, and the next Open finds what is left.
	// Nil: the engine cannot be crashed; what needs it is skipped.
	Crash func(t TB, s store.Store)
	// Forgets says that Close leaves nothing, as in an engine without a disk.
	Forgets bool
}

// TB is the part of testing.TB that an Opener needs. It is its own type so that
// a property test's T is one too.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Run runs the suite. Each test asks for an Opener of its own, and may run
// beside others.
func Run(t *testing.T, opener func(t testing.TB) Opener) {
	tests := []struct {
		name string
		run  func(t *testing.T, o Opener)
	}{
		{"a batch is seen whole or not at all", testAtomic},
		{"answers come in the order of the hand-overs", testOrder},
		{"the answer does not come from the goroutine that commits", testForeignGoroutine},
		{"many committers at once", testManyCommitters},
		{"bytes in flight are bounded", testInFlight},
		{"a batch can be used again after its answer", testReuse},
		{"operations", testOperations},
		{"limits are refused and exact", testLimits},
		{"large values and batches", testLarge},
		{"scan keeps to its bounds", testScanBounds},
		{"scan stops when told", testScanStop},
		{"get sees what was answered and gives a copy", testGet},
		{"shards do not see each other", testShardsApart},
		{"a later owner fences the earlier", testFence},
		{"nothing of a deposed owner lands after Acquire", testFenceUnderLoad},
		{"release waits, and ends the ownership", testRelease},
		{"acquire gives up with its context", testAcquireCancelled},
		{"close answers everything", testCloseBusy},
		{"after close all is refused", testAfterClose},
		{"close keeps what was answered", testReopen},
		{"what was answered survives a crash", testCrashDurable},
		{"a crash leaves a beginning of what was handed over", testCrashPrefix},
		{"relaxed batches are carried by the next durable one", testCrashRelaxed},
		{"fences rise over crashes", testCrashFence},
		{"random histories agree with a map", testModel},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, opener(t))
		})
	}
}

// patience bounds every wait of the suite, in case an engine hangs.
const patience = 30 * time.Second

// open opens the store and closes it with the test.
func open(t testing.TB, o Opener) store.Store {
	t.Helper()
	s := o.Open(t)
	t.Cleanup(func() { closed(t, s) })
	return s
}

// closed closes s, which may have been closed or have crashed before.
func closed(t TB, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// acquire makes the test the owner of the shard.
func acquire(t TB, s store.Store, shard uint16) store.Shard {
	t.Helper()
	ctx, cancel := patient()
	defer cancel()
	h, err := s.Acquire(ctx, shard, fmt.Sprintf("owner of %d", shard))
	if err != nil {
		t.Fatalf("acquire shard %d: %v", shard, err)
	}
	return h
}

// commit hands b over and waits for the answer.
func commit(t TB, h store.Shard, b *store.Batch) error {
	t.Helper()
	answer := make(chan error, 1)
	h.Commit(b, func(err error) { answer <- err })
	return await(t, answer, "answer")
}

// must commits what fill puts into a batch.
func must(t TB, h store.Shard, fill func(b *store.Batch)) {
	t.Helper()
	var b store.Batch
	fill(&b)
	if err := commit(t, h, &b); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// await receives from c, and fails the test if nothing comes.
func await[T any](t TB, c <-chan T, what string) T {
	t.Helper()
	ctx, cancel := patient()
	defer cancel()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatalf("no %s within %v", what, patience)
		panic("unreachable")
	}
}

// pairs reads [lo, hi) of h, as key=value.
func pairs(t TB, h store.Shard, lo, hi []byte) []string {
	t.Helper()
	var got []string
	err := h.Scan(lo, hi, func(k, v []byte) bool {
		got = append(got, fmt.Sprintf("%s=%s", k, v))
		return true
	})
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	return got
}

// wantError fails the test unless err is want.
func wantError(t TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}
