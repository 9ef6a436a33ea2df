package redelivery

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/nixiemq/nixie/internal/message"
)

const now = int64(1_700_000_000_000) // the moment of failure in these tests

var dlq = queue(DefaultDeadLetterQueue)

// failed gives the facts of a persistent message in queue Q that failed.
func failed(c message.Cause, failures int) Facts {
	return Facts{Cause: c, Counted: true, Failures: failures, Destination: queue("Q"), Persistent: true}
}

// with changes facts.
func with(f Facts, changes ...func(*Facts)) Facts {
	for _, change := range changes {
		change(&f)
	}
	return f
}

// plugin gives rules with a broker-side policy of the given limit: 5 s, then
// 10 s, as the plugin's example has them (E5).
func plugin(limit int) Rules {
	p := policyOf(5000, 10000, false, 5, -1)
	p.MaximumRedeliveries, p.Name, p.Source = limit, "retry", "activemq.xml:7"
	return Rules{Redelivery: &p, Name: "Q.>", Source: "activemq.xml:3"}
}

// check decides and compares all but the cause text.
func check(t *testing.T, r Rules, f Facts, want Decision) {
	t.Helper()
	got := r.Decide(f, now, nil)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Decision{}, "CauseText")); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}

func TestWithoutAPolicyFailuresAreRedeliveredAtOnce(t *testing.T) { // R-CNT-09, issue 2 item 5
	t.Parallel()
	for c := message.Rollback; c <= message.Duplicate; c++ {
		switch c {
		case message.Poison, message.Expired, message.Undispatchable, message.Duplicate:
			continue
		}
		for _, counted := range []bool{true, false} {
			for _, failures := range []int{0, 1, 7, 1_000_000} { // the broker has no limit of its own
				f := with(failed(c, failures), func(f *Facts) { f.Counted = counted })
				check(t, Rules{}, f, Decision{Action: Again, By: "default"})
			}
		}
	}
}

func TestWithoutAPolicyPoisonExpiryAndUndispatchableAreFinal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		facts Facts
		why   Reason
	}{
		"the client gives up":             {failed(message.Poison, 7), ReasonPoison},
		"the client gives up at once":     {failed(message.Poison, 1), ReasonPoison},
		"the client says it expired":      {failed(message.Expired, 0), ReasonExpired},
		"it expired by our clock":         {with(failed(message.Expired, 0), func(f *Facts) { f.Expired = true }), ReasonExpired},
		"it expired while rolled back":    {with(failed(message.Rollback, 1), func(f *Facts) { f.Expired = true }), ReasonExpired},
		"it expired while out":            {with(failed(message.BrokerStopped, 0), func(f *Facts) { f.Expired, f.Counted = true, false }), ReasonExpired},
		"it expired and is a duplicate":   {with(failed(message.Duplicate, 0), func(f *Facts) { f.Expired = true }), ReasonExpired},
		"it expired and is poison":        {with(failed(message.Poison, 7), func(f *Facts) { f.Expired = true }), ReasonPoison},
		"it cannot be written":            {failed(message.Undispatchable, 0), ReasonUndispatchable},
		"it cannot be written, uncounted": {with(failed(message.Undispatchable, 0), func(f *Facts) { f.Counted = false }), ReasonUndispatchable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, Rules{}, tt.facts, Decision{Action: DeadLetter, Target: dlq, Reason: tt.why, By: "default"})
		})
	}
}

func TestPolicyDecides(t *testing.T) { // R-PLG-20, R-PLG-21, R-POL-14, R-POL-16
	t.Parallel()
	later := func(delay int64) Decision {
		return Decision{Action: Later, Due: now + delay, Delay: delay, By: "retry (activemq.xml:7)"}
	}
	limit := Decision{Action: DeadLetter, Target: dlq, Reason: ReasonLimit, By: "retry (activemq.xml:7)"}
	again := Decision{Action: Again, By: "Q.> (activemq.xml:3)"}
	for name, tt := range map[string]struct {
		limit int
		facts Facts
		want  Decision
	}{
		"the first poison waits for d(1)":             {2, failed(message.Poison, 1), later(5000)},
		"the second poison waits for d(2)":            {2, failed(message.Poison, 2), later(10000)},
		"the third failure is past the limit":         {2, failed(message.Poison, 3), limit},
		"a limit of 0 allows no redelivery":           {0, failed(message.Poison, 1), limit},
		"without a limit it never ends":               {Unlimited, failed(message.Poison, 1000), later(10000)},
		"a rollback is delayed":                       {2, failed(message.Rollback, 1), later(5000)},
		"a close is delayed":                          {2, failed(message.Closed, 2), later(10000)},
		"a lost connection is past the limit too":     {2, failed(message.ConnectionLost, 3), limit},
		"an ack time-out is delayed":                  {2, failed(message.AckTimeout, 1), later(5000)},
		"a nack is delayed":                           {2, failed(message.Nack, 1), later(5000)},
		"a recover is delayed":                        {2, failed(message.Recover, 1), later(5000)},
		"what does not count is not delayed":          {2, with(failed(message.Closed, 1), func(f *Facts) { f.Counted = false }), again},
		"what is released is not delayed":             {0, with(failed(message.Released, 9), func(f *Facts) { f.Counted = false }), again},
		"a stop of the broker is not delayed":         {0, with(failed(message.BrokerStopped, 9), func(f *Facts) { f.Counted = false }), again},
		"poison of an attempt already counted (C03)":  {2, with(failed(message.Poison, 2), func(f *Facts) { f.Counted = false }), later(10000)},
		"poison that nobody counted waits for d(1)":   {2, with(failed(message.Poison, 0), func(f *Facts) { f.Counted = false }), later(5000)},
		"the client's limit is the larger one (C03)":  {2, failed(message.Poison, 7), limit},
		"undispatchable is final all the same":        {9, failed(message.Undispatchable, 0), Decision{Action: DeadLetter, Target: dlq, Reason: ReasonUndispatchable, By: "Q.> (activemq.xml:3)"}},
		"R-PLG-10 expired is final all the same":      {9, failed(message.Expired, 0), Decision{Action: DeadLetter, Target: dlq, Reason: ReasonExpired, By: "Q.> (activemq.xml:3)"}},
		"R-EDGE-31 not in a dead letter queue":        {9, with(failed(message.Rollback, 1), func(f *Facts) { f.DeadLetterQueue = true }), again},
		"poison past its expiration is not scheduled": {9, with(failed(message.Poison, 1), func(f *Facts) { f.Expired = true }), Decision{Action: DeadLetter, Target: dlq, Reason: ReasonPoison, By: "Q.> (activemq.xml:3)"}},
		"a rollback past its expiration expires":      {9, with(failed(message.Rollback, 1), func(f *Facts) { f.Expired = true }), Decision{Action: DeadLetter, Target: dlq, Reason: ReasonExpired, By: "Q.> (activemq.xml:3)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, plugin(tt.limit), tt.facts, tt.want)
		})
	}
}

func TestDiscardingPlugin(t *testing.T) { // R-DLQ-40, R-DLQ-41
	t.Parallel()
	drop := func(limit int, when Drop) Rules { r := plugin(limit); r.Drop = when; return r }
	bare := Rules{Drop: DropLast}
	dropped := func(by string) Decision { return Decision{Action: Discard, Reason: ReasonPlugin, By: by} }
	for name, tt := range map[string]struct {
		rules Rules
		facts Facts
		want  Decision
	}{
		"what a client gives up":               {bare, failed(message.Poison, 7), dropped("default")},
		"what expires":                         {bare, failed(message.Expired, 0), dropped("default")},
		"what cannot be written":               {bare, failed(message.Undispatchable, 0), dropped("default")},
		"not what is only rolled back":         {bare, failed(message.Rollback, 1), Decision{Action: Again, By: "default"}},
		"in the dead letter queue, too":        {bare, with(failed(message.Poison, 1), func(f *Facts) { f.Destination = dlq }), dropped("default")},
		"last: the policy goes first":          {drop(2, DropLast), failed(message.Poison, 1), Decision{Action: Later, Due: now + 5000, Delay: 5000, By: "retry (activemq.xml:7)"}},
		"last: what the policy gives up":       {drop(2, DropLast), failed(message.Poison, 3), dropped("retry (activemq.xml:7)")},
		"first: at once":                       {drop(2, DropFirst), failed(message.Poison, 1), dropped("Q.> (activemq.xml:3)")},
		"first: a rollback is delayed as ever": {drop(2, DropFirst), failed(message.Rollback, 1), Decision{Action: Later, Due: now + 5000, Delay: 5000, By: "retry (activemq.xml:7)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, tt.rules, tt.facts, tt.want)
		})
	}
}

func TestClientAndBrokerLimitsTogether(t *testing.T) { // C03: each POISON reports the failures so far
	t.Parallel()
	for name, tt := range map[string]struct{ client, broker, deliveries int }{
		"6 and 6": {6, 6, 7}, "2 and 5": {2, 5, 6}, "6 and 2": {6, 2, 7}, "0 and 5": {0, 5, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, deliveries := plugin(tt.broker), 0
			for counter := 0; ; counter = deliveries { // the client starts from what it is told
				for local := counter; ; {
					deliveries++
					if local++; local > tt.client {
						break
					}
				}
				if d := r.Decide(failed(message.Poison, deliveries), now, nil); d.Action == DeadLetter {
					break
				}
			}
			if deliveries != tt.deliveries {
				t.Errorf("%d deliveries, want %d", deliveries, tt.deliveries)
			}
		})
	}
}

func TestADelayThatOutlivesTheMessageEndsWithIt(t *testing.T) { // C15
	t.Parallel()
	r := plugin(3)
	f := with(failed(message.Poison, 1), func(f *Facts) { f.Expiration = now + 2000 })
	check(t, r, f, Decision{Action: Later, Due: now + 2001, Delay: 5000, Reason: ReasonExpiresFirst, By: "retry (activemq.xml:7)"})
	f.Expiration = now + 20_000
	check(t, r, f, Decision{Action: Later, Due: now + 5000, Delay: 5000, By: "retry (activemq.xml:7)"})
}

func TestADelayOfNothingIsLaterAtOnce(t *testing.T) { // R-POL-04
	t.Parallel()
	for _, delay := range []time.Duration{0, -5 * time.Second} {
		r := plugin(3)
		r.Redelivery.InitialRedeliveryDelay = delay
		check(t, r, failed(message.Poison, 1), Decision{Action: Later, Due: now, By: "retry (activemq.xml:7)"})
	}
}

func TestADelayBeyondTimeEndsWithIt(t *testing.T) {
	t.Parallel()
	r := plugin(Unlimited)
	p := policyOf(1000, 1000, true, 5, -1)
	p.MaximumRedeliveries = Unlimited
	r.Redelivery = &p
	if d := r.Decide(failed(message.Poison, 500), now, nil); d.Due != math.MaxInt64 {
		t.Errorf("due at %d, want the end of time", d.Due)
	}
}

func TestPolicyIsSpreadByChance(t *testing.T) { // R-POL-12
	t.Parallel()
	r := plugin(9)
	r.Redelivery.UseCollisionAvoidance = true
	d := r.Decide(failed(message.Poison, 2), now, func() float64 { return 0.5 })
	if d.Delay != 10_750 { // 10000 + 10000 * 0.15 * 0.5
		t.Errorf("delay %d, want 10750", d.Delay)
	}
}

func TestDroppedByThePlugin(t *testing.T) { // spec section 6.1
	t.Parallel()
	over := plugin(0)
	over.DropAtLimit = true
	check(t, over, failed(message.Poison, 1), Decision{Action: Discard, Reason: ReasonLimit, By: "retry (activemq.xml:7)"})
	none := Rules{DropWithoutPolicy: true}
	check(t, none, failed(message.Poison, 1), Decision{Action: Discard, Reason: ReasonNoPolicy, By: "default"})
	check(t, none, failed(message.Expired, 0), Decision{Action: DeadLetter, Target: dlq, Reason: ReasonExpired, By: "default"}) // R-PLG-10
	inDLQ := with(failed(message.Poison, 1), func(f *Facts) { f.Destination = dlq })
	check(t, none, inDLQ, Decision{Action: Keep, Due: now + 1000, Reason: ReasonPoison, By: "default"})
}

func TestWhatTheStrategyDoesNotKeep(t *testing.T) { // R-DLS-20, R-DLS-21, R-EDGE-02
	t.Parallel()
	expiring, keeping := SharedStrategy(), SharedStrategy()
	expiring.ProcessExpired = false
	keeping.ProcessNonPersistent = true
	light := func(f *Facts) { f.Persistent = false }
	past := func(f *Facts) { f.Expired = true }
	for name, tt := range map[string]struct {
		strategy DeadLetterStrategy
		facts    Facts
		want     Reason // of the discard; "": it is kept
	}{
		"R-EDGE-12 non-persistent poison (C14)":       {SharedStrategy(), with(failed(message.Poison, 2), light), ReasonNonPersistent},
		"non-persistent poison that is asked for":     {keeping, with(failed(message.Poison, 2), light), ""},
		"non-persistent and expired":                  {SharedStrategy(), with(failed(message.Expired, 0), light), ReasonNonPersistent},
		"R-DLS-20 expired by our clock":               {expiring, with(failed(message.Expired, 0), past), ReasonExpired},
		"R-DLS-20 expired by the client's clock only": {expiring, failed(message.Expired, 0), ""},
		"R-DLS-21 poison past its expiration":         {expiring, with(failed(message.Poison, 2), past), ReasonExpired},
		"poison before its expiration":                {expiring, failed(message.Poison, 2), ""},
		"discarding keeps nothing":                    {DiscardingStrategy(), failed(message.Poison, 2), ReasonDiscarding},
		"discarding keeps nothing expired":            {DiscardingStrategy(), with(failed(message.Expired, 0), past), ReasonDiscarding},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Rules{DeadLetter: tt.strategy}.Decide(tt.facts, now, nil)
			switch {
			case tt.want == "" && d.Action != DeadLetter:
				t.Errorf("%v for %q, want a dead letter", d.Action, d.Reason)
			case tt.want != "" && (d.Action != Discard || d.Reason != tt.want || !d.Target.IsZero() || d.CauseText != ""):
				t.Errorf("got %+v, want a discard for %q", d, tt.want)
			}
		})
	}
}

func TestDeadLettersOfTemporaryDestinations(t *testing.T) { // R-DLS-01, R-DLS-10, R-BRK-26: of a queue, and not for its expiry
	t.Parallel()
	for _, kind := range []message.DestinationKind{message.TempQueue, message.TempTopic} {
		for c, why := range map[message.Cause]Reason{message.Poison: ReasonPoison, message.Expired: ReasonTemporary, message.Undispatchable: ReasonUndispatchable} {
			f := with(failed(c, 1), func(f *Facts) { f.Destination = message.Destination{Kind: kind, Name: "T"} })
			want := Decision{Action: Discard, Reason: ReasonTemporary, By: "default"}
			if kind == message.TempQueue && why != ReasonTemporary {
				want = Decision{Action: DeadLetter, Target: dlq, Reason: why, By: "default"}
			}
			check(t, Rules{}, f, want)
		}
		f := with(failed(message.Rollback, 1), func(f *Facts) { f.Destination = message.Destination{Kind: kind, Name: "T"} })
		check(t, Rules{}, f, Decision{Action: Again, By: "default"})
	}
}

func TestDeadLettersStayInTheirQueue(t *testing.T) { // R-EDGE-04, R-DLQ-05, C13
	t.Parallel()
	individual := IndividualStrategy()
	individual.QueuePrefix = "DLQ."
	discard := SharedStrategy()
	discard.DiscardOwn = true
	light := SharedStrategy()
	for name, tt := range map[string]struct {
		rules Rules
		facts Facts
		want  Decision
	}{
		"poison in the shared queue": {Rules{}, with(failed(message.Poison, 2), func(f *Facts) { f.Destination = dlq }),
			Decision{Action: Keep, Due: now + 1000, Reason: ReasonPoison, By: "default"}},
		"poison in a flagged queue (R-EDGE-28)": {Rules{DeadLetter: individual},
			with(failed(message.Poison, 2), func(f *Facts) { f.Destination, f.DeadLetterQueue = queue("DLQ.Q"), true }),
			Decision{Action: Keep, Due: now + 1000, Reason: ReasonPoison, By: "default"}},
		"a flagged queue that an entry names goes on (R-DLS-13)": {Rules{DeadLetter: individual},
			with(failed(message.Poison, 2), func(f *Facts) { f.Destination = queue("DLQ.Q") }),
			Decision{Action: DeadLetter, Target: queue("DLQ.DLQ.Q"), Reason: ReasonPoison, By: "default"}},
		"R-EDGE-28 a dead letter in a queue that a strategy names goes on": {Rules{DeadLetter: individual, StrategyNamed: true},
			with(failed(message.Poison, 2), func(f *Facts) { f.Destination, f.DeadLetterQueue = queue("DLQ.Q"), true }),
			Decision{Action: DeadLetter, Target: queue("DLQ.DLQ.Q"), Reason: ReasonPoison, By: "default"}},
		"R-DLS-04 a named queue that is its own target keeps it": {Rules{DeadLetter: light, StrategyNamed: true},
			with(failed(message.Poison, 2), func(f *Facts) { f.Destination, f.DeadLetterQueue = dlq, true }),
			Decision{Action: Keep, Due: now + 1000, Reason: ReasonPoison, By: "default"}},
		"R-DLQ-21 whatever is in a declared dead letter queue counts as a dead letter": {Rules{DeadLetter: individual, DeadLetterQueue: true},
			with(failed(message.Poison, 2), func(f *Facts) { f.Destination = queue("GRAVES") }),
			Decision{Action: Keep, Due: now + 1000, Reason: ReasonPoison, By: "default"}},
		"R-EDGE-31 a redelivery that names the queue holds there": {func() Rules { r := plugin(2); r.RedeliveryNamed = true; return r }(),
			with(failed(message.Poison, 1), func(f *Facts) { f.Destination, f.DeadLetterQueue = dlq, true }),
			Decision{Action: Later, Due: now + 5000, Delay: 5000, By: "retry (activemq.xml:7)"}},
		"R-EDGE-31 and loses nothing at its limit": {func() Rules { r := plugin(2); r.RedeliveryNamed = true; return r }(),
			with(failed(message.Poison, 3), func(f *Facts) { f.Destination, f.DeadLetterQueue = dlq, true }),
			Decision{Action: Keep, Due: now + 1000, Reason: ReasonLimit, By: "retry (activemq.xml:7)"}},
		"not persistent": {Rules{DeadLetter: light},
			with(failed(message.Poison, 2), func(f *Facts) { f.Destination, f.Persistent = dlq, false }),
			Decision{Action: Keep, Due: now + 1000, Reason: ReasonPoison, By: "default"}},
		"expiry leaves it, and does not hold it": {Rules{},
			with(failed(message.Expired, 0), func(f *Facts) { f.Destination, f.Expired = dlq, true }),
			Decision{Action: Keep, Reason: ReasonExpired, By: "default"}},
		"R-EDGE-39 it goes when the time is over that its strategy gives dead letters": {Rules{},
			with(failed(message.Expired, 0), func(f *Facts) { f.Destination, f.Expired, f.Retained = dlq, true, true }),
			Decision{Action: Discard, Reason: ReasonRetention, By: "default"}},
		"R-EDGE-39 and goes on where an entry of its queue's own name sends it elsewhere": {Rules{DeadLetter: individual, StrategyNamed: true},
			with(failed(message.Expired, 0), func(f *Facts) { f.Destination, f.DeadLetterQueue, f.Expired, f.Retained = dlq, true, true, true }),
			Decision{Action: DeadLetter, Target: queue("DLQ.ActiveMQ.DLQ"), Reason: ReasonExpired, By: "default"}},
		"poison again and again is nobody's for a while (C13)": {Rules{},
			with(failed(message.Poison, 2), func(f *Facts) { f.Destination, f.Holds = dlq, 1 }),
			Decision{Action: Keep, Due: now + 2000, Rest: now + 1000, Reason: ReasonPoison, By: "default"}},
		"undispatchable": {Rules{}, with(failed(message.Undispatchable, 0), func(f *Facts) { f.Destination = dlq }),
			Decision{Action: Keep, Due: now + 1000, Reason: ReasonUndispatchable, By: "default"}},
		"rolled back": {Rules{}, with(failed(message.Rollback, 1), func(f *Facts) { f.Destination = dlq }),
			Decision{Action: Again, By: "default"}},
		"past the limit of a policy for it": {plugin(0), with(failed(message.Poison, 1), func(f *Facts) { f.Destination = dlq }),
			Decision{Action: Keep, Due: now + 1000, Reason: ReasonLimit, By: "retry (activemq.xml:7)"}},
		"dropped where the old behaviour is asked for": {Rules{DeadLetter: discard},
			with(failed(message.Poison, 2), func(f *Facts) { f.Destination = dlq }),
			Decision{Action: Discard, Reason: ReasonOwnQueue, By: "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, tt.rules, tt.facts, tt.want)
		})
	}
}

func TestHoldsDoubleUpToAMinute(t *testing.T) { // issue 2 item 5, C13
	t.Parallel()
	var got []int64
	for holds := range 9 {
		f := with(failed(message.Poison, 2), func(f *Facts) { f.Destination, f.Holds = dlq, holds })
		got = append(got, Rules{}.Decide(f, now, nil).Due-now)
	}
	if diff := cmp.Diff([]int64{1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000}, got); diff != "" {
		t.Errorf("holds (-want +got):\n%s", diff)
	}
	for holds, want := range map[int]int64{math.MaxInt: 60_000, -1: 1000} {
		if got := hold(holds); got != want {
			t.Errorf("hold(%d) = %d, want %d", holds, got, want)
		}
	}
}

func TestSuppressedDuplicates(t *testing.T) { // R-EDGE-09, R-CLIENT-35
	t.Parallel()
	first := failed(message.Duplicate, 0)
	first.Counted = false
	second := with(first, func(f *Facts) { f.Holds = maxSuppressions })
	for name, tt := range map[string]struct {
		rules Rules
		facts Facts
		want  Decision
	}{
		"it is offered again, in its place": {Rules{}, first,
			Decision{Action: Hold, Due: now, Reason: ReasonDuplicate, By: "default"}},
		"a policy has no say in it": {plugin(9), first,
			Decision{Action: Hold, Due: now, Reason: ReasonDuplicate, By: "Q.> (activemq.xml:3)"}},
		"refused ten times it is a dead letter, named so": {Rules{}, second,
			Decision{Action: DeadLetter, Target: dlq, Reason: ReasonDuplicate, By: "default"}},
		"a dead letter at once if asked for": {Rules{Duplicates: DeadLetterDuplicate}, first,
			Decision{Action: DeadLetter, Target: dlq, Reason: ReasonDuplicate, By: "default"}},
		"dropped if asked for": {Rules{Duplicates: DiscardDuplicate}, first,
			Decision{Action: Discard, Reason: ReasonDuplicate, By: "default"}},
		"in its own dead letter queue it stays": {Rules{}, with(second, func(f *Facts) { f.Destination = dlq }),
			Decision{Action: Keep, Due: now + 60_000, Rest: now + 1000, Reason: ReasonDuplicate, By: "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, tt.rules, tt.facts, tt.want)
		})
	}
}

func TestCauseTextOfDeadLetters(t *testing.T) { // R-DLQ-01
	t.Parallel()
	client := "java.lang.Throwable: Delivery[7] exceeds redelivery policy limit:RedeliveryPolicy {...}, cause:null"
	for name, tt := range map[string]struct {
		rules Rules
		facts Facts
		want  string
	}{
		"the client's words":             {Rules{}, with(failed(message.Poison, 7), func(f *Facts) { f.Text = client }), client},
		"the client said nothing":        {Rules{}, failed(message.Poison, 7), ""},
		"past a policy: the client's":    {plugin(0), with(failed(message.Poison, 7), func(f *Facts) { f.Text = client }), client},
		"past a policy without a word":   {plugin(0), failed(message.Poison, 7), LimitCause(7, plugin(0).Redelivery, "")},
		"past a policy by a close":       {plugin(0), failed(message.Closed, 1), LimitCause(1, plugin(0).Redelivery, "closed")},
		"past a policy by a named close": {plugin(0), with(failed(message.Closed, 1), func(f *Facts) { f.Text = "consumer closed" }), LimitCause(1, plugin(0).Redelivery, "consumer closed")},
		"expired":                        {Rules{}, with(failed(message.Expired, 0), func(f *Facts) { f.Expiration = 1234 }), "java.lang.Throwable: Message Expired. Expiration:1234"},
		"undispatchable":                 {Rules{}, with(failed(message.Undispatchable, 0), func(f *Facts) { f.Text = "properties end early" }), "java.lang.Throwable: Message cannot be dispatched: properties end early"},
		"duplicate": {Rules{Duplicates: DeadLetterDuplicate}, with(failed(message.Duplicate, 0), func(f *Facts) {
			f.Text = "java.lang.Throwable: Suppressing duplicate delivery on connection, consumer ID:x"
		}), "java.lang.Throwable: Suppressing duplicate delivery on connection, consumer ID:x"},
		"duplicate without a word": {Rules{Duplicates: DeadLetterDuplicate}, failed(message.Duplicate, 0), "java.lang.Throwable: Suppressing duplicate delivery on connection"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := tt.rules.Decide(tt.facts, now, nil)
			if d.Action != DeadLetter || d.CauseText != tt.want {
				t.Errorf("%v with %q\nwant a dead letter with %q", d.Action, d.CauseText, tt.want)
			}
		})
	}
}

func TestOriginNamesTheDecider(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, source, want string }{
		{"", "", "default"}, {"Q.>", "", "Q.>"}, {"", "a.xml:3", "a.xml:3"}, {"Q.>", "a.xml:3", "Q.> (a.xml:3)"},
	} {
		if got := origin(tt.name, tt.source); got != tt.want {
			t.Errorf("origin(%q, %q) = %q, want %q", tt.name, tt.source, got, tt.want)
		}
	}
	unnamed := plugin(9)
	unnamed.Redelivery.Name, unnamed.Redelivery.Source = "", ""
	if d := unnamed.Decide(failed(message.Poison, 1), now, nil); d.By != "Q.> (activemq.xml:3)" {
		t.Errorf("a policy without a name is called %q, want its rules' name", d.By)
	}
}

func TestWordsOfTheLedger(t *testing.T) {
	t.Parallel()
	for a, want := range map[Action]string{0: "undecided", Again: "again", Later: "later", Hold: "hold", Keep: "keep",
		DeadLetter: "dead-letter", Discard: "discard", 99: "undecided"} {
		if got := a.String(); got != want {
			t.Errorf("action %d is %q, want %q", uint8(a), got, want)
		}
	}
	for k, want := range map[StrategyKind]string{UnsetStrategy: "unset", Shared: "shared", Individual: "individual", Discarding: "discarding"} {
		if got := k.String(); got != want {
			t.Errorf("kind %d is %q, want %q", uint8(k), got, want)
		}
	}
}

// anyRules and anyFacts draw whatever can be put together.
func anyRules(t *rapid.T) Rules {
	r := Rules{
		Duplicates:        DuplicateAction(rapid.IntRange(0, 2).Draw(t, "duplicates")),
		DropAtLimit:       rapid.Bool().Draw(t, "drop at limit"),
		DropWithoutPolicy: rapid.Bool().Draw(t, "drop without policy"),
		DeadLetter: rapid.SampledFrom([]DeadLetterStrategy{{}, SharedStrategy(), IndividualStrategy(), DiscardingStrategy()}).
			Draw(t, "strategy"),
	}
	if r.DeadLetter.Kind != UnsetStrategy {
		r.DeadLetter.ProcessExpired = rapid.Bool().Draw(t, "process expired")
		r.DeadLetter.ProcessNonPersistent = rapid.Bool().Draw(t, "process non-persistent")
		r.DeadLetter.DiscardOwn = rapid.Bool().Draw(t, "discard own")
	}
	if rapid.Bool().Draw(t, "policy") {
		p := policyOf(rapid.Int64Range(-10, 10_000).Draw(t, "initial"), rapid.Int64Range(-10, 10_000).Draw(t, "delay"),
			rapid.Bool().Draw(t, "exponential"), 2, 60_000)
		p.MaximumRedeliveries = rapid.IntRange(-2, 5).Draw(t, "limit")
		r.Redelivery = &p
	}
	return r
}

func anyFacts(t *rapid.T) Facts {
	return Facts{
		Cause:    message.Cause(rapid.IntRange(1, int(message.Duplicate)).Draw(t, "cause")),
		Counted:  rapid.Bool().Draw(t, "counted"),
		Failures: rapid.IntRange(0, 8).Draw(t, "failures"),
		Destination: rapid.SampledFrom([]message.Destination{queue("Q"), topic("T"), dlq, queue("ActiveMQ.DLQ.Queue.Q"),
			{Kind: message.TempQueue, Name: "X"}}).Draw(t, "destination"),
		Persistent:      rapid.Bool().Draw(t, "persistent"),
		Expired:         rapid.Bool().Draw(t, "expired"),
		Expiration:      rapid.SampledFrom([]int64{0, now - 1, now, now + 3000}).Draw(t, "expiration"),
		DeadLetterQueue: rapid.Bool().Draw(t, "dead letter queue"),
		Retained:        rapid.Bool().Draw(t, "retained"),
		Holds:           rapid.IntRange(0, 9).Draw(t, "holds"),
		Text:            rapid.SampledFrom([]string{"", "java.lang.Throwable: x"}).Draw(t, "text"),
	}
}

// TestLawsOfDecisions checks what holds whatever the rules and the facts are.
func TestLawsOfDecisions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, f := anyRules(t), anyFacts(t)
		d := r.Decide(f, now, nil)
		law := func(holds bool, name string) {
			t.Helper()
			if !holds {
				t.Fatalf("%s\nrules %+v\nfacts %+v\ndecision %+v", name, r, f, d)
			}
		}
		law(d.Action >= Again && d.Action <= Discard, "there is a decision")
		law(d.By != "", "somebody decided")
		law(d.Action != Discard || d.Reason != "", "nothing is dropped without a reason (R-EDGE-02)")
		law((d.Action == DeadLetter) == !d.Target.IsZero(), "a dead letter, and nothing else, has a target")
		law(d.Target != f.Destination || d.Target.IsZero(), "no dead letter goes where it is (R-DLS-04)")
		law(d.Action == DeadLetter || d.CauseText == "", "only a dead letter has a cause text")
		law(d.Action != DeadLetter || !f.Destination.IsTemporary() || d.Reason != ReasonExpired, "no dead letter of what expired in a temporary queue")
		law(d.Action != Later || r.Redelivery != nil, "only a policy delays")
		law(d.Action != Later || !f.Expired, "what has expired is not delivered again")
		law(d.Action != Again || !f.Expired, "what has expired is not delivered again")
		law(d.Due == 0 || d.Due >= now, "nothing is due in the past")
		law(d.Action != Keep || f.DeadLetterQueue || r.DeadLetter.Target(f.Destination, f.Subscription) == f.Destination,
			"only dead letters are kept where they are")
		law(!f.DeadLetterQueue || r.DeadLetter.DiscardOwn || f.Cause == message.Duplicate || d.Action == Keep || d.Action == Again || f.Retained && d.Reason == ReasonRetention,
			"a dead letter queue loses nothing but what it was to keep for a time")
		law(d.Rest == 0 || d.Action == Keep && d.Rest <= d.Due, "nobody else waits longer than who failed it")
		law(cmp.Equal(d, r.Decide(f, now, nil)), "the same facts have the same outcome")
	})
}

func TestEndlessRedeliveryNeverEnds(t *testing.T) { // a week of failures in no time
	t.Parallel()
	r, at, deliveries := plugin(Unlimited), now, 0
	for week := now + 7*24*time.Hour.Milliseconds(); at < week; deliveries++ {
		d := r.Decide(failed(message.Poison, deliveries+1), at, nil)
		if d.Action != Later {
			t.Fatalf("delivery %d: %v", deliveries+1, d.Action)
		}
		at = d.Due
	}
	if want := 1 + (7*24*3600-5+9)/10; deliveries != want {
		t.Errorf("%d deliveries in a week, want %d", deliveries, want)
	}
}

func TestReasonsAreLabels(t *testing.T) {
	t.Parallel()
	for _, r := range []Reason{ReasonPoison, ReasonLimit, ReasonExpired, ReasonUndispatchable, ReasonDuplicate, ReasonNonPersistent,
		ReasonDiscarding, ReasonPlugin, ReasonTemporary, ReasonNoPolicy, ReasonOwnQueue, ReasonExpiresFirst, ReasonRetention, ReasonUnsubscribed} {
		if s := string(r); s == "" || s != strings.ToLower(s) || strings.ContainsAny(s, " _") {
			t.Errorf("%q is no label", s)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	p := DefaultPolicy()
	for name, bb := range map[string]struct {
		rules Rules
		facts Facts
	}{
		"again": {Rules{}, failed(message.Rollback, 1)},
		"later": {Rules{Redelivery: &p}, failed(message.Poison, 3)},
		"dead":  {Rules{}, failed(message.Poison, 7)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bb.rules.Decide(bb.facts, now, nil)
			}
		})
	}
}
