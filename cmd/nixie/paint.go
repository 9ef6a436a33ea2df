package main

import (
	"io"
	"os"
)

// A painter colours words for a terminal, or leaves them as they are.
type painter struct{ on bool }

// painterFor colours where the output is a terminal and nobody asked it not to.
func painterFor(e *env) painter {
	if text, ok := e.lookup("NO_COLOR"); ok && text != "" {
		return painter{}
	}
	return painter{isTerminal(e.out)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p painter) code(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p painter) plain(s string) string  { return s }
func (p painter) bold(s string) string   { return p.code("1", s) }
func (p painter) dim(s string) string    { return p.code("2", s) }
func (p painter) red(s string) string    { return p.code("31", s) }
func (p painter) green(s string) string  { return p.code("32", s) }
func (p painter) yellow(s string) string { return p.code("33", s) }
