package message

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMatchName(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pattern, name string
		want          bool
	}{
		"R-MAP-02 a plain name matches itself":              {"A.B", "A.B", true},
		"R-MAP-02 a plain name matches nothing longer":      {"A", "A.B", false},
		"R-MAP-02 a plain name matches nothing shorter":     {"A.B", "A", false},
		"R-MAP-02 case counts":                              {"a.B", "A.B", false},
		"R-MAP-02 star is one step":                         {"A.*", "A.B", true},
		"R-MAP-02 star is not two steps":                    {"A.*", "A.B.C", false},
		"R-MAP-02 star is not no step":                      {"A.*", "A", false},
		"R-MAP-02 star in the middle":                       {"A.*.C", "A.B.C", true},
		"R-MAP-02 star at the front":                        {"*.B", "A.B", true},
		"R-MAP-02 star alone is one step":                   {"*", "A.B", false},
		"R-MAP-02 tail matches no step":                     {"A.>", "A", true},
		"R-MAP-02 tail matches one step":                    {"A.>", "A.B", true},
		"R-MAP-02 tail matches several steps":               {"A.>", "A.B.C", true},
		"R-MAP-02 tail keeps its prefix":                    {"A.>", "B.A", false},
		"R-MAP-02 tail is not a prefix of text":             {"A.>", "AB", false},
		"R-MAP-02 tail alone matches all":                   {">", "A.B.C", true},
		"R-MAP-02 a tail after a star":                      {"*.>", "A", true},
		"R-MAP-02 repeated tails match several steps":       {"A.>.>", "A.B.C", true},
		"R-MAP-02 repeated tails match one step":            {"A.>.>", "A.B", true},
		"R-MAP-02 repeated tails match no step":             {"A.>.>", "A", true},
		"R-MAP-02 repeated tails alone match all":           {">.>.>", "A", true},
		"R-MAP-02 repeated tails keep their prefix":         {"A.>.>", "B", false},
		"R-MAP-03 star within a step is a letter":           {"foo*", "foobar", false},
		"R-MAP-03 star within a step matches itself":        {"foo*", "foo*", true},
		"R-MAP-03 tail within a step is a letter":           {"foo>", "foo.bar", false},
		"R-MAP-03 tail in the middle matches nothing else":  {"A.>.B", "A.X.B", false},
		"R-MAP-03 tail in the middle matches itself":        {"A.>.B", "A.>.B", true},
		"R-MAP-11 a pattern matches the text of a narrower": {"A.>", "A.*", true},
		"R-MAP-11 a star matches the text of a tail":        {"A.*", "A.>", true},
		"R-MAP-11 a star does not match two steps of text":  {"A.*", "A.B.>", false},
		"empty steps are steps":                             {"A.*.B", "A..B", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := MatchName(tt.pattern, tt.name); got != tt.want {
				t.Errorf("MatchName(%q, %q) = %v, want %v", tt.pattern, tt.name, got, tt.want)
			}
		})
	}
}

func TestMatchNameAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { MatchName("A.*.C.>.>", "A.B.C.D.E") }); n != 0 {
		t.Errorf("%v allocations a match, want none", n)
	}
}

func TestMatchesKeepsToItsKind(t *testing.T) { // R-MAP-01
	t.Parallel()
	kinds := []DestinationKind{Queue, Topic, TempQueue, TempTopic}
	for _, k := range kinds {
		for _, o := range kinds {
			d, other := Destination{k, ">"}, Destination{o, "X"}
			if got := d.Matches(other); got != (k == o) {
				t.Errorf("%v matches %v: %v", d, other, got)
			}
		}
	}
}

func TestParseDestination(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		kind DestinationKind
		want Destination
	}{
		"the kind that is given":        {"A.B", Queue, Destination{Queue, "A.B"}},
		"queue prefix":                  {"queue://A", Topic, Destination{Queue, "A"}},
		"topic prefix":                  {"topic://A", Queue, Destination{Topic, "A"}},
		"temporary queue prefix":        {"temp-queue://A", Queue, Destination{TempQueue, "A"}},
		"temporary topic prefix":        {"temp-topic://A", Queue, Destination{TempTopic, "A"}},
		"R-MAP-04 names are trimmed":    {"  queue:// A ", Topic, Destination{Queue, "A"}},
		"R-MAP-04 options are dropped":  {"A?consumer.prefetchSize=1", Queue, Destination{Queue, "A"}},
		"R-MAP-05 a composite is whole": {"A, topic://B", Queue, Destination{Queue, "A, topic://B"}},
		"only the first prefix counts":  {"queue://topic://A", Topic, Destination{Queue, "topic://A"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseDestination(tt.text, tt.kind)
			if err != nil || got != tt.want {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestParseDestinationRefusesNoName(t *testing.T) { // R-MAP-04
	t.Parallel()
	for _, text := range []string{"", "  ", "queue://", "topic://  ", "?a=b", "queue:// ?a=b"} {
		if d, err := ParseDestination(text, Queue); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: got %v, %v; want ErrInvalid", text, d, err)
		}
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		d    Destination
		want []Destination
	}{
		"a plain one is its only part":     {Destination{Queue, "A"}, []Destination{{Queue, "A"}}},
		"R-MAP-05 parts are trimmed":       {Destination{Queue, " A , B "}, []Destination{{Queue, "A"}, {Queue, "B"}}},
		"R-MAP-05 empty parts go":          {Destination{Topic, "A,,B,"}, []Destination{{Topic, "A"}, {Topic, "B"}}},
		"R-MAP-05 duplicates go":           {Destination{Queue, "A,B,A,queue://B"}, []Destination{{Queue, "A"}, {Queue, "B"}}},
		"R-MAP-05 a part may say its kind": {Destination{Queue, "A,topic://A"}, []Destination{{Queue, "A"}, {Topic, "A"}}},
		"nothing but commas has no part":   {Destination{Queue, ",,"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.d.Parts()); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDestinationClaims(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		d    Destination
		want string // the claims that hold
	}{
		"none":                                {Destination{}, "zero"},
		"queue":                               {Destination{Queue, "A"}, "queue"},
		"topic":                               {Destination{Topic, "A"}, "topic"},
		"temporary queue":                     {Destination{TempQueue, "A"}, "queue temporary"},
		"temporary topic":                     {Destination{TempTopic, "A"}, "topic temporary"},
		"advisory":                            {Destination{Topic, "ActiveMQ.Advisory.Connection"}, "topic advisory"},
		"a queue is no advisory":              {Destination{Queue, "ActiveMQ.Advisory.Connection"}, "queue"},
		"star":                                {Destination{Queue, "A.*"}, "queue pattern"},
		"R-MAP-03 star within a step":         {Destination{Queue, "foo*"}, "queue pattern"},
		"R-MAP-05 a composite is no pattern":  {Destination{Queue, "A.*,B"}, "queue composite"},
		"R-MAP-03 tail in the middle of name": {Destination{Topic, "A.>.B"}, "topic pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, c := range []struct {
				holds bool
				name  string
			}{
				{tt.d.IsZero(), "zero"}, {tt.d.IsQueue(), "queue"}, {tt.d.IsTopic(), "topic"},
				{tt.d.IsTemporary(), "temporary"}, {tt.d.IsAdvisory(), "advisory"},
				{tt.d.IsPattern(), "pattern"}, {tt.d.IsComposite(), "composite"},
			} {
				if c.holds {
					got = append(got, c.name)
				}
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("%v is %q, want %q", tt.d, s, tt.want)
			}
		})
	}
}

func TestDestinationString(t *testing.T) {
	t.Parallel()
	for d, want := range map[Destination]string{
		{Queue, "A"}:     "queue://A",
		{Topic, "A"}:     "topic://A",
		{TempQueue, "A"}: "temp-queue://A",
		{TempTopic, "A"}: "temp-topic://A",
		{9, "A"}:         "unknown-9://A",
		{}:               "",
	} {
		if got := d.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if want == "" || d.Kind == 9 {
			continue
		}
		if back, err := ParseDestination(want, NoDestination); err != nil || back != d {
			t.Errorf("%q reads back as %v, %v", want, back, err)
		}
	}
}
