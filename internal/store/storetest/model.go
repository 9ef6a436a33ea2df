package storetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/store"
	"pgregory.net/rapid"
)

// testModel runs random histories of batches, scans, restarts and crashes
// against a map.
func testModel(t *testing.T, o Opener) {
	s := o.Open(t)
	shard := uint16(0)
	rapid.Check(t, func(rt *rapid.T) {
		shard++ // a fresh one for each history, on the same store
		m := &model{o: o, s: s, shard: shard, possible: []map[string]string{{}}}
		m.h = acquire(rt, m.s, shard)
		defer func() { s = m.s }()
		rt.Repeat(map[string]func(*rapid.T){
			"commit":  m.commit,
			"scan":    m.scan,
			"get":     m.get,
			"restart": m.restart,
			"crash":   m.crash,
			"":        func(*rapid.T) {},
		})
	})
	closed(t, s)
}

// A model is what a store must hold. The history of one rapid check owns it.
type model struct {
	o     Opener
	s     store.Store
	shard uint16
	h     store.Shard
	fresh int // next name for a key that is written once
	// possible are the states that a crash may leave: that of the last durable
	// answer, and each that a relaxed batch made since. The last is the present.
	possible []map[string]string
}

func (m *model) now() map[string]string { return m.possible[len(m.possible)-1] }

// keys are those in a state, in order, that fit.
func keys(state map[string]string, fits func(k string) bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(state)), func(k string) bool { return !fits(k) })
}

func isOnce(k string) bool { return k[0] == 'o' }

var anyPut = rapid.StringMatching(`p[a-e]{0,2}`)

func (m *model) commit(t *rapid.T) {
	var b store.Batch
	state := maps.Clone(m.now())
	for range rapid.IntRange(0, 8).Draw(t, "operations") {
		switch rapid.SampledFrom([]string{"put", "put", "once", "delete", "delete once", "range"}).Draw(t, "operation") {
		case "put":
			k, v := anyPut.Draw(t, "key"), rapid.StringN(0, 20, -1).Draw(t, "value")
			b.Put([]byte(k), []byte(v))
			state[k] = v
		case "once":
			m.fresh++
			k, v := fmt.Sprintf("o%03d", m.fresh), rapid.StringN(0, 2000, -1).Draw(t, "value")
			b.PutOnce([]byte(k), []byte(v))
			state[k] = v
		case "delete":
			k := anyPut.Draw(t, "key")
			b.Delete([]byte(k))
			delete(state, k)
		case "delete once":
			if once := keys(state, isOnce); len(once) > 0 {
				k := rapid.SampledFrom(once).Draw(t, "key")
				b.DeleteOnce([]byte(k))
				delete(state, k)
			}
		case "range":
			lo, hi := bounds(t)
			b.DeleteRange([]byte(lo), []byte(hi))
			maps.DeleteFunc(state, func(k, _ string) bool { return k >= lo && k < hi })
		}
	}
	if rapid.Bool().Draw(t, "relaxed") {
		b.Relax()
		m.possible = append(m.possible, state)
	} else {
		m.possible = []map[string]string{state}
	}
	if rapid.Bool().Draw(t, "put off") {
		b.PutOff()
	}
	if err := commit(t, m.h, &b); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// bounds draws a range of either kind of key.
func bounds(t *rapid.T) (lo, hi string) {
	bound := rapid.OneOf(anyPut, rapid.StringMatching(`o0[0-2][0-9]`))
	lo, hi = bound.Draw(t, "lo"), bound.Draw(t, "hi")
	return min(lo, hi), max(lo, hi)
}

func (m *model) scan(t *rapid.T) {
	lo, hi := bounds(t)
	want := keys(m.now(), func(k string) bool { return k >= lo && k < hi })
	for i, k := range want {
		want[i] = k + "=" + m.now()[k]
	}
	got := pairs(t, m.h, []byte(lo), []byte(hi))
	if !slices.Equal(want, got) {
		t.Fatalf("[%s, %s) (-want +got):\n%s", lo, hi, cmp.Diff(want, got))
	}
}

func (m *model) get(t *rapid.T) {
	k := anyPut.Draw(t, "key")
	got, err := m.h.Get([]byte(k))
	want, there := m.now()[k]
	if there != (err == nil) || string(got) != want {
		t.Fatalf("%s is %q, %v; want %q, %v", k, got, err, want, there)
	}
}

func (m *model) restart(t *rapid.T) {
	if m.o.Forgets || rapid.IntRange(0, 3).Draw(t, "chance") > 0 {
		t.Skip("not this time")
	}
	closed(t, m.s)
	m.reopen(t)
	m.settle(t, []map[string]string{m.now()})
}

func (m *model) crash(t *rapid.T) {
	if m.o.Crash == nil || rapid.IntRange(0, 3).Draw(t, "chance") > 0 {
		t.Skip("not this time")
	}
	m.o.Crash(t, m.s)
	closed(t, m.s)
	m.reopen(t)
	m.settle(t, m.possible)
}

func (m *model) reopen(t *rapid.T) {
	m.s = m.o.Open(t)
	m.h = acquire(t, m.s, m.shard)
}

// settle finds which of the possible states the store is in.
func (m *model) settle(t *rapid.T, possible []map[string]string) {
	found := map[string]string{}
	if err := m.h.Scan(nil, nil, func(k, v []byte) bool { found[string(k)] = string(v); return true }); err != nil {
		t.Fatalf("scan: %v", err)
	}
	for _, state := range possible {
		if maps.Equal(state, found) {
			m.possible = []map[string]string{found}
			return
		}
	}
	t.Fatalf("found none of %d possible states (-last +found):\n%s", len(possible), cmp.Diff(m.now(), found))
}
