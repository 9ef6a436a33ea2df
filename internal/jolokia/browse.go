package jolokia

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

const (
	// MaxBrowse is how many messages browse gives; where there are more, it fails.
	MaxBrowse = 10_000
	// maxBodyBytes is how much of a body a reply has, previewBytes of one of bytes.
	maxBodyBytes = 64 << 10
	previewBytes = 255
)

// looking are the operations that show messages, and change nothing.
func (l *look) looking(d message.Destination) []operation {
	browse := func(ctx context.Context, selector string) (any, error) {
		found, err := l.browse(ctx, d, selector)
		if err != nil {
			return nil, err
		}
		all := make([]any, len(found))
		for i := range found {
			if all[i], err = l.composite(&found[i]); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return []operation{
		{"browse", nil, typDatas, func(ctx context.Context, _ []any) (any, error) { return browse(ctx, "") }},
		{"browse", []string{typString}, typDatas, func(ctx context.Context, a []any) (any, error) { return browse(ctx, a[0].(string)) }},
		{"getMessage", []string{typString}, typData, func(ctx context.Context, a []any) (any, error) {
			if err := l.o.MayRead(l.r, broker.At(d)); err != nil {
				return nil, err
			}
			p, err := l.b.FindMessage(ctx, broker.At(d), a[0].(string))
			switch {
			case errors.Is(err, message.ErrNotFound):
				return nil, nil
			case err != nil:
				return nil, err
			}
			return l.composite(p)
		}},
	}
}

// browse lists the messages of a queue that a selector fits, as many as the request wants
// at the most. Where there are more than a reply has, it is an error: nobody is to take a
// part for the whole (C19).
func (l *look) browse(ctx context.Context, d message.Destination, selector string) ([]broker.Peek, error) {
	if err := l.o.MayRead(l.r, broker.At(d)); err != nil {
		return nil, err
	}
	most, _ := ctx.Value(mostKey{}).(int)
	if most > 0 && most <= MaxBrowse {
		found, _, err := l.b.Search(ctx, broker.At(d), broker.Cursor{}, most, selector)
		return found, err
	}
	found, _, err := l.b.Search(ctx, broker.At(d), broker.Cursor{}, MaxBrowse+1, selector)
	if err == nil && len(found) > MaxBrowse {
		return nil, badRequest("%s has more than %d such messages: give a selector or maxCollectionSize, or page by GET /api/v1/queues/%s/messages", d, MaxBrowse, d.Name)
	}
	return found, err
}

// composite is a message as ActiveMQ's OpenTypeSupport shows it (R-JMX-20).
func (l *look) composite(p *broker.Peek) (map[string]any, error) {
	m, err := l.b.Read(p)
	if err != nil {
		return nil, fmt.Errorf("message %s: %w", p.Entry.ID, err)
	}
	mode := "NON-PERSISTENT"
	if m.Persistent {
		mode = "PERSISTENT"
	}
	v := map[string]any{
		"JMSMessageID": p.Entry.ID.String(), "JMSDestination": m.Destination.String(), "JMSCorrelationID": orNull(m.CorrelationID),
		"JMSReplyTo": destinationOrNull(m.ReplyTo), "JMSType": orNull(m.Type), "JMSDeliveryMode": mode, "JMSExpiration": m.Expiration,
		"JMSPriority": m.Priority, "JMSRedelivered": p.Counter > 0, "JMSTimestamp": dateTime(m.Timestamp),
		"JMSXGroupID": orNull(m.GroupID), "JMSXGroupSeq": m.GroupSequence, "JMSXUserID": orNull(m.UserID),
		"OriginalDestination": destinationOrNull(m.OriginalDestination), "BrokerPath": nil,
	}
	l.properties(m, v)
	l.body(m, v)
	return v, nil
}

// properties adds a message's properties by their types, and as one text.
func (l *look) properties(m *message.Message, v map[string]any) {
	tables := map[string]map[string]any{}
	for _, typ := range []string{"String", "Boolean", "Byte", "Short", "Int", "Long", "Float", "Double"} {
		tables[typ] = map[string]any{}
		v[typ+"Properties"] = tables[typ]
	}
	all, err := l.o.Properties(m)
	if err != nil {
		v["PropertiesText"] = "cannot be read: " + err.Error()
		return
	}
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		texts = append(texts, fmt.Sprintf("%s = %v", key, all[key]))
		typ := "String"
		switch all[key].(type) {
		case bool:
			typ = "Boolean"
		case int8:
			typ = "Byte"
		case int16:
			typ = "Short"
		case int32:
			typ = "Int"
		case int64:
			typ = "Long"
		case float32:
			typ = "Float"
		case float64:
			typ = "Double"
		}
		tables[typ][key] = all[key]
	}
	v["PropertiesText"] = "{" + strings.Join(texts, ", ") + "}"
}

// body adds what a message holds, by its kind.
func (l *look) body(m *message.Message, v map[string]any) {
	if l.o.Body == nil {
		return
	}
	text, size, err := l.o.Body(m, maxBodyBytes)
	if err != nil {
		text = "cannot be read: " + err.Error()
	}
	switch m.Kind {
	case message.TextBody:
		v["Text"] = text
	case message.MapBody:
		content := map[string]any{}
		if json.Unmarshal([]byte(text), &content) != nil {
			v["ContentMap"] = text // cut, or not to be read
			return
		}
		v["ContentMap"] = content
	case message.BytesBody:
		preview := []int{}
		if !m.Compressed {
			for _, b := range m.Body[:min(len(m.Body), previewBytes)] {
				preview = append(preview, int(int8(b)))
			}
		}
		v["BodyLength"], v["BodyPreview"] = size, preview
	default:
		v["Text"] = text
	}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func destinationOrNull(d message.Destination) any {
	if d.IsZero() {
		return nil
	}
	return d.String()
}
