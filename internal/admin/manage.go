package admin

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/nixiemq/nixie/internal/message"
)

// A Deletion is the request of .../delete, which may be without a body.
type Deletion struct {
	// WithMessages removes also what has messages, and the messages with it.
	WithMessages bool `json:"withMessages,omitempty"`
	// DryRun changes nothing, and says whether it could be done.
	DryRun bool `json:"dryRun,omitempty"`
}

// Deleted is the reply.
type Deleted struct {
	Where
	Topic string `json:"topic,omitempty"` // of a topic
	// Messages is how many were gone with it; of a dry run, how many it has.
	Messages int64 `json:"messages"`
	DryRun   bool  `json:"dryRun,omitempty"`
}

// Paused is the reply to .../pause and .../resume.
type Paused struct {
	Queue  string `json:"queue"`
	Paused bool   `json:"paused"`
	Was    bool   `json:"was"` // before
}

// deletion reads a request without a selection.
func deletion(r *http.Request) (what Deletion, err error) {
	if err = query(r); err == nil {
		if err = decode(r, &what); errors.Is(err, errNoObject) {
			err = nil
		}
	}
	return what, err
}

// remove ends a queue or a durable subscription.
func (s *surface) remove(r *http.Request) (any, error) {
	what, err := deletion(r)
	if err != nil {
		return nil, err
	}
	place := placeNamed(r)
	n, err := s.b.Remove(r.Context(), place, what.WithMessages, what.DryRun)
	if err != nil {
		return nil, err
	}
	if !what.DryRun {
		s.managed(r, "destination removed", place.String(), slog.Int64("messages", n))
	}
	return Deleted{Where: whereOf(place), Messages: n, DryRun: what.DryRun}, nil
}

// removeTopic ends a topic that nobody subscribes to.
func (s *surface) removeTopic(r *http.Request) (any, error) {
	what, err := deletion(r)
	if err != nil {
		return nil, err
	}
	topic := message.Destination{Kind: message.Topic, Name: r.PathValue("topic")}
	if err := s.b.RemoveTopic(r.Context(), topic, what.DryRun); err != nil {
		return nil, err
	}
	if !what.DryRun {
		s.managed(r, "destination removed", topic.String())
	}
	return Deleted{Topic: topic.Name, DryRun: what.DryRun}, nil
}

func (s *surface) pause(r *http.Request) (any, error)  { return s.setPaused(r, true) }
func (s *surface) resume(r *http.Request) (any, error) { return s.setPaused(r, false) }

// setPaused stops a queue's handing out, or lets it go on.
func (s *surface) setPaused(r *http.Request, on bool) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	if err := decode(r, &struct{}{}); err != nil && !errors.Is(err, errNoObject) {
		return nil, err
	}
	queue := queueNamed(r)
	was, err := s.b.Pause(r.Context(), queue, on)
	if err != nil {
		return nil, err
	}
	s.managed(r, map[bool]string{true: "queue paused", false: "queue resumed"}[on], queue.String())
	return Paused{Queue: nameOf(queue), Paused: on, Was: was}, nil
}

// managed logs what someone did to a destination as a whole, or with "" to none.
func (s *surface) managed(r *http.Request, what, dest string, more ...slog.Attr) {
	user, _, _ := r.BasicAuth()
	attrs := []slog.Attr{slog.String("dest", dest), slog.String("by", user), slog.String("peer", r.RemoteAddr)}
	if dest == "" {
		attrs = attrs[1:]
	}
	s.o.Log.LogAttrs(r.Context(), slog.LevelWarn, what, append(attrs, more...)...)
}
