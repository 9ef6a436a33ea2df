package openwire

import (
	"errors"
	"fmt"
	"io"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A state is what a connection does until it comes into another one, which it
// returns; nil after the last.
type state func(*session) (state, error)

// hello announces what we can do, waits for the peer to do so, and computes what
// both agree on (OpenWire 2). The watch keeps the time.
func (s *session) hello() (state, error) {
	info, err := s.server.format.Info()
	if err != nil {
		return nil, err
	}
	s.out.post(info)
	frame, err := wire.ReadFrame(s.in, wire.MaxFirstFrameBytes)
	switch {
	case err == nil:
	case errors.Is(err, message.ErrInvalid), errors.Is(err, message.ErrOverLimit):
		return nil, fmt.Errorf("first frame: %w", err)
	default: // whoever only looks whether someone listens
		return nil, fmt.Errorf("first frame: %w: %w", errHungUp, err)
	}
	ds, err := s.dec.Decode(frame)
	if err != nil {
		return nil, err
	}
	theirs, ok := ds.(*wire.WireFormatInfo)
	if !ok {
		return nil, fmt.Errorf("first frame is a %T: %w", ds, message.ErrInvalid)
	}
	if s.peer, err = wire.ParseWireFormat(theirs); err != nil {
		return nil, err
	}
	if s.settings, err = wire.Negotiate(s.server.format, s.peer); err != nil {
		return nil, err
	}
	s.dec.Negotiated(s.settings)
	s.out.negotiated(s.settings)
	s.out.post(&wire.BrokerInfo{
		BrokerID:   &wire.BrokerID{Value: s.server.o.BrokerID},
		BrokerURL:  wire.NewText(s.server.o.BrokerURL),
		BrokerName: wire.NewText(s.server.o.BrokerName),
		// Java clients look at this only if they are brokers (OpenWire 9.4).
		NetworkProperties: wire.TextOrNull(s.server.o.wishes()),
	})
	s.watch.negotiated(s.settings)
	return (*session).commands, nil
}

// commands carries out what the client sends, until it shuts down.
func (s *session) commands() (state, error) {
	for {
		ds, err := s.command()
		if err == nil {
			err = s.carryOut(ds)
			s.dec.Reuse(ds)
		}
		if err == nil {
			err = s.out.wait(s.ctx)
		}
		s.pulse.signs.Add(1)
		switch {
		case errors.Is(err, errShutdown):
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
}

// command reads the next command. One that fits into the buffer is decoded there.
func (s *session) command() (wire.DataStructure, error) {
	s.fit()
	s.pulse.waiting.Store(true)
	frame, whole, err := wire.PeekFrame(s.in, s.settings.MaxFrame)
	if err == nil && !whole {
		frame, err = wire.ReadFrame(s.in, s.settings.MaxFrame)
	}
	s.pulse.waiting.Store(false)
	var large *wire.TooLarge
	switch {
	case s.client == nil && errors.Is(err, io.EOF):
		return nil, errShutdown // nothing of the client's is left: as good as a ShutdownInfo
	case s.client != nil && errors.As(err, &large):
		s.tooLarge(large)
		return nil, fmt.Errorf("read: %w", err)
	case err != nil:
		return nil, fmt.Errorf("read: %w", hungUp(err))
	case !whole:
		return s.dec.Decode(frame)
	}
	ds, err := s.dec.DecodeLent(frame)
	_, _ = s.in.Discard(wire.SizeBytes + len(frame)) // it is in the buffer
	return ds, err
}

// beginBytes is as much of a frame as tells of which command it is.
const beginBytes = 64

// tooLarge tells a client that its message is too large, and reads on until the
// connection ends a little later. A client of failover: whose frame is not read to its end,
// or not answered, connects anew and sends it again, for ever. What comes behind the frame
// cannot be decoded; of that the client repeats what it has no answer to.
func (s *session) tooLarge(frame *wire.TooLarge) {
	s.pulse.waiting.Store(true) // for a peer that announces much and sends nothing
	start := make([]byte, min(frame.Size, beginBytes))
	if _, err := io.ReadFull(s.in, start); err != nil {
		return
	}
	c := s.dec.Begins(start)
	if c == nil {
		return
	}
	if _, err := io.CopyN(io.Discard, s.in, frame.Size-int64(len(start))); err != nil {
		return
	}
	s.answer(c, exceptionf(classJMS, "%v", frame))
	s.after(refusalDelay, func() { s.fail(fmt.Errorf("read: %w", frame)) })
	_, _ = io.Copy(io.Discard, s.in)
}

// fit takes a large buffer to read into where the client sends more at once than
// the small one holds, and gives it back where it does not any more.
func (s *session) fit() {
	large := s.in != s.small
	switch {
	case s.in.Buffered() > 0:
		return
	case !large && s.socket.most >= readBufferBytes:
		s.in = s.server.stock.largeReader(s.socket)
	case large && s.socket.most < readBufferBytes:
		s.server.stock.giveReader(s.in)
		s.in = s.small
	}
	s.socket.most = 0
}

// hungUp tells the end of the stream between two frames from one within a frame.
func hungUp(err error) error {
	if errors.Is(err, io.EOF) {
		return errHungUp
	}
	return err
}

// Speaks names the protocol of a client by the first bytes that it sends, for the log of
// a listener that could not hand it over; "" where none is known that begins so.
func Speaks(first []byte) string { return wire.Speaks(first) }
