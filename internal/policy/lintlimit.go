package policy

import (
	"slices"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
)

// producerLimits looks at what stops producers.
func producerLimits(l *linter) {
	for _, p := range l.c.Policies {
		l.limit(keyed{kind: "policy", pattern: p.Destination, source: p.Source}, p.Destination, p.Limits, p.Settings)
	}
	if d := l.c.DefaultPolicy; d != nil {
		l.limit(keyed{kind: "policy", source: d.Source}, message.Destination{Kind: message.Topic}, d.Limits, d.Settings)
	}
	if l.c.Addresses != nil {
		for _, p := range l.c.Addresses.Patterns() {
			e := l.resolver.Policy(p.Sample)
			l.limit(keyed{kind: "address-setting", name: p.Match, source: p.Source}, p.Sample, e.Limits, e.Settings)
		}
	}
}

func (l *linter) limit(k keyed, d message.Destination, limits *config.Limits, settings []config.Setting) {
	switch {
	case limits == nil:
	case d.Kind == message.Queue && !limits.Queues && (limits.MaxBytes > 0 || limits.MaxMessages > 0):
		l.add("limit-unused", SeverityNote, k.at(settings, "memoryLimit", "limits.queues"),
			"the limit stops nobody: what waits in the queue is in the store, as in ActiveMQ without a vmQueueCursor",
			"write <pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy>, or queues: true, where producers are to be stopped")
	case limits.OnFull == config.Drop:
		l.add("drop-when-full", SeverityWarning, k.at(settings, "limits.onFull", "address-full-policy"),
			"what is sent to a destination that is full is discarded: it is gone", "let producers wait (block), or refuse their messages (fail)")
	}
}

// at is the place of the first of some settings that its file gives.
func (k keyed) at(settings []config.Setting, names ...string) *keyed {
	if i := slices.IndexFunc(settings, func(s config.Setting) bool { return slices.Contains(names, s.Name) }); i >= 0 {
		k.source = settings[i].Source
	}
	return &k
}
