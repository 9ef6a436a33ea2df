package admin

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// principalKey is under which a request's context holds who asks.
type principalKey struct{}

// by is who asks; nil where nobody is asked who they are.
func by(r *http.Request) *access.Principal {
	p, _ := r.Context().Value(principalKey{}).(*access.Principal)
	return p
}

// login asks whoever wants something for name and password, with HTTP basic
// authentication. acts says that they want to change something, for which they
// must be in one of the groups that administer.
func (s *surface) login(acts bool, h http.Handler) http.Handler {
	if s.o.Access == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, given := r.BasicAuth()
		p, err := s.o.Access.Authenticate(name, password, given)
		switch {
		case err != nil:
			s.o.Log.LogAttrs(r.Context(), slog.LevelWarn, "admin login refused", slog.String("by", name), slog.String("peer", r.RemoteAddr))
			w.Header().Set("WWW-Authenticate", `Basic realm="NixieMQ", charset="UTF-8"`)
			writeError(w, http.StatusUnauthorized, kindOf(message.ErrDenied),
				err.Error()+" Log in with HTTP basic authentication (nixie: --user NAME, and the password in the environment variable NIXIE_PASSWORD)")
		case acts && !p.Administers():
			s.refuse(w, r, fmt.Errorf("user %s may look, but only members of the group %s may act: %w", p.User(), strings.Join(s.o.Access.AdminGroups(), ", "), message.ErrDenied))
		default:
			h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
		}
	})
}

// mayRead fails where whoever asks may not see messages of a place: they must be
// allowed to consume them, or administer.
func (s *surface) mayRead(r *http.Request, place broker.Place) error {
	p := by(r)
	if p.Administers() {
		return nil
	}
	from := place.Queue
	for _, sub := range s.b.Subscriptions() {
		if place.Subscription != "" && sub.ClientID == place.ClientID && sub.Subscription == place.Subscription {
			from = sub.Name
		}
	}
	if from.IsZero() {
		return nil // there is no such place, as its reader will say
	}
	return p.Check(access.Browse, from)
}
