package jms

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A Body is what a message carries: Text, NullText, Bytes, Map, Stream, Object, or
// Blob, one for each of JMS's message types; nil for a message without a body.
type Body interface{ kind() message.BodyKind }

// Text is the body of a TextMessage.
type Text string

// NullText is the body of a TextMessage whose text is null.
type NullText struct{}

// Bytes is the body of a BytesMessage.
type Bytes []byte

// Map is the body of a MapMessage, with values as in Properties.
type Map map[string]any

// Stream is the body of a StreamMessage: simple values in their order.
type Stream []any

// Object is the body of an ObjectMessage: a Java serialization stream, which this
// package hands on as it is and never interprets.
type Object []byte

// Blob is the body of an ActiveMQ BlobMessage: where the content is.
type Blob struct {
	URL             string
	MimeType        string
	DeletedByBroker bool
}

func (Text) kind() message.BodyKind     { return message.TextBody }
func (NullText) kind() message.BodyKind { return message.TextBody }
func (Bytes) kind() message.BodyKind    { return message.BytesBody }
func (Map) kind() message.BodyKind      { return message.MapBody }
func (Stream) kind() message.BodyKind   { return message.StreamBody }
func (Object) kind() message.BodyKind   { return message.ObjectBody }
func (Blob) kind() message.BodyKind     { return message.BlobBody }

// encodeBody puts a body into a message of the wire (OpenWire 7.1), compressed where
// asked (7.2).
func encodeBody(w *wire.Message, body Body, compress bool) (err error) {
	w.Kind = message.PlainBody
	if body == nil {
		return nil
	}
	w.Kind = body.kind()
	switch b := body.(type) {
	case Text:
		w.Content = wire.AppendTextBody(nil, string(b))
	case Bytes:
		w.Content = append(make([]byte, 0, len(b)), b...)
	case Object:
		w.Content = append([]byte(nil), b...)
	case Map:
		var m wire.Map
		if m, err = toMap(b); err == nil {
			w.Content, err = wire.AppendMapBody(nil, m)
		}
	case Stream:
		var list wire.List
		if list, err = toList(b); err == nil {
			w.Content, err = wire.AppendStreamBody(nil, list)
		}
	case Blob:
		w.RemoteBlobURL, w.MimeType, w.DeletedByBroker = wire.TextOrNull(b.URL), wire.TextOrNull(b.MimeType), b.DeletedByBroker
	}
	if err == nil && compress && len(w.Content) > 0 {
		w.Content, err = wire.Deflate(w.Kind, w.Content)
		w.Compressed = true
	}
	if err != nil {
		return &Error{Op: fmt.Sprintf("encode %v", w.Kind), Kind: ErrMessageFormat, Err: err}
	}
	return nil
}

// maxInflatedBytes bounds what a compressed body may become.
const maxInflatedBytes = 1 << 30

// decodeBody is the body of a message of the wire.
func decodeBody(w *wire.Message) (Body, error) {
	b, err := wire.DecodeBody(w.Kind, w.Content, w.Compressed, maxInflatedBytes)
	if err != nil {
		return nil, &Error{Op: fmt.Sprintf("read body of %s", w.MessageID), Kind: ErrMessageFormat, Err: err}
	}
	switch w.Kind {
	case message.TextBody:
		if !b.Text.Valid {
			return NullText{}, nil
		}
		return Text(b.Text.Value), nil
	case message.BytesBody:
		return Bytes(b.Bytes), nil
	case message.ObjectBody:
		return Object(b.Bytes), nil
	case message.MapBody:
		return Map(fromMap(b.Map)), nil
	case message.StreamBody:
		return Stream(fromList(b.Stream)), nil
	case message.BlobBody:
		return Blob{URL: w.RemoteBlobURL.Value, MimeType: w.MimeType.Value, DeletedByBroker: w.DeletedByBroker}, nil
	}
	return nil, nil
}
