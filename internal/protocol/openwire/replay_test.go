package openwire

import (
	"archive/tar"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// vectorArchive has the recordings of ActiveMQ's client and broker.
const vectorArchive = "wire/testdata/vectors.tar.gz"

var vectors = sync.OnceValues(func() (map[string][]byte, error) {
	f, err := os.Open(vectorArchive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for t := tar.NewReader(z); ; {
		head, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[strings.TrimPrefix(head.Name, "./")], err = io.ReadAll(t); err != nil {
			return nil, err
		}
	}
})

// A recording is what ActiveMQ's client and broker have said to each other.
type recording struct {
	Events []struct {
		T     int // milliseconds
		Conn  int
		From  string
		Hex   string
		Event string
	}
}

func record(t *testing.T, name string) recording {
	t.Helper()
	files, err := vectors()
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.Unmarshal(files["conversations/"+name+".json"], &r); err != nil {
		t.Fatal(name, err)
	}
	return r
}

// A replayed is one recorded connection, and its client on ours.
type replayed struct {
	t        *testing.T
	client   *wire.Decoder // of the recorded client
	broker   *wire.Decoder // of the recorded broker
	formats  [2]wire.WireFormat
	settled  bool
	conn     net.Conn
	peer     *peer
	recorded []wire.DataStructure // by the broker
	toward   []wire.DataStructure // the broker: by the client
}

// transcript says what a client has seen: what became of its commands, and what
// was dispatched to which consumer.
type transcript struct {
	Answers    map[int32]string
	Dispatches map[string][]string
	Windows    int32 // bytes given back to producers
}

func summarize(t *testing.T, commands []wire.DataStructure) transcript {
	t.Helper()
	s := transcript{Answers: map[int32]string{}, Dispatches: map[string][]string{}}
	for _, ds := range commands {
		switch c := ds.(type) {
		case *wire.Response:
			s.Answers[c.CorrelationID] += "Response"
		case *wire.DataArrayResponse:
			s.Answers[c.CorrelationID] += fmt.Sprintf("DataArrayResponse of %d", len(c.Data))
		case *wire.IntegerResponse:
			s.Answers[c.CorrelationID] += fmt.Sprintf("IntegerResponse %d", c.Result)
		case *wire.ExceptionResponse:
			s.Answers[c.CorrelationID] += c.Exception.Class
			if _, code, ok := strings.Cut(c.Exception.Message.Value, "xaErrorCode:"); ok {
				s.Answers[c.CorrelationID] += " " + code
			}
		case *wire.ConnectionError:
			s.Answers[0] += c.Exception.Class
		case *wire.ProducerAck:
			s.Windows += c.Size
		case *wire.MessageDispatch:
			id := c.ConsumerID.String()
			s.Dispatches[id] = append(s.Dispatches[id], describe(t, c))
		}
	}
	return s
}

// describe says what the application would see of a dispatch.
func describe(t *testing.T, d *wire.MessageDispatch) string {
	t.Helper()
	m := d.Message
	if m == nil {
		return "nothing"
	}
	if info, ok := m.DataStructure.(*wire.DestinationInfo); ok {
		return fmt.Sprintf("%v %v", info.OperationType, info.Destination)
	}
	properties, err := wire.DecodeMap(m.MarshalledProperties)
	if err != nil {
		t.Error(err)
	}
	slices.SortFunc(properties, func(a, b wire.Entry) int { return strings.Compare(a.Key, b.Key) })
	return fmt.Sprintf("%v %s from %v of %v, counter %d, %v %v %d %d %q %q %q %d reply %v, compressed %v, %x, %v", m.Kind, m.MessageID, d.Destination, m.OriginalDestination,
		d.RedeliveryCounter, m.Destination, m.Persistent, m.Priority, m.Expiration, m.CorrelationID, m.Type, m.GroupID, m.GroupSequence, m.ReplyTo, m.Compressed, m.Content, properties)
}

// TestReplay plays the client's side of what was recorded with ActiveMQ to our
// broker and wants the same answers and the same dispatches, but for what we do
// otherwise on purpose. A browser may be told more than once that it has seen
// everything.
func TestReplay(t *testing.T) {
	t.Parallel()
	for name, differs := range map[string]func(dispatches []string) []string{
		"a-send-receive":             nil,
		"a-v6-loose-nocache":         unordered,
		"a-v9-tight-nocache":         nil,
		"b-transacted-rollback-dlq":  withoutAttempts,
		"c-client-ack-recover":       nil,
		"d-durable-subscriber":       nil,
		"e-queue-browser":            slices.Compact[[]string],
		"f-temp-queue-request-reply": nil,
		"f-v12-loose-cache":          nil,
		"g-all-bodies":               nil,
		"h-xa":                       nil,
		"i-producer-window":          nil,
		"j-pull":                     nil,
		"k-errors":                   nil,
		"l-failover-replay":          nil,
		"m-expiry-individual-ack":    nil,
		"p-delivered-acks":           nil,
		"q-keepalive":                nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := record(t, name)
			inHouse(t, nil, func(h *house) {
				for n, c := range playBack(h, rec) {
					want, got := summarize(t, c.recorded), summarize(t, c.peer.all())
					if differs != nil {
						for id := range want.Dispatches {
							want.Dispatches[id], got.Dispatches[id] = differs(want.Dispatches[id]), differs(got.Dispatches[id])
						}
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("connection %d (-recorded +ours):\n%s", n, diff)
					}
				}
			})
		})
	}
}

// unordered: that broker has handed out a second message before the first, which
// waited for the disk.
func unordered(dispatches []string) []string {
	slices.Sort(dispatches)
	return dispatches
}

// withoutAttempts: our dead letters say how often they were tried (R-EDGE-18).
func withoutAttempts(dispatches []string) []string {
	for i := range dispatches {
		dispatches[i] = strings.Replace(dispatches[i], "{deliveryAttempts 3} ", "", 1)
	}
	return dispatches
}

// TestReplayIsAnswered plays what we answer differently, and wants an answer to
// every command that asks for one.
func TestReplayIsAnswered(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"r-login-failure"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := record(t, name)
			inHouse(t, nil, func(h *house) {
				for n, c := range playBack(h, rec) {
					got := summarize(t, c.peer.all())
					for _, ds := range c.toward {
						if cmd, ok := ds.(wire.Command); ok && cmd.Base().ResponseRequired && got.Answers[cmd.Base().CommandID] == "" {
							t.Errorf("connection %d: %T %d was not answered", n, cmd, cmd.Base().CommandID)
						}
					}
				}
			})
		})
	}
}

// playBack plays a recording, with its pauses.
func playBack(h *house, rec recording) map[int]*replayed {
	h.t.Helper()
	start := time.Now()
	conns := map[int]*replayed{}
	numbers := map[int64]string{} // messages by the numbers that the recorded broker has given them
	for _, e := range rec.Events {
		if d := time.Until(start.Add(time.Duration(e.T) * time.Millisecond)); d > 0 {
			time.Sleep(d)
		}
		c := conns[e.Conn]
		if c == nil {
			c = &replayed{t: h.t, client: wire.NewDecoder(), broker: wire.NewDecoder()}
			conns[e.Conn] = c
		}
		if e.Event != "" {
			if e.From == "client" {
				c.conn.Close()
			}
			continue
		}
		frame, err := hex.DecodeString(e.Hex)
		if err != nil {
			h.t.Fatal(err)
		}
		c.event(h, e.From, frame[wire.SizeBytes:], numbers)
	}
	synctest.Wait()
	return conns
}

// event plays one frame of the recording.
func (c *replayed) event(h *house, from string, frame []byte, numbers map[int64]string) {
	c.t.Helper()
	if c.formats[0].Version != 0 && c.formats[1].Version != 0 && !c.settled {
		s, err := wire.Negotiate(c.formats[0], c.formats[1])
		if err != nil {
			c.t.Fatal(err)
		}
		c.client.Negotiated(s)
		c.broker.Negotiated(s)
		c.settled = true
	}
	dec, side := c.client, 0
	if from == "broker" {
		dec, side = c.broker, 1
	}
	ds, err := dec.Decode(frame)
	if err != nil {
		c.t.Fatal(err)
	}
	if info, ok := ds.(*wire.WireFormatInfo); ok {
		if c.formats[side], err = wire.ParseWireFormat(info); err != nil {
			c.t.Fatal(err)
		}
		if from == "client" {
			c.peer = h.peer(c.formats[0])
			c.conn = c.peer.conn
		}
		return
	}
	if from == "broker" {
		c.recorded = append(c.recorded, ds)
		if d, ok := ds.(*wire.MessageDispatch); ok && d.Message != nil {
			numbers[d.Message.MessageID.BrokerSequenceID] = d.Message.MessageID.String()
		}
		return
	}
	c.toward = append(c.toward, ds)
	c.peer.send(c.renumbered(ds, numbers))
	synctest.Wait()
}

// renumbered gives the messages in a command the numbers that our broker has
// given them.
func (c *replayed) renumbered(ds wire.DataStructure, numbers map[int64]string) wire.DataStructure {
	ours := map[string]int64{}
	c.peer.mu.Lock()
	for _, got := range c.peer.got {
		if d, ok := got.(*wire.MessageDispatch); ok && d.Message != nil {
			ours[d.Message.MessageID.String()] = d.Message.MessageID.BrokerSequenceID
		}
	}
	c.peer.mu.Unlock()
	id := func(m *wire.MessageID) *wire.MessageID {
		if m == nil {
			return nil
		}
		again := *m
		again.BrokerSequenceID = ours[m.String()]
		return &again
	}
	switch cmd := ds.(type) {
	case *wire.MessageAck:
		again := *cmd
		again.FirstMessageID, again.LastMessageID = id(cmd.FirstMessageID), id(cmd.LastMessageID)
		return &again
	case *wire.RemoveInfo:
		again := *cmd
		if n, ok := ours[numbers[cmd.LastDeliveredSequenceID]]; ok && cmd.LastDeliveredSequenceID > 0 {
			again.LastDeliveredSequenceID = n
		}
		return &again
	}
	return ds
}
