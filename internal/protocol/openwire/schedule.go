package openwire

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// The properties with which a producer asks for a message to be delivered later
// (R-SCH-01). The JMS 2.0 delivery delay of clients that have one comes as the first.
const (
	schedulePrefix = "AMQ_SCHEDULED_"
	scheduleDelay  = broker.ScheduleDelay
	schedulePeriod = broker.SchedulePeriod
	scheduleRepeat = broker.ScheduleRepeat
	scheduleCron   = broker.ScheduleCron
)

// classMessageFormat is what Java's own check of these properties throws.
const classMessageFormat = "javax.jms.MessageFormatException"

// schedule reads what a message's properties ask for at now, Unix milliseconds; nil where
// they ask for nothing. A scheduledJobId, left over from an earlier delay, changes nothing
// (C08). at is a property that says when to deliver it; "": there is none of the kind.
func schedule(id fmt.Stringer, properties []byte, now int64, at string) (*message.Schedule, error) {
	if !bytes.Contains(properties, []byte(schedulePrefix)) { // as nearly always
		if at != "" && bytes.Contains(properties, []byte(at)) {
			return scheduleAt(id, properties, now, at)
		}
		return nil, nil
	}
	var s message.Schedule
	asked := false
	for _, p := range []struct {
		name string
		most int64
		set  func(int64)
	}{
		{scheduleDelay, math.MaxInt64, func(n int64) { s.Delay, asked = n, true }},
		{schedulePeriod, math.MaxInt64, func(n int64) { s.Period, asked = n, true }},
		{scheduleRepeat, math.MaxInt32, func(n int64) { s.Repeat = int32(n) }},
	} {
		v, ok, err := wire.LookupProperty(properties, p.name)
		if err != nil {
			return nil, exception(classJMS, err)
		}
		if !ok || v == nil {
			continue
		}
		n, ok := wholeNumber(v)
		if !ok || n < 0 || n > p.most {
			return nil, exceptionf(classMessageFormat, "message %s: property %s is %v, want a whole number from 0 to %d", id, p.name, v, p.most)
		}
		p.set(n)
	}
	if v, ok, err := wire.LookupProperty(properties, scheduleCron); err != nil {
		return nil, exception(classJMS, err)
	} else if ok && v != nil {
		line, isText := v.(string)
		if !isText {
			return nil, exceptionf(classMessageFormat, "message %s: property %s is %v, want a text", id, scheduleCron, v)
		}
		if s.Cron = strings.TrimSpace(line); s.Cron != "" {
			asked = true
		}
	}
	if !asked {
		return scheduleAt(id, properties, now, at)
	}
	return scheduled(properties, &s, scheduleDelay, schedulePeriod, scheduleRepeat, scheduleCron, at)
}

// scheduleAt reads the time at which a message is to be delivered (R-HQ-93). One that has
// passed, as one that is left over from an earlier send, asks for nothing.
func scheduleAt(id fmt.Stringer, properties []byte, now int64, at string) (*message.Schedule, error) {
	v, ok, err := wire.LookupProperty(properties, at)
	if err != nil {
		return nil, exception(classJMS, err)
	}
	if at == "" || !ok || v == nil {
		return nil, nil
	}
	due, ok := wholeNumber(v)
	switch {
	case !ok:
		return nil, exceptionf(classMessageFormat, "message %s: property %s is %v, want a time in milliseconds since 1970", id, at, v)
	case due <= now:
		return nil, nil
	}
	return scheduled(properties, &message.Schedule{At: due}, at, scheduleRepeat)
}

// scheduled completes a schedule with what is left of the message's properties without
// those that made it.
func scheduled(properties []byte, s *message.Schedule, by ...string) (*message.Schedule, error) {
	var err error
	if s.Properties, err = wire.DropProperties(properties, by...); err != nil {
		return nil, exception(classJMS, err)
	}
	return s, nil
}

// wholeNumber is a property's value as ActiveMQ converts it: any whole number, or
// the text of one.
func wholeNumber(v any) (int64, bool) {
	switch v := v.(type) {
	case int8:
		return int64(v), true
	case int16:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		return n, err == nil
	}
	return 0, false
}
