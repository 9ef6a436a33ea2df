package config

import (
	"regexp"
	"testing"
)

// remedy finds what to do in the text of a refusal.
var remedy = regexp.MustCompile(`(^|; )(remove|write|set|use|give|add|send|start|name|keep|read)\b`)

// TestEveryRefusalHasARemedy looks at all elements and attributes that are errors.
func TestEveryRefusalHasARemedy(t *testing.T) {
	t.Parallel()
	check := func(where, why string) {
		if !remedy.MatchString(why) {
			t.Errorf("%s: %q does not say what to do", where, why)
		}
	}
	for _, root := range []*part{brokerPart, hornetQPart, artemisPart} {
		for _, p := range allParts(root, nil) {
			if p.fate == refused {
				check(p.String(), p.why)
			}
			for _, a := range p.attrs {
				if a.fate == refused {
					check(p.String()+" "+a.name, a.why)
				}
			}
		}
	}
}
