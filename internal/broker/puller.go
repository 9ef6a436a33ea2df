package broker

import (
	"sync"
	"time"

	"github.com/nixiemq/nixie/internal/queue"
)

// A puller stands between the queues of a consumer of several and its client, for the
// time in which the consumer pulls (prefetch 0). What the client wants is one message,
// or one answer that there is none, whichever queue it comes from (R-CLIENT-50); a
// queue knows of itself alone. So the queues are asked one after another whether they
// have a message now. If none has, all are asked to wait, and those that have not
// answered when the first does are told that nothing is wanted any more. A message
// that one gave at that very time goes to the client too, which keeps it for its next
// receive. It is safe for concurrent use.
type puller struct {
	k    *consumer
	sink Sink

	mu      sync.Mutex
	wishes  []int64               // Pull.Until of what the client wants; the first is under way
	toAsk   []*destination        // for a message that they have now
	asked   map[*destination]bool // and have not answered
	waiting bool                  // all were asked to wait
	begin   int                   // whom the next wish asks first
}

func newPuller(k *consumer) *puller {
	return &puller{k: k, sink: k.c.sink, asked: map[*destination]bool{}}
}

// A request is what a puller tells a queue.
type request struct {
	to   *destination
	pull queue.Pull
}

// tell tells the queues. One that is gone answers by that.
func (p *puller) tell(all []request) {
	for _, r := range all {
		r.pull.Consumer = p.k.spec.ID
		if !r.to.box.force(work{command: r.pull}) && !r.pull.Stop {
			p.Deliver(Delivery{Kind: NothingToPull, Consumer: p.k.spec.ID, source: r.to})
		}
	}
}

// want is a pull of the client.
func (p *puller) want(until int64) {
	places := p.k.all()
	p.mu.Lock()
	p.wishes = append(p.wishes, until)
	var all []request
	if len(p.wishes) == 1 {
		all = p.startLocked(places)
	}
	p.mu.Unlock()
	p.tell(all)
	switch {
	case len(places) > 0 || until == 0:
	case until < 0:
		p.lapse(until)
	default: // there is no queue yet to say when the time has passed
		b := p.k.c.b
		b.running.Go(func() {
			wake, stop := b.o.Clock.At(time.UnixMilli(until))
			defer stop()
			select {
			case <-wake:
				p.lapse(until)
			case <-p.k.c.ctx.Done():
			}
		})
	}
}

// lapse ends a wish that no queue was asked for.
func (p *puller) lapse(until int64) {
	p.mu.Lock()
	over := len(p.wishes) > 0 && p.wishes[0] == until && len(p.asked) == 0
	if over {
		p.endLocked(nil)
	}
	p.mu.Unlock()
	if over {
		p.sink.Deliver(Delivery{Kind: NothingToPull, Consumer: p.k.spec.ID})
	}
}

// startLocked begins with the first wish.
func (p *puller) startLocked(places []*destination) []request {
	p.waiting = false
	clear(p.asked)
	p.toAsk = p.toAsk[:0]
	for i := range places {
		p.toAsk = append(p.toAsk, places[(p.begin+i)%len(places)])
	}
	if len(places) == 0 {
		p.waiting = true // for those that come to be
		return nil
	}
	return p.nextLocked()
}

// nextLocked asks the next queue.
func (p *puller) nextLocked() []request {
	to := p.toAsk[0]
	p.toAsk = p.toAsk[1:]
	p.asked[to] = true
	return []request{{to, queue.Pull{Until: -1}}}
}

// joined asks a queue that has come to be.
func (p *puller) joined(d *destination) {
	p.mu.Lock()
	var all []request
	if p.waiting && len(p.wishes) > 0 {
		p.asked[d] = true
		all = []request{{d, queue.Pull{Until: p.wishes[0]}}}
	}
	p.mu.Unlock()
	p.tell(all)
}

// reset forgets what was wanted: the consumer has another window, and the queues have
// forgotten it too.
func (p *puller) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wishes, p.toAsk, p.waiting = nil, nil, false
	clear(p.asked)
}

// Deliver implements Sink.
func (p *puller) Deliver(d Delivery) {
	places := p.k.all()
	p.mu.Lock()
	var stop, all []request
	pass := true
	switch {
	case d.Kind == NothingToPull:
		all, pass = p.nothingLocked(d.source, places)
	case len(p.wishes) > 0:
		delete(p.asked, d.source)
		for other := range p.asked {
			stop = append(stop, request{other, queue.Pull{Stop: true}})
		}
		for i, place := range places {
			if place == d.source {
				p.begin = i + 1
			}
		}
		all = p.endLocked(places)
	}
	p.mu.Unlock()
	p.tell(stop) // before the client can pull again
	if pass {
		p.sink.Deliver(d)
	}
	p.tell(all)
}

// nothingLocked takes in that a queue has nothing. pass says that the client is to
// know: none has.
func (p *puller) nothingLocked(from *destination, places []*destination) (all []request, pass bool) {
	if len(p.wishes) == 0 || !p.asked[from] {
		return nil, false // it was told in vain that nothing is wanted any more
	}
	delete(p.asked, from)
	until := p.wishes[0]
	switch {
	case len(p.toAsk) > 0:
		return p.nextLocked(), false
	case len(p.asked) > 0:
		return nil, false
	case p.waiting || until < 0:
		return p.endLocked(places), true
	}
	p.waiting = true
	for _, d := range places {
		p.asked[d] = true
		all = append(all, request{d, queue.Pull{Until: until}})
	}
	return all, false
}

// endLocked ends the wish that is under way, and begins with the next.
func (p *puller) endLocked(places []*destination) []request {
	p.wishes = p.wishes[1:]
	p.waiting = false
	clear(p.asked)
	p.toAsk = p.toAsk[:0]
	if len(p.wishes) > 0 {
		return p.startLocked(places)
	}
	return nil
}
