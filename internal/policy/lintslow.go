package policy

import "github.com/nixiemq/nixie/internal/message"

// backlogs looks at what bounds the backlogs of slow consumers.
func backlogs(l *linter) {
	for _, p := range l.c.Policies {
		if p.Backlog == nil || p.Destination.Kind != message.Queue && p.Destination.Kind != message.TempQueue {
			continue
		}
		k := keyed{kind: "policy", pattern: p.Destination, source: p.Source}
		l.add("backlog-unused", SeverityNote, k.at(p.Settings, "pendingMessageLimitStrategy", "messageEvictionStrategy", "backlog.limit", "backlog.windows", "backlog.evict"),
			"nothing of a queue is ever evicted: this is for topic consumers without a durable subscription",
			"remove it, or write it in an entry for topics")
	}
}
