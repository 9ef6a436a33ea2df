package openwire

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

func propertiesOf(t *testing.T, entries ...wire.Entry) []byte {
	t.Helper()
	b, err := wire.AppendMap(nil, entries)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestScheduleIsReadFromTheProperties(t *testing.T) { // R-SCH-01
	t.Parallel()
	user := wire.Entry{Key: "user", Value: "x"}
	for name, tt := range map[string]struct {
		properties []wire.Entry
		want       *message.Schedule // without Properties
	}{
		"nothing of the kind":           {[]wire.Entry{user}, nil},
		"a long":                        {[]wire.Entry{{Key: "AMQ_SCHEDULED_DELAY", Value: int64(1000)}, user}, &message.Schedule{Delay: 1000}},
		"texts and ints are converted":  {[]wire.Entry{{Key: "AMQ_SCHEDULED_DELAY", Value: "1000"}, user, {Key: "AMQ_SCHEDULED_PERIOD", Value: int32(5)}}, &message.Schedule{Delay: 1000, Period: 5}},
		"all":                           {[]wire.Entry{{Key: "AMQ_SCHEDULED_CRON", Value: " 0 * * * * "}, user, {Key: "AMQ_SCHEDULED_DELAY", Value: int64(1)}, {Key: "AMQ_SCHEDULED_PERIOD", Value: int64(2)}, {Key: "AMQ_SCHEDULED_REPEAT", Value: int32(3)}}, &message.Schedule{Delay: 1, Period: 2, Repeat: 3, Cron: "0 * * * *"}},
		"a repeat alone is none":        {[]wire.Entry{{Key: "AMQ_SCHEDULED_REPEAT", Value: int32(3)}, user}, nil},
		"an empty cron line is none":    {[]wire.Entry{{Key: "AMQ_SCHEDULED_CRON", Value: ""}, user}, nil},
		"a delay of 0 is one":           {[]wire.Entry{user, {Key: "AMQ_SCHEDULED_DELAY", Value: int64(0)}}, &message.Schedule{}},
		"R-HQ-93 a time":                {[]wire.Entry{{Key: "_AMQ_SCHED_DELIVERY", Value: int64(1_000_001)}, user}, &message.Schedule{At: 1_000_001}},
		"a time as text":                {[]wire.Entry{user, {Key: "_AMQ_SCHED_DELIVERY", Value: "2000000"}}, &message.Schedule{At: 2_000_000}},
		"C08 a time that has passed":    {[]wire.Entry{{Key: "_AMQ_SCHED_DELIVERY", Value: int64(1_000_000)}, user}, nil},
		"a delay goes before a time":    {[]wire.Entry{{Key: "_AMQ_SCHED_DELIVERY", Value: int64(9_000_000)}, {Key: "AMQ_SCHEDULED_DELAY", Value: int64(4)}, user}, &message.Schedule{Delay: 4}},
		"a repeat does not repeat it":   {[]wire.Entry{{Key: "_AMQ_SCHED_DELIVERY", Value: int64(9_000_000)}, {Key: "AMQ_SCHEDULED_REPEAT", Value: int32(4)}, user}, &message.Schedule{At: 9_000_000}},
		"C08 a job's id is no obstacle": {[]wire.Entry{{Key: "AMQ_SCHEDULED_DELAY", Value: int64(4)}, user}, &message.Schedule{Delay: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := schedule(message.ID{}, propertiesOf(t, tt.properties...), 1_000_000, "_AMQ_SCHED_DELIVERY")
			if err != nil {
				t.Fatal(err)
			}
			if got != nil {
				if left := propertiesOf(t, user); !cmp.Equal(got.Properties, left) {
					t.Errorf("left are %q, want %q", got.Properties, left)
				}
				got.Properties = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestScheduleThatIsNoNumberIsRefused(t *testing.T) { // R-SCH-02
	t.Parallel()
	for name, e := range map[string]wire.Entry{
		"a word":                   {Key: "AMQ_SCHEDULED_DELAY", Value: "soon"},
		"below 0":                  {Key: "AMQ_SCHEDULED_PERIOD", Value: int64(-1)},
		"a fraction":               {Key: "AMQ_SCHEDULED_DELAY", Value: 1.5},
		"more than an int repeats": {Key: "AMQ_SCHEDULED_REPEAT", Value: int64(1 << 31)},
		"a time that is a word":    {Key: "_AMQ_SCHED_DELIVERY", Value: "soon"},
		"a number as cron line":    {Key: "AMQ_SCHEDULED_CRON", Value: int64(5)},
	} {
		_, err := schedule(message.ID{}, propertiesOf(t, e), 0, "_AMQ_SCHED_DELIVERY")
		if own, ok := errors.AsType[*javaError](err); !ok || own.class != classMessageFormat {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNothingIsLeftOfPropertiesThatOnlyScheduled(t *testing.T) {
	t.Parallel()
	s, err := schedule(message.ID{}, propertiesOf(t, wire.Entry{Key: "AMQ_SCHEDULED_DELAY", Value: int64(1)}), 0, "")
	if err != nil || s == nil || s.Properties != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestRepeatIsAnIntForClients(t *testing.T) { // what a browser of scheduled messages sees
	t.Parallel()
	var o outgoing
	m := &message.Message{ID: message.ID{Producer: "ID:a-1-1-1:1:1:1", Sequence: 1}, Added: map[string]any{scheduleRepeat: int64(3), scheduleDelay: int64(4)}}
	d, err := o.dispatch(&broker.Delivery{Consumer: "c:1:1", Message: m}, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.DecodeMap(d.Message.MarshalledProperties)
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Map{{Key: scheduleDelay, Value: int64(4)}, {Key: scheduleRepeat, Value: int32(3)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
