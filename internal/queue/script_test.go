package queue

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
)

// TestScripts runs the files in testdata: a command, what the queue does about it.
//
// Each command is a turn of its own; "turn" takes several. What goes to the store
// is printed first, then what the world is told. Times are written as distances
// from the start. A message's position, sequence and name are one number.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			s := &script{}
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				return s.run(t, d)
			})
		})
	}
}

// begin is when a script begins, in Unix milliseconds.
const begin = 1_000_000_000

// A script is a queue, its naive store and its manual clock.
type script struct {
	o        Options
	m        *Machine
	shelf    *shelf
	messages map[uint64]*message.Message // their bodies, by position
	now      int64
	hidden   map[string]bool
	held     map[uint64]Held // what prepared transactions acknowledge
	manual   bool            // pages are read and brought by command
	pages    []Command       // read, and not brought yet
	asked    []Effect
	said     strings.Builder // what commands have to say themselves
	effects  []Effect
}

// run does what one directive of a file says.
func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	lines := []string{d.Cmd}
	args := [][]datadriven.CmdArg{d.CmdArgs}
	if d.Cmd == "turn" {
		lines, args = nil, nil
		repeat := 1
		if d.HasArg("repeat") {
			d.ScanArgs(t, "repeat", &repeat)
		}
		for line := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
			cmd, a, err := datadriven.ParseLine(line)
			if err != nil {
				d.Fatalf(t, "%s: %v", line, err)
			}
			lines, args = append(lines, cmd), append(args, a)
		}
		lines, args = slices.Repeat(lines, repeat), slices.Repeat(args, repeat)
	}
	s.said.Reset()
	for i, cmd := range lines {
		a := newArgs(args[i])
		do, ok := commands[cmd]
		if !ok {
			d.Fatalf(t, "unknown command %q", cmd)
		}
		do(s, a)
		if err := a.done(); err != nil {
			d.Fatalf(t, "%s: %v", cmd, err)
		}
	}
	text, err := s.endTurn()
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	if d.HasArg("quietly") {
		return fmt.Sprintf("%d lines\n", strings.Count(text, "\n"))
	}
	return s.said.String() + text
}

// endTurn ends a turn, applies what is for the store and prints everything. Pages
// that were asked for come in at once, in turns of their own.
func (s *script) endTurn() (string, error) {
	var b strings.Builder
	for {
		s.effects = s.m.EndTurn(s.effects)
		var times []Timed // read at once, also where pages are read by hand
		var world strings.Builder
		for i := range s.effects {
			e := &s.effects[i]
			to := &world
			if e.ForStore() {
				to = &b
				if err := s.shelf.apply(e); err != nil {
					return "", err
				}
			} else if e.Kind == PageIn || e.Kind == Search {
				s.asked = append(s.asked, *e)
			} else if e.Kind == PageTimes {
				times = append(times, s.shelf.times(e.Index, e.From, e.Counter))
			} else if e.Kind == Answer && e.Err == nil {
				e.Done(nil)
			}
			if text := s.print(e); text != "" {
				to.WriteString(text + "\n")
			}
		}
		b.WriteString(world.String())
		s.effects = s.effects[:0]
		for _, t := range times {
			s.apply(t)
		}
		if len(times) > 0 {
			continue
		}
		if s.m.unfinished && !s.manual {
			s.apply(Tick{})
			continue
		}
		if len(s.asked) == 0 || s.manual {
			break
		}
		s.readPages()
		for _, p := range s.pages {
			s.apply(p)
		}
		s.pages = nil
	}
	if b.Len()+s.said.Len() == 0 {
		return "nothing\n", nil
	}
	return b.String(), nil
}

// readPages reads the pages that were asked for.
func (s *script) readPages() {
	for _, e := range s.asked {
		if e.Kind == Search {
			s.pages = append(s.pages, s.shelf.search(e.Lane, e.Number, e.Counter))
		} else {
			s.pages = append(s.pages, s.shelf.page(e.Lane, e.Number, e.Counter))
		}
	}
	s.asked = s.asked[:0]
}

func (s *script) apply(c Command) { s.effects = s.m.Apply(c, s.now, s.effects) }

func (s *script) say(format string, args ...any) { fmt.Fprintf(&s.said, format+"\n", args...) }

// print writes an effect down; "" if it is not to be seen.
func (s *script) print(e *Effect) string {
	p := uint64(0)
	if e.Item != nil {
		p = e.Item.Position
	}
	kind, text := "", ""
	switch e.Kind {
	case Append:
		kind, text = "append", fmt.Sprintf("append %d%s%s", p, handOut(e.Item.Out), flag(e.Item.Transient, "transient"))
	case Remove:
		kind, text = "remove", fmt.Sprintf("remove %d%s", p, [...]string{"", " expired", " discarded", " purged"}[e.Reason])
	case Transfer:
		kind, text = "transfer", fmt.Sprintf("transfer %d to %s, %s%s%s", p, e.Move.Target.Name, e.Move.Cause, s.at(" expires=", e.Move.Expiration), quoted(e.Move.Text))
	case SaveCounts:
		kind, text = "counts", fmt.Sprintf("counts %d%s", p, s.counts(&e.Item.Counts))
	case SaveAttempt:
		kind, text = "line", fmt.Sprintf("line %d%s%s", p, s.line(e.Attempt), number(" drop=", int(e.Number)))
	case PutMark:
		kind, text = "mark", fmt.Sprintf("mark %d%s %v", e.Number, handOut(e.How), e.Positions)
	case DropMark:
		kind, text = "mark", fmt.Sprintf("drop mark %d", e.Number)
	case PutProducer:
		kind, text = "producer", fmt.Sprintf("producer %s %d", e.Name, e.Number)
	case DropProducer:
		kind, text = "producer", "drop producer "+e.Name
	case Deliver:
		kind, text = "deliver", fmt.Sprintf("deliver %d to %s counter=%d", p, e.Consumer.ID, e.Counter)
		if e.Hint {
			text += fmt.Sprintf(" redeliveryDelay=%d", e.Item.Delay)
		}
	case Nothing:
		kind, text = "nothing", "nothing for "+e.Consumer.ID
	case Answer:
		if e.Err != nil {
			kind, text = "error", "error: "+e.Err.Error()
		}
	case PageIn:
		kind, text = "page-in", fmt.Sprintf("page-in lane=%d after=%d n=%d", e.Lane, e.Number, e.Counter)
	case Search:
		kind, text = "search", fmt.Sprintf("search lane=%d after=%d n=%d", e.Lane, e.Number, e.Counter)
	case Forget:
		kind, text = "forget", fmt.Sprintf("forget %d", p)
	case Tell:
		kind, text = "tell", fmt.Sprintf("tell %s", events[e.Event])
		if p != 0 {
			text += fmt.Sprintf(" %d", p)
		}
		text += quoted(e.Text)
	}
	if s.hidden[kind] {
		return ""
	}
	return text
}

var events = [...]string{"dead-lettered", "expired", "discarded", "suppressed", "kept", "stray-ack", "inconsistent", "failed"}

func handOut(h message.HandOut) string { return [...]string{"", " out", " pulled"}[h] }

func flag(on bool, name string) string {
	if on {
		return " " + name
	}
	return ""
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" %q", text)
}

func number(name string, n int) string {
	if n == 0 {
		return ""
	}
	return name + strconv.Itoa(n)
}

// at prints a time as the distance from the start.
func (s *script) at(name string, ms int64) string {
	if ms == 0 {
		return ""
	}
	return name + (time.Duration(ms-begin) * time.Millisecond).String()
}

func (s *script) counts(c *message.Counts) string {
	return number(" failures=", int(c.Failures)) + number(" holds=", int(c.Holds)) + number(" attempts=", int(c.Attempts)) +
		handOut(c.Suspect) + s.at(" due=", c.Due) + flag(c.Unasked, "unasked")
}

func (s *script) line(a *message.Attempt) string {
	return fmt.Sprintf(" #%d %s%s%s told=%d -> %s%s%s", a.Number, a.Cause, flag(!a.Counted, "uncounted"), flag(a.Uncertain, "uncertain"),
		a.Redeliver, a.Decision, s.at(" next=", a.NextDue), quoted(a.Text))
}

// options reads what kind of queue a script wants.
func (s *script) options(a *args) {
	s.o = Options{
		Destination: message.Destination{Kind: message.Queue, Name: a.text("name", "Q")},
		Marks:       a.text("marks", "on") == "on",
		Redelivers:  !a.has("topic-consumer"),
		Prioritized: a.has("prioritized"),
		Window:      int(a.int("window", 0)),
		Bounds:      Bounds{Consumers: int(a.int("max-consumers", 0)), Ring: a.int("ring-size", 0), Purge: a.has("purge")},
		TurnSteps:   int(a.int("turn-steps", 0)),
		Read:        func(e *message.Entry) (*message.Message, error) { return s.read(e) },
		LastValue:   a.text("last-value", ""),
		Properties: func(m *message.Message, name string) (selector.Value, bool) {
			return selector.StringValue(m.Type), name == "type" && m.Type != ""
		},
	}
	if a.has("limit") || a.has("delay") {
		p := redelivery.DefaultPolicy()
		p.MaximumRedeliveries = int(a.int("limit", 6))
		p.InitialRedeliveryDelay = a.duration("delay", time.Second)
		p.RedeliveryDelay = p.InitialRedeliveryDelay
		p.UseExponentialBackOff, p.BackOffMultiplier = a.has("factor"), float64(a.int("factor", 1))
		p.Name = "policy"
		s.o.Rules.Redelivery = &p
	}
	if d := a.duration("dead-letters-expire", 0); d > 0 {
		s.o.Rules.DeadLetter = redelivery.SharedStrategy()
		s.o.Rules.DeadLetter.Expiration = d
	}
	if a.has("duplicates") {
		s.o.Rules.Duplicates = map[string]redelivery.DuplicateAction{"dead-letter": redelivery.DeadLetterDuplicate, "discard": redelivery.DiscardDuplicate}[a.text("duplicates", "")]
	}
	s.hidden = map[string]bool{"producer": true, "append": true, "counts": true, "line": true, "mark": true, "tell": true, "page-in": true, "search": true, "remove": true, "forget": true}
	for _, kind := range a.list("show") {
		delete(s.hidden, kind)
	}
}

func (s *script) read(e *message.Entry) (*message.Message, error) {
	m, ok := s.messages[e.Position]
	if !ok {
		return nil, message.ErrNotFound
	}
	return m.With(e.Overlay), nil
}

// args are the arguments of one command: each must be asked for.
type args struct {
	plain  []string
	named  map[string][]string
	wanted map[string]bool
	bad    error
}

func newArgs(list []datadriven.CmdArg) *args {
	a := &args{named: map[string][]string{}, wanted: map[string]bool{}}
	for _, arg := range list {
		a.named[arg.Key] = arg.Vals
		if len(arg.Vals) == 0 {
			a.plain = append(a.plain, arg.Key)
		}
	}
	return a
}

// next takes the next plain argument.
func (a *args) next() string {
	if len(a.plain) == 0 {
		a.bad = fmt.Errorf("an argument is missing")
		return ""
	}
	v := a.plain[0]
	a.plain = a.plain[1:]
	a.wanted[v] = true
	return v
}

// positions takes all plain arguments that are numbers, or ranges such as 1..3.
func (a *args) positions() []uint64 {
	var all []uint64
	for len(a.plain) > 0 {
		from, to, isRange := strings.Cut(a.plain[0], "..")
		lo, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			break
		}
		hi := lo
		if isRange {
			if hi, err = strconv.ParseUint(to, 10, 64); err != nil {
				a.bad = err
			}
		}
		a.next()
		for p := lo; p <= hi; p++ {
			all = append(all, p)
		}
	}
	return all
}

func (a *args) has(name string) bool {
	a.wanted[name] = true
	_, ok := a.named[name]
	return ok
}

func (a *args) list(name string) []string {
	a.has(name)
	return a.named[name]
}

func (a *args) text(name, otherwise string) string {
	if a.has(name) && len(a.named[name]) > 0 {
		return strings.Join(a.named[name], ", ")
	}
	return otherwise
}

func (a *args) int(name string, otherwise int64) int64 {
	text := a.text(name, "")
	if text == "" {
		return otherwise
	}
	if text == "max" {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		a.bad = err
	}
	return n
}

func (a *args) duration(name string, otherwise time.Duration) time.Duration {
	text := a.text(name, "")
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		a.bad = err
	}
	return d
}

// done complains about what nobody asked for.
func (a *args) done() error {
	for name := range a.named {
		if !a.wanted[name] {
			return fmt.Errorf("what is %q?", name)
		}
	}
	return a.bad
}
