package jms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/protocol/openwire/openwiretest"
)

func TestSendAndReceive(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, "tcp://room"))
		s := session(t, c, AutoAcknowledge)
		send(t, s, Queue("A"), "one", "two", "three")
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		if got := texts(t, k, time.Second); !slices.Equal(got, []string{"one", "two", "three"}) {
			t.Errorf("got %v", got)
		}
		ok(t, c.Close())
	})
}

func TestEveryBodyAndProperty(t *testing.T) {
	bodies := map[string]Body{
		"plain":      nil,
		"text":       Text("grüße 😀 \x00 ende"),
		"empty text": Text(""),
		"null text":  NullText{},
		"bytes":      Bytes{0, 1, 0xff},
		"map":        Map{"b": true, "n": int64(7), "f": 1.5, "s": "x", "c": Char('ä'), "raw": []byte{1}, "i8": int8(-1), "i16": int16(-2), "i32": int32(-3), "f32": float32(2.5), "nil": nil},
		"stream":     Stream{true, int8(1), int16(2), int32(3), int64(4), float32(5), 6.0, "seven", Char('8'), []byte{9}, nil},
		"object":     Object{0xac, 0xed, 0, 5, 0x70},
	}
	for _, compressed := range []bool{false, true} {
		t.Run(fmt.Sprintf("compressed=%v", compressed), func(t *testing.T) {
			everywhere(t, func(t *testing.T, r room) {
				c := connect(t, factory(t, r, fmt.Sprintf("tcp://room?jms.useCompression=%v", compressed)))
				s := session(t, c, AutoAcknowledge)
				k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
				p := must(s.CreateProducer(t.Context(), Queue("A")))(t)
				for name, body := range bodies {
					sent := &Message{Body: body, CorrelationID: "corr", Type: "type", ReplyTo: Topic("R"), GroupID: "g", GroupSequence: 3,
						Properties: Properties{"b": false, "i8": int8(1), "i16": int16(2), "i32": int32(3), "i64": int64(4), "f32": float32(5.5), "f64": 6.5, "s": "grüße", "nil": nil,
							"nested": map[string]any{"list": []any{int32(1), "x"}}}}
					ok(t, p.Send(t.Context(), sent, WithPriority(7), WithTimeToLive(time.Hour), WithDeliveryMode(NonPersistent)))
					got := must(k.Receive(t.Context()))(t)
					if diff := cmp.Diff(body, got.Body); diff != "" && !(name == "plain" && got.Body == nil) {
						t.Errorf("%s: %s", name, diff)
					}
					if diff := cmp.Diff(sent.Properties, got.Properties); diff != "" {
						t.Errorf("%s: properties %s", name, diff)
					}
					if got.ID != sent.ID || got.Priority != 7 || got.DeliveryMode != NonPersistent || !got.Expiration.Equal(sent.Expiration) ||
						!got.Timestamp.Equal(sent.Timestamp) || got.CorrelationID != "corr" || got.Type != "type" || got.ReplyTo != Topic("R") || got.GroupID != "g" || got.GroupSequence != 3 {
						t.Errorf("%s: headers %+v, sent %+v", name, got, sent)
					}
					if got.Redelivered() || got.DeliveryCount() != 1 {
						t.Errorf("%s: a first delivery has counter %d", name, got.RedeliveryCounter)
					}
				}
				ok(t, c.Close())
			})
		})
	}
}

func TestTransactions(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, "tcp://room?jms.redeliveryPolicy.initialRedeliveryDelay=0"))
		other := session(t, c, AutoAcknowledge)
		watch := must(other.CreateConsumer(t.Context(), Queue("OUT")))(t)
		s := session(t, c, SessionTransacted)
		send(t, s, Queue("OUT"), "lost")
		ok(t, s.Rollback(t.Context()))
		send(t, s, Queue("OUT"), "kept")
		if got := texts(t, watch, time.Second); got != nil {
			t.Errorf("%v came before the commit", got)
		}
		ok(t, s.Commit(t.Context()))
		if got := texts(t, watch, time.Second); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("after the commit: %v", got)
		}

		send(t, other, Queue("IN"), "a", "b")
		k := must(s.CreateConsumer(t.Context(), Queue("IN")))(t)
		for round := range 3 {
			for _, want := range []string{"a", "b"} {
				m := must(k.Receive(t.Context()))(t)
				if m.Text() != want || m.RedeliveryCounter != round || m.Redelivered() != (round > 0) {
					t.Errorf("round %d: got %q, counter %d", round, m.Text(), m.RedeliveryCounter)
				}
			}
			if round < 2 {
				ok(t, s.Rollback(t.Context()))
			}
		}
		ok(t, s.Commit(t.Context()))
		if got := texts(t, k, 5*time.Second); got != nil {
			t.Errorf("after the commit: %v", got)
		}
		ok(t, c.Close())
	})
}

func TestAcknowledgeModes(t *testing.T) {
	left := func(t *testing.T, r room) string {
		c := connect(t, factory(t, r, "tcp://room"))
		defer c.Close()
		k := must(session(t, c, AutoAcknowledge).CreateConsumer(t.Context(), Queue("A")))(t)
		return strings.Join(texts(t, k, time.Second), " ")
	}
	for name, tt := range map[string]struct {
		mode AckMode
		ack  func(t *testing.T, ms []*Message)
		want string
	}{
		"auto acknowledges what was received":        {AutoAcknowledge, nil, "4 5"},
		"dups-ok acknowledges what was received":     {DupsOKAcknowledge, nil, "4 5"},
		"client without acknowledge keeps all":       {ClientAcknowledge, nil, "1 2 3 4 5"},
		"client acknowledges all that was delivered": {ClientAcknowledge, func(t *testing.T, ms []*Message) { ok(t, ms[0].Acknowledge(t.Context())) }, "4 5"},
		"individual acknowledges that message alone": {IndividualAcknowledge, func(t *testing.T, ms []*Message) { ok(t, ms[1].Acknowledge(t.Context())) }, "1 3 4 5"},
		"transacted, and closed before a commit":     {SessionTransacted, nil, "1 2 3 4 5"},
		"individual twice is no error": {IndividualAcknowledge, func(t *testing.T, ms []*Message) {
			ok(t, ms[1].Acknowledge(t.Context()))
			ok(t, ms[1].Acknowledge(t.Context()))
		}, "1 3 4 5"},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, r room) {
				c := connect(t, factory(t, r, "tcp://room"))
				s := session(t, c, tt.mode)
				p := session(t, c, AutoAcknowledge)
				send(t, p, Queue("A"), "1", "2", "3", "4", "5")
				k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
				var ms []*Message
				for range 3 {
					ms = append(ms, must(k.Receive(t.Context()))(t))
				}
				if tt.ack != nil {
					tt.ack(t, ms)
				}
				ok(t, c.Close())
				if got := left(t, r); got != tt.want {
					t.Errorf("left are %q, want %q", got, tt.want)
				}
			})
		})
	}
}

func TestReceiveTimesOut(t *testing.T) {
	for _, prefetch := range []int{0, 10} {
		t.Run(fmt.Sprintf("prefetch %d", prefetch), func(t *testing.T) {
			everywhere(t, func(t *testing.T, r room) {
				c := connect(t, factory(t, r, "tcp://room"))
				s := session(t, c, AutoAcknowledge)
				k := must(s.CreateConsumer(t.Context(), Queue("A"), WithPrefetch(prefetch)))(t)
				start := time.Now()
				if _, err := k.ReceiveTimeout(t.Context(), 3*time.Second); !errors.Is(err, ErrNoMessage) || !took(time.Since(start), 3*time.Second) {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				if _, err := k.ReceiveNoWait(t.Context()); !errors.Is(err, ErrNoMessage) || !took(time.Since(start), 3*time.Second) {
					t.Errorf("no wait: %v after %v", err, time.Since(start))
				}
				ctx, done := context.WithTimeout(t.Context(), time.Second)
				defer done()
				if _, err := k.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("context: %v", err)
				}
				send(t, s, Queue("A"), "x", "y")
				if m := must(k.Receive(t.Context()))(t); m.Text() != "x" {
					t.Errorf("got %q", m.Text())
				}
				if m := must(k.ReceiveTimeout(t.Context(), time.Second))(t); m.Text() != "y" {
					t.Errorf("got %q", m.Text())
				}
				ok(t, c.Close())
			})
		})
	}
}

func TestTopicsSelectorsAndBrowsers(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, "tcp://room"))
		s := session(t, c, AutoAcknowledge)
		all := must(s.CreateConsumer(t.Context(), Topic("T.>")))(t)
		some := must(s.CreateConsumer(t.Context(), Topic("T.A"), WithSelector("n > 1")))(t)
		none := must(s.CreateConsumer(t.Context(), Topic("T.A"), WithNoLocal()))(t)
		p := must(s.CreateProducer(t.Context(), Topic("T.A")))(t)
		for n := range 3 {
			ok(t, p.Send(t.Context(), NewText(fmt.Sprint(n)).SetProperty("n", n)))
		}
		for name, tt := range map[string]struct {
			k    *Consumer
			want []string
		}{"wildcard": {all, []string{"0", "1", "2"}}, "selector": {some, []string{"2"}}, "noLocal": {none, nil}} {
			if got := texts(t, tt.k, time.Second); !slices.Equal(got, tt.want) {
				t.Errorf("%s: %v", name, got)
			}
		}
		if _, err := s.CreateConsumer(t.Context(), Queue("Q"), WithSelector("n >")); !errors.Is(err, ErrInvalidSelector) {
			t.Errorf("bad selector: %v", err)
		}
		send(t, s, Queue("Q"), "a", "b", "c")
		b := must(s.CreateBrowser(Queue("Q"), ""))(t)
		for range 2 {
			var seen []string
			for m, err := range b.Messages(t.Context()) {
				ok(t, err)
				seen = append(seen, m.Text())
			}
			if !slices.Equal(seen, []string{"a", "b", "c"}) {
				t.Errorf("browsed %v", seen)
			}
		}
		ok(t, c.Close())
	})
}

func TestDurableSubscriptions(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		f := factory(t, r, "tcp://room?jms.clientID=billing")
		c := connect(t, f)
		s := session(t, c, AutoAcknowledge)
		k := must(s.CreateDurableSubscriber(t.Context(), Topic("T"), "sub"))(t)
		ok(t, k.Close())
		send(t, s, Topic("T"), "while away")
		k = must(s.CreateDurableSubscriber(t.Context(), Topic("T"), "sub"))(t)
		if got := texts(t, k, time.Second); !slices.Equal(got, []string{"while away"}) {
			t.Errorf("got %v", got)
		}
		if err := s.Unsubscribe(t.Context(), "sub"); err == nil {
			t.Error("unsubscribe while in use succeeds")
		}
		ok(t, k.Close())
		ok(t, s.Unsubscribe(t.Context(), "sub"))
		if err := s.Unsubscribe(t.Context(), "sub"); !errors.Is(err, ErrInvalidDestination) {
			t.Errorf("twice: %v", err)
		}
		if _, err := f.CreateConnection(t.Context()); !errors.Is(err, ErrInvalidClientID) {
			t.Errorf("a second connection of the client id: %v", err)
		}
		ok(t, c.Close())
	})
}

func TestRequestAndReply(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		asker, server := connect(t, factory(t, r, "tcp://room")), connect(t, factory(t, r, "tcp://room"))
		as, ss := session(t, asker, AutoAcknowledge), session(t, server, AutoAcknowledge)
		requests := must(ss.CreateConsumer(t.Context(), Queue("REQ")))(t)
		answers := must(ss.CreateProducer(t.Context(), Destination{}))(t)
		ok(t, requests.Handle(func(ctx context.Context, m *Message) error {
			return answers.Send(ctx, &Message{Body: Text("re: " + m.Text()), CorrelationID: m.ID}, To(m.ReplyTo))
		}))
		reply := must(as.CreateTemporaryQueue(t.Context()))(t)
		k := must(as.CreateConsumer(t.Context(), reply))(t)
		p := must(as.CreateProducer(t.Context(), Queue("REQ")))(t)
		q := &Message{Body: Text("hello"), ReplyTo: reply}
		ok(t, p.Send(t.Context(), q))
		if m := must(k.Receive(t.Context()))(t); m.Text() != "re: hello" || m.CorrelationID != q.ID {
			t.Errorf("got %+v", m)
		}
		if _, err := ss.CreateConsumer(t.Context(), reply); !errors.Is(err, ErrInvalidDestination) {
			t.Errorf("a foreign temporary queue can be consumed: %v", err)
		}
		ok(t, k.Close())
		ok(t, asker.DeleteTemporary(t.Context(), reply))
		rest(time.Second) // the advisory
		if err := answers.Send(t.Context(), NewText("late"), To(reply)); !errors.Is(err, ErrInvalidDestination) {
			t.Errorf("sent to a temporary queue that has gone: %v", err)
		}
		ok(t, asker.Close())
		ok(t, server.Close())
	})
}

func TestIdleConnectionLives(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		c := connect(t, factory(t, r, "tcp://room"))
		s := session(t, c, AutoAcknowledge)
		rest(time.Hour)
		send(t, s, Queue("A"), "still here")
		ok(t, c.Close())
		if r.Dials() != 1 {
			t.Errorf("%d connections", r.Dials())
		}
	})
}

func TestLostConnectionIsTold(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, "tcp://room"))
		told := make(chan error, 1)
		c.OnException(func(err error) { told <- err })
		s := session(t, c, AutoAcknowledge)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		received := make(chan error, 1)
		go func() {
			_, err := k.Receive(context.Background())
			received <- err
		}()
		rest(time.Second)
		r.Cut()
		if err := <-told; !errors.Is(err, ErrUnavailable) {
			t.Errorf("exception listener: %v", err)
		}
		if err := <-received; !errors.Is(err, ErrUnavailable) {
			t.Errorf("receive: %v", err)
		}
		if _, err := c.CreateSession(AutoAcknowledge); !errors.Is(err, ErrUnavailable) {
			t.Errorf("create session: %v", err)
		}
		ok(t, c.Close())
	})
}
