package jms_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/server"
	"github.com/nixiemq/nixie/jms"
)

// TestWithoutRightsOnAdvisoriesRepliesGoOut has a client that may not hear of temporary
// destinations (R-XML-32). It cannot know which there are, and takes none for gone.
func TestWithoutRightsOnAdvisoriesRepliesGoOut(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "nixie.yaml")
	text := "access:\n  users: [{name: sam, password: secret, groups: [users]}]\n" +
		"  authorization: {entries: [{queue: '>', read: [users], write: [users], admin: [users]}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	none := ""
	cfg, _, err := config.Load(config.Options{File: file, Data: config.Memory, Listen: []string{"tcp://127.0.0.1:0"}, Admin: &none})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(context.Background(), server.Options{Config: cfg, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	var url string
	if _, err := fmt.Sscanf(s.Ready(), "nixie ready openwire=%s", &url); err != nil {
		t.Fatal(err)
	}
	open := func() *jms.Session {
		f, err := jms.NewConnectionFactory(url)
		if err != nil {
			t.Fatal(err)
		}
		f.UserName, f.Password = "sam", "secret"
		c, err := f.CreateConnection(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		session, err := c.CreateSession(jms.AutoAcknowledge)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return session
	}
	asks, answers := open(), open()
	replies, err := asks.CreateTemporaryQueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := asks.CreateConsumer(t.Context(), replies)
	if err != nil {
		t.Fatal(err)
	}
	// The broker answers in order: with the producer there, the refusal has come.
	producer, err := answers.CreateProducer(t.Context(), replies)
	if err != nil {
		t.Fatal(err)
	}
	if err := producer.Send(t.Context(), jms.NewText("answer")); err != nil {
		t.Fatal(err)
	}
	if m, err := consumer.ReceiveTimeout(t.Context(), time.Minute); err != nil || m.Text() != "answer" {
		t.Fatal(m, err)
	}
}
