package wire

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestStringForms checks both forms of UTF-8, and what they become when written
// (OpenWire 6.3).
func TestStringForms(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		wire  string
		want  string
		again string // "": as wire
	}{
		"ASCII":                       {"abc", "abc", ""},
		"empty":                       {"", "", ""},
		"two and three bytes":         {"é你", "é你", ""},
		"NUL, modified":               {"a\xc0\x80b", "a\x00b", ""},
		"NUL, standard":               {"a\x00b", "a\x00b", "a\xc0\x80b"},
		"emoji, modified":             {"\xed\xa0\xbd\xed\xb8\x80", "\U0001F600", ""},
		"emoji, standard":             {"x\xf0\x9f\x98\x80y", "x\U0001F600y", "x\xed\xa0\xbd\xed\xb8\x80y"},
		"emoji, mixed":                {"\xf0\x9f\x98\x80\xed\xa0\xbd\xed\xb8\x80", "\U0001F600\U0001F600", "\xed\xa0\xbd\xed\xb8\x80\xed\xa0\xbd\xed\xb8\x80"},
		"lone high surrogate":         {"a\xed\xa0\xbdb", "a\xed\xa0\xbdb", ""},
		"lone low surrogate":          {"\xed\xb8\x80", "\xed\xb8\x80", ""},
		"surrogates in wrong order":   {"\xed\xb8\x80\xed\xa0\xbd", "\xed\xb8\x80\xed\xa0\xbd", ""},
		"high before a pair":          {"\xed\xa0\xbd\xed\xa0\xbd\xed\xb8\x80", "\xed\xa0\xbd\U0001F600", ""},
		"high before another rune":    {"\xed\xa0\xbdé\xed\xb8\x80", "\xed\xa0\xbdé\xed\xb8\x80", ""},
		"last of the plane":           {"\xef\xbf\xbf", "\uffff", ""},
		"longer than needed, 2 bytes": {"\xc1\x81", "A", "A"},
		"longer than needed, 3 bytes": {"\xe0\x81\x81", "A", "A"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := decodeUTF([]byte(test.wire))
			if !ok || got != test.want {
				t.Fatalf("decoded to %q, %t, want %q", got, ok, test.want)
			}
			again := test.again
			if again == "" {
				again = test.wire
			}
			if b := appendModifiedUTF(nil, got); string(b) != again {
				t.Errorf("encoded to %q, want %q", b, again)
			}
		})
	}
}

// TestStringsRefused checks bytes that are no form of UTF-8.
func TestStringsRefused(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"\x80", "a\xbf", "\xc3", "\xc3a", "\xe4\xbd", "\xe4\xbda", "\xe4a\xa0", "\xf0\x9f\x98", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff"} {
		if s, ok := decodeUTF([]byte(wire)); ok {
			t.Errorf("%q decodes to %q", wire, s)
		}
	}
}

// TestBrokenGoStrings checks that what is no UTF-8 in Go becomes U+FFFD, as it
// could not be read otherwise.
func TestBrokenGoStrings(t *testing.T) {
	t.Parallel()
	if got := appendModifiedUTF(nil, "a\xff\xedb"); string(got) != "a\ufffd\ufffdb" {
		t.Errorf("encoded to %q", got)
	}
}

// TestASCIIBit checks strings that have a byte for each character (OpenWire 4.5,
// trap 18), and those that claim to.
func TestASCIIBit(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"": true, "a\x01\x7f": true, "\x00": false, "é": false, "\x80": false} {
		if got := plainASCII(s); got != want {
			t.Errorf("plainASCII(%q) = %t", s, got)
		}
	}
	d, _ := pair(tight)
	got, err := d.Decode(join(int(CodeBrokerID), 1, 3, int16(2), 0xe9, 0))
	if err != nil || got.(*BrokerID).Value != "é\x00" {
		t.Errorf("decoded to %v, %v", got, err)
	}
}

// TestNamesAreShared checks that names that come again cost nothing, and that
// names that look alike are not mixed up.
func TestNamesAreShared(t *testing.T) {
	d, _ := pair(loose)
	names := []string{"a", "b", "ab", "ba", "", "é", "\xc3\xa9\x01", strings.Repeat("x", 256), strings.Repeat("x", 257), "ID:h-1:1", "ID:h-1:2", "ID:h-2:1"}
	for range 3 {
		for _, want := range names {
			if !utf8.ValidString(want) {
				continue
			}
			got, err := d.Decode(body(t, loose, &BrokerID{Value: want}))
			if err != nil || got.(*BrokerID).Value != want {
				t.Errorf("%q decoded to %v, %v", want, got, err)
			}
		}
	}
	frame := body(t, loose, &BrokerID{Value: benchConnection})
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := d.Decode(frame); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 1 {
		t.Errorf("%v allocations for a name that is known", allocs)
	}
}

// TestTexts checks null and empty texts.
func TestTexts(t *testing.T) {
	t.Parallel()
	if TextOrNull("") != (Text{}) || NewText("") == (Text{}) || TextOrNull("a") != NewText("a") {
		t.Error("null and empty are mixed up")
	}
	if s := (Text{}).String(); s != "" {
		t.Errorf("null prints as %q", s)
	}
}
