package selector

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/nixiemq/nixie/internal/message"
)

// quotedBytes is how much of what was found an error shows.
const quotedBytes = 40

// overLimit makes the error of a selector beyond our limits.
func overLimit(what string, n, limit int) error {
	return fmt.Errorf("selector %s %d, the limit is %d: %w", what, n, limit, message.ErrInvalid)
}

// unexpected makes the error of a text that is no selector. at is a byte of the
// text; the error names the character.
func unexpected(text string, at int, found, expected string) error {
	position := utf8.RuneCountInString(text[:at]) + 1
	return fmt.Errorf("selector, position %d: found %s, expected %s: %w", position, found, expected, message.ErrInvalid)
}

// quoted shows a piece of the text in an error, cut where it is long.
func quoted(s string) string {
	if len(s) > quotedBytes {
		s = s[:quotedBytes] + "..."
	}
	return strconv.Quote(s)
}
