package jms

import (
	"bytes"
	"runtime"
	"strconv"
)

// goroutine is the number of the goroutine that calls. It serves one end: to tell whoever
// closes a session or connection from its own handler or listener that this cannot be,
// where it would otherwise wait for itself for ever.
func goroutine() int64 {
	b := make([]byte, 64)
	b = bytes.TrimPrefix(b[:runtime.Stack(b, false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(b, []byte(" "))
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0 // another runtime: nobody is told
	}
	return n
}

// selfClose is the error of a close that would wait for itself.
func selfClose(op string) error {
	return &Error{Op: op, Kind: ErrIllegalState, Text: "it is called by one of its own handlers or listeners, which it would wait for: return first, or close in another goroutine"}
}
