package openwire

import (
	"testing"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// guarded is a server with two users: sam may use USERS.> and read NEWS, root may
// do everything.
func guarded(o *Options) {
	all := []string{"roots"}
	d := func(kind message.DestinationKind, name string) message.Destination {
		return message.Destination{Kind: kind, Name: name}
	}
	o.Access = access.New(access.Options{
		Users: []access.User{{Name: "sam", Password: "pw", Groups: []string{"users"}}, {Name: "root", Password: "r", Groups: all}},
		Authorization: &access.Authorization{Entries: []access.Entry{
			{Destination: d(message.Queue, ">"), Read: all, Write: all, Admin: all},
			{Destination: d(message.Topic, ">"), Read: all, Write: all, Admin: all},
			{Destination: d(message.Queue, "USERS.>"), Read: []string{"users"}, Write: []string{"users"}, Admin: []string{"users"}},
			{Destination: d(message.Queue, "THERE"), Read: []string{"users"}, Write: []string{"users"}},
			{Destination: d(message.Topic, "ActiveMQ.Advisory.>"), Read: []string{access.Everyone}, Write: []string{access.Everyone}, Admin: []string{access.Everyone}},
		}},
	})
}

// as connects with a name and a password.
func (p *peer) as(user, password wire.Text) *wire.ConnectionInfo {
	return &wire.ConnectionInfo{ConnectionID: p.connection(), ClientID: wire.NewText("client of " + p.id), UserName: user, Password: password}
}

// user opens a connection of someone, with session 1 and producer 1.
func (h *house) user(name, password string) *peer {
	h.t.Helper()
	p := h.peer(peerFormat())
	p.do(p.as(wire.NewText(name), wire.NewText(password)))
	p.tell(&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: 1}})
	p.produce(1, 0)
	return p
}

// TestAuthentication refuses whom the configuration does not know, in ActiveMQ's
// words (section 7.8, OpenWire 14).
func TestAuthentication(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user, password wire.Text
		text           string
	}{
		"wrong password": {wire.NewText("sam"), wire.NewText("no"), "User name [sam] or password is invalid."},
		"unknown user":   {wire.NewText("tom"), wire.NewText("pw"), "User name [tom] or password is invalid."},
		"no credentials": {wire.Text{}, wire.Text{}, "User name [null] or password is invalid."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, guarded, func(h *house) {
				p := h.peer(peerFormat())
				p.fails(p.as(c.user, c.password), classSecurity, c.text)
				p.fails(&wire.ConsumerInfo{ConsumerID: p.consumerID(1), Destination: queueNamed("USERS.A")}, classIllegalState, "")
				<-p.ended
			})
		})
	}
}

// TestAuthorization is R-XML-30 to R-XML-32 on the wire.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	inHouse(t, guarded, func(h *house) {
		root, sam := h.user("root", "r"), h.user("sam", "pw")
		consumer := func(p *peer, n int64, from *wire.Destination) *wire.ConsumerInfo {
			return &wire.ConsumerInfo{ConsumerID: p.consumerID(n), Destination: from, PrefetchSize: 10}
		}
		sam.consume(1, topicNamed("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic"), 10)
		sam.consume(2, queueNamed("USERS.A"), 10)
		sam.do(sam.text(1, queueNamed("USERS.A"), "mine"))
		sam.fails(consumer(sam, 3, queueNamed("OTHER")), classSecurity, "User sam is not authorized to read from: queue://OTHER")
		sam.fails(consumer(sam, 4, queueNamed(">")), classSecurity, "User sam is not authorized to read from: queue://>")
		sam.fails(consumer(sam, 5, queueNamed("USERS.A,OTHER")), classSecurity, "read from: queue://OTHER")
		sam.fails(&wire.ProducerInfo{ProducerID: sam.producerID(2), Destination: queueNamed("OTHER")}, classSecurity, "User sam is not authorized to write to: queue://OTHER")
		sam.fails(sam.text(2, queueNamed("OTHER"), "no"), classSecurity, "User sam is not authorized to write to: queue://OTHER")
		sam.fails(&wire.DestinationInfo{Destination: queueNamed("OTHER"), OperationType: wire.DestinationAdd}, classSecurity, "User sam is not authorized to create: queue://OTHER")

		// Admin is needed to create, and only to create (R-XML-31).
		sam.fails(sam.text(3, queueNamed("THERE"), "too early"), classSecurity, "User sam is not authorized to create: queue://THERE")
		root.do(root.text(1, queueNamed("THERE"), "now it is"))
		sam.do(sam.text(4, queueNamed("THERE"), "and may be used"))
		sam.fails(&wire.DestinationInfo{Destination: queueNamed("THERE"), OperationType: wire.DestinationRemove}, classSecurity, "queue://THERE")

		// A transaction is told of what it may not send.
		sam.tell(sam.transaction(1, wire.TransactionBegin))
		m := sam.text(5, queueNamed("OTHER"), "no")
		m.TransactionID = sam.txID(1)
		sam.fails(m, classSecurity, "write to: queue://OTHER")

		// Temporary destinations are everybody's where no entry speaks of them.
		sam.do(&wire.DestinationInfo{Destination: tempQueue(sam, 1), OperationType: wire.DestinationAdd})
		sam.consume(6, tempQueue(sam, 1), 10)
		sam.hangUp()
		root.hangUp()
	})
}

// TestNames gives clients the queue that they mean by another name, for producers,
// consumers, messages and destinations (an Artemis address and its queue, R-HQ-136).
func TestNames(t *testing.T) {
	t.Parallel()
	inHouse(t, func(o *Options) {
		o.Names = func(d message.Destination) (message.Destination, error) {
			switch d.Name {
			case "news::archive":
				return message.Destination{Kind: message.Queue, Name: "archive"}, nil
			case "news::other":
				return d, message.ErrNotFound
			}
			return d, nil
		}
	}, func(h *house) {
		p := h.user("", "")
		p.do(p.text(1, queueNamed("news::archive"), "hello"))
		p.consume(1, queueNamed("news::archive"), 10)
		if d := p.dispatched(); d.Destination.PhysicalName != "archive" {
			t.Errorf("it comes from %s", d.Destination)
		}
		p.fails(&wire.ConsumerInfo{ConsumerID: p.consumerID(2), Destination: queueNamed("news::other"), PrefetchSize: 1}, classInvalidDestination, "")
		p.fails(p.text(2, queueNamed("news::other"), "hello"), classInvalidDestination, "")
	})
}
