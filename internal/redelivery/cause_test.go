package redelivery

import "testing"

func TestParsePoison(t *testing.T) {
	t.Parallel()
	const policy = "RedeliveryPolicy {destination = null, maximumRedeliveries = 6}"
	for name, tt := range map[string]struct {
		text string
		kind PoisonKind
		n    int
	}{
		"R-CLIENT-48 the application failed":          {"java.lang.Throwable: Delivery[7] exceeds redelivery policy limit:" + policy + ", cause:null", DeliveryLimit, 7},
		"R-CLIENT-48 without a class":                 {"Delivery[1] exceeds redelivery policy limit:" + policy + ", cause:null", DeliveryLimit, 1},
		"R-CLIENT-48 the cause is not looked at":      {"Delivery[2] exceeds redelivery policy limit:" + policy + ", cause:java.lang.X: Dispatch[9] to c", DeliveryLimit, 2},
		"R-CLIENT-31 before a synchronous delivery":   {"java.lang.Throwable: Dispatch[8] to ID:host-1:1:1 exceeds redelivery policy limit:" + policy, DispatchLimit, 8},
		"R-CLIENT-31 before a listener's delivery":    {"java.lang.Throwable: listener dispatch[3] to ID:host-1:1:1 exceeds redelivery policy limit:" + policy, DispatchLimit, 3},
		"R-CLIENT-35 a duplicate":                     {"java.lang.Throwable: Suppressing duplicate delivery on connection, consumer ID:host-1:1:1", SuppressedDuplicate, 0},
		"R-CLIENT-35 a duplicate in a server session": {"java.lang.Throwable: Duplicate delivery to ActiveMQSession {id=1}", SuppressedDuplicate, 0},
		"R-CLIENT-4B a server session gave up":        {"java.lang.Throwable: Exceeded ra redelivery policy limit:" + policy, SessionLimit, 0},
		"R-DLQ-02 a class that Java did not know":     {"java.lang.Throwable: com.x.Odd$Error: Delivery[4] exceeds", DeliveryLimit, 4},
		"a number over 31 bits is none":               {"Delivery[99999999999] exceeds", OtherPoison, 0},
		"a negative number is none":                   {"Delivery[-1] exceeds", OtherPoison, 0},
		"a bracket that does not close":               {"Delivery[12", OtherPoison, 0},
		"no number":                                   {"Delivery[] exceeds", OtherPoison, 0},
		"an application's words":                      {"com.x.OrderException: no stock for Delivery[7]", OtherPoison, 0},
		"words before a colon are no class":           {"order 7: Delivery[7] exceeds", OtherPoison, 0},
		"a class alone":                               {"java.lang.Throwable: ", OtherPoison, 0},
		"nothing":                                     {"", OtherPoison, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if at, ok := ExpiredAt(ExpiredCause(1700000000000)); at != 1700000000000 || !ok {
				t.Errorf("our own cause of an expired message reads as %d, %t", at, ok)
			}
			if at, ok := ExpiredAt(DiscardCause("c:1:1")); at != 0 || ok {
				t.Errorf("the cause of one that was evicted reads as expired at %d, %t", at, ok)
			}
			if kind, n := ParsePoison(tt.text); kind != tt.kind || n != tt.n {
				t.Errorf("got kind %d, n %d; want %d, %d", kind, n, tt.kind, tt.n)
			}
		})
	}
}

func TestCauseTexts(t *testing.T) { // R-DLQ-01
	t.Parallel()
	p := DefaultPolicy()
	for want, got := range map[string]string{
		"java.lang.Throwable: Message Expired. Expiration:1700000000000":                                  ExpiredCause(1700000000000),
		"java.lang.Throwable: Delivery[7] exceeds redelivery policy limit:" + p.String() + ", cause:null": LimitCause(7, &p, ""),
		"java.lang.Throwable: Delivery[2] exceeds redelivery policy limit:" + p.String() + ", cause:x":    LimitCause(2, &p, "x"),
		"java.lang.Throwable: duplicate from store for queue://Q":                                         StoreDuplicateCause(queue("Q")),
		"java.lang.Throwable: duplicate paged in from cursor for topic://T":                               PagedDuplicateCause(topic("T")),
		"java.lang.Throwable: Subscription discard. ID:c:1:1":                                             DiscardCause("c:1:1"),
		"java.lang.Throwable: Message cannot be dispatched: x":                                            UndispatchableCause("x"),
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if kind, n := ParsePoison(LimitCause(7, &p, "x")); kind != DeliveryLimit || n != 7 {
		t.Errorf("our own limit cause reads as kind %d, n %d", kind, n)
	}
}

func FuzzParsePoison(f *testing.F) {
	f.Add("java.lang.Throwable: Delivery[7] exceeds redelivery policy limit:")
	f.Add("listener dispatch[3]")
	f.Add(": : : ")
	f.Fuzz(func(t *testing.T, text string) {
		if kind, n := ParsePoison(text); n < 0 || n != 0 && kind != DeliveryLimit && kind != DispatchLimit {
			t.Errorf("kind %d, n %d", kind, n)
		}
	})
}
