package jolokia

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// destination is the bean of a queue or topic (section 8.3); nil where it is gone.
func (l *look) destination(n name, d message.Destination) *bean {
	if d.IsTopic() {
		return l.topic(n, d)
	}
	st, ok := l.b.Status(d)
	if !ok {
		return nil
	}
	q := &st.Stats
	limit := st.Limit
	if limit == nil {
		limit = &broker.LimitStatus{}
	}
	b := &bean{name: n, class: "org.apache.activemq.broker.jmx.QueueView", attributes: append([]attribute{
		value("Name", typString, d.Name), value("Paused", typBool, st.Paused),
		attribute{"DLQ", typBool, func() (any, error) { return l.deadLetterQueues()[d], nil }},
		l.subscriptions(d), l.groups(d),
		value("MemoryPercentUsage", typInt, percent(uint64(limit.Bytes), uint64(limit.Flow.MaxBytes))),
		value("AverageBlockedTime", "double", milliseconds(limit)),
	}, counts("QueueSize", st.Messages, "EnqueueCount", q.Enqueued, "DequeueCount", q.Dequeued, "DispatchCount", q.Dispatched,
		"InFlightCount", q.Out, "ExpiredCount", q.Expired, "ForwardCount", 0, "DuplicateFromStoreCount", 0,
		"ConsumerCount", q.Consumers, "ProducerCount", l.b.Producers(d),
		"MemoryLimit", limit.Flow.MaxBytes, "MemoryUsageByteCount", limit.Bytes, "StoreMessageSize", st.Bytes,
		"AverageMessageSize", average(q.Bytes, st.Messages), "BlockedSends", limit.Waits, "TotalBlockedTime", limit.Waited.Milliseconds())...)}
	b.operations = append(l.looking(d), l.moving(d)...)
	b.operations = append(b.operations, l.managing(d)...)
	b.operations = append(b.operations, l.sending(d)...)
	return b
}

func milliseconds(l *broker.LimitStatus) float64 {
	if l.Waits == 0 {
		return 0
	}
	return float64(l.Waited.Milliseconds()) / float64(l.Waits)
}

// subscriptions are the names of those who consume a destination.
func (l *look) subscriptions(d message.Destination) attribute {
	return attribute{"Subscriptions", typNames, func() (any, error) {
		var all []name
		for _, p := range l.b.ConsumersOpen() {
			if p.Destination == d && p.Spec.Subscription == "" {
				all = append(all, l.consumerName(&p))
			}
		}
		subscriptions := l.b.Subscriptions()
		for i := range subscriptions {
			if st := &subscriptions[i]; st.Durable && st.Name == d {
				all = append(all, l.durableName(st))
			}
		}
		return references(all), nil
	}}
}

// topic is the bean of a topic. What is sent to it is in its subscriptions, whose counts
// are added up.
func (l *look) topic(n name, d message.Destination) *bean {
	count := func(name string, of func(broker.TopicStatus) int64) attribute {
		return attribute{name, typLong, func() (any, error) { return of(l.b.Topic(d)), nil }}
	}
	return &bean{name: n, class: "org.apache.activemq.broker.jmx.TopicView", attributes: append([]attribute{
		value("Name", typString, d.Name), value("DLQ", typBool, false), l.subscriptions(d),
		count("EnqueueCount", func(st broker.TopicStatus) int64 { return st.Sent }),
		count("DequeueCount", func(st broker.TopicStatus) int64 { return st.Dequeued }),
		count("DispatchCount", func(st broker.TopicStatus) int64 { return st.Dispatched }),
		count("InFlightCount", func(st broker.TopicStatus) int64 { return st.Out }),
		count("ExpiredCount", func(st broker.TopicStatus) int64 { return st.Expired }),
	}, counts("QueueSize", 0, "ConsumerCount", l.b.Consumers(d), "ProducerCount", l.b.Producers(d))...), operations: l.sending(d)}
}

// take gives the outcome of an action on a queue as ActiveMQ's operations do: as a number,
// or for one message as whether it went.
func took(o broker.Outcome, err error, one bool) (any, error) {
	switch {
	case err != nil && o.Taken > 0:
		return nil, fmt.Errorf("after %d messages: %w", o.Taken, err)
	case err != nil:
		return nil, err
	case one && o.Taken == 0 && o.Out > 0: // R-EDGE-51
		return nil, fmt.Errorf("a consumer has the message, or an open transaction: it stays: %w", message.ErrState)
	case one:
		return o.Taken > 0, nil
	}
	return o.Taken, nil
}

// moving are the operations that take messages out of a queue, or copy them (section 5.8).
func (l *look) moving(d message.Destination) []operation {
	at := broker.At(d)
	to := func(a any) (message.Destination, error) { return message.ParseDestination(a.(string), message.Queue) }
	elsewhere := func(name string, bring func(context.Context, broker.Place, message.Destination, broker.Selection) (broker.Outcome, error)) []operation {
		run := func(one bool, what func(a []any) broker.Selection) func(context.Context, []any) (any, error) {
			return func(ctx context.Context, a []any) (any, error) {
				target, err := to(a[1])
				if err != nil {
					return nil, err
				}
				if target == d { // R-JMX-04
					return took(broker.Outcome{}, nil, one)
				}
				o, err := bring(ctx, at, target, what(a))
				return took(o, err, one)
			}
		}
		return []operation{
			{name + "MessageTo", []string{typString, typString}, typBool, run(true, byID)},
			{name + "MatchingMessagesTo", []string{typString, typString}, typInt, run(false, bySelector)},
			{name + "MatchingMessagesTo", []string{typString, typString, typInt}, typInt, run(false, func(a []any) broker.Selection { return atMost(bySelector(a), a[2]) })},
		}
	}
	purge := func(one bool, what func(a []any) broker.Selection) func(context.Context, []any) (any, error) {
		return func(ctx context.Context, a []any) (any, error) {
			o, err := l.b.Purge(ctx, at, what(a))
			return took(o, err, one)
		}
	}
	quietly := func(f func(context.Context, []any) (any, error)) func(context.Context, []any) (any, error) {
		return func(ctx context.Context, a []any) (any, error) { _, err := f(ctx, a); return nil, err }
	}
	all := func([]any) broker.Selection { return broker.Selection{} }
	return append(append(elsewhere("move", l.b.Move), elsewhere("copy", l.b.Copy)...),
		operation{"removeMessage", []string{typString}, typBool, purge(true, byID)},
		operation{"removeMatchingMessages", []string{typString}, typInt, purge(false, bySelector)},
		operation{"removeMatchingMessages", []string{typString, typInt}, typInt, purge(false, func(a []any) broker.Selection { return atMost(bySelector(a), a[1]) })},
		operation{"purge", nil, typNothing, quietly(purge(false, all))},
		operation{"purge", []string{typLong}, typNothing, quietly(purge(false, func(a []any) broker.Selection { return atMost(broker.Selection{}, a[0]) }))},
		operation{"retryMessages", nil, typInt, func(ctx context.Context, _ []any) (any, error) {
			o, err := l.redrive(ctx, at, broker.Selection{})
			return took(o, err, false)
		}},
		operation{"retryMessage", []string{typString}, typBool, func(ctx context.Context, a []any) (any, error) {
			o, err := l.redrive(ctx, at, byID(a))
			switch v, err := took(o, err, true); {
			case err != nil, o.Taken > 0:
				return v, err
			case o.Left > 0:
				return nil, fmt.Errorf("message %s has no place to go back to: it stays: %w", a[0], message.ErrState)
			}
			return nil, fmt.Errorf("no dead letter %s is in %s: %w", a[0], d, message.ErrNotFound)
		}})
}

// redrive is retryMessages, with ActiveMQ's words for a queue that is no dead letter queue.
func (l *look) redrive(ctx context.Context, at broker.Place, what broker.Selection) (broker.Outcome, error) {
	o, err := l.b.Redrive(ctx, at, what)
	if errors.Is(err, message.ErrState) && o.Taken == 0 {
		err = &fault{500, classException, "Retry of message is only possible on Dead Letter Queues!"}
	}
	return o, err
}

func byID(a []any) broker.Selection { return broker.Selection{IDs: []string{a[0].(string)}} }

func bySelector(a []any) broker.Selection { return broker.Selection{Selector: a[0].(string)} }

// atMost bounds a selection; 0 or less is no bound (R-JMX-07).
func atMost(s broker.Selection, n any) broker.Selection {
	s.Max = int(max(n.(int64), 0))
	return s
}

// groups are the owners of a queue's message groups.
func (l *look) groups(d message.Destination) attribute {
	return attribute{"MessageGroups", typMap, func() (any, error) {
		owners := map[string]string{}
		if l.o.MayRead(l.r, broker.At(d)) != nil { // their names are of its messages
			return owners, nil
		}
		all, err := l.b.Groups(l.r.Context(), d)
		for _, g := range all {
			owners[g.Group] = g.Consumer
		}
		return owners, err
	}}
}

// managing are the operations on the queue as such.
func (l *look) managing(d message.Destination) []operation {
	pause := func(name string, on bool) operation {
		return operation{name, nil, typNothing, func(ctx context.Context, _ []any) (any, error) { _, err := l.b.Pause(ctx, d, on); return nil, err }}
	}
	return []operation{pause("pause", true), pause("resume", false),
		{"removeMessageGroup", []string{typString}, typNothing, func(ctx context.Context, a []any) (any, error) {
			group := a[0].(string)
			if group == "" {
				return nil, nil // there is none of that name, and not all of them
			}
			_, err := l.b.Regroup(ctx, d, group)
			return nil, err
		}},
		{"removeAllMessageGroups", nil, typNothing, func(ctx context.Context, _ []any) (any, error) {
			_, err := l.b.Regroup(ctx, d, "")
			return nil, err
		}},
		{"cursorSize", nil, typInt, func(context.Context, []any) (any, error) {
			st, _ := l.b.Status(d)
			return st.Stats.Waiting, nil
		}}}
}

// sending are the operations that send a text message; none where nobody can.
func (l *look) sending(d message.Destination) []operation {
	if l.o.Send == nil {
		return nil
	}
	send := func(headers, text int) func(context.Context, []any) (any, error) {
		return func(ctx context.Context, a []any) (any, error) {
			said := map[string]any{}
			if headers >= 0 {
				said = a[headers].(map[string]any)
			}
			return l.o.Send(ctx, d, said, a[text].(string))
		}
	}
	written := func(ctx context.Context, a []any) (any, error) {
		separator := ","
		if len(a) > 1 && a[1] != "" {
			separator = a[1].(string)
		}
		said := map[string]any{}
		for _, pair := range strings.Split(a[0].(string), separator) {
			key, value, ok := strings.Cut(pair, "=")
			if !ok {
				return nil, badRequest("%q is no name=value", pair)
			}
			said[key] = value
		}
		text, _ := said["body"].(string)
		for _, key := range []string{"body", "username", "password"} {
			delete(said, key)
		}
		return l.o.Send(ctx, d, said, text)
	}
	// The user and password of some of them are not looked at: whoever asks has logged in.
	return []operation{
		{"sendTextMessage", []string{typString}, typString, send(-1, 0)},
		{"sendTextMessage", []string{typMap, typString}, typString, send(0, 1)},
		{"sendTextMessage", []string{typString, typString, typString}, typString, send(-1, 0)},
		{"sendTextMessage", []string{typMap, typString, typString, typString}, typString, send(0, 1)},
		{"sendTextMessageWithProperties", []string{typString}, typString, written},
		{"sendTextMessageWithProperties", []string{typString, typString}, typString, written},
	}
}
