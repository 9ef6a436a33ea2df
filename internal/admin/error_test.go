package admin

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

func TestEveryKindHasAnAnswer(t *testing.T) {
	t.Parallel()
	words := map[string]bool{}
	for _, kind := range message.Kinds() {
		err := fmt.Errorf("look at queue: %w", kind)
		word := kindOf(err)
		if word == internalKind || words[word] {
			t.Errorf("%v: kind %q is no word of its own", kind, word)
		}
		words[word] = true
		if status := statusOf(err); status < 400 {
			t.Errorf("%v: status %d", kind, status)
		}
	}
	if err := errors.New("other"); kindOf(err) != internalKind || statusOf(err) != http.StatusInternalServerError {
		t.Errorf("an error of no kind is %q, status %d", kindOf(err), statusOf(err))
	}
}
