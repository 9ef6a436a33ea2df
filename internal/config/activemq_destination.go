package config

import "github.com/nixiemq/nixie/internal/message"

// nameAttrs are those that name the destination of a queue or topic element; the
// second is another spelling of the first.
var nameAttrs = []attr{{"physicalName", text, "", honoured, ""}, {"name", text, "", honoured, ""}}

// nameOf returns the attribute that names the destination; ok is false where there
// is none, or where it was reported as bad.
func nameOf(e *element) (a attribute, ok bool) {
	if a, ok = e.given("physicalName"); !ok {
		a, ok = e.given("name")
	}
	return a, ok
}

// keyPart is the child element in which an entry may name its destinations, instead
// of an attribute: <destination><queue physicalName="X"/></destination>.
func keyPart(pattern fate, why string) *part {
	p := &part{name: "destination", fate: accepted}
	if pattern != honoured {
		return &part{name: "destination", fate: pattern, why: why, opaque: true}
	}
	for _, k := range policyAttr {
		p.children = append(p.children, &part{name: k.name, fate: accepted, attrs: nameAttrs})
	}
	return p
}

// keyOf reads the child element; none is no error.
func (w *walker) keyOf(e *element) (parts []message.Destination, given bool) {
	holder := e.find("destination")
	if holder == nil {
		return nil, false
	}
	if len(holder.children) != 1 {
		w.fail(holder.at("holds one queue, topic, tempQueue or tempTopic element, with its physicalName"))
		return nil, true
	}
	c := holder.children[0]
	for _, k := range policyAttr {
		if k.name != c.name {
			continue
		}
		a, ok := nameOf(c)
		if !ok {
			w.fail(c.at("has no physicalName"))
			return nil, true
		}
		d, err := message.ParseDestination(a.value, k.kind)
		if err != nil {
			w.fail(c.atAttr(a, "names no destination; give a name or a pattern such as \">\""))
			return nil, true
		}
		return d.Parts(), true
	}
	return nil, true // the walk has named it
}
