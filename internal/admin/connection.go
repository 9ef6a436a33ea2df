package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"

	"github.com/nixiemq/nixie/internal/message"
)

// A MoveConnections is the request of /api/v1/connections/move: how many clients are to
// go to other brokers.
type MoveConnections struct {
	// Count is how many, of whatever clients; All is all of them. One of the two is given.
	Count int  `json:"count,omitempty"`
	All   bool `json:"all,omitempty"`
	// DryRun sends nobody, and tells how many could go.
	DryRun bool `json:"dryRun,omitempty"`
}

// MovedConnections is the reply.
type MovedConnections struct {
	// Moved is how many clients are sent away, Could how many there are that can be:
	// those over failover that were told of other brokers.
	Moved  int  `json:"moved"`
	Could  int  `json:"could"`
	DryRun bool `json:"dryRun,omitempty"`
}

func (s *surface) moveConnections(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	var what MoveConnections
	if err := decode(r, &what); err != nil && !errors.Is(err, errNoObject) {
		return nil, err
	}
	most := what.Count
	switch {
	case what.Count < 0, what.All == (what.Count > 0):
		return nil, fmt.Errorf(`say how many: {"count":N}, N above 0, or {"all":true}: %w`, message.ErrInvalid)
	case what.All:
		most = math.MaxInt
	}
	if s.o.MoveClients == nil {
		return nil, fmt.Errorf("there are no other brokers that clients could go to: %w", message.ErrState)
	}
	could, moved, err := s.o.MoveClients(most, what.DryRun)
	if err != nil {
		return nil, err
	}
	if !what.DryRun {
		user, _, _ := r.BasicAuth()
		s.o.Log.LogAttrs(r.Context(), slog.LevelInfo, "clients sent to other brokers", slog.Int("clients", moved), slog.String("by", user), slog.String("peer", r.RemoteAddr))
	}
	return MovedConnections{Moved: moved, Could: could, DryRun: what.DryRun}, nil
}
