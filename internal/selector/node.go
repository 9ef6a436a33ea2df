package selector

// A node is a part of a parsed selector. Conditions give true, false or NULL,
// which is unknown.
type node interface {
	eval(l Lookup) Value
}

// A literal is a constant.
type literal struct{ value Value }

func (n literal) eval(Lookup) Value { return n.value }

// A property is a header field or a property of the message.
type property struct{ name string }

func (n property) eval(l Lookup) Value {
	l.Charge(1)
	v, ok := l.Lookup(n.name)
	if !ok {
		return Value{}
	}
	return v
}

// A condition is a property that stands where a condition does: false where it
// is no boolean.
type condition struct{ of node }

func (n condition) eval(l Lookup) Value {
	v := n.of.eval(l)
	if v.kind == Null || v.kind == Bool {
		return v
	}
	return BoolValue(false)
}

// all is AND: false if a term is false, else unknown if one is unknown.
type all struct{ terms []node }

func (n *all) eval(l Lookup) Value {
	result := BoolValue(true)
	for _, t := range n.terms {
		switch v := t.eval(l); {
		case v.isFalse():
			return v
		case v.kind == Null:
			result = v
		}
	}
	return result
}

// some is OR: true if a term is true, else unknown if one is unknown.
type some struct{ terms []node }

func (n *some) eval(l Lookup) Value {
	result := BoolValue(false)
	for _, t := range n.terms {
		switch v := t.eval(l); {
		case v.isTrue():
			return v
		case v.kind == Null:
			result = v
		}
	}
	return result
}

// not is NOT: what is unknown stays so.
type not struct{ of node }

func (n not) eval(l Lookup) Value {
	v := n.of.eval(l)
	if v.kind == Null {
		return v
	}
	return BoolValue(!v.isTrue())
}

// isNull is IS NULL, or IS NOT NULL where negated. It is never unknown.
type isNull struct {
	of      node
	negated bool
}

func (n isNull) eval(l Lookup) Value {
	return BoolValue((n.of.eval(l).kind == Null) != n.negated)
}

// longList is how many strings an IN list has before it is searched by hash.
const longList = 8

// A membership is IN, or NOT IN where negated: unknown for what is no string.
type membership struct {
	of      node
	list    []string
	set     map[string]struct{} // list, where it is long
	negated bool
}

func (n *membership) eval(l Lookup) Value {
	v := n.of.eval(l)
	if v.kind != String {
		return Value{}
	}
	l.Charge(len(v.text)/8 + min(len(n.list), longList))
	return BoolValue(n.has(v.text) != n.negated)
}

// has reports whether s is in the list.
func (n *membership) has(s string) bool {
	if n.set != nil {
		_, ok := n.set[s]
		return ok
	}
	for _, e := range n.list {
		if e == s {
			return true
		}
	}
	return false
}

// index prepares a long list for searching.
func (n *membership) index() {
	if len(n.list) < longList {
		return
	}
	n.set = make(map[string]struct{}, len(n.list))
	for _, s := range n.list {
		n.set[s] = struct{}{}
	}
}
