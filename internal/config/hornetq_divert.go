package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
)

// A divert hands what is sent to one address on to another (R-HQ-111).
type divert struct {
	place     *element
	from, to  string
	exclusive bool // what it takes goes to no queue of the address
	filter    string
	routing   string // Artemis: STRIP, PASS, ANYCAST or MULTICAST
}

// divertPart is a divert (R-HQ-130, R-HQ-138). Its name and its routing name only
// show in management.
var divertPart = &part{name: "divert", fate: honoured, role: roleDivert,
	attrs: []attr{{"name", text, "", accepted, ""}},
	children: []*part{
		leafPart("address", text, "", honoured, ""),
		leafPart("forwarding-address", text, "", honoured, ""),
		leafPart("routing-name", text, "", accepted, ""),
		leafPart("exclusive", boolean, "", honoured, ""),
		leafPart("routing-type", text, "", honoured, ""),
		leafPart("transformer-class-name", text, "", refused, "a transformer "+whyJavaCode+"; messages would be handed on unchanged; remove it if that will do"),
		{name: "transformer", fate: refused, why: "a transformer " + whyJavaCode + "; messages would be handed on unchanged; remove it if that will do", opaque: true},
		{name: "filter", fate: honoured, attrs: []attr{{"string", text, "", honoured, ""}}},
	}}

// divertElement reads one divert.
func (w *coreFile) divertElement(e *element) {
	textOf := func(name string) string {
		if c := e.find(name); c != nil && !c.bad {
			return c.text
		}
		return ""
	}
	d := divert{place: e, from: textOf("address"), to: textOf("forwarding-address"), filter: filterOf(e), routing: strings.ToUpper(textOf("routing-type"))}
	d.exclusive, _ = parseBool(textOf("exclusive"))
	switch {
	case d.from == "" || d.to == "":
		w.fail(e.at("needs an address and a forwarding-address"))
	case strings.Contains(d.from, w.syntax.anyWords), strings.Contains(d.from, w.syntax.singleWord), strings.ContainsAny(d.from+d.to, ",*>"):
		w.fail(e.at("is from one address to one other, without wildcards; write a divert for each address"))
	case coreFilter.MatchString(d.filter):
		w.fail(e.at(coreFilterText(d.filter)))
	case d.routing != "" && d.routing != "STRIP" && d.routing != "PASS" && d.routing != "ANYCAST" && d.routing != "MULTICAST":
		w.fail(e.at(fmt.Sprintf("routing-type %q is none of STRIP, PASS, ANYCAST and MULTICAST", d.routing)))
	default:
		w.diverts = append(w.diverts, d)
	}
}

// divertAll turns the diverts of the file into composite destinations. What an exclusive
// divert takes goes to nobody else but other exclusive diverts; what none of them takes
// goes where it would go without them: to the queues of the address, and to the other
// diverts (R-HQ-111).
func (w *coreFile) divertAll(s *AddressSettings) {
	exclusive := map[message.Destination][]int{} // the targets of exclusive diverts in a composite
	for i := range w.diverts {
		d := &w.diverts[i]
		for _, from := range w.sendersTo(s, d.from) {
			w.forward(&binding{place: d.place, filter: d.filter}, from, false, w.targetOf(s, d, from))
			if d.exclusive {
				exclusive[from] = append(exclusive[from], len(w.composite(from).ForwardTo)-1)
			}
		}
	}
	for from, taking := range exclusive {
		c := w.composite(from)
		all := false // one of them takes everything
		for i := range c.ForwardTo {
			if c.ForwardTo[i].Otherwise = !slices.Contains(taking, i); !c.ForwardTo[i].Otherwise {
				all = all || c.ForwardTo[i].Selector == ""
			}
		}
		c.ForwardOnly, c.SendWhenNotMatched = true, !c.ForwardOnly && !all
	}
}

// targetOf is where a divert hands on what is sent to a destination of its address.
func (w *coreFile) targetOf(s *AddressSettings, d *divert, from message.Destination) message.Destination {
	to := s.destination(d.to)
	switch {
	case d.routing == "ANYCAST":
		to.Kind = message.Queue
	case d.routing == "MULTICAST":
		to = message.Destination{Kind: message.Topic, Name: d.to}
	case d.routing == "PASS" && w.product == artemis:
		to.Kind = from.Kind
	}
	return to
}

// sendersTo lists the destinations that clients name when they send to an
// address: in Artemis a queue and a topic may share it.
func (w *coreFile) sendersTo(s *AddressSettings, address string) []message.Destination {
	if w.product == hornetQ {
		return []message.Destination{s.destination(address)}
	}
	queue, topic := message.Destination{Kind: message.Queue, Name: address}, message.Destination{Kind: message.Topic, Name: address}
	anycast, multicast := false, false
	for _, b := range w.bindings {
		if b.address == address {
			anycast, multicast = anycast || !b.copies, multicast || b.copies
		}
	}
	switch {
	case anycast && !multicast:
		return []message.Destination{queue}
	case multicast && !anycast:
		return []message.Destination{topic}
	}
	return []message.Destination{queue, topic}
}
