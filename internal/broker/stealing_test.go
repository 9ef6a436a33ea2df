package broker

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/nixiemq/nixie/internal/message"
)

// TestClientIDIsStolen: the connection that has the client id is ended, and all it
// had goes back; without the permission the newcomer is refused.
func TestClientIDIsStolen(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		owner := h.client()
		kicked := make(chan error, 1)
		owner.c.info.Kick = func(err error) { kicked <- err }
		owner.consume(orders)
		owner.must(owner.send(owner.msg(orders, "m1"), ""))
		want(t, "owner", owner.take(), "m1")
		thief := &client{h: h, id: "ID:thief"}
		info := ClientInfo{ID: thief.id, ClientID: owner.id, Address: "pipe", Protocol: "test", Kick: func(error) {}}
		if _, err := h.broker.Connect(h.t.Context(), info, thief); !errors.Is(err, message.ErrExists) {
			t.Fatalf("without permission: %v", err)
		}
		info.Steals = true
		done := make(chan error, 1)
		go func() {
			c, err := h.broker.Connect(h.t.Context(), info, thief)
			thief.c = c
			done <- err
		}()
		synctest.Wait()
		if err := <-kicked; !errors.Is(err, message.ErrState) {
			t.Errorf("the owner was ended with %v", err)
		}
		owner.c.Close(message.ConnectionLost, "taken over", -1)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		thief.consume(orders)
		want(t, "thief", thief.take(), "m1")
		thief.c.Close(message.Closed, "", -1)
	})
}
