package jms

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A dialer opens a network connection.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// A link is one network connection to a broker, negotiated. It has three
// goroutines: a reader, which owns the decoder; a writer, which owns the encoder;
// and a monitor, which owns the time limits. All end when it breaks or is closed.
//
// What it writes it takes from a source, which keeps what was not yet written when
// the link breaks.
type link struct {
	conn     net.Conn
	settings wire.Settings
	endpoint endpoint
	clock    clock.Clock
	enc      *wire.Encoder
	dec      *wire.Decoder
	in       *bufio.Reader

	// Guarded by the connection's mutex:
	first []item           // to be written before anything else
	hello *wire.BrokerInfo // heard while the link was nobody's

	received func(wire.DataStructure) // on the reader; must not wait
	source   source
	wake     chan struct{} // holds one: something is to be written, or the link is to end after writing
	ending   atomic.Bool   // end when all is written

	pulse   atomic.Uint64 // bytes and commands that arrived
	written atomic.Uint64 // commands handed to the socket

	once   sync.Once
	broken chan struct{} // closed when the link has ended
	why    error         // set before broken is closed
	parts  sync.WaitGroup
}

// A source is where a link takes commands from.
type source interface {
	// take gives what is to be written next; the caller calls written or unwritten
	// for all of it before it takes more.
	take() []item
	written()
	unwritten()
	// quiet is called when nothing was written for a while: a KeepAliveInfo is due.
	quiet()
}

// An item is a command to be written.
type item struct {
	cmd    wire.DataStructure
	failed func(error) // told when the command has no form on the wire; may be nil
	skip   func() bool // asked when its turn has come: true leaves it out; may be nil
}

// dial connects to an endpoint and negotiates (OpenWire 2). The context bounds
// all of it.
func dial(ctx context.Context, e endpoint, d dialer, secure *tls.Config, c clock.Clock) (*link, error) {
	if e.o.connectionTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.o.connectionTimeout)
		defer cancel()
	}
	conn, err := d(ctx, "tcp", e.address)
	if err != nil {
		return nil, &Error{Op: "connect to " + e.uri, Kind: ErrUnavailable, Err: err}
	}
	tune(conn, e.o)
	if e.tls {
		t := tls.Client(conn, tlsConfig(e, secure))
		if err := t.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, &Error{Op: "connect to " + e.uri, Kind: ErrUnavailable, Err: err}
		}
		conn = t
	}
	l := &link{conn: conn, endpoint: e, clock: c, enc: wire.NewEncoder(), dec: wire.NewDecoder(), wake: make(chan struct{}, 1), broken: make(chan struct{})}
	l.in = bufio.NewReaderSize(&pulseReader{conn, &l.pulse}, readBufferBytes)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = l.negotiate()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, &Error{Op: "negotiate with " + e.uri, Kind: ErrUnavailable, Err: err}
	}
	return l, nil
}

const readBufferBytes = 32 << 10

func tlsConfig(e endpoint, own *tls.Config) *tls.Config {
	c := &tls.Config{}
	if own != nil {
		c = own.Clone()
	}
	if c.ServerName == "" {
		c.ServerName, _, _ = net.SplitHostPort(e.address)
	}
	if !e.o.verifyHostName && !c.InsecureSkipVerify {
		c.InsecureSkipVerify = true // the chain is still verified, below, but not the name
		c.VerifyConnection = verifyChain(c)
	}
	return c
}

// tune sets what the options ask of the socket. A socket that refuses works all
// the same.
func tune(conn net.Conn, o transportOptions) {
	t, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = t.SetNoDelay(o.noDelay)
	_ = t.SetKeepAlive(o.keepAlive)
	if o.bufferBytes > 0 {
		_ = t.SetReadBuffer(o.bufferBytes)
		_ = t.SetWriteBuffer(o.bufferBytes)
	}
	if o.linger >= 0 {
		_ = t.SetLinger(o.linger)
	}
}

// negotiate announces what we can do and reads what the broker can. Both speak at
// once, so neither waits for the other's first.
func (l *link) negotiate() (err error) {
	info, err := l.endpoint.o.format.Info()
	if err != nil {
		return err
	}
	frame, err := l.enc.Append(nil, info)
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := l.conn.Write(frame)
		sent <- err
	}()
	defer func() {
		if err != nil {
			l.conn.Close() // frees the Write
		}
		if werr := <-sent; err == nil {
			err = werr
		}
	}()
	body, err := wire.ReadFrame(l.in, wire.MaxFirstFrameBytes)
	if err != nil {
		return err
	}
	ds, err := l.dec.Decode(body)
	if err != nil {
		return err
	}
	theirs, ok := ds.(*wire.WireFormatInfo)
	if !ok {
		return fmt.Errorf("first frame is a %T: %w", ds, message.ErrInvalid)
	}
	peer, err := wire.ParseWireFormat(theirs)
	if err != nil {
		return err
	}
	if l.settings, err = wire.Negotiate(l.endpoint.o.format, peer); err != nil {
		return err
	}
	l.enc.Negotiated(l.settings)
	l.dec.Negotiated(l.settings)
	return nil
}

// start begins to read and write. ended is called once, on a goroutine of its own
// choice, when the link has broken; not after close.
func (l *link) start(s source, received func(wire.DataStructure), ended func(error)) {
	l.source, l.received = s, received
	l.parts.Go(func() { l.guard(l.read) })
	l.parts.Go(func() { l.guard(l.write) })
	l.parts.Go(func() {
		l.monitor()
		if !errors.Is(l.why, errLinkClosed) {
			ended(l.why)
		}
	})
}

// errLinkClosed is why a link ends that we close ourselves.
var errLinkClosed = errors.New("closed by this side")

func (l *link) guard(run func() error) {
	if err := run(); err != nil {
		l.end(err)
	}
}

// end breaks the link. Only the first reason counts.
func (l *link) end(why error) {
	l.once.Do(func() {
		l.why = why
		close(l.broken)
		l.conn.Close()
	})
}

// close ends the link and waits until nothing of it is left. The caller must not be
// one of its goroutines.
func (l *link) close() {
	l.end(errLinkClosed)
	l.parts.Wait()
}

// finish lets the link end when all there is has been written, or at the latest
// when ctx ends.
func (l *link) finish(ctx context.Context) {
	l.ending.Store(true)
	l.poke()
	select {
	case <-l.broken:
	case <-ctx.Done():
	}
	l.close()
}

// poke tells the writer that there is something to write.
func (l *link) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *link) read() error {
	for {
		frame, err := wire.ReadFrame(l.in, l.settings.MaxFrame)
		if err != nil {
			return err
		}
		ds, err := l.dec.Decode(frame)
		if err != nil {
			return err
		}
		l.pulse.Add(1)
		if ds != nil {
			l.received(ds)
		}
	}
}

// batchBytes is how much is encoded before it is written.
const batchBytes = 64 << 10

func (l *link) write() error {
	var buf []byte
	for {
		ending := l.ending.Load()
		items := l.source.take()
		if len(items) == 0 {
			if ending {
				return errLinkClosed
			}
			select {
			case <-l.wake:
				continue
			case <-l.broken:
				return nil
			}
		}
		for len(items) > 0 {
			buf = buf[:0]
			for len(items) > 0 && len(buf) < batchBytes {
				it := items[0]
				items = items[1:]
				if it.skip != nil && it.skip() {
					continue
				}
				var err error
				if buf, err = l.enc.Append(buf, it.cmd); err != nil && it.failed != nil {
					it.failed(err)
				}
			}
			if _, err := l.conn.Write(buf); err != nil {
				l.source.unwritten()
				return err
			}
			l.written.Add(1)
		}
		l.source.written()
		if cap(buf) > 16*batchBytes {
			buf = nil
		}
	}
}

// monitor is the inactivity monitor (OpenWire 3.4): keep-alives, and the end of a
// link that is silent.
func (l *link) monitor() {
	silence := l.settings.MaxInactivityDuration
	if silence <= 0 {
		<-l.broken
		return
	}
	pause := max(silence/3, time.Millisecond)
	start := l.clock.Now().Add(l.settings.InitialDelay)
	nextRead, nextSend := start, start
	sent, signs, first := l.written.Load(), uint64(0), true
	for {
		at := nextSend
		if nextRead.Before(at) {
			at = nextRead
		}
		wake, stop := l.clock.At(at)
		select {
		case <-wake:
		case <-l.broken:
			stop()
			return
		}
		now := l.clock.Now()
		if !now.Before(nextSend) {
			nextSend = now.Add(pause)
			if n := l.written.Load(); n == sent {
				l.source.quiet()
			} else {
				sent = n
			}
		}
		if !now.Before(nextRead) {
			nextRead = now.Add(silence)
			n := l.pulse.Load()
			if n == signs && !first {
				l.end(fmt.Errorf("nothing was heard from %s for %v", l.endpoint.uri, silence))
				return
			}
			signs, first = n, false
		}
	}
}

// A pulseReader counts what arrives.
type pulseReader struct {
	net.Conn
	pulse *atomic.Uint64
}

func (r *pulseReader) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.pulse.Add(uint64(n))
	return n, err
}
