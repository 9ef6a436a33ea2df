package redelivery

import (
	"strings"
	"testing"
	"time"
)

func TestLocalDecisions(t *testing.T) {
	t.Parallel()
	limited := DefaultPolicy()
	limited.MaximumRedeliveries, limited.InitialRedeliveryDelay, limited.RedeliveryDelay = 2, 10*time.Millisecond, 20*time.Millisecond
	never, ever := limited, limited
	never.MaximumRedeliveries, ever.MaximumRedeliveries = 0, Unlimited
	for name, tt := range map[string]struct {
		p    Policy
		f    LocalFacts
		want LocalDecision
		text string
	}{
		"R-POL-13 the first redelivery waits initialRedeliveryDelay": {limited, LocalFacts{Counter: 1, Retry: NoRetry}, LocalDecision{Delay: 10}, ""},
		"R-POL-14 the second waits redeliveryDelay":                  {limited, LocalFacts{Counter: 2, Retry: NoRetry}, LocalDecision{Delay: 20}, ""},
		"R-POL-16 failure N+1 is poison":                             {limited, LocalFacts{Counter: 3, Retry: NoRetry}, LocalDecision{Poison: true}, "Delivery[3] exceeds redelivery policy limit:RedeliveryPolicy {"},
		"R-CLIENT-48 without words the cause is null":                {limited, LocalFacts{Counter: 3, Retry: NoRetry}, LocalDecision{Poison: true}, ", cause:null"},
		"R-CLIENT-48 the application's words stand in the cause":     {limited, LocalFacts{Counter: 3, Retry: NoRetry, Cause: "X: y"}, LocalDecision{Poison: true}, ", cause:X: y"},
		"R-POL-16 limit 0 gives up at the first failure":             {never, LocalFacts{Counter: 1, Retry: NoRetry}, LocalDecision{Poison: true}, "Delivery[1]"},
		"R-POL-16 limit -1 never gives up":                           {ever, LocalFacts{Counter: 1000, Retry: NoRetry}, LocalDecision{Delay: 20}, ""},
		"the application's delay goes before the policy's":           {limited, LocalFacts{Counter: 1, Retry: 70}, LocalDecision{Delay: 70}, ""},
		"the application's delay of 0 is at once":                    {limited, LocalFacts{Counter: 1, Retry: 0}, LocalDecision{}, ""},
		"the application's delay does not lift the limit":            {limited, LocalFacts{Counter: 3, Retry: 70}, LocalDecision{Poison: true}, "exceeds"},
		"what does not count is never given up":                      {never, LocalFacts{Counter: 5, Retry: NoRetry, Uncounted: true}, LocalDecision{Delay: 20}, ""},
		"the application may give up at once":                        {ever, LocalFacts{Counter: 1, Retry: NoRetry, GiveUp: true, Cause: "broken"}, LocalDecision{Poison: true}, "Delivery[1] given up by the application, cause:broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tt.p.DecideLocal(tt.f, nil)
			if !strings.Contains(got.Text, tt.text) {
				t.Errorf("text %q, want %q in it", got.Text, tt.text)
			}
			if got.Text = ""; got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// What a client of ours says, a broker of ours must be able to read.
func TestLocalCausesAreUnderstood(t *testing.T) {
	t.Parallel()
	p := DefaultPolicy()
	for _, f := range []LocalFacts{{Counter: 7, Retry: NoRetry}, {Counter: 7, GiveUp: true, Cause: "*errors.errorString: no"}} {
		kind, n := ParsePoison("java.lang.Throwable: " + p.DecideLocal(f, nil).Text)
		if kind != DeliveryLimit || n != 7 {
			t.Errorf("%+v is read as %v, %d", f, kind, n)
		}
	}
	text, _ := p.Undeliverable(9, false, true, "ID:c:1:1")
	if kind, n := ParsePoison(text); kind != DispatchLimit || n != 9 {
		t.Errorf("%q is read as %v, %d", text, kind, n)
	}
}

func TestUndeliverable(t *testing.T) {
	t.Parallel()
	p := DefaultPolicy()
	off := p
	off.PreDispatchCheck = false
	for name, tt := range map[string]struct {
		p                 Policy
		counter           int
		brought, listener bool
		want              string
	}{
		"R-CLIENT-30 at the limit it is delivered":                  {p, 6, false, false, ""},
		"R-CLIENT-31 above it is not":                               {p, 7, false, false, "Dispatch[7] to ID:c:1:1 exceeds redelivery policy limit:RedeliveryPolicy {"},
		"R-CLIENT-31 nor to a listener":                             {p, 7, false, true, "listener dispatch[7] to ID:c:1:1 exceeds redelivery policy limit:RedeliveryPolicy {"},
		"R-CLIENT-30 preDispatchCheck=false delivers it":            {off, 7, false, false, ""},
		"R-CLIENT-30 what a broker-side policy counts is delivered": {p, 70, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, poison := tt.p.Undeliverable(tt.counter, tt.brought, tt.listener, "ID:c:1:1")
			if poison != (tt.want != "") || !strings.HasPrefix(text, tt.want) {
				t.Errorf("got %q, %v, want %q", text, poison, tt.want)
			}
		})
	}
}
