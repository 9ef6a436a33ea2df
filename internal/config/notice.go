package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
)

// maxProblems bounds how many notices, and how many errors, are kept of one
// load: a hostile file must not fill the log.
const maxProblems = 200

// A Notice names one part of the configuration and says what becomes of it. As
// an element of the slice that Load returns it is a warning; inside an [Error]
// it is one of the reasons for which the broker does not start.
type Notice struct {
	// File is the file as the user named it, or the flag ("--listen").
	File string
	// Line counts from 1; 0: there is none.
	Line int
	// Column counts from 1; 0: not known. Our own YAML has columns.
	Column int
	// Part is the element, attribute, key or value that is spoken of.
	Part string
	// Text says what becomes of it, in plain words, with the remedy.
	Text string
}

// String gives the notice as the log prints it: "file:line: part: text".
func (n Notice) String() string {
	var b strings.Builder
	b.WriteString(n.place())
	if n.Part != "" {
		b.WriteString(n.Part)
		b.WriteString(": ")
	}
	b.WriteString(n.Text)
	return b.String()
}

// place is what stands before the part, with its colon and space.
func (n Notice) place() string {
	switch {
	case n.Line > 0 && n.Column > 0:
		return fmt.Sprintf("%s:%d:%d: ", n.File, n.Line, n.Column)
	case n.Line > 0:
		return fmt.Sprintf("%s:%d: ", n.File, n.Line)
	case n.File != "":
		return n.File + ": "
	}
	return ""
}

// Error is the error of Load: every reason for which the configuration cannot
// be used. It is a message.ErrInvalid.
type Error struct {
	// Problems has at least one element.
	Problems []Notice
}

// Error gives one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap says what kind of error it is.
func (e *Error) Unwrap() error { return message.ErrInvalid }

// A report collects the notices and problems of one load.
type report struct {
	notices, problems               []Notice
	droppedNotices, droppedProblems int
}

// warn adds a notice.
func (r *report) warn(n Notice) {
	if len(r.notices) == maxProblems {
		r.droppedNotices++
		return
	}
	r.notices = append(r.notices, n)
}

// fail adds a problem.
func (r *report) fail(n Notice) {
	if len(r.problems) == maxProblems {
		r.droppedProblems++
		return
	}
	r.problems = append(r.problems, n)
}

// full reports whether further problems are only counted, so that nobody need
// take pains over their text.
func (r *report) full() bool { return len(r.problems) == maxProblems }

// finish returns what was collected, in the order of files and lines; parts
// without a line (flags) come last. The order of equal places is that of finding.
func (r *report) finish() ([]Notice, error) {
	notices := sorted(r.notices, r.droppedNotices, "warnings")
	if len(r.problems) == 0 {
		return notices, nil
	}
	return notices, &Error{Problems: sorted(r.problems, r.droppedProblems, "errors")}
}

// sorted orders list and says how many more there were.
func sorted(list []Notice, dropped int, what string) []Notice {
	slices.SortStableFunc(list, func(a, b Notice) int {
		if (a.Line == 0) != (b.Line == 0) {
			return cmp.Compare(b.Line, a.Line)
		}
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if dropped > 0 {
		list = append(list, Notice{Text: fmt.Sprintf("%d more %s are not shown", dropped, what)})
	}
	return list
}
