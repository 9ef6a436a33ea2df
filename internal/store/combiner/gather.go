package combiner

import "time"

// A gathering decides whether what waits is applied at once, or those are awaited first
// who were answered just now and are about to commit again.
//
// Clients at the other end of a connection, who wait for each answer, come back a moment
// after it. To apply at once what waits then parts them into two crowds that take turns,
// and each waits for the sync of the other too. With a slow disk that halves what gets
// through: eight clients that are back in 0.2 ms, and a sync of 5 ms, make 800 commits a
// second in two crowds, and 1,540 in one.
//
// What share of them comes back is known from the times before: who does not come is
// awaited in vain a few times, for half a sync each. Where syncs are fast nobody is awaited; a round
// trip takes as long then.
//
// It belongs to who holds Combiner.mu.
type gathering struct {
	syncTime time.Duration // that a group takes until it is durable, about
	began    time.Time     // when a group was answered last
	gone     int           // clients that waited for it
	came     int           // clients that wait for what was handed over since, within the window
	share    float64       // of those that are gone that come back, about
	holding  bool          // what waits is not applied yet
	number   uint64        // of holdings so far
}

const (
	// slowSync is a sync from which on others are awaited: below it a timer is too
	// coarse.
	slowSync = 400 * time.Microsecond
	// maxGather bounds the wait.
	maxGather = 5 * time.Millisecond
	// Weights of the newest of the figures that are remembered.
	syncWeight, shareWeight = 0.125, 0.25
)

// active reports whether the time matters.
func (g *gathering) active() bool { return g.syncTime >= slowSync }

// window is how long others are awaited.
func (g *gathering) window() time.Duration { return min(g.syncTime/2, maxGather) }

// synced notes how long a group took to become durable.
func (g *gathering) synced(took time.Duration) {
	if g.syncTime == 0 {
		g.syncTime = took
	}
	g.syncTime += time.Duration(syncWeight * float64(took-g.syncTime))
}

// answered notes that a group was answered that so many clients waited for, with others
// waiting for the next. It reports whether those wait on; then it says for how long.
func (g *gathering) answered(now time.Time, clients, waiting int) (hold bool, d time.Duration) {
	if !g.active() {
		*g = gathering{syncTime: g.syncTime, number: g.number}
		return false, 0
	}
	if g.gone > 0 {
		g.share += shareWeight * (min(1, float64(g.came)/float64(g.gone)) - g.share)
	}
	g.began, g.gone, g.came = now, clients, 0
	want := g.wanted()
	g.holding = want > 0 && want+waiting > 1
	if g.holding {
		g.number++
	}
	return g.holding, g.window()
}

// wanted is how many clients are awaited.
func (g *gathering) wanted() int { return int(g.share*float64(g.gone) + 0.25) }

// handedOver notes a batch that clients wait for. Where those are the last that were
// awaited the holding ends.
func (g *gathering) handedOver(now time.Time, clients int) {
	if g.began.IsZero() || now.Sub(g.began) > g.window() {
		return
	}
	g.came += clients
	if g.came >= g.wanted() {
		g.holding = false
	}
}
