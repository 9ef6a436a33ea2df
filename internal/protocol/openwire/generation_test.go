package openwire

import (
	"math"
	"testing"
)

func TestGenerationsDifferAndGrow(t *testing.T) {
	t.Parallel()
	var s generations
	const now = 1_700_000_000_000
	first := s.next(now)
	second := s.next(now)
	if first == 0 || second <= first {
		t.Errorf("generations %d and %d at one time, want them above 0 and growing", first, second)
	}
	var restarted generations
	if third := restarted.next(now + 100); third <= second {
		t.Errorf("generation %d after a restart, want it above %d", third, second)
	}
}

func TestGenerationOfASequence(t *testing.T) { // R-BRK-11, R-CLIENT-62
	t.Parallel()
	const g = generation(5)
	for name, tt := range map[string]struct {
		sequence, position int64
		ours               bool
	}{
		"its own":                          {g.sequence(77), 77, true},
		"that of the connection before":    {generation(4).sequence(77), 77, false},
		"that of the first connection":     {77, 77, false},
		"no sequence, as some clients ack": {0, 0, true},
		"nothing was delivered":            {-1, -1, true},
		"nobody knows what was":            {-2, -2, true},
	} {
		position, ours := g.position(tt.sequence)
		if position != tt.position || ours != tt.ours {
			t.Errorf("%s: %d, %v, want %d, %v", name, position, ours, tt.position, tt.ours)
		}
	}
	if position, ours := generation(0).position(generation(0).sequence(77)); position != 77 || !ours {
		t.Errorf("first connection: %d, %v, want 77, true", position, ours)
	}
	if s := generation(generationMask).sequence(1<<positionBits - 1); s != math.MaxInt64 {
		t.Errorf("largest sequence %d, want the largest int64", s)
	}
}
