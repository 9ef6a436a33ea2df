package broker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// TestXAConservesMessages: random work in distributed transactions, over kills and
// lost connections, against a model that only knows what was committed, and what was
// rolled back.
func TestXAConservesMessages(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		inHouse(t, smallTransactions, func(h *house) {
			w := &xaWorld{h: h, r: rand.New(rand.NewPCG(seed, 1)), there: map[string]message.Destination{}, txs: map[message.XID]*xaModel{}, failed: map[string]int32{}}
			w.connect()
			for range 60 {
				w.step()
			}
			w.finish()
			if h.t.Failed() {
				h.t.Fatalf("seed %d", seed)
			}
		})
	}
}

// An xaModel is a transaction: what it would add, and what it would take.
type xaModel struct {
	prepared bool
	sends    map[string]message.Destination
	takes    map[string]Delivery
}

type xaWorld struct {
	h         *house
	r         *rand.Rand
	c         *client
	consumers map[message.Destination]string
	hand      map[string]Delivery            // at the consumers, and in no transaction
	there     map[string]message.Destination // what was committed
	txs       map[message.XID]*xaModel
	failed    map[string]int32 // rollbacks that were answered
	n         int
}

func (w *xaWorld) queue() message.Destination { return queueNamed(fmt.Sprint("Q", w.r.IntN(3))) }

func (w *xaWorld) xid() message.XID { return message.XID{Format: int32(w.r.IntN(4))} }

func (w *xaWorld) connect() {
	w.c, w.consumers, w.hand = w.h.client(), map[message.Destination]string{}, map[string]Delivery{}
	for n := range 3 {
		q := queueNamed(fmt.Sprint("Q", n))
		w.consumers[q] = w.c.consume(q, func(s *ConsumerSpec) { s.Prefetch = 4 })
	}
}

// look takes in what came to the consumers. Nobody is to get what a transaction has.
func (w *xaWorld) look() {
	for _, d := range w.c.take() {
		text := string(d.Message.Body)
		if w.there[text] != d.Destination {
			w.h.t.Errorf("%.20s came from %s, and is in %q", text, d.Destination, w.there[text])
		}
		for x, m := range w.txs {
			if _, ok := m.takes[text]; ok {
				w.h.t.Errorf("%.20s came, and transaction %s has it", text, x)
			}
		}
		w.hand[text] = d
	}
}

func (w *xaWorld) text() string {
	w.n++
	text := fmt.Sprint("m", w.n)
	if w.r.IntN(4) == 0 {
		text += newXAStory().large
	}
	return text
}

func (w *xaWorld) step() {
	w.look()
	x := w.xid()
	m := w.txs[x]
	switch p := w.r.IntN(100); {
	case p < 15:
		text, q := w.text(), w.queue()
		w.c.must(w.c.send(w.c.msg(q, text), ""))
		w.there[text] = q
	case p < 20:
		w.h.kill()
		w.lose()
	case p < 25:
		w.c.c.Close(message.ConnectionLost, "lost", queue.UnknownLast)
		w.lose()
	case m == nil:
		w.c.beginXA(x)
		w.txs[x] = &xaModel{sends: map[string]message.Destination{}, takes: map[string]Delivery{}}
	case !m.prepared && p < 45:
		text, q := w.text(), w.queue()
		w.c.must(w.c.send(w.c.msg(q, text), x.String()))
		m.sends[text] = q
	case !m.prepared && p < 75:
		for _, text := range slices.Sorted(maps.Keys(w.hand)) {
			d := w.hand[text]
			w.c.must(w.c.ack(queue.Individual, w.consumers[d.Destination], d, d, 1, x.String()))
			m.takes[text] = d
			delete(w.hand, text)
			return
		}
	case !m.prepared && p < 85:
		readOnly, err := w.c.prepare(x)
		w.c.must(err)
		if m.prepared = true; readOnly {
			delete(w.txs, x)
		}
	case p < 95:
		w.c.must(w.c.commitXA(x, !m.prepared))
		w.commit(x, m)
	default:
		w.c.must(w.c.rollbackXA(x))
		w.rollBack(x, m)
	}
}

func (w *xaWorld) commit(x message.XID, m *xaModel) {
	maps.Copy(w.there, m.sends)
	for text := range m.takes {
		delete(w.there, text)
	}
	delete(w.txs, x)
}

// rollBack gives back to the hand what this connection's consumers still have.
func (w *xaWorld) rollBack(x message.XID, m *xaModel) {
	for text, d := range m.takes {
		w.failed[text]++
		if d.Consumer == w.consumers[d.Destination] {
			w.hand[text] = d
		}
	}
	delete(w.txs, x)
}

// lose begins anew after the connection, or the broker, has gone.
func (w *xaWorld) lose() {
	maps.DeleteFunc(w.txs, func(_ message.XID, m *xaModel) bool { return !m.prepared })
	w.connect()
}

// finish ends what is prepared, and looks what there is.
func (w *xaWorld) finish() {
	w.look()
	w.c.c.Close(message.Closed, "", queue.UnknownLast)
	w.lose()
	if got := len(w.h.broker.Recover()); got != len(w.txs) {
		w.h.t.Errorf("%d transactions are prepared, want %d", got, len(w.txs))
	}
	for x, m := range w.txs {
		if w.r.IntN(2) == 0 {
			w.c.must(w.c.commitXA(x, false))
			w.commit(x, m)
		} else {
			w.c.must(w.c.rollbackXA(x))
			w.rollBack(x, m)
		}
	}
	w.c.c.Close(message.Closed, "", queue.UnknownLast)
	w.h.kill()
	w.compareCounts()
	got := map[string]message.Destination{}
	c := w.h.client()
	for n := range 3 {
		q := queueNamed(fmt.Sprint("Q", n))
		c.consume(q)
		for _, d := range c.take() {
			text := string(d.Message.Body)
			if _, twice := got[text]; twice {
				w.h.t.Errorf("%.20s is there twice", text)
			}
			got[text] = q
		}
	}
	if diff := cmp.Diff(short(w.there), short(got)); diff != "" {
		w.h.t.Errorf("(-want +got):\n%s", diff)
	}
}

// compareCounts looks for failures that somebody was told of and that nobody knows.
func (w *xaWorld) compareCounts() {
	for n := range 3 {
		at := At(queueNamed(fmt.Sprint("Q", n)))
		for c := (Cursor{}); !c.End; {
			page, next, err := w.h.broker.Look(w.h.t.Context(), at, c, 100)
			if err != nil {
				w.h.t.Fatal(err)
			}
			for i := range page {
				m, err := w.h.broker.Read(&page[i])
				if err != nil {
					w.h.t.Fatal(err)
				}
				if text := string(m.Body); page[i].Counts.Failures < w.failed[text] {
					w.h.t.Errorf("%.20s: %d rollbacks were answered, and %d failures are known", text, w.failed[text], page[i].Counts.Failures)
				}
			}
			c = next
		}
	}
}

// short is a map with keys that can be read.
func short(all map[string]message.Destination) map[string]message.Destination {
	cut := map[string]message.Destination{}
	for text, d := range all {
		cut[fmt.Sprintf("%.12s %d", text, len(text))] = d
	}
	return cut
}
