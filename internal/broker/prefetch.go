package broker

// Prefetch are the windows of consumers that ask for what their client library
// has by default; nil: that stays (R-XML-20).
type Prefetch struct{ Queue, Browser, Topic, Durable *int }

// The windows that ActiveMQ's clients ask for unless they are told otherwise.
const (
	clientQueue            = 1000
	clientBrowser          = 500
	clientTopic            = 32767
	clientDurable          = 100
	clientOptimizedDurable = 1000
)

// Window is how many messages a consumer may have unacknowledged: what it asks for,
// or what the policy of its destination says where that is a client's default. A
// pattern has a policy of its own (R-MAP-15).
func (c *Connection) Window(spec ConsumerSpec) int {
	p := c.b.policy(spec.Destination).Prefetch
	asked := spec.Prefetch
	is := func(defaults ...int) bool {
		for _, d := range defaults {
			if asked == d {
				return true
			}
		}
		return false
	}
	var set *int
	switch topic := spec.Destination.IsTopic(); {
	case topic && spec.Subscription != "" && is(clientDurable, clientOptimizedDurable):
		set = p.Durable
	case topic && spec.Subscription == "" && is(clientTopic):
		set = p.Topic
	case !topic && spec.Browser && is(clientBrowser):
		set = p.Browser
	case !topic && !spec.Browser && is(clientQueue):
		set = p.Queue
	}
	if set == nil {
		return asked
	}
	return *set
}
