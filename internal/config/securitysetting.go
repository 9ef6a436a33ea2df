package config

import (
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
)

// SecuritySettings are the security-settings of a HornetQ or Artemis file. They do
// not merge: of those that fit an address the most specific one counts, whole
// (R-HQ-128), and what it does not allow is denied. It is an access.Rights.
type SecuritySettings struct {
	addresses *AddressSettings // the names of addresses
	settings  []securitySetting
}

// A securitySetting is one security-setting.
type securitySetting struct {
	pattern addressPattern
	roles   map[string][]string // by permission
	source  string
}

// The permissions (R-HQ-128, R-HQ-137).
const (
	permitSend             = "send"
	permitConsume          = "consume"
	permitBrowse           = "browse" // Artemis; HornetQ asks for consume
	permitCreateDurable    = "createDurableQueue"
	permitDeleteDurable    = "deleteDurableQueue"
	permitCreateNonDurable = "createNonDurableQueue"
	permitDeleteNonDurable = "deleteNonDurableQueue"
	permitCreateAddress    = "createAddress" // Artemis
	permitDeleteAddress    = "deleteAddress" // Artemis
	permitManage           = "manage"
)

// permissions are all of them, in the order in which they are listed.
var permissions = []string{permitSend, permitConsume, permitBrowse, permitCreateAddress, permitDeleteAddress,
	permitCreateDurable, permitDeleteDurable, permitCreateNonDurable, permitDeleteNonDurable, permitManage}

// needed are the permissions that an operation needs, all of them.
func (s *SecuritySettings) needed(op access.Operation, d message.Destination) []string {
	product := s.addresses.product
	if d.Name == schedulerManagement && op == access.Write {
		return []string{permitManage}
	}
	switch op {
	case access.Read:
		return []string{permitConsume}
	case access.Browse:
		if product == hornetQ {
			return []string{permitConsume}
		}
		return []string{permitBrowse}
	case access.Write:
		return []string{permitSend}
	case access.Subscribe:
		return []string{permitCreateNonDurable}
	case access.SubscribeDurably:
		return []string{permitCreateDurable}
	case access.Unsubscribe:
		return []string{permitDeleteDurable}
	}
	durable, temporary, address := permitCreateDurable, permitCreateNonDurable, permitCreateAddress
	if op == access.Remove {
		durable, temporary, address = permitDeleteDurable, permitDeleteNonDurable, permitDeleteAddress
	}
	switch {
	case d.IsTemporary():
		return []string{temporary}
	case product == hornetQ:
		return []string{durable}
	case d.IsTopic():
		return []string{address}
	}
	return []string{address, durable}
}

// schedulerManagement is the topic by which clients see and cancel the scheduled
// messages of all addresses.
const schedulerManagement = "ActiveMQ.Scheduler.Management"

// clientAdvisories are the topics that Java clients listen to by themselves, to learn
// of temporary destinations. The files know nothing of them.
var clientAdvisories = []string{"ActiveMQ.Advisory.TempQueue", "ActiveMQ.Advisory.TempTopic"}

// Allows reports whether one of the groups may do op on d.
func (s *SecuritySettings) Allows(groups []string, op access.Operation, d message.Destination) bool {
	if d.IsAdvisory() && (op == access.Create || slices.Contains(clientAdvisories, d.Name)) {
		return op != access.Write && op != access.Remove
	}
	needed := s.needed(op, d)
	allow := func(a *securitySetting) bool {
		return !slices.ContainsFunc(needed, func(p string) bool { return !common(groups, a.roles[p]) })
	}
	if d.IsPattern() {
		return s.allAllow(d, allow)
	}
	address := s.addresses.address(d)
	if d.IsQueue() && op != access.Write { // of one queue of the address, in Artemis
		if a := s.exactly(address + fqqnSeparator + d.Name); a != nil {
			return allow(a)
		}
	}
	a := s.of(address)
	return a != nil && allow(a)
}

// fqqnSeparator stands between address and queue in a name of Artemis that tells
// both.
const fqqnSeparator = "::"

// common reports whether two lists have a word in common.
func common(a, b []string) bool {
	return slices.ContainsFunc(a, func(word string) bool { return slices.Contains(b, word) })
}

// exactly is the setting for a name that is no pattern; nil: there is none.
func (s *SecuritySettings) exactly(name string) *securitySetting {
	for i := range s.settings {
		if a := &s.settings[i]; a.pattern.exact() && a.pattern.text == name {
			return a
		}
	}
	return nil
}

// of is the setting that counts for an address; nil: there is none.
func (s *SecuritySettings) of(address string) *securitySetting {
	words := strings.Split(address, s.addresses.syntax.delimiter)
	var best *securitySetting
	for i := range s.settings {
		if a := &s.settings[i]; a.pattern.matches(address, words) && (best == nil || a.pattern.compare(&best.pattern) < 0) {
			best = a
		}
	}
	return best
}

// allAllow reports whether every setting that can count for a destination that the
// pattern d covers allows it: those that overlap it, the most specific ones first,
// up to one that counts for all that is left.
func (s *SecuritySettings) allAllow(d message.Destination, allow func(*securitySetting) bool) bool {
	words, tail := s.addresses.wordsOf(d)
	var overlap []*securitySetting
	for i := range s.settings {
		if s.settings[i].pattern.overlaps(words, tail) {
			overlap = append(overlap, &s.settings[i])
		}
	}
	slices.SortStableFunc(overlap, func(a, b *securitySetting) int { return a.pattern.compare(&b.pattern) })
	for _, a := range overlap {
		switch {
		case !allow(a):
			return false
		case a.pattern.covers(words, tail):
			return true
		}
	}
	return false
}

// administrators are the roles that may manage: those with that permission for the
// management address.
func (s *SecuritySettings) administrators(address string) []string {
	if a := s.of(address); a != nil {
		return a.roles[permitManage]
	}
	return nil
}

// wildWord stands for one word in a pattern of OpenWire's.
const wildWord = "*"

// wordsOf gives the words of the addresses that a pattern of OpenWire's covers;
// tail says that any more may follow. Where addresses have another delimiter than
// OpenWire nothing is known of their words.
func (s *AddressSettings) wordsOf(d message.Destination) (words []string, tail bool) {
	if s.syntax.delimiter != "." {
		return nil, true
	}
	words = strings.Split(s.address(d), ".")
	if last := len(words) - 1; words[last] == ">" {
		return words[:last], true
	}
	return words, false
}

// overlaps reports whether the pattern may fit an address that these words, of
// which some may be wild, cover.
func (a *addressPattern) overlaps(words []string, tail bool) bool {
	own := a.words
	open := a.tail
	if a.literal {
		own, open = strings.Split(a.text, "."), false
	}
	if a.glued {
		own = own[:len(own)-1] // what follows may be any word
	}
	for i := range min(len(own), len(words)) {
		if own[i] != words[i] && own[i] != a.single && words[i] != wildWord {
			return false
		}
	}
	switch {
	case !open && !tail:
		return len(own) == len(words)
	case !open:
		return len(own) >= len(words)
	case !tail:
		return len(words) >= len(own)
	}
	return true
}

// covers reports whether the pattern fits every address that these words cover.
func (a *addressPattern) covers(words []string, tail bool) bool {
	n := len(a.words)
	switch {
	case a.literal, a.glued:
		return false
	case !a.tail && (tail || len(words) != n):
		return false
	case a.tail && (len(words) < n || a.bare && len(words) == n && n > 0):
		return false
	}
	for i, own := range a.words {
		if own != a.single && own != words[i] {
			return false
		}
	}
	return true
}
