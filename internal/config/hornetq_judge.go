package config

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// maxAddressSettings bounds the address-settings of a file: a look-up reads them
// all.
const maxAddressSettings = maxPolicies

// addressSetting takes one address-setting (R-HQ-131).
func (w *coreFile) addressSetting(s *AddressSettings, e *element) {
	if len(s.settings) == maxAddressSettings {
		w.fail(e.at(fmt.Sprintf("more than %d address-settings", maxAddressSettings)))
		return
	}
	match, ok := e.given("match")
	if !ok {
		if !hasAttr(e, "match") {
			w.fail(e.at("has no match; give it an address or a pattern, such as match=\"#\""))
		}
		return
	}
	p, err := parseAddressPattern(match.value, s.product, s.syntax)
	if err != nil {
		w.fail(e.atAttr(match, err.Error()))
		return
	}
	a := addressSetting{pattern: p, values: map[string]Setting{}, source: e.source(), place: e}
	for _, c := range e.children {
		if !honouredSetting[c.name] || c.bad {
			continue
		}
		if first, twice := a.values[c.name]; twice {
			w.warn(c.at("stands twice in the address-setting; this one is used, and not that of " + first.Source))
		}
		if s.version == "2.2" && since23[c.name] {
			w.warn(c.at("is not known to HornetQ 2.2, which the file is said to be for; it is honoured here"))
		}
		if w.sound(c) {
			a.values[c.name] = Setting{Name: c.name, Value: c.text, Source: c.source()}
		}
	}
	unused := s.add(a)
	if unused == nil {
		return
	}
	used := "the last one is used, as in HornetQ"
	if s.product == artemis {
		used = "the first one is used, as in Artemis"
	}
	w.warn(unused.place.at(fmt.Sprintf("match=%q stands twice, and this one is left out: %s; write one address-setting with all of it", unused.pattern.text, used)))
}

// since23 are the elements that came with HornetQ 2.3 (section 2.1).
var since23 = map[string]bool{setExpiryDelay: true, setMultiplier: true}

// honouredSetting are the elements that the settings are made of.
var honouredSetting = func() map[string]bool {
	m := map[string]bool{}
	for _, name := range settingOrder {
		m[name] = true
	}
	return m
}()

// sound checks a value beyond its form, and says where it means something else
// than one may think.
func (w *coreFile) sound(c *element) bool {
	switch c.name {
	case setCollision:
		if f, err := parseDecimal(c.text); err != nil || f < 0 || f > 1 { // R-HQ-06
			w.fail(c.at(fmt.Sprintf("%q is not between 0 and 1", c.text)))
			return false
		}
	case setMultiplier:
		f, err := parseDecimal(c.text)
		switch {
		case err != nil:
			w.fail(c.at(err.Error()))
			return false
		case f < 0: // R-HQ-35
			w.warn(c.at(fmt.Sprintf("%s makes every second delay negative, which is at once; a multiplier is 1 or more", c.text)))
		}
	case setAttempts:
		n, err := parseInt(c.text, -1<<31, maxAttempts)
		if err != nil {
			w.fail(c.at(err.Error()))
			return false
		}
		if n == 0 { // R-HQ-41, R-HQ-141
			w.warn(c.at("0 means no limit, as -1 does: the message is delivered again for ever; write 1 for one delivery and no other"))
		}
	case setMaxConsumers, setRing:
		if n, err := parseInt(c.text, math.MinInt64, math.MaxInt64); err != nil || n == 0 {
			w.fail(c.at(nothingText(c.text, err)))
			return false
		}
	case setMaxBytes, setMaxMessages:
		if _, err := addressSize(c.text); err != nil {
			w.fail(c.at(err.Error()))
			return false
		}
	case setFullPolicy:
		if words := []string{fullPage, fullBlock, fullFail, fullDrop}; !slices.Contains(words, c.text) {
			w.fail(c.at(fmt.Sprintf("%q is not %s%s", c.text, enumerate(words), didYouMean(c.text, words))))
			return false
		}
	case setSlowPolicy, setSlowUnit, setSlowPeriod:
		if err := checkSlow(c.name, c.text); err != nil {
			w.fail(c.at(err.Error()))
			return false
		}
	case setMaxDelay:
		if n, err := parseInt(c.text, -1<<63, 1<<63-1); err == nil && n <= 0 { // R-HQ-152
			w.warn(c.at(fmt.Sprintf("%d does not mean without a limit: every redelivery is at once; write a large number for no limit", n)))
		}
	}
	return true
}

// nothingText says why a bound cannot be 0, or cannot be read.
func nothingText(text string, err error) string {
	if err != nil {
		return err.Error()
	}
	return text + " would let nobody consume, or keep no message; -1 is no limit"
}

// judgeSettings names what the settings as a whole do not say, or say otherwise
// than one may think.
func (w *coreFile) judgeSettings(s *AddressSettings) {
	var without []string
	everywhere := false // a setting for all addresses has a dead-letter-address
	targets := map[string]bool{}
	for i := range s.settings {
		a := &s.settings[i]
		if strings.Contains(a.pattern.text, fqqnSeparator) {
			continue // of one queue; its address has been looked at
		}
		m := s.merge(a.pattern.text)
		w.judgeDelays(s, a, m)
		w.judgeTargets(s, a, targets)
		if m.text(setDeadLetterAddress) == "" {
			without = append(without, a.pattern.text)
		} else if a.pattern.tail && len(a.pattern.words) == 0 {
			everywhere = true
		}
		if bare := withoutJMSPrefix(a.pattern.text); s.product == artemis && bare != "" {
			w.warn(a.place.at(fmt.Sprintf("match=%q is only for what clients name with that prefix: since Artemis 2 addresses have none; write match=%q", a.pattern.text, bare)))
		}
		if s.product == hornetQ && !jmsPattern(&a.pattern) {
			w.warn(a.place.at(fmt.Sprintf("match=%q fits no JMS destination: the address of the queue Q is %sQ, that of the topic T %sT", a.pattern.text, jmsQueuePrefix, jmsTopicPrefix)))
		}
	}
	if !everywhere {
		without = append(without, "addresses that no other address-setting fits")
	}
	if len(without) > 0 {
		if most := 5; len(without) > most {
			without = append(without[:most:most], fmt.Sprintf("and %d more", len(without)-most))
		}
		outcome := "are kept in the queue " + redelivery.DefaultDeadLetterQueue + ", where " + s.product.String() + " drops them; -D " + defineNoAddress + "=drop drops them here, too"
		if s.drop {
			outcome = "are dropped, as in " + s.product.String()
		}
		w.warn(w.root.at(fmt.Sprintf("dead letters without a %s (%s) %s", setDeadLetterAddress, strings.Join(without, ", "), outcome)))
	}
}

// judgeDelays looks at the delays that hold for the addresses of a setting.
func (w *coreFile) judgeDelays(s *AddressSettings, a *addressSetting, m merged) {
	multiplier, given := a.values[setMultiplier]
	if !given || s.product == artemis {
		return
	}
	f := m.float(setMultiplier, 1)
	if _, capped := m.values[setMaxDelay]; f <= 1 || capped || m.int(setDelay, 0) <= 0 {
		return
	}
	file, line := splitSource(multiplier.Source)
	text := fmt.Sprintf("there is no %s: it is 10 × %s, as in HornetQ 2.4; in 2.3 the multiplier has no effect then: -D %s=2.3 brings that back", setMaxDelay, setDelay, defineVersion)
	if s.as23 {
		text = fmt.Sprintf("has no effect, as there is no %s and HornetQ 2.3 takes %s for it", setMaxDelay, setDelay)
	}
	w.warn(Notice{File: file, Line: line, Part: setMultiplier, Text: text}) // R-HQ-32, R-HQ-151
}

// judgeTargets looks at where dead letters and expired messages of a setting go.
func (w *coreFile) judgeTargets(s *AddressSettings, a *addressSetting, seen map[string]bool) {
	m := s.merge(a.pattern.text)
	for _, name := range []string{setDeadLetterAddress, setExpiryAddress} {
		v, given := a.values[name]
		if !given {
			continue
		}
		file, line := splitSource(v.Source)
		n := Notice{File: file, Line: line, Part: name}
		if v.Value == "" {
			if name == setExpiryAddress {
				continue // R-HQ-22: it takes an inherited one away
			}
			n.Text = "is empty, which takes an inherited one away" // and what then is said of the whole file
			w.warn(n)
			continue
		}
		d := s.destination(v.Value)
		if d.IsComposite() || d.IsPattern() || d.Name == "" {
			n.Text = fmt.Sprintf("%q cannot take messages; name one address", v.Value)
			w.fail(n)
			continue
		}
		auto := m.bool(setAutoDeadLetter)
		if name == setExpiryAddress {
			auto = m.bool(setAutoExpiry)
		}
		switch declared := w.declared(d); {
		case auto && declared && !seen[v.Value]: // R-HQ-54
			n.Text = fmt.Sprintf("messages go to a queue made for their own address, and not into %s as well", d.Name)
			w.warn(n)
		case !auto && !declared && !seen[v.Value]: // R-HQ-45, R-HQ-58
			n.Text = fmt.Sprintf("no queue of the file is bound to %s: the %s is made when it is needed, where %s drops the messages", v.Value, d, s.product)
			if bare := withoutJMSPrefix(v.Value); s.product == artemis && bare != "" {
				n.Text += fmt.Sprintf("; since Artemis 2 addresses have no such prefix: write %s", bare)
			}
			w.warn(n)
		}
		if e := s.policy(d); !seen[v.Value] && (e.PurgeOnNoConsumers || e.RingSize > 0) {
			n.Text = fmt.Sprintf("messages are dropped there, by the %s or %s that holds for %s, too; give it an address-setting of its own", setRing, setPurge, d.Name)
			w.warn(n)
		}
		seen[v.Value] = true
		if a.pattern.exact() {
			own := s.destination(a.pattern.text)
			if s.returns(own, name) { // R-HQ-113
				n.Text = "leads back to " + a.pattern.text + " in the end: messages that come round stay where they are"
				w.warn(n)
			}
		}
	}
}

// withoutJMSPrefix is what is behind the prefix that addresses of JMS destinations had in
// HornetQ and in Artemis 1; empty: there is none.
func withoutJMSPrefix(address string) string {
	for _, prefix := range []string{jmsQueuePrefix, jmsTopicPrefix} {
		if rest, ok := strings.CutPrefix(address, prefix); ok {
			return rest
		}
	}
	return ""
}

// declared reports whether the file makes a destination.
func (w *coreFile) declared(d message.Destination) bool {
	for _, own := range w.cfg.Destinations {
		if own == d {
			return true
		}
	}
	return false
}

// jmsPattern reports whether a pattern of HornetQ can fit the address of a JMS
// destination (R-HQ-02).
func jmsPattern(a *addressPattern) bool {
	if a.tail && len(a.words) == 0 {
		return true
	}
	for i, prefix := range []string{"jms", ""} {
		if i >= len(a.words) {
			return true
		}
		w := a.words[i]
		switch {
		case w == a.single:
		case i == 0 && w != prefix && !(a.glued && len(a.words) == 1 && strings.HasPrefix(prefix, w)):
			return false
		case i == 1 && !a.glued && w != "queue" && w != "topic" && w != "tempqueue" && w != "temptopic":
			return false
		}
	}
	return true
}
