package pebblestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/store"
)

func TestSecondOpenSaysWhoHoldsTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, dir, Options{})
	_, err := Open(dir, Options{})
	if !errors.Is(err, store.ErrHeld) {
		t.Fatalf("%v, want ErrHeld", err)
	}
	for _, part := range []string{dir, fmt.Sprintf("pid %d ", os.Getpid()), "since 2"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ownerFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the owner's note is still there: %v", err)
	}
	opened(t, dir, Options{})
}

func TestFormat(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file, text string
		want       string // in the error; "" for none
	}{
		"an empty directory":        {"unrelated", "x", ""},
		"this version":              {formatFile, "nixie store, format 1\n", ""},
		"a newer version":           {formatFile, "nixie store, format 2\n", "has format 2 and this version of nixie reads up to 1"},
		"not ours":                  {formatFile, "something else", "something else"},
		"another program's Pebble":  {"MANIFEST-000001", "x", "holds MANIFEST-000001 but no file FORMAT"},
		"another program's markers": {"marker.format-version.000001.013", "", "no file FORMAT"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(dir, Options{})
			switch {
			case tt.want != "":
				if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want ErrFormat and %q", err, tt.want)
				}
			case err != nil:
				t.Error(err)
			default:
				s.Close()
			}
		})
	}
}

func TestOpenOfWhatIsNoDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(path, Options{}); err == nil {
		s.Close()
		t.Error("opened a file")
	}
}

func TestSpace(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir(), Options{})
	before, err := s.Space()
	if err != nil {
		t.Fatal(err)
	}
	fill(t, acquire(t, s), 0, 2000, 1<<10)
	after, err := s.Space()
	if err != nil {
		t.Fatal(err)
	}
	if after.FreeBytes == 0 || after.TotalBytes < after.FreeBytes || after.UsedBytes < before.UsedBytes+2000<<10 {
		t.Errorf("%+v, before %+v", after, before)
	}
}
