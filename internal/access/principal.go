package access

import (
	"slices"
	"sync"

	"github.com/nixiemq/nixie/internal/message"
)

// maxAnswers is how many answers a principal remembers.
const maxAnswers = 1000

// A Principal is someone who was let in. It may be used by several goroutines.
// nil stands for the broker, or for everybody: it may do everything.
type Principal struct {
	control   *Control
	user      string
	anonymous bool

	mu      sync.Mutex
	asked   *rules // what the following was taken from
	known   bool   // the rules know the user
	groups  []string
	answers map[question]bool // so that a send need not read all entries
}

// A question is one that was asked.
type question struct {
	op Operation
	d  message.Destination
}

// User is the name; empty for nil.
func (p *Principal) User() string {
	if p == nil {
		return ""
	}
	return p.user
}

// In reports whether the principal has the group; nil has every group.
func (p *Principal) In(group string) bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return slices.Contains(p.groups, group)
}

// Administers reports whether the principal may act at the admin listener; nil may.
func (p *Principal) Administers() bool {
	return p == nil || slices.ContainsFunc(p.control.AdminGroups(), p.In)
}

// Check is nil where the principal may do op on d, else message.ErrDenied in
// ActiveMQ's words. Of a composite every part must be allowed. A pattern is allowed
// by an entry that is as wide or wider; one that is narrower allows nothing, as
// the consumer would get more than that.
func (p *Principal) Check(op Operation, d message.Destination) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	for _, part := range d.Parts() {
		if !p.may(op, part) {
			return denied(p.user, op, part)
		}
	}
	return nil
}

// refresh takes what holds now.
func (p *Principal) refresh() {
	r := p.control.holds.Load()
	if r == p.asked {
		return
	}
	p.asked, p.answers = r, map[question]bool{}
	p.groups, p.known = r.groupsOf(p.user, p.anonymous)
}

// may answers from memory, or asks the rules.
func (p *Principal) may(op Operation, d message.Destination) bool {
	rights := p.asked.rights
	if !p.known || rights == nil {
		return p.known
	}
	q := question{op, d}
	if answer, ok := p.answers[q]; ok {
		return answer
	}
	if len(p.answers) >= maxAnswers {
		clear(p.answers)
	}
	p.answers[q] = rights.Allows(p.groups, op, d)
	return p.answers[q]
}
