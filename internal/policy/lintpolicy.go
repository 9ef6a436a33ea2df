package policy

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A judged is one redelivery policy of the configuration.
type judged struct {
	keyed
	*redelivery.Policy
	settings []config.Setting
	last     int64 // the delay before the last redelivery, in milliseconds
	l        *linter
}

// longSchedule is from which on a schedule is worth a word.
const longSchedule = 7 * 24 * time.Hour

// policies looks at every redelivery policy of the configuration.
func policies(l *linter) {
	for _, p := range l.c.Policies {
		l.judge(keyed{kind: "policy", pattern: p.Destination}, p.Rules.Redelivery, p.Settings)
	}
	if d := l.c.DefaultPolicy; d != nil {
		l.judge(keyed{kind: "policy"}, d.Rules.Redelivery, d.Settings)
	}
	if r := l.c.Redelivery; r != nil {
		for i := range r.Policies {
			l.judge(keyed{kind: "redelivery policy", pattern: r.Policies[i].Policy.Destination}, &r.Policies[i].Policy, r.Policies[i].Settings)
		}
		if r.Default != nil {
			l.judge(keyed{kind: "redelivery policy"}, &r.Default.Policy, r.Default.Settings)
		}
	}
}

// judge looks at one policy, nil for none.
func (l *linter) judge(k keyed, p *redelivery.Policy, settings []config.Setting) {
	if p == nil {
		return
	}
	if k.source == "" {
		k.source = p.Source
	}
	j := &judged{k, p, settings, 0, l}
	redeliveries := MaxSteps
	if p.MaximumRedeliveries != redelivery.Unlimited {
		redeliveries = max(1, min(p.MaximumRedeliveries, MaxSteps))
	}
	j.last = max(0, p.DelayMillis(redeliveries, nil))
	for _, check := range []func(*judged){limits, hotLoop, growth, caps, chance, signs, firstDelay, length} {
		check(j)
	}
}

func (j *judged) warn(code, text, remedy string) {
	j.l.add(code, SeverityWarning, j.place(code), text, remedy)
}
func (j *judged) note(code, text, remedy string) {
	j.l.add(code, SeverityNote, j.place(code), text, remedy)
}

// blamed are the settings that a finding speaks of: its line is the first of them
// that the file gives.
var blamed = map[string][]string{
	"client-limit": {"maximumRedeliveries", "max-delivery-attempts"}, "client-first": {"maximumRedeliveries", "max-delivery-attempts"},
	"endless": {"maximumRedeliveries", "max-delivery-attempts"}, "hot-loop": {"maximumRedeliveries", "max-delivery-attempts"},
	"zero-attempts": {"max-delivery-attempts"}, "negative-limit": {"maximumRedeliveries"},
	"multiplier-unused": {"backOffMultiplier"}, "no-growth": {"backOffMultiplier", "redelivery-delay-multiplier", "useExponentialBackOff"},
	"cap-unused": {"maximumRedeliveryDelay", "max-redelivery-delay"}, "cap-unreached": {"maximumRedeliveryDelay", "max-redelivery-delay"},
	"cap-below-delay": {"maximumRedeliveryDelay", "max-redelivery-delay"},
	"jitter-unused":   {"collisionAvoidancePercent", "collisionAvoidanceFactor", "useCollisionAvoidance"},
	"jitter-wide":     {"collisionAvoidancePercent", "collisionAvoidanceFactor"},
	"negative-delay":  {"redeliveryDelay", "initialRedeliveryDelay", "redelivery-delay"}, "first-delay": {"redeliveryDelay"},
}

// place is the entry, at the line of the setting that a finding speaks of.
func (j *judged) place(code string) *keyed {
	k := j.keyed
	for _, name := range blamed[code] {
		if s := j.given(name); s != nil {
			k.source = s.Source
			break
		}
	}
	return &k
}

// given is the setting of that name, or nil.
func (j *judged) given(name string) *config.Setting {
	for i := range j.settings {
		if s := &j.settings[i]; s.Name == name || s.Name == "redelivery."+name {
			return s
		}
	}
	return nil
}

// limits compares the limit with the client's (C03), and finds those that do not
// mean what they seem to (C01).
func limits(j *judged) {
	if s := j.given("max-delivery-attempts"); s != nil && s.Value == "0" {
		j.warn("zero-attempts", "max-delivery-attempts of 0 means no limit: a message that fails is delivered again for ever", "write 1 for one delivery, or -1 if that is meant")
	}
	if j.MaximumRedeliveries < redelivery.Unlimited && j.given("maximumRedeliveries") != nil {
		j.warn("negative-limit", fmt.Sprintf("maximumRedeliveries of %d is as 0: only -1 means no limit", j.MaximumRedeliveries), "write -1, or 0")
	}
	if j.l.client.None {
		return
	}
	own, broker := limit(&j.l.client.Policy), limit(j.Policy)
	switch {
	case own == redelivery.Unlimited:
		j.warn("client-limit", "clients that never give a message up never let this policy act", "set maximumRedeliveries of the clients to 0")
	case own > 0 && (broker == redelivery.Unlimited || own <= broker):
		j.note("client-first", fmt.Sprintf("clients redeliver %d times by themselves first, with their own delays; this policy's delays begin with redelivery %d", own, own+1),
			"set maximumRedeliveries of the clients to 0 where the broker is to decide alone")
	case own > 0 && own > broker:
		j.warn("client-limit", fmt.Sprintf("a Java client redelivers %d times by itself before the broker is asked, more than the %d allowed here: this policy's delays are never used, and there are %d deliveries, not %d",
			own, broker, own+1, broker+1), "set maximumRedeliveries of the clients to 0, and ask again with --client-max 0")
	}
}

// hotLoop finds redelivery without an end (C25).
func hotLoop(j *judged) {
	if j.MaximumRedeliveries != redelivery.Unlimited {
		return
	}
	if j.last == 0 && j.DelayMillis(1, nil) <= 0 {
		j.warn("hot-loop", "a message that always fails is delivered again at once, for ever, as fast as its consumer fails", "set a limit, or a delay")
		return
	}
	j.note("endless", "a message that always fails never becomes a dead letter: it comes back for ever, in the end every "+duration(redelivery.FromMillis(j.last)), "set a limit if somebody is to look at it")
}

// growth finds multipliers that multiply nothing (R-POL-11).
func growth(j *judged) {
	m := number(j.BackOffMultiplier)
	if arithmeticName(j.Policy) == "hornetq" {
		switch {
		case !j.UseExponentialBackOff || j.BackOffMultiplier == 1 || j.MaximumRedeliveries == 0:
		case j.RedeliveryDelay <= 0:
			j.warn("no-growth", "redelivery-delay-multiplier of "+m+" multiplies a delay of nothing", "set redelivery-delay")
		case j.BackOffMultiplier < 1:
			j.warn("no-growth", "redelivery-delay-multiplier of "+m+" makes delays shorter each time", "write more than 1")
		case j.BackOffMultiplier > 1 && j.MaximumRedeliveryDelay <= j.RedeliveryDelay:
			j.warn("no-growth", "redelivery-delay-multiplier has no effect, as max-redelivery-delay ("+duration(j.MaximumRedeliveryDelay)+") is not above redelivery-delay", "set max-redelivery-delay")
		}
		return
	}
	switch given := j.given("backOffMultiplier") != nil; {
	case given && !j.UseExponentialBackOff:
		j.warn("multiplier-unused", "backOffMultiplier has no effect: useExponentialBackOff is false", `set useExponentialBackOff to true, or remove backOffMultiplier`)
	case j.UseExponentialBackOff && !(j.BackOffMultiplier > 1):
		j.warn("no-growth", "useExponentialBackOff has no effect: a backOffMultiplier of "+m+" is not more than 1", "write more than 1")
	case j.UseExponentialBackOff && j.last == 0 && j.MaximumRedeliveries != 0:
		j.warn("no-growth", "nothing grows from a delay of 0", "set redeliveryDelay")
	}
}

// caps finds caps that never apply (R-POL-11, R-HQ-32, R-HQ-35).
func caps(j *judged) {
	most := j.MaximumRedeliveryDelay
	if arithmeticName(j.Policy) == "hornetq" {
		switch {
		case j.RedeliveryDelay <= 0 || j.MaximumRedeliveries == 0:
		case most <= 0:
			j.warn("cap-below-delay", "max-redelivery-delay of "+duration(most)+" makes every redelivery come at once", "remove it, or write the longest delay that is wanted")
		case most < j.RedeliveryDelay:
			j.warn("cap-below-delay", "max-redelivery-delay of "+duration(most)+" is below redelivery-delay, and shortens even the first delay", "write the longest delay that is wanted")
		}
		return
	}
	switch {
	case most == redelivery.NoMaximumDelay:
	case !j.UseExponentialBackOff || !(j.BackOffMultiplier > 1):
		j.warn("cap-unused", "maximumRedeliveryDelay has no effect: it caps growing delays, and these do not grow", "set useExponentialBackOff and a multiplier, or remove it")
	case most < j.RedeliveryDelay:
		j.warn("cap-below-delay", "maximumRedeliveryDelay of "+duration(most)+" is below redeliveryDelay, which is used instead of it", "write the longest delay that is wanted")
	case j.MaximumRedeliveries >= 0 && redelivery.FromMillis(j.last) < most:
		j.note("cap-unreached", fmt.Sprintf("maximumRedeliveryDelay of %s is never reached: the last delay, before redelivery %d, is %s", duration(most), j.MaximumRedeliveries, duration(redelivery.FromMillis(j.last))), "")
	}
	if most != redelivery.NoMaximumDelay && j.InitialRedeliveryDelay > max(most, j.RedeliveryDelay) && j.MaximumRedeliveries != 0 {
		j.note("cap-below-delay", "the first delay ("+duration(j.InitialRedeliveryDelay)+") is longer than the cap, which does not apply to it", "")
	}
}

// chance finds spreads of delays that spread nothing (R-POL-12, R-POL-13).
func chance(j *judged) {
	first := 2 // the first redelivery that is spread
	if arithmeticName(j.Policy) == "hornetq" {
		first = 1
	}
	factor := j.CollisionAvoidanceFactor
	given := j.given("collisionAvoidancePercent") != nil || j.given("collisionAvoidanceFactor") != nil
	switch {
	case !j.UseCollisionAvoidance:
		if given && factor != 0 {
			j.warn("jitter-unused", "the factor of collision avoidance has no effect: useCollisionAvoidance is false", "set useCollisionAvoidance to true, or remove the factor")
		}
	case factor == 0:
		j.warn("jitter-unused", "collision avoidance with a factor of 0 spreads nothing", "write a factor such as 0.15")
	case j.MaximumRedeliveries >= 0 && j.MaximumRedeliveries < first && j.MaximumRedeliveries != 0:
		j.warn("jitter-unused", "collision avoidance has no effect: the first delay is never spread, and there is no second", "")
	case j.MaximumRedeliveries != 0 && j.last == 0:
		j.warn("jitter-unused", "collision avoidance spreads a delay of nothing", "set redeliveryDelay")
	case factor > 1:
		j.warn("jitter-wide", "a spread of "+strconv.Itoa(j.CollisionAvoidancePercent())+" % brings some delays to nothing", "write a factor below 1")
	}
}

// signs finds delays below nothing (R-POL-04).
func signs(j *judged) {
	if j.RedeliveryDelay < 0 || j.InitialRedeliveryDelay < 0 {
		j.warn("negative-delay", "a negative delay is none: the message comes back at once", "write 0 if that is meant")
	}
}

// firstDelay finds the first delay that people forget (E6).
func firstDelay(j *judged) {
	if arithmeticName(j.Policy) != "activemq" || j.MaximumRedeliveries == 0 {
		return
	}
	if j.given("redeliveryDelay") != nil && j.given("initialRedeliveryDelay") == nil && j.RedeliveryDelay != j.InitialRedeliveryDelay {
		j.note("first-delay", fmt.Sprintf("the first redelivery comes after %s, not after %s: redeliveryDelay is for the later ones", duration(j.InitialRedeliveryDelay), duration(j.RedeliveryDelay)),
			"set initialRedeliveryDelay")
	}
}

// length finds schedules that take longer than people think.
func length(j *judged) {
	if j.MaximumRedeliveries < 0 {
		return
	}
	s := scheduleOf(Client{None: true}, j.Policy)
	if end := redelivery.FromMillis(s.EndMillis); end > longSchedule {
		j.note("long", fmt.Sprintf("a message that always fails takes %d days to become a dead letter, the last delay alone %s", int64(end.Hours()/24), duration(redelivery.FromMillis(j.last))),
			"set maximumRedeliveryDelay, or fewer redeliveries")
	}
}
