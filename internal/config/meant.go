package config

import (
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
)

// Renames reports whether Meant may give another destination than the one that a
// client of a listener names, now or after a reload.
func (c *Config) Renames(o *ListenerOptions) bool {
	return c.Addresses != nil && c.Addresses.product == artemis || o.AnycastPrefix != "" || o.MulticastPrefix != ""
}

// Meant is the destination that a client of a listener means by a name: prefixes of
// the listener are taken off, and in a file of Artemis' "ADDRESS::QUEUE" is one queue
// of an address, which has to be the file's. Else it is the name itself.
// message.ErrNotFound where there is no such queue.
func (c *Config) Meant(o *ListenerOptions, d message.Destination) (message.Destination, error) {
	if d.IsComposite() {
		return c.allMeant(o, d)
	}
	if d.IsTemporary() || d.IsAdvisory() {
		return d, nil
	}
	if name, ok := withoutPrefix(o.AnycastPrefix, d.Name); ok {
		d = message.Destination{Kind: message.Queue, Name: name}
	} else if name, ok := withoutPrefix(o.MulticastPrefix, d.Name); ok {
		d = message.Destination{Kind: message.Topic, Name: name}
	}
	address, queue, ok := strings.Cut(d.Name, fqqnSeparator)
	if !ok || c.Addresses == nil || c.Addresses.product != artemis {
		return d, nil
	}
	q := message.Destination{Kind: message.Queue, Name: queue}
	if c.Addresses.address(q) != address {
		return d, fmt.Errorf("%s: the address %s has no queue %s in the configuration; name one that it has, or the address itself: %w", d, address, queue, message.ErrNotFound)
	}
	return q, nil
}

// allMeant is Meant for each part of a composite.
func (c *Config) allMeant(o *ListenerOptions, d message.Destination) (message.Destination, error) {
	var names []string
	for _, part := range d.Parts() {
		p, err := c.Meant(o, part)
		if err != nil {
			return d, err
		}
		name := p.Name
		if p.Kind != d.Kind {
			name = p.String()
		}
		names = append(names, name)
	}
	d.Name = strings.Join(names, ",")
	return d, nil
}

// withoutPrefix takes one of several prefixes off a name.
func withoutPrefix(prefixes, name string) (string, bool) {
	for p := range strings.SplitSeq(prefixes, ",") {
		if rest, ok := strings.CutPrefix(name, p); ok && p != "" && rest != "" {
			return rest, true
		}
	}
	return name, false
}
