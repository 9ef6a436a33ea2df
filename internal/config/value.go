package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/redelivery"
)

// A kind says what a value must look like.
type kind uint8

// The kinds of value.
const (
	text    kind = iota // anything
	boolean             // true or false, in any case
	integer             // a whole number that fits 64 bits
	decimal             // a number
	size                // bytes: digits, then nothing or b, k, kb, m, mb, g, gb (R-XML-01)
)

// parseBool reads true or false in any case, as Java's bean editors do; they
// know on/off, yes/no and 1/0 as well.
func parseBool(s string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "on", "yes", "1":
		return true, nil
	case "false", "off", "no", "0":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

// parseInt reads a whole number between low and high.
func parseInt(s string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	if n < low || n > high {
		return 0, fmt.Errorf("%d is not between %d and %d", n, low, high)
	}
	return n, nil
}

// parseSize reads a number of bytes as ActiveMQ writes it: "64", "64 kb",
// "1gb", in any case (R-XML-01).
func parseSize(s string) (int64, error) {
	digits := strings.ToLower(strings.TrimSpace(s))
	unit := int64(1)
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"kb", 1 << 10}, {"k", 1 << 10}, {"mb", 1 << 20}, {"m", 1 << 20}, {"gb", 1 << 30}, {"g", 1 << 30}, {"b", 1}} {
		if rest, ok := strings.CutSuffix(digits, u.suffix); ok {
			digits, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a size such as 1048576, 64 kb or 1 gb", s)
	}
	if n > (1<<63-1)/unit {
		return 0, fmt.Errorf("%q is too large", s)
	}
	return n * unit, nil
}

// canonical reads a value of kind k and writes it in the one way in which equal
// values are equal texts.
func (k kind) canonical(s string) (string, error) {
	switch k {
	case boolean:
		b, err := parseBool(s)
		return strconv.FormatBool(b), err
	case integer:
		n, err := parseInt(s, -1<<63, 1<<63-1)
		return strconv.FormatInt(n, 10), err
	case decimal:
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return "", fmt.Errorf("%q is not a number", s)
		}
		return strconv.FormatFloat(f, 'g', -1, 64), nil
	case size:
		n, err := parseSize(s)
		return strconv.FormatInt(n, 10), err
	}
	return s, nil
}

// ParseDuration reads a time as our own YAML has it: a number with a unit, as in
// "500ms", "10s", "1m30s", or milliseconds. It may be negative; what is finer than
// a millisecond is an error.
func ParseDuration(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return redelivery.FromMillis(n), nil
	}
	d, err := time.ParseDuration(strings.ReplaceAll(s, " ", ""))
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no time such as 500ms, 10s, 1m30s, or milliseconds", s)
	case d%time.Millisecond != 0:
		return 0, fmt.Errorf("%q is finer than a millisecond", s)
	}
	return d, nil
}
