package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
)

// A Change is one difference between two configurations.
type Change struct {
	// Part is what it is about: "policyEntry queue://ORDERS.>", "listeners".
	Part string `json:"part"`
	// Setting is the word of the dialect; empty: the part as a whole.
	Setting string `json:"setting,omitempty"`
	// Old and New are the values as written; empty where there is none, or where it
	// is too large, or too secret, to be shown.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	// OldSource and NewSource are "FILE:LINE"; empty where nothing is said.
	OldSource string `json:"oldSource,omitempty"`
	NewSource string `json:"newSource,omitempty"`
	// Restart says that it takes a restart of the broker to make it hold.
	Restart bool `json:"restart,omitempty"`
}

// String gives the change as one line.
func (c Change) String() string {
	var b strings.Builder
	b.WriteString(c.Part)
	if c.Setting != "" {
		b.WriteString(" " + c.Setting)
	}
	b.WriteString(": ")
	switch {
	case c.Old == "" && c.New == "" && c.OldSource == "" && c.NewSource == "":
		b.WriteString("changed")
	default:
		b.WriteString(side(c.Old, c.OldSource) + " → " + side(c.New, c.NewSource))
	}
	if c.Restart {
		b.WriteString("; needs a restart")
	}
	return b.String()
}

func side(value, source string) string {
	if value == "" && source == "" {
		return "not set"
	}
	if source == "" {
		return value
	}
	return strings.TrimSpace(value + " (" + source + ")")
}

// live are the fields of a Config that can change while the broker runs, with those
// that say what they are about. All others take a restart.
var live = map[string]func(*Config) []fact{
	"Policies":         policyFacts,
	"DefaultPolicy":    nil, // told with Policies
	"Redelivery":       pluginFacts,
	"Addresses":        addressFacts,
	"Discarding":       discardingFacts,
	"Destinations":     destinationFacts,
	"DeadLetterQueues": nil, // told with Destinations
	"Interceptors":     interceptorFacts,
	"SelectorCache":    selectorCacheFacts,
	"Cluster":          clusterFacts,
	"Certificates":     certificateFacts, // and what is in the files
	"Access":           accessFacts,      // while there is one before and after
}

// quiet are fields of which a change means nothing.
var quiet = []string{"File"}

// A fact is one thing that a configuration says.
type fact struct {
	part, setting, value, source string
	restart                      bool
	secret                       string // compared, and never shown
}

// Diff lists what is different in a configuration that takes the place of another,
// in the order of the new one. Where something stands in the file is no difference.
func Diff(from, to *Config) []Change {
	var all []Change
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		name := t.Field(i).Name
		a, b := reflect.ValueOf(from).Elem().Field(i), reflect.ValueOf(to).Elem().Field(i)
		facts, isLive := live[name]
		switch {
		case slices.Contains(quiet, name):
		case name == "Access" && (from.Access == nil) != (to.Access == nil):
			all = append(all, Change{Part: "access", Old: asked(from), New: asked(to), Restart: true})
		case !isLive && plain(a) != plain(b):
			all = append(all, Change{Part: lowered(name), Old: shown(a), New: shown(b), Restart: true})
		case facts != nil:
			changes := compare(facts(from), facts(to))
			if len(changes) == 0 && plain(a) != plain(b) && name != "Interceptors" {
				changes = []Change{{Part: lowered(name)}} // the order, or what no setting says
			}
			all = append(all, changes...)
		}
	}
	return append(all, compare(securedFacts(from, to), securedFacts(to, from))...)
}

// Reloaded is the configuration that holds after a reload: what can change of the
// new one, and the rest of the one that the broker was started with.
func (c *Config) Reloaded(next *Config) *Config {
	holds := *c
	for name := range live {
		if name == "Access" && (c.Access == nil) != (next.Access == nil) {
			continue // whoever is in was let in by the old rule
		}
		reflect.ValueOf(&holds).Elem().FieldByName(name).Set(reflect.ValueOf(next).Elem().FieldByName(name))
	}
	holds.Listeners = slices.Clone(c.Listeners)
	for i := range holds.Listeners {
		if n := next.Listener(holds.Listeners[i]); n != nil {
			holds.Listeners[i].Secure = n.Secure
		}
	}
	return &holds
}

// compare lists what is different between two lists of facts. Of facts with one
// name, as of two entries for one pattern, the first are compared with the first.
func compare(from, to []fact) []Change {
	type key struct {
		part, setting string
		n             int
	}
	index := func(facts []fact) (map[key]fact, []key) {
		seen, all, order := map[key]int{}, map[key]fact{}, []key(nil)
		for _, f := range facts {
			k := key{part: f.part, setting: f.setting}
			seen[k]++
			k.n = seen[k]
			all[k] = f
			order = append(order, k)
		}
		return all, order
	}
	before, oldOrder := index(from)
	after, newOrder := index(to)
	var changes []Change
	for _, k := range newOrder {
		if a, b := before[k], after[k]; a.part == "" || a.value != b.value || a.secret != b.secret {
			changes = append(changes, Change{Part: k.part, Setting: k.setting, Old: a.value, New: b.value, OldSource: a.source, NewSource: b.source, Restart: b.restart})
		}
	}
	for _, k := range oldOrder {
		if a := before[k]; after[k].part == "" {
			changes = append(changes, Change{Part: k.part, Setting: k.setting, Old: a.value, OldSource: a.source, Restart: a.restart})
		}
	}
	return changes
}

// present is the value of a part that has no value but its presence.
const present = "given"

// settled turns the settings of a part into facts.
func settled(part, source string, settings []Setting) []fact {
	facts := []fact{{part: part, value: present, source: source}}
	for _, s := range settings {
		facts = append(facts, fact{part: part, setting: s.Name, value: s.Value, source: s.Source, restart: slices.Contains(atMaking, s.Name)})
	}
	return facts
}

// atMaking are settings that hold for a destination from its start on.
var atMaking = []string{"prioritizedMessages", "lastValueKey", setLastValueQueue, setLastValue, setLastValueKey}

func policyFacts(c *Config) []fact {
	var facts []fact
	for i := range c.Policies {
		p := &c.Policies[i]
		facts = append(facts, settled("policy "+p.Destination.String(), p.Source, p.Settings)...)
	}
	if p := c.DefaultPolicy; p != nil {
		facts = append(facts, settled("default policy", p.Source, p.Settings)...)
	}
	return facts
}

func pluginFacts(c *Config) []fact {
	p := c.Redelivery
	if p == nil {
		return nil
	}
	facts := settled("redeliveryPlugin", p.Source, p.Settings)
	for _, e := range p.Policies {
		facts = append(facts, settled("redeliveryPlugin "+e.Policy.Destination.String(), e.Policy.Source, e.Settings)...)
	}
	if e := p.Default; e != nil {
		facts = append(facts, settled("redeliveryPlugin by default", e.Policy.Source, e.Settings)...)
	}
	return facts
}

func addressFacts(c *Config) []fact {
	if c.Addresses == nil {
		return nil
	}
	var facts []fact
	for i := range c.Addresses.settings {
		a := &c.Addresses.settings[i]
		facts = append(facts, settled("address-setting "+a.pattern.text, a.source, a.listed())...)
	}
	return facts
}

func discardingFacts(c *Config) []fact {
	if c.Discarding == nil {
		return nil
	}
	return settled("discardingDLQBrokerPlugin", c.Discarding.Source, c.Discarding.Settings)
}

// asked says whether clients are asked who they are.
func asked(c *Config) string {
	if c.Access == nil {
		return "nobody is asked for a password"
	}
	return "clients are asked for a password"
}

func accessFacts(c *Config) []fact {
	if c.Access == nil {
		return nil
	}
	facts := []fact{{part: "access", setting: "anonymous", value: fmt.Sprintf("%t %s %s", c.Access.Anonymous, c.Access.AnonymousUser, c.Access.AnonymousGroup), source: c.Access.Source},
		{part: "access", setting: "anonymousInstead", value: fmt.Sprint(c.Access.AnonymousInstead), source: c.Access.Source},
		{part: "access", setting: "admins", value: strings.Join(c.Access.AdminGroups, ","), source: c.Access.Source}}
	for _, u := range c.Access.Users {
		part := "user " + u.Name
		secret := string(u.Password)
		if u.Hash != nil {
			secret = u.Hash.Text()
		}
		facts = append(facts, fact{part: part, setting: "groups", value: strings.Join(u.Groups, ","), source: u.Source},
			fact{part: part, setting: "password", value: u.Password.String(), secret: secret, source: u.Source})
	}
	if s, ok := c.Access.Settings.(*SecuritySettings); ok {
		for i := range s.settings {
			a := &s.settings[i]
			part := "security-setting " + a.pattern.text
			facts = append(facts, fact{part: part, value: present, source: a.source})
			for _, name := range sortedKeys(a.roles) {
				facts = append(facts, fact{part: part, setting: name, value: strings.Join(a.roles[name], ","), source: a.source})
			}
		}
	}
	a := c.Access.Authorization
	if a == nil {
		return facts
	}
	entry := func(part string, e *access.Entry) {
		for _, right := range []struct {
			name   string
			groups []string
		}{{"read", e.Read}, {"write", e.Write}, {"admin", e.Admin}} {
			facts = append(facts, fact{part: part, setting: right.name, value: strings.Join(right.groups, ","), source: e.Source})
		}
	}
	facts = append(facts, fact{part: "authorization", value: present})
	for i := range a.Entries {
		entry("authorizationEntry "+a.Entries[i].Destination.String(), &a.Entries[i])
	}
	if a.Default != nil {
		entry("authorizationEntry by default", a.Default)
	}
	if a.Temporary != nil {
		entry("tempDestinationAuthorizationEntry", a.Temporary)
	}
	return facts
}

func destinationFacts(c *Config) []fact {
	var facts []fact
	for _, d := range c.Destinations {
		facts = append(facts, fact{part: "destination " + d.String(), value: present})
	}
	for _, d := range c.DeadLetterQueues {
		facts = append(facts, fact{part: "destination " + d.String(), setting: "isDLQ", value: "true"})
	}
	return facts
}

func interceptorFacts(c *Config) []fact {
	i := c.Interceptors
	if i == nil {
		i = DefaultInterceptors()
	}
	var facts []fact
	for _, v := range i.VirtualTopics {
		part := "virtualTopic " + v.Name
		facts = append(facts, fact{part: part, value: present, source: v.Source})
		for name, value := range map[string]any{"prefix": v.Prefix, "postfix": v.Postfix, "selectorAware": v.SelectorAware, "setOriginalDestination": v.SetOriginalDestination} {
			facts = append(facts, fact{part: part, setting: name, value: fmt.Sprint(value), source: v.Source})
		}
	}
	for _, k := range i.Composites {
		part := "compositeQueue " + k.Name
		if k.Kind == message.Topic {
			part = "compositeTopic " + k.Name
		}
		facts = append(facts, fact{part: part, value: present, source: k.Source})
		for name, value := range map[string]any{"forwardOnly": k.ForwardOnly, "sendWhenNotMatched": k.SendWhenNotMatched} {
			facts = append(facts, fact{part: part, setting: name, value: fmt.Sprint(value), source: k.Source})
		}
		var to []string
		for _, f := range k.ForwardTo {
			text := f.Destination.String()
			if f.Selector != "" {
				text += " if " + f.Selector
			}
			if f.Otherwise {
				text += " otherwise"
			}
			to = append(to, text)
		}
		facts = append(facts, fact{part: part, setting: "forwardTo", value: strings.Join(to, ", "), source: k.Source})
	}
	for _, f := range i.Filters {
		facts = append(facts, fact{part: "filter of " + f.Queue.String(), value: f.Selector, source: f.Source})
	}
	for _, m := range i.Mirrors {
		part := "mirroredQueue " + m.Prefix + "*" + m.Postfix
		facts = append(facts, fact{part: part, value: present, source: m.Source},
			fact{part: part, setting: "temporary", value: fmt.Sprint(m.Temporary), source: m.Source},
			fact{part: part, setting: "keptOnly", value: fmt.Sprint(m.KeptOnly), source: m.Source})
	}
	slices.SortStableFunc(facts, func(a, b fact) int { return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.setting, b.setting)) })
	return facts
}

func selectorCacheFacts(c *Config) []fact {
	p := c.SelectorCache
	if p == nil {
		return nil
	}
	const part = "virtualSelectorCacheBrokerPlugin"
	return []fact{{part: part, value: present, source: p.Source},
		{part: part, setting: "ignoreWildcardSelectors", value: fmt.Sprint(p.IgnoreWildcardSelectors), source: p.Source},
		{part: part, setting: "singleSelectorPerDestination", value: fmt.Sprint(p.SingleSelectorPerDestination), source: p.Source}}
}

// lowered is a field's name as people read it: with a small letter.
func lowered(name string) string { return strings.ToLower(name[:1]) + name[1:] }

// shown is a value that is short and no secret; else it is empty.
func shown(v reflect.Value) string {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return fmt.Sprint(v.Interface())
	}
	if all, ok := v.Interface().([]Listener); ok {
		var uris []string
		for _, l := range all {
			uris = append(uris, l.URI)
		}
		return strings.Join(uris, " ")
	}
	return ""
}

// plain writes a value down whole, except where in the file it stands. It is for
// comparing: secrets are in it.
func plain(v reflect.Value) string {
	var b strings.Builder
	spell(&b, v)
	return b.String()
}

func spell(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		spell(b, v.Elem())
	case reflect.Struct:
		b.WriteString("{")
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Source" && name != "Secure" && name != "source" && name != "place" && name != "addresses" { // the last are compared by themselves
				b.WriteString(name + ":")
				spell(b, v.Field(i))
				b.WriteString(";")
			}
		}
		b.WriteString("}")
	case reflect.Slice, reflect.Array:
		b.WriteString("[")
		for i := range v.Len() {
			spell(b, v.Index(i))
			b.WriteString(",")
		}
		b.WriteString("]")
	case reflect.Map:
		var pairs []string
		for _, k := range v.MapKeys() {
			pairs = append(pairs, plain(k)+"="+plain(v.MapIndex(k)))
		}
		slices.Sort(pairs)
		fmt.Fprintf(b, "%q", pairs)
	case reflect.String:
		fmt.Fprintf(b, "%q", v.String())
	case reflect.Func: // says nothing that could be compared
	default:
		fmt.Fprint(b, v)
	}
}
