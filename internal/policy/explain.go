package policy

import (
	"fmt"
	"slices"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// An Explanation is what holds for a destination, and why.
type Explanation struct {
	Destination string `json:"destination"`
	// File is the configuration that was asked; empty: the defaults.
	File string `json:"file,omitempty"`
	// Entry is the policy entry that decided; nil where none is for the destination.
	Entry *Entry `json:"entry"`
	// Redelivery is the redeliveryPlugin's policy that decided about redelivery;
	// nil where there is none, or the entry has a redelivery of its own.
	Redelivery *Entry  `json:"redeliveryEntry,omitempty"`
	Values     []Value `json:"values"`
	// Others are settings that the entry has beside the values.
	Others []Value `json:"others,omitempty"`
	Client Side    `json:"client"`
	// Broker is nil where the broker has no policy of its own.
	Broker   *Side    `json:"broker"`
	Schedule Schedule `json:"schedule"`
	Fates    []Fate   `json:"fates"`
	// Grave is what holds where the dead letters go; nil where there are none.
	Grave *Grave `json:"deadLetterQueue,omitempty"`
	// Notes are what one should know beside the numbers, in plain words.
	Notes []string `json:"notes"`
}

// An Entry names one entry of a configuration.
type Entry struct {
	// Kind is policy, redelivery-policy or address-setting.
	Kind string `json:"kind"`
	// Pattern is empty for the default entry.
	Pattern string `json:"pattern"`
	Source  string `json:"source"`
	// Overruled are the entries that are for the destination too, and lost: they
	// are not merged.
	Overruled []Entry `json:"overruled,omitempty"`
	// Merged are the wider address-settings of a HornetQ or Artemis file: what the
	// entry does not say, the first of them that does says.
	Merged []Entry `json:"merged,omitempty"`
}

// The kinds of entry.
const (
	KindPolicy     = "policy"
	KindRedelivery = "redelivery-policy" // of a redeliveryPlugin
	KindSetting    = "address-setting"   // of a HornetQ or Artemis file
)

// A Side is one of the two that redeliver: a client, or the broker.
type Side struct {
	// Deliveries is how many this side alone allows; -1: no end.
	Deliveries int `json:"deliveries"`
	// None is a client without a policy of its own.
	None bool `json:"none,omitempty"`
	// Text is the policy as Java clients print it.
	Text string `json:"policy,omitempty"`
	// Name and Source are of the policy, where it has any.
	Name   string `json:"name,omitempty"`
	Source string `json:"source,omitempty"`
}

// A Grave is where dead letters go.
type Grave struct {
	Destination string `json:"destination"`
	// ExpireMillis is the time to live of a dead letter; 0: it stays.
	ExpireMillis int64 `json:"expireMillis"`
	// Failing is what becomes of a dead letter that fails where it is.
	Failing Fate `json:"failing"`
	// Expiring is what becomes of one whose time to live passes there.
	Expiring Fate `json:"expiring"`
	// Entry is what holds there, nil for nothing.
	Entry *Entry `json:"entry"`
}

// Explain answers a question about a configuration: what holds for its
// destination, where that was written, and what it amounts to.
func Explain(c *config.Config, q Question) Explanation {
	r := c.Resolver()
	e := r.Policy(q.Destination)
	x := Explanation{Destination: q.Destination.String(), File: c.File, Entry: entryOf(c, &e, q.Destination), Redelivery: redeliveryOf(c, &e, q.Destination)}
	var others []config.Setting
	x.Values, others = valuesOf(&e)
	for _, s := range others {
		x.Others = append(x.Others, Value{Name: s.Name, Value: s.Value, Source: s.Source})
	}
	x.Client = Side{None: q.Client.None}
	if !q.Client.None {
		x.Client = sideOf(&q.Client.Policy)
	}
	if p := e.Rules.Redelivery; p != nil {
		s := sideOf(p)
		for i := range x.Values { // address-settings are merged: the limit may stand in another one
			if v := &x.Values[i]; v.Name == "redelivery.maximumRedeliveries" && v.Source != Default {
				s.Source = v.Source
			}
		}
		x.Broker = &s
	}
	x.Schedule = scheduleOf(q.Client, e.Rules.Redelivery)
	x.Fates = fatesOf(&q, &e, x.Schedule.Deliveries < 0)
	x.Grave = graveOf(c, r, &q, &e)
	x.Notes = notesOf(&x, &q, &e)
	return x
}

// entryOf names the policy entry behind what holds for d; nil where there is none.
func entryOf(c *config.Config, e *config.Effective, d message.Destination) *Entry {
	if s := c.Addresses; s != nil {
		return settingsEntry(s.Matching(d))
	}
	if e.Source == "" {
		return nil
	}
	entry := namedEntry(KindPolicy, e.Destination, e.Source)
	for _, p := range c.Policies {
		if p.Destination.Matches(d) && (p.Source != e.Source || p.Destination != e.Destination) {
			entry.Overruled = append(entry.Overruled, *namedEntry(KindPolicy, p.Destination, p.Source))
		}
	}
	return entry
}

// settingsEntry names address-settings, the most specific first.
func settingsEntry(all []config.SettingPattern) *Entry {
	if len(all) == 0 {
		return nil
	}
	entry := Entry{Kind: KindSetting, Pattern: all[0].Match, Source: all[0].Source}
	for _, p := range all[1:] {
		entry.Merged = append(entry.Merged, Entry{Kind: KindSetting, Pattern: p.Match, Source: p.Source})
	}
	return &entry
}

// redeliveryOf names the redeliveryPlugin's policy that holds for d; nil where
// there is none.
func redeliveryOf(c *config.Config, e *config.Effective, d message.Destination) *Entry {
	p := e.Rules.Redelivery
	if c.Redelivery == nil || p == nil {
		return nil
	}
	won := func(r *config.RedeliveryEntry) bool { return r.Policy.Source == p.Source && r.Policy.Name == p.Name }
	entry := namedEntry(KindRedelivery, p.Destination, p.Source)
	found := c.Redelivery.Default != nil && won(c.Redelivery.Default)
	for i := range c.Redelivery.Policies {
		r := &c.Redelivery.Policies[i]
		switch {
		case won(r):
			found = true
		case r.Policy.Destination.Matches(d):
			entry.Overruled = append(entry.Overruled, *namedEntry(KindRedelivery, r.Policy.Destination, r.Policy.Source))
		}
	}
	if !found { // the policy entry has its own
		return nil
	}
	return entry
}

func namedEntry(kind string, pattern message.Destination, source string) *Entry {
	e := Entry{Kind: kind, Source: source}
	if !pattern.IsZero() {
		e.Pattern = pattern.String()
	}
	return &e
}

func sideOf(p *redelivery.Policy) Side {
	s := Side{Deliveries: redelivery.Unlimited, Text: p.String(), Name: p.Name, Source: p.Source}
	if n := limit(p); n != redelivery.Unlimited {
		s.Deliveries = n + 1
	}
	return s
}

// graveOf tells what holds where the dead letters of a question go.
func graveOf(c *config.Config, r *config.Resolver, q *Question, e *config.Effective) *Grave {
	target := e.Rules.DeadLetter.Target(q.Destination, subscriptionOf(q.Destination))
	if target.IsZero() || q.Destination.IsTemporary() && q.Destination.IsTopic() {
		return nil
	}
	there := r.Policy(target)
	d := there.Rules.Decide(redelivery.Facts{Cause: message.Poison, Counted: true, Failures: 1, Persistent: true,
		Destination: target, DeadLetterQueue: true}, 0, nil)
	failing := Fate{When: WhenGivenUp, Persistent: true, Action: d.Action.String(), Reason: string(d.Reason), Setting: deciderOf(d, &there.Rules)}
	if !d.Target.IsZero() {
		failing.Target = d.Target.String()
	}
	return &Grave{Destination: target.String(), ExpireMillis: strategyOf(e).Expiration.Milliseconds(), Entry: entryOf(c, &there, target), Failing: failing, Expiring: expiringFate(r, target)}
}

// expiringFate is what becomes of a dead letter whose time to live passes in its
// queue.
func expiringFate(r *config.Resolver, queue message.Destination) Fate {
	there := r.Policy(queue)
	d := there.Rules.Decide(redelivery.Facts{Cause: message.Expired, Expired: true, Expiration: 1, Persistent: true,
		Destination: queue, DeadLetterQueue: true}, 1, nil)
	f := Fate{When: WhenExpired, Persistent: true, Action: d.Action.String(), Reason: string(d.Reason), Setting: deciderOf(d, &there.Rules)}
	if !d.Target.IsZero() {
		f.Target = d.Target.String()
	}
	return f
}

// notesOf says what the numbers do not.
func notesOf(x *Explanation, q *Question, e *config.Effective) []string {
	notes := []string{}
	note := func(when bool, format string, args ...any) {
		if when {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	p := e.Rules.Redelivery
	d := q.Destination
	if !q.Client.None && p != nil {
		client, broker := x.Client.Deliveries, x.Broker.Deliveries
		note(client < 0, "the client never gives the message up, so the broker's limit is never reached: set maximumRedeliveries of the client to 0 where the broker is to decide")
		note(broker > 0 && client > broker, "the client's own limit is the larger: %s pass before the broker is asked, and its delays are never used; set maximumRedeliveries of the client to 0 where the broker is to decide", plural(client, "delivery", "deliveries"))
		note(client > 1 && (client <= broker || broker < 0), "the first %s are the client's own, with its delays, and one consumer has the message all that time; the broker's delays begin with number %d", plural(client, "delivery", "deliveries"), client+1)
	}
	note(p == nil && !q.Client.None, "the broker has no policy of its own here: limit and delays are the client's, and what a client gives back is available to the others at once")
	note(p == nil && q.Client.None, "nobody sets a limit: a message that fails is delivered again at once, for ever")
	note(d.IsTopic() && !d.IsTemporary() && !e.Rules.DeadLetterNonDurable, "this holds for durable subscriptions to the topic; a copy that fails in another subscription is dropped")
	note(d.IsTemporary() && d.IsTopic(), "a temporary topic has no dead letters: what is given up is dropped")
	note(d.IsTemporary() && d.IsQueue(), "what lies in a temporary queue goes with it when its connection ends")
	spread := slices.ContainsFunc(x.Schedule.Steps, func(s Step) bool { return s.LowMillis != s.HighMillis })
	note(spread, "the delays are spread by chance; 'nixie policy simulate' shows how the total comes out")
	note(p != nil && p.UseExponentialBackOff && !(p.BackOffMultiplier > 1), "useExponentialBackOff has no effect with a multiplier of %s: it must be more than 1", number(max(0, multiplierOf(p))))
	return notes
}

func multiplierOf(p *redelivery.Policy) float64 {
	if p == nil {
		return 0
	}
	return p.BackOffMultiplier
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
