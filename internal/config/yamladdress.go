package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/nixiemq/nixie/internal/message"
)

// productWords name the product whose rules address-settings follow.
var productWords = []yamlWord[product]{{"artemis", artemis}, {"hornetq", hornetQ}}

// addressSettings are the settings of a HornetQ or Artemis file.
func (y yamlReader) addressSettings(name string) yamlKey {
	return section(y, name, &y.cfg.Addresses, func() *AddressSettings {
		return &AddressSettings{product: artemis, syntax: defaultWildcards, bound: map[string]message.Destination{}, addressOf: map[message.Destination]string{}}
	}, func(y yamlReader, s *AddressSettings) []yamlKey {
		drop := y.flag("dropWithoutAddress", &s.drop)
		return []yamlKey{
			word(y, "product", productWords, &s.product).says("Whose rules they follow: those of artemis (the default) or hornetq."),
			y.text("version", &s.version).says("The version of HornetQ: 2.2, 2.3 or 2.4; default 2.4. 2.3 takes redelivery-delay for a missing max-redelivery-delay."),
			drop.says("Drop dead letters without a dead-letter-address, as the products do; default false: they are kept in ActiveMQ.DLQ."),
			y.text("temporaryQueueNamespace", &s.temporary).says("What stands before the names of temporary queues when settings are looked up; default nothing."),
			y.group("wildcards", wildcardKeys(y, &s.syntax), wildcardKeys(y, &wildcardSyntax{delimiter: ".", singleWord: "*", anyWords: "#"})).says("How patterns are written."),
			y.settingList("settings", s).says("The settings. Of each element that of the most specific pattern holds."),
			y.boundList("addresses", s).says("Addresses that stand for another destination than the queue of their name."),
			y.addressList("queues", s).says("Destinations whose address has another name than theirs."),
		}
	}, func(part string, node ast.Node, s *AddressSettings) {
		s.as23 = s.version == "2.3"
		switch {
		case s.version != "" && !slices.Contains(switches[defineVersion], s.version):
			y.fail(y.at(first(node), part+".version", fmt.Sprintf("%q is not %s", s.version, enumerate(switches[defineVersion]))))
		case s.version != "" && s.product == artemis:
			y.fail(y.at(first(node), part+".version", "is for HornetQ, and the product is artemis"))
		case s.syntax.markers != "" && len([]rune(s.syntax.markers)) != 2:
			y.fail(y.at(first(node), part+".wildcards.literalMarkers", "is two characters, such as ()"))
		}
		y.patternsOf(part, node, s)
	})
}

// wildcardKeys are the keys of the syntax of patterns.
func wildcardKeys(y yamlReader, w *wildcardSyntax) []yamlKey {
	return []yamlKey{
		y.name("delimiter", &w.delimiter).says("What stands between words; default a dot."),
		y.name("singleWord", &w.singleWord).says("What stands for one word; default *."),
		y.name("anyWords", &w.anyWords).says("What stands for any words, at the end of a pattern; default #."),
		y.text("literalMarkers", &w.markers).says("Two characters between which a name is no pattern; default none."),
	}
}

// settingKinds are the kinds of value of the elements of an address-setting.
var settingKinds = func() map[string]kind {
	kinds := map[string]kind{}
	for _, p := range artemisSettingPart.children {
		kinds[p.name] = p.value.kind
	}
	return kinds
}()

// settingForms are the forms of those kinds.
var settingForms = map[kind]yamlForm{text: {kind: formText}, boolean: {kind: formBoolean}, integer: {kind: formWhole}, decimal: {kind: formNumber}}

// settingDocs describe the elements of an address-setting.
var settingDocs = map[string]string{
	setAttempts:          "Deliveries before a message is a dead letter; 0 and below: no end; default 10.",
	setDelay:             "Milliseconds before a redelivery; default 0.",
	setMultiplier:        "Multiplies the delay for each further redelivery; default 1.",
	setCollision:         "The spread of delays, from 0 to 1; default 0.",
	setMaxDelay:          "The longest delay in milliseconds; default 10 times redelivery-delay.",
	setDeadLetterAddress: "Where dead letters go.",
	setAutoDeadLetter:    "Make a dead letter queue for each address; default false.",
	setDeadLetterPrefix:  "What stands before the address in its name; default DLQ.",
	setDeadLetterSuffix:  "What stands behind the address in its name; default nothing.",
	setNoRoute:           "Make a dead letter of what is sent to an address without a queue; default false.",
	setExpiryAddress:     "Where messages go whose time to live passes; default: they are dropped.",
	setAutoExpiry:        "Make an expiry queue for each address; default false.",
	setExpiryPrefix:      "What stands before the address in its name; default EXP.",
	setExpirySuffix:      "What stands behind the address in its name; default nothing.",
	setNoExpiry:          "Take every expiration away; default false.",
	setExpiryDelay:       "Milliseconds to live of messages that never expire; default -1: they do not.",
	setMinExpiryDelay:    "The shortest time to live in milliseconds; default -1: none.",
	setMaxExpiryDelay:    "The longest time to live in milliseconds; default -1: none.",
	setSlowRate:          "How many messages a consumer has to acknowledge in a unit of time while there are enough for it; default -1: any number.",
	setSlowUnit:          "That unit: MESSAGES_PER_SECOND (the default), _MINUTE, _HOUR or _DAY.",
	setSlowPeriod:        "Seconds between two looks at that; default 5.",
	setSlowPolicy:        "KILL ends the connection of a consumer that is slower; NOTIFY, the default, only tells.",
	setExclusive:         "Give a queue's messages to one consumer at a time; default false.",
	setMaxConsumers:      "How many consumers a queue may have at a time; default -1: any number.",
	setConsumersBefore:   "How many consumers a queue waits for before it hands anything out; default 0.",
	setDelayBefore:       "How many milliseconds it waits for them at the most; default -1: without end.",
	setRing:              "How many messages may wait, the first of which gives way to one more; default -1: any number.",
	setPurge:             "Drop what a queue has when its last consumer goes, and what comes while there is none; default false.",

	setGroupRebalance: "Bind the message groups of a queue anew when a consumer comes; default false.",
	setLastValueQueue: "Of the messages with one value of _HQ_LVQ_NAME, or _AMQ_LVQ_NAME, keep the newest alone; default false.",
	setLastValue:      "The same, in the words of Artemis; default false.",
	setLastValueKey:   "Another property for that, which turns it on by itself.",

	setAutoCreateQueues:    "Make a queue when a client first uses it; default true.",
	setAutoCreateAddresses: "Make an address, and so a queue or a topic, when a client first uses it; default true.",
	setMaxBytes:            "What an address may have, as 10485760 or 10 mb, before address-full-policy holds; default -1: no limit.",
	setMaxMessages:         "The same as a number of messages; default -1: no limit.",
	setFullPolicy:          "What becomes of a send to a full address: PAGE (the default), it goes to the store; BLOCK, it waits; FAIL, it is refused; DROP, it is discarded and counted.",
}

// settingList is the list of address-settings. Patterns are made of the matches
// when all is read, as their syntax may stand behind.
func (y yamlReader) settingList(name string, s *AddressSettings) yamlKey {
	return listOf[addressSetting]{
		fresh: func() addressSetting { return addressSetting{values: map[string]Setting{}} },
		keys: func(y yamlReader, _ string, a *addressSetting) []yamlKey {
			match := y.name("match", &a.pattern.text)
			if a.pattern.literal {
				match.show = func() yamlValue { return a.pattern.marked(s.syntax) }
			}
			keys := []yamlKey{match.says("An address, or a pattern.")}
			for _, element := range settingOrder {
				keys = append(keys, y.settingKey(element, a).says(settingDocs[element]))
			}
			return keys
		},
		source: func(a *addressSetting) string { return a.source },
		needs:  []string{"match"},
	}.key(y, name, func() []addressSetting { return s.settings }, func(part string, node ast.Node, a addressSetting) {
		if len(s.settings) == maxAddressSettings {
			y.fail(y.at(first(node), part, fmt.Sprintf("more than %d settings", maxAddressSettings)))
			return
		}
		a.source = y.source(first(node))
		s.settings = append(s.settings, a)
	})
}

// marked writes a name that is no pattern as the file has it, between markers.
func (a *addressPattern) marked(w wildcardSyntax) yamlValue {
	m := []rune(w.markers)
	return yamlText(string(m[0]) + a.text + string(m[1]))
}

// settingKey is one element of an address-setting.
func (y yamlReader) settingKey(element string, a *addressSetting) yamlKey {
	kind := settingKinds[element]
	k := y.value(element, settingForms[kind], nil, func() yamlValue {
		v, ok := a.values[element]
		if !ok {
			return nil
		}
		if kind == text {
			return yamlText(v.Value)
		}
		plain, err := kind.canonical(v.Value)
		if err != nil {
			return yamlText(v.Value)
		}
		return yamlPlain(plain)
	})
	k.take = func(part string, node ast.Node) {
		y.value(element, settingForms[kind], func(s string) error {
			if _, err := kind.canonical(s); err != nil {
				return err
			}
			f, err := parseDecimal(s)
			switch {
			case element == setCollision && (err != nil || f < 0 || f > 1): // R-HQ-06
				return fmt.Errorf("%q is not between 0 and 1", s)
			case element == setMultiplier && err != nil:
				return err
			case element == setMaxConsumers, element == setRing:
				if n, err := parseInt(s, math.MinInt64, math.MaxInt64); err != nil || n == 0 {
					return errors.New(nothingText(s, err))
				}
			case element == setAttempts:
				if _, err := parseInt(s, -1<<31, maxAttempts); err != nil {
					return err
				}
			}
			if err := checkSlow(element, s); err != nil {
				return err
			}
			a.values[element] = Setting{Name: element, Value: s, Source: y.source(node)}
			return nil
		}, nil).take(part, node)
	}
	return k
}

// patternsOf makes the patterns of what was read, and refuses two of one match.
func (y yamlReader) patternsOf(part string, node ast.Node, s *AddressSettings) {
	read := s.settings
	s.settings = nil
	for i, a := range read {
		place := fmt.Sprintf("%s.settings[%d].match", part, i)
		p, err := parseAddressPattern(a.pattern.text, s.product, s.syntax)
		if err != nil {
			y.failAt(a.source, place, err.Error())
			continue
		}
		a.pattern = p
		if unused := s.add(a); unused != nil {
			y.failAt(a.source, place, fmt.Sprintf("%q stands twice; write one setting with all of it", p.text))
		}
	}
}

// eitherPoliciesOrSettings refuses policies beside address-settings, which would
// have no effect.
func (y yamlReader) eitherPoliciesOrSettings(body ast.Node) {
	if c := y.cfg; c.Addresses != nil && (len(c.Policies) > 0 || c.DefaultPolicy != nil || c.Redelivery != nil || c.Discarding != nil) {
		y.fail(y.at(first(body), "addressSettings", "take the place of policies, defaultPolicy, redeliveryPlugin and discardingPlugin; write one or the other"))
	}
}

// failAt adds a problem at a "FILE:LINE".
func (y yamlReader) failAt(source, part, text string) {
	file, line := splitSource(source)
	y.fail(Notice{File: file, Line: line, Part: part, Text: text})
}

// A binding of an address and a destination, in either direction.
type boundAddress struct {
	address     string
	destination message.Destination
}

// boundKeys are the keys of a boundAddress.
func boundKeys(y yamlReader, b *boundAddress) []yamlKey {
	return []yamlKey{
		y.name("address", &b.address).says("The address."),
		y.destination("destination", &b.destination).says("A queue, or topic://NAME."),
	}
}

// bindings is a list of boundAddresses.
func (y yamlReader) bindings(name string, all func() []boundAddress, done func(boundAddress)) yamlKey {
	return listOf[boundAddress]{
		fresh: func() boundAddress { return boundAddress{} },
		keys:  func(y yamlReader, _ string, b *boundAddress) []yamlKey { return boundKeys(y, b) },
		needs: []string{"address", "destination"},
	}.key(y, name, all, func(_ string, _ ast.Node, b boundAddress) { done(b) })
}

// boundList is AddressSettings.bound.
func (y yamlReader) boundList(name string, s *AddressSettings) yamlKey {
	return y.bindings(name, func() []boundAddress {
		var all []boundAddress
		for _, a := range slices.Sorted(maps.Keys(s.bound)) {
			all = append(all, boundAddress{a, s.bound[a]})
		}
		return all
	}, func(b boundAddress) { s.bound[b.address] = b.destination })
}

// addressList is AddressSettings.addressOf.
func (y yamlReader) addressList(name string, s *AddressSettings) yamlKey {
	return y.bindings(name, func() []boundAddress {
		var all []boundAddress
		for d, a := range s.addressOf {
			all = append(all, boundAddress{a, d})
		}
		slices.SortFunc(all, func(a, b boundAddress) int {
			return cmp.Or(strings.Compare(a.address, b.address), strings.Compare(a.destination.String(), b.destination.String()))
		})
		return all
	}, func(b boundAddress) { s.addressOf[b.destination] = b.address })
}
