package openwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

const (
	// flushBytes is how much the writer collects before it writes. Twice as much is
	// the most it gives to one Write, so that the progress of large frames is seen.
	flushBytes = 64 << 10
	// idleBytes is the largest buffer an idle connection keeps.
	idleBytes = 4 << 10
	// idleItems is the longest list of items an idle connection keeps.
	idleItems = 32
)

// A writer encodes what an outbox holds and writes it. Its fields belong to the
// goroutine of run, but for since.
type writer struct {
	out   *outbox
	conn  io.Writer
	clock clock.Clock
	enc   *wire.Encoder
	outgoing
	buf  []byte
	now  int64 // when items were last taken, Unix milliseconds
	done tally // of what is in buf
	lost int   // deliveries whose message had gone before their turn

	// since is when the present Write began, Unix nanoseconds; 0: there is none.
	since atomic.Int64
}

func newWriter(out *outbox, conn io.Writer, c clock.Clock) *writer {
	return &writer{out: out, conn: conn, clock: c, enc: wire.NewEncoder()}
}

// run writes until everything is written after the outbox's end, until ctx ends,
// or until the connection fails.
func (w *writer) run(ctx context.Context) error {
	var spare []item
	for {
		items, more := w.out.take(spare)
		if len(items) > 0 {
			w.now = w.clock.Now().UnixMilli()
			for i := range items {
				if err := w.item(&items[i]); err != nil {
					return err
				}
				items[i] = item{}
			}
			spare = items
			continue // what has come meanwhile goes along
		}
		if err := w.flush(); err != nil || !more {
			return err
		}
		if cap(spare) > idleItems {
			spare = nil
		}
		if cap(w.buf) > idleBytes {
			w.buf = nil
		}
		select {
		case <-w.out.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// item encodes one item, and writes when enough has come together.
func (w *writer) item(i *item) error {
	w.done.count(i)
	var err error
	switch {
	case i.settings != nil:
		w.enc.Negotiated(*i.settings)
	case i.generation != 0:
		w.outgoing.generation = i.generation
	case i.command != nil:
		if w.buf, err = w.enc.Append(w.buf, i.command); err != nil {
			return fmt.Errorf("encode %T: %w", i.command, err)
		}
	default:
		if err = w.delivery(&i.delivery); err != nil {
			return err
		}
	}
	if len(w.buf) >= flushBytes {
		return w.flush()
	}
	return nil
}

// delivery encodes a dispatch. A message that cannot be encoded is the broker's
// to deal with, and the connection goes on (R-BRK-17).
func (w *writer) delivery(d *broker.Delivery) error {
	if d.Kind == broker.MessageDelivery && d.Message == nil {
		m, err := d.Load()
		switch {
		case errors.Is(err, message.ErrNotFound):
			w.lost++
			w.out.unwritten(d)
			return nil
		case errors.Is(err, message.ErrCorrupt):
			w.out.unwritten(d)
			d.Undispatchable(err)
			return nil
		case err != nil:
			return fmt.Errorf("load message %s: %w", d.Entry.ID, err)
		}
		d.Message = m
	}
	dispatch, err := w.dispatch(d, w.now)
	if err == nil {
		w.buf, err = w.enc.Append(w.buf, dispatch)
	}
	if err != nil {
		if d.Kind != broker.MessageDelivery {
			return fmt.Errorf("encode dispatch: %w", err)
		}
		w.out.unwritten(d)
		d.Undispatchable(err)
	}
	return nil
}

// flush writes what has been encoded.
func (w *writer) flush() error {
	for b := w.buf; len(b) > 0; {
		n := len(b)
		if n > 2*flushBytes { // else a little would be left for a Write of its own
			n = flushBytes
		}
		w.since.Store(w.clock.Now().UnixNano())
		_, err := w.conn.Write(b[:n])
		w.since.Store(0)
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		b = b[n:]
	}
	w.buf = w.buf[:0]
	if cap(w.buf) > 4*flushBytes {
		w.buf = nil
	}
	if w.done != (tally{}) {
		w.out.written(w.done)
		w.done = tally{}
	}
	return nil
}
