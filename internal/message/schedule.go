package message

// A Schedule is when a message is to be sent on to its destination: what its
// producer asks for with ActiveMQ's properties AMQ_SCHEDULED_DELAY, _PERIOD,
// _REPEAT and _CRON (R-SCH-01), or with the one that HornetQ and Artemis have. Times are
// milliseconds.
type Schedule struct {
	Delay  int64  // before the first delivery; 0: none
	Period int64  // between deliveries; 0: none
	Repeat int32  // deliveries after the first, at least 0
	Cron   string // a line of five fields, local time; "": none
	// At is when it is to be delivered, since 1970; 0: the others say so. It goes with none
	// of them (_HQ_SCHED_DELIVERY, _AMQ_SCHED_DELIVERY, R-HQ-93).
	At int64
	// Properties are the message's Properties without those that made the schedule:
	// a delivered message must not be scheduled once more when it is forwarded (C08).
	Properties []byte
}
