package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
)

// A shelf is the naive store of the tests: maps that the effects of whole turns are
// applied to. It refuses what a store could not make sense of.
type shelf struct {
	entries   map[uint64]shelved
	counts    map[uint64]message.Counts
	stories   map[uint64]map[int]message.Attempt // by position, as nothing moves in here
	marks     map[uint64]shelvedMark
	producers map[string]int64
}

// A shelved entry is an entry in its lane.
type shelved struct {
	lane  uint8
	entry message.Entry
}

type shelvedMark struct {
	how       message.HandOut
	positions []uint64
}

func newShelf() *shelf {
	return &shelf{
		entries:   map[uint64]shelved{},
		counts:    map[uint64]message.Counts{},
		stories:   map[uint64]map[int]message.Attempt{},
		marks:     map[uint64]shelvedMark{},
		producers: map[string]int64{},
	}
}

// apply does one effect for the store.
func (s *shelf) apply(e *Effect) error {
	switch e.Kind {
	case Append:
		return s.append(e.Lane, e.Item)
	case Remove, Transfer:
		return s.remove(e.Lane, e.Item)
	case SaveCounts:
		if s.entries[e.Item.Position].lane != e.Lane {
			return fmt.Errorf("counts of %d: no such entry in lane %d", e.Item.Position, e.Lane)
		}
		s.counts[e.Item.Position] = e.Item.Counts
	case SaveAttempt:
		return s.write(e)
	case PutMark:
		s.marks[e.Number] = shelvedMark{e.How, slices.Clone(e.Positions)}
	case DropMark:
		if _, ok := s.marks[e.Number]; !ok {
			return fmt.Errorf("mark %d is dropped and was not there", e.Number)
		}
		delete(s.marks, e.Number)
	case PutProducer:
		s.producers[e.Name] = int64(e.Number)
	case DropProducer:
		delete(s.producers, e.Name)
	}
	return nil
}

func (s *shelf) append(lane uint8, it *Item) error {
	if _, ok := s.entries[it.Position]; ok {
		return fmt.Errorf("entry %d is stored twice", it.Position)
	}
	if !it.Stored || it.Transient == it.Durable {
		return fmt.Errorf("entry %d is stored as stored=%v transient=%v durable=%v", it.Position, it.Stored, it.Transient, it.Durable)
	}
	s.entries[it.Position] = shelved{lane, it.Entry}
	return nil
}

func (s *shelf) remove(lane uint8, it *Item) error {
	if !it.Stored {
		return nil
	}
	if e, ok := s.entries[it.Position]; !ok || e.lane != lane {
		return fmt.Errorf("entry %d of lane %d is removed and was not there", it.Position, lane)
	}
	if _, ok := s.counts[it.Position]; ok && !it.HasCounts {
		return fmt.Errorf("entry %d is removed without its counts", it.Position)
	}
	delete(s.entries, it.Position)
	delete(s.counts, it.Position)
	delete(s.stories, it.Position)
	return nil
}

func (s *shelf) write(e *Effect) error {
	it := e.Item
	if _, ok := s.entries[it.Position]; !ok || it.Story != it.Position {
		return fmt.Errorf("line of story %d: no such entry", it.Story)
	}
	lines := s.stories[it.Position]
	if lines == nil {
		lines = map[int]message.Attempt{}
		s.stories[it.Position] = lines
	}
	lines[e.Attempt.Number] = *e.Attempt
	delete(lines, int(e.Number))
	return nil
}

// story lists the lines of a story by number.
func (s *shelf) story(position uint64) []message.Attempt {
	return slices.SortedFunc(maps.Values(s.stories[position]), func(a, b message.Attempt) int { return cmp.Compare(a.Number, b.Number) })
}

// page reads up to n entries of a lane behind a position.
func (s *shelf) page(lane uint8, after uint64, n int) Paged {
	p := Paged{Lane: lane}
	for _, position := range slices.Sorted(maps.Keys(s.entries)) {
		e := s.entries[position]
		if e.lane != lane || position <= after || len(p.Items) == n {
			continue
		}
		c, ok := s.counts[position]
		p.Items = append(p.Items, StoredItem(e.entry, c, ok))
	}
	p.Short = len(p.Items) < n
	return p
}

// search reads up to n entries of a lane behind a position.
func (s *shelf) search(lane uint8, after uint64, n int) Searched {
	p := s.page(lane, after, n)
	return Searched{Lane: lane, Items: p.Items, Short: p.Short}
}

// read reads what an effect asks for; nil: it asks for nothing.
func (s *shelf) read(e *Effect) Command {
	switch e.Kind {
	case PageIn:
		return s.page(e.Lane, e.Number, e.Counter)
	case Search:
		return s.search(e.Lane, e.Number, e.Counter)
	case PageTimes:
		return s.times(e.Index, e.From, e.Counter)
	}
	return nil
}

// times reads up to n places of an index behind one.
func (s *shelf) times(x Index, after TimeKey, n int) Timed {
	var keys []TimeKey
	for position, e := range s.entries {
		k := TimeKey{At: e.entry.Expiration, Lane: e.lane, Position: position}
		if x == ByDue {
			k.At = s.counts[position].Due
		}
		if k.At != 0 && compareTimes(k, after) > 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, compareTimes)
	t := Timed{Index: x, End: len(keys) < n}
	for _, k := range keys[:min(n, len(keys))] {
		c, ok := s.counts[k.Position]
		t.Items = append(t.Items, TimedItem{Lane: k.Lane, Item: StoredItem(s.entries[k.Position].entry, c, ok)})
		t.Last = k
	}
	return t
}

func compareTimes(a, b TimeKey) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Position, b.Position))
}

// crash forgets what does not outlive the process.
func (s *shelf) crash() {
	for position, e := range s.entries {
		if e.entry.Transient {
			delete(s.entries, position)
			delete(s.counts, position)
			delete(s.stories, position)
		}
	}
}

// open makes a machine of what is stored.
func (s *shelf) open(o Options) *Machine {
	m := New(o)
	var floor [lanes]uint64
	var n, bytes [lanes]int64
	for position, e := range s.entries {
		if n[e.lane] == 0 || position < floor[e.lane] {
			floor[e.lane] = position
		}
		n[e.lane]++
		bytes[e.lane] += int64(e.entry.SizeBytes)
	}
	for l := range n {
		if n[l] > 0 {
			m.Restore(uint8(l), floor[l], n[l], bytes[l])
		}
	}
	positions := map[uint64]message.HandOut{}
	for _, id := range slices.Sorted(maps.Keys(s.marks)) {
		for _, p := range s.marks[id].positions {
			positions[p] = max(positions[p], s.marks[id].how)
		}
	}
	m.RestoreMarks(positions, slices.Collect(maps.Keys(s.marks)))
	m.RestoreProducers(s.producers)
	return m
}
