package broker

import (
	"context"
	"maps"

	"github.com/nixiemq/nixie/internal/message"
)

// copyBytes is how much of messages is copied by one batch at the most, beside one
// message of any size. It bounds the memory that this needs.
const copyBytes = 1 << 20

// Copy sends copies of messages to a queue, or to a topic's subscriptions; the messages
// stay where they are, whatever their state, and so does their story (R-JMX-01). Those
// that have come after the call are not copied. Each copy has the id and the headers of
// its message and can be had at once, with a failure count that begins anew. That of a
// dead letter is one, too.
//
// Errors: as of [Broker.Move]. On an error the Outcome tells how far it came.
func (b *Broker) Copy(ctx context.Context, from Place, to message.Destination, what Selection) (Outcome, error) {
	var o Outcome
	if err := b.mayHold(to, from, "copy"); err != nil {
		return o, err
	}
	d, err := b.find(from)
	if err != nil {
		return o, err
	}
	w, err := d.wanted(what)
	if err != nil {
		return o, err
	}
	brought := ""
	if !b.forDeadLetters(to) {
		brought = d.name.String()
	}
	newest := b.numbered() - 1
	for at := (Cursor{}); !at.End; {
		page, next, err := d.look(ctx, at, b.o.Limits.BrowseEntries)
		if err != nil {
			return o, err
		}
		at = next
		chosen := page[:0]
		for _, p := range page {
			if full := what.Max > 0 && o.Taken+len(chosen) == what.Max; full {
				at.End = true
				break
			}
			if p.Entry.Position > newest {
				continue
			}
			if meant, _ := w.fits(p.Entry.ID, p.Counter, func() (*message.Message, error) { return b.Header(&p) }); meant {
				chosen = append(chosen, p)
			}
			if ctx.Err() != nil { // a selector may take its time
				return o, context.Cause(ctx)
			}
		}
		if what.Dry {
			o.Taken += len(chosen)
			continue
		}
		for len(chosen) > 0 {
			n, err := b.copySome(ctx, chosen, to, brought)
			if err != nil {
				return o, err
			}
			o.Taken, chosen = o.Taken+n, chosen[n:]
		}
	}
	return o, w.err
}

// copySome copies as many messages as one batch may, and waits until the copies are
// there. brought is what they are told as MovedFrom, where they are dead letters; "": nothing.
func (b *Broker) copySome(ctx context.Context, from []Peek, to message.Destination, brought string) (n int, err error) {
	u := b.newUnit()
	u.relay = true // who sent a message once goes on from where it is
	for bytes := int64(0); n < len(from) && bytes < copyBytes; n++ {
		p := &from[n]
		bytes += int64(p.Entry.SizeBytes)
		if n > 0 && bytes > copyBytes {
			break
		}
		m, err := b.Read(p)
		if err != nil {
			return 0, err
		}
		one := readdressed(m, to)
		if IsDeadLetter(&p.Entry) { // so that it can be redriven from there
			one.OriginalDestination = m.OriginalDestination
			one.Added = maps.Clone(m.Added)
			delete(one.Added, MovedFrom)
			if brought != "" {
				one.Added[MovedFrom] = brought
			}
		}
		copies, err := b.keeps(one)
		if err != nil {
			return 0, err
		}
		for _, c := range copies {
			u.add(c, m)
		}
	}
	answered := make(chan error, 1)
	u.commit(func(err error) { answered <- err })
	select {
	case err := <-answered:
		return n, err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
