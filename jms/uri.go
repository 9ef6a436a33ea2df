package jms

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A brokerURL is a parsed broker URL: one endpoint, or several behind failover.
type brokerURL struct {
	endpoints []endpoint
	failover  *failoverOptions // nil: one connection, which ends when it breaks
}

// An endpoint is one address of a broker.
type endpoint struct {
	uri     string // as written, without options
	tls     bool
	address string // HOST:PORT
	o       transportOptions
}

// transportOptions are the options of a tcp or ssl URI.
type transportOptions struct {
	format            wire.WireFormat
	connectionTimeout time.Duration // 0: no bound
	noDelay           bool
	keepAlive         bool
	bufferBytes       int
	linger            int
	verifyHostName    bool
	monitor           bool // useInactivityMonitor
}

// Default ports, as ActiveMQ's.
const (
	defaultPort    = "61616"
	defaultTLSPort = "61617"
)

const defaultConnectionTimeout = 30 * time.Second

func fromMillisDelay(ms int64) time.Duration { return redelivery.FromMillis(ms) }

// failoverOptions are the options of failover:(...).
type failoverOptions struct {
	initialReconnectDelay, maxReconnectDelay time.Duration
	timeout                                  time.Duration // of sends while there is no broker; -1: none
	useExponentialBackOff                    bool
	reconnectDelayExponent                   float64
	maxReconnectAttempts                     int // -1: no end; 0: none after the first
	startupMaxReconnectAttempts              int // -1: as maxReconnectAttempts
	warnAfterReconnectAttempts               int
	randomize                                bool
	backup, priorityBackup                   bool
	backupPoolSize                           int
	priorityURIs                             string
	trackMessages                            bool
	maxCacheBytes                            int
	updateURIsSupported, rebalanceUpdateURIs bool
	updateURIsURL                            string
	reconnectSupported                       bool
}

func defaultFailover() *failoverOptions {
	return &failoverOptions{
		initialReconnectDelay: 10 * time.Millisecond, maxReconnectDelay: 30 * time.Second, timeout: -time.Millisecond,
		useExponentialBackOff: true, reconnectDelayExponent: 2, maxReconnectAttempts: -1, startupMaxReconnectAttempts: -1,
		warnAfterReconnectAttempts: 10, randomize: true, backupPoolSize: 1, maxCacheBytes: 128 << 10,
		updateURIsSupported: true, rebalanceUpdateURIs: true, reconnectSupported: true,
	}
}

func (f *failoverOptions) setters() map[string]setter {
	return map[string]setter{
		"initialReconnectDelay": millisInto(&f.initialReconnectDelay), "maxReconnectDelay": millisInto(&f.maxReconnectDelay),
		"timeout": millisInto(&f.timeout), "useExponentialBackOff": boolInto(&f.useExponentialBackOff),
		"reconnectDelayExponent": floatInto(&f.reconnectDelayExponent), "backOffMultiplier": floatInto(&f.reconnectDelayExponent),
		"maxReconnectAttempts": intInto(&f.maxReconnectAttempts), "startupMaxReconnectAttempts": intInto(&f.startupMaxReconnectAttempts),
		"warnAfterReconnectAttempts": intInto(&f.warnAfterReconnectAttempts), "randomize": boolInto(&f.randomize),
		"backup": boolInto(&f.backup), "backupPoolSize": intInto(&f.backupPoolSize), "priorityBackup": boolInto(&f.priorityBackup),
		"priorityURIs": textInto(&f.priorityURIs), "trackMessages": boolInto(&f.trackMessages), "maxCacheSize": intInto(&f.maxCacheBytes),
		"updateURIsSupported": boolInto(&f.updateURIsSupported), "rebalanceUpdateURIs": boolInto(&f.rebalanceUpdateURIs),
		"updateURIsURL": textInto(&f.updateURIsURL), "reconnectSupported": boolInto(&f.reconnectSupported),
		"trackTransactionProducers": unused, "maxPullCacheSize": unused, "connectionInterruptProcessingComplete": unused,
	}
}

func (t *transportOptions) setters() map[string]setter {
	f := &t.format
	m := map[string]setter{
		"wireFormat.tightEncodingEnabled": boolInto(&f.TightEncodingEnabled), "wireFormat.cacheEnabled": boolInto(&f.CacheEnabled),
		"wireFormat.stackTraceEnabled": boolInto(&f.StackTraceEnabled), "wireFormat.tcpNoDelayEnabled": boolInto(&f.TCPNoDelayEnabled),
		"wireFormat.maxFrameSize": int64Into(&f.MaxFrameSize), "wireFormat.maxFrameSizeEnabled": boolInto(&f.MaxFrameSizeEnabled),
		"wireFormat.maxInactivityDuration":             millisInto(&f.MaxInactivityDuration),
		"wireFormat.maxInactivityDurationInitalDelay":  millisInto(&f.InitialDelay), // spelt so in Java
		"wireFormat.maxInactivityDurationInitialDelay": millisInto(&f.InitialDelay),
		"wireFormat.host":                              textInto(&f.Host),
		"wireFormat.version":                           int32Into(&f.Version),
		"wireFormat.cacheSize":                         int32Into(&f.CacheSize),
		"connectionTimeout":                            millisInto(&t.connectionTimeout),
		"tcpNoDelay":                                   boolInto(&t.noDelay), "socket.tcpNoDelay": boolInto(&t.noDelay),
		"keepAlive": boolInto(&t.keepAlive), "socket.keepAlive": boolInto(&t.keepAlive),
		"socketBufferSize": intInto(&t.bufferBytes), "socket.sendBufferSize": intInto(&t.bufferBytes), "socket.receiveBufferSize": intInto(&t.bufferBytes),
		"soLinger": intInto(&t.linger), "socket.soLinger": intInto(&t.linger),
		"socket.verifyHostName": boolInto(&t.verifyHostName), "verifyHostName": boolInto(&t.verifyHostName),
		"useInactivityMonitor": boolInto(&t.monitor),
		"wireFormat.sizePrefixDisabled": func(s string) error {
			var v bool
			if err := boolInto(&v)(s); err != nil || v {
				return fmt.Errorf("frames without a size are for datagrams; leave it false")
			}
			return nil
		},
	}
	for _, name := range []string{"soTimeout", "soWriteTimeout", "ioBufferSize", "useLocalHost", "dynamicManagement", "jmxPort", "trace",
		"useKeepAlive", "minmumWireFormatVersion", "trafficClass", "diffServ", "typeOfService", "closeAsync", "stackSize", "threadName",
		"socket.soTimeout", "socket.trafficClass", "socket.enabledCipherSuites", "socket.enabledProtocols", "logWriterName",
		"wireFormat.providerName", "wireFormat.providerVersion", "wireFormat.platformDetails", "wireFormat.maxInflatedDataSize"} {
		m[name] = unused
	}
	return m
}

func int32Into(p *int32) setter {
	return func(s string) error {
		var n int
		if err := intInto(&n)(s); err != nil {
			return err
		}
		*p = int32(n)
		return nil
	}
}

// parseBrokerURL reads a broker URL. The jms.* options come back by themselves.
func parseBrokerURL(s string) (u brokerURL, jmsOptions []option, err error) {
	s = strings.TrimSpace(s)
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok {
		return u, nil, badURL(s, "it has no scheme; write tcp://HOST:PORT")
	}
	if scheme == "failover" || scheme == "static" {
		return parseFailover(s, strings.TrimPrefix(rest, "//"))
	}
	base, query, _ := cutQuery(s)
	all, err := parseOptions(query)
	if err != nil {
		return u, nil, err
	}
	jmsOptions, others := split(all, "jms.")
	e, err := parseEndpoint(base, others)
	return brokerURL{endpoints: []endpoint{e}}, jmsOptions, err
}

// parseFailover reads what follows "failover:" or "static:".
func parseFailover(whole, rest string) (u brokerURL, jmsOptions []option, err error) {
	list, query := rest, ""
	if strings.HasPrefix(rest, "(") {
		end := matching(rest)
		if end < 0 {
			return u, nil, badURL(whole, "a parenthesis is not closed")
		}
		list, query = rest[1:end], strings.TrimPrefix(rest[end+1:], "?")
	} else if i := strings.LastIndexByte(rest, '?'); i >= 0 && !strings.Contains(rest, ",") {
		list, query = rest[:i], rest[i+1:]
	}
	all, err := parseOptions(query)
	if err != nil {
		return u, nil, err
	}
	jmsOptions, others := split(all, "jms.")
	nested, others := split(others, "nested.")
	u.failover = defaultFailover()
	// Without parentheses the one URI's options and failover's stand together.
	var inner []option
	if !strings.HasPrefix(rest, "(") {
		known := u.failover.setters()
		var own []option
		for _, o := range others {
			if known[o.name] != nil {
				own = append(own, o)
			} else {
				inner = append(inner, o)
			}
		}
		others = own
	}
	if err := apply("failover", others, u.failover.setters()); err != nil {
		return u, nil, err
	}
	for _, part := range splitList(list) {
		child, more, err := parseChild(part, append(inner, nested...))
		if err != nil {
			return u, nil, err
		}
		u.endpoints = append(u.endpoints, child...)
		jmsOptions = append(jmsOptions, more...)
	}
	if len(u.endpoints) == 0 && u.failover.updateURIsURL == "" {
		return u, nil, badURL(whole, "it lists no broker")
	}
	return u, jmsOptions, nil
}

// parseChild reads one URI of a composite, or a composite within it.
func parseChild(s string, extra []option) ([]endpoint, []option, error) {
	for _, prefix := range []string{"failover:", "static:"} {
		if strings.HasPrefix(s, prefix) {
			u, more, err := parseBrokerURL(s)
			return u.endpoints, more, err
		}
	}
	base, query, _ := cutQuery(s)
	all, err := parseOptions(query)
	if err != nil {
		return nil, nil, err
	}
	more, others := split(all, "jms.")
	e, err := parseEndpoint(base, append(others, extra...))
	return []endpoint{e}, more, err
}

// matching is the index of the parenthesis that closes the first, or -1.
func matching(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// splitList splits at the commas outside parentheses.
func splitList(s string) []string {
	var parts []string
	depth, from := 0, 0
	for i := range len(s) + 1 {
		switch {
		case i < len(s) && s[i] == '(':
			depth++
		case i < len(s) && s[i] == ')':
			depth--
		case i == len(s) || s[i] == ',' && depth == 0:
			if part := strings.TrimSpace(s[from:i]); part != "" {
				parts = append(parts, part)
			}
			from = i + 1
		}
	}
	return parts
}

// split takes the options with a prefix, which it cuts off, from the others.
func split(all []option, prefix string) (with, without []option) {
	for _, o := range all {
		if rest, ok := strings.CutPrefix(o.name, prefix); ok {
			with = append(with, option{rest, o.value})
		} else {
			without = append(without, o)
		}
	}
	return with, without
}

// parseEndpoint reads "tcp://HOST:PORT" or one of its like, without options.
func parseEndpoint(base string, options []option) (endpoint, error) {
	scheme, host, ok := strings.Cut(base, "://")
	if !ok {
		return endpoint{}, badURL(base, "write tcp://HOST:PORT")
	}
	e := endpoint{uri: base}
	switch scheme {
	case "tcp", "nio", "auto", "auto+nio":
	case "ssl", "tls", "nio+ssl", "auto+ssl", "auto+nio+ssl":
		e.tls = true
	default:
		return endpoint{}, badURL(base, fmt.Sprintf("there is no transport %q; there are tcp, ssl, nio, nio+ssl, auto and failover", scheme))
	}
	host, _, _ = strings.Cut(host, "/")
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), defaultPort
		if e.tls {
			port = defaultTLSPort
		}
	}
	if name == "" {
		return endpoint{}, badURL(base, "it has no host")
	}
	e.address = net.JoinHostPort(name, port)
	e.o = transportOptions{format: wire.DefaultWireFormat(), connectionTimeout: defaultConnectionTimeout, noDelay: true, verifyHostName: true, monitor: true, linger: -1}
	e.o.format.Host = name
	if err := apply(base, options, e.o.setters()); err != nil {
		return endpoint{}, err
	}
	if !e.o.monitor {
		e.o.format.MaxInactivityDuration = 0
	}
	if _, err := e.o.format.Info(); err != nil {
		return endpoint{}, &Error{Op: base, Kind: ErrInvalidOption, Err: err}
	}
	return e, nil
}

func badURL(s, why string) error {
	return &Error{Op: "broker URL " + s, Kind: ErrInvalidOption, Text: why}
}
