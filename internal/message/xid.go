package message

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// An XID names a branch of a distributed transaction, as javax.transaction.xa.Xid
// does. Global and Branch are bytes. It is comparable.
type XID struct {
	Format int32
	Global string
	Branch string
}

// String is the name that people see and give back: "XID:[FORMAT,globalId=HEX,branchId=HEX]".
// ActiveMQ writes the same without the zeros in front of small bytes, which cannot
// be read back (OpenWire 8.1).
func (x XID) String() string {
	return fmt.Sprintf("XID:[%d,globalId=%x,branchId=%x]", x.Format, x.Global, x.Branch)
}

// ParseXID reads what String wrote. Errors are ErrInvalid.
func ParseXID(s string) (XID, error) {
	bad := fmt.Errorf("transaction id %q is not of the form XID:[FORMAT,globalId=HEX,branchId=HEX]: %w", s, ErrInvalid)
	inner, ok := strings.CutPrefix(s, "XID:[")
	inner, end := strings.CutSuffix(inner, "]")
	format, rest, one := strings.Cut(inner, ",globalId=")
	global, branch, two := strings.Cut(rest, ",branchId=")
	if !ok || !end || !one || !two {
		return XID{}, bad
	}
	f, err := strconv.ParseInt(format, 10, 32)
	if err != nil {
		return XID{}, bad
	}
	g, err := hex.DecodeString(global)
	if err != nil {
		return XID{}, bad
	}
	b, err := hex.DecodeString(branch)
	if err != nil {
		return XID{}, bad
	}
	return XID{Format: int32(f), Global: string(g), Branch: string(b)}, nil
}
