package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/admin"
)

func TestOneLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, want string }{
		"text stays":                        {"Bücher 📚", "Bücher 📚"},
		"lines become one":                  {"a\r\nb\tc", "a  b c"},
		"a terminal is not told anything":   {"\x1b[2Jgone\x07", "\uFFFD[2Jgone\uFFFD"},
		"nor is the direction of text":      {"a\u202Eb", "a\uFFFDb"},
		"C1 codes are codes too":            {"a\u009bb", "a\uFFFDb"},
		"what is no UTF-8 does not come in": {"a\xffb", "a\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := oneLine(tt.in); got != tt.want {
				t.Errorf("oneLine(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	if d := cmp.Diff("  a\tb\n  \n  c\uFFFD\n", lines("a\tb\r\n\nc\x1b", "  ")); d != "" {
		t.Error(d)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	for want, ago := range map[string]time.Duration{
		"0s": -time.Second, "59s": 59*time.Second + 999*time.Millisecond, "1m": time.Minute, "59m": 59 * time.Minute,
		"1h": time.Hour, "47h": 47 * time.Hour, "2d": 48 * time.Hour, "400d": 400 * 24 * time.Hour,
	} {
		if got := age(now.Add(-ago), now); got != want {
			t.Errorf("%v is %q, want %q", ago, got, want)
		}
	}
	if got := age(time.Time{}, now); got != "-" {
		t.Errorf("no time is %q", got)
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "äöü": "äöü", "äöüß": "äö…"} {
		if got := short(in, 3); got != want {
			t.Errorf("short(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSegment(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"ORDERS": "ORDERS", "a/b": "a%2Fb", "..": "%2E%2E", "a.b": "a.b", "a?b#c d": "a%3Fb%23c%20d"} {
		if got := segment(in); got != want {
			t.Errorf("segment(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, a := range map[string]admin.Attempt{
		"the client delivers it once more":                           {Decision: "client"},
		"available again at once, by policy default":                 {Decision: "again", Policy: "default"},
		"again from 2026-01-02 03:04:05.000Z, by policy p (f.xml:3)": {Decision: "later", NextDue: due, Policy: "p (f.xml:3)"},
		"dead letter":       {Decision: "dead-letter"},
		"discarded":         {Decision: "discard"},
		"kept in its place": {Decision: "keep"},
		"kept from that connection until 2026-01-02 03:04:05.000Z": {Decision: "hold", NextDue: due},
		"something new": {Decision: "something new"},
	} {
		if got := decision(&a); got != want {
			t.Errorf("%+v is %q, want %q", a, got, want)
		}
	}
}

func TestMessageIsDrawn(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := admin.Detail{
		Where: admin.Where{Queue: "DLQ"},
		Message: admin.Message{ID: "ID:a-1", Position: 7, State: "scheduled", SizeBytes: 1030, Attempts: 120, Failures: 1, HandOuts: 2,
			RedeliveryCounter: 1, Suspected: true, Due: at,
			Headers:    admin.Headers{Destination: "queue://DLQ", DeliveryMode: "PERSISTENT", Priority: 4, GroupID: "g", GroupSequence: 2},
			DeadLetter: &admin.DeadLetter{From: "queue://A", Cause: "no\x1bway", LastCause: "poison"}},
		Properties: map[string]any{"b": 1.5, "a": "<x>"},
		Body:       admin.Body{Text: "one\ntwo", Bytes: 9, Cut: true},
		Story: []admin.Attempt{
			{Number: 10, Ended: at, Cause: "rollback", Counted: true, Decision: "again", Consumer: "c1", ClientID: "app", HandedOut: at, RedeliveryCounter: 3},
			{Number: 31, Ended: at, Cause: "recover", Decision: "client", Uncertain: true, Consumer: "c1", ClientID: "app", HandedOut: at, RedeliveryCounter: 3, Text: "two\nlines"},
		},
	}
	var b strings.Builder
	if err := printMessage(&b, &m); err != nil {
		t.Fatal(err)
	}
	const want = `ID:a-1
  queue       DLQ
  state       scheduled, not before 2026-01-02 03:04:05.000Z
  failed in   queue://A
  cause       poison: no` + "\uFFFD" + `way
  deliveries  120 attempts failed, failure count 1; 2 hand-outs ended; a client would now be told the redelivery counter 1; the fate of the last hand-out is not known
  size        1030 bytes, as limits count them
  position    7

Headers
  JMSDestination   queue://DLQ
  JMSDeliveryMode  PERSISTENT
  JMSPriority      4
  JMSExpiration    never
  JMSXGroupID      g, number 2

Properties
  a  "<x>"
  b  1.5

Story: 120 attempts
       9 lines are not kept
   10  2026-01-02 03:04:05.000Z  rollback, counted: available again at once
       consumer c1 (client app), handed out 2026-01-02 03:04:05.000Z with the redelivery counter 3
       20 lines are not kept
   31  2026-01-02 03:04:05.000Z  recover, not counted: the client delivers it once more
       nobody saw it; a later signal told of it
       two
       lines

Body: 9 bytes
  one
  two
  (only the beginning is shown)
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestBrokenMessageIsDrawn(t *testing.T) {
	t.Parallel()
	m := admin.Detail{Message: admin.Message{ID: "ID:a-1", State: "waiting", Error: "corrupt"}, Body: admin.Body{Error: "corrupt"}}
	var b strings.Builder
	if err := printMessage(&b, &m); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"error       corrupt\n", "no delivery of it has failed\n", "it cannot be shown: corrupt\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "Headers") {
		t.Errorf("it shows headers that could not be read:\n%s", b.String())
	}
}

func TestReasonOf(t *testing.T) {
	t.Parallel()
	const policy = " exceeds redelivery policy limit:RedeliveryPolicy {destination = null, maximumRedeliveries = 6}"
	for name, tt := range map[string]struct{ cause, want string }{
		"what the application threw":           {"java.lang.Throwable: Delivery[7]" + policy + ", cause:java.lang.Error: no, cause: none", "poison: Delivery[7]: java.lang.Error: no, cause: none"},
		"a rollback has nothing thrown":        {"java.lang.Throwable: Delivery[7]" + policy + ", cause:null", "poison: Delivery[7] exceeds the client's limit"},
		"given up unread":                      {"java.lang.Throwable: Dispatch[8] to ID:c-1:1:1:1" + policy, "poison: Dispatch[8] to ID:c-1:1:1:1 exceeds the client's limit"},
		"another client's words are its own":   {"no way", "poison: no way"},
		"an attempt that failed before expiry": {"java.lang.Throwable: Message Expired. Expiration:5", "expired: java.lang.Throwable: Message Expired. Expiration:5"},
		"without words it is the broker's own": {"", "poison"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := reasonOf(&admin.DeadLetter{Cause: tt.cause, LastCause: "poison"}); got != tt.want {
				t.Errorf("reasonOf(%q) = %q, want %q", tt.cause, got, tt.want)
			}
		})
	}
}
