package openwire

import (
	"slices"
	"time"
)

// replayTime is how long after its connection a client that came back may still repeat
// what it said before. It does so at once, and without a pause.
const replayTime = time.Minute

// maxRuns bounds what is remembered of a client's numbers. The lowest are forgotten,
// and are gaps then.
const maxRuns = 4096

// gaps knows which of its commands a client that came back has sent on this connection.
// Java, .NET and C++ clients number their commands one by one. What they repeat keeps
// its number, and what they do not repeat leaves a gap: so an acknowledgement that was
// lost is known by the gap between a transaction's begin and its end, also where the
// connection before was one to another process, or to another broker. A transaction
// that begins later has no gaps. The session's reader owns it; nil has nothing to know.
type gaps struct {
	until time.Time // what begins from then on is new
	runs  []run     // ascending, with gaps between them
}

// A run is some numbers without a gap, both ends among them.
type run struct{ first, last int32 }

// note takes the number of a command that has arrived. Keep-alives have none.
func (g *gaps) note(id int32) {
	if g == nil || id == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(g.runs, id, func(r run, id int32) int {
		switch {
		case r.last < id-1: // ids next to a run belong to it
			return -1
		case r.first > id:
			return 1
		}
		return 0
	})
	switch {
	case i == len(g.runs) || id < g.runs[i].first-1:
		g.runs = slices.Insert(g.runs, i, run{id, id})
		if len(g.runs) > maxRuns {
			g.runs = slices.Delete(g.runs, 0, 1)
		}
		return
	case id < g.runs[i].first:
		g.runs[i].first = id
	case id > g.runs[i].last:
		g.runs[i].last = id
	}
	if i+1 < len(g.runs) && g.runs[i+1].first-1 <= g.runs[i].last {
		g.runs[i].last = g.runs[i+1].last
		g.runs = slices.Delete(g.runs, i+1, i+2)
	}
}

// between reports whether a command between these two has not arrived.
func (g *gaps) between(first, last int32) bool {
	return !slices.ContainsFunc(g.runs, func(r run) bool { return r.first <= first && last <= r.last })
}

// mayRepeat reports whether what begins now may be a repetition. Once nothing can be
// any more, and no transaction is open that might be, the numbers are forgotten.
func (s *session) mayRepeat() bool {
	switch {
	case s.gaps == nil:
		return false
	case s.server.o.Clock.Now().Before(s.gaps.until):
		return true
	}
	for _, t := range s.client.transactions {
		if t.repeated {
			return false
		}
	}
	s.gaps = nil
	return false
}

// misses reports whether an acknowledgement of a transaction may have been lost with
// the connection before. Of a local one that has some here none was: what a client had
// before, it does not commit (R-CLIENT-60). A distributed one may have been suspended.
func (s *session) misses(t *transaction, end int32) bool {
	return t.repeated && (t.distributed || !t.acked) && s.client.listens(t, func(string) bool { return true }) && s.gaps.between(t.begun, end)
}
