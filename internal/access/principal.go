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
	user   string
	groups []string
	rules  *Authorization // nil: everything is allowed

	mu      sync.Mutex
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
func (p *Principal) In(group string) bool { return p == nil || slices.Contains(p.groups, group) }

// Check is nil where the principal may do op on d, else message.ErrDenied in
// ActiveMQ's words. Of a composite every part must be allowed. A pattern is allowed
// by an entry that is as wide or wider; one that is narrower allows nothing, as
// the consumer would get more than that.
func (p *Principal) Check(op Operation, d message.Destination) error {
	if p == nil || p.rules == nil {
		return nil
	}
	for _, part := range d.Parts() {
		if !p.may(op, part) {
			return denied(p.user, op, part)
		}
	}
	return nil
}

// may answers from memory, or asks the rules.
func (p *Principal) may(op Operation, d message.Destination) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := question{op, d}
	if answer, ok := p.answers[q]; ok {
		return answer
	}
	if len(p.answers) >= maxAnswers {
		clear(p.answers)
	}
	p.answers[q] = p.rules.allows(p.groups, op, d)
	return p.answers[q]
}
