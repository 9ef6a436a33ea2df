package wire

import "github.com/nixiemq/nixie/internal/message"

// A Destination is one of the four classes 100 to 103, which Kind tells apart.
// It is comparable.
type Destination struct {
	Kind         byte   // CodeActiveMQQueue to CodeActiveMQTempTopic
	PhysicalName string // no prefix, no options; commas separate the members of a composite
}

// NewDestination is d in OpenWire's form, nil where d is none.
func NewDestination(d message.Destination) *Destination {
	if d.IsZero() {
		return nil
	}
	return &Destination{Kind: CodeActiveMQQueue + byte(d.Kind-message.Queue), PhysicalName: d.Name}
}

// Code is the kind of the destination.
func (d *Destination) Code() byte { return d.Kind }

// Destination is d in the broker's form, trimmed and without options as
// OpenWire 8.2 asks of a receiver. The destination of nil is the zero value. A
// name with nothing left is message.ErrInvalid.
func (d *Destination) Destination() (message.Destination, error) {
	if d == nil {
		return message.Destination{}, nil
	}
	return message.ParseDestination(d.PhysicalName, message.Queue+message.DestinationKind(d.Kind-CodeActiveMQQueue))
}

// String is the destination as ActiveMQ prints it, e.g. "queue://ORDERS".
func (d *Destination) String() string {
	if d == nil {
		return ""
	}
	return message.Destination{Kind: message.Queue + message.DestinationKind(d.Kind-CodeActiveMQQueue), Name: d.PhysicalName}.String()
}

func (d *Destination) read(r *reader)  { d.PhysicalName = r.str() }
func (d *Destination) write(w *writer) { w.str(d.PhysicalName) }

func isDestination(code byte) bool {
	return code >= CodeActiveMQQueue && code <= CodeActiveMQTempTopic
}
