package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixiemq/nixie/jms"
)

// TestClientsDoNotTakeTheFilesOfTheStore has more clients connect than the process may
// open files: some are refused, and those who are there go on, with messages that make
// the store open files.
func TestClientsDoNotTakeTheFilesOfTheStore(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	dir := filepath.Join(t.TempDir(), "data")
	c := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf("ulimit -n 200; exec nixie serve --data %s --listen tcp://127.0.0.1:0 --admin ''", dir))
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready, err := bufio.NewReader(out).ReadString('\n')
	at := regexp.MustCompile(`tcp://(\S+)`).FindStringSubmatch(ready)
	if err != nil || at == nil {
		t.Fatalf("%q, %v\n%s", ready, err, said.String())
	}
	f, err := jms.NewConnectionFactory("tcp://" + at[1])
	if err != nil {
		t.Fatal(err)
	}
	conn, err := f.CreateConnection(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s, err := conn.CreateSession(jms.AutoAcknowledge)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.CreateProducer(ctx, jms.Queue("Q"))
	if err != nil {
		t.Fatal(err)
	}
	var all []net.Conn
	defer func() {
		for _, n := range all {
			n.Close()
		}
	}()
	for range 300 {
		n, err := net.Dial("tcp", at[1])
		if err != nil {
			break
		}
		all = append(all, n)
	}
	large := strings.Repeat("x", 1<<20)
	for n := range 60 { // several logs and tables
		if err := p.Send(ctx, jms.NewText(large)); err != nil {
			t.Fatalf("message %d: %v\n%s", n, err, said.String())
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil || !strings.Contains(said.String(), "raise ulimit -n") {
		t.Errorf("the broker ended with %v and said\n%s", err, said.String())
	}
}
