package records

import (
	"encoding/binary"
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// Flags of a stored attempt.
const (
	attemptCounted = 1 << iota
	attemptUncertain
	attemptFlags = iota
)

func attemptRoom(a *message.Attempt) int {
	return 2 + 13*binary.MaxVarintLen64 + len(a.Text) + len(a.Consumer) + len(a.ClientID) + len(a.Address) +
		len(a.Protocol) + len(a.Policy) + len(a.Decision)
}

// appendAttempt writes what the key does not say of a.
func appendAttempt(v []byte, a *message.Attempt) []byte {
	var flags byte
	if a.Counted {
		flags |= attemptCounted
	}
	if a.Uncertain {
		flags |= attemptUncertain
	}
	v = append(v, flags, byte(a.Cause))
	v = binary.AppendVarint(v, a.HandedOut)
	v = binary.AppendVarint(v, a.Ended)
	v = appendString(v, a.Text)
	v = appendString(v, a.Consumer)
	v = appendString(v, a.ClientID)
	v = appendString(v, a.Address)
	v = appendString(v, a.Protocol)
	v = appendString(v, a.Policy)
	v = appendString(v, a.Decision)
	v = binary.AppendVarint(v, a.NextDue)
	v = binary.AppendVarint(v, int64(a.Redeliver))
	return binary.AppendVarint(v, int64(a.Successors))
}

// decodeAttempt reads into a what appendAttempt wrote; Number comes from the key.
func decodeAttempt(r *reader, a *message.Attempt) bool {
	flags := r.byte()
	a.Counted, a.Uncertain = flags&attemptCounted != 0, flags&attemptUncertain != 0
	a.Cause = message.Cause(r.byte())
	a.HandedOut, a.Ended = r.varint(), r.varint()
	a.Text, a.Consumer, a.ClientID, a.Address = r.string(), r.string(), r.string(), r.string()
	a.Protocol, a.Policy, a.Decision = r.string(), r.string(), r.string()
	a.NextDue, a.Redeliver, a.Successors = r.varint(), int(r.varint()), int(r.varint())
	return r.done() && flags < 1<<attemptFlags
}

// Story reads the lines of a story, by number. A story of which there is no line
// is empty. A line that is damaged says so.
func (r *Records) Story(story uint64) ([]message.Attempt, error) {
	attempts, err := r.story(story, false)
	if err != nil || len(attempts) > 0 {
		return attempts, err
	}
	return r.story(story, true)
}

func (r *Records) story(story uint64, transient bool) ([]message.Attempt, error) {
	lo := appendSeqKey(make([]byte, 0, keyBytes), transient, kindAttempt, story)
	var attempts []message.Attempt
	err := r.shard.Scan(lo, successor(lo), func(k, v []byte) bool {
		if len(k) != len(lo)+4 {
			return true // no key of ours
		}
		number := int(binary.BigEndian.Uint32(k[len(lo):]))
		a := message.Attempt{Number: number}
		fields, err := unseal(k, v)
		if err == nil && !decodeAttempt(&reader{b: fields}, &a) {
			err = corrupt(k)
		}
		if err != nil {
			a = message.Attempt{Number: number, Text: fmt.Sprintf("this line cannot be read: %v", err)}
		}
		attempts = append(attempts, a)
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("read story %d: %w", story, err)
	}
	return attempts, nil
}
