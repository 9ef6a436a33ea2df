package openwire

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// A script is a broker, and its one connection, that write down what they are
// asked and answer as told.
type script struct {
	mu    sync.Mutex
	calls []string
	fail  map[string]error // what the method so named answers
	sink  broker.Sink
	info  broker.ClientInfo
	temps []broker.TempDestination
	held  []func() // answers that a test lets out itself
	hold  bool     // hold answers back
	sent  []*message.Message

	prepared []message.XID // what Recover gives
	over     bool          // what BeginXA answers
	readOnly bool          // what PrepareXA answers
}

// inScript runs f in a bubble with a server on a scripted broker.
func inScript(t *testing.T, set func(*Options), f func(h *house, s *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &script{fail: map[string]error{}}
		o := Options{Broker: s}
		if set != nil {
			set(&o)
		}
		h := newHouse(t, o)
		f(h, s)
		h.close()
	})
}

// call writes a call down.
func (s *script) call(method string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = fmt.Sprint(a)
	}
	s.calls = append(s.calls, method+"("+strings.Join(texts, ", ")+")")
	return s.fail[method]
}

// answer answers a call, at once or when the test lets it.
func (s *script) answer(done func(error), err error) {
	if done == nil {
		return
	}
	s.mu.Lock()
	if s.hold {
		s.held = append(s.held, func() { done(err) })
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	done(err)
}

// failing makes a method fail from now on.
func (s *script) failing(method string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[method] = err
}

// holding holds answers back from now on.
func (s *script) holding() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = true
}

// messages is what was sent.
func (s *script) messages() []*message.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// release lets the held answers out.
func (s *script) release() {
	s.mu.Lock()
	held := s.held
	s.held, s.hold = nil, false
	s.mu.Unlock()
	for _, f := range held {
		f()
	}
}

// took gives the calls so far, and forgets them.
func (s *script) took() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

func (s *script) Connect(_ context.Context, info broker.ClientInfo, sink broker.Sink) (Connection, error) {
	s.mu.Lock()
	s.info, s.sink = info, sink
	s.mu.Unlock()
	if err := s.call("Connect", info.ID, info.ClientID, info.Reconnect, info.QuietFirst); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *script) TempDestinations() []broker.TempDestination {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.temps
}

func (s *script) Names() []message.Destination            { return nil }
func (s *script) ClientsOpen() []broker.ClientInfo        { return nil }
func (s *script) ConsumersOpen() []broker.Party           { return nil }
func (s *script) ProducersOpen() []broker.Party           { return nil }
func (s *script) Consumers(message.Destination) int       { return 0 }
func (s *script) Producers(message.Destination) int       { return 0 }
func (s *script) Watched(message.Destination) bool        { return true }
func (s *script) AddProducer(string, message.Destination) {}

func (s *script) Publish(_ context.Context, m *message.Message, done func(error)) error {
	if err := s.call("Publish", m.Destination, m.Type); err != nil {
		return err
	}
	s.answer(done, nil)
	return nil
}

func (s *script) Send(_ context.Context, m *message.Message, tx string, done func(error)) {
	err := s.call("Send", m.ID, m.Destination, tx)
	s.mu.Lock()
	s.sent = append(s.sent, m)
	s.mu.Unlock()
	s.answer(done, err)
}

func (s *script) MayProduce(message.Destination) error { return nil }

func (s *script) Window(spec broker.ConsumerSpec) int { return spec.Prefetch }

func (s *script) Begin(tx string) error { return s.call("Begin", tx) }

func (s *script) Commit(_ context.Context, tx string, done func(error)) {
	s.answer(done, s.call("Commit", tx))
}

func (s *script) Rollback(_ context.Context, tx string, done func(error)) {
	s.answer(done, s.call("Rollback", tx))
}

func (s *script) Recover() []message.XID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prepared
}

func (s *script) BeginXA(xid message.XID, again bool) (bool, error) {
	err := s.call("BeginXA", xid, again)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over, err
}

func (s *script) HasXA(message.XID) bool { return true }

func (s *script) CommittedXA(message.XID) bool { return s.over }

func (s *script) PrepareXA(_ context.Context, xid message.XID, done func(bool, error)) {
	err := s.call("PrepareXA", xid)
	s.answer(func(err error) { done(s.readOnly, err) }, err)
}

func (s *script) CommitXA(_ context.Context, xid message.XID, onePhase bool, done func(error)) {
	s.answer(done, s.call("CommitXA", xid, onePhase))
}

func (s *script) RollbackXA(_ context.Context, xid message.XID, done func(error)) {
	s.answer(done, s.call("RollbackXA", xid))
}

func (s *script) ForgetXA(_ context.Context, xid message.XID, done func(error)) {
	s.answer(done, s.call("ForgetXA", xid))
}

func (s *script) MarkRollbackOnly(tx string, why error) { _ = s.call("MarkRollbackOnly", tx, why) }

func (s *script) Subscribe(_ context.Context, spec broker.ConsumerSpec) error {
	return s.call("Subscribe", fmt.Sprintf("%+v", spec))
}

func (s *script) Offer(_ context.Context, consumer string, m *message.Message, done func(error)) error {
	s.mu.Lock()
	s.sent = append(s.sent, m)
	s.mu.Unlock()
	return s.call("Offer", consumer, m.Destination)
}

func (s *script) Ack(_ context.Context, a broker.Ack, done func(error)) {
	ref := func(r queue.Ref) string { return fmt.Sprintf("%d %s", r.Position, r.ID) }
	s.answer(done, s.call("Ack", a.Consumer, a.Destination, uint8(a.Type), "first "+ref(a.First), "last "+ref(a.Last), a.Count, "tx "+a.Tx, a.Text))
}

func (s *script) Pull(_ context.Context, consumer string, timeout time.Duration) error {
	return s.call("Pull", consumer, timeout)
}

func (s *script) SetPrefetch(_ context.Context, consumer string, n int, done func(error)) {
	s.answer(done, s.call("SetPrefetch", consumer, n))
}

func (s *script) CloseConsumer(_ context.Context, consumer string, last int64, done func(error)) {
	s.answer(done, s.call("CloseConsumer", consumer, last))
}

func (s *script) CloseSession(_ context.Context, session string, last int64, done func(error)) {
	s.answer(done, s.call("CloseSession", session, last))
}

// Holds is asked about connections that are lost, whose calls nobody compares.
func (s *script) Holds(string) bool { return false }

func (s *script) CloseProducer(_ context.Context, producer string) {
	_ = s.call("CloseProducer", producer)
}

func (s *script) Unsubscribe(_ context.Context, name string) error {
	return s.call("Unsubscribe", name)
}

func (s *script) AddDestination(_ context.Context, d message.Destination) error {
	return s.call("AddDestination", d)
}

func (s *script) RemoveDestination(_ context.Context, d message.Destination) error {
	return s.call("RemoveDestination", d)
}

func (s *script) Close(cause message.Cause, text string, last int64) {
	_ = s.call("Close", cause, text, last)
}
