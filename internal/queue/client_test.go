package queue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nixiemq/nixie/internal/message"
)

// TestOneAttemptIsOneFailure plays random applications on clients that speak as the
// Java client does (spec section 3), and compares what the queue counts with what
// the applications went through:
//
//   - what was acknowledged, rolled back, recovered from, given up or closed is
//     counted exactly, whichever signals told of it (R-EDGE-14, R-WIRE-02, -03, -06);
//   - a lost connection counts no more than one attempt of a message, and none of
//     one that its application acknowledged; what it may not have had is counted at
//     most once a session (R-EDGE-05);
//   - a crash of the broker counts nothing, and forgets nothing that a turn has counted;
//   - what an application had is told a counter of 1 at least ever after, and what
//     none has had is told none without the hint that spares it the client's limit;
//     so it is wherever the item lies, whoever asks for it, and wherever in a turn the
//     process ends.
func TestOneAttemptIsOneFailure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"send":                  w.send,
			"open":                  w.open,
			"receive":               w.receive,
			"succeed":               w.succeed,
			"fail":                  w.fail,
			"close":                 w.close,
			"lose":                  w.lose,
			"lose in a transaction": w.loseOpen,
			"crash":                 w.crash,
			"crash within a turn":   w.crashWithin,
			"":                      w.check,
		})
	})
}

// A world is a queue and the clients that use it.
type world struct {
	o        Options
	messages map[uint64]*message.Message
	m        *Machine
	shelf    *shelf
	position uint64
	clients  []*client
	lives    map[uint64]*life
	ids      int
}

// A life is what really happened to a message, as far as the queue can know.
type life struct {
	item    *Item
	failed  int  // attempts that an application did not acknowledge
	doubted int  // lost connections at which it was in a client
	had     bool // some application had it
	hidden  bool // some application had it, and its client never said so
	over    bool // acknowledged, or a dead letter
}

// mode is how a client acknowledges.
type mode int

const (
	transacted mode = iota // acknowledges in a transaction, one for each round
	recovering             // CLIENT_ACKNOWLEDGE: acknowledges all, or recovers
	listening              // AUTO_ACKNOWLEDGE with a listener: one at a time
)

// A client is a consumer and its application. It redelivers by itself, as its
// policy says, and gives up after its limit (R-CLIENT-43).
type client struct {
	*Consumer
	mode       mode
	limit      int
	unconsumed []*copyOf
	delivered  []*copyOf // the application has them
	last       int64     // of the last message the application was given
	unreported int       // delivered since the last DELIVERED
}

// A copyOf is a message in a client, with the client's own counter.
type copyOf struct {
	*life
	counter   int
	hint      bool
	silent    bool // it has failed, and the client has not announced it (R-CLIENT-43)
	announced bool // its last failure is known, and no later delivery of it
}

func newWorld(t *rapid.T) *world {
	w := &world{messages: map[uint64]*message.Message{}, shelf: newShelf(), lives: map[uint64]*life{}}
	w.o = Options{
		Destination: message.Destination{Kind: message.Queue, Name: "Q"}, Redelivers: true, Marks: true,
		Prioritized: rapid.Bool().Draw(t, "prioritized"), Window: rapid.SampledFrom([]int{1, 3, DefaultWindow}).Draw(t, "window"),
		Read: func(e *message.Entry) (*message.Message, error) { return w.messages[e.Position], nil },
	}
	w.m = New(w.o)
	return w
}

// turn applies a command as a turn, whose batch is written.
func (w *world) turn(t *rapid.T, c Command) []Effect {
	t.Helper()
	effects := w.m.EndTurn(w.m.Apply(c, begin, nil))
	for i := range effects {
		if err := w.shelf.apply(&effects[i]); err != nil {
			t.Fatal(err)
		}
	}
	return effects
}

// do applies a command as a turn and lets the clients have what is theirs.
func (w *world) do(t *rapid.T, c Command) {
	t.Helper()
	effects := w.turn(t, c)
	for i := range effects {
		e := &effects[i]
		if page := w.shelf.read(e); page != nil {
			w.do(t, page)
		}
		switch e.Kind {
		case Answer:
			if e.Err != nil {
				t.Fatalf("%T: %v", c, e.Err)
			}
		case Transfer:
			w.lives[e.Item.Position].over = true
		case Deliver:
			w.deliver(t, e)
		case Tell:
			if e.Event == StrayAck {
				t.Fatal(e.Text)
			}
		}
	}
}

func (w *world) deliver(t *rapid.T, e *Effect) {
	t.Helper()
	l := w.lives[e.Item.Position]
	l.item = e.Item // another one after a crash
	if l.had && !l.hidden && e.Counter == 0 {
		t.Fatalf("%d was in an application's hands and is told 0", e.Item.Position)
	}
	if !l.had && e.Counter > l.doubted {
		t.Fatalf("%d was in no application's hands and is told %d after %d doubts", e.Item.Position, e.Counter, l.doubted)
	}
	if e.Counter > int(e.Item.Failures) && !e.Hint {
		t.Fatalf("%d is told %d for %d failures, without the hint", e.Item.Position, e.Counter, e.Item.Failures)
	}
	k := e.Consumer.Handle.(*client)
	k.unconsumed = append(k.unconsumed, &copyOf{life: l, counter: e.Counter, hint: e.Hint})
}

func (w *world) send(t *rapid.T) { w.do(t, w.next(t)) }

// next makes the next message.
func (w *world) next(t *rapid.T) Enqueue {
	w.position++
	m := &message.Message{Persistent: true, Priority: uint8(rapid.IntRange(3, 5).Draw(t, "priority")), Type: rapid.SampledFrom(kinds).Draw(t, "kind")}
	it := NewItem(w.position, m)
	it.Durable = true
	w.messages[w.position], w.lives[w.position] = m, &life{item: it}
	return Enqueue{Item: it}
}

func (w *world) open(t *rapid.T) {
	if len(w.clients) >= 3 {
		t.Skip("enough clients")
	}
	w.do(t, Attach{Consumer: w.client(t).Consumer})
}

// client makes a client.
func (w *world) client(t *rapid.T) *client {
	w.ids++
	k := &client{
		mode:  mode(rapid.IntRange(0, 2).Draw(t, "mode")),
		limit: rapid.SampledFrom([]int{0, 1, 2, 6, -1}).Draw(t, "limit"),
		last:  -1,
	}
	k.Consumer = &Consumer{ID: fmt.Sprintf("c%d", w.ids), Connection: fmt.Sprintf("k%d", w.ids), Handle: k, Prefetch: rapid.IntRange(0, 6).Draw(t, "prefetch"),
		Selector: parsed[rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "selects")], QuietFirst: rapid.Bool().Draw(t, "quiet")}
	w.clients = append(w.clients, k)
	return k
}

func (w *world) any(t *rapid.T) *client {
	if len(w.clients) == 0 {
		t.Skip("no client")
	}
	return rapid.SampledFrom(w.clients).Draw(t, "client")
}

// String keeps drawn clients readable.
func (k *client) String() string { return k.ID }

// GoString keeps drawn clients readable.
func (k *client) GoString() string {
	return fmt.Sprintf("%s (mode %d, limit %d)", k.ID, k.mode, k.limit)
}

// receive gives the application its next message.
func (w *world) receive(t *rapid.T) {
	k := w.any(t)
	if k.mode == listening && len(k.delivered) > 0 {
		t.Skip("its listener is at one")
	}
	if len(k.unconsumed) == 0 && k.Prefetch == 0 && k.pulls == 0 {
		w.do(t, Pull{Consumer: k.ID, Until: -1})
	}
	if len(k.unconsumed) == 0 {
		t.Skip("nothing to receive")
	}
	c := k.unconsumed[0]
	k.unconsumed = k.unconsumed[1:]
	if k.mode == transacted && k.limit >= 0 && c.counter > k.limit && !c.hint { // R-CLIENT-30
		w.do(t, k.ack(Poison, []*copyOf{c}, "", fmt.Sprintf("java.lang.Throwable: Dispatch[%d] to %s", c.counter, k.ID)))
		return
	}
	c.had = true
	k.delivered = append(k.delivered, c)
	k.last = int64(c.item.Position)
	k.unreported++
	if k.mode != listening && k.Prefetch > 0 && 2*k.unreported >= k.Prefetch { // R-CLIENT-20
		span := k.delivered[len(k.delivered)-k.unreported:]
		k.unreported = 0
		for _, c := range span {
			c.announced = false
		}
		w.do(t, k.ack(Delivered, span, "", ""))
	}
}

func (k *client) ack(kind AckType, span []*copyOf, tx, text string) Ack {
	first, last := span[0].item.Position, span[len(span)-1].item.Position
	return Ack{Consumer: k.ID, Type: kind, First: Ref{Position: first}, Last: Ref{Position: last}, Count: len(span), Tx: tx, Text: text}
}

// succeed acknowledges all that the application has.
func (w *world) succeed(t *rapid.T) {
	k := w.any(t)
	if len(k.delivered) == 0 {
		t.Skip("nothing to acknowledge")
	}
	if k.mode == transacted {
		w.do(t, k.ack(Standard, k.delivered, k.ID, ""))
		w.do(t, Prepare{Tx: k.ID, Reply: func(items []*Item) { // their removal is the transaction's batch
			for _, it := range items {
				if err := w.shelf.remove(it.LaneNumber(), it); err != nil {
					t.Fatal(err)
				}
			}
		}})
		w.do(t, Settle{Tx: k.ID, Commit: true})
	} else {
		w.do(t, k.ack(Standard, k.delivered, "", ""))
	}
	for _, c := range k.delivered {
		c.over = true
	}
	k.delivered, k.unreported = nil, 0
}

// fail rolls back, recovers, or throws: every delivered message has failed once.
func (w *world) fail(t *rapid.T) {
	k := w.any(t)
	if len(k.delivered) == 0 {
		t.Skip("nothing to fail")
	}
	w.rollback(t, k)
}

// rollback is what a client does about the messages its application has and does
// not acknowledge. It decides about all of them by the newest (R-CLIENT-43, -44).
func (w *world) rollback(t *rapid.T, k *client) {
	span := k.delivered
	newest := span[len(span)-1]
	quiet := k.QuietFirst && newest.counter == 0 // section 11.1
	extra := 0                                   // what an announcement tells of an earlier time
	if newest.silent {
		extra = 1
	}
	if k.mode == transacted { // R-CLIENT-40
		w.do(t, k.ack(Standard, span, k.ID, ""))
		w.do(t, Settle{Tx: k.ID, Cause: message.Rollback})
	}
	k.delivered, k.unreported = nil, 0
	for _, c := range span {
		c.counter++
	}
	dead := k.limit >= 0 && newest.counter > k.limit
	for _, c := range span {
		if quiet && !dead && k.mode != transacted {
			c.silent = true
			continue
		}
		c.failed += 1 + extra
		c.silent, c.announced = false, true
	}
	if dead {
		w.do(t, k.ack(Poison, span, "", fmt.Sprintf("java.lang.Throwable: Delivery[%d] exceeds redelivery policy limit", newest.counter)))
		w.checkLives(t, span)
		return
	}
	if !quiet {
		w.do(t, k.ack(Redelivered, span, "", ""))
	}
	k.unconsumed = append(append([]*copyOf{}, span...), k.unconsumed...) // R-CLIENT-45: at once, in front
}

// close closes the client. In a transaction it rolls back first (R-CLIENT-56).
func (w *world) close(t *rapid.T) {
	k := w.any(t)
	if k.mode == transacted && len(k.delivered) > 0 {
		w.rollback(t, k)
	}
	for _, c := range k.delivered {
		switch {
		case c.announced: // the queue takes it for the attempt that was announced
		case c.silent:
			c.failed++ // of two attempts one is known
		default:
			c.failed++
		}
	}
	for _, c := range k.unconsumed {
		if c.silent && !c.over { // where it is told at all, it is as one that was closed
			c.hidden = true
			c.failed = -1
		}
	}
	w.leave(t, k, Detach{Consumer: k.ID, Last: k.last, Cause: message.Closed, Charge: true})
}

// lose takes the client's connection away.
func (w *world) lose(t *rapid.T) {
	k := w.any(t)
	before := map[*life]int{}
	next := true
	for _, c := range append(append([]*copyOf{}, k.delivered...), k.unconsumed...) {
		before[c.life] = int(c.item.Failures)
		c.doubted++
	}
	possible := map[*life]bool{} // those that may be charged
	for it := k.held.head; it != nil; it = it.next {
		l := w.lives[it.Position]
		possible[l] = next || l.had
		next = next && it.covered && it.attempt == open // what DELIVERED acks cover is behind it
	}
	for l := range before {
		l.failed = -1
	}
	w.leave(t, k, Detach{Consumer: k.ID, Last: UnknownLast, Cause: message.ConnectionLost, Charge: true})
	for l, n := range before {
		if after := int(l.item.Failures); after < n || after > n+1 || after > n && !possible[l] {
			t.Fatalf("%d had %d failures before its connection was lost, and %d after; possible %v", l.item.Position, n, after, possible[l])
		}
	}
}

// loseOpen takes the connection away after the transaction's acknowledgements and
// before its commit: each of them has failed once.
func (w *world) loseOpen(t *rapid.T) {
	k := w.any(t)
	if k.mode != transacted || len(k.delivered) == 0 {
		t.Skip("no transaction")
	}
	w.do(t, k.ack(Standard, k.delivered, k.ID, ""))
	for _, c := range k.delivered {
		c.failed++
		c.doubted++
	}
	for _, c := range k.unconsumed {
		c.doubted++
		c.failed = -1
	}
	settle := Settle{Tx: k.ID, Cause: message.ConnectionLost}
	gone := Detach{Consumer: k.ID, Last: UnknownLast, Cause: message.ConnectionLost, Charge: true}
	if rapid.Bool().Draw(t, "consumer first") {
		w.leave(t, k, gone)
		w.do(t, settle)
	} else {
		w.do(t, settle)
		w.leave(t, k, gone)
	}
}

// crash ends the process, and the clients with it. Nobody knows how far they had come.
func (w *world) crash(t *rapid.T) {
	for _, k := range w.clients {
		for _, c := range append(append([]*copyOf{}, k.delivered...), k.unconsumed...) {
			c.doubted++
		}
	}
	w.clients = nil
	w.shelf.crash()
	w.m = w.shelf.open(w.o)
	w.do(t, Tick{})
}

// crashWithin ends the process while a turn is under way: before its batch is written, or
// between that and the deliveries, which nobody gets.
func (w *world) crashWithin(t *rapid.T) {
	var c Command
	var sent uint64
	turn := rapid.SampledFrom([]string{"send", "open", "pull", "lose"}).Draw(t, "turn")
	switch turn {
	case "send":
		c = w.next(t)
		sent = w.position
	case "open":
		c = Attach{Consumer: w.client(t).Consumer}
	case "pull":
		c = Pull{Consumer: w.any(t).ID}
	case "lose":
		c = Detach{Consumer: w.any(t).ID, Last: UnknownLast, Cause: message.ConnectionLost, Charge: true}
	}
	if rapid.Bool().Draw(t, "written") {
		for _, e := range w.turn(t, c) {
			if e.Kind == Deliver {
				w.lives[e.Item.Position].doubted++
			}
		}
		for _, l := range w.lives { // the loss counts what it counts
			if turn == "lose" {
				l.failed = -1
			}
		}
	} else if sent != 0 {
		delete(w.lives, sent)
	}
	w.crash(t)
}

// leave removes a client.
func (w *world) leave(t *rapid.T, k *client, d Detach) {
	w.clients = slices.DeleteFunc(w.clients, func(o *client) bool { return o == k })
	w.do(t, d)
}

// check compares what is counted with what happened.
func (w *world) check(t *rapid.T) {
	for _, l := range w.lives {
		if l.over {
			continue
		}
		stored := int(w.shelf.counts[l.item.Position].Failures)
		if l.failed < 0 { // nobody can say: what is counted is what is known from now on
			l.failed = stored
		}
		if stored != l.failed {
			t.Fatalf("%d has failed %d times, and %d are counted", l.item.Position, l.failed, stored)
		}
	}
	if err := w.m.broken(); err != nil {
		t.Fatal(err)
	}
}

// checkLives compares the counts of messages that have just ended.
func (w *world) checkLives(t *rapid.T, span []*copyOf) {
	t.Helper()
	for _, c := range span {
		if !c.over || int(c.item.Failures) != c.failed {
			t.Fatalf("%d has failed %d times, and %d are counted; over: %v", c.item.Position, c.failed, c.item.Failures, c.over)
		}
	}
}
