package records

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
)

func TestScheduleOfAPreparedSendIsKept(t *testing.T) {
	t.Parallel()
	for _, s := range []*message.Schedule{nil, {}, {Delay: 5000, Period: 1000, Repeat: 3, Cron: "0 1 * * *"}, {At: 1780000000250}} {
		r := reader{b: appendSchedule(nil, s)}
		if got := r.schedule(); !r.done() || !cmp.Equal(got, s) {
			t.Errorf("%+v came back as %+v", s, got)
		}
	}
}
