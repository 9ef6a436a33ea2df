package openwire

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// flushBytes is how much the writer collects before it writes. Twice as much is
// the most it gives to one Write, so that the progress of large frames is seen.
const flushBytes = 64 << 10

// A writer encodes what an outbox holds and writes it. It has a goroutine only while
// there is something to write. Its fields belong to run, but for since.
type writer struct {
	out   *outbox
	conn  io.Writer
	clock clock.Clock
	enc   *wire.Encoder
	outgoing
	buf  *buffer // what is encoded and not yet written; nil: nothing
	now  int64   // when items were last taken, Unix milliseconds
	done tally   // of what is in buf
	lost int     // deliveries whose message had gone before their turn

	// since is when the present Write began, Unix nanoseconds; 0: there is none.
	since atomic.Int64
}

func newWriter(out *outbox, conn io.Writer, c clock.Clock) *writer {
	return &writer{out: out, conn: conn, clock: c, enc: wire.NewEncoder()}
}

// run writes until nothing waits, or until the connection fails. over says that
// everything is written and nothing will follow. It runs once at a time: whom the
// outbox starts.
func (w *writer) run() (over bool, err error) {
	for {
		if taken := w.out.take(); taken != nil {
			w.now = w.clock.Now().UnixMilli()
			for taken != nil {
				for i := range taken.items[:taken.n] {
					if err := w.item(&taken.items[i]); err != nil {
						return false, err
					}
					taken.items[i] = item{}
				}
				next := taken.next
				w.out.stock.givePiece(taken)
				taken = next
			}
			continue // what has come meanwhile goes along
		}
		if err := w.flush(); err != nil {
			return false, err
		}
		if rests, over := w.out.rest(); rests {
			return over, nil
		}
	}
}

// item encodes one item, and writes when enough has come together.
func (w *writer) item(i *item) error {
	w.done.count(i)
	if w.buf == nil {
		w.buf = w.out.stock.buffer()
	}
	var err error
	switch {
	case i.settings != nil:
		w.enc.Negotiated(*i.settings)
	case i.generation != 0:
		w.outgoing.generation = i.generation
	case i.command != nil:
		if w.buf.b, err = w.enc.Append(w.buf.b, i.command); err != nil {
			return fmt.Errorf("encode %T: %w", i.command, err)
		}
	default:
		if err = w.delivery(&i.delivery); err != nil {
			return err
		}
	}
	if len(w.buf.b) >= flushBytes {
		return w.flush()
	}
	return nil
}

// delivery encodes a dispatch. A message that cannot be encoded is the broker's
// to deal with, and the connection goes on (R-BRK-17).
func (w *writer) delivery(d *broker.Delivery) error {
	if d.Kind == broker.CloseConsumer {
		return w.closeConsumer(d.Consumer)
	}
	if d.Kind == broker.MessageDelivery && d.Message == nil {
		m, err := d.Load()
		switch {
		case errors.Is(err, message.ErrNotFound):
			w.lost++ // then it has left, and Undispatchable does nothing, or it is missing
			fallthrough
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
		w.buf.b, err = w.enc.Append(w.buf.b, dispatch)
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

// closeConsumer asks the client to close a consumer (R-BRK-40).
func (w *writer) closeConsumer(consumer string) error {
	id, err := wire.ParseConsumerID(consumer)
	if err == nil {
		w.buf.b, err = w.enc.Append(w.buf.b, &wire.ConsumerControl{ConsumerID: &id, Close: true})
	}
	if err != nil {
		return fmt.Errorf("close consumer %s: %w", consumer, err)
	}
	return nil
}

// flush writes what has been encoded.
func (w *writer) flush() error {
	if w.buf == nil {
		return nil
	}
	for b := w.buf.b; len(b) > 0; {
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
	w.out.stock.giveBuffer(w.buf)
	w.buf = nil
	if w.done != (tally{}) {
		w.out.written(w.done)
		w.done = tally{}
	}
	return nil
}
