package config

import (
	"errors"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

// TestMeant is how clients name one queue of an address, and prefixes of an acceptor
// (R-HQ-136).
func TestMeant(t *testing.T) {
	t.Parallel()
	const inside = `<acceptors><acceptor name="a">tcp://127.0.0.1:61616?anycastPrefix=jms.queue.,q/;multicastPrefix=jms.topic.;protocols=OPENWIRE</acceptor></acceptors>
<addresses><address name="news"><multicast><queue name="archive"/><queue name="news"/></multicast></address><address name="in"><anycast><queue name="inbox"/></anycast></address></addresses>`
	c := coreConfig(t, artemisRoot, inside)
	o := c.Listeners[0].Options
	plain := DefaultListenerOptions()
	for name, tt := range map[string]struct {
		c       *Config
		o       ListenerOptions
		d, want string // empty: there is none
	}{
		"a name":                       {c, o, "queue://orders", "queue://orders"},
		"a queue of an address":        {c, o, "queue://news::archive", "queue://archive"},
		"named as a topic":             {c, o, "topic://news::archive", "queue://archive"},
		"of the address's name":        {c, o, "queue://news::news", "queue://news"},
		"an anycast queue":             {c, o, "queue://in::inbox", "queue://inbox"},
		"one that is not in the file":  {c, o, "queue://orders::orders", "queue://orders"},
		"of another address":           {c, o, "queue://in::archive", ""},
		"no such queue":                {c, o, "queue://news::other", ""},
		"a prefix":                     {c, o, "queue://jms.queue.orders", "queue://orders"},
		"another":                      {c, o, "queue://q/orders", "queue://orders"},
		"a prefix says what it is":     {c, o, "queue://jms.topic.orders", "topic://orders"},
		"a prefix, and a queue":        {c, o, "queue://jms.queue.news::archive", "queue://archive"},
		"a prefix alone":               {c, o, "queue://jms.queue.", "queue://jms.queue."},
		"a listener without":           {c, plain, "queue://jms.queue.orders", "queue://jms.queue.orders"},
		"a composite":                  {c, o, "queue://orders,news::archive,jms.topic.t", "queue://orders,archive,topic://t"},
		"a composite with none":        {c, o, "queue://orders,news::other", ""},
		"a temporary queue":            {c, o, "temp-queue://ID:a::b", "temp-queue://ID:a::b"},
		"a file of HornetQ's":          {coreConfig(t, hornetQRoot, ""), plain, "queue://news::archive", "queue://news::archive"},
		"a prefix without such a file": {&Config{}, o, "queue://jms.queue.orders", "queue://orders"},
		"a name without such a file":   {&Config{}, plain, "queue://a::b", "queue://a::b"},
		"a pattern":                    {c, o, "queue://jms.queue.orders.>", "queue://orders.>"},
		"an advisory":                  {c, o, "topic://ActiveMQ.Advisory.Queue", "topic://ActiveMQ.Advisory.Queue"},
	} {
		d, err := message.ParseDestination(tt.d, message.Queue)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tt.c.Meant(&tt.o, d)
		switch {
		case tt.want == "" && !errors.Is(err, message.ErrNotFound), tt.want != "" && (err != nil || got.String() != tt.want):
			t.Errorf("%s: %s is %s (%v), want %q", name, tt.d, got, err, tt.want)
		case got != d && !tt.c.Renames(&tt.o):
			t.Errorf("%s: nobody would look", name)
		}
	}
	if (&Config{}).Renames(&plain) {
		t.Error("somebody would look for nothing")
	}
}
