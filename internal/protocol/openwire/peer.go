package openwire

import (
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// quietFirst reports whether a client does not announce its first local
// redelivery outside a transaction with a REDELIVERED ack (R-CLIENT-43). The Java
// clients do since 5.18; our own does. Of those that do not say who they are, or
// are neither, nobody knows better: they are taken for clients of the old kind,
// on which they were modelled.
func quietFirst(peer wire.WireFormat) bool {
	switch peer.ProviderName {
	case wire.DefaultWireFormat().ProviderName:
		return false
	case "ActiveMQ":
		major, minor := versionOf(peer.ProviderVersion)
		return major < 5 || major == 5 && minor < 18
	}
	return true
}

// versionOf reads the first two numbers of a version such as "5.16.7" or
// "6.0.0-SNAPSHOT". What is no number is 0.
func versionOf(s string) (major, minor int) {
	first, rest, _ := strings.Cut(s, ".")
	second, _, _ := strings.Cut(rest, ".")
	second, _, _ = strings.Cut(second, "-")
	major, _ = strconv.Atoi(first)
	minor, _ = strconv.Atoi(second)
	return major, minor
}
