package openwire

import (
	"bufio"
	"io"
	"sync"
)

const (
	// readBufferBytes is how much is read from the socket at once, and
	// largeReadBytes how much of a client that sends more than that.
	readBufferBytes = 2 << 10
	largeReadBytes  = 32 << 10
	// stockBytes is the largest buffer that is kept for use again.
	stockBytes = 2 * flushBytes
	// pieceItems is how many items one piece of a list holds.
	pieceItems = 32
)

// A stock is memory that connections need only while they have something to read
// or to write: whoever comes to rest gives it back for the next one. The zero value
// is ready; it is safe for concurrent use.
type stock struct{ pieces, buffers, readers sync.Pool }

// A piece is a part of a list of items that wait.
type piece struct {
	items [pieceItems]item
	n     int
	next  *piece
}

func (s *stock) piece() *piece {
	if p, ok := s.pieces.Get().(*piece); ok {
		return p
	}
	return new(piece)
}

// givePiece takes a piece back whose items were cleared.
func (s *stock) givePiece(p *piece) {
	p.n, p.next = 0, nil
	s.pieces.Put(p)
}

// A buffer is bytes to write.
type buffer struct{ b []byte }

func (s *stock) buffer() *buffer {
	if b, ok := s.buffers.Get().(*buffer); ok {
		return b
	}
	return &buffer{}
}

func (s *stock) giveBuffer(b *buffer) {
	if cap(b.b) <= stockBytes {
		b.b = b.b[:0]
		s.buffers.Put(b)
	}
}

// largeReader is a large buffer before r.
func (s *stock) largeReader(r io.Reader) *bufio.Reader {
	if b, ok := s.readers.Get().(*bufio.Reader); ok {
		b.Reset(r)
		return b
	}
	return bufio.NewReaderSize(r, largeReadBytes)
}

// giveReader takes a large buffer back in which nothing is left.
func (s *stock) giveReader(b *bufio.Reader) {
	b.Reset(nil)
	s.readers.Put(b)
}
