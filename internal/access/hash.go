package access

import (
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Hash is what Artemis keeps of a password that it does not keep (one-way): the
// outcome of PBKDF2 with HMAC-SHA1, which is written ITERATIONS:SALT:HASH, the last
// two in hexadecimal.
type Hash struct {
	iterations int
	salt, sum  []byte
}

// Bounds of a Hash, so that a login takes no longer than is reasonable. Artemis
// writes 1024 iterations, 32 and 64 bytes.
const (
	maxIterations = 1_000_000
	maxHashBytes  = 512
)

// ParseHash reads ITERATIONS:SALT:HASH.
func ParseHash(text string) (*Hash, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return nil, errors.New("is not ITERATIONS:SALT:HASH")
	}
	var h Hash
	var err error
	if h.iterations, err = strconv.Atoi(parts[0]); err != nil || h.iterations < 1 || h.iterations > maxIterations {
		return nil, fmt.Errorf("has no number of iterations from 1 to %d", maxIterations)
	}
	for i, into := range []*[]byte{&h.salt, &h.sum} {
		*into, err = hex.DecodeString(parts[i+1])
		if n := len(*into); err != nil || n == 0 || n > maxHashBytes {
			return nil, fmt.Errorf("has a salt or a hash that is no hexadecimal number of up to %d bytes", maxHashBytes)
		}
	}
	return &h, nil
}

// Text is what ParseHash reads. It is as secret as a password.
func (h *Hash) Text() string { return fmt.Sprintf("%d:%x:%x", h.iterations, h.salt, h.sum) }

// String hides the hash.
func (*Hash) String() string { return Secret("").String() }

// GoString hides the hash.
func (*Hash) GoString() string { return Secret("").String() }

// Of reports whether it is the hash of a password.
func (h *Hash) Of(password string) bool {
	sum, err := pbkdf2.Key(sha1.New, password, h.salt, h.iterations, len(h.sum))
	return err == nil && subtle.ConstantTimeCompare(sum, h.sum) == 1
}
