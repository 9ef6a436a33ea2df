package wire

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/nixiemq/nixie/internal/message"
)

// The vectors give objects as {"$type": name, field: value}. The functions here
// turn that into the package's structs and back by reflection, independently of
// the generated code: a field is the struct field of the same name but for case.

// A specType is a type of commands.yaml as the tests see it.
type specType struct {
	Name   string
	Code   byte
	Parent string
	Fields []struct {
		Name  string
		Since int
		Until int
	}
}

var specTypes = sync.OnceValues(func() (map[string]specType, error) {
	src, err := os.ReadFile("commands.yaml")
	if err != nil {
		return nil, err
	}
	var table struct{ Types []specType }
	if err := yaml.Unmarshal(src, &table); err != nil {
		return nil, err
	}
	types := map[string]specType{}
	for _, typ := range table.Types {
		types[typ.Name] = typ
	}
	return types, nil
})

func spec(t testing.TB) map[string]specType {
	t.Helper()
	types, err := specTypes()
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// restrict drops the fields that version v does not have, in nested objects too.
func restrict(types map[string]specType, v any, version int) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = restrict(types, v[i], version)
		}
		return out
	case map[string]any:
		name, ok := v["$type"].(string)
		if !ok {
			return v
		}
		out := map[string]any{"$type": name}
		for typ := name; typ != ""; typ = types[typ].Parent {
			for _, f := range types[typ].Fields {
				if f.Since <= version && (f.Until == 0 || version <= f.Until) {
					out[f.Name] = restrict(types, v[f.Name], version)
				}
			}
		}
		return out
	}
	return v
}

// fromJSON makes the object that a vector describes.
func fromJSON(types map[string]specType, v any) (DataStructure, error) {
	if v == nil {
		return nil, nil
	}
	m := v.(map[string]any)
	name := m["$type"].(string)
	ds := newObject(types[name].Code, MaxVersion)
	if ds == nil {
		return nil, fmt.Errorf("no type %s", name)
	}
	return ds, setFields(types, reflect.ValueOf(ds).Elem(), m)
}

func setFields(types map[string]specType, x reflect.Value, m map[string]any) error {
	for key, v := range m {
		if key == "$type" {
			continue
		}
		f := x.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, key) })
		if !f.IsValid() {
			return fmt.Errorf("%v has no field %s", x.Type(), key)
		}
		if err := setField(types, f, v); err != nil {
			return fmt.Errorf("field %s: %w", key, err)
		}
	}
	return nil
}

func setField(types map[string]specType, f reflect.Value, v any) error {
	if v == nil {
		return nil
	}
	switch x := f.Addr().Interface().(type) {
	case *bool:
		*x = v.(bool)
		return nil
	case *string:
		*x = unmark(v.(string))
		return nil
	case *Text:
		*x = NewText(unmark(v.(string)))
		return nil
	case *[]byte:
		b, err := hex.DecodeString(v.(string))
		*x = b
		return err
	case *[8]byte:
		_, err := hex.Decode(x[:], []byte(v.(string)))
		return err
	case **Throwable:
		*x = throwableFromJSON(v)
		return nil
	}
	switch f.Kind() {
	case reflect.Int8, reflect.Int32, reflect.Int64:
		n, err := v.(json.Number).Int64()
		f.SetInt(n)
		return err
	case reflect.Slice:
		list := v.([]any)
		f.Set(reflect.MakeSlice(f.Type(), len(list), len(list)))
		for i := range list {
			if err := setField(types, f.Index(i), list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	ds, err := fromJSON(types, v)
	if err != nil {
		return err
	}
	if !reflect.TypeOf(ds).AssignableTo(f.Type()) {
		return fmt.Errorf("%T in a field of type %v", ds, f.Type())
	}
	f.Set(reflect.ValueOf(ds))
	return nil
}

func throwableFromJSON(v any) *Throwable {
	if v == nil {
		return nil
	}
	m := v.(map[string]any)
	x := &Throwable{Class: m["class"].(string), Message: textFromJSON(m["message"]), Cause: throwableFromJSON(m["cause"])}
	stack, _ := m["stack"].([]any)
	for _, e := range stack {
		e := e.(map[string]any)
		line, _ := e["line"].(json.Number).Int64()
		x.Stack = append(x.Stack, StackElement{e["class"].(string), e["method"].(string), textFromJSON(e["file"]), int32(line)})
	}
	return x
}

func textFromJSON(v any) Text {
	if v == nil {
		return Text{}
	}
	return NewText(unmark(v.(string)))
}

// valueFromJSON makes the primitive value {"t": type, "v": value}.
func valueFromJSON(v any) any {
	m := v.(map[string]any)
	integer := func() int64 {
		n, err := m["v"].(json.Number).Int64()
		if err != nil {
			panic(err)
		}
		return n
	}
	bits := func(size int) uint64 {
		n, err := strconv.ParseUint(m["v"].(string), 16, size)
		if err != nil {
			panic(err)
		}
		return n
	}
	switch m["t"] {
	case "null":
		return nil
	case "bool":
		return m["v"].(bool)
	case "byte":
		return int8(integer())
	case "char":
		return Char(integer())
	case "short":
		return int16(integer())
	case "int":
		return int32(integer())
	case "long":
		return integer()
	case "double":
		return math.Float64frombits(bits(64))
	case "float":
		return math.Float32frombits(uint32(bits(32)))
	case "string", "bigstring":
		return unmark(m["v"].(string))
	case "bytes":
		b, err := hex.DecodeString(m["v"].(string))
		if err != nil {
			panic(err)
		}
		return b
	case "map":
		return mapFromJSON(m["v"])
	case "list":
		return listFromJSON(m["v"])
	}
	panic(fmt.Sprintf("unknown value type %v", m["t"]))
}

func mapFromJSON(v any) Map {
	if v == nil {
		return nil
	}
	m := Map{}
	for _, e := range v.([]any) {
		pair := e.([]any)
		m = append(m, Entry{unmark(pair[0].(string)), valueFromJSON(pair[1])})
	}
	return m
}

func listFromJSON(v any) List {
	list := List{}
	for _, e := range v.([]any) {
		list = append(list, valueFromJSON(e))
	}
	return list
}

// bodyFromJSON makes the body that a vector describes. ok is false where it
// says less than the content does.
func bodyFromJSON(kind message.BodyKind, v map[string]any) (body Body, ok bool) {
	body.Kind = kind
	switch {
	case kind == message.ObjectBody:
		return body, false
	case v["text"] != nil:
		body.Text = NewText(unmark(v["text"].(string)))
	case v["bytes"] != nil:
		b, err := hex.DecodeString(v["bytes"].(string))
		if err != nil {
			panic(err)
		}
		body.Bytes = b
	case v["map"] != nil:
		body.Map = mapFromJSON(v["map"])
	case v["items"] != nil:
		body.Stream = listFromJSON(v["items"])
	}
	return body, true
}
