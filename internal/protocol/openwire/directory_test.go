package openwire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// hears opens a connection and gives what it was told, as "brokers rebalance".
func (p *peer) hears(tolerant, reconnect bool) []string {
	p.t.Helper()
	p.tell(&wire.ConnectionInfo{ConnectionID: p.connection(), ClientID: wire.NewText("client of " + p.id), Manageable: true, FaultTolerant: tolerant, FailoverReconnect: reconnect})
	return p.heard()
}

// heard gives what a client was told of brokers since it was asked last.
func (p *peer) heard() []string {
	p.t.Helper()
	var told []string
	for ds := p.take(); ds != nil; ds = p.take() {
		c, ok := ds.(*wire.ConnectionControl)
		if !ok || !c.ReconnectTo.Valid || c.ReconnectTo.Value != "" || c.FaultTolerant || c.ResponseRequired {
			p.t.Errorf("got a %T: %+v", ds, ds)
			continue
		}
		told = append(told, fmt.Sprintf("%s %t", c.ConnectedBrokers.Value, c.RebalanceConnection))
	}
	return told
}

// TestClientsAreToldOfBrokers: what ActiveMQ 5.17.2 sends with two brokers.
func TestClientsAreToldOfBrokers(t *testing.T) { // OpenWire 13
	t.Parallel()
	for name, c := range map[string]struct {
		d    Directory
		want []string // three clients, one that comes back, one without failover
	}{
		"nobody is told": {Directory{Brokers: []string{"a", "b"}}, []string{" false", " false", " false", " false", " false"}},
		"the list alone": {Directory{Update: true, Brokers: []string{"a", "b"}}, []string{"a,b false", "a,b false", "a,b false", "a,b false", "a,b false"}},
		"rebalanced, each with another first, but for one that comes back": {Directory{Update: true, Rebalance: true, Brokers: []string{"a", "b"}},
			[]string{"a,b true", "b,a true", "a,b true", "b,a false", "a,b true"}},
		"rebalancing without the list": {Directory{Rebalance: true, Brokers: []string{"a", "b"}}, []string{" true", " true", " true", " false", " true"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, func(o *Options) { o.Directory = c.d }, func(h *house) {
				var got []string
				for i := range 5 {
					p := h.peer(peerFormat())
					got = append(got, p.hears(i < 4, i == 3)...)
					defer p.leave()
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestClientsAreToldOfChanges: a list that changes while clients are connected.
func TestClientsAreToldOfChanges(t *testing.T) { // OpenWire 13
	t.Parallel()
	for name, c := range map[string]struct {
		d         Directory
		to        []string
		connected []string // what a client over failover hears
		later     []string // and one that comes later
	}{
		"one is added":                {Directory{Update: true}, []string{"a", "b", "c"}, []string{"a,b,c false"}, []string{"a,b,c false"}},
		"one is added, rebalanced":    {Directory{Update: true, Rebalance: true}, []string{"a", "b", "c"}, []string{"a,b,c false"}, []string{"b,c,a true"}},
		"one is removed":              {Directory{Update: true}, []string{"a"}, nil, []string{"a false"}},
		"one is removed, and told":    {Directory{Update: true, OnRemove: true}, []string{"a"}, []string{"a false"}, []string{"a false"}},
		"one is replaced":             {Directory{Update: true}, []string{"a", "c"}, []string{"a,c false"}, []string{"a,c false"}},
		"another order is no change":  {Directory{Update: true, OnRemove: true}, []string{"b", "a"}, nil, []string{"a,b false"}},
		"nothing is told of anything": {Directory{OnRemove: true}, []string{"c"}, nil, []string{" false"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.d.Brokers = []string{"a", "b"}
			inHouse(t, func(o *Options) { o.Directory = c.d }, func(h *house) {
				old := peerFormat()
				old.Version = 5 // has no field for it
				formats := []wire.WireFormat{peerFormat(), peerFormat(), old}
				var peers []*peer
				for i, f := range formats {
					p := h.peer(f)
					p.hears(i != 1, false)
					peers = append(peers, p)
				}
				gone := h.peer(peerFormat())
				gone.hears(true, false)
				gone.leave()
				<-gone.ended

				told := h.server.SetBrokers(slices.Clone(c.to))
				if told != len(c.connected) {
					t.Errorf("%d clients told, want %d", told, len(c.connected))
				}
				for i, want := range [][]string{c.connected, nil, nil} { // over failover; without; too old
					if diff := cmp.Diff(want, peers[i].heard()); diff != "" {
						t.Errorf("client %d (-want +got):\n%s", i, diff)
					}
				}
				p := h.peer(peerFormat())
				if diff := cmp.Diff(c.later, p.hears(true, false)); diff != "" {
					t.Errorf("one that comes later (-want +got):\n%s", diff)
				}
				for _, p := range append(peers, p) {
					p.leave()
				}
			})
		})
	}
}

// TestShareIsSentAway: where a broker is added its share of the connected clients is
// sent away, after they were told; whoever comes back to this one stays.
func TestShareIsSentAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d       Directory
		from    []string
		to      []string
		clients int
		away    int
	}{
		"one of two":                     {Directory{Update: true, Rebalance: true}, []string{"a"}, []string{"a", "b"}, 6, 3},
		"one of three, to the nearest":   {Directory{Update: true, Rebalance: true}, []string{"a", "b"}, []string{"a", "b", "c"}, 5, 2},
		"two of three":                   {Directory{Update: true, Rebalance: true}, []string{"a"}, []string{"a", "b", "c"}, 6, 4},
		"one that takes another's place": {Directory{Update: true, Rebalance: true}, []string{"a", "b"}, []string{"a", "c"}, 4, 2},
		"the only client":                {Directory{Update: true, Rebalance: true}, []string{"a"}, []string{"a", "b"}, 1, 1},
		"nobody, one is removed":         {Directory{Update: true, Rebalance: true, OnRemove: true}, []string{"a", "b"}, []string{"a"}, 4, 0},
		"nobody, not asked to":           {Directory{Update: true}, []string{"a"}, []string{"a", "b"}, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.d.Brokers = c.from
			inHouse(t, func(o *Options) { o.Directory = c.d }, func(h *house) {
				var peers []*peer
				for range c.clients {
					p := h.peer(peerFormat())
					p.hears(true, false)
					peers = append(peers, p)
				}
				h.server.SetBrokers(c.to)
				synctest.Wait()
				away := 0
				time.Sleep(sendAwayTime)
				synctest.Wait()
				for _, p := range peers {
					if got := p.heard(); len(got) != 1 {
						t.Errorf("a client was told %q", got)
					}
					select {
					case <-p.ended:
						away++
					default:
						p.leave()
					}
				}
				if away != c.away {
					t.Errorf("%d of %d clients were sent away, want %d", away, c.clients, c.away)
				}
			})
		})
	}
}

// TestMoveClients: so many are sent away by hand, with the list as it is.
func TestMoveClients(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d     Directory
		most  int
		dry   bool
		could int
		sent  int
		told  int // clients that hear of the list once more
	}{
		"some":             {Directory{Update: true, Brokers: []string{"a", "b"}}, 2, false, 3, 2, 2},
		"all":              {Directory{Update: true, Rebalance: true, Brokers: []string{"a", "b"}}, 99, false, 3, 3, 3},
		"dry":              {Directory{Update: true, Brokers: []string{"a", "b"}}, 2, true, 3, 2, 0},
		"nobody":           {Directory{Update: true, Brokers: []string{"a", "b"}}, 0, false, 3, 0, 0},
		"no other broker":  {Directory{Update: true, Brokers: []string{"a"}}, 2, false, 0, 0, 0},
		"clients not told": {Directory{Brokers: []string{"a", "b"}}, 2, false, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, func(o *Options) { o.Directory = c.d }, func(h *house) {
				var peers []*peer
				for i := range 4 {
					p := h.peer(peerFormat())
					p.hears(i > 0, true) // the first has no failover
					peers = append(peers, p)
				}
				could, sent := h.server.MoveClients(c.most, c.dry)
				if could != c.could || sent != c.sent {
					t.Errorf("%d could go and %d are sent, want %d and %d", could, sent, c.could, c.sent)
				}
				time.Sleep(sendAwayTime)
				synctest.Wait()
				told, gone := 0, 0
				for _, p := range peers {
					for _, text := range p.heard() {
						told++
						if !strings.HasSuffix(text, " false") {
							t.Errorf("a client was told %q", text)
						}
					}
					select {
					case <-p.ended:
						gone++
					default:
						p.leave()
					}
				}
				if c.dry {
					c.sent = 0
				}
				if told != c.told || gone != c.sent {
					t.Errorf("%d were told and %d are gone, want %d and %d", told, gone, c.told, c.sent)
				}
			})
		})
	}
}

// TestSentAwayIsNoFailure: a client that is sent away has not failed with what it had.
func TestSentAwayIsNoFailure(t *testing.T) { // R-EDGE-05
	t.Parallel()
	for name, c := range map[string]struct {
		change bool
		told   int // what the next consumer is told of the message; 1 is the failure that the client has told of
	}{
		"sent away": {true, 1},
		"hung up":   {false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, func(o *Options) {
				o.Directory = Directory{Update: true, Rebalance: true, Brokers: []string{"a"}}
			}, func(h *house) {
				p := h.peer(peerFormat())
				p.hears(true, false)
				p.tell(&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: 1}})
				p.produce(1, 0)
				p.consume(1, queueNamed("Q"), 10)
				p.do(p.text(1, queueNamed("Q"), "taken"))
				p.do(ack(p.dispatched(), wire.AckRedelivered))
				if c.change {
					h.server.SetBrokers([]string{"a", "b"})
					<-p.ended
				} else {
					p.hangUp()
				}
				if got, want := holds(t, h, "Q"), fmt.Sprintf("taken told %d", c.told); got != want {
					t.Errorf("Q holds %s, want %s", got, want)
				}
			})
		})
	}
}

// TestAskedToSpreadBeforeTheAnswer: a client that is asked to spread hears of it before
// it can have a session; one that does not move is answered.
func TestAskedToSpreadBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d         Directory
		tolerant  bool
		reconnect bool
		held      bool
	}{
		"asked":                 {Directory{Update: true, Rebalance: true, Brokers: []string{"a", "b"}}, true, false, true},
		"it comes back":         {Directory{Update: true, Rebalance: true, Brokers: []string{"a", "b"}}, true, true, false},
		"without failover":      {Directory{Update: true, Rebalance: true, Brokers: []string{"a", "b"}}, false, false, false},
		"there is no other one": {Directory{Update: true, Rebalance: true, Brokers: []string{"a"}}, true, false, false},
		"told alone":            {Directory{Update: true, Brokers: []string{"a", "b"}}, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, func(o *Options) { o.Directory = c.d }, func(h *house) {
				p := h.peer(peerFormat())
				p.send(&wire.ConnectionInfo{BaseCommand: wire.BaseCommand{CommandID: 1, ResponseRequired: true}, ConnectionID: p.connection(), ClientID: wire.NewText("me"),
					Manageable: true, FaultTolerant: c.tolerant, FailoverReconnect: c.reconnect})
				at := time.Now()
				first, second := p.take(), p.take()
				if _, told := first.(*wire.ConnectionControl); told != c.held || (second == nil) != c.held {
					t.Errorf("got %T, %T at once", first, second)
				}
				if c.held {
					time.Sleep(settleTime)
					if r, ok := p.take().(*wire.Response); !ok || r.CorrelationID != 1 || time.Since(at) != settleTime {
						t.Errorf("got %+v after %v", r, time.Since(at))
					}
				}
				p.leave()
			})
		})
	}
}
