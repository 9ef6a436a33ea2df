package openwire

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// maxInflatedBytes is how large a compressed body may be to be shown.
const maxInflatedBytes = 16 << 20

// A Shown is a message's body in a form for people.
type Shown struct {
	// Text is a text message's text, JSON for map and stream messages, the text of
	// a bytes message that is UTF-8, else a hex dump. Of an object message it
	// begins with the name of its class; blob messages show where the blob is.
	Text string
	// Bytes is the size of the body, inflated if it was compressed.
	Bytes int
	// Cut says that Text is not all of it.
	Cut bool
}

// ShowBody decodes a message's body. Text has about limit bytes at the most; 0 means
// no limit. A body that is not what its type says is message.ErrInvalid, a
// compressed one above 16 MiB message.ErrOverLimit.
func ShowBody(m *message.Message, limit int) (Shown, error) {
	return showBody(m, limit, maxInflatedBytes)
}

func showBody(m *message.Message, limit, inflated int) (Shown, error) {
	if limit <= 0 {
		limit = math.MaxInt
	}
	if m.Kind == message.BlobBody {
		extra, err := decodeExtra(m.Extra)
		return cut(fmt.Sprintf("%s (%s)", extra.RemoteBlobURL, extra.MimeType), 0, limit), err
	}
	content, err := m.Body, error(nil)
	if m.Compressed {
		if content, err = wire.Inflate(m.Kind, content, inflated); err != nil {
			return Shown{}, fmt.Errorf("show body of %s: %w", m.ID, err)
		}
	}
	b, err := wire.DecodeBody(m.Kind, content, false, inflated)
	if err != nil {
		return Shown{}, fmt.Errorf("show body of %s: %w", m.ID, err)
	}
	size := len(content)
	switch m.Kind {
	case message.TextBody:
		return cut(b.Text.Value, size, limit), nil
	case message.MapBody:
		return cut(asJSON(plainMap(b.Map)), size, limit), nil
	case message.StreamBody:
		return cut(asJSON(plainList(b.Stream)), size, limit), nil
	case message.ObjectBody:
		return dump(javaClass(b.Bytes), b.Bytes, limit), nil
	case message.BytesBody:
		if readable(b.Bytes) {
			return cut(string(b.Bytes), size, limit), nil
		}
		return dump("", b.Bytes, limit), nil
	}
	return Shown{}, nil
}

// Properties decodes a message's properties, with what the broker has added, into
// values that encoding/json takes: characters are strings, byte arrays are hex,
// numbers that JSON does not have are strings. Properties that are no map are
// message.ErrInvalid.
func Properties(m *message.Message) (map[string]any, error) {
	own, err := wire.DecodeMap(m.Properties)
	if err != nil {
		return nil, fmt.Errorf("properties of %s: %w", m.ID, err)
	}
	all := plainMap(own)
	for key, value := range m.Added {
		all[key] = plain(value)
	}
	return all, nil
}

func plainMap(m wire.Map) map[string]any {
	plainly := make(map[string]any, len(m))
	for _, e := range m {
		plainly[e.Key] = plain(e.Value)
	}
	return plainly
}

func plainList(l wire.List) []any {
	plainly := make([]any, len(l))
	for i, v := range l {
		plainly[i] = plain(v)
	}
	return plainly
}

// plain is a value in a form that JSON can have.
func plain(v any) any {
	switch v := v.(type) {
	case wire.Char:
		return string(rune(v))
	case []byte:
		return hex.EncodeToString(v)
	case wire.Map:
		return plainMap(v)
	case wire.List:
		return plainList(v)
	case float32:
		return plainFloat(float64(v), v)
	case float64:
		return plainFloat(v, v)
	}
	return v
}

func plainFloat(f float64, v any) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Sprint(f)
	}
	return v
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // plain leaves nothing that JSON does not have
		return fmt.Sprint(v)
	}
	return string(b)
}

// cut is a text of at most limit bytes, without half a character at its end.
func cut(s string, size, limit int) Shown {
	if len(s) <= limit {
		return Shown{Text: s, Bytes: size}
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return Shown{Text: s[:limit], Bytes: size, Cut: true}
}

// dumpRatio is how many characters a hex dump has for one byte, about.
const dumpRatio = 5

func dump(head string, b []byte, limit int) Shown {
	n := min(len(b), limit/dumpRatio)
	return Shown{Text: head + hex.Dump(b[:n]), Bytes: len(b), Cut: n < len(b)}
}

// readable reports whether bytes are a text that a person could read.
func readable(b []byte) bool {
	return utf8.Valid(b) && !strings.ContainsFunc(string(b), func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f
	})
}

// javaClass is a line with the class of a serialized Java object; "" if the stream
// does not begin with one: magic, version, TC_OBJECT, TC_CLASSDESC, name.
func javaClass(b []byte) string {
	const name = 8 // where the name begins
	if len(b) < name || string(b[:6]) != "\xac\xed\x00\x05sr" {
		return ""
	}
	end := name + int(binary.BigEndian.Uint16(b[6:name]))
	if end > len(b) || !readable(b[name:end]) {
		return ""
	}
	return "object of class " + string(b[name:end]) + "\n"
}
