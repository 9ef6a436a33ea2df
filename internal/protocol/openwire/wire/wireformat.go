package wire

import (
	"fmt"
	"math"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// Magic is what WireFormatInfo.Magic must be.
var Magic = [8]byte{'A', 'c', 't', 'i', 'v', 'e', 'M', 'Q'}

// A WireFormat is what a peer announces about itself in its WireFormatInfo
// (OpenWire 3.1). The zero value of a field is what a missing property means.
type WireFormat struct {
	Version               int32
	TightEncodingEnabled  bool
	CacheEnabled          bool
	CacheSize             int32 // slots; 0: 16383. Never announce 1 to 99: it hangs Java peers
	StackTraceEnabled     bool
	TCPNoDelayEnabled     bool
	SizePrefixDisabled    bool  // for datagrams; never true here
	MaxFrameSize          int64 // bytes; 0: no opinion
	MaxFrameSizeEnabled   bool
	MaxInactivityDuration time.Duration // 0: no inactivity monitor
	InitialDelay          time.Duration // before the monitor's first check
	Host                  string        // client only
	ProviderName          string
	ProviderVersion       string
	PlatformDetails       string
}

// DefaultWireFormat is what we announce unless configured otherwise, the same
// as the reference where it has an influence on anything.
func DefaultWireFormat() WireFormat {
	return WireFormat{
		Version:               MaxVersion,
		TightEncodingEnabled:  true,
		CacheEnabled:          true,
		CacheSize:             1024,
		StackTraceEnabled:     true,
		TCPNoDelayEnabled:     true,
		MaxFrameSize:          math.MaxInt64,
		MaxFrameSizeEnabled:   true,
		MaxInactivityDuration: 30 * time.Second,
		InitialDelay:          10 * time.Second,
		ProviderName:          "NixieMQ",
		PlatformDetails:       "Go",
	}
}

// The keys of the property map.
const (
	keyTight          = "TightEncodingEnabled"
	keyCache          = "CacheEnabled"
	keyCacheSize      = "CacheSize"
	keyStackTrace     = "StackTraceEnabled"
	keyTCPNoDelay     = "TcpNoDelayEnabled"
	keyNoSizePrefix   = "SizePrefixDisabled"
	keyMaxFrame       = "MaxFrameSize"
	keyMaxFrameOn     = "MaxFrameSizeEnabled"
	keyMaxInactivity  = "MaxInactivityDuration"
	keyInitialDelay   = "MaxInactivityDurationInitalDelay" // spelt so on the wire
	keyHost           = "Host"
	keyProviderName   = "ProviderName"
	keyProviderVer    = "ProviderVersion"
	keyPlatform       = "PlatformDetails"
	maxWireFormatKeys = 4096 // as the reference
)

// Info is the command that announces f. A cache size of 1 to 99 or above 32767,
// or a version out of range, is message.ErrInvalid.
func (f WireFormat) Info() (*WireFormatInfo, error) {
	if f.CacheSize < 0 || f.CacheSize > 0 && f.CacheSize < reserveSlots || f.CacheSize > math.MaxInt16 {
		return nil, fmt.Errorf("wire format: cache size %d: %w", f.CacheSize, message.ErrInvalid)
	}
	if f.Version < MinVersion || f.Version > MaxVersion {
		return nil, fmt.Errorf("wire format: version %d: %w", f.Version, message.ErrInvalid)
	}
	m := Map{
		{keyTight, f.TightEncodingEnabled},
		{keyCache, f.CacheEnabled},
		{keyCacheSize, f.CacheSize},
		{keyStackTrace, f.StackTraceEnabled},
		{keyTCPNoDelay, f.TCPNoDelayEnabled},
		{keyNoSizePrefix, f.SizePrefixDisabled},
		{keyMaxFrame, f.MaxFrameSize},
		{keyMaxFrameOn, f.MaxFrameSizeEnabled},
		{keyMaxInactivity, f.MaxInactivityDuration.Milliseconds()},
		{keyInitialDelay, f.InitialDelay.Milliseconds()},
	}
	for _, e := range []Entry{{keyHost, f.Host}, {keyProviderName, f.ProviderName}, {keyProviderVer, f.ProviderVersion}, {keyPlatform, f.PlatformDetails}} {
		if e.Value != "" {
			m = append(m, e)
		}
	}
	props, err := AppendMap(nil, m)
	if err != nil {
		return nil, fmt.Errorf("wire format: %w", err)
	}
	return &WireFormatInfo{Magic: Magic, Version: f.Version, MarshalledProperties: props}, nil
}

// ParseWireFormat reads a peer's announcement. A wrong magic, a version below 1,
// and a value of the wrong type are message.ErrInvalid; unknown properties are
// passed over. Numbers may be int or long.
func ParseWireFormat(info *WireFormatInfo) (f WireFormat, err error) {
	f = WireFormat{Version: info.Version}
	if info.Magic != Magic {
		return f, fmt.Errorf("wire format: magic %q: %w", info.Magic[:], message.ErrInvalid)
	}
	if info.Version < MinVersion {
		return f, fmt.Errorf("wire format: version %d: %w", info.Version, message.ErrInvalid)
	}
	m, err := DecodeMap(info.MarshalledProperties)
	if err != nil {
		return f, fmt.Errorf("wire format: %w", err)
	}
	if len(m) > maxWireFormatKeys {
		return f, fmt.Errorf("wire format: %d properties: %w", len(m), message.ErrOverLimit)
	}
	fields := f.fields()
	for _, e := range m {
		if !set(fields[e.Key], e.Value) {
			return f, fmt.Errorf("wire format: %s is a %T: %w", e.Key, e.Value, message.ErrInvalid)
		}
	}
	return f, nil
}

// fields gives the places of all properties that are known.
func (f *WireFormat) fields() map[string]any {
	return map[string]any{
		keyTight:         &f.TightEncodingEnabled,
		keyCache:         &f.CacheEnabled,
		keyCacheSize:     &f.CacheSize,
		keyStackTrace:    &f.StackTraceEnabled,
		keyTCPNoDelay:    &f.TCPNoDelayEnabled,
		keyNoSizePrefix:  &f.SizePrefixDisabled,
		keyMaxFrame:      &f.MaxFrameSize,
		keyMaxFrameOn:    &f.MaxFrameSizeEnabled,
		keyMaxInactivity: &f.MaxInactivityDuration,
		keyInitialDelay:  &f.InitialDelay,
		keyHost:          &f.Host,
		keyProviderName:  &f.ProviderName,
		keyProviderVer:   &f.ProviderVersion,
		keyPlatform:      &f.PlatformDetails,
	}
}

// set puts a value into a field and reports whether it has a fitting type. Null
// and properties that are not known are passed over.
func set(field, v any) (ok bool) {
	if v == nil {
		return true
	}
	switch p := field.(type) {
	case *bool:
		*p, ok = v.(bool)
	case *string:
		*p, ok = v.(string)
	case *int32: // the cache size, which must fit a slot number
		var n int64
		n, ok = integer(v)
		*p = int32(min(max(n, 0), math.MaxInt16))
	case *int64:
		*p, ok = integer(v)
	case *time.Duration:
		var ms int64
		ms, ok = integer(v)
		*p = milliseconds(ms)
	default:
		ok = true
	}
	return ok
}

func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int32:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

// milliseconds is ms as a duration, at most the longest there is and at least 0.
func milliseconds(ms int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Millisecond)
	return time.Duration(min(max(ms, 0), most)) * time.Millisecond
}

// Negotiate computes what two peers have agreed on from what each has announced
// (OpenWire 3.3). It gives both the same result. A peer that wants no size
// prefixes gets message.ErrInvalid if own wants none either.
func Negotiate(own, peer WireFormat) (Settings, error) {
	if own.SizePrefixDisabled && peer.SizePrefixDisabled {
		return Settings{}, fmt.Errorf("negotiate: frames without a size: %w", message.ErrInvalid)
	}
	s := Settings{
		Version:               int(minPositive(int64(own.Version), int64(peer.Version))),
		Tight:                 own.TightEncodingEnabled && peer.TightEncodingEnabled,
		Cache:                 own.CacheEnabled && peer.CacheEnabled,
		CacheSize:             int(min(own.CacheSize, peer.CacheSize)),
		StackTrace:            own.StackTraceEnabled && peer.StackTraceEnabled,
		TCPNoDelay:            own.TCPNoDelayEnabled && peer.TCPNoDelayEnabled,
		MaxFrame:              minPositive(own.MaxFrameSize, peer.MaxFrameSize),
		MaxInactivityDuration: min(own.MaxInactivityDuration, peer.MaxInactivityDuration),
		InitialDelay:          min(own.InitialDelay, peer.InitialDelay),
	}
	if s.Version < MinVersion || s.Version > MaxVersion {
		return Settings{}, fmt.Errorf("negotiate: version %d: %w", s.Version, message.ErrInvalid)
	}
	if s.CacheSize == 0 {
		s.CacheSize = maxCacheSize
	}
	if s.MaxFrame <= 0 {
		s.MaxFrame = math.MaxInt64
	}
	return s, nil
}

// minPositive is the smaller of two values of which those below 1 mean "no
// opinion".
func minPositive(a, b int64) int64 {
	if 0 < a && a < b || b <= 0 {
		return a
	}
	return b
}
