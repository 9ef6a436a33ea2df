package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzLoad gives Load files of any dialect and of none: it does not panic, gives
// either a Config that keeps its promises or problems with text, and gives the
// same again.
func FuzzLoad(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.txtar")
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files[:len(a.Files)-1] {
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		opts := Options{File: "conf/f", ReadFile: func(p string) ([]byte, error) {
			if p == "conf/f" {
				return data, nil
			}
			return nil, &os.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
		}}
		c, notices, err := Load(opts)
		check(t, c, notices, err)
		if again, _, err2 := Load(opts); !cmp.Equal(c, again) || (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Errorf("another outcome the second time:\n%v\n%v", err, err2)
		}
	})
}

// check tests the promises of Load.
func check(t *testing.T, c *Config, notices []Notice, err error) {
	t.Helper()
	var problem *Error
	switch {
	case errors.As(err, &problem):
		if c != nil || len(problem.Problems) == 0 {
			t.Errorf("%v with %v", c, err)
		}
		notices = append(notices, problem.Problems...)
	case err != nil:
		t.Errorf("error of another type: %v", err)
	case len(c.Listeners) == 0, c.BrokerName == "", c.DataDir == "", c.Persistent == (c.DataDir == Memory):
		t.Errorf("%+v", c)
	default:
		for _, l := range c.Listeners {
			if !isLoopback(l.Host) && !c.AllowAnonymous || l.Options.MaxFrameBytes < 1 || l.Options.MaxInactivity < 0 {
				t.Errorf("%+v", l)
			}
		}
		for _, p := range c.Policies {
			if p.Destination.IsZero() || p.Destination.IsComposite() {
				t.Errorf("%+v", p)
			}
		}
	}
	for _, n := range notices {
		if n.Text == "" || len(n.Text) > maxExpansionBytes+1000 {
			t.Errorf("%+v", n)
		}
	}
}

// FuzzConvert translates files of any dialect: what can be loaded is written, and
// says the same when it is read again, which Convert itself checks. What cannot be
// written is longer than our own YAML may be.
func FuzzConvert(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.txtar")
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files[:len(a.Files)-1] {
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, _, err := Convert(Options{File: "f", ReadFile: func(p string) ([]byte, error) {
			if p == "f" {
				return data, nil
			}
			return nil, &os.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
		}})
		var bad *Error
		switch {
		case err == nil || errors.As(err, &bad):
		case boundYAML(text) == nil && !strings.Contains(err.Error(), "more than") && !strings.Contains(err.Error(), "longer than") && !strings.Contains(err.Error(), "larger than"):
			t.Error(err)
		}
	})
}
