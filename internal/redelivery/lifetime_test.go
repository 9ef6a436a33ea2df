package redelivery

import (
	"math"
	"testing"
)

func TestLifetime(t *testing.T) { // R-HQ-61
	t.Parallel()
	const now = 1_000_000
	none := Lifetime{Delay: -1, Least: -1, Most: -1}
	with := func(f func(*Lifetime)) *Lifetime { l := none; f(&l); return &l }
	for name, tt := range map[string]struct {
		lifetime         *Lifetime
		expiration, want int64
	}{
		"nothing is set":                              {nil, now + 5, now + 5},
		"all are -1":                                  {&none, 0, 0},
		"expiry-delay for one without":                {with(func(l *Lifetime) { l.Delay = 100 }), 0, now + 100},
		"expiry-delay of 0 is at once":                {with(func(l *Lifetime) { l.Delay = 0 }), 0, now},
		"expiry-delay leaves one that has":            {with(func(l *Lifetime) { l.Delay = 100 }), now + 5, now + 5},
		"expiry-delay goes before the bounds":         {with(func(l *Lifetime) { l.Delay, l.Most = 100, 2 }), now + 5, now + 5},
		"no-expiry goes before all":                   {with(func(l *Lifetime) { l.Never, l.Delay = true, 100 }), now + 5, 0},
		"max for one without":                         {with(func(l *Lifetime) { l.Least, l.Most = 10, 100 }), 0, now + 100},
		"min for one without, where there is no max":  {with(func(l *Lifetime) { l.Least = 10 }), 0, now + 10},
		"below min":                                   {with(func(l *Lifetime) { l.Least, l.Most = 10, 100 }), now + 5, now + 10},
		"between":                                     {with(func(l *Lifetime) { l.Least, l.Most = 10, 100 }), now + 50, now + 50},
		"above max":                                   {with(func(l *Lifetime) { l.Least, l.Most = 10, 100 }), now + 500, now + 100},
		"R-HQ-153 an endless delay does not wrap":     {with(func(l *Lifetime) { l.Delay = math.MaxInt64 }), 0, math.MaxInt64},
		"a message that is past it is not brought up": {with(func(l *Lifetime) { l.Most = 100 }), now - 5, now - 5},
	} {
		if got := tt.lifetime.Expiration(tt.expiration, now); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
