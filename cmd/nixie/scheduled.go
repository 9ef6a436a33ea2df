package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

func scheduledCommand(e *env) *cobra.Command {
	c := group("scheduled", "See and remove the messages of a running broker that wait to be sent on", `
See the messages that their producers want delivered later (AMQ_SCHEDULED_DELAY and its like),
and remove those that are not to be sent on any more. They are in no queue before their time.`, `
  nixie scheduled list
  nixie scheduled remove ID:app-1:1:1:7
  nixie scheduled remove --all`)
	c.AddCommand(scheduledListCommand(e), scheduledRemoveCommand(e))
	return c
}

const scheduledListLong = `
List the scheduled messages, those that are due next first

  JOB     its scheduledJobId, for 'nixie scheduled remove'
  DUE     when it is next sent on
  TO      the destination
  AGAIN   how often after that, or by which cron line
  FIRED   how often it was sent on
  BYTES   its size`

func scheduledListCommand(e *env) *cobra.Command {
	var r *remote
	var limit int
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the messages that wait to be sent on",
		Long:    strings.TrimSpace(scheduledListLong),
		Example: "  nixie scheduled list\n  nixie scheduled list --limit 1000 --json | jq -r '.messages[] | select(.destination == \"queue://ORDERS\").scheduledJobId'",
		Args:    arguments(0),
		RunE: func(c *cobra.Command, _ []string) error {
			var page admin.Scheduled
			if err := r.get(c.Context(), fmt.Sprintf("/api/v1/scheduled?limit=%d", limit), &page); err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, page)
			}
			return printScheduled(e, &page)
		},
	}
	c.Flags().IntVar(&limit, "limit", admin.DefaultPageMessages, "list so `many` at the most")
	r = remoteFlags(e, c)
	return c
}

func printScheduled(e *env, page *admin.Scheduled) error {
	if page.Total == 0 {
		_, err := fmt.Fprintln(e.out, "no message is scheduled")
		return err
	}
	t := newTable(e.out, "JOB", "DUE", "TO", "AGAIN", "FIRED", "BYTES")
	for i := range page.Messages {
		m := &page.Messages[i]
		again := cmp.Or(m.Cron, "-")
		if m.Cron == "" && m.Repeat > 0 {
			again = fmt.Sprint(m.Repeat)
		}
		t.row(m.JobID, moment(m.Due), m.Destination, again, fmt.Sprint(m.Fired), fmt.Sprint(m.SizeBytes))
	}
	if err := t.flush(); err != nil {
		return err
	}
	if n := int64(len(page.Messages)); n < page.Total {
		_, err := fmt.Fprintf(e.out, "%d of %s\n", n, count(page.Total, "message", "messages"))
		return err
	}
	return nil
}

func scheduledRemoveCommand(e *env) *cobra.Command {
	var r *remote
	var all bool
	c := &cobra.Command{
		Use:     "remove [JOB]",
		Short:   "Remove messages that wait to be sent on",
		Long:    "Remove a scheduled message by its job as 'nixie scheduled list' shows it, or with --all\nall of them, for good.",
		Example: "  nixie scheduled remove ID:app-1:1:1:7\n  nixie scheduled remove --all",
		RunE: func(c *cobra.Command, args []string) error {
			if err := arguments(1)(c, args); err != nil {
				return err
			}
			path, what := "/api/v1/scheduled/remove", any(admin.RemoveScheduled{All: true})
			switch named := len(args) > 0 && args[0] != ""; {
			case named == all:
				return usageError{errors.New("say which: a JOB as 'nixie scheduled list' shows it, or --all")}
			case named:
				path, what = "/api/v1/scheduled/"+segment(args[0])+"/remove", struct{}{}
			}
			var reply admin.Removed
			if err := r.post(c.Context(), path, what, &reply); err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, reply)
			}
			_, err := fmt.Fprintf(e.out, "removed %s\n", count(int64(reply.Removed), "scheduled message", "scheduled messages"))
			return err
		},
	}
	c.Flags().BoolVar(&all, "all", false, "remove all of them")
	r = remoteFlags(e, c)
	return c
}
