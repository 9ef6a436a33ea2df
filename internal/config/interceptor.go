package config

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// Interceptors are destinations that hand messages on to others (spec sections
// 7.9 and 9.1).
type Interceptors struct {
	VirtualTopics []VirtualTopic
	Composites    []CompositeDestination
	// Filters are queues that take only some of what is sent to them, one for a queue.
	Filters []QueueFilter
	// Mirrors have what is sent to any queue sent to a topic, too.
	Mirrors []MirroredQueues
}

// MirroredQueues are topics that get what is sent to all queues: for each the topic
// Prefix + the queue's name + Postfix (ActiveMQ's mirroredQueue).
type MirroredQueues struct {
	// Prefix and Postfix are by default "VirtualTopic.Mirror." and none.
	Prefix, Postfix string
	// Temporary has temporary queues mirrored, too; default true.
	Temporary bool
	// KeptOnly leaves out what a composite of the queue's name only hands on; default
	// false.
	KeptOnly bool
	// Source is "FILE:LINE".
	Source string
}

// DefaultMirroredQueues is a mirroredQueue without attributes.
func DefaultMirroredQueues() MirroredQueues {
	return MirroredQueues{Prefix: "VirtualTopic.Mirror.", Temporary: true}
}

// wrong says why there can be no such topics; "": there can.
func (m MirroredQueues) wrong() string {
	if d := (message.Destination{Kind: message.Topic, Name: m.Prefix + "Q" + m.Postfix}); d.IsComposite() || d.IsPattern() || d.IsAdvisory() {
		return fmt.Sprintf("prefix %q and postfix %q do not make the name of a topic, such as %q", m.Prefix, m.Postfix, d.Name)
	}
	return ""
}

// A QueueFilter lets into a queue what its selector selects, as the filter of a queue
// of HornetQ and Artemis. What it does not let in is dropped, and told.
type QueueFilter struct {
	Queue message.Destination
	// Selector is not empty. Its syntax is checked when the broker starts.
	Selector string
	Source   string // "FILE:LINE"
}

// A VirtualTopic gives each application a queue of its own of what is sent to a
// topic (R-VT-01): to every queue that fits Prefix + the topic's name + Postfix.
type VirtualTopic struct {
	// Name is the pattern of the topics; default ">".
	Name string
	// Prefix and Postfix make the pattern of the queues; default "Consumer.*."
	// and none.
	Prefix, Postfix string
	// SelectorAware sends a queue only what a consumer of it selects; default false.
	SelectorAware bool
	// Local leaves out messages that come from other brokers; default false.
	Local bool
	// TransactedSend makes the copies of a message one unit; they always are.
	TransactedSend bool
	// DropOnResourceLimit leaves out queues that refuse for want of space,
	// instead of failing the send (R-VT-06); default false.
	DropOnResourceLimit bool
	// SetOriginalDestination gives copies the queue as their destination and the
	// topic as the original one (R-VT-02); default true. False leaves the topic.
	SetOriginalDestination bool
	// Source is "FILE:LINE".
	Source string
}

// DefaultVirtualTopic is a virtualTopic without attributes.
func DefaultVirtualTopic() VirtualTopic {
	return VirtualTopic{Name: ">", Prefix: "Consumer.*.", SetOriginalDestination: true}
}

// DefaultInterceptors is what ActiveMQ has where nothing is configured and
// useVirtualTopics is not false.
func DefaultInterceptors() *Interceptors {
	v := DefaultVirtualTopic()
	v.Name, v.Source = "VirtualTopic.>", "default"
	return &Interceptors{VirtualTopics: []VirtualTopic{v}}
}

// A CompositeDestination hands what is sent to it on to others (R-VT-05).
type CompositeDestination struct {
	// Kind is message.Queue (compositeQueue) or message.Topic (compositeTopic).
	Kind message.DestinationKind
	// Name is its name, which may be a pattern.
	Name string
	// ForwardOnly keeps no copy in the destination itself; default true.
	ForwardOnly bool
	// SendWhenNotMatched keeps a message here that no filter of ForwardTo selects,
	// where ForwardOnly would not; targets with Otherwise do not count; default false.
	SendWhenNotMatched bool
	// ForwardTo has at least one element.
	ForwardTo []ForwardTarget
	// Source is "FILE:LINE".
	Source string
}

// A ForwardTarget is one target of a CompositeDestination.
type ForwardTarget struct {
	// Destination is one queue or topic.
	Destination message.Destination
	// Selector lets through what it selects; empty: everything. Its syntax is
	// checked when the broker starts.
	Selector string
	// Otherwise gives it only what no target without Otherwise gets.
	Otherwise bool
}
