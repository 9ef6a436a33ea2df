package message

import (
	"errors"
	"testing"
)

func TestXIDText(t *testing.T) { // OpenWire 8.1
	t.Parallel()
	for text, x := range map[string]XID{
		"XID:[131075,globalId=000aff,branchId=01]": {Format: 131075, Global: "\x00\x0a\xff", Branch: "\x01"},
		"XID:[-1,globalId=,branchId=]":             {Format: -1},
	} {
		if got := x.String(); got != text {
			t.Errorf("%+v is %q, want %q", x, got, text)
		}
		if got, err := ParseXID(text); got != x || err != nil {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "TX:a:1", "XID:[1,globalId=a,branchId=01]", "XID:[x,globalId=,branchId=]", "XID:[1,globalId=01]",
		"XID:[1,globalId=,branchId=", "XID:[99999999999,globalId=,branchId=]", "1,globalId=,branchId=]"} {
		if x, err := ParseXID(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q is %+v, %v", text, x, err)
		}
	}
}
