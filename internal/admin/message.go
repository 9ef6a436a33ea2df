package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// A Page is the reply of .../messages: some of the messages of a queue or durable
// subscription, in the order in which it has them.
type Page struct {
	Where
	Messages []Message `json:"messages"`
	// Selector is what was asked for; Messages are those that it fits.
	Selector string `json:"selector,omitempty"`
	// Total is how many there are in all, on this page and on others (C19), whatever a
	// selector fits.
	Total int64 `json:"total"`
	// Next is what to ask for behind this page, as ?after=; empty: there is no more.
	Next string `json:"next,omitempty"`
}

// A Message is one message of a queue.
type Message struct {
	ID       string `json:"id"`       // JMSMessageID
	Position uint64 `json:"position"` // rises with arrival, over all queues
	// State is waiting, returned (given back, and ahead of those that wait),
	// scheduled, out (a consumer has it) or in-transaction (acknowledged in one
	// that is still open).
	State      string `json:"state"`
	SizeBytes  int    `json:"sizeBytes"`
	Persistent bool   `json:"persistent"`
	Kind       string `json:"kind"` // TextMessage, BytesMessage, ...

	Failures int `json:"failures"` // that the policy counts
	HandOuts int `json:"handOuts"` // that ended
	Attempts int `json:"attempts"` // in its story
	Holds    int `json:"holds,omitempty"`
	// RedeliveryCounter is what a client would be told at a delivery now:
	// JMSXDeliveryCount - 1.
	RedeliveryCounter int `json:"redeliveryCounter"`
	// Suspected says that it was handed out and nobody knows what became of it.
	Suspected bool      `json:"suspected,omitempty"`
	Due       time.Time `json:"due,omitzero"` // before which it is not delivered

	Headers    Headers     `json:"headers"`
	DeadLetter *DeadLetter `json:"deadLetter,omitempty"`
	// Error says why its headers cannot be read; then there are none.
	Error string `json:"error,omitempty"`
}

// A DeadLetter is what is known of a message's death.
type DeadLetter struct {
	From string `json:"from"` // where it failed, e.g. queue://ORDERS
	// Cause is dlqDeliveryFailureCause: the words of the client that gave up, or
	// the broker's.
	Cause string `json:"cause"`
	// LastCause is how its last attempt ended, e.g. rollback; empty: it had none.
	LastCause string    `json:"lastCause,omitempty"`
	At        time.Time `json:"at,omitzero"` // when, if that can be told
}

// Headers are a message's JMS headers.
type Headers struct {
	Destination         string    `json:"destination"`
	OriginalDestination string    `json:"originalDestination,omitempty"`
	DeliveryMode        string    `json:"deliveryMode"` // PERSISTENT or NON_PERSISTENT
	Priority            int       `json:"priority"`
	Timestamp           time.Time `json:"timestamp,omitzero"`
	BrokerInTime        time.Time `json:"brokerInTime,omitzero"`
	Expiration          time.Time `json:"expiration,omitzero"`
	ReplyTo             string    `json:"replyTo,omitempty"`
	CorrelationID       string    `json:"correlationId,omitempty"`
	Type                string    `json:"type,omitempty"`
	GroupID             string    `json:"groupId,omitempty"`
	GroupSequence       int32     `json:"groupSequence,omitempty"`
	UserID              string    `json:"userId,omitempty"`
	TransactionID       string    `json:"transactionId,omitempty"`
}

// A Detail is the reply of .../messages/{id}: everything that
// is known of one message.
type Detail struct {
	Where
	Message
	Properties map[string]any `json:"properties"`
	Body       Body           `json:"body"`
	Story      []Attempt      `json:"story"`
}

// A Body is a message's body for people.
type Body struct {
	Text  string `json:"text"`  // a hex dump where it is no text
	Bytes int    `json:"bytes"` // of the whole body, inflated
	Cut   bool   `json:"cut,omitempty"`
	// Error says why it cannot be shown.
	Error string `json:"error,omitempty"`
}

func (s *surface) messages(r *http.Request) (any, error) {
	if err := query(r, "after", "limit", "selector"); err != nil {
		return nil, err
	}
	at, err := parseCursor(r.URL.Query().Get("after"))
	if err != nil {
		return nil, err
	}
	limit, err := parseLimit(r.URL.Query().Get("limit"))
	if err != nil {
		return nil, err
	}
	place := placeNamed(r)
	if err := s.mayRead(r, place); err != nil {
		return nil, err
	}
	selector := r.URL.Query().Get("selector")
	entries, next, err := s.b.Search(r.Context(), place, at, limit, selector)
	if err != nil {
		return nil, err
	}
	total, err := s.b.CountAt(place)
	if err != nil {
		return nil, err
	}
	page := Page{Where: whereOf(place), Messages: make([]Message, len(entries)), Selector: selector, Total: total, Next: formatCursor(next)}
	for i := range entries {
		m, err := s.b.Header(&entries[i])
		page.Messages[i] = s.describe(&entries[i], m, err)
	}
	return page, nil
}

func (s *surface) message(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	place := placeNamed(r)
	if err := s.mayRead(r, place); err != nil {
		return nil, err
	}
	p, err := s.b.FindMessage(r.Context(), place, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	m, err := s.b.Read(p)
	d := Detail{Where: whereOf(place), Message: s.describe(p, m, err), Properties: map[string]any{}, Story: []Attempt{}}
	story, storyErr := s.b.Story(p)
	if storyErr != nil {
		return nil, storyErr
	}
	for i := range story {
		d.Story = append(d.Story, attemptOf(&story[i]))
	}
	if err != nil {
		d.Body.Error = err.Error()
		return d, nil
	}
	properties, err := s.o.Properties(m)
	if err != nil {
		d.Error = err.Error()
	}
	for k, v := range properties {
		d.Properties[k] = v
	}
	if s.o.Body == nil {
		return d, nil
	}
	if d.Body, err = s.o.Body(m, MaxBodyBytes); err != nil {
		d.Body = Body{Bytes: len(m.Body), Error: err.Error()}
	}
	return d, nil
}

// ahead is a time that has not come yet, Unix milliseconds; else 0.
func (s *surface) ahead(millis int64) int64 {
	if millis <= s.o.Clock.Now().UnixMilli() {
		return 0
	}
	return millis
}

// describe shows an entry, and its message where it could be read.
func (s *surface) describe(p *broker.Peek, m *message.Message, err error) Message {
	v := Message{
		ID: p.Entry.ID.String(), Position: p.Entry.Position, State: p.State,
		SizeBytes: int(p.Entry.SizeBytes), Persistent: p.Entry.Persistent,
		Failures: int(p.Counts.Failures), HandOuts: int(p.Counts.HandOuts), Attempts: int(p.Counts.Attempts),
		Holds: int(p.Counts.Holds), RedeliveryCounter: p.Counter,
		Suspected: p.Counts.Suspect != message.NotHandedOut, Due: timeOf(s.ahead(p.Counts.Due)),
	}
	if broker.IsDeadLetter(&p.Entry) {
		cause, _ := p.Entry.Overlay.Added[broker.FailureCause].(string)
		v.DeadLetter = &DeadLetter{From: p.Entry.Overlay.OriginalDestination.String(), Cause: cause}
		line, at, lineErr := s.lastAttempt(p)
		if v.DeadLetter.At = at; line != nil {
			v.DeadLetter.LastCause = line.Cause.String()
		}
		if err == nil {
			err = lineErr
		}
	}
	if err != nil {
		v.Error = err.Error()
	}
	if m != nil {
		v.Kind, v.Headers = m.Kind.String(), headersOf(m)
	}
	return v
}

func headersOf(m *message.Message) Headers {
	h := Headers{
		Destination: m.Destination.String(), OriginalDestination: m.OriginalDestination.String(), DeliveryMode: "NON_PERSISTENT",
		Priority: int(m.Priority), Timestamp: timeOf(m.Timestamp), BrokerInTime: timeOf(m.BrokerInTime), Expiration: timeOf(m.Expiration),
		ReplyTo: m.ReplyTo.String(), CorrelationID: m.CorrelationID, Type: m.Type, GroupID: m.GroupID, GroupSequence: m.GroupSequence,
		UserID: m.UserID, TransactionID: m.TransactionID,
	}
	if m.Persistent {
		h.DeliveryMode = "PERSISTENT"
	}
	return h
}

// formatCursor writes a cursor into a page's Next; "" for the end.
func formatCursor(c broker.Cursor) string {
	if c.End {
		return ""
	}
	return fmt.Sprintf("%d-%d", c.Lane, c.After)
}

// maxLane is the highest lane of a queue.
const maxLane = 9

// parseCursor reads what formatCursor wrote; "" is the beginning.
func parseCursor(text string) (broker.Cursor, error) {
	if text == "" {
		return broker.Cursor{}, nil
	}
	lane, after, ok := strings.Cut(text, "-")
	l, err := strconv.ParseUint(lane, 10, 8)
	a, err2 := strconv.ParseUint(after, 10, 64)
	if !ok || err != nil || err2 != nil || l > maxLane {
		return broker.Cursor{}, fmt.Errorf("after=%q is no cursor: take the one that the page before this has as next: %w", text, message.ErrInvalid)
	}
	return broker.Cursor{Lane: uint8(l), After: a}, nil
}

func parseLimit(text string) (int, error) {
	if text == "" {
		return DefaultPageMessages, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxPageMessages {
		return 0, fmt.Errorf("limit=%q is no number from 1 to %d: %w", text, MaxPageMessages, message.ErrInvalid)
	}
	return n, nil
}
