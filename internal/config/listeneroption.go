package config

import "time"

// A uriOption is one option that ActiveMQ knows on a connector's URI: either it
// is honoured (set), or leaving it out is safe, for the reason why, unless the
// value is the default anyway.
type uriOption struct {
	set  func(*ListenerOptions, string) error
	kind kind
	def  string
	why  string
	tls  bool // for clients that come with TLS alone
}

// uriOptionNames lists the options, for the nearest one to a typing error.
func uriOptionNames() []string {
	names := make([]string, 0, len(uriOptions))
	for n := range uriOptions {
		names = append(names, n)
	}
	return names
}

// Reasons that several options share.
const (
	whyNegotiated = "it is agreed with each client as the client asks"
	whySocket     = "the system's setting is used"
	whyThreads    = "there are no such threads or buffers here"
	whyInactivity = "connections are watched by wireFormat.maxInactivityDuration alone"
	whyDiagnostic = "it only changes what ActiveMQ logs"
)

// uriOptions are the options of an OpenWire connector over TCP: of the server
// (no prefix), of each accepted socket (transport.) and of the wire format.
var uriOptions = map[string]uriOption{
	"maximumConnections":                           {set: setMaximumConnections},
	"maximumConsumersAllowedPerConnection":         {set: setMaximumConsumers}, // ours, and the next; ActiveMQ has attributes of the connector
	"maximumProducersAllowedPerConnection":         {set: setMaximumProducers},
	"wireFormat.maxFrameSize":                      {set: setMaxFrame},
	"wireFormat.maxInactivityDuration":             {set: setInactivity},
	"wireFormat.maxInactivityDurationInitalDelay":  {set: setInitialDelay}, // ActiveMQ's own spelling
	"wireFormat.maxInactivityDurationInitialDelay": {set: setInitialDelay},
	"socketBufferSize":                             {set: setSocketBuffer},
	"transport.socketBufferSize":                   {set: setSocketBuffer},
	"transport.tcpNoDelay":                         {set: setNoDelay},
	"wireFormat.tcpNoDelayEnabled":                 {set: setNoDelay},
	"keepAlive":                                    {set: setKeepAlive},
	"transport.keepAlive":                          {set: setKeepAlive},
	"transport.useInactivityMonitor":               {set: setUseMonitor},
	"allowLinkStealing":                            {set: setLinkStealing},  // ours; ActiveMQ has an attribute of the connector
	"anycastPrefix":                                {set: setAnycastPrefix}, // ours, and those of Artemis' acceptors
	"multicastPrefix":                              {set: setMulticastPrefix},

	// Ours too: attributes of the connector in ActiveMQ.
	"updateClusterClients":         {set: setUpdateCluster},
	"rebalanceClusterClients":      {set: setRebalanceCluster},
	"updateClusterClientsOnRemove": {set: setUpdateOnRemove},
	"updateClusterFilter":          {set: setClusterFilter},

	// Of TLS. ActiveMQ has these with transport. before them, or without, by its version.
	"needClientAuth":                {set: setNeedClientAuth, tls: true},
	"wantClientAuth":                {set: setWantClientAuth, tls: true},
	"enabledProtocols":              {set: setProtocols, tls: true},
	"enabledCipherSuites":           {set: setCipherSuites, tls: true},
	"transport.needClientAuth":      {set: setNeedClientAuth, tls: true},
	"transport.wantClientAuth":      {set: setWantClientAuth, tls: true},
	"transport.enabledProtocols":    {set: setProtocols, tls: true},
	"transport.enabledCipherSuites": {set: setCipherSuites, tls: true},
	"transport.verifyHostName":      {set: setVerifyHost, tls: true},
	"verifyHostName":                {set: setVerifyHost, tls: true},
	// Ours, for a listener with certificates of its own: PEM, and the names of Artemis' acceptors.
	"certificate":        {set: setCertificate, tls: true},
	"key":                {set: setKey, tls: true},
	"trust":              {set: setTrustPath, tls: true},
	"keyStorePath":       {set: setCertificate, tls: true},
	"keyStorePassword":   {set: setKeyStorePassword, tls: true},
	"keyStoreType":       {set: setStoreType, tls: true},
	"keyPassword":        {set: setKeyPassword, tls: true},
	"trustStorePath":     {set: setTrustPath, tls: true},
	"trustStorePassword": {set: setTrustPassword, tls: true},
	"trustStoreType":     {set: setStoreType, tls: true},

	"wireFormat.version":                {kind: integer, def: "12", why: "versions 1 to 12 are offered to every client"},
	"wireFormat.cacheEnabled":           {kind: boolean, def: "true", why: whyNegotiated},
	"wireFormat.cacheSize":              {kind: integer, def: "1024", why: whyNegotiated},
	"wireFormat.tightEncodingEnabled":   {kind: boolean, def: "true", why: whyNegotiated},
	"wireFormat.sizePrefixDisabled":     {kind: boolean, def: "false", why: "every frame has its size before it"},
	"wireFormat.stackTraceEnabled":      {kind: boolean, def: "true", why: "errors are sent without Java stack traces"},
	"wireFormat.maxFrameSizeEnabled":    {kind: boolean, def: "true", why: "the size of a frame is always bounded"},
	"wireFormat.host":                   {why: "it is not used here"},
	"wireFormat.includePlatformDetails": {kind: boolean, def: "false", why: whyDiagnostic},

	"transport.soTimeout":         {kind: integer, def: "0", why: whyInactivity},
	"transport.soWriteTimeout":    {kind: integer, def: "0", why: whyInactivity},
	"transport.connectionTimeout": {kind: integer, def: "30000", why: whyInactivity},
	"transport.readCheckTime":     {kind: integer, why: whyInactivity},
	"transport.writeCheckTime":    {kind: integer, why: whyInactivity},
	"transport.initialDelayTime":  {kind: integer, why: whyInactivity},
	"transport.useKeepAlive":      {kind: boolean, def: "true", why: "KeepAliveInfo is sent whenever a client may expect it"},
	"transport.soLinger":          {kind: integer, why: whySocket},
	"transport.trafficClass":      {kind: integer, def: "0", why: whySocket},
	"transport.ioBufferSize":      {kind: size, why: whyThreads},
	"transport.threadName":        {why: whyThreads},
	"transport.stackSize":         {kind: integer, def: "0", why: whyThreads},
	"transport.daemon":            {kind: boolean, def: "false", why: whyThreads},
	"transport.closeAsync":        {kind: boolean, def: "true", why: whyThreads},
	"transport.dynamicManagement": {kind: boolean, def: "false", why: whyDiagnostic},
	"transport.startLogging":      {kind: boolean, def: "true", why: whyDiagnostic},
	"transport.trace":             {kind: boolean, def: "false", why: whyDiagnostic},
	"transport.logWriterName":     {why: whyDiagnostic},

	"backlog":                  {kind: integer, def: "5000", why: whySocket},
	"soTimeout":                {kind: integer, def: "0", why: whyInactivity},
	"connectionTimeout":        {kind: integer, def: "30000", why: whyInactivity},
	"minmumWireFormatVersion":  {kind: integer, def: "0", why: "versions 1 to 12 are accepted"}, // ActiveMQ's own spelling
	"useQueueForAccept":        {kind: boolean, def: "true", why: whyThreads},
	"stackSize":                {kind: integer, def: "0", why: whyThreads},
	"daemon":                   {kind: boolean, def: "false", why: whyThreads},
	"maximumAcceptQueueLength": {kind: integer, why: whySocket},
	"dynamicManagement":        {kind: boolean, def: "false", why: whyDiagnostic},
	"startLogging":             {kind: boolean, def: "true", why: whyDiagnostic},
	"trace":                    {kind: boolean, def: "false", why: whyDiagnostic},
	"logWriterName":            {why: whyDiagnostic},
}

func setLinkStealing(o *ListenerOptions, s string) (err error) {
	o.AllowLinkStealing, err = parseBool(s)
	return err
}

func setUpdateCluster(o *ListenerOptions, s string) (err error) {
	o.UpdateClusterClients, err = parseBool(s)
	return err
}

func setRebalanceCluster(o *ListenerOptions, s string) (err error) {
	o.RebalanceClusterClients, err = parseBool(s)
	return err
}

func setUpdateOnRemove(o *ListenerOptions, s string) (err error) {
	o.UpdateClusterClientsOnRemove, err = parseBool(s)
	return err
}

func setClusterFilter(o *ListenerOptions, s string) error {
	o.UpdateClusterFilter = s
	return checkClusterFilter(s)
}

func setMaximumConnections(o *ListenerOptions, s string) (err error) {
	o.MaximumConnections, err = maximum(s)
	return err
}

func setMaximumConsumers(o *ListenerOptions, s string) (err error) {
	o.MaximumConsumers, err = maximum(s)
	return err
}

func setMaximumProducers(o *ListenerOptions, s string) (err error) {
	o.MaximumProducers, err = maximum(s)
	return err
}

// maximum is how many there may be; 0: there is no such limit.
func maximum(s string) (int, error) {
	n, err := parseInt(s, 0, 1<<31-1)
	if n == 1<<31-1 { // ActiveMQ's default: Integer.MAX_VALUE
		n = 0
	}
	return int(n), err
}

func setMaxFrame(o *ListenerOptions, s string) error {
	n, err := parseInt(s, 1, 1<<63-1)
	o.MaxFrameBytes = n
	return err
}

func setInactivity(o *ListenerOptions, s string) error {
	d, err := milliseconds(s)
	if o.MaxInactivity != noMonitor {
		o.MaxInactivity = d
	}
	return err
}

func setInitialDelay(o *ListenerOptions, s string) (err error) {
	o.MaxInactivityInitialDelay, err = milliseconds(s)
	return err
}

func setSocketBuffer(o *ListenerOptions, s string) error {
	n, err := parseInt(s, 0, 1<<30)
	o.SocketBufferBytes = int(n)
	return err
}

func setNoDelay(o *ListenerOptions, s string) (err error) {
	o.NoDelay, err = parseBool(s)
	return err
}

func setAnycastPrefix(o *ListenerOptions, s string) error {
	o.AnycastPrefix = s
	return nil
}

func setMulticastPrefix(o *ListenerOptions, s string) error {
	o.MulticastPrefix = s
	return nil
}

func setKeepAlive(o *ListenerOptions, s string) (err error) {
	o.KeepAlive, err = parseBool(s)
	return err
}

// noMonitor is MaxInactivity while a URI is read that turns the monitor off,
// wherever in it the duration stands.
const noMonitor time.Duration = -1

// setUseMonitor turns the inactivity monitor off; "true" changes nothing.
func setUseMonitor(o *ListenerOptions, s string) error {
	on, err := parseBool(s)
	if err == nil && !on {
		o.MaxInactivity = noMonitor
	}
	return err
}
