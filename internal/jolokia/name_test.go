package jolokia

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) { // R-JMX-10, and JMX's rules of patterns
	t.Parallel()
	const queue = "org.apache.activemq:type=Broker,brokerName=localhost,destinationType=Queue,destinationName=ORDERS"
	for pattern, want := range map[string]bool{
		queue: true,
		"org.apache.activemq:destinationName=ORDERS,destinationType=Queue,brokerName=localhost,type=Broker": true,
		"org.apache.activemq:type=Broker,brokerName=*,destinationType=Queue,destinationName=O*S":            true,
		"org.apache.activemq:type=Broker,*": true,
		"org.apache.activemq:*":             true,
		"*:*":                               true,
		"org.apache.activemq:destinationName=ORDER?,*":                              true,
		"org.apache.activemq:type=Broker,brokerName=localhost":                      false,
		"org.apache.activemq:type=Broker,brokerName=*":                              false,
		"org.apache.activemq:type=Broker,brokerName=other,*":                        false,
		"org.apache.activemq:type=Broker,destinationName=ORDERS,endpoint=*,*":       false,
		"org.apache.artemis:*":                                                      false,
		"org.apache.activemq:type=Broker,brokerName=localhost,destinationName=R*,*": false,
	} {
		p, err := parseName(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		n, err := parseName(queue)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.matches(n); got != want {
			t.Errorf("%s fits: %v, want %v", pattern, got, want)
		}
		if got := p.isPattern(); got != strings.ContainsAny(pattern, "*?") {
			t.Errorf("%s is a pattern: %v", pattern, got)
		}
	}
	for _, bad := range []string{"", "type=Broker", "d:", "d:type", "d:=x", "d:a=", "d:a=1,a=2"} {
		if n, err := parseName(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, n)
		}
	}
	if got := mangle(`a:b,c'd"e?f=g*h.i`); got != "a_b_c_d_e&qe;f&amp;g&ast;h.i" {
		t.Errorf("mangled: %s", got)
	}
}

func TestWild(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"*", "", true}, {"*", "abc", true}, {"a*c", "abbc", true}, {"a*c", "abb", false}, {"?b?", "abc", true},
		{"?", "", false}, {"*b*b*", "abab", true}, {"*b*b*", "abaa", false}, {"a**", "a", true}, {"abc", "abcd", false},
	} {
		if got := wild(tt.pattern, tt.text); got != tt.want {
			t.Errorf("%q fits %q: %v", tt.pattern, tt.text, got)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][]string{
		"":                        nil,
		"/":                       nil,
		"/read/d:a=b/X":           {"read", "d:a=b", "X"},
		"/exec/d:n=a!/b/move/x!!": {"exec", "d:n=a/b", "move", "x!"},
		"/read/d:n=a%2Fb%20c":     {"read", "d:n=a/b c"},
		"/read/d:n=a%21/b":        {"read", "d:n=a/b"},
		"/exec/n/op//x":           {"exec", "n", "op", "", "x"},
	} {
		got, err := split(path)
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %q, %v", path, got, err)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
	}
}
