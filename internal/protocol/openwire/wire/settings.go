package wire

import "time"

// The versions of the protocol that the package speaks.
const (
	MinVersion = 1
	MaxVersion = 12
)

// Settings are what two peers have agreed on; see Negotiate. The zero value is
// not useful: Version is 1 to 12.
type Settings struct {
	Version    int
	Tight      bool  // tight encoding instead of loose
	Cache      bool  // the object cache is on
	CacheSize  int   // slots of the cache, up to 32767; 0: 16383
	StackTrace bool  // throwables carry stack and cause
	TCPNoDelay bool  // set TCP_NODELAY
	MaxFrame   int64 // largest size of a frame in bytes that either side may send

	// MaxInactivityDuration is the silence after which a peer is dead, 0: no
	// inactivity monitor (OpenWire 3.4).
	MaxInactivityDuration time.Duration
	// InitialDelay is the time before the monitor's first check.
	InitialDelay time.Duration
}
