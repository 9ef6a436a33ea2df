package main

import "fmt"

// sprintf is fmt.Sprintf under a name that fits an expression.
var sprintf = fmt.Sprintf

// writers writes the encoding methods.
func (e *emitter) writers() error {
	e.f("import %q\n\n", "github.com/nixiemq/nixie/internal/message")
	e.sinceOf()
	for _, d := range e.t.Types {
		if !e.t.own(d) {
			continue
		}
		e.f("func (x *%s) write(w *writer) {\n", goName(d.Name))
		if e.t.isA(d.Name, "BaseCommand") {
			e.f("x.BaseCommand.write(w)\n")
		}
		e.writeFields(e.t.fields(d))
		e.f("}\n\n")
	}
	e.f("func (x *Message) write(w *writer) {\nx.BaseCommand.write(w)\n")
	common := e.t.fields(e.t.byName["Message"])
	e.writeFields(common)
	e.f("if x.Kind == message.BlobBody {\n")
	e.writeFields(e.messageFields()[len(common):])
	e.f("}\n}\n\n")
	for _, of := range e.objects("nested", "cached", "nested[]") {
		e.writeNested(of)
	}
	for _, of := range e.objects("cached") {
		e.writeCached(of)
	}
	for _, of := range e.objects("nested[]") {
		e.writeArray(of)
	}
	return nil
}

// sinceOf writes the function from a type code to its first version.
func (e *emitter) sinceOf() {
	e.f("// firstVersion is the first version that has a type code, 0 for none.\n")
	e.f("func firstVersion(code byte) int {\nswitch code {\n")
	for since := 1; since <= 12; since++ {
		codes := ""
		for _, d := range e.t.Types {
			if d.Code != 0 && d.Since == since {
				codes += ", Code" + goName(d.Name)
			}
		}
		if codes != "" {
			e.f("case %s:\nreturn %d\n", codes[2:], since)
		}
	}
	e.f("}\nreturn 0\n}\n\n")
}

func (e *emitter) writeFields(fields []*field) {
	for i := 0; i < len(fields); {
		n := sameVersions(fields[i:])
		cond := e.condition(fields[i])
		if cond != "" {
			e.f("if %s {\n", "w."+cond)
		}
		for _, f := range fields[i : i+n] {
			e.f("%s\n", e.writeCall(f))
		}
		if cond != "" {
			e.f("}\n")
		}
		i += n
	}
}

// writeCall is the statement that writes f.
func (e *emitter) writeCall(f *field) string {
	typ, _ := e.t.goType(f)
	arg := "(x." + goName(f.Name) + ")"
	switch f.Type {
	case "bool":
		return "w.flag" + arg
	case "byte":
		if typ != "int8" {
			return "w.int8(int8" + arg + ")"
		}
		return "w.int8" + arg
	case "int":
		return "w.int32" + arg
	case "long":
		return "w.int64" + arg
	case "const8":
		return "w.const8" + arg
	case "bytes":
		return "w.bytes" + arg
	case "string":
		if typ == "string" {
			return "w.str" + arg
		}
		return "w.text" + arg
	case "throwable":
		return "w.throwable" + arg
	}
	return "w." + objectVerb(f) + objectName(f.Of) + arg
}

func (e *emitter) writeNested(of string) {
	if handWritten[of] {
		return
	}
	name := objectName(of)
	e.f("func (w *writer) nested%s(x *%s) {\n", name, name)
	e.f("w.flag(x != nil)\nif x == nil {\nreturn\n}\n")
	e.f("w.uint8(Code%s)\nx.write(w)\n}\n\n", name)
}

func (e *emitter) writeCached(of string) {
	if of == "any" { // by hand, as not every class can be cached
		return
	}
	name, typ := objectName(of), objectType(of)
	e.f("func (w *writer) cached%s(x %s) {\n", name, typ)
	e.f("if !w.cacheOn {\nw.nested%s(x)\nreturn\n}\n", name)
	e.f("var key cacheKey\nif x != nil {\nkey = x.cacheKey()\n}\n")
	e.f("at, known := w.cacheRef(key)\nif known {\nreturn\n}\n")
	e.f("w.nested%s(x)\nw.cacheDone(at, key)\n}\n\n", name)
}

func (e *emitter) writeArray(of string) {
	name, typ := objectName(of), objectType(of)
	e.f("func (w *writer) array%s(list []%s) {\n", name, typ)
	e.f("if !w.count(len(list), list != nil) {\nreturn\n}\n")
	e.f("for _, x := range list {\nw.nested%s(x)\n}\n}\n\n", name)
}
