package main

import (
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

const dlqRedriveLong = `
Bring dead letters back to where they failed: to the end of the queue, or of the durable
subscription, that gave them up, and to no other. Each moves in one step: it is never lost
and never there twice. Its failure count begins again at zero, its story goes with it, and
it is persistent and does not expire any more, unless --as-sent is given. Without QUEUE it
is ActiveMQ.DLQ.

Say which: --id, once for each message, --selector, --all, or the oldest --limit. Messages
that have no place to go back to stay, and so does what is no dead letter.
` + selectionHelp + `

First make sure that what made them fail is mended, or they will be back. --limit 10 lets
a few go first.`

const dlqRedriveExample = `
  nixie dlq redrive --id ID:app-40001-1700000000000-1:1:1:1:7
  nixie dlq redrive DLQ.ORDERS --id ID:a-1:1:1:1:1 --id ID:a-1:1:1:1:2
  nixie dlq redrive DLQ.ORDERS --all --dry-run
  nixie dlq redrive DLQ.ORDERS --limit 10
  nixie dlq redrive --selector "JMSDestination = 'queue://ORDERS'"               failed there
  nixie dlq redrive --selector "dlqDeliveryFailureCause LIKE '%no customer%'"    died so
  nixie dlq redrive DLQ.ORDERS --all`

func dlqRedriveCommand(e *env) *cobra.Command {
	var r *remote
	var what admin.RedriveRequest
	c := &cobra.Command{
		Use:     "redrive [QUEUE] --id ID... | --selector SELECTOR | --all | --limit N",
		Short:   "Bring dead letters back to where they failed",
		Long:    strings.TrimSpace(dlqRedriveLong),
		Example: strings.Trim(dlqRedriveExample, "\n"),
		RunE: func(c *cobra.Command, args []string) error {
			queue, more, err := redriveTarget(c, args)
			if err != nil {
				return err
			}
			what.IDs = append(what.IDs, more...)
			if err := checkSelection(c, &what.Selection, false); err != nil {
				return err
			}
			var moved admin.Redriven
			if err := r.post(c.Context(), queuePath(queue, "/redrive"), what, &moved); err != nil {
				return err
			}
			if r.asJSON {
				if err := printJSON(e.out, moved); err != nil {
					return err
				}
			}
			line := fmt.Sprintf("%s of %s %s back to where they failed", count(int64(moved.Moved), "message", "messages"),
				placeName(moved.Where), would(moved.Stayed, "went", "would go"))
			return r.report(line, moved.Where, moved.Moved, moved.Stayed)
		},
	}
	r = remoteFlags(e, c)
	selectionFlags(c, &what.Selection, "bring back")
	c.Flags().BoolVar(&what.AsSent, "as-sent", false, "give them their delivery mode back, and their time to live, beginning anew")
	return c
}

// redriveTarget takes [QUEUE] [ID...] apart.
func redriveTarget(c *cobra.Command, args []string) (queue string, ids []string, err error) {
	queue, ids, err = target(c, args, len(args))
	for _, id := range ids {
		if !isID(id) {
			return "", nil, usageError{fmt.Errorf("%q is no message id; '%s --help' tells more", id, c.CommandPath())}
		}
	}
	return queue, ids, err
}
