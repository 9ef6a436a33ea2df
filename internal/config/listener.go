package config

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// notOffered lists the schemes of ActiveMQ's connectors that have no listener
// here yet, with what they speak.
var notOffered = map[string]string{
	"stomp": "STOMP", "stomp+nio": "STOMP", "stomp+ssl": "STOMP", "stomp+nio+ssl": "STOMP",
	"amqp": "AMQP", "amqp+nio": "AMQP", "amqp+ssl": "AMQP", "amqp+nio+ssl": "AMQP",
	"mqtt": "MQTT", "mqtt+nio": "MQTT", "mqtt+ssl": "MQTT", "mqtt+nio+ssl": "MQTT",
	"ws": "WebSocket", "wss": "WebSocket", "http": "HTTP tunnelling", "https": "HTTP tunnelling",
	"vm": "calls inside one Java process", "udp": "UDP", "multicast": "multicast", "xmpp": "XMPP",
}

// offered lists the schemes that a listener serves, all as OpenWire over TCP, and
// whether with TLS.
var offered = map[string]bool{"tcp": false, "nio": false, "auto": false, "auto+nio": false,
	"ssl": true, "nio+ssl": true, "auto+ssl": true, "auto+nio+ssl": true}

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
	case !isOffered(scheme):
		r.errors = append(r.errors, fmt.Sprintf("scheme %q is not known%s", scheme, didYouMean(scheme, schemes())))
		return r
	case strings.HasPrefix(scheme, "auto"):
		r.warnings = append(r.warnings, scheme+" is served as OpenWire; other protocols on this port are not offered yet")
	}
	address, query, _ := strings.Cut(rest, "?")
	r.listener = Listener{Name: OpenWire, Protocol: OpenWire, URI: withoutPasswords(uri), Options: DefaultListenerOptions()}
	r.listener.Options.TLS.On = offered[scheme]
	host, port, err := splitAddress(strings.TrimSuffix(address, "/"))
	if err != nil {
		r.errors = append(r.errors, err.Error())
	}
	r.listener.Host, r.listener.Port = host, port
	r.options(query)
	r.listener.Options.MaxInactivity = max(0, r.listener.Options.MaxInactivity)
	warnings, problems := r.listener.Options.TLS.negotiable(&tls.Config{})
	r.warnings, r.errors = append(r.warnings, warnings...), append(r.errors, problems...)
	return r
}

// isOffered reports whether a listener serves a scheme.
func isOffered(scheme string) bool {
	_, is := offered[scheme]
	return is
}

// secrets are the values in a URI that nobody is shown.
var secrets = regexp.MustCompile(`(?i)(password=)[^&;]+`)

// withoutPasswords is a URI that can be shown.
func withoutPasswords(uri string) string { return secrets.ReplaceAllString(uri, "${1}***") }

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
			r.errors = append(r.errors, fmt.Sprintf("option %q is badly escaped", withoutPasswords(pair)))
			continue
		}
		o, known := uriOptions[name]
		switch {
		case !known:
			r.errors = append(r.errors, fmt.Sprintf("option %s is not known%s", name, didYouMean(name, uriOptionNames())))
		case o.tls && !r.listener.Options.TLS.On:
			r.errors = append(r.errors, fmt.Sprintf("option %s is for clients that come with TLS: write ssl:// before the address, or remove it", name))
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
