package openwire

// The keys of what is logged.
const (
	keyAddress     = "addr"
	keyCount       = "n"
	keyConsumer    = "consumer"
	keyDestination = "dest"
	keyError       = "err"
	keyPart        = "part"
)
