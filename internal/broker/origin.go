package broker

import (
	"strings"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// Properties by which HornetQ and Artemis tell where a moved message was (R-HQ-64
// to R-HQ-68), behind the prefix of the product.
const (
	hornetQPrefix     = "_HQ_"
	artemisPrefix     = "_AMQ_"
	origAddress       = "ORIG_ADDRESS"
	origQueue         = "ORIG_QUEUE"
	origMessageID     = "ORIG_MESSAGE_ID"
	origRoutingType   = "ORIG_ROUTING_TYPE"
	actualExpiry      = "ACTUAL_EXPIRY"
	hornetQQueueNames = "jms.queue."
	hornetQTopicNames = "jms.topic."
)

// The values of ORIG_ROUTING_TYPE.
const (
	multicast int8 = 0
	anycast   int8 = 1
)

// An origin is where a message was before it moved.
type origin struct {
	b       *Broker
	kind    redelivery.Origins
	from    message.Destination // the queue, or the topic it was sent to
	queue   string              // where it waited; "": nowhere
	number  uint64              // its number there
	expired bool                // it moves because its time has passed
}

// originOf is the origin of an item that leaves a destination.
func (d *destination) originOf(it *queue.Item, header *message.Message, move *queue.Move) origin {
	o := origin{b: d.b, kind: d.options.Rules.Origins, from: d.name, number: it.Position, expired: move.Cause == message.Expired}
	switch {
	case d.sub != nil:
		o.from = header.Destination
		if d.sub.durable { // the others' queues have no names
			o.queue = d.sub.clientID + "." + d.sub.name
		}
	case o.kind == redelivery.HornetQOrigins:
		o.queue = hornetQQueueNames + d.name.Name
	default:
		o.queue = d.name.Name
	}
	return o
}

// stamp adds the properties of an origin to what the broker has added to a
// message m.
func (o origin) stamp(added map[string]any, m *message.Message) {
	if o.kind == redelivery.NoOrigins {
		return
	}
	prefix, address := artemisPrefix, o.from.Name
	if o.kind == redelivery.HornetQOrigins {
		prefix, address = hornetQPrefix, hornetQQueueNames+o.from.Name
		if o.from.IsTopic() {
			address = hornetQTopicNames + o.from.Name
		}
	}
	if o.expired {
		added[prefix+actualExpiry] = o.b.now()
	}
	if o.kind == redelivery.HornetQOrigins && o.b.hasProperty(m, prefix+origAddress) {
		return // those of the first move are kept (R-HQ-65)
	}
	added[prefix+origAddress] = address
	added[prefix+origMessageID] = int64(o.number)
	delete(added, prefix+origQueue)
	if o.queue != "" {
		added[prefix+origQueue] = o.queue
	}
	if o.kind == redelivery.ArtemisOrigins {
		added[prefix+origRoutingType] = anycast
		if o.from.IsTopic() {
			added[prefix+origRoutingType] = multicast
		}
	}
}

// tellsOrigin reports whether a property is one that stamp adds.
func tellsOrigin(name string) bool {
	rest, ok := strings.CutPrefix(name, artemisPrefix)
	if !ok {
		rest, ok = strings.CutPrefix(name, hornetQPrefix)
	}
	return ok && (rest == origAddress || rest == origQueue || rest == origMessageID || rest == origRoutingType || rest == actualExpiry)
}
