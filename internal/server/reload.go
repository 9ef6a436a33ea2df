package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
)

// A Reload tells what a reload changed.
type Reload struct {
	// File is the file that was read.
	File string
	// Changes are the differences. Those that need a restart were left.
	Changes []config.Change
	// Warnings name what in the file is not honoured.
	Warnings []config.Notice
}

// Reload reads the configuration file again and makes hold what can change while the
// broker runs: policies, plugins for redelivery and dead letters, virtual and composite
// destinations, destinations that are made at start. The differences are logged
// before. Where there is an error nothing has changed, and the error says why:
// a *config.Error for the file, ErrState where there is none. dry changes nothing
// in any case.
func (s *Server) Reload(ctx context.Context, dry bool) (*Reload, error) {
	if s.o.Load == nil {
		return nil, fmt.Errorf("the broker was started without a configuration file, so there is none to read again: start it with --config: %w", message.ErrState)
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	holds := s.config.Load()
	next, warnings, err := s.o.Load()
	if err != nil {
		s.refused(err)
		return nil, err
	}
	r := &Reload{File: next.File, Changes: config.Diff(holds, next), Warnings: warnings}
	if dry {
		return r, nil
	}
	for _, n := range warnings {
		s.o.Log.Warn(n.String())
	}
	for _, c := range r.Changes {
		if c.Restart {
			s.o.Log.Warn("configuration changed, and left until a restart", "detail", c.String())
		} else {
			s.o.Log.Info("configuration changes", "detail", c.String())
		}
	}
	merged := holds.Reloaded(next)
	err = s.Broker.Reload(ctx, broker.Reload{Policy: policies(merged), Interceptors: interceptors(merged), Destinations: merged.Destinations,
		Lifetimes: merged.Resolver().Lifetimes(), Unrouted: merged.Resolver().Unrouted(), OnlyDeclared: merged.Resolver().OnlyDeclared(),
		Limited: merged.Resolver().Limited(), OneOrder: merged.Resolver().Ordered()})
	if err != nil {
		s.refused(err)
		return nil, err
	}
	if s.access != nil && merged.Access != nil {
		s.access.Set(*merged.Access)
	}
	s.config.Store(merged)
	s.setSecure(merged.Listeners)
	s.tellClients(merged)
	s.o.Log.Info("configuration reloaded", "file", next.File, "changes", len(r.Changes))
	return r, nil
}

// refused logs why nothing was reloaded, a line for each reason.
func (s *Server) refused(err error) {
	reasons := []string{err.Error()}
	var bad *config.Error
	if errors.As(err, &bad) {
		reasons = strings.Split(err.Error(), "\n")
	}
	for _, r := range reasons {
		s.o.Log.Error("configuration not reloaded, nothing has changed", "err", r)
	}
}
