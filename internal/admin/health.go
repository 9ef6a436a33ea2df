package admin

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// livez says that the process answers.
func (s *surface) livez(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") }

// healthz is readyz for who only wants to know that the process lives and is not
// about to go: it fails for nothing that a new start would not cure.
func (s *surface) healthz(w http.ResponseWriter, r *http.Request) { s.readyz(w, r) }

// readyz says whether clients are served. A disk that is nearly full is told but
// does not make it fail: consumers go on, and producers get a clear error.
func (s *surface) readyz(w http.ResponseWriter, _ *http.Request) {
	if s.o.Stopping() {
		say(w, http.StatusServiceUnavailable, "not ready: the broker is stopping")
		return
	}
	if err := s.b.Full(); err != nil {
		say(w, http.StatusOK, "ok, but producers of persistent messages are refused: "+err.Error())
		return
	}
	if _, err := s.o.Space(); err != nil {
		say(w, http.StatusServiceUnavailable, "not ready: the store does not answer: "+err.Error())
		return
	}
	say(w, http.StatusOK, "ok")
}

func say(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n") // whoever asked has gone
}

// Status is the reply of /api/v1: the broker at a glance.
type Status struct {
	Broker        string    `json:"broker"` // its name
	Version       string    `json:"version"`
	Started       time.Time `json:"started"`
	UptimeSeconds int64     `json:"uptimeSeconds"`
	Connections   int       `json:"connections"`
	// MemoryBytes is what messages take in memory.
	MemoryBytes int64 `json:"memoryBytes"`
	Disk        Space `json:"disk"`
	// Refusing says why producers of persistent messages are refused; empty: they
	// are not.
	Refusing string `json:"refusing,omitempty"`
	// RecordsAside is how many damaged records of the store are kept aside.
	RecordsAside int64 `json:"recordsAside,omitempty"`
}

func (s *surface) status(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	space, err := s.o.Space()
	if err != nil {
		return nil, fmt.Errorf("space under the store: %w", err)
	}
	st := Status{
		Broker: s.b.Name(), Version: s.o.Version, Started: s.o.Started.UTC(),
		UptimeSeconds: int64(s.o.Clock.Now().Sub(s.o.Started).Seconds()),
		Connections:   s.b.Connections(), MemoryBytes: s.b.MemoryBytes(), Disk: space, RecordsAside: s.b.RecordsAside(),
	}
	if err := s.b.Full(); err != nil {
		st.Refusing = err.Error()
	}
	return st, nil
}
