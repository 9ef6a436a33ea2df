package wire

import (
	"bytes"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
)

// TestAppendRefuses checks what cannot be written (OpenWire 4.5, 4.8, 16), and
// that dst comes back as it was.
func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	small := loose
	small.MaxFrame = 100
	smallTight := tight
	smallTight.MaxFrame = 100
	tests := map[string]struct {
		s    Settings
		ds   DataStructure
		kind error
	}{
		"string of 32767 bytes, tight":           {tight, &BrokerID{Value: strings.Repeat("x", 32767)}, message.ErrOverLimit},
		"string of 65536 bytes, loose":           {loose, &BrokerID{Value: strings.Repeat("x", 65536)}, message.ErrOverLimit},
		"string that is too long in its form":    {tight, &BrokerID{Value: strings.Repeat("\U0001F600", 5462)}, message.ErrOverLimit},
		"array of 32768":                         {loose, &DataArrayResponse{Data: make([]DataStructure, 32768)}, message.ErrOverLimit},
		"frame above the limit, loose":           {small, &PartialCommand{Data: make([]byte, 91)}, message.ErrOverLimit},
		"frame above the limit, tight":           {smallTight, &PartialCommand{Data: make([]byte, 90)}, message.ErrOverLimit},
		"MessagePull in version 1":               {Settings{Version: 1}, &MessagePull{}, message.ErrInvalid},
		"blob message in version 2":              {Settings{Version: 2}, &Message{Kind: message.BlobBody}, message.ErrInvalid},
		"blob message dispatched in version 2":   {Settings{Version: 2}, &MessageDispatch{Message: &Message{Kind: message.BlobBody}}, message.ErrInvalid},
		"ProducerAck in a response in version 2": {Settings{Version: 2}, &DataResponse{Data: &ProducerAck{}}, message.ErrInvalid},
		"message of no kind":                     {loose, &Message{}, message.ErrInvalid},
		"destination of no kind":                 {loose, &ProducerInfo{Destination: &Destination{PhysicalName: "A"}}, message.ErrInvalid},
		"destination of kind 200":                {loose, &Destination{Kind: 200, PhysicalName: "A"}, message.ErrInvalid},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, e := pair(test.s)
			got, err := e.Append([]byte("before"), test.ds)
			wantKind(t, err, test.kind)
			if string(got) != "before" {
				t.Errorf("dst is %q", got)
			}
		})
	}
}

// TestLimitsFit checks that the largest that may be written can be read.
func TestLimitsFit(t *testing.T) {
	t.Parallel()
	small := tight
	small.MaxFrame = 100
	tests := map[string]struct {
		s  Settings
		ds DataStructure
	}{
		"string of 32766 bytes, tight": {tight, &BrokerID{Value: strings.Repeat("x", MaxStringBytes)}},
		"string of 65535 bytes, loose": {loose, &BrokerID{Value: strings.Repeat("é", 32767) + "x"}},
		"array of 32767":               {tight, &DataArrayResponse{Data: make([]DataStructure, 32767)}},
		"frame of the limit":           {small, &PartialCommand{Data: make([]byte, 89)}},
		"stack of 2 and two causes": {tight, &ConnectionError{Exception: &Throwable{Class: "A", Stack: []StackElement{{"A", "a", NewText("A.java"), 1}, {"B", "b", Text{}, -2}},
			Cause: &Throwable{Class: "B", Message: NewText(""), Cause: NewThrowable("C", "c")}}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, e := pair(test.s)
			frame, err := e.Append([]byte("before"), test.ds)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Decode(frame[len("before")+4:])
			if err != nil || !cmp.Equal(got, test.ds) {
				t.Errorf("decoded to %.100v, %v", got, err)
			}
		})
	}
}

// TestThrowableWithoutStack checks that neither stack nor cause is sent unless
// that was negotiated (OpenWire 4.9).
func TestThrowableWithoutStack(t *testing.T) {
	t.Parallel()
	full := &Throwable{Class: "A", Message: NewText("a"), Stack: []StackElement{{Class: "A"}}, Cause: NewThrowable("B", "b")}
	for _, tightly := range []bool{true, false} {
		s := Settings{Version: 12, Tight: tightly}
		d, _ := pair(s)
		got, err := d.Decode(body(t, s, &ExceptionResponse{CorrelationID: 3, Exception: full}))
		want := &ExceptionResponse{CorrelationID: 3, Exception: NewThrowable("A", "a")}
		if err != nil || !cmp.Equal(got, DataStructure(want)) {
			t.Errorf("decoded to %v, %v", got, err)
		}
	}
	if got := full.String(); got != "A: a" {
		t.Errorf("String() = %q", got)
	}
	if got := (&Throwable{Class: "A"}).String(); got != "A" {
		t.Errorf("String() = %q", got)
	}
}

// TestFailedFrameLeavesNoTrace checks that a connection goes on after a frame
// that could not be written: the cache knows nothing of it (OpenWire 5).
func TestFailedFrameLeavesNoTrace(t *testing.T) {
	t.Parallel()
	for _, s := range []Settings{looseCache, tightCache} {
		_, clean := pair(s)
		d, e := pair(s)
		bad := benchDispatch()
		bad.Message.Type = NewText(strings.Repeat("x", 70_000))
		good := benchDispatch()
		for _, ds := range []DataStructure{benchAck(), nil, good} {
			if _, err := e.Append(nil, bad); err == nil {
				t.Fatal("no error")
			}
			got, err := e.Append(nil, ds)
			if err != nil {
				t.Fatal(err)
			}
			want, err := clean.Append(nil, ds)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%+v: frame is\n%x, want\n%x, %v", s, got, want, err)
			}
			if _, err := d.Decode(got[4:]); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestSmallCaches checks that caches of every size keep both sides together,
// down to one slot (OpenWire 3.3, 5).
func TestSmallCaches(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3, 50, 99, 100, 101, 130, 0} {
		for _, tightly := range []bool{true, false} {
			s := Settings{Version: 12, Tight: tightly, Cache: true, CacheSize: size}
			d, e := pair(s)
			for i := range int64(500) {
				connection := strconv.FormatInt(i*7%41, 10)
				want := &MessageAck{
					Destination:    &Destination{Kind: CodeActiveMQQueue, PhysicalName: "Q" + connection},
					TransactionID:  &LocalTransactionID{Value: i % 90, ConnectionID: &ConnectionID{Value: connection}},
					ConsumerID:     &ConsumerID{ConnectionID: connection, SessionID: i % 3, Value: i},
					LastMessageID:  &MessageID{ProducerID: &ProducerID{ConnectionID: connection, Value: i % 150}},
					FirstMessageID: &MessageID{},
				}
				frame, err := e.Append(nil, want)
				if err != nil {
					t.Fatal(err)
				}
				got, err := d.Decode(frame[4:])
				if err != nil {
					t.Fatalf("%+v frame %d: %v", s, i, err)
				}
				if !reflect.DeepEqual(DataStructure(want), got) {
					t.Fatalf("%+v frame %d (-want +got):\n%s", s, i, cmp.Diff(DataStructure(want), got))
				}
			}
		}
	}
}

// TestFrameLargerThanCache sends one frame with more new objects than there are
// slots: what is left over is not stored (OpenWire 5).
func TestFrameLargerThanCache(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 40, 100, 130} {
		for _, tightly := range []bool{true, false} {
			s := Settings{Version: 12, Tight: tightly, Cache: true, CacheSize: size}
			d, e := pair(s)
			for round := range 6 {
				want := &DataArrayResponse{}
				for i := range 300 {
					id := &SessionID{ConnectionID: "c", Value: int64(i*(round+1)%211 + round)}
					want.Data = append(want.Data, &SessionInfo{SessionID: id})
				}
				frame, err := e.Append(nil, want)
				if err != nil {
					t.Fatal(err)
				}
				got, err := d.Decode(frame[4:])
				if err != nil {
					t.Fatalf("%+v: %v", s, err)
				}
				if !reflect.DeepEqual(DataStructure(want), got) {
					t.Fatalf("%+v round %d (-want +got):\n%s", s, round, cmp.Diff(DataStructure(want), got))
				}
			}
		}
	}
}

// TestCacheKeys checks which objects count as equal (OpenWire 5).
func TestCacheKeys(t *testing.T) {
	t.Parallel()
	objects := []keyed{
		&Destination{Kind: CodeActiveMQQueue, PhysicalName: "a"},
		&Destination{Kind: CodeActiveMQTopic, PhysicalName: "a"},
		&ConnectionID{Value: "a"},
		&BrokerID{Value: "a"},
		&SessionID{ConnectionID: "a", Value: 1},
		&ConsumerID{ConnectionID: "a", SessionID: 1, Value: 2},
		&ConsumerID{ConnectionID: "a", SessionID: 2, Value: 1},
		&ProducerID{ConnectionID: "a", SessionID: 1, Value: 2},
		&LocalTransactionID{Value: 1},
		&LocalTransactionID{Value: 1, ConnectionID: &ConnectionID{}},
		&LocalTransactionID{Value: 1, ConnectionID: &ConnectionID{Value: "a"}},
		&XATransactionID{FormatID: 1},
		&XATransactionID{FormatID: 1, GlobalTransactionID: []byte{}},
		&XATransactionID{FormatID: 1, BranchQualifier: []byte{}},
		&XATransactionID{FormatID: 1, GlobalTransactionID: []byte("a"), BranchQualifier: []byte("bc")},
		&XATransactionID{FormatID: 1, GlobalTransactionID: []byte("ab"), BranchQualifier: []byte("c")},
		&XATransactionID{FormatID: 2, GlobalTransactionID: []byte("ab"), BranchQualifier: []byte("c")},
	}
	seen := map[cacheKey]int{{}: -1}
	for i, o := range objects {
		if other, ok := seen[o.cacheKey()]; ok {
			t.Errorf("objects %d and %d count as equal", i, other)
		}
		seen[o.cacheKey()] = i
	}
}

// TestUncacheableObject checks that RemoveInfo can carry what no slot takes.
func TestUncacheableObject(t *testing.T) {
	t.Parallel()
	d, e := pair(looseCache)
	want := &RemoveInfo{ObjectID: &MessageID{ProducerSequenceID: 4}}
	frame, err := e.Append(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := d.Decode(frame[4:]); err != nil || !cmp.Equal(got, DataStructure(want)) {
		t.Errorf("decoded to %v, %v", got, err)
	}
	if slot := frame[11:13]; frame[10] != 1 || !bytes.Equal(slot, []byte{0xff, 0xff}) {
		t.Errorf("slot is %x", slot)
	}
}

// TestLargeStreams checks that the room for booleans is right when frames of one
// type differ much in length (OpenWire 4.2).
func TestLargeStreams(t *testing.T) {
	t.Parallel()
	d, e := pair(tight)
	for _, n := range []int{0, 3000, 1, 600, 505, 502, 2046, 2030, 0, 32767, 10} {
		want := &DataArrayResponse{Data: make([]DataStructure, n)}
		frame, err := e.Append([]byte("before"), want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Decode(frame[len("before")+4:])
		if err != nil || !reflect.DeepEqual(got, DataStructure(want)) {
			t.Fatalf("%d elements: %v", n, err)
		}
	}
}

// TestEncodeAllocatesNothing holds the encoder to it for what is sent most.
func TestEncodeAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 4096)
	for _, o := range benchObjects {
		_, e := pair(tightCache)
		allocs := testing.AllocsPerRun(100, func() {
			if _, err := e.Append(buf, o.ds); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 0 {
			t.Errorf("%s: %v allocations", o.name, allocs)
		}
	}
}

// TestSharedLongs checks values on both sides of each length (OpenWire 4.4).
func TestSharedLongs(t *testing.T) {
	t.Parallel()
	d, e := pair(tight)
	for _, v := range []int64{0, 1, 65535, 65536, 1<<32 - 1, 1 << 32, math.MaxInt64, -1, math.MinInt64} {
		frame, err := e.Append(nil, &SessionID{Value: v})
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Decode(frame[4:])
		if err != nil || got.(*SessionID).Value != v {
			t.Errorf("%d: decoded to %v, %v", v, got, err)
		}
	}
}
