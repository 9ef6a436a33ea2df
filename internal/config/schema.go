package config

import (
	"bytes"
	"encoding/json"
)

// Schema returns the JSON schema of our own YAML. It is made of the very table
// that the reader uses. It is narrower than the reader in one thing: flags are
// true and false alone.
func Schema() []byte {
	l := newLoader(Options{})
	s := schemaOf(yamlForm{kind: formMapping, keys: yamlReader{loader: l}.top(), doc: "Configuration of the message broker NixieMQ; see docs/configuration.md."})
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", "NixieMQ configuration"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("a schema is maps of texts: " + err.Error())
	}
	return b.Bytes()
}

// Patterns of what a number cannot say.
const (
	durationPattern = `^\s*[-+]?([0-9]+|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ms|s|m|h)(\s*([0-9]+(\.[0-9]*)?|\.[0-9]+)(ms|s|m|h))*)\s*$`
	sizePattern     = `^\s*[0-9]+\s*([kKmMgG]?[bB]?)\s*$`
)

// schemaOf makes the schema of a form.
func schemaOf(f yamlForm) map[string]any {
	s := map[string]any{}
	if f.doc != "" {
		s["description"] = f.doc
	}
	switch f.kind {
	case formText: // what looks like a number or a flag is a text as well
		s["type"] = []string{"string", "number", "boolean", "null"}
	case formBoolean:
		s["type"] = "boolean"
	case formWhole:
		s["type"] = "integer"
		bounds(s, f)
	case formNumber:
		s["type"] = "number"
		bounds(s, f)
	case formDuration:
		s["type"], s["pattern"] = []string{"string", "integer"}, durationPattern
	case formSize:
		s["type"], s["pattern"], s["minimum"] = []string{"string", "integer"}, sizePattern, 0
	case formWord:
		s["enum"] = f.words
	case formList:
		s["type"], s["items"] = "array", schemaOf(*f.of)
	case formEither:
		var all []any
		for _, e := range f.either {
			all = append(all, schemaOf(e))
		}
		s["anyOf"] = all
	case formMapping:
		mappingSchema(s, f)
	}
	return s
}

func bounds(s map[string]any, f yamlForm) {
	if f.low != nil {
		s["minimum"] = *f.low
	}
	if f.high != nil {
		s["maximum"] = *f.high
	}
}

func mappingSchema(s map[string]any, f yamlForm) {
	properties := map[string]any{}
	for _, k := range f.keys {
		properties[k.name] = schemaOf(k.form)
	}
	s["type"], s["properties"], s["additionalProperties"] = "object", properties, false
	if len(f.needs) > 0 {
		s["required"] = f.needs
	}
	if len(f.oneOf) > 0 {
		var one []any
		for _, name := range f.oneOf {
			one = append(one, map[string]any{"required": []string{name}})
		}
		s["oneOf"] = one
	}
}
