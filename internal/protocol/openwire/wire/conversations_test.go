package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A conversation is a recording of ActiveMQ's client and broker.
type conversation struct {
	Negotiated map[string]map[string]any
	Streams    []struct {
		Conn  int
		From  string
		Bytes int
		SHA   string `json:"sha256"`
	}
	Events []struct {
		Conn       int
		From       string
		Hex        string
		Command    map[string]any
		Properties []any
	}
}

// TestConversations decodes and encodes what ActiveMQ's client and broker have
// said to each other, with what they have negotiated (OpenWire 2, 3.3).
func TestConversations(t *testing.T) {
	t.Parallel()
	names := vectorNames(t, func(name string) bool { return strings.HasPrefix(name, "conversations/") })
	if len(names) != 19 {
		t.Fatalf("%d conversations, want 19", len(names))
	}
	frames := 0
	for _, name := range names {
		t.Run(strings.TrimPrefix(name, "conversations/"), func(t *testing.T) {
			var c conversation
			loadVector(t, name, &c)
			frames += replay(t, c)
		})
	}
	if frames != 760 {
		t.Errorf("replayed %d frames, want 760", frames)
	}
}

// A direction is one half of a recorded connection.
type direction struct {
	dec    *Decoder
	enc    *Encoder
	format WireFormat
	stream bytes.Buffer
}

type endpoint struct {
	conn int
	from string
}

// replay runs both directions of all connections of c and counts the frames.
func replay(t *testing.T, c conversation) (frames int) {
	t.Helper()
	types := spec(t)
	dirs := map[endpoint]*direction{}
	for _, s := range c.Streams {
		dirs[endpoint{s.Conn, s.From}] = &direction{dec: NewDecoder(), enc: NewEncoder()}
	}
	for i, e := range c.Events {
		if e.Hex == "" {
			continue
		}
		d := dirs[endpoint{e.Conn, e.From}]
		if d.format.Version != 0 && !d.dec.negotiated {
			s := negotiated(t, dirs[endpoint{e.Conn, "client"}].format, dirs[endpoint{e.Conn, "broker"}].format)
			checkNegotiated(t, c.Negotiated[strconv.Itoa(e.Conn)], s)
			d.dec.Negotiated(s)
			d.enc.Negotiated(s)
		}
		got, err := d.dec.Decode(frameBody(t, e.Hex))
		if err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		if info, ok := got.(*WireFormatInfo); ok {
			if d.format, err = ParseWireFormat(info); err != nil {
				t.Fatal(err)
			}
		}
		want, err := fromJSON(types, any(e.Command))
		if err != nil {
			t.Fatal(err)
		}
		setDefaults(want, d.dec.r.version)
		if !reflect.DeepEqual(want, got) {
			t.Errorf("event %d (-want +got):\n%s", i, cmp.Diff(want, got, sameValues))
		}
		checkContents(t, vectorCase{Properties: e.Properties}, got)
		frame, err := d.enc.Append(nil, got)
		if err != nil || hex.EncodeToString(frame) != e.Hex {
			t.Fatalf("event %d, encoded\n got %x, %v\nwant %s", i, frame, err, e.Hex)
		}
		d.stream.Write(frame)
		frames++
	}
	for _, s := range c.Streams {
		d := dirs[endpoint{s.Conn, s.From}]
		sum := sha256.Sum256(d.stream.Bytes())
		if d.stream.Len() != s.Bytes || hex.EncodeToString(sum[:]) != s.SHA {
			t.Errorf("stream of %s %d has %d bytes, want %d", s.From, s.Conn, d.stream.Len(), s.Bytes)
		}
	}
	return frames
}

// checkNegotiated compares s with what the recording's maker has computed.
func checkNegotiated(t *testing.T, want map[string]any, s Settings) {
	t.Helper()
	got := map[string]any{
		"version":                          number(int64(s.Version)),
		"TightEncodingEnabled":             s.Tight,
		"CacheEnabled":                     s.Cache,
		"CacheSize":                        number(int64(s.CacheSize)),
		"StackTraceEnabled":                s.StackTrace,
		"TcpNoDelayEnabled":                s.TCPNoDelay,
		"SizePrefixDisabled":               false,
		"MaxFrameSize":                     number(s.MaxFrame),
		"MaxInactivityDuration":            number(s.MaxInactivityDuration.Milliseconds()),
		"MaxInactivityDurationInitalDelay": number(s.InitialDelay.Milliseconds()),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("negotiated (-want +got):\n%s", diff)
	}
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// negotiated computes the settings as both sides do and wants them to agree.
func negotiated(t *testing.T, client, broker WireFormat) Settings {
	t.Helper()
	s, err := Negotiate(client, broker)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Negotiate(broker, client)
	if err != nil || other != s {
		t.Fatalf("the sides disagree: %+v and %+v, %v", s, other, err)
	}
	return s
}
