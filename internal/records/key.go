package records

import (
	"encoding/binary"
	"fmt"
)

// kind is the first byte of a key, or the second after kindTransient.
type kind byte

const (
	kindMeta      kind = 'v'
	kindQueue     kind = 'q'
	kindEntry     kind = 'e'
	kindCounts    kind = 'd'
	kindBody      kind = 'm'
	kindPiece     kind = 'b'
	kindReference kind = 'r'
	kindStaged    kind = 'x'
	kindAttempt   kind = 'l'
	kindMark      kind = 'h'
	kindProducer  kind = 'u'
	kindCounter   kind = 'n'
	kindFloor     kind = 'f'
	kindDue       kind = 's'
	kindExpiry    kind = 'y'
	kindJob       kind = 'j'
	kindJobDue    kind = 'w'
	kindJobID     kind = 'k'
	kindPrepared  kind = 'p'
	kindPart      kind = 'i'
	kindAside     kind = 'z'
	kindSelectors kind = 'o'
	kindTransient kind = 't'
)

// kindNames are for errors, which name the key.
var kindNames = map[kind]string{
	kindMeta: "meta", kindQueue: "queue", kindEntry: "entry", kindCounts: "counts", kindBody: "body", kindPiece: "piece",
	kindReference: "reference", kindStaged: "staged", kindAttempt: "attempt", kindMark: "mark", kindProducer: "producer",
	kindCounter: "counter", kindFloor: "floor", kindJob: "job", kindJobDue: "due job", kindJobID: "job id",
	kindPrepared: "prepared transaction", kindPart: "prepared part",
	kindDue: "due", kindExpiry: "expiry", kindAside: "set aside",
	kindSelectors: "selectors",
}

// keyBytes is room for any key but that of a producer.
const keyBytes = 16

// appendKind starts a key.
func appendKind(k []byte, transient bool, of kind) []byte {
	if transient {
		k = append(k, byte(kindTransient))
	}
	return append(k, byte(of))
}

// appendSeqKey makes the key of a body, reference, staging record or prepared
// transaction, and the prefix of pieces, attempts and parts.
func appendSeqKey(k []byte, transient bool, of kind, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(appendKind(k, transient, of), seq)
}

// appendPartKey makes the key of a piece, an attempt, or a part of a prepared
// transaction.
func appendPartKey(k []byte, transient bool, of kind, seq uint64, part uint32) []byte {
	return binary.BigEndian.AppendUint32(appendSeqKey(k, transient, of, seq), part)
}

// appendQueueKey makes the key of a queue or counter, and the prefix of all else
// that belongs to a queue.
func appendQueueKey(k []byte, transient bool, of kind, q QueueID) []byte {
	return binary.BigEndian.AppendUint32(appendKind(k, transient, of), uint32(q))
}

// appendLaneKey makes the key of a floor.
func appendLaneKey(k []byte, of kind, q QueueID, lane Lane) []byte {
	return append(appendQueueKey(k, false, of, q), byte(lane))
}

// appendEntryKey makes the key of an entry or its counts.
func appendEntryKey(k []byte, transient bool, of kind, q QueueID, lane Lane, pos uint64) []byte {
	k = append(appendQueueKey(k, transient, of, q), byte(lane))
	return binary.BigEndian.AppendUint64(k, pos)
}

// appendMarkKey makes the key of a hand-out mark.
func appendMarkKey(k []byte, q QueueID, id MarkID) []byte {
	return binary.BigEndian.AppendUint64(appendQueueKey(k, false, kindMark, q), uint64(id))
}

// appendProducerKey makes the key of a producer.
func appendProducerKey(k []byte, q QueueID, producer string) []byte {
	return append(appendQueueKey(k, false, kindProducer, q), producer...)
}

// successor gives the least key above every key that begins with prefix. The
// kinds are ASCII letters, so there always is one.
func successor(prefix []byte) []byte {
	s := append([]byte(nil), prefix...)
	for i := len(s) - 1; ; i-- {
		s[i]++
		if s[i] != 0 {
			return s[:i+1]
		}
	}
}

// uint64At reads the integer of a key whose length the caller has checked.
func uint64At(k []byte, at int) uint64 { return binary.BigEndian.Uint64(k[at:]) }

// describe names a key in an error: its kind in words, the key in hex, and what it is
// the key of.
func describe(k []byte) string {
	name, of, rest := "", kind(0), k
	if len(k) > 0 {
		of = kind(k[0])
	}
	if of == kindTransient && len(k) > 1 {
		name, of, rest = "transient ", kind(k[1]), k[1:]
	}
	word, ok := kindNames[of]
	if !ok {
		return fmt.Sprintf("record %x", k)
	}
	text := fmt.Sprintf("%s%s record %x", name, word, k)
	switch n := len(rest); of {
	case kindEntry, kindCounts:
		if n == 14 {
			text += fmt.Sprintf(" (queue %d, lane %d, position %d)", queueAt(rest), rest[5], uint64At(rest, 6))
		}
	case kindQueue, kindSelectors, kindMark, kindProducer, kindCounter, kindFloor, kindDue, kindExpiry:
		if n >= 5 {
			text += fmt.Sprintf(" (queue %d)", queueAt(rest))
		}
	}
	return text
}

// queueAt reads the queue of a key whose length the caller has checked.
func queueAt(k []byte) QueueID { return QueueID(binary.BigEndian.Uint32(k[1:])) }
