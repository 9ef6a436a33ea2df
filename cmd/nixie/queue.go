package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

func queueCommand(e *env) *cobra.Command {
	c := group("queue", "See and change what is in the queues of a running broker", `
See what is in the queues, and the durable subscriptions, of a running broker, move or
copy messages elsewhere, or remove them; stop a queue's handing out for a while; delete
what nobody needs any more.`, `
  nixie queue list
  nixie queue list --json --broker http://10.0.0.5:8161
  nixie queue show ORDERS                         which messages wait, and until when
  nixie queue move ORDERS ORDERS.PARKED --all     have them out of the way
  nixie queue purge ORDERS --dry-run              how many would be removed
  nixie queue pause ORDERS                        nobody is handed anything
  nixie queue groups ORDERS                       which consumers the message groups belong to
  nixie queue delete ORDRES                       it was a typing error`)
	c.AddCommand(queueListCommand(e), queueShowCommand(e), queueMoveCommand(e), queueCopyCommand(e), queuePurgeCommand(e),
		queuePauseCommand(e), queueResumeCommand(e), queueGroupsCommand(e), queueDeleteCommand(e))
	return c
}

const queueListLong = `
List every queue, and every durable subscription to a topic, with what is in it now

  MESSAGES   all it has: those that wait, are out, or are scheduled
  WAITING    those that a consumer may have at once
  OUT        those that consumers have
  SCHEDULED  those that wait for their retry
  CONSUMERS  that are attached

and what happened since the broker started: messages that came and went, delivery
attempts that failed, messages that became dead letters. Queues and topics with a limit
that stops their producers are listed once more: what counts, the limits, and how many
producers wait for room.

What a producer wants delivered later (AMQ_SCHEDULED_DELAY and its like) is in no queue
before its time: 'nixie scheduled list' shows it. Topics, and their subscribers
without a durable subscription, are listed by GET /api/v1/destinations.`

func queueListCommand(e *env) *cobra.Command {
	var r *remote
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the queues with their counts",
		Long:    strings.TrimSpace(queueListLong),
		Example: "  nixie queue list\n  nixie queue list --json | jq '.queues[] | select(.messages > 1000).name'",
		Args:    arguments(0),
		RunE: func(c *cobra.Command, _ []string) error {
			var all admin.Destinations
			if err := r.get(c.Context(), "/api/v1/destinations", &all); err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, all)
			}
			return printQueues(e, &all)
		},
	}
	r = remoteFlags(e, c)
	return c
}

func printQueues(e *env, all *admin.Destinations) error {
	heads := []string{"MESSAGES", "WAITING", "OUT", "SCHEDULED", "CONSUMERS", "CAME", "WENT", "FAILED", "DEAD"}
	if len(all.Queues) == 0 {
		if _, err := fmt.Fprintln(e.out, "there are no queues yet; a queue comes to be when a client first uses it"); err != nil {
			return err
		}
	} else {
		t := newTable(e.out, append([]string{"QUEUE"}, heads...)...)
		for i := range all.Queues {
			t.row(append([]string{all.Queues[i].Name}, numbers(&all.Queues[i].Counts)...)...)
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	for i := range all.Queues {
		if all.Queues[i].Paused {
			fmt.Fprintf(e.out, "%s is paused\n", oneLine(all.Queues[i].Name)) // an error shows at the flush
		}
	}
	var durable []*admin.Subscription
	for i := range all.Subscriptions {
		if all.Subscriptions[i].Durable {
			durable = append(durable, &all.Subscriptions[i])
		}
	}
	if err := printLimits(e, all); err != nil || len(durable) == 0 {
		return err
	}
	fmt.Fprintln(e.out) // an error shows at the flush
	t := newTable(e.out, append([]string{"TOPIC", "CLIENT", "SUBSCRIPTION"}, heads...)...)
	for _, s := range durable {
		t.row(append([]string{s.Topic, s.ClientID, s.Name}, numbers(&s.Counts)...)...)
	}
	return t.flush()
}

// printLimits shows how far destinations are from the limits that stop their producers.
func printLimits(e *env, all *admin.Destinations) error {
	t := newTable(e.out, "LIMITED", "BYTES", "LIMIT", "MESSAGES", "LIMIT", "PRODUCERS WAIT")
	any := false
	row := func(name string, l *admin.Limit) {
		if l == nil || l.MaxBytes == 0 && l.MaxMessages == 0 && l.Waiting == 0 {
			return
		}
		if !any {
			fmt.Fprintln(e.out) // an error shows at the flush
		}
		any = true
		cells := []string{name}
		for _, n := range [][2]int64{{l.Bytes, l.MaxBytes}, {l.Messages, l.MaxMessages}} {
			limit := "none"
			if n[1] > 0 {
				limit = strconv.FormatInt(n[1], 10)
			}
			cells = append(cells, strconv.FormatInt(n[0], 10), limit)
		}
		t.row(append(cells, strconv.FormatInt(l.Waiting, 10))...)
	}
	for i := range all.Queues {
		row(all.Queues[i].Name, all.Queues[i].Limit)
	}
	for i := range all.Topics {
		row("topic://"+all.Topics[i].Name, all.Topics[i].Limit)
	}
	if !any {
		return nil
	}
	return t.flush()
}

func numbers(c *admin.Counts) []string {
	var cells []string
	for _, n := range []int64{c.Messages, c.Waiting, c.Out, c.Scheduled, c.Consumers, c.Enqueued, c.Dequeued, c.Failed, c.DeadLettered} {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	return cells
}
