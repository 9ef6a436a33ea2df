package main

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// A table is what commands.yaml holds of interest here.
type table struct {
	Enums struct {
		AckType              yaml.MapSlice `yaml:"ack_type"`
		TransactionType      yaml.MapSlice `yaml:"transaction_type"`
		DestinationOperation yaml.MapSlice `yaml:"destination_operation"`
	} `yaml:"enums"`
	Types []*dataType `yaml:"types"`

	byName map[string]*dataType
}

// A dataType is one type of the table.
type dataType struct {
	Name          string   `yaml:"name"`
	Code          int      `yaml:"code"` // 0: abstract
	Parent        string   `yaml:"parent"`
	Since         int      `yaml:"since"`
	MarshallAware bool     `yaml:"marshall_aware"`
	Note          string   `yaml:"note"`
	Fields        []*field `yaml:"fields"`
}

// A field is one field of a type, in wire order.
type field struct {
	Name  string `yaml:"name"`
	Type  string `yaml:"type"`
	Of    string `yaml:"of"`
	Since int    `yaml:"since"`
	Until int    `yaml:"until"` // 0: still there
	Note  string `yaml:"note"`

	owner string // the type that lists it
}

// parse reads the table and links its types.
func parse(src []byte) (*table, error) {
	t := &table{byName: map[string]*dataType{}}
	if err := yaml.Unmarshal(src, t); err != nil {
		return nil, fmt.Errorf("read table: %w", err)
	}
	for _, d := range t.Types {
		t.byName[d.Name] = d
		for _, f := range d.Fields {
			f.owner = d.Name
		}
	}
	return t, t.check()
}

// check finds what the generator cannot work with.
func (t *table) check() error {
	for _, name := range []string{"BaseCommand", "Message", "ActiveMQBlobMessage", "ActiveMQDestination"} {
		if t.byName[name] == nil {
			return fmt.Errorf("no type %s", name)
		}
	}
	for _, d := range t.Types {
		if d.Parent != "" && t.byName[d.Parent] == nil {
			return fmt.Errorf("type %s: unknown parent %s", d.Name, d.Parent)
		}
		for _, f := range d.Fields {
			if _, err := t.goType(f); err != nil {
				return err
			}
			if of := t.byName[f.Of]; of != nil && of.Since > 1 { // there is no check for that
				return fmt.Errorf("field %s.%s: %s is not in all versions", d.Name, f.Name, f.Of)
			}
		}
	}
	return nil
}

// isA reports whether the named type is base or descends from it.
func (t *table) isA(name, base string) bool {
	for name != "" {
		if name == base {
			return true
		}
		name = t.byName[name].Parent
	}
	return false
}

// fields lists all fields of d in wire order, but for those of BaseCommand,
// which every command has by embedding.
func (t *table) fields(d *dataType) []*field {
	if d.Name == "BaseCommand" {
		return nil
	}
	var all []*field
	if d.Parent != "" {
		all = t.fields(t.byName[d.Parent])
	}
	return append(all, d.Fields...)
}

// own reports whether d becomes a Go struct and methods of its own: messages
// and destinations share one struct each, and abstract types have none.
func (t *table) own(d *dataType) bool {
	return d.Code != 0 && !t.isA(d.Name, "Message") && !t.isA(d.Name, "ActiveMQDestination")
}

// initialisms are the words of the table that Go writes in capitals.
var initialisms = map[string]string{"Id": "ID", "Url": "URL", "Ttl": "TTL", "Ip": "IP", "Jmsx": "JMSX"}

// goName turns a name of the table into an exported Go name.
func goName(s string) string {
	s = strings.ToUpper(s[:1]) + s[1:]
	var out, word strings.Builder
	flush := func() {
		w := word.String()
		if up, ok := initialisms[w]; ok {
			w = up
		}
		out.WriteString(w)
		word.Reset()
	}
	for i := range len(s) {
		if i > 0 && s[i] >= 'A' && s[i] <= 'Z' {
			flush()
		}
		word.WriteByte(s[i])
	}
	flush()
	return out.String()
}

// defaults are the values of fields that the negotiated version does not have,
// where they are not the zero value (OpenWire 16).
var defaults = map[string]string{
	"RemoveInfo.lastDeliveredSequenceId": "LastDeliveredUnknown",
	"ConnectionInfo.clientMaster":        "true",
	"ConnectionControl.connectedBrokers": "NewText(\"\")",
	"ConnectionControl.reconnectTo":      "NewText(\"\")",
}

// enumTypes are the byte fields that have a Go type of their own.
var enumTypes = map[string]string{
	"MessageAck.ackType":            "AckType",
	"TransactionInfo.type":          "TransactionType",
	"DestinationInfo.operationType": "DestinationOperation",
}

// plainStrings are the types whose strings are never null in use: null is read
// as the empty string.
var plainStrings = map[string]bool{"ConnectionId": true, "SessionId": true, "ConsumerId": true, "ProducerId": true, "BrokerId": true}

// goType is the Go type of a field.
func (t *table) goType(f *field) (string, error) {
	key := f.owner + "." + f.Name
	switch f.Type {
	case "bool":
		return "bool", nil
	case "byte":
		if e, ok := enumTypes[key]; ok {
			return e, nil
		}
		return "int8", nil
	case "int":
		return "int32", nil
	case "long":
		return "int64", nil
	case "const8":
		return "[8]byte", nil
	case "bytes":
		return "[]byte", nil
	case "string":
		if plainStrings[f.owner] {
			return "string", nil
		}
		return "Text", nil
	case "throwable":
		return "*Throwable", nil
	case "nested", "cached":
		return objectType(f.Of), nil
	case "nested[]":
		return "[]" + objectType(f.Of), nil
	}
	return "", fmt.Errorf("field %s: unknown wire type %q", key, f.Type)
}

// objectType is the Go type of an object field of the class of.
func objectType(of string) string {
	switch of {
	case "any":
		return "DataStructure"
	case "TransactionId":
		return "TransactionID"
	}
	return "*" + objectName(of)
}

// objectName is the word for the class of in Go names.
func objectName(of string) string {
	switch of {
	case "any":
		return "Any"
	case "ActiveMQDestination":
		return "Destination"
	}
	return goName(of)
}
