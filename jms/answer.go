package jms

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A handler's answers. Each is an error that may be wrapped in others; cause, which
// may be nil, is what went wrong, and goes to the broker.

// RetryAfter says that the message failed and is to be delivered again after d,
// whatever the policy's delay is. The policy's limit holds.
func RetryAfter(d time.Duration, cause error) error { return &answerError{retry: &d, cause: cause} }

// DeadLetter says that the message can never be processed: it becomes a dead letter
// now, with the reason.
func DeadLetter(reason string, cause error) error {
	return &answerError{giveUp: true, reason: reason, cause: cause}
}

// DoNotCount says that the message was not to blame, such as when a database is
// down: it is delivered again after the policy's delay, or that of a RetryAfter
// in cause, and the failure does not count.
func DoNotCount(cause error) error { return &answerError{uncounted: true, cause: cause} }

// RetryDelay is the delay that a RetryAfter in err asks for; ok is false where there is
// none.
func RetryDelay(err error) (d time.Duration, ok bool) {
	v := verdictOf(err)
	if v.retry == nil {
		return 0, false
	}
	return *v.retry, true
}

type answerError struct {
	retry             *time.Duration
	giveUp, uncounted bool
	reason            string
	cause             error
}

func (e *answerError) Error() string {
	var parts []string
	if e.giveUp {
		parts = append(parts, e.reason)
	}
	if e.cause != nil {
		parts = append(parts, e.cause.Error())
	}
	if text := strings.Join(parts, ": "); text != "" {
		return text
	}
	if e.retry != nil {
		return fmt.Sprintf("to be tried again after %v", *e.retry)
	}
	return "failed"
}

func (e *answerError) Unwrap() error { return e.cause }

// A PanicError is a panic of a handler.
type PanicError struct {
	Value any
	Stack []runtime.Frame // of the panic, innermost first
}

// Error is the value that the handler panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap is the value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// panicked makes the error of a panic; call it in the deferred function.
func panicked(v any) *PanicError {
	e := &PanicError{Value: v}
	pcs := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	in := false
	for {
		f, more := frames.Next()
		if in {
			e.Stack = append(e.Stack, f)
		}
		if f.Function == "runtime.gopanic" {
			in = true
		}
		if !more {
			return e
		}
	}
}

// maxFrames and maxChain bound what of an error goes over the wire.
const (
	maxFrames    = 32
	maxChain     = 16
	maxTextBytes = 8 << 10
)

// throwableClass is the class of our poison causes, which every Java program knows.
const throwableClass = "java.lang.Throwable"

// A verdict is what the application said of a failed delivery.
type verdict struct {
	text              string          // "TYPE: MESSAGE"; "" for nothing
	throwable         *wire.Throwable // nil for nothing
	retry             *time.Duration
	giveUp, uncounted bool
}

// verdictOf reads an error of the application; nil is a failure without words.
func verdictOf(err error) verdict {
	var v verdict
	if err == nil {
		return v
	}
	for rest := err; rest != nil; {
		a, ok := errors.AsType[*answerError](rest)
		if !ok {
			break
		}
		if v.retry == nil {
			v.retry = a.retry
		}
		v.giveUp = v.giveUp || a.giveUp
		v.uncounted = v.uncounted || a.uncounted
		rest = a.cause
	}
	v.throwable = throwableOf(err)
	if v.throwable != nil {
		v.text = v.throwable.String()
	}
	return v
}

// throwableOf is an error with its chain as Java's. Of several errors joined, the
// first is followed; the text has them all.
func throwableOf(err error) *wire.Throwable {
	var first *wire.Throwable
	at := &first
	for n := 0; err != nil && n < maxChain; n++ {
		err = skipAnswers(err)
		class := fmt.Sprintf("%T", err)
		if _, ok := err.(*answerError); ok {
			class = "jms.DeadLetter"
		}
		t := &wire.Throwable{Class: class, Message: wire.NewText(shortened(err.Error()))}
		if p, ok := err.(*PanicError); ok {
			t.Stack = stackOf(p.Stack)
		}
		*at, at = t, &t.Cause
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			err = nil
			if all := e.Unwrap(); len(all) > 0 {
				err = all[0]
			}
		default:
			err = nil
		}
	}
	return first
}

// skipAnswers goes past answers that say nothing of their own.
func skipAnswers(err error) error {
	for {
		a, ok := err.(*answerError)
		if !ok || a.giveUp || a.cause == nil {
			return err
		}
		err = a.cause
	}
}

func stackOf(frames []runtime.Frame) []wire.StackElement {
	var stack []wire.StackElement
	for _, f := range frames {
		class, method := f.Function, ""
		if i := strings.LastIndexByte(class, '.'); i >= 0 {
			class, method = class[:i], class[i+1:]
		}
		file := f.File[strings.LastIndexByte(f.File, '/')+1:]
		stack = append(stack, wire.StackElement{Class: class, Method: method, File: wire.NewText(file), Line: int32(f.Line)})
	}
	return stack
}

// shortened cuts a text that would not fit the wire.
func shortened(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= maxTextBytes {
		return s
	}
	s = s[:maxTextBytes]
	for len(s) > 0 && !utf8.ValidString(s[max(len(s)-utf8.UTFMax, 0):]) {
		s = s[:len(s)-1]
	}
	return s + "..."
}
