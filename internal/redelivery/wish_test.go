package redelivery

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
)

func TestWishesSurviveTheWay(t *testing.T) {
	t.Parallel()
	own := DefaultPolicy()
	own.MaximumRedeliveries, own.InitialRedeliveryDelay, own.UseExponentialBackOff, own.BackOffMultiplier, own.Name = Unlimited, 0, true, 1.5, "a & b = c"
	hornet := DefaultPolicy()
	hornet.Arithmetic, hornet.RedeliveryDelay = HornetQ{}, 5*time.Second
	w := Wishes{
		{{message.Destination{Kind: message.Queue, Name: `grün\>.😀`}, &own}, {message.Destination{Kind: message.Topic, Name: "T"}, nil}, {message.Destination{}, nil}},
		{{message.Destination{Kind: message.Queue, Name: ">"}, &hornet}},
	}
	text, err := w.Properties()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseWishes("# a comment\nsomebody.else=1\n" + text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, got); diff != "" {
		t.Error(diff)
	}
	m := got.Map()
	if p := m.Lookup(message.Destination{Kind: message.Queue, Name: "X"}); p == nil || p.Arithmetic != (HornetQ{}) {
		t.Errorf("an empty wish of the first layer does not lead to the second: %v", p)
	}
	if p := m.Lookup(message.Destination{Kind: message.Topic, Name: "T"}); p != nil {
		t.Errorf("got %v for a topic without a wish", p)
	}
}

func TestNoWishes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "some=thing\n"} {
		w, err := ParseWishes(text)
		if err != nil || w.Map() != nil || w.Map().Lookup(message.Destination{Kind: message.Queue, Name: "X"}) != nil {
			t.Errorf("%q: %v, %v", text, w, err)
		}
	}
}

func TestBadWishes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"nixie.redelivery.0.7.policy=none", "nixie.redelivery.x.0.policy=none", "nixie.redelivery.0.0.policy=maximumRedeliveries=six", "nixie.redelivery.0.0.destination="} {
		if _, err := ParseWishes(text); !errors.Is(err, message.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
	many := Wishes{make([]Wish, 2000)}
	if _, err := many.Properties(); !errors.Is(err, message.ErrOverLimit) || !strings.Contains(err.Error(), "limit") {
		t.Errorf("too many: %v", err)
	}
}
