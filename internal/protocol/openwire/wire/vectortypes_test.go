package wire

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nixiemq/nixie/internal/message"
)

// sameValues compares decoded objects and values: NaN equals NaN, and a null
// array is not an empty one.
var sameValues = cmp.Options{cmpopts.EquateNaNs()}

func isTypeVector(name string) bool {
	return name[0] >= 'A' && name[0] <= 'Z'
}

// TestTypeVectors decodes and encodes every frame of every data type (OpenWire
// 4, 5 and 7).
func TestTypeVectors(t *testing.T) {
	t.Parallel()
	frames := 0
	for _, name := range vectorNames(t, isTypeVector) {
		var file typeVectors
		loadVector(t, name, &file)
		for _, c := range file.Cases {
			t.Run(file.Type+"/"+c.Name, func(t *testing.T) {
				for version, encodings := range c.Frames {
					for encoding, hexes := range encodings {
						frames += len(hexes)
						checkFrames(t, c, c.settings(t, version, encoding), hexes)
					}
				}
			})
		}
	}
	if frames != 2786 {
		t.Errorf("checked %d frames, want the 2,786 that there are", frames)
	}
}

// checkFrames decodes the frames in their order to the fields of c, and encodes
// the fields to the frames.
func checkFrames(t *testing.T, c vectorCase, s Settings, hexes []string) {
	t.Helper()
	types := spec(t)
	d, e := pair(s)
	fields := restrict(types, c.Fields, s.Version)
	want, err := fromJSON(types, fields)
	if err != nil {
		t.Fatal(err)
	}
	setDefaults(want, s.Version)
	for i, h := range hexes {
		got, err := d.Decode(frameBody(t, h))
		if err != nil {
			t.Errorf("%+v frame %d: %v", s, i, err)
			return
		}
		if !reflect.DeepEqual(want, got) { // cmp takes too long to be asked each time
			t.Errorf("%+v frame %d, decoded (-want +got):\n%s", s, i, cmp.Diff(want, got, sameValues))
		}
		frame, err := e.Append(nil, want)
		if err != nil {
			t.Errorf("%+v frame %d: %v", s, i, err)
			return
		}
		if !bytes.Equal(frame, unhex(t, h)) {
			t.Errorf("%+v frame %d, encoded\n got %x\nwant %s", s, i, frame, h)
		}
		if s.Version == MaxVersion && i == 0 {
			checkContents(t, c, got)
		}
	}
}

// setDefaults gives the fields that version does not have the values of
// OpenWire 16.
func setDefaults(ds DataStructure, version int) {
	switch x := ds.(type) {
	case *Message:
		setDefaults(x.DataStructure, version)
	case *DataResponse:
		setDefaults(x.Data, version)
	case *MessageDispatch:
		if x.Message != nil {
			setDefaults(x.Message, version)
		}
	case *RemoveInfo:
		if version < 5 {
			x.LastDeliveredSequenceID = LastDeliveredUnknown
		}
	case *ConnectionInfo:
		if version < 2 {
			x.ClientMaster = true
		}
	case *ConnectionControl:
		if version < 6 {
			x.ConnectedBrokers, x.ReconnectTo = NewText(""), NewText("")
		}
	}
}

// checkContents decodes body and properties of a message and encodes them
// again (OpenWire 6 and 7).
func checkContents(t *testing.T, c vectorCase, ds DataStructure) {
	t.Helper()
	if dispatch, ok := ds.(*MessageDispatch); ok && dispatch.Message != nil {
		ds = dispatch.Message
	}
	m, ok := ds.(*Message)
	if !ok {
		return
	}
	if c.Body != nil {
		checkBody(t, c, m)
	}
	if c.Properties != nil {
		checkProperties(t, mapFromJSON(any(c.Properties)), m.MarshalledProperties)
	}
}

func checkBody(t *testing.T, c vectorCase, m *Message) {
	t.Helper()
	got, err := DecodeBody(m.Kind, m.Content, m.Compressed, 1<<20)
	if err != nil {
		t.Errorf("body: %v", err)
		return
	}
	want, ok := bodyFromJSON(m.Kind, c.Body)
	if !ok {
		if !bytes.HasPrefix(got.Bytes, []byte{0xac, 0xed, 0, 5}) && m.Content != nil {
			t.Errorf("object body begins with %x", got.Bytes[:4])
		}
		return
	}
	if diff := cmp.Diff(want, got, sameValues, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if m.Compressed || m.Content == nil {
		return
	}
	var again []byte
	switch m.Kind {
	case message.TextBody:
		again = AppendTextBody([]byte{}, got.Text.Value)
	case message.StreamBody:
		again, err = AppendStreamBody(nil, got.Stream)
	case message.MapBody:
		again, err = AppendMapBody(nil, got.Map)
	default:
		return
	}
	if err != nil || !bytes.Equal(again, m.Content) && !hasOddStrings(got.Map) {
		t.Errorf("body, encoded\n got %x, %v\nwant %x", again, err, m.Content)
	}
}

func checkProperties(t *testing.T, want Map, props []byte) {
	t.Helper()
	got, err := DecodeMap(props)
	if err != nil {
		t.Errorf("properties: %v", err)
		return
	}
	if diff := cmp.Diff(want, got, sameValues); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	again, err := AppendMap(nil, got)
	if err != nil || !bytes.Equal(again, props) && !hasOddStrings(got) {
		t.Errorf("properties, encoded\n got %x, %v\nwant %x", again, err, props)
	}
	if back, err := DecodeMap(again); err != nil || !cmp.Equal(got, back, sameValues) {
		t.Errorf("properties do not survive: %v, %v", back, err)
	}
	for _, e := range want {
		v, ok, err := LookupProperty(props, e.Key)
		if err != nil || !ok || !cmp.Equal(v, e.Value, sameValues) {
			t.Errorf("LookupProperty(%q) = %v, %t, %v, want %v", e.Key, v, ok, err, e.Value)
		}
	}
}

// hasOddStrings reports whether m has a string of those that we write otherwise
// than Java does: Java cannot read back what it writes (OpenWire 6.3).
func hasOddStrings(m Map) bool {
	for _, e := range m {
		s, ok := e.Value.(string)
		if ok && (strings.Contains(s, "\x00") || utf16Len(s) != len([]rune(s))) {
			return true
		}
	}
	return false
}

// TestStringVectors checks strings at their limits (OpenWire 4.5, 6.3).
func TestStringVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		Cases []struct{ Value, Tight, Loose string }
	}
	loadVector(t, "strings.json", &file)
	for _, c := range file.Cases {
		want := &BrokerID{Value: unmark(c.Value)}
		checkBothWays(t, want, Settings{Version: 12, Tight: true}, c.Tight)
		checkBothWays(t, want, Settings{Version: 12}, c.Loose)
	}
}

// TestLongVectors checks longs at their limits (OpenWire 4.4).
func TestLongVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		Cases []struct {
			Value        int64
			Tight, Loose string
		}
	}
	loadVector(t, "longs.json", &file)
	for _, c := range file.Cases {
		want := &SessionID{ConnectionID: "c", Value: c.Value}
		checkBothWays(t, want, Settings{Version: 12, Tight: true}, c.Tight)
		checkBothWays(t, want, Settings{Version: 12}, c.Loose)
	}
}

// TestBooleanVectors checks the three forms of the boolean stream (OpenWire 4.2).
func TestBooleanVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		Cases []struct {
			N     int
			Tight string
		}
	}
	loadVector(t, "booleans.json", &file)
	for _, c := range file.Cases {
		want := &DataArrayResponse{Data: make([]DataStructure, c.N)}
		checkBothWays(t, want, Settings{Version: 12, Tight: true}, c.Tight)
	}
}

func checkBothWays(t *testing.T, want DataStructure, s Settings, h string) {
	t.Helper()
	d, e := pair(s)
	got, err := d.Decode(frameBody(t, h))
	if err != nil {
		t.Errorf("%s: %v", h, err)
		return
	}
	if diff := cmp.Diff(want, got, sameValues); diff != "" {
		t.Errorf("%s (-want +got):\n%s", h, diff)
	}
	frame, err := e.Append(nil, want)
	if err != nil || !bytes.Equal(frame, unhex(t, h)) {
		t.Errorf("encoded\n got %x, %v\nwant %s", frame, err, h)
	}
}

// TestCacheVectors runs small caches through eviction and wrap-around (OpenWire 5).
func TestCacheVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		Sequences []struct {
			Version   int
			Encoding  string
			CacheSize int
			Frames    []struct {
				Hex    string
				Fields map[string]any
			}
		}
	}
	loadVector(t, "cache.json", &file)
	types := spec(t)
	for _, q := range file.Sequences {
		s := encodingSettings(q.Version, q.Encoding)
		s.CacheSize = q.CacheSize
		d, e := pair(s)
		for i, f := range q.Frames {
			want, err := fromJSON(types, f.Fields)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Decode(frameBody(t, f.Hex))
			if err != nil {
				t.Fatalf("%+v frame %d: %v", s, i, err)
			}
			if !reflect.DeepEqual(want, got) {
				t.Fatalf("%+v frame %d (-want +got):\n%s", s, i, cmp.Diff(want, got, sameValues))
			}
			frame, err := e.Append(nil, want)
			if err != nil || !bytes.Equal(frame, unhex(t, f.Hex)) {
				t.Fatalf("%+v frame %d, encoded\n got %x, %v\nwant %s", s, i, frame, err, f.Hex)
			}
		}
	}
}

// TestInvalidVectors checks frames that must be refused (OpenWire 14).
func TestInvalidVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		Cases []struct {
			Name          string
			Version       int
			Encoding, Hex string
		}
	}
	loadVector(t, "invalid.json", &file)
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			d, _ := pair(encodingSettings(c.Version, c.Encoding))
			frame := unhex(t, c.Hex)
			ds, err := d.Decode(frame[4:])
			wantKind(t, err, message.ErrInvalid)
			if ds != nil {
				t.Errorf("decoded to %v", ds)
			}
		})
	}
}
