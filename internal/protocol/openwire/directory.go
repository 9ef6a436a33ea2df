package openwire

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// Directory says how clients are told of the brokers that they may use (OpenWire 13).
type Directory struct {
	// Update tells clients of the brokers; without it they get an empty list.
	Update bool
	// Rebalance asks clients that connect for the first time to spread over the brokers.
	Rebalance bool
	// OnRemove tells clients that are connected at once when a broker is gone from the
	// list; without it they learn of it when another one is added.
	OnRemove bool
	// Brokers are their URIs at the start, this broker's among them.
	Brokers []string
}

// settleTime is how long the answer to the ConnectionInfo of a client that is asked to
// spread is held back. A Java client moves without a word to its sessions: what they
// have by then is processed, and acknowledged to a broker that does not know it. Before
// the answer it has no session.
const settleTime = 100 * time.Millisecond

// sendAwayTime is how long a client has to read the list before its connection is
// ended.
const sendAwayTime = 200 * time.Millisecond

// errSentAway ends the connection of a client that is to go to another broker.
var errSentAway = errors.New("the client was sent to another broker")

// clusterVersion is the first version that has connectedBrokers and
// rebalanceConnection.
const clusterVersion = 6

// A directory is the list of brokers that the clients of a Server are told of. It is
// safe for concurrent use.
type directory struct {
	o Directory

	mu      sync.Mutex
	brokers []string           // in the order in which the next client gets them
	version uint64             // of the list
	tell    map[*outbox]func() // who hears of changes, and how it is sent away
}

func newDirectory(o Directory) *directory {
	d := &directory{o: o, tell: map[*outbox]func(){}}
	d.brokers = slices.Clone(o.Brokers)
	return d
}

// next is what the next client is told, and the version of the list. So that clients
// that do not choose by chance (randomize=false) spread too, each gets another broker
// as the first, as in ActiveMQ.
func (d *directory) next() (*wire.ConnectionControl, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.nextLocked(), d.version
}

func (d *directory) nextLocked() *wire.ConnectionControl {
	c := &wire.ConnectionControl{ConnectedBrokers: wire.NewText(""), ReconnectTo: wire.NewText(""), RebalanceConnection: d.o.Rebalance}
	if !d.o.Update {
		return c
	}
	c.ConnectedBrokers = wire.NewText(strings.Join(d.brokers, ","))
	if d.o.Rebalance && len(d.brokers) > 1 {
		d.brokers = append(d.brokers[1:], d.brokers[0])
	}
	return c
}

// spreads reports whether a client that connects is asked to choose among several
// brokers. One that comes back is not: it was sent here.
func (d *directory) spreads(comesBack bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.o.Update && d.o.Rebalance && !comesBack && len(d.brokers) > 1
}

// welcome tells a client that has connected of the brokers. sendAway is there for one
// that wants to hear of changes.
func (d *directory) welcome(out *outbox, comesBack bool, sendAway func()) {
	if sendAway != nil && d.o.Update { // else there is nothing to hear
		d.mu.Lock()
		d.tell[out] = sendAway
		d.mu.Unlock()
	}
	for {
		c, version := d.next()
		c.RebalanceConnection = c.RebalanceConnection && !comesBack
		out.post(c)
		d.mu.Lock()
		current := d.version
		d.mu.Unlock()
		if current == version {
			return // else it may have got the newer list before this one
		}
	}
}

// leave forgets a client.
func (d *directory) leave(out *outbox) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tell, out)
}

// A letter tells one client of the list.
type letter struct {
	to       *outbox
	text     *wire.ConnectionControl
	sendAway func() // nil: it may stay
}

// change replaces the list, and returns how many clients were told.
//
// ActiveMQ asks connected clients to spread, too. Java clients then move without an
// interruption that their sessions hear of: what they had prefetched is processed all
// the same. So they are told of the list alone, and where brokers were added the
// connections of that share of them are ended: that they take for what it is, and go
// to another broker.
func (d *directory) change(brokers []string) int {
	var letters []letter
	d.mu.Lock()
	added, removed := lacks(d.brokers, brokers), lacks(brokers, d.brokers)
	if added+removed > 0 {
		d.brokers = slices.Clone(brokers)
		d.version++
	}
	if d.o.Update && (added > 0 || removed > 0 && d.o.OnRemove) {
		away := 0
		if d.o.Rebalance && added > 0 {
			away = share(len(d.tell), added, len(brokers))
		}
		letters = d.lettersLocked(len(d.tell), away)
	}
	d.mu.Unlock()
	post(letters)
	return len(letters)
}

// move sends clients away, most at the most, and returns how many there are that could
// go and how many were sent. dry sends nobody.
func (d *directory) move(most int, dry bool) (could, sent int) {
	var letters []letter
	d.mu.Lock()
	if d.o.Update && len(d.brokers) > 1 {
		could = len(d.tell)
	}
	sent = min(could, most)
	if !dry {
		letters = d.lettersLocked(sent, sent)
	}
	d.mu.Unlock()
	post(letters)
	return could, sent
}

// lettersLocked writes letters to some of the clients, the first of which are sent away.
func (d *directory) lettersLocked(n, away int) []letter {
	var letters []letter
	for out, sendAway := range d.tell {
		if len(letters) == n {
			break
		}
		l := letter{to: out, text: d.nextLocked()}
		l.text.RebalanceConnection = false
		if len(letters) < away {
			l.sendAway = sendAway
		}
		letters = append(letters, l)
	}
	return letters
}

func post(letters []letter) {
	for _, l := range letters {
		l.to.post(l.text)
		if l.sendAway != nil {
			l.sendAway()
		}
	}
}

// share is how many of n clients belong to some of all brokers, to the nearest.
func share(n, some, all int) int { return (2*n*some + all) / (2 * all) }

// lacks counts what of all is not in some.
func lacks(some, all []string) int {
	n := 0
	for _, b := range all {
		if !slices.Contains(some, b) {
			n++
		}
	}
	return n
}

// SetBrokers replaces the list of brokers that clients may use, and tells those that
// are connected, as the Directory says. It returns how many were told.
func (s *Server) SetBrokers(brokers []string) int { return s.directory.change(brokers) }

// MoveClients ends connections of clients that have been told of other brokers, most at
// the most, so that they go there. It returns how many there are that could go and how
// many are sent; dry sends nobody.
func (s *Server) MoveClients(most int, dry bool) (could, sent int) {
	return s.directory.move(most, dry)
}

// welcome answers ConnectionInfo and tells the client of the brokers that it may use.
func (s *session) welcome(c *wire.ConnectionInfo) {
	base := c.BaseCommand
	if !c.Manageable {
		s.answer(&base, nil)
		return
	}
	var sendAway func()
	if c.FaultTolerant && s.settings.Version >= clusterVersion {
		sendAway = func() { s.watch.leaveIn(sendAwayTime) }
	}
	held := sendAway != nil && s.server.directory.spreads(c.FailoverReconnect)
	if !held {
		s.answer(&base, nil)
	}
	s.server.directory.welcome(s.out, c.FailoverReconnect, sendAway)
	if held {
		s.after(settleTime, func() { s.answer(&base, nil) })
	}
}
