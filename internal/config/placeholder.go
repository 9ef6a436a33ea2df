package config

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of placeholders: how deep one may lead to another, how many there may
// be in one value, those they lead to included, and how long it may become.
const (
	maxExpansionDepth = 16
	maxExpansionSteps = 1000
	maxExpansionBytes = 64 << 10
)

// placeholders resolves ${name} and ${name:default} (R-XML-02). The sources are
// asked in this order: what the command line fixes (activemq.data and its like,
// -D), the property files that the document names, the environment. A property
// file's values may have placeholders themselves.
type placeholders struct {
	fixed      map[string]string
	properties map[string]string
	lookupEnv  func(string) (string, bool)
}

// errUnresolved says that a placeholder has no value and no default.
var errUnresolved = errors.New("has no value")

// expand replaces all placeholders of s.
func (p *placeholders) expand(s string) (string, error) {
	return (&expansion{p, maxExpansionSteps}).text(s, 0)
}

// An expansion replaces the placeholders of one value, in at most left steps.
type expansion struct {
	from *placeholders
	left int
}

// text replaces the placeholders of s, inside depth others.
func (x *expansion) text(s string, depth int) (string, error) {
	if !strings.Contains(s, "${") {
		return s, nil
	}
	if depth == maxExpansionDepth {
		return "", fmt.Errorf("%s leads back to itself, or is nested more than %d deep", s, maxExpansionDepth)
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		end := closing(rest)
		if end < 0 {
			return "", fmt.Errorf("${%s has no closing brace", rest)
		}
		if x.left--; x.left < 0 {
			return "", fmt.Errorf("value has more than %d placeholders", maxExpansionSteps)
		}
		v, err := x.value(rest[:end], depth+1)
		if err != nil {
			return "", err
		}
		out.WriteString(v)
		if out.Len() > maxExpansionBytes {
			return "", fmt.Errorf("value is longer than %d bytes after replacing placeholders", maxExpansionBytes)
		}
		s = rest[end+1:]
	}
}

// value gives the value of what stands between the braces.
func (x *expansion) value(inside string, depth int) (string, error) {
	p := x.from
	inside, err := x.text(inside, depth) // ${a.${b}}
	if err != nil {
		return "", err
	}
	name, def, hasDefault := strings.Cut(inside, ":")
	for _, n := range []string{inside, name} { // a name may have a colon in it
		if v, ok := p.fixed[n]; ok {
			return v, nil
		}
		if v, ok := p.properties[n]; ok {
			return x.text(v, depth)
		}
		if v, ok := p.lookupEnv(n); ok {
			return v, nil
		}
	}
	if hasDefault {
		return def, nil
	}
	return "", fmt.Errorf("${%s} %w; give it with -D %s=VALUE, in the environment or in a properties file that the document names", name, errUnresolved, name)
}

// closing returns where the brace closes that was opened before s; negative:
// nowhere.
func closing(s string) int {
	depth := 1
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			depth++
			i++
		case s[i] == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
