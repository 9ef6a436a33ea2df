package config

// A fate is what becomes of a part of a file.
type fate uint8

// The fates there are. The zero value is the strictest, so that a row of a
// table that forgets to say is noticed.
const (
	refused  fate = iota // leaving it out would change what happens to a message: an error
	leftOut              // leaving it out is safe: a warning
	honoured             // it is read into the Config
	accepted             // it is right as it stands and asks for nothing
)

// A part is one element of a dialect: what becomes of it, and what it may hold.
// Parts are tables; nothing changes them.
type part struct {
	name string
	fate fate
	// why says, for refused and leftOut, what that means for the user, with the
	// remedy where there is one.
	why string
	// role says which reader takes the values of an honoured part.
	role role
	// attrs and children are what the part may hold. Everything else is an error.
	attrs    []attr
	children []*part
	// opaque means that what the part holds is not looked at.
	opaque bool
	// leaf means that the element's text is its value, judged by value: so write
	// HornetQ and Artemis what ActiveMQ writes as an attribute.
	leaf  bool
	value attr
	// harmless are the class names with which a refused part is left out instead.
	harmless []string
}

// leafPart is an element whose text is its value.
func leafPart(name string, k kind, def string, f fate, why string) *part {
	return &part{name: name, fate: accepted, leaf: true, value: attr{name, k, def, f, why}}
}

// An attr is one attribute of a part.
type attr struct {
	name string
	kind kind
	def  string // the dialect's default, which needs no word
	fate fate
	why  string // as in part
}

// attrNamed returns the row for an attribute.
func (p *part) attrNamed(name string) (attr, bool) {
	for _, a := range p.attrs {
		if a.name == name {
			return a, true
		}
	}
	return attr{}, false
}

// childNamed returns the part for a child element, or nil.
func (p *part) childNamed(name string) *part {
	for _, c := range p.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// names lists the attributes and children there may be.
func (p *part) names() (attrs, children []string) {
	for _, a := range p.attrs {
		attrs = append(attrs, a.name)
	}
	for _, c := range p.children {
		children = append(children, c.name)
	}
	return attrs, children
}
