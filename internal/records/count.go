package records

import (
	"encoding/binary"
	"slices"
)

// A Count says how much a queue or one of its lanes holds.
type Count struct {
	Messages int64
	Bytes    int64 // sum of Entry.SizeBytes
}

func (c *Count) add(messages, bytes int64) {
	c.Messages += messages
	c.Bytes += bytes
}

// A queueState is what Records knows of a queue without reading. It is guarded
// by Records.mu.
type queueState struct {
	lanes     []laneState // those ever used, in no order; few
	durable   bool        // there may be durable records
	transient bool        // there may be transient ones
	counted   bool        // Open found its counter
	batch     uint64      // the batch that last changed a durable count
}

type laneState struct {
	lane      Lane
	durable   Count
	transient Count
	floor     uint64
}

// lane gives the state of a lane, a new one if need be, until the next call.
func (s *queueState) lane(l Lane) *laneState {
	if i := s.find(l); i >= 0 {
		return &s.lanes[i]
	}
	s.lanes = append(s.lanes, laneState{lane: l})
	return &s.lanes[len(s.lanes)-1]
}

func (s *queueState) find(l Lane) int {
	return slices.IndexFunc(s.lanes, func(o laneState) bool { return o.lane == l })
}

// counterRoom is an upper bound for the fields of a counter.
func counterRoom(s *queueState) int {
	return binary.MaxVarintLen64 + len(s.lanes)*(1+2*binary.MaxVarintLen64)
}

// appendCounter writes the durable counts of the lanes that hold something.
func appendCounter(v []byte, s *queueState) []byte {
	used := 0
	for i := range s.lanes {
		if s.lanes[i].durable != (Count{}) {
			used++
		}
	}
	v = binary.AppendUvarint(v, uint64(used))
	for i := range s.lanes {
		if l := &s.lanes[i]; l.durable != (Count{}) {
			v = append(v, byte(l.lane))
			v = binary.AppendVarint(v, l.durable.Messages)
			v = binary.AppendVarint(v, l.durable.Bytes)
		}
	}
	return v
}

// decodeCounter reads what appendCounter wrote.
func decodeCounter(r *reader, f func(Lane, Count)) bool {
	for range r.length(3) {
		lane := Lane(r.byte())
		c := Count{Messages: r.varint(), Bytes: r.varint()}
		if r.bad {
			return false
		}
		f(lane, c)
	}
	return r.done()
}

// Count is what a queue holds in the store, transient entries included, after
// all batches handed over.
func (r *Records) Count(q QueueID) Count {
	r.mu.Lock()
	defer r.mu.Unlock()
	var c Count
	if s := r.queues[q]; s != nil {
		for i := range s.lanes {
			c.add(s.lanes[i].total())
		}
	}
	return c
}

// LaneCount is Count of one lane.
func (r *Records) LaneCount(q QueueID, lane Lane) Count {
	l := r.lane(q, lane)
	var c Count
	c.add(l.total())
	return c
}

// Floor is a position below which there is no live entry in the lane; 0 where
// none was stored.
func (r *Records) Floor(q QueueID, lane Lane) uint64 { return r.lane(q, lane).floor }

func (l *laneState) total() (messages, bytes int64) {
	return l.durable.Messages + l.transient.Messages, l.durable.Bytes + l.transient.Bytes
}

// lane copies the state of a lane.
func (r *Records) lane(q QueueID, lane Lane) laneState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.queues[q]; s != nil {
		if i := s.find(lane); i >= 0 {
			return s.lanes[i]
		}
	}
	return laneState{lane: lane}
}
