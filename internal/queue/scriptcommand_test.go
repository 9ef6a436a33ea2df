package queue

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/selector"
)

// commands are what a script can say, by name.
var commands = map[string]func(*script, *args){
	"new":            (*script).cmdNew,
	"restart":        (*script).cmdRestart,
	"enqueue":        (*script).cmdEnqueue,
	"expect":         func(s *script, a *args) { s.apply(Expect{Positions: a.positions()}) },
	"cancel":         func(s *script, a *args) { s.apply(Cancel{Positions: a.positions()}) },
	"store":          (*script).cmdStore,
	"arrive":         (*script).cmdArrive,
	"vanish":         (*script).cmdVanish,
	"read":           func(s *script, _ *args) { s.readPages() },
	"paged":          (*script).cmdPaged,
	"attach":         (*script).cmdAttach,
	"detach":         (*script).cmdDetach,
	"lost":           (*script).cmdLost,
	"prefetch":       (*script).cmdPrefetch,
	"pull":           (*script).cmdPull,
	"ack":            (*script).cmdAck,
	"prepare":        (*script).cmdPrepare,
	"commit":         (*script).cmdCommit,
	"rollback":       (*script).cmdRollback,
	"undispatchable": (*script).cmdUndispatchable,
	"sleep":          (*script).cmdSleep,
	"forget":         func(s *script, a *args) { s.apply(ForgetProducer{Producer: a.next()}) },
	"purge":          (*script).cmdPurge,
	"move":           (*script).cmdMove,
	"gone":           (*script).cmdGone,
	"pause":          func(s *script, _ *args) { s.apply(Pause{On: true}) },
	"resume":         func(s *script, _ *args) { s.apply(Pause{}) },
	"browse":         (*script).cmdBrowse,
	"story":          (*script).cmdStory,
	"spoil":          func(s *script, a *args) { delete(s.messages, a.positions()[0]) },
	"stats":          (*script).cmdStats,
	"next":           func(s *script, _ *args) { s.say("next%s", s.at(" at ", s.m.Next())) },
	"floor":          func(s *script, a *args) { s.say("floor %d", s.m.Floor(uint8(a.int("lane", 5)))) },
}

func (s *script) answer(err error) {
	if err != nil {
		s.say("answered: %v", err)
	}
}

func (s *script) cmdNew(a *args) {
	s.options(a)
	s.manual = a.text("paging", "") == "manual"
	s.shelf, s.messages = newShelf(), map[uint64]*message.Message{}
	s.now, s.pages, s.asked, s.effects, s.held = begin, nil, nil, nil, map[uint64]Held{}
	s.m = New(s.o)
}

// cmdRestart opens the queue from what is stored, as after a crash.
func (s *script) cmdRestart(a *args) {
	if a.has("marks") {
		s.o.Marks = a.text("marks", "on") == "on"
	}
	s.shelf.crash()
	s.pages, s.asked = nil, nil
	s.m = s.shelf.open(s.o)
	s.restoreHeld()
	s.apply(Tick{})
}

// restoreHeld tells the queue of what prepared transactions acknowledge.
func (s *script) restoreHeld() {
	var all []HeldItem
	for lane := range uint8(lanes) {
		for _, it := range s.shelf.page(lane, 0, len(s.shelf.entries)).Items {
			if h, ok := s.held[it.Position]; ok {
				all = append(all, HeldItem{lane, it, h})
			}
		}
	}
	s.m.RestoreHeld(all)
}

// cmdPrepare keeps what a transaction acknowledges until its end.
func (s *script) cmdPrepare(a *args) {
	s.apply(Prepare{Tx: a.next(), Reply: func(items []*Item) {
		for _, it := range items {
			s.held[it.Position] = it.Held()
		}
	}})
}

func (s *script) settled(tx string) {
	maps.DeleteFunc(s.held, func(_ uint64, h Held) bool { return h.Tx == tx })
}

// item makes the message of a position.
func (s *script) item(position uint64, a *args) *Item {
	m := &message.Message{
		ID:         message.ID{Producer: a.text("producer", "P"), Sequence: a.int("sequence", int64(position))},
		Priority:   uint8(a.int("priority", message.DefaultPriority)),
		Persistent: !a.has("transient"),
		Type:       a.text("type", ""),
	}
	if a.has("expires") {
		m.Expiration = s.now + a.duration("expires", 0).Milliseconds()
	}
	if a.has("expiration") {
		m.Expiration = a.int("expiration", 0)
	}
	it := NewItem(position, m)
	it.Durable = m.Persistent
	if a.has("dead-letter") {
		it.Overlay = &message.Overlay{Persistent: true, OriginalDestination: message.Destination{Kind: message.Queue, Name: "ELSEWHERE"},
			Added: map[string]any{"dlqDeliveryFailureCause": "because", DeliveryAttempts: int64(1)}}
	}
	s.messages[position] = m
	return it
}

func (s *script) cmdEnqueue(a *args) {
	for _, p := range a.positions() {
		e := Enqueue{Item: s.item(p, a), Spill: a.has("spill"), Done: s.answer}
		if a.has("producer") {
			e.Producer = a.text("producer", "")
		}
		s.apply(e)
	}
}

// cmdStore stores entries as another destination's, or a transaction's, batch does.
func (s *script) cmdStore(a *args) {
	for _, p := range a.positions() {
		it := s.item(p, a)
		it.Stored = true
		if err := s.shelf.append(s.o.LaneOf(it.Priority), it); err != nil {
			s.say("%v", err)
		}
	}
}

func (s *script) cmdArrive(a *args) {
	for _, p := range a.positions() {
		it := s.item(p, a)
		it.Stored = it.Durable
		s.apply(Arrive{Items: []*Item{it}, Moved: it.Overlay != nil})
	}
}

// cmdVanish damages the store.
func (s *script) cmdVanish(a *args) {
	for _, p := range a.positions() {
		delete(s.shelf.entries, p)
	}
}

// cmdPaged brings the page that was read first.
func (s *script) cmdPaged(*args) {
	if len(s.pages) == 0 {
		s.say("no page was read")
		return
	}
	p := s.pages[0]
	s.pages = s.pages[1:]
	s.apply(p)
}

func (s *script) cmdAttach(a *args) {
	k := &Consumer{
		ID:         a.next(),
		Prefetch:   int(a.int("prefetch", 10)),
		Priority:   int8(a.int("priority", 0)),
		Exclusive:  a.has("exclusive"),
		QuietFirst: a.has("quiet"),
		Connection: a.text("connection", ""),
	}
	if k.Connection == "" {
		k.Connection = "connection of " + k.ID
	}
	if text := a.text("selector", ""); text != "" {
		sel, err := selector.Parse(text)
		if err != nil {
			s.say("%v", err)
		}
		k.Selector = sel
	}
	s.apply(Attach{Consumer: k, Done: s.answer})
}

// cmdDetach closes a consumer that tells what its application had last.
func (s *script) cmdDetach(a *args) {
	d := Detach{Consumer: a.next(), Last: a.int("last", -1), Cause: message.Closed, Charge: true, Done: s.answer}
	if a.has("unknown") {
		d.Last = UnknownLast
	}
	s.apply(d)
}

// cmdLost takes a consumer away of which nobody knows what its application had.
func (s *script) cmdLost(a *args) {
	d := Detach{Consumer: a.next(), Last: UnknownLast, Cause: message.ConnectionLost, Charge: !a.has("uncharged"), Text: a.text("text", ""), Done: s.answer}
	if a.has("stopped") {
		d.Cause = message.BrokerStopped
	}
	s.apply(d)
}

func (s *script) cmdPrefetch(a *args) {
	s.apply(SetPrefetch{Consumer: a.next(), Prefetch: int(a.int("n", 0)), Done: s.answer})
}

// cmdPull pulls: for ever, with a time-out ("wait=5s"), or without waiting.
func (s *script) cmdPull(a *args) {
	p := Pull{Consumer: a.next(), Done: s.answer}
	if d := a.duration("wait", 0); d > 0 {
		p.Until = s.now + d.Milliseconds()
	}
	if a.has("at-once") {
		p.Until = -1
	}
	s.apply(p)
}

var ackTypes = []string{"delivered", "poison", "standard", "redelivered", "individual", "unmatched", "expired"}

// cmdAck acknowledges: "ack CONSUMER TYPE first=N last=N". The count is that of the
// range, if all the numbers in it are held.
func (s *script) cmdAck(a *args) {
	k, kind := a.next(), a.next()
	ack := Ack{Consumer: k, Type: AckType(slices.Index(ackTypes, kind)), Tx: a.text("tx", ""), Text: a.text("cause", ""), Done: s.answer}
	ref := func(name string) Ref {
		if !a.has(name) {
			return Ref{}
		}
		n := a.int(name, 0)
		if a.has("by-id") {
			return Ref{ID: message.ID{Producer: "P", Sequence: n}, Stale: a.has("stale")}
		}
		return Ref{Position: uint64(n), Stale: a.has("stale")}
	}
	ack.First, ack.Last = ref("first"), ref("last")
	if !a.has("first") && !a.has("from-oldest") {
		ack.First = ack.Last
	}
	ack.Count = int(a.int("count", 1))
	if a.has("first") && !a.has("count") {
		ack.Count = int(a.int("last", 0) - a.int("first", 0) + 1)
	}
	s.apply(ack)
}

// cmdCommit commits: the transaction's batch removes, then the queue hears of it.
func (s *script) cmdCommit(a *args) {
	tx := a.next()
	s.apply(Prepare{Tx: tx, Reply: func(items []*Item) {
		for _, it := range items {
			if err := s.shelf.remove(it.lane, it); err != nil {
				s.say("%v", err)
			}
		}
	}})
	s.settled(tx)
	s.apply(Settle{Tx: tx, Commit: true, Done: s.answer})
}

func (s *script) cmdRollback(a *args) {
	c := Settle{Tx: a.next(), Cause: message.Rollback, Done: s.answer}
	if a.has("lost") {
		c.Cause = message.ConnectionLost
	}
	if a.has("stopped") {
		c.Cause = message.BrokerStopped
	}
	c.TakeBack = a.has("take-back")
	s.settled(c.Tx)
	s.apply(c)
}

func (s *script) cmdUndispatchable(a *args) {
	s.apply(Undispatchable{Consumer: a.next(), Position: a.positions()[0], Text: a.text("text", "corrupt")})
}

// cmdSleep lets time pass, as the machine asks for it: from one Next to the next.
func (s *script) cmdSleep(a *args) {
	d, err := time.ParseDuration(a.next())
	if err != nil {
		a.bad = err
	}
	until := s.now + d.Milliseconds()
	for next := s.m.Next(); next > 0 && next < until; next = s.m.Next() {
		if next <= s.now {
			s.say("next is in the past")
			break
		}
		s.now = next
		seen := len(s.effects)
		s.apply(Tick{})
		if len(s.effects) > seen {
			s.said.WriteString("at " + strings.TrimSpace(s.at("", s.now)) + ":\n")
			text, err := s.endTurn()
			if err != nil {
				s.say("%v", err)
			}
			s.said.WriteString(text)
		}
	}
	s.now = until
	s.apply(Tick{})
}

// extract goes through the queue as its owner does: lane by lane, first what is in
// memory, then pages of the store.
func (s *script) extract(a *args, e Extract) {
	if ids := s.ids(a); ids != nil {
		e.Wants = func(it *Item) (bool, int) { return ids[it.ID.String()], int(a.int("steps", 1)) }
	}
	e.Dry = a.has("dry")
	limit, page := int(a.int("max", math.MaxInt)), int(a.int("page", 2))
	var sum Extracted
	for e.Lane = range lanes {
		for e.After = 0; limit > sum.Taken; {
			cursor, beyond := s.m.Depth(e.Lane)
			if e.Stored = nil; e.After >= cursor {
				if beyond > 0 {
					e.Stored = s.shelf.page(e.Lane, e.After, page).Items
				}
				if len(e.Stored) == 0 {
					break
				}
			}
			e.Max, e.Look = limit-sum.Taken, page
			e.Done = func(x Extracted, err error) {
				sum.Taken, sum.Out, sum.Left, e.After = sum.Taken+x.Taken, sum.Out+x.Out, sum.Left+x.Left, x.Last
				if err != nil {
					s.say("%v", err)
				}
				if len(x.Alone) > 0 && !s.manual {
					s.apply(Gone{x.Alone})
				}
			}
			s.apply(e)
			text, err := s.endTurn()
			if err != nil {
				s.say("%v", err)
			}
			if text != "" && text != "nothing\n" {
				s.say("%s", strings.TrimSuffix(text, "\n"))
			}
		}
	}
	s.say("taken %d, out %d, left %d", sum.Taken, sum.Out, sum.Left)
}

func (s *script) cmdGone(a *args) { s.apply(Gone{a.positions()}) }

func (s *script) ids(a *args) map[string]bool {
	var ids map[string]bool
	for _, p := range a.positions() {
		if ids == nil {
			ids = map[string]bool{}
		}
		ids[message.ID{Producer: "P", Sequence: int64(p)}.String()] = true
	}
	return ids
}

func (s *script) cmdPurge(a *args) {
	s.extract(a, Extract{Purge: true})
}

func (s *script) cmdMove(a *args) {
	target := message.Destination{Kind: message.Queue, Name: a.text("to", "ELSEWHERE")}
	except := a.int("except", -1)
	s.extract(a, Extract{Target: func(it *Item) (Move, bool) {
		return Move{Target: target, Redrive: true}, int64(it.Position) != except
	}})
}

func (s *script) cmdBrowse(a *args) {
	s.apply(Browse{Lane: uint8(a.int("lane", 5)), After: uint64(a.int("after", 0)), Max: int(a.int("max", 0)), Reply: func(items []*Item, bound uint64) {
		for _, it := range items {
			s.say("%d %s counter=%d", it.Position, it.State(), it.Counter())
		}
		if bound < 1<<63 {
			s.say("more in the store behind %d", bound)
		}
	}})
}

// cmdStory shows the story of a message, from the store or from memory.
func (s *script) cmdStory(a *args) {
	p := a.positions()[0]
	story := s.shelf.story(p)
	s.apply(Browse{Lane: 5, Reply: func(items []*Item, _ uint64) {
		for _, it := range items {
			if it.Position == p && !it.Stored {
				story = slices.Clone(it.Lines)
			}
		}
	}})
	if a.has("numbers") {
		s.say("%s", ranges(story))
		return
	}
	for i := range story {
		s.say("%s", strings.TrimSpace(s.line(&story[i])))
	}
}

// ranges writes the numbers of lines as "1..10 12..101".
func ranges(story []message.Attempt) string {
	var b strings.Builder
	for i := 0; i < len(story); i++ {
		first := story[i].Number
		for i+1 < len(story) && story[i+1].Number == story[i].Number+1 {
			i++
		}
		fmt.Fprintf(&b, "%d..%d ", first, story[i].Number)
	}
	return strings.TrimSpace(b.String())
}

func (s *script) cmdStats(*args) {
	st := s.m.Stats()
	values := map[string]int64{"enqueued": st.Enqueued, "dequeued": st.Dequeued, "dispatched": st.Dispatched, "expired": st.Expired,
		"dead-lettered": st.DeadLettered, "discarded": st.Discarded, "suppressed": st.Suppressed, "failed": st.Failed, "kept": st.Kept,
		"out": st.Out, "consumers": st.Consumers, "scheduled": st.Scheduled, "waiting": st.Waiting}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != 0 {
			all = append(all, fmt.Sprintf("%s=%d", name, values[name]))
		}
	}
	s.say("%s", strings.Join(all, " "))
}
