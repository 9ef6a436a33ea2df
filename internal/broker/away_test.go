package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/selector"
)

// remembering has the built-in virtual topic aware of selectors, also of those of consumers
// that are away.
func remembering(m SelectorMemory) func(*Options) {
	v := builtIn
	v.SelectorAware = true
	return intercepting(Interceptors{VirtualTopics: []VirtualTopic{v}, Memory: m})
}

func selecting(text string) func(*ConsumerSpec) { return func(s *ConsumerSpec) { s.Selector = text } }

// come has consumers come, and leave again, one after the other.
func (c *client) come(queue message.Destination, selectors ...string) {
	c.h.t.Helper()
	for _, s := range selectors {
		c.must(c.settleConsumer(c.consume(queue, selecting(s))))
	}
}

// remembered is what is remembered of a queue.
func (h *house) remembered(queue message.Destination, want ...string) {
	h.t.Helper()
	st, _ := h.broker.Status(queue)
	if !slices.Equal(st.Selectors, want) {
		h.t.Errorf("remembered: %q, want %q", st.Selectors, want)
	}
}

// While its consumers are away a queue gets what they selected; also after the power was
// cut, and until it is removed. Other queues and browsers are not remembered.
func TestSelectorsOfConsumersThatAreAway(t *testing.T) {
	t.Parallel()
	inHouse(t, remembering(SelectorMemory{On: true}), func(h *house) {
		x, a, b := topicNamed("VirtualTopic.X"), queueNamed("Consumer.A.VirtualTopic.X"), queueNamed("Consumer.B.VirtualTopic.X")
		c := h.client()
		c.make(b.Name)
		c.come(a, "region = 'eu'", "region = 'us'", "region = 'eu'")
		c.must(c.settleConsumer(c.consume(b, func(s *ConsumerSpec) { s.Browser = true })))
		c.come(queueNamed("Q"), "region = 'eu'")
		send := func(regions ...string) {
			for _, r := range regions {
				c.must(c.send(c.msg(x, r, region(r)), ""))
			}
		}
		send("eu", "us", "cn")
		h.remembered(a, "region = 'eu'", "region = 'us'")
		h.remembered(b)
		h.remembered(queueNamed("Q"))
		h.kill()
		c = h.client()
		send("cn", "us")
		h.holds(At(a), "eu", "us", "us")
		h.holds(At(b))
		h.remembered(a, "region = 'eu'", "region = 'us'")
		if _, err := h.broker.Remove(h.t.Context(), At(a), true, false); err != nil {
			t.Error(err)
		}
		c.make(a.Name)
		send("eu")
		h.holds(At(a))
		h.restart()
		h.remembered(a)
	})
}

func TestSelectorMemory(t *testing.T) {
	t.Parallel()
	eu, wild, us, escaped := "region = 'eu'", "region LIKE 'e%'", "region = 'us'", "region LIKE 'e!%' ESCAPE '!'"
	for name, tt := range map[string]struct {
		m    SelectorMemory
		come []string
		want []string
	}{
		"all":                  {SelectorMemory{}, []string{eu, "", wild, eu, us}, []string{eu, "", wild, us}},
		"one, the last":        {SelectorMemory{Single: true}, []string{eu, "", us, us}, []string{"", us}},
		"none is no other one": {SelectorMemory{Single: true}, []string{eu, ""}, []string{eu, ""}},
		"none with a wildcard": {SelectorMemory{NotWild: true}, []string{wild, eu, escaped, "region LIKE '_'", "NOT (a = 1 AND b NOT LIKE '%')"}, []string{eu, escaped}},
	} {
		var all []*selector.Selector
		for _, text := range tt.come {
			sel, err := parseSelector(text)
			if err != nil {
				t.Fatal(err)
			}
			if next, _ := tt.m.add(all, sel); next != nil {
				all = next
			}
		}
		if got := textsOf(all); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	var all []*selector.Selector
	for n := range maxSelectors + 5 {
		sel, _ := parseSelector(fmt.Sprint("a = ", n))
		next, forgot := SelectorMemory{}.add(all, sel)
		var want []string
		if n >= maxSelectors {
			want = []string{fmt.Sprint("a = ", n-maxSelectors)}
		}
		if !slices.Equal(textsOf(forgot), want) {
			t.Errorf("%d: forgot %q", n, textsOf(forgot))
		}
		all = next
	}
	if len(all) != maxSelectors {
		t.Errorf("%d remembered", len(all))
	}
	for n := range 20 {
		sel, err := parseSelector(fmt.Sprintf("a = '%d%s'", n, strings.Repeat("x", selector.MaxTextBytes-100)))
		if err != nil {
			t.Fatal(err)
		}
		all, _ = SelectorMemory{}.add(all, sel)
	}
	if size := len(strings.Join(textsOf(all), "")); len(all) != 4 || size > maxSelectorBytes {
		t.Errorf("%d remembered, of %d bytes", len(all), size)
	}
}

// A reload that has selectors remembered counts for the consumers that are there.
func TestSelectorsAreRememberedFromAReloadOn(t *testing.T) {
	t.Parallel()
	inHouse(t, remembering(SelectorMemory{}), func(h *house) {
		a := queueNamed("Consumer.A.VirtualTopic.X")
		c := h.client()
		k := c.consume(a, selecting("region = 'eu'"))
		h.remembered(a)
		var o Options
		remembering(SelectorMemory{On: true})(&o)
		c.must(h.broker.Reload(h.t.Context(), Reload{Interceptors: o.Interceptors}))
		c.must(c.settleConsumer(k))
		h.remembered(a, "region = 'eu'")
		c.must(c.send(c.msg(topicNamed("VirtualTopic.X"), "m", region("eu")), ""))
		h.holds(At(a), "m")
	})
}
