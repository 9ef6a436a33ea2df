package openwire

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/queue"
)

// A Poster sends text messages for people, as a client of its own for each.
type Poster struct {
	Broker *broker.Broker
	Clock  clock.Clock
	// DeliverAt is that of Options.
	DeliverAt string
	sent      atomic.Int64
}

// Send sends a text message and returns its id when it is kept. Of headers those with the
// names of JMS are headers, and JMSExpiration is a time; the others are properties, which
// are texts, truth values and numbers. As from any client those that ask for a delay are
// seen to; and timeToLive, which stays a property, says how long the message lives.
func (p *Poster) Send(ctx context.Context, to message.Destination, headers map[string]any, text string) (string, error) {
	now := p.Clock.Now().UnixMilli()
	id := fmt.Sprintf("ID:%s-%d-%d", p.Broker.Name(), now, p.sent.Add(1))
	m := &message.Message{ID: message.ID{Producer: id + ":1:1", Sequence: 1}, Destination: to, Persistent: true, Priority: 4,
		Timestamp: now, BrokerInTime: now, Format: message.OpenWire, Kind: message.TextBody, Body: wire.AppendTextBody(nil, text)}
	var properties wire.Map
	var err error
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if known, err := setHeader(m, name, headers[name]); known || err != nil {
			if err != nil {
				return "", fmt.Errorf("header %s: %w: %w", name, err, message.ErrInvalid)
			}
			continue
		}
		if name == timeToLive && headers["JMSExpiration"] == nil {
			if m.Expiration, err = expirationAfter(now, headers[name]); err != nil {
				return "", fmt.Errorf("property %s: %w: %w", name, err, message.ErrInvalid)
			}
		}
		v, err := propertyOf(headers[name])
		if err != nil {
			return "", fmt.Errorf("property %s: %w: %w", name, err, message.ErrInvalid)
		}
		properties = append(properties, wire.Entry{Key: name, Value: v})
	}
	if properties != nil {
		if m.Properties, err = wire.AppendMap(nil, properties); err != nil {
			return "", err
		}
		if m.Schedule, err = schedule(m.ID, m.Properties, now, p.DeliverAt); err != nil {
			return "", fmt.Errorf("%w: %w", err, message.ErrInvalid)
		}
	}
	c, err := p.Broker.Connect(ctx, broker.ClientInfo{ID: id, ClientID: id, Address: "admin", Protocol: "http", Kick: func(error) {}}, nobody{})
	if err != nil {
		return "", err
	}
	defer c.Close(message.Closed, "connection closed", queue.UnknownLast)
	answered := make(chan error, 1)
	c.Send(ctx, m, "", func(err error) { answered <- err })
	select {
	case err := <-answered:
		return m.ID.String(), err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// nobody consumes anything.
type nobody struct{}

func (nobody) Deliver(broker.Delivery) {}

// setHeader sets a header of JMS; known is false for other names.
func setHeader(m *message.Message, name string, value any) (known bool, err error) {
	text := fmt.Sprint(value)
	number := func(low, high int64, set func(int64)) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < low || n > high {
			return fmt.Errorf("%q is no number from %d to %d", text, low, high)
		}
		set(n)
		return nil
	}
	switch name {
	case "JMSCorrelationID":
		m.CorrelationID = text
	case "JMSType":
		m.Type = text
	case "JMSXGroupID":
		m.GroupID = text
	case "JMSXGroupSeq":
		err = number(math.MinInt32, math.MaxInt32, func(n int64) { m.GroupSequence = int32(n) })
	case "JMSPriority":
		err = number(0, 9, func(n int64) { m.Priority = uint8(n) })
	case "JMSExpiration":
		err = number(0, math.MaxInt64, func(n int64) { m.Expiration = n })
	case "JMSReplyTo":
		m.ReplyTo, err = message.ParseDestination(text, message.Queue)
	case "JMSDeliveryMode":
		switch strings.ReplaceAll(strings.ToUpper(text), "-", "_") {
		case "2", "PERSISTENT":
		case "1", "NON_PERSISTENT":
			m.Persistent = false
		default:
			err = fmt.Errorf("%q is neither PERSISTENT nor NON_PERSISTENT", text)
		}
	default:
		if strings.HasPrefix(name, "JMS") {
			return false, fmt.Errorf("it cannot be set")
		}
		return false, nil
	}
	return true, err
}

// timeToLive is the property by which ActiveMQ takes a time to live from whoever sends a
// text message by hand.
const timeToLive = "timeToLive"

// expirationAfter is when a message ends that lives so many milliseconds; 0: never.
func expirationAfter(now int64, ttl any) (int64, error) {
	n, err := strconv.ParseInt(fmt.Sprint(ttl), 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no whole number of milliseconds", fmt.Sprint(ttl))
	case n <= 0 || n > math.MaxInt64-now:
		return 0, nil
	}
	return now + n, nil
}

// propertyOf makes a property's value of what JSON has.
func propertyOf(v any) (any, error) {
	switch v := v.(type) {
	case string, bool:
		return v, nil
	case float64:
		return v, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			if n >= math.MinInt32 && n <= math.MaxInt32 {
				return int32(n), nil
			}
			return n, nil
		}
		return v.Float64()
	}
	return nil, fmt.Errorf("%v is no text, truth value or number", v)
}
