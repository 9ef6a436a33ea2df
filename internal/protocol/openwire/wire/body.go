package wire

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/nixiemq/nixie/internal/message"
)

// A Body is the decoded content of a message. Which of its fields are set
// depends on Kind; blob messages and plain ones have none.
type Body struct {
	Kind   message.BodyKind
	Text   Text   // text message
	Bytes  []byte // bytes message; object message: the Java serialization stream. nil: none
	Map    Map    // map message
	Stream List   // stream message, without maps and lists
}

// DecodeBody decodes the content of a message for people to look at, inflating
// it first where it is compressed. limit bounds the inflated bytes: beyond it the
// error is message.ErrOverLimit. Content that is not of the kind is
// message.ErrInvalid (OpenWire 7.1). The result may alias content.
func DecodeBody(kind message.BodyKind, content []byte, compressed bool, limit int) (Body, error) {
	body := Body{Kind: kind}
	if compressed {
		var err error
		if content, err = Inflate(kind, content, limit); err != nil {
			return body, err
		}
	}
	var err error
	switch kind {
	case message.TextBody:
		body.Text, err = decodeText(content)
	case message.BytesBody, message.ObjectBody:
		body.Bytes = content
	case message.MapBody:
		body.Map, err = DecodeMap(content)
	case message.StreamBody:
		body.Stream, err = decodeStream(content)
	}
	if err != nil {
		return Body{Kind: kind}, fmt.Errorf("decode %v: %w", kind, err)
	}
	return body, nil
}

func decodeText(content []byte) (Text, error) {
	if content == nil {
		return Text{}, nil
	}
	r := reader{b: content}
	n := int(r.int32())
	if r.err == nil && n == -1 && len(content) == 4 {
		return Text{}, nil
	}
	s := r.utf(n)
	if r.err == nil && r.p != len(content) {
		r.fail("%d surplus bytes", len(content)-r.p)
	}
	return Text{s, true}, r.err
}

func decodeStream(content []byte) (List, error) {
	r := reader{b: content}
	var list List
	for r.p < len(content) {
		if c := content[r.p]; c == primMap || c == primList {
			r.fail("primitive type %d in a stream", c)
			break
		}
		list = append(list, r.value())
	}
	if r.err != nil {
		return nil, r.err
	}
	return list, nil
}

// Inflate undoes the compression of a message's content (OpenWire 7.2). Content
// that is nil or empty is returned as it is. More than limit bytes of result are
// message.ErrOverLimit, a bad stream message.ErrInvalid.
func Inflate(kind message.BodyKind, content []byte, limit int) ([]byte, error) {
	if len(content) == 0 {
		return content, nil
	}
	want := -1
	if kind == message.BytesBody { // the length stands in front; the stream may hold more
		if len(content) < 4 {
			return nil, fmt.Errorf("inflate: no length: %w", message.ErrInvalid)
		}
		want = int(int32(binary.BigEndian.Uint32(content)))
		content = content[4:]
		if want < 0 {
			return nil, fmt.Errorf("inflate: length %d: %w", want, message.ErrInvalid)
		}
		if want > limit {
			return nil, fmt.Errorf("inflate: %d bytes, the limit is %d: %w", want, limit, message.ErrOverLimit)
		}
		limit = want
	}
	z, err := zlib.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("inflate: %w: %w", err, message.ErrInvalid)
	}
	out := bytes.NewBuffer(make([]byte, 0, min(limit, 2*len(content))))
	n, err := io.Copy(out, io.LimitReader(z, min(int64(limit), math.MaxInt64-1)+1))
	switch {
	case want >= 0 && n >= int64(want):
		return out.Bytes()[:want], nil
	case n > int64(limit):
		return nil, fmt.Errorf("inflate: more than %d bytes: %w", limit, message.ErrOverLimit)
	case err != nil:
		return nil, fmt.Errorf("inflate: %w: %w", err, message.ErrInvalid)
	case want >= 0:
		return nil, fmt.Errorf("inflate: %d of %d bytes: %w", n, want, message.ErrInvalid)
	}
	return out.Bytes(), nil
}

// Deflate compresses a message's content; Message.Compressed must then be true.
// nil stays nil.
func Deflate(kind message.BodyKind, content []byte) ([]byte, error) {
	if content == nil {
		return nil, nil
	}
	var out bytes.Buffer
	if kind == message.BytesBody {
		if len(content) > math.MaxInt32 {
			return nil, fmt.Errorf("deflate: %d bytes: %w", len(content), message.ErrOverLimit)
		}
		out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(content))))
	}
	z := zlib.NewWriter(&out)
	_, err := z.Write(content)
	if err := errors.Join(err, z.Close()); err != nil {
		return nil, fmt.Errorf("deflate: %w", err)
	}
	return out.Bytes(), nil
}

// AppendTextBody appends the content of a text message. The content of a null
// text is nil.
func AppendTextBody(dst []byte, text string) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if plainASCII(text) {
		dst = append(dst, text...)
	} else {
		dst = appendModifiedUTF(dst, text)
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// AppendStreamBody appends the content of a stream message. Values that a stream
// cannot hold are message.ErrInvalid. The content of an empty stream is nil.
func AppendStreamBody(dst []byte, values List) ([]byte, error) {
	for _, v := range values {
		switch v.(type) {
		case Map, List:
			return nil, fmt.Errorf("%T in a stream: %w", v, message.ErrInvalid)
		}
		var err error
		if dst, err = appendValue(dst, v, false, 0); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// AppendMapBody appends the content of a map message. The content of an empty
// map is nil.
func AppendMapBody(dst []byte, m Map) ([]byte, error) {
	if len(m) == 0 {
		return dst, nil
	}
	return AppendMap(dst, m)
}

// AppendUTF appends a string to the content of a bytes message as Java's
// writeUTF does: a length of 2 bytes and modified UTF-8. More than 65535 bytes are
// message.ErrOverLimit.
func AppendUTF(dst []byte, s string) ([]byte, error) { return appendKey(dst, s) }

// ReadUTF reads what AppendUTF has written from the front of b, and gives the
// rest. Bytes that are not that are message.ErrInvalid.
func ReadUTF(b []byte) (s string, rest []byte, err error) {
	r := reader{b: b}
	s = r.utf(int(r.uint16()))
	return s, r.b[r.p:], r.err
}
