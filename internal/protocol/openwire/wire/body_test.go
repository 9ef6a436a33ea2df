package wire

import (
	"bytes"
	"compress/zlib"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nixiemq/nixie/internal/message"
)

// TestBodies writes and reads a body of each kind, plain and compressed
// (OpenWire 7.1, 7.2).
func TestBodies(t *testing.T) {
	t.Parallel()
	stream := List{nil, true, int8(1), Char('x'), int16(2), int32(3), int64(4), 5.5, float32(6.5), "é", []byte{7}, strings.Repeat("z", 9000)}
	streamBody, err := AppendStreamBody(nil, stream)
	if err != nil {
		t.Fatal(err)
	}
	mapBody, err := AppendMapBody(nil, everyType)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		content []byte
		want    Body
	}{
		"plain":      {nil, Body{Kind: message.PlainBody}},
		"blob":       {nil, Body{Kind: message.BlobBody}},
		"text":       {AppendTextBody(nil, "a\x00\U0001F600"), Body{Kind: message.TextBody, Text: NewText("a\x00\U0001F600")}},
		"empty text": {AppendTextBody(nil, ""), Body{Kind: message.TextBody, Text: NewText("")}},
		"null text":  {nil, Body{Kind: message.TextBody}},
		"bytes":      {[]byte("abc"), Body{Kind: message.BytesBody, Bytes: []byte("abc")}},
		"no bytes":   {nil, Body{Kind: message.BytesBody}},
		"object":     {[]byte{0xac, 0xed, 0, 5}, Body{Kind: message.ObjectBody, Bytes: []byte{0xac, 0xed, 0, 5}}},
		"map":        {mapBody, Body{Kind: message.MapBody, Map: everyType}},
		"empty map":  {nil, Body{Kind: message.MapBody}},
		"stream":     {streamBody, Body{Kind: message.StreamBody, Stream: stream}},
		"no stream":  {nil, Body{Kind: message.StreamBody}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packed, err := Deflate(test.want.Kind, test.content)
			if err != nil {
				t.Fatal(err)
			}
			for compressed, content := range map[bool][]byte{false: test.content, true: packed} {
				got, err := DecodeBody(test.want.Kind, content, compressed, 1<<20)
				if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
					t.Errorf("compressed %t: error %v (-want +got):\n%s", compressed, err, diff)
				}
			}
		})
	}
}

// TestEmptyBodies checks what is sent for nothing (OpenWire 7.1).
func TestEmptyBodies(t *testing.T) {
	t.Parallel()
	if b, err := AppendMapBody(nil, Map{}); b != nil || err != nil {
		t.Errorf("empty map is %x, %v", b, err)
	}
	if b, err := AppendStreamBody(nil, nil); b != nil || err != nil {
		t.Errorf("empty stream is %x, %v", b, err)
	}
	if b := AppendTextBody(nil, ""); !bytes.Equal(b, join(int32(0))) {
		t.Errorf("empty text is %x", b)
	}
	if b, err := Deflate(message.BytesBody, []byte{}); err != nil || !bytes.HasPrefix(b, join(int32(0))) {
		t.Errorf("empty bytes are %x, %v", b, err)
	}
}

func deflated(t *testing.T, prefix, data []byte) []byte {
	t.Helper()
	out := bytes.NewBuffer(prefix)
	z := zlib.NewWriter(out)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestInflate checks limits and the surplus of Java's bytes messages
// (OpenWire 7.2, trap 5).
func TestInflate(t *testing.T) {
	t.Parallel()
	zeros := make([]byte, 1028)
	data := append([]byte("abc"), zeros...)
	broken := deflated(t, nil, data)
	broken[len(broken)-1] ^= 1
	tests := map[string]struct {
		kind    message.BodyKind
		content []byte
		limit   int
		want    []byte
		err     error
	}{
		"nil":                          {message.TextBody, nil, 10, nil, nil},
		"empty":                        {message.BytesBody, []byte{}, 10, []byte{}, nil},
		"whole":                        {message.TextBody, deflated(t, nil, []byte("abc")), 3, []byte("abc"), nil},
		"no limit":                     {message.TextBody, deflated(t, nil, []byte("abc")), math.MaxInt, []byte("abc"), nil},
		"above the limit":              {message.TextBody, deflated(t, nil, []byte("abcd")), 3, nil, message.ErrOverLimit},
		"bomb":                         {message.MapBody, deflated(t, nil, make([]byte, 10<<20)), 1 << 20, nil, message.ErrOverLimit},
		"no zlib":                      {message.ObjectBody, []byte("abc"), 3, nil, message.ErrInvalid},
		"cut":                          {message.TextBody, broken[:20], 2000, nil, message.ErrInvalid},
		"wrong sum":                    {message.TextBody, broken, 2000, nil, message.ErrInvalid},
		"bytes":                        {message.BytesBody, deflated(t, join(int32(3)), []byte("abc")), 3, []byte("abc"), nil},
		"bytes with a surplus":         {message.BytesBody, deflated(t, join(int32(3)), data), 3, []byte("abc"), nil},
		"bytes with a broken surplus":  {message.BytesBody, append(join(int32(3)), broken...), 3, []byte("abc"), nil},
		"bytes of length 0":            {message.BytesBody, deflated(t, join(int32(0)), zeros), 3, []byte{}, nil},
		"fewer bytes than the length":  {message.BytesBody, deflated(t, join(int32(4)), []byte("abc")), 10, nil, message.ErrInvalid},
		"bytes without a length":       {message.BytesBody, []byte("abc"), 10, nil, message.ErrInvalid},
		"bytes of negative length":     {message.BytesBody, deflated(t, join(int32(-1)), data), 10, nil, message.ErrInvalid},
		"length above the limit":       {message.BytesBody, deflated(t, join(int32(11)), data), 10, nil, message.ErrOverLimit},
		"length of the largest number": {message.BytesBody, deflated(t, join(int32(math.MaxInt32)), data), math.MaxInt, nil, message.ErrInvalid},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Inflate(test.kind, test.content, test.limit)
			if test.err != nil {
				wantKind(t, err, test.err)
			} else if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBodiesRefused checks content that is not of its kind.
func TestBodiesRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind    message.BodyKind
		content []byte
	}{
		"text without a length":   {message.TextBody, []byte("ab")},
		"text that is cut":        {message.TextBody, join(int32(3), "ab")},
		"text with a surplus":     {message.TextBody, join(int32(1), "ab")},
		"text of negative length": {message.TextBody, join(int32(-2))},
		"text that is no UTF-8":   {message.TextBody, join(int32(1), 0xff)},
		"map with a surplus":      {message.MapBody, join(int32(0), 0)},
		"stream that is cut":      {message.StreamBody, join(5, 0)},
		"stream with a map":       {message.StreamBody, join(11, int32(0))},
		"stream with a list":      {message.StreamBody, join(0, 12, int32(0))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeBody(test.kind, test.content, false, 100)
			wantKind(t, err, message.ErrInvalid)
			if diff := cmp.Diff(Body{Kind: test.kind}, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, v := range []any{Map{}, List{}, 1} {
		_, err := AppendStreamBody(nil, List{v})
		wantKind(t, err, message.ErrInvalid)
	}
}

// TestNullText checks a text whose length is -1: null, as the reference reads it.
func TestNullText(t *testing.T) {
	t.Parallel()
	got, err := DecodeBody(message.TextBody, join(int32(-1)), false, 100)
	if err != nil || got.Text.Valid {
		t.Errorf("decoded to %+v, %v", got, err)
	}
}

// TestUTF checks writeUTF and readUTF of bytes messages (OpenWire 7.1).
func TestUTF(t *testing.T) {
	t.Parallel()
	b, err := AppendUTF([]byte("x"), "é\U0001F600")
	if err != nil {
		t.Fatal(err)
	}
	s, rest, err := ReadUTF(append(b, "rest"...)[1:])
	if s != "é\U0001F600" || string(rest) != "rest" || err != nil {
		t.Errorf("read %q, %q, %v", s, rest, err)
	}
	_, err = AppendUTF(nil, strings.Repeat("x", 65536))
	wantKind(t, err, message.ErrOverLimit)
	for _, b := range [][]byte{{}, {0}, {0, 1}, {0, 1, 0xff}} {
		_, _, err := ReadUTF(b)
		wantKind(t, err, message.ErrInvalid)
	}
}
