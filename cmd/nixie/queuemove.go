package main

import (
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

const queueMoveLong = `
Move messages of a queue, or of a durable subscription, to another queue, or with
topic:// before its name to a topic's durable subscriptions. Say which: --id, once for
each, --selector, --all, or the oldest --limit.

Each moves in one step: it is never lost and never there twice. It keeps its id, its
headers, its expiration and its story, can be had at once even if it was waiting for its
time, and its failure count begins again at zero. A dead letter stays one: it can be
redriven from where it went.
` + selectionHelp + `

To bring dead letters back to where they failed, see 'nixie dlq redrive'.`

const queueMoveExample = `
  nixie queue move ORDERS ORDERS.PARKED --all --dry-run
  nixie queue move ORDERS ORDERS.EU --selector "region = 'eu'"
  nixie queue move ORDERS ORDERS.CANARY --limit 10
  nixie queue move ActiveMQ.DLQ DLQ.TO.MEND --id ID:app-40001-1700000000000-1:1:1:1:7
  nixie queue move --client reader-1 --subscription daily MISSED --all`

func queueMoveCommand(e *env) *cobra.Command {
	var r *remote
	var place *subscriptionFlag
	var what admin.MoveRequest
	c := &cobra.Command{
		Use:     "move FROM TO --id ID... | --selector SELECTOR | --all | --limit N",
		Short:   "Move messages to another queue or topic",
		Long:    strings.TrimSpace(queueMoveLong),
		Example: strings.Trim(queueMoveExample, "\n"),
		RunE: func(c *cobra.Command, args []string) error {
			path, rest, err := place.path(c, args)
			if err != nil {
				return err
			}
			if len(rest) == 0 {
				return usageError{fmt.Errorf("say where to move them; '%s --help' tells more", c.CommandPath())}
			}
			if err := arguments(1)(c, rest); err != nil {
				return err
			}
			what.To = rest[0]
			if err := checkSelection(c, &what.Selection, false); err != nil {
				return err
			}
			var reply admin.Moved
			if err := r.post(c.Context(), path+"/move", what, &reply); err != nil {
				return err
			}
			if r.asJSON {
				if err := printJSON(e.out, reply); err != nil {
					return err
				}
			}
			line := fmt.Sprintf("%s of %s %s to %s", count(int64(reply.Moved), "message", "messages"), placeName(reply.Where),
				would(reply.Stayed, "moved", "would be moved"), oneLine(reply.To))
			return r.report(line, reply.Where, reply.Moved, reply.Stayed)
		},
	}
	r = remoteFlags(e, c)
	place = placeFlags(c)
	selectionFlags(c, &what.Selection, "move")
	return c
}
