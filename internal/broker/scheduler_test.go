package broker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/selector"
	"github.com/nixiemq/nixie/internal/store/errstore"
)

// withProperties lets the broker see what the tests put into Message.Added as what a
// producer has set.
func withProperties(o *Options) {
	o.Properties = func(m *message.Message, name string) (selector.Value, bool) {
		switch v := m.Added[name].(type) {
		case string:
			return selector.StringValue(v), true
		case int64:
			return selector.IntValue(v), true
		}
		return selector.Value{}, false
	}
}

// at schedules a message.
func at(s message.Schedule) func(*message.Message) {
	return func(m *message.Message) { m.Schedule = &s }
}

func in(d time.Duration) func(*message.Message) { return at(message.Schedule{Delay: d.Milliseconds()}) }

// arrivals waits so long and tells what came when, in whole milliseconds since begin.
func (c *client) arrivals(consumer string, begin time.Time, limit time.Duration) []string {
	c.h.t.Helper()
	var all []string
	for end := time.Now().Add(limit); time.Now().Before(end); {
		got, _ := c.within(time.Until(end))
		for _, d := range got {
			all = append(all, fmt.Sprintf("%s %v", d.Message.Body, time.Since(begin).Truncate(100*time.Millisecond)))
			c.must(c.ack(queue.Standard, consumer, d, d, 1, ""))
		}
	}
	return all
}

func wantArrivals(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arrivals (-want +got):\n%s", diff)
	}
}

func TestC06ScheduledMessagesComeInTheOrderOfTheirTimes(t *testing.T) { // part 1
	inHouse(t, nil, func(h *house) {
		c := h.client()
		k := c.consume(orders)
		begin := time.Now()
		for _, d := range []time.Duration{8, 3, 5} {
			c.must(c.send(c.msg(orders, fmt.Sprintf("m%d", d), in(d*time.Second)), ""))
		}
		wantArrivals(t, c.arrivals(k, begin, 10*time.Second), "m3 3s", "m5 5s", "m8 8s")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestScheduledMessageAsItIsDelivered(t *testing.T) { // R-SCH-12, R-SCH-13, C08
	inHouse(t, nil, func(h *house) {
		c := h.client()
		k := c.consume(orders)
		m := c.msg(orders, "m", in(time.Minute), expiring(10*time.Second))
		m.Schedule.Properties, m.Properties = []byte{1}, []byte{1, 2}
		m.Added = map[string]any{ScheduledJobID: "left over"} // C08: of an earlier delay
		c.must(c.send(m, ""))
		got, after := c.within(2 * time.Minute)
		want(t, "once", got, "m")
		late(t, "m", after, time.Minute-tick)
		d := got[0].Message
		if d.ID != m.ID || d.Added[ScheduledJobID] != m.ID.String() || string(d.Properties) != "\x01" {
			t.Errorf("%+v", d)
		}
		if now := time.Now().UnixMilli(); d.Expiration-d.Timestamp != m.Expiration-m.Timestamp || now-d.Timestamp > 100 || d.BrokerInTime != d.Timestamp {
			t.Errorf("sent at %d, expires at %d, now %d", d.Timestamp, d.Expiration, now)
		}
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		if _, n, err := h.broker.Scheduled(ScheduledCursor{}, 1); n != 0 || err != nil {
			t.Errorf("%d jobs are left, %v", n, err)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestRepeatsAndCronLines(t *testing.T) { // R-SCH-10, R-SCH-11
	for name, tt := range map[string]struct {
		s     message.Schedule
		limit time.Duration
		want  []string
	}{
		"a period alone": {message.Schedule{Period: 2000}, 10 * time.Second, []string{"m 2s"}},
		"delay, period, repeat": {message.Schedule{Delay: 1000, Period: 2000, Repeat: 2}, 20 * time.Second,
			[]string{"m 1s", "m 3s", "m 5s"}},
		"cron": {message.Schedule{Cron: "*/2 * * * *"}, 5 * time.Minute, []string{"m 2m0s", "m 4m0s"}},
		"cron with repeats": {message.Schedule{Cron: "*/2 * * * *", Delay: 1000, Period: 500, Repeat: 1}, 5 * time.Minute,
			[]string{"m 2m1s", "m 2m1.5s", "m 4m1s", "m 4m1.5s"}},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, nil, func(h *house) {
				c := h.client()
				c.consume(orders)
				c.must(c.send(c.msg(orders, "m", at(tt.s)), ""))
				begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of the bubble
				ids := map[message.ID]bool{}
				var all []string
				for time.Since(begin) < tt.limit {
					got, _ := c.within(tt.limit - time.Since(begin))
					for _, d := range got {
						all = append(all, fmt.Sprintf("%s %v", d.Message.Body, time.Since(begin).Truncate(100*time.Millisecond)))
						ids[d.Message.ID] = true
					}
				}
				wantArrivals(t, all, tt.want...)
				if len(ids) != len(all) {
					t.Errorf("%d ids for %d messages", len(ids), len(all))
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestScheduleSurvivesThePowerCut(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c := h.client()
		begin := time.Now()
		for i, d := range []time.Duration{2, 20, 40} {
			c.must(c.send(c.msg(orders, fmt.Sprintf("m%d", i), in(d*time.Second), func(m *message.Message) { m.Persistent = i > 0 }), ""))
		}
		c.must(c.send(c.msg(orders, "r", at(message.Schedule{Period: 15_000, Repeat: 2})), ""))
		time.Sleep(time.Second)
		h.kill()
		c = h.client()
		k := c.consume(orders)
		got := c.arrivals(k, begin, 20*time.Second)
		h.kill()
		c = h.client()
		k = c.consume(orders)
		got = append(got, c.arrivals(k, begin, time.Minute)...)
		wantArrivals(t, got, "m0 2s", "r 15s", "m1 20s", "r 30s", "m2 40s", "r 45s")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestOverdueJobsFireAtTheStart(t *testing.T) { // R-PLG-50
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "late", in(time.Second)), ""))
		c.must(c.send(c.msg(orders, "r", at(message.Schedule{Period: 10_000, Repeat: 2})), ""))
		begin := time.Now()
		h.stop()
		time.Sleep(25 * time.Second)
		h.open()
		c = h.client()
		k := c.consume(orders)
		wantArrivals(t, c.arrivals(k, begin, time.Minute), "late 25s", "r 25s", "r 30s", "r 40s")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestScheduledInATransaction(t *testing.T) { // R-SCH-03
	inHouse(t, func(o *Options) { o.Limits.TransactionBytes = 4000 }, func(h *house) {
		c := h.client()
		k := c.consume(orders)
		c.must(c.c.Begin("TX:1"))
		c.must(c.send(c.msg(orders, "small", in(2*time.Second)), "TX:1"))
		large := string(make([]byte, 5000))
		c.must(c.send(c.msg(orders, large, in(time.Second)), "TX:1")) // staged
		c.must(c.send(c.msg(orders, "now"), "TX:1"))
		time.Sleep(5 * time.Second)
		want(t, "before the commit", c.take())
		c.must(c.settle(c.c.Commit, "TX:1"))
		begin := time.Now()
		wantArrivals(t, c.arrivals(k, begin, 5*time.Second), "now 0s", large+" 1s", "small 2s")
		c.must(c.c.Begin("TX:2"))
		c.must(c.send(c.msg(orders, large, in(time.Second)), "TX:2"))
		c.must(c.send(c.msg(orders, "never", in(time.Second)), "TX:2"))
		c.must(c.settle(c.c.Rollback, "TX:2"))
		wantArrivals(t, c.arrivals(k, begin, 5*time.Second))
		if _, n, _ := h.broker.Scheduled(ScheduledCursor{}, 1); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestScheduledForATopicAndSeveralQueues(t *testing.T) { // routed when it is due
	inHouse(t, nil, func(h *house) {
		c := h.client()
		feed := message.Destination{Kind: message.Topic, Name: "FEED"}
		c.must(c.send(c.msg(feed, "t", in(time.Second)), ""))
		c.must(c.send(c.msg(message.Destination{Kind: message.Queue, Name: "A,B"}, "q", in(2*time.Second)), ""))
		c.must(c.send(c.msg(message.Destination{Kind: message.TempQueue, Name: "gone"}, "x", in(time.Second)), ""))
		time.Sleep(500 * time.Millisecond)
		c.consume(feed)
		c.consume(queueNamed("A,B"))
		got, _ := c.within(3 * time.Second)
		want(t, "topic", got, "t")
		time.Sleep(3 * time.Second)
		want(t, "queues", c.take(), "q", "q")
		if n := h.broker.CountedBy(Discarded)["scheduled for a destination that is gone"]; n != 1 {
			t.Errorf("%d counted as gone with their destination", n)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestSentOnceMoreIsScheduledOnce(t *testing.T) { // C21, after a fail-over
	inHouse(t, nil, func(h *house) {
		c := h.client()
		m := c.msg(orders, "m", in(time.Second))
		c.must(c.send(m, ""))
		c.must(c.send(m, ""))
		later := c.msg(orders, "later")
		c.must(c.send(later, "")) // its sequence is higher, and it is stored first
		k := c.consume(orders)
		wantArrivals(t, c.arrivals(k, time.Now(), 5*time.Second), "later 0s", "m 1s")
		h.kill()
		c = h.client()
		c.must(c.send(later, ""))
		c.consume(orders)
		want(t, "resent", c.take())
		if n := h.broker.Counted(Suppressed); n != 1 {
			t.Errorf("%d suppressed, want the one sent again after the power cut", n)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// A client that comes back sends what it had no answer for once more: also where it was
// scheduled, and its time has come since.
func TestSentOnceMoreAfterItsTimeIsNotScheduledAgain(t *testing.T) { // C21, after a fail-over
	feed := topicNamed("FEED")
	for name, to := range map[string]message.Destination{"queue": orders, "topic": feed, "both": queueNamed("ORDERS,topic://FEED")} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, nil, func(h *house) {
				c := h.client()
				c.must(c.settleConsumer(c.consume(feed, func(s *ConsumerSpec) { s.Subscription = "s" })))
				m, next := c.msg(to, "m", in(time.Second)), c.msg(to, "next", in(time.Second))
				c.must(c.send(m, ""))
				time.Sleep(5 * time.Second)
				h.kill()
				conn, err := h.broker.Connect(h.t.Context(), ClientInfo{ID: c.id, ClientID: c.id, Reconnect: true, Kick: func(error) {}}, c)
				c.must(err)
				c.c = conn
				c.must(c.settleConsumer(c.consume(feed, func(s *ConsumerSpec) { s.Subscription = "late" }))) // is to have the next alone
				c.must(c.send(m, ""))
				c.must(c.send(next, ""))
				time.Sleep(5 * time.Second)
				for _, q := range h.broker.Queues() {
					if q.Messages != 2 {
						t.Errorf("%s has %d messages, want each once", q.Name, q.Messages)
					}
				}
				for _, s := range h.broker.Subscriptions() {
					if want := map[string]int64{"s": 2, "late": 1}[s.Subscription]; to != orders && s.Messages != want {
						t.Errorf("the subscription %s has %d messages, want %d", s.Subscription, s.Messages, want)
					}
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

// A client may repeat itself at once, before the store has the first.
func TestSentTwiceAtOnceIsScheduledOnce(t *testing.T) { // C21, after a fail-over
	inHouse(t, nil, func(h *house) {
		c := h.client()
		m := c.msg(orders, "m", in(time.Second))
		for range 5 { // the store is busy
			c.begin(c.msg(orders, "other", in(time.Hour), func(m *message.Message) { m.ID.Producer = c.id + ":1:2" }))
		}
		first, second := c.begin(m), c.begin(m)
		first.went(t, "the first")
		second.went(t, "the second")
		time.Sleep(5 * time.Second)
		if got := h.all(At(orders)); len(got) != 1 {
			t.Errorf("the queue has %q, want it once", got)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// Who does not wait for the scheduler any more leaves it what it is at. (The race
// detector looks at this.)
func TestSendThatGivesUpTheScheduler(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		conn, err := h.broker.Connect(h.t.Context(), ClientInfo{ID: "ID:back", Reconnect: true, Kick: func(error) {}}, &client{h: h})
		if err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		h.broker.scheduler.box.force(work{do: func() { <-hold }})
		ctx, cancel := context.WithCancel(h.t.Context())
		answered := make(chan error, 1)
		c := &client{h: h, c: conn, id: "ID:back"}
		go conn.Send(ctx, c.msg(orders, "m", in(time.Second)), "", func(err error) { answered <- err })
		synctest.Wait()
		cancel()
		if err := <-answered; !errors.Is(err, context.Canceled) {
			t.Errorf("the send ended with %v", err)
		}
		close(hold)
		synctest.Wait()
		conn.Close(message.Closed, "", -1)
	})
}

// So it is while what was scheduled is on its way to its queue: its job has gone, and the
// queue does not have it yet.
func TestSentOnceMoreWhileItIsSentOnIsNotScheduledAgain(t *testing.T) { // C21, after a fail-over
	inHouse(t, nil, func(h *house) {
		h.stop()
		h.faults = errstore.Wrap(h.store)
		h.open()
		c := h.client()
		m := c.msg(orders, "m", in(time.Second))
		c.must(c.send(m, ""))
		c.c.Close(message.ConnectionLost, "", queue.UnknownLast)
		hold := make(chan struct{})
		h.faults.Fail(1, errstore.Fault{Hold: hold})
		time.Sleep(2 * time.Second)
		conn, err := h.broker.Connect(h.t.Context(), ClientInfo{ID: c.id, ClientID: c.id, Reconnect: true, Kick: func(error) {}}, c)
		c.must(err)
		c.c = conn
		answered := make(chan error, 1)
		go c.c.Send(h.t.Context(), m, "", func(err error) { answered <- err })
		synctest.Wait()
		close(hold)
		c.must(<-answered)
		time.Sleep(5 * time.Second)
		if got := h.all(At(orders)); len(got) != 1 {
			t.Errorf("the queue has %q, want it once", got)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestScheduleThatCannotBeKeptIsRefused(t *testing.T) {
	inHouse(t, func(o *Options) { o.MaxRepeat = 3 }, func(h *house) {
		c := h.client()
		for name, tt := range map[string]struct {
			s    message.Schedule
			kind error
		}{
			"too many repeats": {message.Schedule{Period: 1, Repeat: 4}, message.ErrOverLimit},
			"no cron line":     {message.Schedule{Cron: "60 * * * *"}, message.ErrInvalid},
		} {
			for _, tx := range []string{"", "TX:1"} {
				c.must(c.c.Begin("TX:1"))
				if err := c.send(c.msg(orders, "m", at(tt.s)), tx); !errors.Is(err, ErrSchedule) || !errors.Is(err, tt.kind) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestWithoutSchedulerItGoesAtOnce(t *testing.T) { // R-SCH-01
	inHouse(t, func(o *Options) { o.NoScheduler = true }, func(h *house) {
		c := h.client()
		c.consume(orders)
		m := c.msg(orders, "m", in(time.Hour))
		m.Properties = []byte("kept")
		c.must(c.send(m, ""))
		got := c.take()
		want(t, "at once", got, "m")
		if string(got[0].Message.Properties) != "kept" {
			t.Errorf("properties %q", got[0].Message.Properties)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestSchedulerManagement(t *testing.T) { // R-SCH-20
	inHouse(t, withProperties, func(h *house) {
		c := h.client()
		reply := message.Destination{Kind: message.TempQueue, Name: "reply"}
		c.must(c.c.AddDestination(h.t.Context(), reply))
		c.consume(reply)
		begin := time.Now()
		ids := map[string]string{}
		for i := range 5 {
			m := c.msg(orders, fmt.Sprintf("m%d", i), in(time.Duration(i+1)*time.Hour))
			ids[fmt.Sprintf("m%d", i)] = m.ID.String()
			c.must(c.send(m, ""))
		}
		c.must(c.send(c.msg(orders, "r", at(message.Schedule{Delay: 1, Period: 86_400_000, Repeat: 7, Cron: "0 0 1 1 *"})), ""))
		ask := func(properties map[string]any, tx string) error {
			to := message.Destination{Kind: message.Topic, Name: "activemq.SCHEDULER.management"}
			return c.send(c.msg(to, "", func(m *message.Message) { m.ReplyTo, m.Persistent, m.Added = reply, false, properties }), tx)
		}
		c.must(ask(map[string]any{"AMQ_SCHEDULER_ACTION": "BROWSE"}, ""))
		got := c.take()
		want(t, "browse", got, "m0", "m1", "m2", "m3", "m4", "r")
		m := got[1].Message
		if m.Added[ScheduledJobID] != ids["m1"] || m.Added[ScheduleDelay] != int64(7_200_000) || m.OriginalDestination != orders || m.Persistent || m.Type != "Advisory" {
			t.Errorf("browsed: %+v", m)
		}
		if m := got[5].Message; m.Added[ScheduleRepeat] != int64(7) || m.Added[ScheduleCron] != "0 0 1 1 *" || m.Added[SchedulePeriod] != int64(86_400_000) {
			t.Errorf("browsed: %+v", m)
		}
		between := map[string]any{"AMQ_SCHEDULER_ACTION": "BROWSE", "ACTION_START_TIME": begin.Add(90 * time.Minute).UnixMilli(),
			"ACTION_END_TIME": begin.Add(200 * time.Minute).UnixMilli()}
		c.must(ask(between, ""))
		want(t, "browse between", c.take(), "m1", "m2")
		c.must(ask(map[string]any{"AMQ_SCHEDULER_ACTION": "REMOVE", ScheduledJobID: ids["m3"]}, ""))
		c.must(ask(map[string]any{"AMQ_SCHEDULER_ACTION": "REMOVE", ScheduledJobID: "nobody's"}, ""))
		between["AMQ_SCHEDULER_ACTION"] = "REMOVEALL"
		c.must(c.c.Begin("TX:1"))
		c.must(ask(between, "TX:1"))
		c.must(ask(map[string]any{"AMQ_SCHEDULER_ACTION": "BROWSE"}, ""))
		want(t, "before the commit", c.take(), "m0", "m1", "m2", "m4", "r")
		c.must(c.settle(c.c.Commit, "TX:1"))
		c.must(ask(map[string]any{"AMQ_SCHEDULER_ACTION": "BROWSE"}, ""))
		want(t, "after it", c.take(), "m0", "m4", "r")
		page, n, err := h.broker.Scheduled(ScheduledCursor{}, 2)
		c.must(err)
		if n != 3 || len(page) != 2 || page[1].ID != ids["m4"] || string(page[1].Message.Body) != "m4" {
			t.Errorf("%d in all, page %+v", n, page)
		}
		c.must(h.broker.RemoveScheduled(h.t.Context(), ids["m4"]))
		if err := h.broker.RemoveScheduled(h.t.Context(), ids["m4"]); !errors.Is(err, message.ErrNotFound) {
			t.Errorf("removed twice: %v", err)
		}
		c.must(ask(map[string]any{"AMQ_SCHEDULER_ACTION": "REMOVEALL"}, ""))
		c.consume(orders)
		time.Sleep(10 * time.Hour)
		want(t, "nothing is left to come", c.take())
		for name, bad := range map[string]map[string]any{
			"no action":      {},
			"unknown action": {"AMQ_SCHEDULER_ACTION": "PAUSE"},
			"no job":         {"AMQ_SCHEDULER_ACTION": "REMOVE"},
			"no time":        {"AMQ_SCHEDULER_ACTION": "REMOVEALL", "ACTION_START_TIME": "noon"},
		} {
			if err := ask(bad, ""); !errors.Is(err, message.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestManyJobsAreInMemoryOnlyWhenTheyAreNear(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c := h.client()
		const n, apart = maxNear + 2001, 40 * time.Millisecond
		done := make(chan error, n)
		for i := range n { // in disorder; the sends take less time than what is between two
			due := time.Hour + time.Duration(i*7919%n)*apart
			c.c.Send(h.t.Context(), c.msg(orders, fmt.Sprint(i*7919%n), in(due)), "", func(err error) { done <- err })
		}
		for range n {
			c.must(<-done)
		}
		near := make(chan int, 1)
		h.broker.scheduler.box.force(work{do: func() { near <- len(h.broker.scheduler.near) }})
		if k := <-near; k > maxNear {
			t.Errorf("%d of %d are in memory", k, n)
		}
		start := time.Now()
		k := c.consume(orders)
		next := 0
		for next < n && time.Since(start) < 2*time.Hour {
			got, _ := c.within(2 * time.Hour)
			for _, d := range got {
				if string(d.Message.Body) != fmt.Sprint(next) {
					t.Fatalf("%s comes where %d should", d.Message.Body, next)
				}
				next++
			}
			c.must(c.ack(queue.Standard, k, got[0], got[len(got)-1], len(got), ""))
		}
		if end := time.Since(start); next != n || end > time.Hour+n*apart+time.Second {
			t.Errorf("%d came, the last after %v", next, end)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// A time is kept whenever the transaction is committed in which it comes; one that has
// passed by then is now.
func TestScheduledForATime(t *testing.T) { // R-HQ-93
	due := func(when time.Time) func(*message.Message) { return at(message.Schedule{At: when.UnixMilli()}) }
	inHouse(t, func(o *Options) { o.Limits.TransactionBytes = 4000 }, func(h *house) {
		c := h.client()
		k := c.consume(orders)
		begin := time.Now()
		large := string(make([]byte, 5000))
		c.must(c.send(c.msg(orders, "alone", due(begin.Add(3*time.Second))), ""))
		c.must(c.c.Begin("TX:1"))
		c.must(c.send(c.msg(orders, "in time", due(begin.Add(4*time.Second))), "TX:1"))
		c.must(c.send(c.msg(orders, large, due(begin.Add(5*time.Second))), "TX:1")) // staged
		c.must(c.send(c.msg(orders, "too late", due(begin.Add(time.Second))), "TX:1"))
		time.Sleep(2 * time.Second)
		want(t, "before the commit", c.take())
		c.must(c.settle(c.c.Commit, "TX:1"))
		wantArrivals(t, c.arrivals(k, begin, 8*time.Second), "too late 2s", "alone 3s", "in time 4s", large+" 5s")
		c.c.Close(message.Closed, "", -1)
	})
}
