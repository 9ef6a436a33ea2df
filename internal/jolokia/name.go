package jolokia

import (
	"fmt"
	"slices"
	"strings"
)

// A name is a JMX ObjectName, or a pattern of such.
type name struct {
	domain string
	keys   []property // as they were written
	open   bool       // a pattern that more properties may follow
}

// A property is one key of a name with its value.
type property struct{ key, value string }

// parseName reads a name such as "org.apache.activemq:type=Broker,brokerName=localhost".
func parseName(text string) (name, error) {
	domain, rest, ok := strings.Cut(text, ":")
	n := name{domain: domain}
	if !ok || rest == "" {
		return n, invalidName(text)
	}
	for rest != "" {
		var part string
		part, rest = cutProperty(rest)
		if part == "*" {
			n.open = true
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok || key == "" || value == "" || n.has(key) {
			return n, invalidName(text)
		}
		n.keys = append(n.keys, property{key, value})
	}
	if len(n.keys) == 0 && !n.open {
		return n, invalidName(text)
	}
	return n, nil
}

// cutProperty takes the first property off; a comma in quotes ends none.
func cutProperty(s string) (first, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ',' && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func invalidName(text string) error {
	return &fault{400, "javax.management.MalformedObjectNameException",
		fmt.Sprintf("%q is no name like org.apache.activemq:type=Broker,brokerName=localhost", text)}
}

func (n name) has(key string) bool {
	return slices.ContainsFunc(n.keys, func(p property) bool { return p.key == key })
}

// get is the value of a key; empty where it is not there.
func (n name) get(key string) string {
	for _, p := range n.keys {
		if p.key == key {
			return p.value
		}
	}
	return ""
}

// with is the name of something inside.
func (n name) with(pairs ...string) name {
	n.keys = slices.Clone(n.keys)
	for i := 0; i < len(pairs); i += 2 {
		n.keys = append(n.keys, property{pairs[i], mangle(pairs[i+1])})
	}
	return n
}

// properties writes the keys, in their order.
func (n name) properties() string {
	parts := make([]string, 0, len(n.keys)+1)
	for _, p := range n.keys {
		parts = append(parts, p.key+"="+p.value)
	}
	if n.open {
		parts = append(parts, "*")
	}
	return strings.Join(parts, ",")
}

// String writes the name as it was made.
func (n name) String() string { return n.domain + ":" + n.properties() }

// canonical has the keys in the order of the alphabet, as Jolokia's replies do.
func (n name) canonical() name {
	n.keys = slices.Clone(n.keys)
	slices.SortFunc(n.keys, func(a, b property) int { return strings.Compare(a.key, b.key) })
	return n
}

// isPattern reports whether the name may stand for several.
func (n name) isPattern() bool {
	return n.open || strings.ContainsAny(n.domain, "*?") ||
		slices.ContainsFunc(n.keys, func(p property) bool { return strings.ContainsAny(p.value, "*?") })
}

// matches reports whether o, which is no pattern, is one of those that n stands for. The
// order of the keys has no meaning.
func (n name) matches(o name) bool {
	if !wild(n.domain, o.domain) || len(n.keys) > len(o.keys) || !n.open && len(n.keys) != len(o.keys) {
		return false
	}
	return !slices.ContainsFunc(n.keys, func(p property) bool { return !o.has(p.key) || !wild(p.value, o.get(p.key)) })
}

// wild matches a text against a pattern in which * is any text and ? one sign. It takes
// no more steps than the product of their lengths.
func wild(pattern, text string) bool {
	p, t := 0, 0
	star, from := -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// mangle writes a value as ActiveMQ does in names (R-JMX-10).
func mangle(value string) string {
	return mangler.Replace(value)
}

var mangler = strings.NewReplacer(":", "_", ",", "_", "'", "_", `"`, "_", "?", "&qe;", "=", "&amp;", "*", "&ast;")
