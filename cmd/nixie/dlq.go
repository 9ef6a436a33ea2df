package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

// defaultDeadLetterQueue is where dead letters go unless a policy says otherwise.
const defaultDeadLetterQueue = "ActiveMQ.DLQ"

func dlqCommand(e *env) *cobra.Command {
	c := group("dlq", "See dead letters, and bring them back", `
See the dead letters of a running broker, why each of them died, and bring them back to
where they failed.

A message becomes a dead letter when its client has given it up (after as many
deliveries as its RedeliveryPolicy allows), when its time to live has passed, or when it
cannot be delivered at all. It lies in ActiveMQ.DLQ, unless a policy names another
queue, with the story of all its attempts.

To copy dead letters, to have them out of the way, or to remove them for good, see
'nixie queue copy', 'move' and 'purge'.`, `
  nixie dlq list                             which queues hold dead letters
  nixie dlq show                             those in ActiveMQ.DLQ, a line each
  nixie dlq show ActiveMQ.DLQ ID:app-1:1:1:7 everything about one
  nixie dlq redrive --id ID:app-1:1:1:7      bring one back
  nixie dlq redrive DLQ.ORDERS --limit 10    bring the oldest ten back
  nixie dlq redrive DLQ.ORDERS --all         bring all of a queue back`)
	c.AddCommand(dlqListCommand(e), dlqShowCommand(e), dlqRedriveCommand(e))
	return c
}

const dlqListLong = `
List the queues that hold dead letters, and those with messages to which dead letters go:
how many messages each has, how long ago the first of its dead letters died, and where
they failed.

To tell, the first 100 messages of every queue are looked at. Where a queue has more,
the numbers behind the places are those of the first 100.`

func dlqListCommand(e *env) *cobra.Command {
	var r *remote
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the queues that hold dead letters",
		Long:    strings.TrimSpace(dlqListLong),
		Example: "  nixie dlq list\n  nixie dlq list --json | jq '.queues[].messages'",
		Args:    arguments(0),
		RunE: func(c *cobra.Command, _ []string) error {
			var all admin.DeadLetterQueues
			if err := r.get(c.Context(), "/api/v1/dead-letter-queues", &all); err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, all)
			}
			return printDeadLetterQueues(e, all.Queues)
		},
	}
	r = remoteFlags(e, c)
	return c
}

func printDeadLetterQueues(e *env, queues []admin.Queue) error {
	if len(queues) == 0 {
		_, err := fmt.Fprintln(e.out, "there are no dead letters")
		return err
	}
	t := newTable(e.out, "QUEUE", "MESSAGES", "CONSUMERS", "OLDEST DIED", "AGE", "FROM")
	now := time.Now()
	sampled := false
	for _, q := range queues {
		dl := q.DeadLetters
		sampled = sampled || int64(dl.Sampled) < q.Messages
		var from []string
		for _, name := range slices.Sorted(maps.Keys(dl.From)) {
			from = append(from, fmt.Sprintf("%s (%d)", name, dl.From[name]))
		}
		t.row(q.Name, strconv.FormatInt(q.Messages, 10), strconv.FormatInt(q.Consumers, 10), moment(dl.Oldest), age(dl.Oldest, now), cmp.Or(strings.Join(from, ", "), "-"))
	}
	if err := t.flush(); err != nil || !sampled {
		return err
	}
	_, err := fmt.Fprintf(e.out, "FROM tells of the first %d messages of each queue\n", admin.SampleMessages)
	return err
}

// target takes the arguments [QUEUE] [ID...] apart: what begins with "ID:" is a
// message's id, as JMS has it.
func target(c *cobra.Command, args []string, most int) (queue string, ids []string, err error) {
	queue = defaultDeadLetterQueue
	if len(args) > 0 && !isID(args[0]) {
		queue, args = args[0], args[1:]
	}
	if len(args) > most {
		return "", nil, arguments(most)(c, args)
	}
	return queue, args, nil
}

func isID(arg string) bool { return strings.HasPrefix(arg, "ID:") }
