package openwire

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// What of a message only OpenWire understands is kept in message.Message.Extra as
// a frame of its own: a message with nothing but those fields, in version 12,
// loose and without cache, without the size before it. Stores keep it, so its form
// does not change.

// extraSettings are how leftovers are encoded.
var extraSettings = wire.Settings{Version: wire.MaxVersion}

// encodeExtra is what of a message has no place in message.Message; nil normally.
func encodeExtra(m *wire.Message) ([]byte, error) {
	if m.DataStructure == nil && m.TargetConsumerID == nil && m.BrokerPath == nil && m.Cluster == nil && m.Arrival == 0 &&
		!m.ReceivedByDFBridge && !m.Droppable && m.Kind != message.BlobBody && !isEmpty(m.CorrelationID) && !isEmpty(m.Type) {
		return nil, nil
	}
	left := wire.Message{
		Kind: m.Kind, DataStructure: m.DataStructure, TargetConsumerID: m.TargetConsumerID, BrokerPath: m.BrokerPath,
		Cluster: m.Cluster, Arrival: m.Arrival, ReceivedByDFBridge: m.ReceivedByDFBridge, Droppable: m.Droppable,
		RemoteBlobURL: m.RemoteBlobURL, MimeType: m.MimeType, DeletedByBroker: m.DeletedByBroker,
	}
	if isEmpty(m.CorrelationID) { // message.Message has no null of its own
		left.CorrelationID = m.CorrelationID
	}
	if isEmpty(m.Type) {
		left.Type = m.Type
	}
	enc := wire.NewEncoder()
	enc.Negotiated(extraSettings)
	frame, err := enc.Append(nil, &left)
	if err != nil {
		return nil, fmt.Errorf("keep the fields of a message: %w", err)
	}
	return frame[wire.SizeBytes:], nil
}

// isEmpty reports whether a text is there and has nothing in it, which Java tells from null.
func isEmpty(t wire.Text) bool { return t.Valid && t.Value == "" }

// decodeExtra is a message with the fields that encodeExtra kept.
func decodeExtra(b []byte) (wire.Message, error) {
	if len(b) == 0 {
		return wire.Message{}, nil
	}
	dec := wire.NewDecoder()
	dec.Negotiated(extraSettings)
	ds, err := dec.Decode(b)
	m, ok := ds.(*wire.Message)
	if err != nil || !ok {
		return wire.Message{}, fmt.Errorf("kept fields of a message: %T, %v: %w", ds, err, message.ErrCorrupt)
	}
	return *m, nil
}
