package records

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

// Mending. A record that is found damaged is mended by who reads it and owns what it
// belongs to: its bytes are set aside, under a key of its own, by the batch that puts in
// its place what can be known of it from elsewhere. So damage concerns what it has hit,
// and nothing is lost without a word. Nothing is read for that while all is well.

// Damaged is the error of reading a record that is not as it was written, or is not there
// although another one says so. It is message.ErrCorrupt.
type Damaged struct {
	key  []byte
	text string // what is wrong; "": its bytes are not those that were written
}

// Error names the record.
func (d *Damaged) Error() string {
	text := describe(d.key)
	if d.text != "" {
		text += " " + d.text
	}
	return text + ": " + message.ErrCorrupt.Error()
}

// Unwrap is message.ErrCorrupt.
func (d *Damaged) Unwrap() error { return message.ErrCorrupt }

// Mended tells of a damaged record, and of what became of it.
type Mended struct {
	Destination message.Destination // whose it is, where that is known
	Text        string
}

// OnMended has f called for each record that is mended, and for those that were before.
// It may be called by any goroutine, and must not block.
func (r *Records) OnMended(f func(Mended)) {
	r.telling.Lock()
	before := r.untold
	r.listen, r.untold = f, nil
	r.telling.Unlock()
	for _, m := range before {
		f(m)
	}
}

func (r *Records) told(m Mended) {
	r.telling.Lock()
	f := r.listen
	if f == nil {
		r.untold = append(r.untold, m)
	}
	r.telling.Unlock()
	if f != nil {
		f(m)
	}
}

// SetAside is how many damaged records are kept aside.
func (r *Records) SetAside() int64 { return r.aside.Load() }

// Reading calls read, and mends what it finds damaged, until it finds nothing. of is the
// destination that is read. Nobody else may change what is read; settle waits until what
// its owner has changed can be read.
func (r *Records) Reading(of message.Destination, settle, read func() error) error {
	err := read()
	if err == nil || !errors.As(err, new(*Damaged)) {
		return err
	}
	for last := []byte(nil); ; {
		if err := settle(); err != nil {
			return err
		}
		var d *Damaged
		if err = read(); !errors.As(err, &d) || bytes.Equal(d.key, last) {
			return err
		}
		switch failed := r.mend(d, of); {
		case failed == error(d): // it cannot be mended
			return err
		case failed != nil:
			return failed
		}
		last = d.key
	}
}

// settled is settle for what nobody changes.
func settled() error { return nil }

// write hands a batch over and waits until it is true.
func (r *Records) write(b *Batch) error {
	answered := make(chan error, 1)
	r.Commit(b, func(err error) { answered <- err })
	return <-answered
}

// A mending is a damaged record and the batch that mends it.
type mending struct {
	r         *Records
	b         Batch
	key       []byte
	rest      []byte // the key without the mark of what is transient
	transient bool
	raw       []byte // nil: it is missing
	recount   bool   // what it was counted with is not known
}

// mender is what mends a kind of record, nil if nothing does: it adds to the batch what
// takes the place of a record that the batch has set aside and deleted, and tells what that
// is. keyBytes is the length of a key of that kind; 0: it varies, and is above that of a
// queue's.
func mender(of kind) (mend func(m *mending) (string, error), keyBytes int) {
	switch of {
	case kindQueue:
		return (*mending).queue, 5
	case kindEntry:
		return (*mending).entry, 14
	case kindCounts:
		return (*mending).counts, 14
	case kindMark:
		return (*mending).mark, 13
	case kindSelectors:
		return (*mending).selectors, 5
	case kindProducer:
		return (*mending).producer, 0
	case kindCounter:
		return (*mending).counter, 5
	case kindFloor:
		return (*mending).floor, 6
	case kindJob:
		return (*mending).job, 9
	case kindStaged:
		return (*mending).staged, 9
	case kindPrepared:
		return (*mending).prepared, 9
	case kindPart:
		return (*mending).part, 13
	}
	return nil, 0
}

// mend mends a record; it returns d itself where that cannot be done.
func (r *Records) mend(d *Damaged, of message.Destination) error {
	m := &mending{r: r, key: d.key, rest: bytes.TrimPrefix(d.key, []byte{byte(kindTransient)})}
	m.transient = len(m.rest) < len(m.key)
	how, keyBytes := mender(kind(m.rest[0]))
	if how == nil {
		return d
	}
	var err error
	if m.raw, err = r.shard.Get(d.key); errors.Is(err, store.ErrNotFound) {
		m.raw = nil
	} else if err != nil {
		return fmt.Errorf("read %s: %w", describe(d.key), err)
	} else {
		m.b.physical.Delete(d.key)
	}
	text := "one bit of it was wrong, and was put right"
	if good := unflip(d.key, m.raw); good != nil {
		m.b.put(m.key, good, kind(m.rest[0]) == kindEntry)
		m.raw = nil
	} else {
		text = "its key is none of ours, and nothing takes its place"
		if len(m.rest) == keyBytes || keyBytes == 0 && len(m.rest) >= 5 {
			if text, err = how(m); err != nil {
				return err
			}
		}
		if m.raw != nil {
			text = "its bytes are set aside; " + text
		}
		if m.raw != nil || m.recount {
			m.b.setAside(m.key, m.raw, m.recount)
		}
	}
	if err := r.write(&m.b); err != nil {
		return err
	}
	if m.raw != nil {
		r.aside.Add(1)
	}
	if of.IsZero() && (keyBytes == 5 || keyBytes == 6) { // of a queue as a whole, or of a lane
		of = r.nameOf(queueAt(m.rest))
	}
	r.told(Mended{Destination: of, Text: d.Error() + ": " + text})
	return nil
}

// unflipBytes is how long a value may be of which the bit that is wrong is looked for.
const unflipBytes = 4 << 10

// unflip is a damaged value, but for its checksum, as it was if all that is wrong is one
// bit: memory does that, and the checksum tells which. It is nil where that is not so.
func unflip(k, raw []byte) []byte {
	n := len(raw) - sumBytes
	if n < 1 || len(raw) > unflipBytes {
		return nil
	}
	v := bytes.Clone(raw)
	for i := range 8 * len(v) {
		bit := byte(1) << (i % 8)
		v[i/8] ^= bit
		if checksum(k, v[:n]) == binary.BigEndian.Uint32(v[n:]) && v[0] == formatVersion {
			return v[:n]
		}
		v[i/8] ^= bit
	}
	return nil
}

// setAside keeps the bytes of a damaged record. recount says that a counter is to be made
// anew at the next Open.
func (b *Batch) setAside(k, raw []byte, recount bool) {
	flag := byte(0)
	if recount {
		flag = 1
	}
	aside := append([]byte{byte(kindAside)}, k...)
	b.put(aside, append(append(b.value(1+len(raw)), flag), raw...), false)
}

func decodeAside(f *reader) (raw []byte, recount, ok bool) {
	flag := f.byte()
	return f.b, flag == 1, !f.bad && flag <= 1
}

// loadAside counts what is set aside, and makes the counters anew that it made wrong.
func (r *Records) loadAside() error {
	r.aside.Store(0)
	prefix := []byte{byte(kindAside)}
	wrong := map[string][]byte{}
	err := r.shard.Scan(prefix, successor(prefix), func(k, v []byte) bool {
		fields, _ := unseal(k, v) // who reads what is aside takes it as it is
		raw, recount, _ := decodeAside(&reader{b: fields})
		if recount {
			wrong[string(k[1:])] = bytes.Clone(raw)
		}
		if !recount || len(raw) > 0 {
			r.aside.Add(1)
		}
		return true
	})
	if err != nil {
		return err
	}
	for k, raw := range wrong {
		var b Batch
		q := jobsQueue
		if kind(k[0]) != kindJob {
			q = queueAt([]byte(k))
		}
		if err := r.recount(&b, q); err != nil {
			return err
		}
		if len(raw) > 0 {
			b.setAside([]byte(k), raw, false)
		} else {
			b.physical.Delete(append([]byte{byte(kindAside)}, k...))
		}
		if err := r.write(&b); err != nil {
			return err
		}
	}
	return nil
}

// CountAnew has the next Open count what a queue has, which is less than its counter says.
func (r *Records) CountAnew(q QueueID) {
	b := new(Batch)
	b.setAside(appendQueueKey(nil, false, kindCounter, q), nil, true)
	r.Commit(b, nil)
}

func (m *mending) place() (QueueID, Lane, uint64) {
	return queueAt(m.rest), Lane(m.rest[5]), uint64At(m.rest, 6)
}

// timeOf is when an index of times says that an entry's is; 0: it has none.
func (m *mending) timeOf(of kind) (at int64, err error) {
	q, lane, pos := m.place()
	prefix := appendQueueKey(nil, m.transient, of, q)
	end := binary.BigEndian.AppendUint64([]byte{byte(lane)}, pos)
	err = m.r.shard.Scan(prefix, successor(prefix), func(k, _ []byte) bool {
		if len(k) == len(prefix)+timeKeyBytes && bytes.Equal(k[len(prefix)+8:], end) {
			at = int64(uint64At(k, len(prefix)))
		}
		return at == 0
	})
	return at, err
}

// entry makes an entry anew, from its message. Where that is not found, the entry stands
// for it all the same: who gets it will not be able to read it, and it becomes a dead letter.
// Others may refer to the message, for all that is known.
func (m *mending) entry() (string, error) {
	q, lane, pos := m.place()
	if m.raw == nil {
		return "", fmt.Errorf("%s: %w", describe(m.key), message.ErrNotFound)
	}
	e := message.Entry{Position: pos, Transient: m.transient, Shared: true, Persistent: !m.transient, Body: pos,
		ID: message.ID{Text: fmt.Sprintf("ID:damaged-%d-%d-%d", q, lane, pos)}, Priority: uint8(max(9-int(lane), 0))}
	text, err := m.fromMessage(&e)
	if err != nil {
		return "", err
	}
	if e.Expiration, err = m.timeOf(kindExpiry); err != nil {
		return "", err
	}
	v, err := appendEntry(m.b.value(entryRoom(&e)), &e)
	if err != nil {
		return "", err
	}
	m.b.put(m.key, v, true)
	return text, nil
}

// fromMessage fills e with what its message says. It looks for that under the entry's own
// number, where it is unless the entry was moved, and where the damaged bytes say.
func (m *mending) fromMessage(e *message.Entry) (string, error) {
	was := message.Entry{Position: e.Position}
	bodies := []uint64{e.Body}
	if n := len(m.raw) - sumBytes; n > 0 && decodeEntry(&reader{b: m.raw[1:n]}, &was) && was.Body != e.Body {
		bodies = append(bodies, was.Body)
	}
	for i, body := range bodies {
		found, err := m.r.Message(&message.Entry{Body: body, Transient: m.transient})
		switch {
		case errors.Is(err, message.ErrNotFound), errors.Is(err, message.ErrCorrupt), err == nil && i > 0 && found.ID != was.ID:
			continue
		case err != nil:
			return "", err
		}
		was := e.Transient
		*e = message.NewEntry(e.Position, found)
		e.Body, e.Transient, e.Shared, e.Out = body, was, true, message.HandedOut // nobody knows whether it was
		return "it was made anew from its message, which is delivered as it was sent, flagged as redelivered", nil
	}
	m.recount = !m.transient
	return fmt.Sprintf("its message is not found: %s stands for it, and becomes a dead letter when its turn comes", e.ID), nil
}

// counts begins the counts of an entry anew. Nobody knows whether it was handed out.
func (m *mending) counts() (string, error) {
	c := message.Counts{Suspect: message.HandedOut}
	if !m.transient {
		var err error
		if c.Due, err = m.timeOf(kindDue); err != nil {
			return "", err
		}
	}
	m.b.putCounts(m.key, &c)
	return "its message stays, with a count of failures that begins anew and without its story, flagged as redelivered", nil
}

func (m *mending) mark() (string, error) {
	return "messages that were handed out before this start may come once more without being flagged as redelivered", nil
}

func (m *mending) selectors() (string, error) {
	return "what its consumers selected that are away is forgotten, until they come again", nil
}

func (m *mending) producer() (string, error) {
	return "what this producer sends once more is not told from new messages", nil
}

func (m *mending) floor() (string, error) { return "it is written anew", nil }

// queue leaves it to adopt to find out what the queue was.
func (m *mending) queue() (string, error) {
	return fmt.Sprintf("if it holds messages it is opened as the queue that they tell of, and if it was a durable subscription, its client has to subscribe anew; "+
		"what can be read of it: %q", m.raw[:min(len(m.raw), 200)]), nil
}

func (m *mending) counter() (string, error) {
	return "what is there was counted anew", m.r.recount(&m.b, queueAt(m.rest))
}

// recount makes the counter of a queue, or of the jobs, say what is there. It is for Open.
func (r *Records) recount(b *Batch, q QueueID) error {
	of, length := kindEntry, 14
	prefix := appendQueueKey(nil, false, of, q)
	if q == jobsQueue {
		of, length = kindJob, 9
		prefix = []byte{byte(of)}
	}
	var s queueState
	err := r.Reading(r.nameOf(q), settled, func() error {
		s.lanes = nil
		return r.scan(prefix, successor(prefix), length, 0, func(k []byte, f *reader) bool {
			if of == kindJob {
				j := Job{}
				ok := decodeJob(f, &j)
				s.lane(0).durable.add(1, int64(j.SizeBytes))
				return ok
			}
			e := message.Entry{}
			ok := decodeEntry(f, &e)
			s.lane(Lane(k[5])).durable.add(1, int64(e.SizeBytes))
			return ok
		})
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.queueLocked(q)
	now.durable, now.counted = true, true
	for i := range now.lanes {
		now.lanes[i].durable = Count{}
	}
	for _, l := range s.lanes {
		now.lane(l.lane).durable = l.durable
	}
	k := b.queueKey(false, kindCounter, q)
	b.put(k, appendCounter(b.value(counterRoom(now)), now), false)
	return nil
}

// nameOf is what a queue that was found at Open is called.
func (r *Records) nameOf(q QueueID) message.Destination {
	if i := r.foundQueue(q); i != nil {
		return i.Destination
	}
	return message.Destination{}
}

// adopt sees to queues of which not all is there: those that hold messages and have no
// record, and those that hold messages and have no counter.
func (r *Records) adopt() error {
	var ownerless []QueueID
	for q, s := range r.queues {
		if q < FirstPassing && s.holds() && r.nameOf(q).IsZero() {
			ownerless = append(ownerless, q)
		}
	}
	for _, q := range ownerless {
		if err := r.adoptQueue(q); err != nil {
			return err
		}
	}
	uncounted := []QueueID{jobsQueue}
	for i := range r.found {
		uncounted = append(uncounted, r.found[i].ID)
	}
	for _, q := range uncounted {
		if s := r.queues[q]; s != nil && s.counted {
			continue
		}
		var b Batch
		if err := r.recount(&b, q); err != nil {
			return err
		}
		if !r.queues[q].holds() {
			continue
		}
		if err := r.write(&b); err != nil {
			return err
		}
		r.told(Mended{Destination: r.nameOf(q), Text: describe(appendQueueKey(nil, false, kindCounter, q)) + " was missing: what is there was counted anew"})
	}
	return nil
}

// holds reports whether there are durable entries.
func (s *queueState) holds() bool {
	for i := range s.lanes {
		if s.lanes[i].durable.Messages != 0 {
			return true
		}
	}
	return false
}

// StandIn is the name of a queue that holds what was in a queue or durable subscription
// of which the record is gone; its id follows.
const StandIn = "Nixie.Damaged."

// adoptQueue gives a queue a record again: with the name that its first message says, if no
// other queue has that, else with a name that people will notice.
func (r *Records) adoptQueue(q QueueID) error {
	info := QueueInfo{ID: q, Destination: message.Destination{Kind: message.Queue, Name: fmt.Sprintf("%s%d", StandIn, q)}}
	if d, err := r.saysFirst(q); err != nil {
		return err
	} else if d.IsQueue() && !d.IsTemporary() && !d.IsComposite() && d.Name != "" && !r.has(d) {
		info.Destination = d
	}
	var b Batch
	b.PutQueue(info)
	if err := r.write(&b); err != nil {
		return err
	}
	if err := r.Reading(message.Destination{}, settled, r.loadQueues); err != nil {
		return err
	}
	r.told(Mended{Destination: info.Destination, Text: fmt.Sprintf("%s is gone, and messages are there: they are in %s now; "+
		"move them from there if that is not where they belong, such as a durable subscription", describe(appendQueueKey(nil, false, kindQueue, q)), info.Destination)})
	return nil
}

func (r *Records) has(d message.Destination) bool {
	for i := range r.found {
		if r.found[i].Destination == d && r.found[i].Subscription == "" {
			return true
		}
	}
	return false
}

// saysFirst is the destination that the first message of a queue says it is in.
func (r *Records) saysFirst(q QueueID) (d message.Destination, err error) {
	for lane := range lastLane + 1 {
		var page []Stored
		err = r.Reading(d, settled, func() (err error) { page, err = r.Page(q, lane, 0, 1); return err })
		if err != nil || len(page) == 0 {
			continue
		}
		m, err := r.Header(&page[0].Entry)
		if errors.Is(err, message.ErrCorrupt) || errors.Is(err, message.ErrNotFound) {
			continue
		}
		if err != nil {
			return d, err
		}
		return m.Destination, nil
	}
	return d, err
}

// job makes a job anew from its message, which is sent on once. Where that is not found,
// the job is taken out.
func (m *mending) job() (string, error) {
	r, seq := m.r, uint64At(m.rest, 1)
	j := Job{Sequence: seq}
	err := r.shard.Scan([]byte{byte(kindJobDue)}, []byte{byte(kindJobDue) + 1}, func(k, _ []byte) bool {
		if len(k) == 17 && uint64At(k, 9) == seq {
			j.Due = int64(uint64At(k, 1))
		}
		return j.Due == 0
	})
	if err != nil {
		return "", err
	}
	if j.ID, err = r.jobIDOf(seq); err != nil {
		return "", err
	}
	found, err := r.Message(&message.Entry{Body: seq})
	switch {
	case errors.Is(err, message.ErrNotFound), errors.Is(err, message.ErrCorrupt):
		m.recount = true
		m.b.DropJobAlone(&j)
		return "the scheduled message is not found either: it is not sent on", nil
	case err != nil:
		return "", err
	}
	if j.ID == "" {
		j.ID = found.ID.String()
	}
	j.Due, j.Created, j.SizeBytes, j.Destination = max(j.Due, 1), found.Timestamp, int32(found.SizeBytes()), found.Destination
	m.b.putJob(&j)
	return fmt.Sprintf("it was made anew from the scheduled message %s, which is sent on once, at its time: whether it was to be repeated is not known", found.ID), nil
}

// jobIDOf finds the id of a job; "": it is not found, or too long to be in its key.
func (r *Records) jobIDOf(seq uint64) (id string, err error) {
	err = r.shard.Scan([]byte{byte(kindJobID)}, []byte{byte(kindJobID) + 1}, func(k, v []byte) bool {
		fields, bad := unseal(k, v)
		if f := (&reader{b: fields}); bad == nil && f.uvarint() == seq && len(k) <= 1+maxProducerKey {
			id = string(k[1:])
		}
		return id == ""
	})
	return id, err
}

// staged writes anew what says that a message is not true yet, if a prepared transaction
// names it. Else the message belongs to nobody: but what says so is damaged, so it stays.
func (m *mending) staged() (string, error) {
	seq := uint64At(m.rest, 1)
	if size, ok := m.r.keptStaged()[seq]; ok {
		m.b.put(m.key, appendStaged(m.b.value(binary.MaxVarintLen64+1), size, ""), false)
		return "it was written anew", nil
	}
	return fmt.Sprintf("message %d of a transaction that was not committed stays in the store, and belongs to nobody", seq), nil
}

// unknownXID is the XID format of a transaction of which nobody knows the XID: "NIXI".
const unknownXID = 0x4e495849

// prepared writes a prepared transaction anew, with what can be read of it. Where its XID
// cannot, it is the one that its staged messages were stored with.
func (m *mending) prepared() (string, error) {
	p := Prepared{Sequence: uint64At(m.rest, 1)}
	known := false
	if fields, err := unseal(m.key, m.raw); err == nil && kind(m.rest[0]) == kindPrepared {
		known = decodePrepared(&reader{b: fields}, &p)
	}
	parts, err := m.takeParts(&p)
	switch {
	case err != nil:
		return "", err
	case known && p.Outcome == InDoubt:
		m.b.PutPrepared(&p)
		return m.lostPart(&p), nil
	case known:
		p.parts = 0
		m.b.putPreparedHeader(&p)
		return "it has ended, and has none", nil
	case parts == 0:
		return "what became of an ended distributed transaction is forgotten", nil
	}
	p.Outcome, p.XID = InDoubt, message.XID{Format: unknownXID, Global: "damaged", Branch: fmt.Sprint(p.Sequence)}
	text := "its XID is not known: it is %s now, waits for someone to end it by hand, and whoever asks for it by its own name is told that there is none"
	for _, s := range p.Sends {
		k := appendSeqKey(nil, false, kindStaged, s.Sequence)
		fields, err := m.r.get(k)
		if err != nil {
			continue
		}
		_, tx, _ := decodeStaged(&reader{b: fields})
		if xid, err := message.ParseXID(tx); err == nil {
			p.XID, text = xid, "it is transaction %s, by what its messages say, and waits for its outcome"
			break
		}
	}
	m.b.PutPrepared(&p)
	return fmt.Sprintf(text, p.XID), nil
}

// takeParts takes the parts of a transaction out of the store, and adds to p what can be
// read of them; what cannot be is set aside. It tells how many there were.
func (m *mending) takeParts(p *Prepared) (parts int, err error) {
	prefix := appendSeqKey(nil, false, kindPart, p.Sequence)
	err = m.r.shard.Scan(prefix, successor(prefix), func(k, v []byte) bool {
		parts++
		k = bytes.Clone(k)
		m.b.physical.Delete(k)
		fields, bad := unseal(k, v)
		was := *p
		if bad == nil && decodePart(&reader{b: fields}, p) {
			return true
		}
		p.Sends, p.Acks = was.Sends, was.Acks
		if !bytes.Equal(k, m.key) {
			m.b.setAside(k, v, false)
			m.r.aside.Add(1)
		}
		return true
	})
	return parts, err
}

// part writes the transaction of a part anew.
func (m *mending) part() (string, error) {
	p := Prepared{Sequence: uint64At(m.rest, 1)}
	k := appendSeqKey(nil, false, kindPrepared, p.Sequence)
	fields, err := m.r.get(k)
	if err != nil || !decodePrepared(&reader{b: fields}, &p) {
		return "", fmt.Errorf("%s: %w", describe(k), message.ErrCorrupt) // it is read first, and was mended
	}
	if _, err = m.takeParts(&p); err != nil {
		return "", err
	}
	m.b.PutPrepared(&p)
	return m.lostPart(&p), nil
}

func (m *mending) lostPart(p *Prepared) string {
	return fmt.Sprintf("of transaction %s, messages that it sends are found again, and are sent at once where they were scheduled; "+
		"messages that it received may be delivered again, whatever its outcome", p.XID)
}

// unknownCount is taken for how many entries refer to a body where that is not known:
// it is never deleted.
const unknownCount = math.MaxInt32

// mendReferences takes a count of references that cannot be read for one that never ends,
// in b.
func (r *Records) mendReferences(b *Batch, d *Damaged) (int64, error) {
	raw, err := r.shard.Get(d.key)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", describe(d.key), err)
	}
	if good := unflip(d.key, raw); good != nil {
		f := reader{b: good[1:]}
		if n := f.varint(); f.done() && n > 0 {
			r.told(Mended{Text: d.Error() + ": one bit of it was wrong"})
			return n, nil
		}
	}
	b.setAside(d.key, raw, false)
	r.aside.Add(1)
	r.told(Mended{Text: d.Error() + ": its bytes are set aside; the message stays in the store when nobody refers to it any more"})
	return unknownCount, nil
}
