package config

import (
	"fmt"
	"os"
)

// Convert reads the configuration file of opts, of whatever dialect, and writes it
// as our own YAML. The notices are what of the file did not carry over; they stand
// in the YAML, too. Of opts only File, Defines,
// AllowAnonymous, LookupEnv and ReadFile count. The
// error is an *Error where the file cannot be used, as that of Load.
func Convert(opts Options) ([]byte, []Notice, error) {
	l := newLoader(Options{File: opts.File, Defines: opts.Defines, AllowAnonymous: opts.AllowAnonymous, LookupEnv: opts.LookupEnv, ReadFile: opts.ReadFile})
	l.define()
	l.file()
	l.flags()
	l.cfg.AllowAnonymous = l.fileAllowsAnonymous
	l.conflicts()
	l.clusterNotices()
	notices, err := l.finish()
	if err != nil {
		return nil, notices, err
	}
	text := WriteYAML(l.cfg, notices)
	if err := sameFrom(text, l.cfg); err != nil {
		return nil, notices, err
	}
	return text, notices, nil
}

// sameFrom reports whether what was written says what c says: a translation that
// loses something must not pass for one.
func sameFrom(text []byte, c *Config) error {
	again := newLoader(Options{File: "YAML", ReadFile: func(path string) ([]byte, error) {
		if path != "YAML" {
			return nil, os.ErrNotExist
		}
		return text, nil
	}})
	again.file()
	again.flags()
	again.cfg.AllowAnonymous = again.fileAllowsAnonymous
	if _, err := again.finish(); err != nil {
		return fmt.Errorf("what was written cannot be read again, so nothing is: %v", err)
	}
	if m := differing(showing(again.cfg).top(), showing(c).top()); len(m.pairs) > 0 {
		return fmt.Errorf("what was written says something else about %s, so nothing is; this is a fault of ours", m.pairs[0].name)
	}
	if m := differing(showing(c).top(), showing(again.cfg).top()); len(m.pairs) > 0 {
		return fmt.Errorf("what was written says nothing about %s, so nothing is; this is a fault of ours", m.pairs[0].name)
	}
	return nil
}
