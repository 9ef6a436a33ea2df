package wire

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
)

// TestWireFormatRoundTrip checks that an announcement survives (OpenWire 3.1).
func TestWireFormatRoundTrip(t *testing.T) {
	t.Parallel()
	want := DefaultWireFormat()
	want.Host, want.ProviderVersion = "broker.example", "1.2.3"
	info, err := want.Info()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseWireFormat(info)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWireFormatTypes checks the exact types that Java casts to (OpenWire 3.1, trap 9).
func TestWireFormatTypes(t *testing.T) {
	t.Parallel()
	f := DefaultWireFormat()
	f.Host, f.ProviderVersion = "h", "v"
	info, err := f.Info()
	if err != nil {
		t.Fatal(err)
	}
	m, err := DecodeMap(info.MarshalledProperties)
	if err != nil {
		t.Fatal(err)
	}
	want := Map{
		{"TightEncodingEnabled", true},
		{"CacheEnabled", true},
		{"CacheSize", int32(1024)},
		{"StackTraceEnabled", true},
		{"TcpNoDelayEnabled", true},
		{"SizePrefixDisabled", false},
		{"MaxFrameSize", int64(math.MaxInt64)},
		{"MaxFrameSizeEnabled", true},
		{"MaxInactivityDuration", int64(30000)},
		{"MaxInactivityDurationInitalDelay", int64(10000)},
		{"Host", "h"},
		{"ProviderName", "NixieMQ"},
		{"ProviderVersion", "v"},
		{"PlatformDetails", "Go"},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWireFormatRefusesToAnnounce checks the values that hang Java peers
// (OpenWire 3.3, trap 1).
func TestWireFormatRefusesToAnnounce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		size    int32
		version int32
		ok      bool
	}{
		"no size":           {0, 12, true},
		"least size":        {100, 12, true},
		"most":              {32767, 1, true},
		"size of 1":         {1, 12, false},
		"size of 99":        {99, 12, false},
		"negative size":     {-1, 12, false},
		"beyond the slots":  {32768, 12, false},
		"version 0":         {1024, 0, false},
		"version of future": {1024, 13, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := DefaultWireFormat()
			f.CacheSize, f.Version = test.size, test.version
			_, err := f.Info()
			if test.ok != (err == nil) {
				t.Errorf("error %v", err)
			}
			if err != nil {
				wantKind(t, err, message.ErrInvalid)
			}
		})
	}
}

// TestParseWireFormat checks what peers announce, well and badly (OpenWire 2, 3).
func TestParseWireFormat(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		magic   [8]byte
		version int32
		props   Map
		raw     []byte
		want    WireFormat
		kind    error
	}{
		"no properties":         {magic: Magic, version: 3, want: WireFormat{Version: 3}},
		"version of the future": {magic: Magic, version: 99, want: WireFormat{Version: 99}},
		"wrong magic":           {magic: [8]byte{'A'}, version: 3, kind: message.ErrInvalid},
		"version 0":             {magic: Magic, kind: message.ErrInvalid},
		"null and unknown keys": {magic: Magic, version: 1, props: Map{{"Host", nil}, {"x", Map{}}}, want: WireFormat{Version: 1}},
		"int for a long":        {magic: Magic, version: 1, props: Map{{"MaxFrameSize", int32(7)}}, want: WireFormat{Version: 1, MaxFrameSize: 7}},
		"text for a number":     {magic: Magic, version: 1, props: Map{{"MaxFrameSize", "7"}}, kind: message.ErrInvalid},
		"number for a bool":     {magic: Magic, version: 1, props: Map{{"CacheEnabled", int32(1)}}, kind: message.ErrInvalid},
		"number for a text":     {magic: Magic, version: 1, props: Map{{"Host", int32(1)}}, kind: message.ErrInvalid},
		"negative cache size":   {magic: Magic, version: 1, props: Map{{"CacheSize", int32(-5)}}, want: WireFormat{Version: 1}},
		"huge cache size":       {magic: Magic, version: 1, props: Map{{"CacheSize", int32(1 << 30)}}, want: WireFormat{Version: 1, CacheSize: 32767}},
		"huge durations": {magic: Magic, version: 1, props: Map{{"MaxInactivityDuration", int64(math.MaxInt64)}, {"MaxInactivityDurationInitalDelay", int64(-1)}},
			want: WireFormat{Version: 1, MaxInactivityDuration: math.MaxInt64 / time.Millisecond * time.Millisecond}},
		"broken map":       {magic: Magic, version: 1, raw: []byte{0, 0, 0, 9}, kind: message.ErrInvalid},
		"too many entries": {magic: Magic, version: 1, props: make(Map, 4097), kind: message.ErrOverLimit},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info := &WireFormatInfo{Magic: test.magic, Version: test.version, MarshalledProperties: test.raw}
			if test.props != nil {
				var err error
				if info.MarshalledProperties, err = AppendMap(nil, test.props); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ParseWireFormat(info)
			if test.kind != nil {
				wantKind(t, err, test.kind)
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestNegotiate checks the rules of OpenWire 3.3, from both sides.
func TestNegotiate(t *testing.T) {
	t.Parallel()
	own := DefaultWireFormat()
	full := Settings{Version: 12, Tight: true, Cache: true, CacheSize: 1024, StackTrace: true, TCPNoDelay: true, MaxFrame: math.MaxInt64,
		MaxInactivityDuration: 30 * time.Second, InitialDelay: 10 * time.Second}
	tests := map[string]struct {
		peer func(*WireFormat)
		want func(*Settings)
	}{
		"same":                    {func(*WireFormat) {}, func(*Settings) {}},
		"older peer":              {func(f *WireFormat) { f.Version = 6 }, func(s *Settings) { s.Version = 6 }},
		"newer peer":              {func(f *WireFormat) { f.Version = 99 }, func(*Settings) {}},
		"no tight":                {func(f *WireFormat) { f.TightEncodingEnabled = false }, func(s *Settings) { s.Tight = false }},
		"no cache":                {func(f *WireFormat) { f.CacheEnabled = false }, func(s *Settings) { s.Cache = false }},
		"no stacks":               {func(f *WireFormat) { f.StackTraceEnabled = false }, func(s *Settings) { s.StackTrace = false }},
		"delay for small packets": {func(f *WireFormat) { f.TCPNoDelayEnabled = false }, func(s *Settings) { s.TCPNoDelay = false }},
		"peer without sizes":      {func(f *WireFormat) { f.SizePrefixDisabled = true }, func(*Settings) {}},
		"smaller frames":          {func(f *WireFormat) { f.MaxFrameSize = 1 << 20 }, func(s *Settings) { s.MaxFrame = 1 << 20 }},
		"no opinion on frames":    {func(f *WireFormat) { f.MaxFrameSize = 0 }, func(*Settings) {}},
		"smaller cache":           {func(f *WireFormat) { f.CacheSize = 130 }, func(s *Settings) { s.CacheSize = 130 }},
		"cache of no size":        {func(f *WireFormat) { f.CacheSize = 0 }, func(s *Settings) { s.CacheSize = 16383 }},
		"no monitor":              {func(f *WireFormat) { f.MaxInactivityDuration = 0 }, func(s *Settings) { s.MaxInactivityDuration = 0 }},
		"shorter delay":           {func(f *WireFormat) { f.InitialDelay = time.Second }, func(s *Settings) { s.InitialDelay = time.Second }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer, want := own, full
			test.peer(&peer)
			test.want(&want)
			got, err := Negotiate(own, peer)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
			got, err = Negotiate(peer, own)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("other side: error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestNegotiateRefuses checks what leads to no connection.
func TestNegotiateRefuses(t *testing.T) {
	t.Parallel()
	noSizes := DefaultWireFormat()
	noSizes.SizePrefixDisabled = true
	_, err := Negotiate(noSizes, noSizes)
	wantKind(t, err, message.ErrInvalid)
	_, err = Negotiate(WireFormat{}, WireFormat{})
	wantKind(t, err, message.ErrInvalid)
}

// TestLeastWireFormat checks a peer that announces nothing: loose, no cache, no
// monitor, frames of any size (OpenWire 3.2).
func TestLeastWireFormat(t *testing.T) {
	t.Parallel()
	got, err := Negotiate(DefaultWireFormat(), WireFormat{Version: 1})
	want := Settings{Version: 1, CacheSize: 16383, MaxFrame: math.MaxInt64}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	got, err = Negotiate(WireFormat{Version: 1}, WireFormat{Version: 1})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}
