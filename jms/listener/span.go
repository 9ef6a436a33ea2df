package listener

import (
	"context"
	"sync"

	"github.com/nixiemq/nixie/jms"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// A trail remembers the span of each message's last attempt that failed, so that the
// next attempt's links to it. It is bounded: the oldest go.
type trail struct {
	mu    sync.Mutex
	spans map[string]trace.SpanContext
	order []string
}

// maxTrail is how many messages a trail remembers.
const maxTrail = 4096

func (t *trail) put(id string, s trace.SpanContext) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.spans == nil {
		t.spans = map[string]trace.SpanContext{}
	}
	if _, ok := t.spans[id]; !ok {
		t.order = append(t.order, id)
	}
	t.spans[id] = s
	for len(t.spans) > maxTrail {
		delete(t.spans, t.order[0])
		t.order = t.order[1:]
	}
}

func (t *trail) last(id string) (trace.SpanContext, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.spans[id]
	return s, ok
}

func (t *trail) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.spans[id]; !ok {
		return
	}
	delete(t.spans, id)
	for i, o := range t.order {
		if o == id {
			t.order = append(t.order[:i:i], t.order[i+1:]...)
			return
		}
	}
}

// carrier gives a propagator the properties of a message.
type carrier struct{ m *jms.Message }

func (c carrier) Get(key string) string {
	v, err := c.m.Properties.String(key)
	if err != nil {
		return ""
	}
	return v
}
func (c carrier) Set(key, value string) { c.m.SetProperty(key, value) }
func (c carrier) Keys() []string {
	var keys []string
	for k := range c.m.Properties {
		keys = append(keys, k)
	}
	return keys
}

// Inject puts the trace of ctx into a message that is to be sent, as the W3C's
// properties traceparent and tracestate, from which a container makes its span's
// parent.
func Inject(ctx context.Context, m *jms.Message) { propagation.TraceContext{}.Inject(ctx, carrier{m}) }

// span begins the span of an attempt: a child of the sender's, with a link to the
// attempt before. The function ends it.
func (c *Container) span(ctx context.Context, m *jms.Message) (context.Context, func(error)) {
	if c.o.Tracer == nil {
		return ctx, func(error) {}
	}
	ctx = propagation.TraceContext{}.Extract(ctx, carrier{m})
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("messaging.system", "activemq"),
		attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.destination.name", m.Destination.Name()),
		attribute.String("messaging.message.id", m.ID),
		attribute.Int("messaging.message.delivery_count", m.DeliveryCount()),
	)}
	if m.CorrelationID != "" {
		options = append(options, trace.WithAttributes(attribute.String("messaging.message.conversation_id", m.CorrelationID)))
	}
	if before, ok := c.trail.last(m.ID); ok {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: before, Attributes: []attribute.KeyValue{attribute.String("nixie.link", "previous attempt")}}))
	}
	ctx, s := c.o.Tracer.Start(ctx, "process "+m.Destination.Name(), options...)
	return ctx, func(err error) {
		if err != nil {
			s.RecordError(err)
			s.SetStatus(codes.Error, err.Error())
			c.trail.put(m.ID, s.SpanContext())
		} else {
			c.trail.forget(m.ID)
		}
		s.End()
	}
}
