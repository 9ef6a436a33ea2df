package wire

import (
	"errors"
	"testing"
)

// wantKind fails the test unless err is of the kind.
func wantKind(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v, want %v", err, kind)
	}
}
