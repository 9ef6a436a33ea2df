package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/nixiemq/nixie/internal/message"
)

// TestReadFrame checks sizes, ends and limits (OpenWire 1).
func TestReadFrame(t *testing.T) {
	t.Parallel()
	big := bytes.Repeat([]byte("0123456789"), 30_000)
	tests := map[string]struct {
		stream []byte
		limit  int64
		want   []byte
		err    error
	}{
		"null frame":             {join(int32(1), 0), 100, []byte{0}, nil},
		"frame of the limit":     {join(int32(3), "abc"), 3, []byte("abc"), nil},
		"frame in several steps": {join(int32(len(big)), big), 1 << 20, big, nil},
		"end between frames":     {nil, 100, nil, io.EOF},
		"end in the size":        {join(0, 0, 0), 100, nil, io.ErrUnexpectedEOF},
		"end in the first step":  {join(int32(3), "ab"), 100, nil, io.ErrUnexpectedEOF},
		"end before the body":    {join(int32(3)), 100, nil, io.ErrUnexpectedEOF},
		"end at the step's end":  {join(int32(len(big)), big[:firstStepBytes]), 1 << 20, nil, io.ErrUnexpectedEOF},
		"negative size":          {join(int32(-1), "abc"), 100, nil, message.ErrInvalid},
		"size zero":              {join(int32(0)), 100, nil, message.ErrInvalid},
		"size above the limit":   {join(int32(4), "abcd"), 3, nil, message.ErrOverLimit},
		"text of another proto":  {[]byte("GET / HTTP/1.1\r\n\r\n"), 1 << 20, nil, message.ErrInvalid},
		"largest size, no limit": {join(int32(1<<31-1), "abcd"), 1 << 62, nil, io.ErrUnexpectedEOF},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readers := map[string]io.Reader{
				"plain":    bytes.NewReader(test.stream),
				"buffered": bufio.NewReader(bytes.NewReader(test.stream)),
				"bytewise": iotest.OneByteReader(bytes.NewReader(test.stream)),
			}
			for kind, r := range readers {
				got, err := ReadFrame(r, test.limit)
				if !errors.Is(err, test.err) || !bytes.Equal(got, test.want) {
					t.Errorf("%s: got %.20q, %v, want %.20q, %v", kind, got, err, test.want, test.err)
				}
			}
			for _, size := range []int{16, 1 << 20} {
				r := bufio.NewReaderSize(iotest.OneByteReader(bytes.NewReader(test.stream)), size)
				got, whole, err := PeekFrame(r, test.limit)
				if err == nil && !whole {
					got, err = ReadFrame(r, test.limit)
				} else if _, err := r.Discard(r.Buffered()); err != nil {
					t.Error(err)
				}
				if !errors.Is(err, test.err) || !bytes.Equal(got, test.want) || whole && len(got)+SizeBytes > r.Size() {
					t.Errorf("peeked with a buffer of %d: got %.20q, %t, %v, want %.20q, %v", size, got, whole, err, test.want, test.err)
				}
			}
		})
	}
}

// TestReadFrameAllocatesByArrival checks that a size alone costs nothing.
func TestReadFrameAllocatesByArrival(t *testing.T) {
	stream := join(int32(1<<30), make([]byte, 100_000))
	n := allocated(func() {
		if _, err := ReadFrame(bytes.NewReader(stream), 1<<30); err == nil {
			t.Error("no error")
		}
	})
	if n > 1<<20 {
		t.Errorf("allocated %d bytes for %d", n, len(stream))
	}
}

// TestReadFramePassesErrorsOn checks that the caller sees the reader's error.
func TestReadFramePassesErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	for _, have := range [][]byte{nil, {0, 0}, {0, 0, 0, 9}, {0, 0, 0, 9, 1}} {
		r := io.MultiReader(bytes.NewReader(have), iotest.ErrReader(broken))
		if _, err := ReadFrame(r, 100); !errors.Is(err, broken) {
			t.Errorf("after %x: %v", have, err)
		}
		r = io.MultiReader(bytes.NewReader(have), iotest.ErrReader(broken))
		if _, _, err := PeekFrame(bufio.NewReader(r), 100); !errors.Is(err, broken) {
			t.Errorf("peeked, after %x: %v", have, err)
		}
	}
}

// TestSpeaks tells OpenWire by its first frame, and others by how they begin.
func TestSpeaks(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]string{
		"\x00\x00\x00\xf0\x01": "OpenWire", "\x00\x00\x00\xf0\x03": "", "GET /": "HTTP", "STOMP": "STOMP", "AMQP\x00": "AMQP", "\xff\xff\xff\xff\x01": "", "\x00\x00": "", "": "",
	} {
		if got := Speaks([]byte(first)); got != want {
			t.Errorf("%q: %q, want %q", first, got, want)
		}
	}
}
