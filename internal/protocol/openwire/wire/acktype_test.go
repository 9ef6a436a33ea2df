package wire

import "testing"

// The numbers by which Java clients know the types of acknowledgements (R-WIRE-01).
func TestAckTypes(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"DELIVERED", "POISON", "STANDARD", "REDELIVERED", "INDIVIDUAL", "UNMATCHED", "EXPIRED"} {
		if got := AckType(i).String(); got != name {
			t.Errorf("%d is %s, want %s", i, got, name)
		}
	}
	if MinVersion != 1 || MaxVersion != 12 {
		t.Errorf("versions %d to %d, want 1 to 12", MinVersion, MaxVersion)
	}
}
