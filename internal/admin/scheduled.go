package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// Scheduled is the reply of /api/v1/scheduled: messages that wait for their time,
// those that are due next first.
type Scheduled struct {
	Total    int64              `json:"total"` // how many wait, on all pages
	Messages []ScheduledMessage `json:"messages"`
	Next     string             `json:"next,omitempty"` // after= of the page behind; "" at the end
}

// A ScheduledMessage is one of them.
type ScheduledMessage struct {
	JobID        string    `json:"scheduledJobId"`
	Destination  string    `json:"destination"`
	Due          time.Time `json:"due"` // when it is next sent on
	Created      time.Time `json:"created"`
	DelayMillis  int64     `json:"delayMillis,omitempty"`
	PeriodMillis int64     `json:"periodMillis,omitempty"`
	Repeat       int32     `json:"repeat,omitempty"` // deliveries after the next one
	Cron         string    `json:"cron,omitempty"`
	Fired        int64     `json:"fired"` // how often it was sent on
	SizeBytes    int       `json:"sizeBytes"`
	Headers      Headers   `json:"headers"`
}

// A RemoveScheduled is the request of /api/v1/scheduled/remove: all that wait, or those
// that are next due in a time.
type RemoveScheduled struct {
	All bool `json:"all,omitempty"`
	// From and Until bound when they are next due, both included; the zero value is no bound.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// Removed is the reply of .../remove.
type Removed struct {
	Removed int `json:"removed"`
}

// scheduled lists what waits. What whoever asks may not consume is left out.
func (s *surface) scheduled(r *http.Request) (any, error) {
	if err := query(r, "after", "limit"); err != nil {
		return nil, err
	}
	at, err := parseScheduledCursor(r.URL.Query().Get("after"))
	if err != nil {
		return nil, err
	}
	limit, err := parseLimit(r.URL.Query().Get("limit"))
	if err != nil {
		return nil, err
	}
	jobs, total, err := s.b.Scheduled(at, limit)
	if err != nil {
		return nil, err
	}
	reply := Scheduled{Total: total, Messages: []ScheduledMessage{}}
	p := by(r)
	for i := range jobs {
		j := &jobs[i]
		if !p.Administers() && p.Check(access.Browse, j.Destination) != nil {
			continue
		}
		reply.Messages = append(reply.Messages, ScheduledMessage{
			JobID: j.ID, Destination: j.Destination.String(), Due: timeOf(j.Due), Created: timeOf(j.Created),
			DelayMillis: j.Delay, PeriodMillis: j.Period, Repeat: j.Repeat, Cron: j.Cron, Fired: j.Fired,
			SizeBytes: int(j.SizeBytes), Headers: headersOf(j.Message),
		})
	}
	if n := len(jobs); n == limit {
		reply.Next = fmt.Sprintf("%d-%d", jobs[n-1].Due, jobs[n-1].Sequence)
	}
	return reply, nil
}

// parseScheduledCursor reads a Scheduled.Next; "" is the beginning.
func parseScheduledCursor(text string) (broker.ScheduledCursor, error) {
	if text == "" {
		return broker.ScheduledCursor{}, nil
	}
	due, sequence, ok := strings.Cut(text, "-")
	d, err := strconv.ParseInt(due, 10, 64)
	n, err2 := strconv.ParseUint(sequence, 10, 64)
	if !ok || err != nil || err2 != nil || d < 0 {
		return broker.ScheduledCursor{}, fmt.Errorf("after=%q is no cursor: take the one that the page before this has as next: %w", text, message.ErrInvalid)
	}
	return broker.ScheduledCursor{Due: d, Sequence: n}, nil
}

// removeScheduled removes one of them by the id of its job.
func (s *surface) removeScheduled(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	if err := s.b.RemoveScheduled(r.Context(), id); err != nil {
		return nil, err
	}
	s.managed(r, "scheduled message removed", "", slog.String("id", id))
	return Removed{Removed: 1}, nil
}

// removeAllScheduled removes all of them, or those of a time.
func (s *surface) removeAllScheduled(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	var what RemoveScheduled
	if err := decode(r, &what); err != nil && !errors.Is(err, errNoObject) {
		return nil, err
	}
	if what.All == (!what.From.IsZero() || !what.Until.IsZero()) {
		return nil, fmt.Errorf(`say which: {"all":true}, or those that are due "from" a time, "until" one, or both: %w`, message.ErrInvalid)
	}
	from, until := int64(0), int64(math.MaxInt64)
	if !what.From.IsZero() {
		from = what.From.UnixMilli()
	}
	if !what.Until.IsZero() {
		until = what.Until.UnixMilli()
	}
	n, err := s.b.RemoveAllScheduled(r.Context(), from, until)
	if err != nil {
		return nil, err
	}
	s.managed(r, "scheduled messages removed", "", slog.Int("messages", n))
	return Removed{Removed: n}, nil
}
