package openwire

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// TestAdvisoriesAreBounded: what nobody publishes does not take memory without end,
// is owned up to, and leaves room for what clients depend on.
func TestAdvisoriesAreBounded(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	a, err := NewAdvisories("ID:b", "b", "tcp://b", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for range maxNotices + 7 {
		a.Listen(broker.Event{Kind: broker.QueueAdded, Destination: message.Destination{Kind: message.Queue, Name: "Q"}})
	}
	a.Listen(broker.Event{Kind: broker.TempAdded, Destination: message.Destination{Kind: message.TempQueue, Name: "T"}})
	called := false
	a.after(func() { called = true })
	a.confess(t.Context())
	taken := a.take(true)
	if len(taken) != maxNotices+2 {
		t.Errorf("%d wait, want %d", len(taken), maxNotices+2)
	}
	if taken[len(taken)-1].call(); !called {
		t.Error("a session that waits was left out")
	}
	if !strings.Contains(log.String(), "n=7") && !strings.Contains(log.String(), "=7") {
		t.Errorf("log: %s", log.String())
	}
}
