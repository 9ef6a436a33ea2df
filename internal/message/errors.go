package message

import "errors"

// Kinds of failure. A protocol maps a kind to its own code and looks at nothing
// else. Test for a kind with errors.Is; add context by wrapping.
var (
	ErrNotFound    = errors.New("not found")
	ErrExists      = errors.New("already exists")
	ErrInvalid     = errors.New("invalid")     // the peer broke the protocol, or named something that cannot be
	ErrState       = errors.New("wrong state") // right request at the wrong time: unknown session, consumer in use
	ErrDenied      = errors.New("denied")
	ErrOverLimit   = errors.New("over limit")  // a named limit of ours would be passed
	ErrUnavailable = errors.New("unavailable") // try again later
	ErrCorrupt     = errors.New("corrupt")     // stored bytes are not what we wrote
)

// Kinds lists every kind of failure, so that a test can check that a protocol's
// table leaves none out.
func Kinds() []error {
	return []error{ErrNotFound, ErrExists, ErrInvalid, ErrState, ErrDenied, ErrOverLimit, ErrUnavailable, ErrCorrupt}
}
