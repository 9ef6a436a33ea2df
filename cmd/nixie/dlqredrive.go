package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

const dlqRedriveLong = `
Bring dead letters back to where they failed: to the end of the queue that their original
destination names, or, where that is a topic, to its durable subscriptions. Each moves in
one step: it is never lost and never there twice. Its failure count begins again at zero,
and its story goes with it. Without QUEUE it is ActiveMQ.DLQ.

Say which: --id, once for each message, or --all for those that are there when the
command reaches the broker. Messages that a consumer of the dead letter queue has just
now stay, and so do those that have no place to go back to.

First make sure that what made them fail is mended, or they will be back.`

const dlqRedriveExample = `
  nixie dlq redrive --id ID:app-40001-1700000000000-1:1:1:1:7
  nixie dlq redrive DLQ.ORDERS --id ID:a-1:1:1:1:1 --id ID:a-1:1:1:1:2
  nixie dlq redrive DLQ.ORDERS --all`

func dlqRedriveCommand(e *env) *cobra.Command {
	var r *remote
	var what admin.Selection
	c := &cobra.Command{
		Use:     "redrive [QUEUE] --id ID... | --all",
		Short:   "Bring dead letters back to where they failed",
		Long:    strings.TrimSpace(dlqRedriveLong),
		Example: strings.Trim(dlqRedriveExample, "\n"),
		RunE: func(c *cobra.Command, args []string) error {
			queue, more, err := redriveTarget(c, args)
			if err != nil {
				return err
			}
			what.IDs = append(what.IDs, more...)
			if what.All == (len(what.IDs) > 0) {
				return usageError{errors.New("say which dead letters: --id ID, once for each, or --all")}
			}
			var moved admin.Redriven
			if err := r.post(c.Context(), queuePath(queue, "/redrive"), what, &moved); err != nil {
				return err
			}
			if r.asJSON {
				err = printJSON(e.out, moved)
			} else {
				_, err = fmt.Fprintf(e.out, "%s of %s went back to where they failed\n",
					count(int64(moved.Moved), "message", "messages"), oneLine(moved.Queue))
			}
			if err == nil && moved.Moved < moved.Asked {
				err = fmt.Errorf("%d of %d did not move: not in %s, out at a consumer, or without a place to go back to",
					moved.Asked-moved.Moved, moved.Asked, moved.Queue)
			}
			return err
		},
	}
	r = remoteFlags(e, c)
	c.Flags().StringArrayVar(&what.IDs, "id", nil, "bring back the message with this `ID`; may be repeated")
	c.Flags().BoolVar(&what.All, "all", false, "bring back all that the queue has")
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
