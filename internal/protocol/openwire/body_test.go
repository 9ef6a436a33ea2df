package openwire

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/selector"
)

func must(t *testing.T) func(b []byte, err error) []byte {
	return func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

// ofClass is the beginning of a serialized Java object.
func ofClass(name string) []byte {
	return append([]byte("\xac\xed\x00\x05sr\x00"+string(rune(len(name)))+name), 1, 2, 3)
}

func TestShowBody(t *testing.T) { // OpenWire 7.1
	t.Parallel()
	mapped := wire.Map{{Key: "s", Value: "text"}, {Key: "n", Value: int64(7)}, {Key: "b", Value: []byte{1, 255}}, {Key: "nan", Value: math.NaN()}, {Key: "c", Value: wire.Char('x')},
		{Key: "null", Value: nil}, {Key: "list", Value: wire.List{int32(1), true}}}
	for name, c := range map[string]struct {
		kind  message.BodyKind
		body  []byte
		limit int
		want  Shown
	}{
		"text":       {kind: message.TextBody, body: wire.AppendTextBody(nil, "grüße"), want: Shown{Text: "grüße", Bytes: 11}},
		"text, cut":  {kind: message.TextBody, body: wire.AppendTextBody(nil, "grüße"), limit: 3, want: Shown{Text: "gr", Bytes: 11, Cut: true}},
		"null text":  {kind: message.TextBody},
		"plain":      {kind: message.PlainBody},
		"map":        {kind: message.MapBody, body: must(t)(wire.AppendMapBody(nil, mapped)), want: Shown{Text: `{"b":"01ff","c":"x","list":[1,true],"n":7,"nan":"NaN","null":null,"s":"text"}`, Bytes: 81}},
		"empty map":  {kind: message.MapBody, want: Shown{Text: "{}"}},
		"stream":     {kind: message.StreamBody, body: must(t)(wire.AppendStreamBody(nil, wire.List{"a", int32(2), 1.5})), want: Shown{Text: `["a",2,1.5]`, Bytes: 18}},
		"readable":   {kind: message.BytesBody, body: []byte("a line\n"), want: Shown{Text: "a line\n", Bytes: 7}},
		"bytes":      {kind: message.BytesBody, body: []byte{0, 1}, want: Shown{Text: "00000000  00 01                                             |..|\n", Bytes: 2}},
		"bytes, cut": {kind: message.BytesBody, body: []byte{0, 1, 2}, limit: 10, want: Shown{Text: "00000000  00 01                                             |..|\n", Bytes: 3, Cut: true}},
		"object": {kind: message.ObjectBody, body: ofClass("com.acme.Order"), limit: 10, want: Shown{
			Text: "object of class com.acme.Order\n00000000  ac ed                                             |..|\n", Bytes: 25, Cut: true}},
		"object of no class": {kind: message.ObjectBody, body: []byte("\xac\xed\x00\x05t\x00\x01x"), limit: 5, want: Shown{
			Text: "00000000  ac                                                |.|\n", Bytes: 8, Cut: true}},
		"object that ends early": {kind: message.ObjectBody, body: []byte("\xac\xed\x00\x05sr\x00\x09x"), limit: 5, want: Shown{
			Text: "00000000  ac                                                |.|\n", Bytes: 9, Cut: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, compressed := range []bool{false, true} {
				m := &message.Message{Kind: c.kind, Body: c.body, Compressed: compressed}
				if compressed {
					m.Body = must(t)(wire.Deflate(c.kind, c.body))
				}
				got, err := ShowBody(m, c.limit)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("compressed %v: %s", compressed, diff)
				}
			}
		})
	}
}

func TestShowBlob(t *testing.T) {
	t.Parallel()
	in := &wire.Message{Kind: message.BlobBody, RemoteBlobURL: wire.NewText("http://blobs/1"), MimeType: wire.NewText("image/png")}
	got, err := ShowBody(&message.Message{Kind: message.BlobBody, Extra: must(t)(encodeExtra(in))}, 0)
	if err != nil || got.Text != "http://blobs/1 (image/png)" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestShowBodyErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		m    message.Message
		kind error
	}{
		"a map that is none":    {message.Message{Kind: message.MapBody, Body: []byte("rubbish")}, message.ErrInvalid},
		"text with a bad size":  {message.Message{Kind: message.TextBody, Body: []byte{0, 0, 1, 0}}, message.ErrInvalid},
		"no zlib":               {message.Message{Kind: message.TextBody, Body: []byte("rubbish"), Compressed: true}, message.ErrInvalid},
		"an inflation bomb":     {message.Message{Kind: message.TextBody, Body: must(t)(wire.Deflate(message.TextBody, make([]byte, 1<<16+1))), Compressed: true}, message.ErrOverLimit},
		"broken fields of blob": {message.Message{Kind: message.BlobBody, Extra: []byte{1}}, message.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := showBody(&c.m, 0, 1<<16); !errors.Is(err, c.kind) {
				t.Errorf("error %v, want %v", err, c.kind)
			}
		})
	}
}

func TestProperties(t *testing.T) {
	t.Parallel()
	m := textMessage(t)
	m.Added = map[string]any{"colour": "blue", "originalExpiration": int64(5)}
	got, err := Properties(m)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"colour": "blue", "redeliveryDelay": int64(99), "n": int32(7), "originalExpiration": int64(5)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := json.Marshal(got); err != nil {
		t.Error(err)
	}
	if none, err := Properties(&message.Message{}); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
	if _, err := Properties(&message.Message{Properties: []byte{1}}); !errors.Is(err, message.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}

func TestProperty(t *testing.T) { // OpenWire 6.4
	t.Parallel()
	properties, err := wire.AppendMap(nil, wire.Map{{Key: "bool", Value: true}, {Key: "byte", Value: int8(-1)}, {Key: "short", Value: int16(2)}, {Key: "int", Value: int32(3)},
		{Key: "long", Value: int64(4)}, {Key: "float", Value: float32(1.5)}, {Key: "double", Value: 2.5}, {Key: "string", Value: "s"}, {Key: "char", Value: wire.Char('c')},
		{Key: "null", Value: nil}, {Key: "bytes", Value: []byte{1}}, {Key: "map", Value: wire.Map{}}})
	if err != nil {
		t.Fatal(err)
	}
	m := &message.Message{Properties: properties, Added: map[string]any{"int": int64(33), "cause": "x"}}
	for name, want := range map[string]selector.Value{
		"bool": selector.BoolValue(true), "byte": selector.IntValue(-1), "short": selector.IntValue(2), "int": selector.IntValue(33), "long": selector.IntValue(4),
		"float": selector.FloatValue(1.5), "double": selector.FloatValue(2.5), "string": selector.StringValue("s"), "char": selector.StringValue("c"),
		"null": selector.NullValue(), "bytes": selector.OpaqueValue(), "map": selector.OpaqueValue(), "cause": selector.StringValue("x"),
	} {
		if got, ok := Property(m, name); got != want || !ok {
			t.Errorf("%s is %+v, %v", name, got, ok)
		}
	}
	for name, m := range map[string]*message.Message{"unknown": m, "none": {}, "broken": {Properties: []byte("rubbish")}} {
		if got, ok := Property(m, "unknown"); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSelectorOverTheWire(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.do(&wire.ConsumerInfo{ConsumerID: p.consumerID(1), Destination: queueNamed("Q"), PrefetchSize: 10, Selector: wire.NewText("colour = 'red' AND JMSPriority > 3")})
		for i, colour := range []string{"blue", "red"} {
			m := p.text(int64(i+1), queueNamed("Q"), colour)
			m.MarshalledProperties = must(t)(wire.AppendMap(nil, wire.Map{{Key: "colour", Value: colour}}))
			p.do(m)
		}
		if d := p.dispatched(); body(t, d) != "red" {
			t.Errorf("got %q", body(t, d))
		}
		if more := p.take(); more != nil {
			t.Errorf("then came %T", more)
		}
		p.fails(&wire.ConsumerInfo{ConsumerID: p.consumerID(2), Destination: queueNamed("Q"), Selector: wire.NewText("colour = ")}, classInvalidSelector, "")
		if strings.Contains(h.log.String(), "panicked") {
			t.Error(h.log)
		}
		p.leave()
	})
}
