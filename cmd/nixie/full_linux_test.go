package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStartOnAFullDisk starts with almost no room, and a little more each time:
// whatever is missing, the end is the same clear error and exit status, and no panic.
// Processes of their own, as one that fails holds on to its directory.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	const pages, page = 256, 4096
	for free := range 5 {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", pages*page)); err != nil {
			t.Skipf("a small file system cannot be mounted here (root on Linux can): %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, 0); err != nil {
				t.Errorf("unmount: %v", err)
			}
		})
		data := filepath.Join(dir, "data")
		if err := os.Mkdir(data, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, (pages-free)*page), 0o600); err != nil && free > 2 { // directories take some, too
			t.Error(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		c := exec.CommandContext(ctx, "nixie", "serve", "--data", data, "--listen", "tcp://127.0.0.1:0", "--admin", "")
		var said bytes.Buffer
		c.Stderr = &said
		err := c.Run()
		stop()
		if c.ProcessState == nil {
			t.Fatal(err)
		}
		if text := said.String(); c.ProcessState.ExitCode() != exitNoRoom || !strings.Contains(text, "no space left") ||
			!strings.Contains(text, "Free space on the file system of "+data+", then start again") || strings.Contains(text, "panic") {
			t.Errorf("%d pages free: status %d (%v)\n%s", free, c.ProcessState.ExitCode(), err, text)
		}
	}
}
