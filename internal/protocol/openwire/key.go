package openwire

// The keys of what is logged.
const (
	keyAddress     = "addr"
	keyDestination = "dest"
	keyError       = "err"
	keyPart        = "part"
)
