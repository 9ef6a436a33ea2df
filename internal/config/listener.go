package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// notOffered lists the schemes of ActiveMQ's connectors that have no listener
// here yet, with what they speak.
var notOffered = map[string]string{
	"ssl":          "OpenWire over TLS",
	"nio+ssl":      "OpenWire over TLS",
	"auto+ssl":     "protocol detection over TLS",
	"auto+nio+ssl": "protocol detection over TLS",
	"stomp":        "STOMP", "stomp+nio": "STOMP", "stomp+ssl": "STOMP", "stomp+nio+ssl": "STOMP",
	"amqp": "AMQP", "amqp+nio": "AMQP", "amqp+ssl": "AMQP", "amqp+nio+ssl": "AMQP",
	"mqtt": "MQTT", "mqtt+nio": "MQTT", "mqtt+ssl": "MQTT", "mqtt+nio+ssl": "MQTT",
	"ws": "WebSocket", "wss": "WebSocket", "http": "HTTP tunnelling", "https": "HTTP tunnelling",
	"vm": "calls inside one Java process", "udp": "UDP", "multicast": "multicast", "xmpp": "XMPP",
}

// offered lists the schemes that a listener serves, all as OpenWire over TCP.
var offered = map[string]bool{"tcp": true, "nio": true, "auto": true, "auto+nio": true}

// schemes returns every scheme that is known, for the nearest one to a typing error.
func schemes() []string {
	var all []string
	for s := range notOffered {
		all = append(all, s)
	}
	for s := range offered {
		all = append(all, s)
	}
	return all
}

// A listenerURI is what came of reading a connector's URI.
type listenerURI struct {
	listener Listener
	notOffer string   // what the scheme speaks, where there is no listener for it; else empty
	warnings []string // what is left out, one sentence each
	errors   []string // why the URI cannot be used
}

// parseListener reads a connector's URI, "tcp://host:port?option=value&...".
func parseListener(uri string) listenerURI {
	var r listenerURI
	uri = strings.TrimSpace(uri)
	scheme, rest, ok := strings.Cut(uri, "://")
	scheme = strings.ToLower(scheme)
	switch {
	case !ok:
		r.errors = append(r.errors, fmt.Sprintf("%q is not a URI such as %s", uri, DefaultListen))
		return r
	case notOffered[scheme] != "":
		r.notOffer = notOffered[scheme]
		return r
	case !offered[scheme]:
		r.errors = append(r.errors, fmt.Sprintf("scheme %q is not known%s", scheme, didYouMean(scheme, schemes())))
		return r
	case strings.HasPrefix(scheme, "auto"):
		r.warnings = append(r.warnings, scheme+" is served as OpenWire; other protocols on this port are not offered yet")
	}
	address, query, _ := strings.Cut(rest, "?")
	r.listener = Listener{Name: OpenWire, Protocol: OpenWire, URI: uri, Options: DefaultListenerOptions()}
	host, port, err := splitAddress(strings.TrimSuffix(address, "/"))
	if err != nil {
		r.errors = append(r.errors, err.Error())
	}
	r.listener.Host, r.listener.Port = host, port
	r.options(query)
	r.listener.Options.MaxInactivity = max(0, r.listener.Options.MaxInactivity)
	return r
}

// options reads the query of a connector's URI.
func (r *listenerURI) options(query string) {
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, errName := url.QueryUnescape(name)
		value, errValue := url.QueryUnescape(value)
		if errName != nil || errValue != nil {
			r.errors = append(r.errors, fmt.Sprintf("option %q is badly escaped", pair))
			continue
		}
		o, known := uriOptions[name]
		switch {
		case !known:
			r.errors = append(r.errors, fmt.Sprintf("option %s is not known%s", name, didYouMean(name, uriOptionNames())))
		case o.set != nil:
			if err := o.set(&r.listener.Options, value); err != nil {
				r.errors = append(r.errors, fmt.Sprintf("option %s: %v", name, err))
			}
		default:
			if v, err := o.kind.canonical(value); err != nil {
				r.errors = append(r.errors, fmt.Sprintf("option %s: %v", name, err))
			} else if v != o.def {
				r.warnings = append(r.warnings, fmt.Sprintf("option %s=%s is left out: %s", name, value, o.why))
			}
		}
	}
}

// splitAddress reads HOST:PORT; IPv6 addresses stand in brackets.
func splitAddress(address string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%q is not HOST:PORT", address)
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("port %q is not a number from 0 to 65535", p)
	}
	if strings.ContainsAny(host, "/@?# \t") {
		return "", 0, fmt.Errorf("%q is not a host", host)
	}
	return host, int(n), nil
}

// isLoopback reports whether nobody but this machine reaches the host. A name
// other than localhost is not looked up: it counts as reachable.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// Address is HOST:PORT as package net takes it.
func (l Listener) Address() string { return net.JoinHostPort(l.Host, strconv.Itoa(l.Port)) }

// milliseconds reads a duration that is written in milliseconds.
func milliseconds(s string) (time.Duration, error) {
	n, err := parseInt(s, 0, int64((1<<63-1)/time.Millisecond))
	return time.Duration(n) * time.Millisecond, err
}
