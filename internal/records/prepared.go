package records

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
)

// An Outcome is what became of a prepared transaction of which there still is a
// record: someone ended it over the head of its transaction manager, who is to be
// told, or it was committed, and is remembered for a while.
type Outcome uint8

// The outcomes there are.
const (
	InDoubt    Outcome = iota // nobody has: it waits for its transaction manager
	Committed                 // it was committed by hand
	RolledBack                // it was rolled back by hand
	Ended                     // its transaction manager has committed it: remembered for who asks twice
	outcomes   = iota
)

// Prepared is a distributed transaction between its prepare and its end.
type Prepared struct {
	Sequence uint64 // under which it is stored, from Next
	XID      message.XID
	At       int64 // when it was prepared, Unix milliseconds
	Outcome  Outcome
	Holder   Holder // who prepared it; Consumer is ""
	// Sends are the messages it sends, in order: their bodies are staged
	// (Batch.StageMessage).
	Sends []PreparedSend
	// Acks are the entries it removes. They stay in their queues, whose owners give
	// them to nobody.
	Acks []PreparedAck

	parts int // records of sends and acks
}

// A PreparedSend is a staged message.
type PreparedSend struct {
	Sequence  uint64
	SizeBytes int32 // Message.SizeBytes
	// Schedule is when it is to be delivered, once it is committed; nil: at once. Its
	// Properties are with the message.
	Schedule *message.Schedule
}

// A PreparedAck is an entry that a prepared transaction acknowledges, with what must
// be known of its hand-out to count it right if the transaction is rolled back.
type PreparedAck struct {
	Queue     QueueID
	Lane      Lane
	Position  uint64
	HandedOut int64 // Unix milliseconds
	HandOuts  int32 // message.Counts.HandOuts
	Told      int32 // the redelivery counter its client was told
	Holder    Holder
}

// A Holder is the consumer that has an entry.
type Holder struct{ Consumer, Connection, ClientID, Address, Protocol string }

// partItems is how many sends and acks one part of a prepared transaction holds.
const partItems = 1000

// PutPrepared stores p, whose messages are staged in this batch or earlier ones.
func (b *Batch) PutPrepared(p *Prepared) {
	sends, acks := p.Sends, p.Acks
	for p.parts = 0; len(sends)+len(acks) > 0; p.parts++ {
		ns := min(len(sends), partItems)
		na := min(len(acks), partItems-ns)
		b.putPart(p, sends[:ns], acks[:na])
		sends, acks = sends[ns:], acks[na:]
	}
	b.putPreparedHeader(p)
}

// DropPrepared deletes p. Its staged messages are made permanent, or dropped, by the
// same batch.
func (b *Batch) DropPrepared(p *Prepared) {
	b.physical.Delete(b.seqKey(false, kindPrepared, p.Sequence))
	b.dropParts(p)
}

// PutOutcome stores what became of p: of it, that is all that is left. Its staged messages are made permanent, or dropped, by the
// same batch. p itself stays as it is.
func (b *Batch) PutOutcome(p *Prepared, o Outcome) {
	ended := *p
	ended.Outcome, ended.parts = o, 0
	b.putPreparedHeader(&ended)
	b.dropParts(p)
}

func (b *Batch) dropParts(p *Prepared) {
	for n := range uint32(p.parts) {
		b.physical.Delete(b.partKey(false, kindPart, p.Sequence, n))
	}
}

func (b *Batch) putPreparedHeader(p *Prepared) {
	k := b.seqKey(false, kindPrepared, p.Sequence)
	room := 1 + 5*binary.MaxVarintLen64 + len(p.XID.Global) + len(p.XID.Branch) + holderRoom(&p.Holder)
	b.put(k, appendPrepared(b.value(room), p), false)
}

func appendPrepared(v []byte, p *Prepared) []byte {
	v = binary.AppendVarint(append(v, byte(p.Outcome)), int64(p.XID.Format))
	v = appendString(appendString(v, p.XID.Global), p.XID.Branch)
	v = binary.AppendUvarint(binary.AppendVarint(v, p.At), uint64(p.parts))
	return appendHolder(v, &p.Holder)
}

func decodePrepared(r *reader, p *Prepared) bool {
	p.Outcome = Outcome(r.byte())
	p.XID.Format = r.int32()
	p.XID.Global, p.XID.Branch = r.string(), r.string()
	p.At = r.varint()
	p.parts = r.count()
	p.Holder = r.holder()
	return r.done() && p.Outcome < outcomes && (p.Outcome == InDoubt || p.parts == 0)
}

func holderRoom(h *Holder) int {
	return 5*binary.MaxVarintLen64 + len(h.Consumer) + len(h.Connection) + len(h.ClientID) + len(h.Address) + len(h.Protocol)
}

func appendHolder(v []byte, h *Holder) []byte {
	for _, s := range []string{h.Consumer, h.Connection, h.ClientID, h.Address, h.Protocol} {
		v = appendString(v, s)
	}
	return v
}

func (r *reader) holder() Holder {
	return Holder{Consumer: r.string(), Connection: r.string(), ClientID: r.string(), Address: r.string(), Protocol: r.string()}
}

func (b *Batch) putPart(p *Prepared, sends []PreparedSend, acks []PreparedAck) {
	k := b.partKey(false, kindPart, p.Sequence, uint32(p.parts))
	b.put(k, appendPart(b.value(partRoom(sends, acks)), sends, acks), false)
}

// partRoom is about how large the fields of a part are. More than one holder makes
// them larger, and they then have memory of their own.
func partRoom(sends []PreparedSend, acks []PreparedAck) int {
	n := (3 + 3*len(sends) + 7*len(acks)) * binary.MaxVarintLen64
	if len(acks) > 0 {
		n += holderRoom(&acks[0].Holder)
	}
	return n
}

// appendPart writes sends, holders, and acks that refer to these.
func appendPart(v []byte, sends []PreparedSend, acks []PreparedAck) []byte {
	v = binary.AppendUvarint(v, uint64(len(sends)))
	for _, s := range sends {
		v = appendSchedule(binary.AppendVarint(binary.AppendUvarint(v, s.Sequence), int64(s.SizeBytes)), s.Schedule)
	}
	index := map[Holder]int{}
	var holders []*Holder
	for i := range acks {
		h := &acks[i].Holder
		if _, ok := index[*h]; !ok {
			index[*h] = len(holders)
			holders = append(holders, h)
		}
	}
	v = binary.AppendUvarint(v, uint64(len(holders)))
	for _, h := range holders {
		v = appendHolder(v, h)
	}
	v = binary.AppendUvarint(v, uint64(len(acks)))
	for i := range acks {
		a := &acks[i]
		v = binary.AppendUvarint(v, uint64(index[a.Holder]))
		v = append(binary.AppendUvarint(v, uint64(a.Queue)), byte(a.Lane))
		v = binary.AppendVarint(binary.AppendUvarint(v, a.Position), a.HandedOut)
		v = binary.AppendVarint(binary.AppendVarint(v, int64(a.HandOuts)), int64(a.Told))
	}
	return v
}

// appendSchedule writes 1 and a schedule, 2 and one that is a time alone, or 0 if there is
// none.
func appendSchedule(v []byte, s *message.Schedule) []byte {
	switch {
	case s == nil:
		return append(v, 0)
	case s.At != 0:
		return binary.AppendVarint(append(v, 2), s.At)
	}
	v = binary.AppendVarint(binary.AppendVarint(append(v, 1), s.Delay), s.Period)
	return appendString(binary.AppendVarint(v, int64(s.Repeat)), s.Cron)
}

func (r *reader) schedule() *message.Schedule {
	switch r.byte() {
	case 0:
		return nil
	case 1:
		return &message.Schedule{Delay: r.varint(), Period: r.varint(), Repeat: r.int32(), Cron: r.string()}
	case 2:
		return &message.Schedule{At: r.varint()}
	}
	r.fail()
	return nil
}

// decodePart adds what a part holds to p. Holders are in the order in which acks
// first name them.
func decodePart(r *reader, p *Prepared) bool {
	for range r.length(3) {
		p.Sends = append(p.Sends, PreparedSend{Sequence: r.uvarint(), SizeBytes: r.int32(), Schedule: r.schedule()})
	}
	holders := make([]Holder, r.length(5))
	known := map[Holder]bool{}
	for i := range holders {
		holders[i] = r.holder()
		known[holders[i]] = true
	}
	named := uint64(0)
	for range r.length(7) {
		at, q := r.uvarint(), r.uvarint()
		if at > named || at >= uint64(len(holders)) || q > uint64(^QueueID(0)) {
			return false
		}
		named = max(named, at+1)
		p.Acks = append(p.Acks, PreparedAck{Holder: holders[at], Queue: QueueID(q), Lane: Lane(r.byte()), Position: r.uvarint(),
			HandedOut: r.varint(), HandOuts: r.int32(), Told: r.int32()})
	}
	return r.done() && named == uint64(len(holders)) && len(known) == len(holders)
}

// loadPrepared reads the prepared transactions, by sequence.
func (r *Records) loadPrepared() error {
	prefix := []byte{byte(kindPrepared)}
	at := map[uint64]int{}
	r.prepared = nil
	err := r.scan(prefix, successor(prefix), 9, 0, func(k []byte, f *reader) bool {
		p := Prepared{Sequence: uint64At(k, 1)}
		ok := decodePrepared(f, &p)
		at[p.Sequence] = len(r.prepared)
		r.prepared = append(r.prepared, p)
		return ok
	})
	if err != nil {
		return err
	}
	seen := make([]int, len(r.prepared))
	var headless error
	prefix = []byte{byte(kindPart)}
	err = r.scan(prefix, successor(prefix), 13, 0, func(k []byte, f *reader) bool {
		i, ok := at[uint64At(k, 1)]
		if !ok {
			headless = &Damaged{key: appendSeqKey(nil, false, kindPrepared, uint64At(k, 1)), text: "is missing"}
			return true
		}
		seen[i]++
		return decodePart(f, &r.prepared[i])
	})
	if err = cmp.Or(err, headless); err != nil {
		return err
	}
	for i := range r.prepared {
		if p := &r.prepared[i]; seen[i] != p.parts {
			return &Damaged{key: appendSeqKey(nil, false, kindPrepared, p.Sequence), text: fmt.Sprintf("names %d parts, of which %d are there", p.parts, seen[i])}
		}
	}
	return nil
}

// Prepared are the transactions found at Open that were prepared and not ended, or
// were, and have left a record, in the order in which they were prepared.
func (r *Records) Prepared() []Prepared { return r.prepared }

// keptStaged are the staged messages that belong to prepared transactions, with their sizes.
func (r *Records) keptStaged() map[uint64]int32 {
	kept := map[uint64]int32{}
	for i := range r.prepared {
		for _, s := range r.prepared[i].Sends {
			kept[s.Sequence] = s.SizeBytes
		}
	}
	return kept
}

// nameAgain gives a staged message back to its prepared transaction, of which the part
// that named it was damaged. It reports whether there is one.
func (r *Records) nameAgain(tx string, seq uint64, size int32) bool {
	for i := range r.prepared {
		if p := &r.prepared[i]; p.Outcome == InDoubt && p.XID.String() == tx {
			p.Sends = append(p.Sends, PreparedSend{Sequence: seq, SizeBytes: size})
			slices.SortFunc(p.Sends, func(a, b PreparedSend) int { return cmp.Compare(a.Sequence, b.Sequence) })
			return true
		}
	}
	return false
}
