package openwire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nixiemq/nixie/internal/message"
)

func TestEveryKindHasAClass(t *testing.T) { // OpenWire 14, R-WIRE-07
	t.Parallel()
	// what a broker can safely send to every Java client (OpenWire 4.9)
	safe := []string{classJMS, classInvalidClientID, classInvalidDestination, classInvalidSelector, classResourceAllocation, classRolledBack, classXA,
		classSecurity, classIllegalState, classIO}
	for _, kind := range message.Kinds() {
		i := slices.IndexFunc(classes, func(c struct {
			kind  error
			class string
		}) bool {
			return c.kind == kind
		})
		if i < 0 {
			t.Errorf("%v has no class", kind)
			continue
		}
		got := throwable(fmt.Errorf("queue orders: %w", kind))
		if got.Class != classes[i].class || !slices.Contains(safe, got.Class) {
			t.Errorf("%v is %s", kind, got.Class)
		}
		if got.Message.Value != "queue orders: "+kind.Error() {
			t.Errorf("text %q", got.Message.Value)
		}
	}
	for _, class := range safe { // clients of 6.x convert what 5.x knows, and not the other way round
		if !strings.HasPrefix(class, "javax.") && !strings.HasPrefix(class, "java.") {
			t.Errorf("%s is unknown to clients of 5.x", class)
		}
	}
	if len(classes) != len(message.Kinds()) {
		t.Errorf("%d classes for %d kinds", len(classes), len(message.Kinds()))
	}
}

func TestThrowable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err         error
		class, text string
	}{
		"no kind":            {errors.New("boom"), classJMS, "boom"},
		"a class of its own": {fmt.Errorf("send: %w", exception(classXA, message.ErrDenied)), classXA, "send: denied"},
		"the first class wins": {exceptionIf(message.ErrNotFound, classNoDestination, exceptionf(classJMS, "x: %w", message.ErrNotFound)),
			classJMS, "x: not found"},
		"no UTF-8":      {errors.New("a\xffb"), classJMS, "a\ufffdb"},
		"an empty text": {errors.New(""), classJMS, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := throwable(c.err)
			if got.Class != c.class || got.Message.Value != c.text || !got.Message.Valid {
				t.Errorf("got %s", got)
			}
		})
	}
	for _, unit := range []string{"x", "ä", "€", "😀"} {
		long := throwable(errors.New(strings.Repeat(unit, 2000))).Message.Value
		if len(long) > 1024 || !utf8.ValidString(long) || !strings.HasSuffix(long, unit+"...") {
			t.Errorf("a long text became %d bytes, valid %v", len(long), utf8.ValidString(long))
		}
	}
}
