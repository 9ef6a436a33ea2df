package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/nixiemq/nixie/internal/message"
)

// An Error is the reply to a request that was refused or failed.
type Error struct {
	// Text says what is wrong and, where one can do something, what.
	Text string `json:"error"`
	// Kind is one of the words of docs/operations.md, "internal" for what is none
	// of the requester's doing.
	Kind string `json:"kind"`
}

// internalKind is the word for an error of no kind.
const internalKind = "internal"

// answers is what becomes of an error: the first whose kind it is.
var answers = []struct {
	kind   error
	word   string
	status int
}{
	{message.ErrNotFound, "not-found", http.StatusNotFound},
	{message.ErrExists, "exists", http.StatusConflict},
	{message.ErrInvalid, "invalid", http.StatusBadRequest},
	{message.ErrState, "wrong-state", http.StatusConflict},
	{message.ErrDenied, "denied", http.StatusForbidden},
	{message.ErrOverLimit, "over-limit", http.StatusRequestEntityTooLarge},
	{message.ErrUnavailable, "unavailable", http.StatusServiceUnavailable},
	{message.ErrCorrupt, "corrupt", http.StatusInternalServerError},
	{context.DeadlineExceeded, "unavailable", http.StatusServiceUnavailable},
	{context.Canceled, "unavailable", http.StatusServiceUnavailable},
}

// kindOf is the word for the kind of an error.
func kindOf(err error) string {
	for _, a := range answers {
		if errors.Is(err, a.kind) {
			return a.word
		}
	}
	return internalKind
}

func statusOf(err error) int {
	for _, a := range answers {
		if errors.Is(err, a.kind) {
			return a.status
		}
	}
	return http.StatusInternalServerError
}

// refuse answers a request with an error. What is no doing of the requester is
// logged as well: this is where it ends.
func (s *surface) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	if status == http.StatusInternalServerError {
		s.o.Log.LogAttrs(r.Context(), slog.LevelError, "admin request failed",
			slog.String("method", r.Method), slog.String("path", r.URL.EscapedPath()), slog.Any("err", err))
	}
	writeError(w, status, kindOf(err), err.Error())
}

func writeError(w http.ResponseWriter, status int, kind, text string) {
	writeJSON(w, status, Error{Text: text, Kind: kind})
}
