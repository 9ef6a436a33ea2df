package message

import (
	"fmt"
	"strings"
)

// DestinationKind says what a destination is. The four kinds are separate
// namespaces (R-MAP-01).
type DestinationKind uint8

// The kinds of destination. The zero value is no destination.
const (
	NoDestination DestinationKind = iota
	Queue
	Topic
	TempQueue
	TempTopic
)

// schemes are the prefixes ActiveMQ writes before a name, by kind.
var schemes = [...]string{NoDestination: "", Queue: "queue://", Topic: "topic://", TempQueue: "temp-queue://", TempTopic: "temp-topic://"}

// A Destination is where messages are sent to: a kind and a physical name
// without prefix or options. It is comparable; the zero value is none.
type Destination struct {
	Kind DestinationKind
	Name string
}

// String gives the destination as ActiveMQ prints it, e.g. "queue://ORDERS".
func (d Destination) String() string {
	if int(d.Kind) >= len(schemes) {
		return fmt.Sprintf("unknown-%d://%s", d.Kind, d.Name)
	}
	return schemes[d.Kind] + d.Name
}

// IsZero reports whether d is no destination.
func (d Destination) IsZero() bool { return d.Kind == NoDestination }

// IsQueue reports whether d is a queue, temporary or not.
func (d Destination) IsQueue() bool { return d.Kind == Queue || d.Kind == TempQueue }

// IsTopic reports whether d is a topic, temporary or not.
func (d Destination) IsTopic() bool { return d.Kind == Topic || d.Kind == TempTopic }

// IsTemporary reports whether d belongs to one connection and goes with it.
func (d Destination) IsTemporary() bool { return d.Kind == TempQueue || d.Kind == TempTopic }

// IsAdvisory reports whether d is one of the broker's advisory topics.
func (d Destination) IsAdvisory() bool {
	return d.Kind == Topic && strings.HasPrefix(d.Name, "ActiveMQ.Advisory.")
}

// IsPattern reports whether the name has a wildcard, anywhere (R-MAP-03).
// A composite is never a pattern (R-MAP-05).
func (d Destination) IsPattern() bool {
	return !d.IsComposite() && strings.ContainsAny(d.Name, "*>")
}

// IsComposite reports whether the name lists several destinations (R-MAP-05).
func (d Destination) IsComposite() bool { return strings.Contains(d.Name, ",") }

// Parts splits a composite into its destinations: trimmed, without empty parts
// and duplicates, in the order written. A part may carry its own prefix, else it
// has d's kind (R-MAP-05). A destination that is no composite is its only part.
func (d Destination) Parts() []Destination {
	if !d.IsComposite() {
		return []Destination{d}
	}
	var parts []Destination
	seen := map[Destination]bool{}
	for name := range strings.SplitSeq(d.Name, ",") {
		p, err := ParseDestination(name, d.Kind)
		if err != nil || seen[p] {
			continue
		}
		seen[p] = true
		parts = append(parts, p)
	}
	return parts
}

// ParseDestination reads a name with an optional prefix such as "topic://";
// without one the destination is of the given kind. White space around the name
// and options after "?" are dropped (R-MAP-04). An empty name is ErrInvalid.
func ParseDestination(s string, kind DestinationKind) (Destination, error) {
	s = strings.TrimSpace(s)
	for k := Queue; int(k) < len(schemes); k++ {
		if rest, ok := strings.CutPrefix(s, schemes[k]); ok {
			s, kind = rest, k
			break
		}
	}
	s, _, _ = strings.Cut(s, "?")
	s = strings.TrimSpace(s)
	if s == "" {
		return Destination{}, fmt.Errorf("destination name is empty: %w", ErrInvalid)
	}
	return Destination{Kind: kind, Name: s}, nil
}

// Matches reports whether name, taken as a plain destination name, fits the
// pattern of d: "*" as a whole step matches one step, ">" as the last step
// matches zero or more (R-MAP-02, R-MAP-03). The kinds must be equal.
func (d Destination) Matches(other Destination) bool {
	return d.Kind == other.Kind && MatchName(d.Name, other.Name)
}

// MatchName is Matches for names alone. It allocates nothing.
func MatchName(pattern, name string) bool {
	for {
		if onlyTails(pattern) {
			return true
		}
		p, pRest, pMore := strings.Cut(pattern, ".")
		n, nRest, nMore := strings.Cut(name, ".")
		if p != "*" && p != n {
			return false
		}
		if !nMore { // the name ends here: what is left of the pattern may only be ">" steps
			return !pMore || onlyTails(pRest)
		}
		if !pMore {
			return false
		}
		pattern, name = pRest, nRest
	}
}

// onlyTails reports whether a pattern's rest is ">" or a repeat of it, which
// collapses to one (R-MAP-02).
func onlyTails(rest string) bool {
	for {
		step, more, ok := strings.Cut(rest, ".")
		if step != ">" {
			return false
		}
		if !ok {
			return true
		}
		rest = more
	}
}

// NamesOverlap reports whether some name fits both patterns. It allocates nothing.
func NamesOverlap(x, y string) bool {
	for {
		if x == ">" || y == ">" {
			return true
		}
		xStep, xRest, xMore := strings.Cut(x, ".")
		yStep, yRest, yMore := strings.Cut(y, ".")
		if xStep != yStep && xStep != "*" && yStep != "*" {
			return false
		}
		switch {
		case !xMore && !yMore:
			return true
		case !xMore:
			return yRest == ">"
		case !yMore:
			return xRest == ">"
		}
		x, y = xRest, yRest
	}
}
