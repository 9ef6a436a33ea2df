package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// A GroupOwner says which consumer a message group of a queue belongs to.
type GroupOwner struct {
	Group    string
	Consumer string
	ClientID string
	Address  string
	Out      int  // messages of the group that the consumer has
	Leaving  bool // it is to lose the group when it is done with those, and gets no more
}

// Groups are the message groups of a queue that have an owner now, sorted. ErrNotFound
// where there is no such queue.
func (b *Broker) Groups(ctx context.Context, name message.Destination) (all []GroupOwner, err error) {
	err = b.inQueue(ctx, name, func(d *destination) { all = groupOwners(d.machine) })
	return all, err
}

// Regroup takes a message group, or with "" all, of a queue from their owners: each as
// soon as its owner is done with what it has of it, and then whoever is next gets it. How
// many groups that is about is what it returns.
func (b *Broker) Regroup(ctx context.Context, name message.Destination, group string) (n int, err error) {
	err = b.inQueue(ctx, name, func(d *destination) {
		for _, o := range d.machine.GroupOwners() {
			if group == "" || o.Group == group {
				n++
			}
		}
		d.apply(queue.Regroup{Group: group})
	})
	return n, err
}

// inQueue runs f in the goroutine of a queue.
func (b *Broker) inQueue(ctx context.Context, name message.Destination, f func(*destination)) error {
	d := b.known(name)
	if d == nil || !name.IsQueue() {
		return fmt.Errorf("%s does not exist: %w", name, message.ErrNotFound)
	}
	return d.do(ctx, func() { f(d) })
}

func groupOwners(m *queue.Machine) []GroupOwner {
	var all []GroupOwner
	for _, o := range m.GroupOwners() {
		all = append(all, GroupOwner{Group: o.Group, Consumer: o.Consumer.ID, ClientID: o.Consumer.ClientID, Address: o.Consumer.Address, Out: o.Out, Leaving: o.Leaving})
	}
	slices.SortFunc(all, func(x, y GroupOwner) int { return cmp.Compare(x.Group, y.Group) })
	return all
}
