package openwire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/queue"
)

// Reasons for which a session ends that need no more words.
var (
	errRefused  = errors.New("the connection was refused")
	errShutdown = errors.New("the client has shut down")
	errHungUp   = errors.New("the client has hung up")
)

// A session is one connection of a client. Its fields belong to the reader, but
// for what is shared as the fields' own types say.
type session struct {
	server *Server
	conn   net.Conn
	log    *slog.Logger
	ctx    context.Context // the connection's root; its cause is why the session ends
	fail   context.CancelCauseFunc
	out    *outbox
	pulse  *pulse
	writer *writer
	helped sync.WaitGroup // what Serve has started

	dec        *wire.Decoder
	socket     *pulseReader
	in, small  *bufio.Reader // before socket; in is small, but while the client sends a lot
	peer       wire.WireFormat
	settings   wire.Settings
	client     *client     // nil until ConnectionInfo
	generation generation  // of the client's connections
	gaps       *gaps       // of a client that has come back; else nil
	named      named       // by the last acknowledgement
	refused    bool        // ConnectionInfo failed, and the end is near
	unasked    func(error) // tells the client of the failure of what it does not wait for
	unsent     func(error) // the same for a send
	watch      watch
}

// named is a producer with its text.
type named struct {
	id   wire.ProducerID
	text string
}

// Serve serves one connection until it ends or ctx does, and closes it. It
// returns when nothing of it is left, and has logged why it ended if that was not
// the client's wish.
func (s *Server) Serve(ctx context.Context, conn net.Conn) {
	n := s.newSession(ctx, conn)
	n.helped.Add(1)
	context.AfterFunc(n.ctx, func() {
		defer n.helped.Done()
		n.conn.Close()
		n.watch.end()
	})
	n.watch.begin()
	n.guard("reader", n.read)
	n.end(ctx)
}

func (s *Server) newSession(ctx context.Context, conn net.Conn) *session {
	ctx, cancel := context.WithCancelCause(ctx)
	n := &session{
		server: s, conn: conn, ctx: ctx, fail: cancel,
		log:   s.o.Log.With(slog.String(keyAddress, conn.RemoteAddr().String())),
		pulse: &pulse{},
		dec:   wire.NewDecoder(),
	}
	n.watch.s = n
	n.out = newOutbox(s.o.Limits, &s.stock, cancel)
	n.writer = newWriter(n.out, conn, s.o.Clock)
	write := func() { n.guard("writer", n.write) }
	n.out.start = func() { n.helped.Go(write) }
	n.socket = &pulseReader{r: conn, pulse: n.pulse}
	n.small = bufio.NewReaderSize(n.socket, readBufferBytes)
	n.in = n.small
	n.unasked = n.tell
	n.unsent = func(err error) { n.tell(sendError(err)) }
	return n
}

// guard runs one of the session's goroutines. Its failure, or its panic, ends the
// session.
func (s *session) guard(name string, run func() error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("openwire session panicked", slog.String(keyPart, name), slog.Any(keyError, p), slog.String("stack", string(debug.Stack())))
			s.fail(fmt.Errorf("%s: panic: %v", name, p))
		}
	}()
	if err := run(); err != nil {
		s.fail(err)
	}
}

// read carries out the states of the connection until there is no next one.
func (s *session) read() error {
	for next := (*session).hello; next != nil; {
		var err error
		if next, err = next(s); err != nil {
			return err
		}
	}
	return nil
}

// write writes what waits, and ends the session when nothing will follow.
func (s *session) write() error {
	over, err := s.writer.run()
	if over {
		return errShutdown
	}
	return err
}

// end takes the client's connection back, writes what is left to be written to a
// client that listens, and waits for the goroutines.
func (s *session) end(server context.Context) {
	why := context.Cause(s.ctx)
	cause, text := message.ConnectionLost, ""
	switch {
	case why == nil: // the client has shut down: it gets its last answers
		cause, text = message.Closed, "connection closed"
	case server.Err() != nil:
		cause, text = message.BrokerStopped, "the broker stops"
	case errors.Is(why, errSentAway): // our doing, too: no message has failed
		cause, text = message.BrokerStopped, why.Error()
	default:
		text = why.Error()
	}
	s.guard("end", func() error {
		s.closeClient(cause, text, queue.UnknownLast)
		return nil
	})
	s.out.finish()
	s.helped.Wait()
	if s.in != s.small {
		s.server.stock.giveReader(s.in)
	}
	if n := s.writer.lost; n > 0 {
		s.log.LogAttrs(server, slog.LevelDebug, "dispatches were left out: their messages had gone", slog.Int(keyCount, n))
	}
	if why != nil && server.Err() == nil {
		s.report(why)
	}
}

// report logs why the session ended before its time.
func (s *session) report(why error) {
	level := slog.LevelWarn
	var network net.Error
	switch {
	case errors.Is(why, errHungUp), errors.Is(why, errRefused), errors.Is(why, errSentAway):
		level = slog.LevelDebug
	case errors.Is(why, io.ErrUnexpectedEOF), errors.Is(why, net.ErrClosed), errors.As(why, &network):
		level = slog.LevelInfo
	}
	s.log.LogAttrs(context.Background(), level, "openwire connection ended", slog.Any(keyError, why))
}

// ends reports whether the failure of a command is that of the session, which is at its
// end. A client learns of that by the end of the connection, and not by an exception that
// would be its application's: one that fails over asks the next broker, and only a broker
// that can carry the command out has an answer.
func (s *session) ends(err error) bool { return err != nil && s.ctx.Err() != nil }

// tell reports the failure of a command that nobody waits for.
func (s *session) tell(err error) {
	if err != nil && !s.ends(err) {
		s.out.post(&wire.ConnectionError{Exception: throwable(err)})
	}
}

// answer reports what became of a command (OpenWire 9.1).
func (s *session) answer(c *wire.BaseCommand, err error) {
	switch {
	case s.ends(err):
	case !c.ResponseRequired:
		s.tell(err)
	case err != nil:
		s.out.post(&wire.ExceptionResponse{CorrelationID: c.CommandID, Exception: throwable(err)})
	default:
		s.out.post(&wire.Response{CorrelationID: c.CommandID})
	}
}

// later is the function that answers a command, for the broker to call.
func (s *session) later(c *wire.BaseCommand) func(error) {
	if !c.ResponseRequired {
		return s.unasked
	}
	id := c.CommandID
	return func(err error) { s.answer(&wire.BaseCommand{CommandID: id, ResponseRequired: true}, err) }
}
