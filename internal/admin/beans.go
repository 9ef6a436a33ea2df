package admin

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/nixiemq/nixie/internal/jolokia"
	"github.com/nixiemq/nixie/internal/message"
)

// beanPaths are where ActiveMQ's console and HawtIO's have Jolokia.
var beanPaths = []string{"/api/jolokia", "/console/jolokia"}

// isForBeans reports whether a request is one of Jolokia's.
func isForBeans(r *http.Request) bool {
	for _, path := range beanPaths {
		if rest, ok := strings.CutPrefix(r.URL.Path, path); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// beans makes the handler of Jolokia. Who may not act is told so in the reply.
func (s *surface) beans() (http.Handler, error) {
	h, err := jolokia.New(jolokia.Options{
		Broker: s.b, Version: s.o.Version, Started: s.o.Started, Clock: s.o.Clock, Log: s.o.Log,
		Connectors: s.o.Connectors, Properties: s.o.Properties, Send: s.o.Send,
		Space: func() (used, limit uint64) {
			space, err := s.o.Space()
			if err != nil {
				return 0, 0
			}
			return space.UsedBytes, space.UsedBytes + space.FreeBytes
		},
		MayAct: func(r *http.Request) error {
			if p := by(r); s.o.Access != nil && !p.Administers() {
				return fmt.Errorf("user %s may look, but only members of the group %s may act: %w", p.User(), strings.Join(s.o.Access.AdminGroups(), ", "), message.ErrDenied)
			}
			return nil
		},
		MayRead: s.mayRead,
		Body:    s.plainBody(),
	})
	if err != nil {
		return nil, err
	}
	return s.login(false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := receive(w, r); err != nil {
			s.refuse(w, r, err)
			return
		}
		for _, path := range beanPaths {
			if strings.HasPrefix(r.URL.Path, path) {
				http.StripPrefix(path, h).ServeHTTP(w, r)
				return
			}
		}
	})), nil
}

// plainBody is Options.Body with plain results.
func (s *surface) plainBody() func(m *message.Message, limit int) (string, int, error) {
	if s.o.Body == nil {
		return nil
	}
	return func(m *message.Message, limit int) (string, int, error) {
		b, err := s.o.Body(m, limit)
		return b.Text, b.Bytes, err
	}
}
