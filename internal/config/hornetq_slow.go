package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// slowUnits are the units of slow-consumer-threshold, which Artemis has.
var slowUnits = map[string]time.Duration{
	"MESSAGES_PER_SECOND": time.Second, "MESSAGES_PER_MINUTE": time.Minute, "MESSAGES_PER_HOUR": time.Hour, "MESSAGES_PER_DAY": 24 * time.Hour,
}

// What becomes of slow consumers, and how often is looked, in seconds.
const (
	slowKill          = "KILL"
	slowNotify        = "NOTIFY"
	slowPeriodSeconds = 5
)

// maxSlowPeriod is the longest time between two looks, in seconds: a century.
const maxSlowPeriod = 100 * 365 * 24 * 3600

// checkSlow says what is wrong with a value of the elements about slow consumers.
func checkSlow(name, value string) error {
	switch name {
	case setSlowPolicy:
		if words := []string{slowKill, slowNotify}; !slices.Contains(words, value) {
			return fmt.Errorf("%q is not %s", value, enumerate(words))
		}
	case setSlowUnit:
		if slowUnits[value] == 0 {
			return fmt.Errorf("%q is not MESSAGES_PER_SECOND, MESSAGES_PER_MINUTE, MESSAGES_PER_HOUR or MESSAGES_PER_DAY", value)
		}
	case setSlowPeriod:
		_, err := parseInt(strings.TrimSpace(value), 1, maxSlowPeriod)
		return err
	}
	return nil
}

// slowConsumersOf is what holds for the consumers of an address; nil: no limit.
func slowConsumersOf(m merged) *SlowConsumers {
	rate := m.int(setSlowRate, -1)
	if rate <= 0 {
		return nil
	}
	unit := time.Second
	if u := slowUnits[m.text(setSlowUnit)]; u > 0 {
		unit = u
	}
	return &SlowConsumers{
		MinRate:         float64(rate) / unit.Seconds(),
		CheckPeriod:     time.Duration(m.int(setSlowPeriod, slowPeriodSeconds)) * time.Second,
		AbortConnection: true,
		Notify:          m.text(setSlowPolicy) != slowKill,
	}
}
