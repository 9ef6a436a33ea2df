package redelivery

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/nixiemq/nixie/internal/message"
)

// A Wish is a policy that a broker wishes its clients to go by. ActiveMQ has no such
// thing (R-URI-03); its clients do not look where ours finds it.
type Wish struct {
	Destination message.Destination // may be a pattern; zero: every other destination
	Policy      *Policy             // nil: none of this layer is for these destinations
}

// Wishes are layers of policies. What a layer has for a destination goes before the
// next layers; within a layer the precedence is that of a Map.
type Wishes [][]Wish

// wishPrefix begins the names of the properties that carry wishes.
const wishPrefix = "nixie.redelivery."

// MaxWishBytes bounds the text of wishes: it is one string of a frame.
const MaxWishBytes = 32000

// Properties writes the wishes as the text of Java properties; "" for none. What would
// be longer than MaxWishBytes is message.ErrOverLimit.
//
//	nixie.redelivery.0.1.destination=queue://ORDERS.>
//	nixie.redelivery.0.1.policy=maximumRedeliveries=4&initialRedeliveryDelay=500&…
func (w Wishes) Properties() (string, error) {
	var b strings.Builder
	for i, layer := range w {
		for j, wish := range layer {
			name := fmt.Sprintf("%s%d.%d.", wishPrefix, i, j)
			if !wish.Destination.IsZero() {
				b.WriteString(name + "destination=" + javaEscaped(wish.Destination.String()) + "\n")
			}
			policy := "none"
			if wish.Policy != nil {
				policy = wish.Policy.Options()
			}
			b.WriteString(name + "policy=" + policy + "\n")
		}
	}
	if b.Len() > MaxWishBytes {
		return "", fmt.Errorf("redelivery policies for clients: %d bytes, the limit is %d: %w", b.Len(), MaxWishBytes, message.ErrOverLimit)
	}
	return b.String(), nil
}

// ParseWishes reads what Properties has written. Properties of other names are passed
// over; bad ones are message.ErrInvalid.
func ParseWishes(properties string) (Wishes, error) {
	var w Wishes
	for line := range strings.Lines(properties) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		rest, ok := strings.CutPrefix(strings.TrimSpace(name), wishPrefix)
		if !ok {
			continue
		}
		layer, rest, _ := strings.Cut(rest, ".")
		entry, what, _ := strings.Cut(rest, ".")
		i, err1 := strconv.Atoi(layer)
		j, err2 := strconv.Atoi(entry)
		if err1 != nil || err2 != nil || i < 0 || i > len(w) || i == len(w) && j != 0 || i < len(w) && (j < 0 || j > len(w[i])) {
			return nil, fmt.Errorf("property %q is out of order: %w", name, message.ErrInvalid)
		}
		if i == len(w) {
			w = append(w, nil)
		}
		if j == len(w[i]) {
			w[i] = append(w[i], Wish{})
		}
		var err error
		switch what {
		case "destination":
			w[i][j].Destination, err = message.ParseDestination(javaUnescaped(value), message.Queue)
		case "policy":
			if value != "none" {
				w[i][j].Policy, err = ParsePolicyOptions(value)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("property %q: %w", name, err)
		}
	}
	return w, nil
}

// A WishMap finds the wish for a destination. It does not change.
type WishMap struct{ layers []Map[*Policy] }

// Map makes the map of wishes; nil where there are none.
func (w Wishes) Map() *WishMap {
	if len(w) == 0 {
		return nil
	}
	m := &WishMap{layers: make([]Map[*Policy], len(w))}
	for i, layer := range w {
		for _, wish := range layer {
			if wish.Destination.IsZero() {
				m.layers[i].SetDefault(wish.Policy)
			} else {
				m.layers[i].Put(wish.Destination, wish.Policy)
			}
		}
	}
	return m
}

// Lookup returns the policy that is wished for d; nil: none.
func (m *WishMap) Lookup(d message.Destination) *Policy {
	if m == nil {
		return nil
	}
	for i := range m.layers {
		if p, ok := m.layers[i].Lookup(d); ok && p != nil {
			return p
		}
	}
	return nil
}

func millisText(d time.Duration) string { return strconv.FormatInt(millis(d), 10) }

// Options writes what of a policy is not ActiveMQ's default as the options that a Java client's URL takes after
// "jms.redeliveryPolicy.", with arithmetic=hornetq where it is HornetQ's.
func (p *Policy) Options() string {
	var b strings.Builder
	add := func(name, value string) {
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(name + "=" + value)
	}
	def := DefaultPolicy()
	for _, f := range []struct{ name, value, def string }{
		{"maximumRedeliveries", strconv.Itoa(p.MaximumRedeliveries), strconv.Itoa(def.MaximumRedeliveries)},
		{"initialRedeliveryDelay", millisText(p.InitialRedeliveryDelay), millisText(def.InitialRedeliveryDelay)},
		{"redeliveryDelay", millisText(p.RedeliveryDelay), millisText(def.RedeliveryDelay)},
		{"maximumRedeliveryDelay", millisText(p.MaximumRedeliveryDelay), millisText(def.MaximumRedeliveryDelay)},
		{"useExponentialBackOff", strconv.FormatBool(p.UseExponentialBackOff), strconv.FormatBool(def.UseExponentialBackOff)},
		{"backOffMultiplier", javaDouble(p.BackOffMultiplier), javaDouble(def.BackOffMultiplier)},
		{"useCollisionAvoidance", strconv.FormatBool(p.UseCollisionAvoidance), strconv.FormatBool(def.UseCollisionAvoidance)},
		{"collisionAvoidanceFactor", javaDouble(p.CollisionAvoidanceFactor), javaDouble(def.CollisionAvoidanceFactor)},
		{"preDispatchCheck", strconv.FormatBool(p.PreDispatchCheck), strconv.FormatBool(def.PreDispatchCheck)},
	} {
		if f.value != f.def {
			add(f.name, f.value)
		}
	}
	if _, ok := p.Arithmetic.(HornetQ); ok {
		add("arithmetic", "hornetq")
	}
	if p.Name != "" {
		add("name", url.QueryEscape(p.Name))
	}
	return b.String()
}

// ParsePolicyOptions reads what Options has written. What is not there has ActiveMQ's
// default; names that are not known are passed over, as a later broker may have more.
func ParsePolicyOptions(s string) (*Policy, error) {
	values, err := url.ParseQuery(s)
	if err != nil {
		return nil, fmt.Errorf("policy %q: %w: %w", s, err, message.ErrInvalid)
	}
	p := DefaultPolicy()
	var bad []string
	number := func(name string, set func(float64)) {
		if text := values.Get(name); text != "" {
			f, err := strconv.ParseFloat(text, 64)
			if err != nil {
				bad = append(bad, name+"="+text)
				return
			}
			set(f)
		}
	}
	whole := func(name string, set func(int64)) {
		if text := values.Get(name); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				bad = append(bad, name+"="+text)
				return
			}
			set(n)
		}
	}
	truth := func(name string, p *bool) {
		if text := values.Get(name); text != "" {
			v, err := strconv.ParseBool(text)
			if err != nil {
				bad = append(bad, name+"="+text)
				return
			}
			*p = v
		}
	}
	whole("maximumRedeliveries", func(n int64) { p.MaximumRedeliveries = int(n) })
	whole("initialRedeliveryDelay", func(n int64) { p.InitialRedeliveryDelay = FromMillis(n) })
	whole("redeliveryDelay", func(n int64) { p.RedeliveryDelay = FromMillis(n) })
	whole("maximumRedeliveryDelay", func(n int64) { p.MaximumRedeliveryDelay = FromMillis(n) })
	truth("useExponentialBackOff", &p.UseExponentialBackOff)
	number("backOffMultiplier", func(f float64) { p.BackOffMultiplier = f })
	truth("useCollisionAvoidance", &p.UseCollisionAvoidance)
	number("collisionAvoidanceFactor", func(f float64) { p.CollisionAvoidanceFactor = f })
	truth("preDispatchCheck", &p.PreDispatchCheck)
	if values.Get("arithmetic") == "hornetq" {
		p.Arithmetic = HornetQ{}
	}
	p.Name = values.Get("name")
	if bad != nil {
		return nil, fmt.Errorf("policy options %s: %w", strings.Join(bad, ", "), message.ErrInvalid)
	}
	return &p, nil
}

// javaEscaped writes a value as java.util.Properties does.
func javaEscaped(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		switch {
		case u == '\\':
			b.WriteString(`\\`)
		case u < 0x20 || u > 0x7e:
			fmt.Fprintf(&b, `\u%04x`, u)
		default:
			b.WriteByte(byte(u))
		}
	}
	return b.String()
}

func javaUnescaped(s string) string {
	var units []uint16
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			units = append(units, uint16(s[i]))
			continue
		}
		i++
		if s[i] == 'u' && i+5 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+5], 16, 16); err == nil {
				units = append(units, uint16(n))
				i += 4
				continue
			}
		}
		units = append(units, uint16(s[i]))
	}
	return string(utf16.Decode(units))
}
