package main

import (
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

const queueShowLong = `
Without an ID, show the messages of a queue, or of a durable subscription, a line each, in
the order in which they are there

  STATE      waiting; returned, given back and ahead of those that wait; scheduled, waits
             for its time; out, a consumer has it; in-transaction, acknowledged in one
             that is still open
  ATTEMPTS   deliveries that ended without success
  FAILURES   those of them that the policy counts
  DUE        when a scheduled one can be had again
  EXPIRES    when its time to live ends

With an ID, show everything that is known of one message, with the story of its attempts.

Nothing is consumed, and nothing changes.`

const queueShowExample = `
  nixie queue show ORDERS
  nixie queue show ORDERS ID:app-40001-1700000000000-1:1:1:1:7
  nixie queue show ORDERS --selector "customer = '4711'"
  nixie queue show --client reader-1 --subscription daily
  nixie queue show ORDERS --json | jq '.messages[] | select(.state == "scheduled") | .due'`

func queueShowCommand(e *env) *cobra.Command {
	var r *remote
	var place *subscriptionFlag
	var p pageFlags
	c := &cobra.Command{
		Use:     "show QUEUE [ID]",
		Short:   "Show the messages of a queue, or everything about one",
		Long:    strings.TrimSpace(queueShowLong),
		Example: strings.Trim(queueShowExample, "\n"),
		RunE: func(c *cobra.Command, args []string) error {
			path, rest, err := place.path(c, args, 1)
			if err != nil {
				return err
			}
			if len(rest) == 1 {
				return r.showMessage(c.Context(), path, rest[0])
			}
			page, err := r.page(c.Context(), path, &p)
			if err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, page)
			}
			return printWaiting(e, &p, page)
		},
	}
	r = remoteFlags(e, c)
	place = placeFlags(c)
	p.add(c)
	return c
}

func printWaiting(e *env, p *pageFlags, page *admin.Page) error {
	if len(page.Messages) == 0 {
		return p.printNone(e.out, page)
	}
	t := newTable(e.out, "ID", "STATE", "ATTEMPTS", "FAILURES", "DUE", "EXPIRES", "BYTES")
	for i := range page.Messages {
		m := &page.Messages[i]
		t.row(m.ID, m.State, strconv.Itoa(m.Attempts), strconv.Itoa(m.Failures), moment(m.Due), moment(m.Headers.Expiration), strconv.Itoa(m.SizeBytes))
	}
	if err := t.flush(); err != nil || page.Next == "" {
		return err
	}
	return printMore(e.out, page)
}
