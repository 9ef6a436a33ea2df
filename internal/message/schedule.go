package message

// A Schedule is when a message is to be sent on to its destination: what its
// producer asks for with ActiveMQ's properties AMQ_SCHEDULED_DELAY, _PERIOD,
// _REPEAT and _CRON (R-SCH-01). Times are milliseconds.
type Schedule struct {
	Delay  int64  // before the first delivery; 0: none
	Period int64  // between deliveries; 0: none
	Repeat int32  // deliveries after the first, at least 0
	Cron   string // a line of five fields, local time; "": none
	// Properties are the message's Properties without those that made the schedule:
	// a delivered message must not be scheduled once more when it is forwarded (C08).
	Properties []byte
}
