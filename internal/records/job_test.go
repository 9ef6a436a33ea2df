package records

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
)

func TestJobsAreFoundByTimeAndByID(t *testing.T) {
	t.Parallel()
	shard := openShard(t)
	r := open(t, shard)
	m := fullMessage()
	m.Body = make([]byte, 3*MinChunkBytes) // in pieces
	var jobs []Job
	for i, due := range []int64{3000, 1000, 2000, 1000} {
		j := fullJob(r.Next(1))
		j.ID, j.Due, j.SizeBytes = fmt.Sprintf("job-%d", i), due, int32(m.SizeBytes())
		jobs = append(jobs, j)
		commit(t, r, func(b *Batch) {
			b.PutMessage(j.Sequence, m, 1)
			b.PutJob(&j)
		})
	}
	auditShard(t, shard, false)
	r = open(t, shard)
	if n := r.Jobs(); n.Messages != 4 || n.Bytes != 4*int64(m.SizeBytes()) {
		t.Errorf("%+v are counted after a start", n)
	}
	times := func(after JobTime, until int64, n int) (is []int) {
		t.Helper()
		all, err := r.JobTimes(after, until, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range all {
			for i := range jobs {
				if jobs[i].Sequence == at.Sequence && jobs[i].Due == at.Due {
					is = append(is, i)
				}
			}
		}
		return is
	}
	for name, tt := range map[string]struct {
		after JobTime
		until int64
		n     int
		want  []int
	}{
		"all, by time":        {JobTime{}, math.MaxInt64, 9, []int{1, 3, 2, 0}},
		"so many":             {JobTime{}, math.MaxInt64, 2, []int{1, 3}},
		"behind one":          {JobTime{1000, jobs[1].Sequence}, math.MaxInt64, 9, []int{3, 2, 0}},
		"until a time":        {JobTime{}, 2000, 9, []int{1, 3, 2}},
		"until before behind": {JobTime{2000, 0}, 1000, 9, nil},
	} {
		if diff := cmp.Diff(tt.want, times(tt.after, tt.until, tt.n)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	got, err := r.JobByID("job-2")
	if diff := cmp.Diff(jobs[2], got); diff != "" || err != nil {
		t.Errorf("by id: %v (-want +got):\n%s", err, diff)
	}
	if got, err := r.JobMessage(&got); err != nil || !cmp.Equal(m, got, cmpBytes) {
		t.Errorf("its message: %v, %v", got, err)
	}
	moved := jobs[1]
	moved.Due, moved.Fired = 9000, 3
	commit(t, r, func(b *Batch) { b.MoveJob(&moved, jobs[1].Due); b.DropJob(&jobs[3]) })
	jobs[1] = moved
	if diff := cmp.Diff([]int{2, 0, 1}, times(JobTime{}, math.MaxInt64, 9)); diff != "" {
		t.Errorf("after one has moved and one has gone (-want +got):\n%s", diff)
	}
	if _, err := r.JobByID("job-3"); !errors.Is(err, message.ErrNotFound) {
		t.Errorf("the one that has gone: %v", err)
	}
	auditShard(t, shard, false)
	for _, i := range []int{0, 1, 2} {
		commit(t, r, func(b *Batch) { b.DropJob(&jobs[i]) })
	}
	a := auditShard(t, shard, false)
	if r.Jobs() != (Count{}) || len(a.bodies)+len(a.pieces) != 0 {
		t.Errorf("%+v are left, %d bodies", r.Jobs(), len(a.bodies))
	}
}

func TestJobOfAStagedMessage(t *testing.T) { // a large send in a transaction
	t.Parallel()
	shard := openShard(t)
	r := open(t, shard)
	m := fullMessage()
	j := fullJob(r.Next(1))
	j.SizeBytes = int32(m.SizeBytes())
	commit(t, r, func(b *Batch) { b.StageMessage("TX:1", j.Sequence, m) })
	commit(t, r, func(b *Batch) { b.Unstage("TX:1", j.Sequence); b.PutJob(&j) })
	auditShard(t, shard, false)
	if got, err := r.JobMessage(&j); err != nil || !cmp.Equal(m, got, cmpBytes) {
		t.Errorf("its message: %v, %v", got, err)
	}
}
