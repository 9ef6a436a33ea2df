package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
)

// A ReloadRequest is the request of /api/v1/reload; it may be left out.
type ReloadRequest struct {
	// DryRun changes nothing, and only tells the difference.
	DryRun bool `json:"dryRun,omitempty"`
}

// Reloaded is the reply to a reload.
type Reloaded struct {
	// File is the file that was read.
	File string `json:"file"`
	// Changes are the differences to what held before. Those with Restart were left.
	Changes []config.Change `json:"changes"`
	// Warnings name what in the file is not honoured.
	Warnings []string `json:"warnings,omitempty"`
	DryRun   bool     `json:"dryRun,omitempty"`
}

func (s *surface) reload(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	var what ReloadRequest
	if err := decode(r, &what); err != nil && !errors.Is(err, errNoObject) {
		return nil, err
	}
	if s.o.Reload == nil {
		return nil, fmt.Errorf("nothing can be reloaded here: %w", message.ErrState)
	}
	reply, err := s.o.Reload(r.Context(), what.DryRun)
	var bad *config.Error
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("the configuration cannot be used, and nothing has changed:\n%w", err)
	}
	if err != nil {
		return nil, err
	}
	reply.DryRun = what.DryRun
	if reply.Changes == nil {
		reply.Changes = []config.Change{}
	}
	if !what.DryRun {
		user, _, _ := r.BasicAuth()
		s.o.Log.LogAttrs(r.Context(), slog.LevelInfo, "configuration reload was asked for", slog.String("by", user), slog.String("peer", r.RemoteAddr))
	}
	return reply, nil
}
