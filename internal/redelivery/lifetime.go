package redelivery

import "math"

// A Lifetime says what becomes of the expiration of messages that come to a
// destination: expiry-delay and its relatives of an address-setting (R-HQ-61).
// Times are milliseconds. A nil Lifetime changes nothing.
type Lifetime struct {
	// Never takes every expiration away (no-expiry); nothing else counts then.
	Never bool
	// Delay is for messages without an expiration (expiry-delay); below 0: none.
	// With 0 or more, Least and Most do not count.
	Delay int64
	// Least and Most bound how long a message lives (min-expiry-delay and
	// max-expiry-delay); below 0: no bound. A message without an expiration gets
	// Most, or Least where there is no Most.
	Least, Most int64
}

// Expiration gives the expiration of a message that comes at now with the given
// one; both are Unix milliseconds, 0 is never.
func (l *Lifetime) Expiration(expiration, now int64) int64 {
	switch {
	case l == nil:
		return expiration
	case l.Never:
		return 0
	case l.Delay >= 0:
		if expiration == 0 {
			return addMillis(now, l.Delay)
		}
		return expiration
	case expiration == 0 && l.Most >= 0:
		return addMillis(now, l.Most)
	case expiration == 0 && l.Least >= 0:
		return addMillis(now, l.Least)
	case expiration == 0:
		return 0
	}
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if l.Least >= 0 {
		low = addMillis(now, l.Least)
	}
	if l.Most >= 0 {
		high = addMillis(now, l.Most)
	}
	return min(max(expiration, low), high)
}
