package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/nixiemq/nixie/internal/message"
)

// A Redrive is the request of /api/v1/queues/{queue}/redrive: either some dead
// letters by their ids, or all that the queue has when the request comes.
type Redrive struct {
	IDs []string `json:"ids,omitempty"`
	All bool     `json:"all,omitempty"`
}

// Redriven is the reply to a Redrive.
type Redriven struct {
	Queue string `json:"queue"`
	// Moved is how many went back to where they failed. Those that a consumer has,
	// and those of which nobody knows where they failed, stay.
	Moved int `json:"moved"`
	// Asked is how many ids were given; 0 for all.
	Asked int `json:"asked,omitempty"`
}

// Purged is the reply of /api/v1/queues/{queue}/purge.
type Purged struct {
	Queue string `json:"queue"`
	// Removed is how many messages were removed. Those that a consumer has stay.
	Removed int `json:"removed"`
}

func (s *surface) redrive(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	var what Redrive
	if err := decode(r, &what); err != nil {
		return nil, err
	}
	if what.All == (len(what.IDs) > 0) {
		return nil, fmt.Errorf(`say which: {"ids": [...]} for some of the queue, or {"all": true}: %w`, message.ErrInvalid)
	}
	name := queueNamed(r)
	n, err := s.b.Redrive(r.Context(), name, what.IDs)
	s.did(r, "dead letters brought back", name, n, err)
	if err != nil {
		return nil, done(n, "brought back", err)
	}
	return Redriven{Queue: nameOf(name), Moved: n, Asked: len(what.IDs)}, nil
}

func (s *surface) purge(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	if err := decode(r, &struct{}{}); err != nil && !errors.Is(err, errNoObject) {
		return nil, err
	}
	name := queueNamed(r)
	n, err := s.b.Purge(r.Context(), name, nil)
	s.did(r, "queue purged", name, n, err)
	if err != nil {
		return nil, done(n, "removed", err)
	}
	return Purged{Queue: nameOf(name), Removed: n}, nil
}

// done says in an error how far an action came.
func done(n int, what string, err error) error {
	if n == 0 {
		return err
	}
	return fmt.Errorf("after %d messages were %s: %w", n, what, err)
}

// did logs what someone did to a queue.
func (s *surface) did(r *http.Request, what string, name message.Destination, n int, err error) {
	if err != nil && n == 0 {
		return
	}
	user, _, _ := r.BasicAuth()
	s.o.Log.LogAttrs(r.Context(), slog.LevelInfo, what,
		slog.String("dest", name.String()), slog.Int("messages", n), slog.String("by", user), slog.String("peer", r.RemoteAddr))
}
