package jolokia

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A bean is what JMX calls an MBean: values that can be read, and things that can be
// done.
type bean struct {
	name       name
	class      string
	attributes []attribute
	operations []operation
}

// An attribute is one value. None can be set: what ActiveMQ lets one set by JMX is a
// matter of the configuration here.
type attribute struct {
	name, typ string
	get       func() (any, error)
}

// An operation is something that can be done.
type operation struct {
	name string
	args []string // Java types
	ret  string
	run  func(ctx context.Context, a []any) (any, error)
}

// Java types of values and arguments.
const (
	typString  = "java.lang.String"
	typBool    = "boolean"
	typInt     = "int"
	typLong    = "long"
	typMap     = "java.util.Map"
	typName    = "javax.management.ObjectName"
	typNames   = "[Ljavax.management.ObjectName;"
	typTable   = "javax.management.openmbean.TabularData"
	typDatas   = "[Ljavax.management.openmbean.CompositeData;"
	typData    = "javax.management.openmbean.CompositeData"
	typNothing = "void"
)

// value makes an attribute of what is known already.
func value(name, typ string, v any) attribute {
	return attribute{name, typ, func() (any, error) { return v, nil }}
}

// counts makes attributes of numbers, given as name and value.
func counts(pairs ...any) []attribute {
	var all []attribute
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, value(pairs[i].(string), typLong, pairs[i+1]))
	}
	return all
}

func (b *bean) attribute(name string) *attribute {
	i := slices.IndexFunc(b.attributes, func(a attribute) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return &b.attributes[i]
}

// read gets the values of attributes; nil: of all. Those that are not there are an error,
// unless lenient.
func (b *bean) read(names []string, lenient bool) (map[string]any, error) {
	values := map[string]any{}
	if names == nil {
		for _, a := range b.attributes {
			names = append(names, a.name)
		}
	}
	for _, n := range names {
		a := b.attribute(n)
		if a == nil && lenient {
			continue
		}
		if a == nil {
			return nil, &fault{404, classAttribute, fmt.Sprintf("No such attribute: %s", n)}
		}
		v, err := a.get()
		if err != nil {
			return nil, err
		}
		values[n] = v
	}
	return values, nil
}

// operation finds what a request calls, by its name, its signature if it gives one, and
// the number of arguments.
func (b *bean) operation(called string, args int) (*operation, error) {
	name, signature, signed := strings.Cut(strings.TrimSuffix(called, ")"), "(")
	var named, fit []*operation
	for i := range b.operations {
		o := &b.operations[i]
		if o.name != name {
			continue
		}
		named = append(named, o)
		if signed && strings.ReplaceAll(signature, " ", "") == strings.Join(o.args, ",") || !signed && len(o.args) == args {
			fit = append(fit, o)
		}
	}
	switch {
	case len(named) == 0:
		return nil, badRequest("No operation %s found on MBean %s. There are %s", name, b.name, strings.Join(b.operationNames(), ", "))
	case len(fit) == 1 && len(fit[0].args) == args:
		return fit[0], nil
	case len(fit) == 1:
		return nil, badRequest("Invalid number of operation arguments. Operation %s on %s requires %d parameters, not %d as given", fit[0].signature(), b.name, len(fit[0].args), args)
	}
	var known []string
	for _, o := range named {
		known = append(known, o.signature())
	}
	return nil, badRequest("Operation %s on MBean %s with %d arguments is not there, or overloaded. Signatures found: %s. Use a signature when specifying the operation", called, b.name, args, strings.Join(known, ", "))
}

func (b *bean) operationNames() []string {
	var names []string
	for i := range b.operations {
		if !slices.Contains(names, b.operations[i].name) {
			names = append(names, b.operations[i].name)
		}
	}
	return names
}

// looks reports whether the operation changes nothing.
func (o *operation) looks() bool {
	return o.ret == typDatas || o.ret == typData || o.name == "cursorSize" || o.name == "healthStatus"
}

func (o *operation) signature() string { return o.name + "(" + strings.Join(o.args, ",") + ")" }

// call runs an operation with the arguments of a request.
func (o *operation) call(ctx context.Context, args []any) (any, error) {
	converted := make([]any, len(args))
	for i, a := range args {
		v, err := convert(a, o.args[i])
		if err != nil {
			return nil, badRequest("argument %d of %s: %v", i+1, o.signature(), err)
		}
		converted[i] = v
	}
	return o.run(ctx, converted)
}

// convert makes of an argument, which is a text in a path and anything in a body, a value
// of a Java type. Nothing is the empty text and the empty map.
func convert(v any, typ string) (any, error) {
	text, isText := v.(string)
	switch n := v.(type) {
	case json.Number:
		text, isText = n.String(), true
	case bool:
		text, isText = strconv.FormatBool(n), true
	}
	switch {
	case typ == typString && v == nil:
		return "", nil
	case typ == typString && isText:
		return text, nil
	case typ == typBool && isText:
		if b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(text))); err == nil {
			return b, nil
		}
	case (typ == typInt || typ == typLong) && isText:
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err == nil && (typ == typLong || n >= math.MinInt32 && n <= math.MaxInt32) {
			return n, nil
		}
	case typ == typMap && v == nil:
		return map[string]any{}, nil
	case typ == typMap && isText:
		m := map[string]any{}
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&m); err == nil {
			return m, nil
		}
	case typ == typMap:
		if m, ok := v.(map[string]any); ok {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%v is no %s", v, typ)
}

// described is a bean as list shows it.
func (b *bean) described() map[string]any {
	attributes := map[string]any{}
	for _, a := range b.attributes {
		attributes[a.name] = map[string]any{"rw": false, "type": a.typ, "desc": a.name}
	}
	operations := map[string]any{}
	for i := range b.operations {
		o := &b.operations[i]
		args := make([]any, len(o.args))
		for n, typ := range o.args {
			args[n] = map[string]any{"name": fmt.Sprintf("p%d", n+1), "type": typ, "desc": ""}
		}
		one := map[string]any{"args": args, "ret": o.ret, "desc": o.name}
		switch before := operations[o.name].(type) {
		case nil:
			operations[o.name] = one
		case map[string]any:
			operations[o.name] = []any{before, one}
		case []any:
			operations[o.name] = append(before, one)
		}
	}
	return map[string]any{"class": b.class, "desc": "", "attr": attributes, "op": operations}
}

// reference is a name as a value.
func reference(n name) any { return map[string]any{"objectName": n.String()} }

func references(names []name) any {
	all := make([]any, len(names))
	for i, n := range names {
		all[i] = reference(n)
	}
	return all
}
