package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

func fourInMemory(set func(*Options)) func(*Options) {
	return func(o *Options) {
		o.Limits.WindowEntries = 4
		if set != nil {
			set(o)
		}
	}
}

// failSome fails messages i to n-1 of n that a consumer is handed, and gives the rest
// back unread.
// It returns when the last one failed.
func (h *house) failSome(i, n int) (failed time.Time) {
	h.t.Helper()
	c := h.client()
	for _, s := range bodies(n) {
		c.must(c.send(c.msg(orders, s), ""))
	}
	k := c.consume(orders)
	time.Sleep(time.Second) // for all pages
	for _, d := range c.take()[i:] {
		c.failAsJava(k, d)
	}
	failed = time.Now()
	c.c.Close(message.Closed, "", -1)
	return failed
}

func TestDelaysDeepInTheStoreEndAtTheirTime(t *testing.T) { // issue 3.3: exact, and they survive restarts, at any depth
	for name, stop := range map[string]func(h *house){"restart": (*house).restart, "power cut": (*house).kill} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, fourInMemory(policed(3, time.Minute, time.Minute, 0)), func(h *house) {
				begin := h.failSome(40, 50)
				stop(h)
				c := h.client()
				c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 3 })
				want(t, "what waits", c.take(), "m0", "m1", "m2")
				c.c.Close(message.Closed, "", -1)
				time.Sleep(time.Until(begin.Add(time.Minute + 5*time.Second)))
				c = h.client()
				c.consume(orders)
				got := c.take()
				all := []string{"m0", "m1", "m2"} // given back before
				for i := 40; i < 50; i++ {
					all = append(all, fmt.Sprintf("m%d*1?", i))
				}
				want(t, "what is due, before what waits", got[:13], all...)
				want(t, "the rest", got[13:], bodies(40)[3:]...)
				if got[3].Delay != 60_000 {
					t.Errorf("redeliveryDelay %d", got[0].Delay)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestDelayDeepInTheStoreIsNotLate(t *testing.T) {
	inHouse(t, fourInMemory(policed(3, time.Minute, time.Minute, 0)), func(h *house) {
		begin := h.failSome(40, 41)
		h.kill()
		c := h.client()
		c.consume(orders, func(s *ConsumerSpec) { s.Selector = "JMSPriority > 4" }) // nothing of what waits is for it
		want(t, "nothing yet", c.take())
		k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 40 })
		c.take()
		c.closeConsumer(k, Delivery{})
		other := h.client()
		other.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 41 })
		if n := len(other.take()); n != 40 {
			t.Errorf("%d wait, want 40", n)
		}
		got, _ := other.within(2 * time.Minute)
		want(t, "in time", got, "m40*1?")
		late(t, "m40", time.Since(begin), time.Minute)
		other.c.Close(message.Closed, "", -1)
		c.c.Close(message.Closed, "", -1)
	})
}

func TestDueWhileTheBrokerWasDown(t *testing.T) { // more than fit into the window
	inHouse(t, fourInMemory(policed(3, time.Minute, time.Minute, 0)), func(h *house) {
		h.failSome(20, 50)
		h.stop()
		time.Sleep(time.Hour)
		h.open()
		c := h.client()
		c.consume(orders)
		got := c.take()
		for i, d := range got {
			if want := (20 + i) % 50; string(d.Message.Body) != fmt.Sprintf("m%d", want) {
				t.Fatalf("message %d is %s, want m%d", i, d.Message.Body, want)
			}
		}
		if len(got) != 50 {
			t.Errorf("%d came", len(got))
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestVeryManyDueWhileTheBrokerWasDown(t *testing.T) { // not all are read before someone wants them
	inHouse(t, fourInMemory(policed(3, time.Minute, time.Minute, 0)), func(h *house) {
		const n = 2500
		h.failSome(0, n)
		h.stop()
		time.Sleep(time.Hour)
		h.open()
		time.Sleep(time.Minute)
		if st := h.broker.Queues()[0].Stats; st.Scheduled+st.Waiting != n {
			t.Errorf("%+v", st)
		}
		c := h.client()
		k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 7 })
		for i := 0; i < n; {
			got := c.take()
			if len(got) == 0 {
				t.Fatalf("%d came, want %d", i, n)
			}
			for _, d := range got {
				if want := fmt.Sprintf("m%d", i); string(d.Message.Body) != want {
					t.Fatalf("%s comes where %s should", d.Message.Body, want)
				}
				i++
			}
			c.must(c.ack(queue.Standard, k, got[0], got[len(got)-1], len(got), ""))
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestExpiryDeepInTheStoreIsInTime(t *testing.T) { // 4.6: while waiting, at its time, behind the window
	for name, stop := range map[string]func(h *house){"running": func(*house) {}, "restarted": (*house).kill} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, fourInMemory(nil), func(h *house) {
				c := h.client()
				begin := time.Now()
				for i, s := range bodies(50) {
					var set []func(*message.Message)
					if i%10 == 9 { // m9 expires last, m49 first
						set = append(set, expiring(time.Until(begin.Add(time.Duration(60-i)*time.Second))))
					}
					c.must(c.send(c.msg(orders, s, set...), ""))
				}
				stop(h)
				c = h.client()
				c.consume(dlq)
				for i := 49; i > 0; i -= 10 {
					got, _ := c.within(time.Minute)
					want(t, "expired", got, fmt.Sprintf("m%d", i))
					late(t, fmt.Sprintf("m%d", i), time.Since(begin), time.Duration(60-i)*time.Second)
				}
				if n := h.depth(orders.Name); n != 45 {
					t.Errorf("%d are left, want 45", n)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestExpiredWhileTheBrokerWasDown(t *testing.T) {
	inHouse(t, fourInMemory(nil), func(h *house) {
		c := h.client()
		for _, s := range bodies(3000) {
			c.must(c.send(c.msg(orders, s, expiring(time.Minute)), ""))
		}
		h.stop()
		time.Sleep(time.Hour)
		h.open()
		time.Sleep(time.Second)
		if n, dead := h.depth(orders.Name), h.depth(dlq.Name); n != 0 || dead != 3000 {
			t.Errorf("%d left and %d dead letters, want 3000", n, dead)
		}
	})
}

func TestBrowsingSeesWhatIsAheadOfTheWindow(t *testing.T) {
	inHouse(t, fourInMemory(policed(3, time.Minute, time.Minute, 0)), func(h *house) {
		h.failSome(40, 50)
		h.kill()
		time.Sleep(59*time.Second + 500*time.Millisecond) // they are in memory by now, and not due
		var at Cursor
		var got []string
		for !at.End {
			page, next, err := h.broker.Look(h.t.Context(), At(orders), at, 7)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page {
				m, err := h.broker.Read(&page[i])
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(m.Body)+" "+page[i].State)
			}
			at = next
		}
		for i, s := range got {
			want := fmt.Sprintf("m%d waiting", i)
			if i >= 40 {
				want = fmt.Sprintf("m%d scheduled", i)
			}
			if s != want {
				t.Errorf("%q, want %q", s, want)
			}
		}
		o, err := h.broker.Purge(h.t.Context(), At(orders), Selection{})
		if o.Taken != 50 || err != nil || h.depth(orders.Name) != 0 { // C07: pending retries too
			t.Errorf("purged %+v, %v", o, err)
		}
		n := 0
		if err := h.shard.Scan([]byte{'d'}, []byte{'f'}, func(_, _ []byte) bool { n++; return true }); n != 0 || err != nil {
			t.Errorf("%d entries and counts are left, %v", n, err)
		}
		if err := h.shard.Scan([]byte{'s'}, []byte{'t'}, func(_, _ []byte) bool { n++; return true }); n != 0 || err != nil {
			t.Errorf("%d due times are left, %v", n, err)
		}
	})
}

func TestManyThatWaitForTheirTimeAreAway(t *testing.T) { // in the store alone, and not forgotten there
	few := func(o *Options) {
		fourInMemory(policed(3, time.Minute, time.Minute, 0))(o)
		o.Limits.ScheduledEntries = 5
	}
	inHouse(t, few, func(h *house) {
		begin := h.failSome(10, 60) // m10 to m59 wait
		d := h.broker.known(orders)
		away := make(chan int, 1)
		if err := d.do(h.t.Context(), func() { away <- d.machine.Away(5) }); err != nil {
			t.Fatal(err)
		}
		if n := <-away; n != 45 {
			t.Errorf("%d are away, want 45", n)
		}
		look := func(n int) (all []string) {
			t.Helper()
			var at Cursor
			for !at.End {
				page, next, err := h.broker.Look(h.t.Context(), At(orders), at, n)
				if err != nil {
					t.Fatal(err)
				}
				for i := range page {
					m, err := h.broker.Read(&page[i])
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, string(m.Body))
				}
				at = next
			}
			return all
		}
		for _, n := range []int{1, 7, 100} {
			if diff := cmp.Diff(bodies(60), look(n)); diff != "" {
				t.Errorf("by %d (-want +got):\n%s", n, diff)
			}
		}
		if st := h.broker.Queues()[0]; st.Stats.Scheduled != 50 || st.Messages != 60 {
			t.Errorf("%+v", st)
		}
		o, err := h.broker.Purge(h.t.Context(), At(orders), Selection{Selector: "", Max: 30})
		if o.Taken != 30 || err != nil {
			t.Errorf("purge: %+v, %v", o, err)
		}
		if diff := cmp.Diff(bodies(60)[30:], look(7)); diff != "" {
			t.Errorf("after the purge (-want +got):\n%s", diff)
		}
		c := h.client()
		c.consume(orders)
		got, _ := c.within(2 * time.Minute)
		if after := time.Since(begin); after < 59*time.Second || after > time.Minute {
			t.Errorf("the first after %v", after)
		}
		time.Sleep(time.Second)
		got = append(got, c.take()...)
		for i, d := range got {
			if want := fmt.Sprintf("m%d", 30+i); string(d.Message.Body) != want || d.Counter != 1 || d.Delay != 60_000 {
				t.Errorf("%s, counter %d, delay %d; want %s", d.Message.Body, d.Counter, d.Delay, want)
			}
		}
		if len(got) != 30 {
			t.Errorf("%d came, want 30", len(got))
		}
		c.c.Close(message.Closed, "", -1)
	})
}
