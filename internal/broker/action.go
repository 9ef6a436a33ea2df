package broker

// actionKind is what an action does.
type actionKind uint8

const (
	actDeliver actionKind = iota
	actAnswer
	actDo
	actEvent
)

// An action is one thing that a turn tells the world.
type action struct {
	kind     actionKind
	sink     Sink
	delivery Delivery
	done     func(error)
	err      error
	do       func()
	b        *Broker
	event    *Event
}

// perform does it. Where the commit failed with err, nothing is delivered, and
// who waits for an answer gets the error.
func (a *action) perform(err error) {
	switch {
	case a.kind == actAnswer && err != nil:
		a.done(err)
	case a.kind == actAnswer:
		a.done(a.err)
	case err != nil:
	case a.kind == actDeliver:
		a.sink.Deliver(a.delivery)
	case a.kind == actDo:
		a.do()
	case a.kind == actEvent:
		a.b.tell(*a.event)
	}
}
