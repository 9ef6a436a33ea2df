package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
)

var (
	loose      = Settings{Version: 12, StackTrace: true}
	tight      = Settings{Version: 12, StackTrace: true, Tight: true}
	looseCache = Settings{Version: 12, StackTrace: true, Cache: true, CacheSize: 1024}
	tightCache = Settings{Version: 12, StackTrace: true, Cache: true, CacheSize: 1024, Tight: true}
)

// body encodes ds and takes the size off.
func body(t testing.TB, s Settings, ds DataStructure) []byte {
	t.Helper()
	_, e := pair(s)
	frame, err := e.Append(nil, ds)
	if err != nil {
		t.Fatal(err)
	}
	return frame[4:]
}

// join makes a frame body of numbers, strings and byte slices.
func join(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int: // one byte
			b = append(b, byte(p))
		case int16:
			b = binary.BigEndian.AppendUint16(b, uint16(p))
		case int32:
			b = binary.BigEndian.AppendUint32(b, uint32(p))
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		default:
			panic(fmt.Sprintf("join of %T", p))
		}
	}
	return b
}

// head is what a loose command begins with.
func head(code byte) []byte { return join(int(code), int32(1), 0) }

// TestDecodeRefuses checks frames that no peer may send (OpenWire 1, 4, 5).
func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		s     Settings
		frame []byte
		kind  error
	}{
		"empty frame":                       {loose, nil, message.ErrInvalid},
		"null frame with a byte more":       {loose, join(0, 0), message.ErrInvalid},
		"surplus byte, loose":               {loose, join(head(CodeShutdownInfo), 0), message.ErrInvalid},
		"surplus byte, tight":               {tight, join(int(CodeShutdownInfo), 1, 0, int32(1), 0), message.ErrInvalid},
		"surplus byte of booleans":          {tight, join(int(CodeShutdownInfo), 2, 0, 0, int32(1)), message.ErrInvalid},
		"booleans missing":                  {tight, join(int(CodeShutdownInfo), 0, int32(1)), message.ErrInvalid},
		"boolean stream longer than frame":  {tight, join(int(CodeShutdownInfo), 63, 0), message.ErrInvalid},
		"boolean stream of negative size":   {tight, join(int(CodeShutdownInfo), 0x80, int16(-1)), message.ErrInvalid},
		"boolean stream of unknown form":    {tight, join(int(CodeShutdownInfo), 0xc1, 0, int32(1)), message.ErrInvalid},
		"bytes of negative length":          {loose, join(int(CodePartialCommand), int32(1), 1, int32(-1)), message.ErrInvalid},
		"bytes longer than the frame":       {loose, join(int(CodePartialCommand), int32(1), 1, int32(1<<30)), message.ErrInvalid},
		"string longer than the frame":      {loose, join(int(CodeBrokerID), 1, int16(-1), "x"), message.ErrInvalid},
		"ASCII string of negative length":   {tight, join(int(CodeBrokerID), 1, 3, int16(-1), "x"), message.ErrInvalid},
		"string that is no UTF-8":           {loose, join(int(CodeBrokerID), 1, int16(1), 0xff), message.ErrInvalid},
		"string cut inside a character":     {loose, join(int(CodeBrokerID), 1, int16(2), 0xe4, 0xbd), message.ErrInvalid},
		"array of negative length":          {loose, join(head(CodeDataArrayResponse), int32(1), 1, int16(-1)), message.ErrInvalid},
		"array longer than frame, loose":    {loose, join(head(CodeDataArrayResponse), int32(1), 1, int16(9), 0), message.ErrInvalid},
		"array longer than booleans, tight": {tight, join(int(CodeDataArrayResponse), 1, 2, int32(1), int32(1), int16(7)), message.ErrInvalid},
		"nested type 0":                     {loose, join(head(CodeDataResponse), int32(1), 1, 0), message.ErrInvalid},
		"nested type above 127":             {loose, join(head(CodeDataResponse), int32(1), 1, 0x80), message.ErrInvalid},
		"nested type not in version 1":      {Settings{Version: 1}, join(head(CodeDataResponse), int32(1), 1, int(CodeMessagePull)), message.ErrInvalid},
		"producer id where a session's is":  {loose, join(head(CodeSessionInfo), 1, int(CodeProducerID), 0, make([]byte, 16)), message.ErrInvalid},
		"queue where a message belongs":     {loose, join(head(CodeMessageDispatch), 0, 0, 1, int(CodeActiveMQQueue), 0), message.ErrInvalid},
		"id where a destination belongs":    {loose, join(head(CodeProducerInfo), 0, 1, int(CodeBrokerID), 0), message.ErrInvalid},
		"id where a transaction belongs":    {loose, join(head(CodeTransactionInfo), 0, 1, int(CodeBrokerID), 0), message.ErrInvalid},
		"blob message in version 2":         {Settings{Version: 2}, join(head(CodeMessageDispatch), 0, 0, 1, int(CodeActiveMQBlobMessage)), message.ErrInvalid},
		"message with booleans of its own":  {tight, join(int(CodeMessageDispatch), 1, 0b11000, int32(1), int(CodeActiveMQMessage)), message.ErrInvalid},
		"cache slot below -1":               {looseCache, join(head(CodeSessionInfo), 1, int16(-2), 0), message.ErrInvalid},
		"cache slot beyond the cache":       {looseCache, join(head(CodeSessionInfo), 1, int16(1024), 0), message.ErrInvalid},
		"reference beyond the cache":        {looseCache, join(head(CodeSessionInfo), 0, int16(1024)), message.ErrInvalid},
		"reference to slot -1":              {looseCache, join(head(CodeSessionInfo), 0, int16(-1)), message.ErrInvalid},
		"message in the cache":              {looseCache, join(head(CodeRemoveInfo), 1, int16(0), 1, int(CodeShutdownInfo), int32(1), 0), message.ErrInvalid},
		"stack longer than the frame":       {loose, join(head(CodeExceptionResponse), int32(1), 1, 0, 0, int16(2), 0, 0, 0, int32(1)), message.ErrInvalid},
		"stack of negative length":          {loose, join(head(CodeExceptionResponse), int32(1), 1, 0, 0, int16(-1)), message.ErrInvalid},
		"objects nested without end, loose": {loose, bytes.Repeat(join(head(CodeDataResponse), int32(1), 1), 1000), message.ErrInvalid},
		"causes without end, loose":         {loose, join(head(CodeExceptionResponse), int32(1), bytes.Repeat(join(1, 0, 0, int16(0)), 5000)), message.ErrInvalid},
		"brokers nested within brokers":     {loose, bytes.Repeat(join(head(CodeBrokerInfo), 0, 0, 1, int16(1), 1), 1000), message.ErrInvalid},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _ := pair(test.s)
			ds, err := d.Decode(test.frame)
			wantKind(t, err, test.kind)
			if ds != nil {
				t.Errorf("decoded to %v", ds)
			}
		})
	}
}

// TestDecodeRefusesPieces cuts frames at every place (OpenWire 1).
func TestDecodeRefusesPieces(t *testing.T) {
	t.Parallel()
	for _, s := range []Settings{loose, tight, looseCache, tightCache} {
		for _, o := range benchObjects {
			whole := body(t, s, o.ds)
			for n := range whole {
				d, _ := pair(s)
				if ds, err := d.Decode(whole[:n]); ds != nil || err == nil {
					t.Fatalf("%+v %s: %d of %d bytes decode to %v", s, o.name, n, len(whole), ds)
				}
			}
		}
	}
}

// TestFirstFrame checks that a connection begins with a loose WireFormatInfo
// (OpenWire 2).
func TestFirstFrame(t *testing.T) {
	t.Parallel()
	info, err := DefaultWireFormat().Info()
	if err != nil {
		t.Fatal(err)
	}
	frame, err := NewEncoder().Append(nil, info)
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewDecoder().Decode(frame[4:])
	if err != nil || !cmp.Equal(got, DataStructure(info)) {
		t.Errorf("decoded to %v, %v", got, err)
	}
	for _, first := range []DataStructure{nil, &ShutdownInfo{}, &ConnectionInfo{}} {
		_, err := NewDecoder().Decode(body(t, loose, first))
		wantKind(t, err, message.ErrInvalid)
	}
}

// TestNullFrame checks that the null object is a frame (OpenWire 1).
func TestNullFrame(t *testing.T) {
	t.Parallel()
	for _, s := range []Settings{loose, tight, looseCache, tightCache} {
		d, e := pair(s)
		frame, err := e.Append(nil, nil)
		if err != nil || !bytes.Equal(frame, []byte{0, 0, 0, 1, 0}) {
			t.Errorf("encoded to %x, %v", frame, err)
		}
		if ds, err := d.Decode(frame[4:]); ds != nil || err != nil {
			t.Errorf("decoded to %v, %v", ds, err)
		}
	}
}

// TestCachedOfAnotherClass checks that a slot's object fits the field (OpenWire 5).
func TestCachedOfAnotherClass(t *testing.T) {
	t.Parallel()
	d, _ := pair(looseCache)
	if _, err := d.Decode(body(t, looseCache, &SessionInfo{SessionID: &SessionID{ConnectionID: "c", Value: 1}})); err != nil {
		t.Fatal(err)
	}
	_, err := d.Decode(join(head(CodeBrokerInfo), 0, int16(0)))
	wantKind(t, err, message.ErrInvalid)
}

// TestEmptyCacheSlot checks that a slot nobody has written is null, as in the
// reference (OpenWire 5).
func TestEmptyCacheSlot(t *testing.T) {
	t.Parallel()
	d, _ := pair(looseCache)
	got, err := d.Decode(join(head(CodeSessionInfo), 0, int16(700)))
	want := &SessionInfo{BaseCommand: BaseCommand{CommandID: 1}}
	if err != nil || !cmp.Equal(got, DataStructure(want)) {
		t.Errorf("decoded to %v, %v", got, err)
	}
}

// TestCachedBytesAreBounded checks that a peer cannot park its memory with us.
func TestCachedBytesAreBounded(t *testing.T) {
	t.Parallel()
	d, _ := pair(looseCache)
	name := strings.Repeat("x", 30_000)
	for slot := range 1024 {
		frame := join(head(CodeConnectionInfo), 1, int16(slot), 1, int(CodeConnectionID), 1, int16(len(name)), name, make([]byte, 10))
		if _, err := d.Decode(frame); err != nil {
			wantKind(t, err, message.ErrOverLimit)
			if kept := slot * len(name); kept > maxCacheBytes {
				t.Errorf("kept %d bytes, the limit is %d", kept, maxCacheBytes)
			}
			return
		}
	}
	t.Error("no limit")
}

// TestCachedBytesOfReplacedObjects checks that the bound counts what is there,
// not what was.
func TestCachedBytesOfReplacedObjects(t *testing.T) {
	t.Parallel()
	d, _ := pair(looseCache)
	name := strings.Repeat("x", 30_000)
	frame := join(head(CodeConnectionInfo), 1, int16(7), 1, int(CodeConnectionID), 1, int16(len(name)), name, make([]byte, 10))
	for range 1000 {
		if _, err := d.Decode(frame); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCachedObjectIsShared checks that a repeated id costs nothing.
func TestCachedObjectIsShared(t *testing.T) {
	t.Parallel()
	d, e := pair(tightCache)
	var ids [2]*ProducerID
	for i := range ids {
		frame, err := e.Append(nil, &ProducerInfo{ProducerID: &ProducerID{ConnectionID: "c", SessionID: 1, Value: 2}})
		if err != nil {
			t.Fatal(err)
		}
		ds, err := d.Decode(frame[4:])
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = ds.(*ProducerInfo).ProducerID
	}
	if ids[0] != ids[1] || *ids[0] != (ProducerID{ConnectionID: "c", SessionID: 1, Value: 2}) {
		t.Errorf("ids are %+v and %+v", ids[0], ids[1])
	}
}

// TestAliases checks that byte fields share the frame's memory and cannot grow
// into their neighbours.
func TestAliases(t *testing.T) {
	t.Parallel()
	m := benchMessage()
	frame := body(t, tight, m)
	d, _ := pair(tight)
	ds, err := d.Decode(frame)
	if err != nil {
		t.Fatal(err)
	}
	got := ds.(*Message)
	at := bytes.Index(frame, m.Content)
	if &got.Content[0] != &frame[at] || cap(got.Content) != len(got.Content) {
		t.Errorf("content of %d bytes, capacity %d, is a copy or can grow", len(got.Content), cap(got.Content))
	}
}
