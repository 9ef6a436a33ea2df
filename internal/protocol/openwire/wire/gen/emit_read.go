package main

// readers writes the decoding methods.
func (e *emitter) readers() error {
	e.f("import %q\n\n", "github.com/nixiemq/nixie/internal/message")
	e.newObject()
	for _, d := range e.t.Types {
		if !e.t.own(d) {
			continue
		}
		e.f("func (x *%s) read(r *reader) {\n", goName(d.Name))
		if e.t.isA(d.Name, "BaseCommand") {
			e.f("x.BaseCommand.read(r)\n")
		}
		e.readFields(e.t.fields(d))
		e.f("}\n\n")
	}
	e.f("func (x *Message) read(r *reader) {\nx.BaseCommand.read(r)\n")
	common := e.t.fields(e.t.byName["Message"])
	e.readFields(common)
	e.f("if x.Kind == message.BlobBody {\n")
	e.readFields(e.messageFields()[len(common):])
	e.f("}\n}\n\n")
	for _, of := range e.objects("nested", "cached", "nested[]") {
		e.readNested(of)
	}
	for _, of := range e.objects("cached") {
		e.readCached(of)
	}
	for _, of := range e.objects("nested[]") {
		e.readArray(of)
	}
	return nil
}

// newObject writes the function from a type code to an empty object.
func (e *emitter) newObject() {
	e.f("// newObject makes the object of a type code, nil where the version has no such type.\n")
	e.f("func newObject(code byte, version int) DataStructure {\nswitch code {\n")
	for _, d := range e.t.Types {
		if d.Code == 0 {
			continue
		}
		e.f("case Code%s:\n", goName(d.Name))
		if d.Since > 1 {
			e.f("if version < %d {\nreturn nil\n}\n", d.Since)
		}
		switch {
		case e.t.isA(d.Name, "Message"):
			e.f("return newMessage(code)\n")
		case e.t.isA(d.Name, "ActiveMQDestination"):
			e.f("return &Destination{Kind: code}\n")
		default:
			e.f("return new(%s)\n", goName(d.Name))
		}
	}
	e.f("}\nreturn nil\n}\n\n")
}

// readFields writes the assignments for fields in wire order; neighbours of
// the same versions share a condition.
func (e *emitter) readFields(fields []*field) {
	for i := 0; i < len(fields); {
		n := sameVersions(fields[i:])
		cond := e.condition(fields[i])
		if cond != "" {
			e.f("if %s {\n", "r."+cond)
		}
		for _, f := range fields[i : i+n] {
			e.f("x.%s = %s\n", goName(f.Name), e.readCall(f))
		}
		if cond != "" {
			e.f("}")
			e.readDefaults(fields[i : i+n])
			e.f("\n")
		}
		i += n
	}
}

// readDefaults writes the else branch for fields whose default is not zero.
func (e *emitter) readDefaults(fields []*field) {
	open := false
	for _, f := range fields {
		def, ok := defaults[f.owner+"."+f.Name]
		if !ok {
			continue
		}
		if !open {
			e.f(" else {\n")
			open = true
		}
		e.f("x.%s = %s\n", goName(f.Name), def)
	}
	if open {
		e.f("}")
	}
}

// sameVersions counts the fields from the front that exist in the same versions.
func sameVersions(fields []*field) int {
	n := 1
	for n < len(fields) && fields[n].Since == fields[0].Since && fields[n].Until == fields[0].Until {
		n++
	}
	return n
}

// condition is the test for the versions that have f; "" where every version of
// its type has it.
func (e *emitter) condition(f *field) string {
	switch {
	case f.Until != 0:
		return sprintf("version <= %d", f.Until)
	case f.Since > e.t.byName[f.owner].Since:
		return sprintf("version >= %d", f.Since)
	}
	return ""
}

// readCall is the expression that reads f.
func (e *emitter) readCall(f *field) string {
	typ, _ := e.t.goType(f)
	switch f.Type {
	case "bool":
		return "r.flag()"
	case "byte":
		if typ != "int8" {
			return typ + "(r.int8())"
		}
		return "r.int8()"
	case "int":
		return "r.int32()"
	case "long":
		return "r.int64()"
	case "const8":
		return "r.const8()"
	case "bytes":
		return "r.bytes()"
	case "string":
		if typ == "string" {
			return "r.str()"
		}
		return "r.text()"
	case "throwable":
		return "r.throwable()"
	}
	return "r." + objectVerb(f) + objectName(f.Of) + "()"
}

// objectVerb is the first part of the name of the method for an object field.
func objectVerb(f *field) string {
	switch f.Type {
	case "cached":
		return "cached"
	case "nested[]":
		return "array"
	}
	return "nested"
}

// handWritten are the classes whose nested form is coded by hand, as more than
// one type code belongs to them.
var handWritten = map[string]bool{"any": true, "ActiveMQDestination": true, "TransactionId": true, "Message": true}

func (e *emitter) readNested(of string) {
	if handWritten[of] {
		return
	}
	name := objectName(of)
	e.f("func (r *reader) nested%s() *%s {\n", name, name)
	e.f("if !r.enter(Code%s) {\nreturn nil\n}\n", name)
	made := "new(" + name + ")"
	if name == "MessageID" {
		made = "r.newMessageID()"
	}
	e.f("x := %s\nx.read(r)\nr.depth--\nreturn x\n}\n\n", made)
}

func (e *emitter) readCached(of string) {
	if of == "any" { // by hand, as not every class can be cached
		return
	}
	name, typ := objectName(of), objectType(of)
	e.f("func (r *reader) cached%s() %s {\n", name, typ)
	e.f("if !r.cacheOn {\nreturn r.nested%s()\n}\n", name)
	e.f("if !r.flag() {\nds := r.cachedObject()\n")
	e.f("x, ok := ds.(%s)\nif !ok && ds != nil {\nr.failClass(ds)\n}\nreturn x\n}\n", typ)
	e.f("slot := r.slot()\nx := r.nested%s()\n", name)
	e.f("if x == nil {\nr.store(slot, nil)\n} else {\nr.store(slot, x)\n}\nreturn x\n}\n\n")
}

func (e *emitter) readArray(of string) {
	name, typ := objectName(of), objectType(of)
	e.f("func (r *reader) array%s() []%s {\n", name, typ)
	e.f("n, ok := r.count()\nif !ok {\nreturn nil\n}\nlist := make([]%s, n)\n", typ)
	e.f("for i := range list {\nlist[i] = r.nested%s()\n}\nreturn list\n}\n\n", name)
}
