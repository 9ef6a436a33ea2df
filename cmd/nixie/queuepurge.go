package main

import (
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

const queuePurgeLong = `
Remove messages of a queue, or of a durable subscription, for good: all of them, or
those that --id or --selector names, or the oldest --limit. They do not become dead
letters, and nothing brings them back.
` + selectionHelp + `

To keep them and have them out of the way, see 'nixie queue move'.`

const queuePurgeExample = `
  nixie queue purge ORDERS --dry-run
  nixie queue purge ORDERS
  nixie queue purge ORDERS --selector "JMSType = 'test'"
  nixie queue purge ORDERS --id ID:app-40001-1700000000000-1:1:1:1:7
  nixie queue purge --client reader-1 --subscription daily`

func queuePurgeCommand(e *env) *cobra.Command {
	var r *remote
	var place *subscriptionFlag
	var what admin.Selection
	c := &cobra.Command{
		Use:     "purge QUEUE",
		Short:   "Remove messages for good",
		Long:    strings.TrimSpace(queuePurgeLong),
		Example: strings.Trim(queuePurgeExample, "\n"),
		RunE: func(c *cobra.Command, args []string) error {
			path, _, err := place.path(c, args, 0)
			if err != nil {
				return err
			}
			if err := checkSelection(c, &what, true); err != nil {
				return err
			}
			var reply admin.Purged
			if err := r.post(c.Context(), path+"/purge", what, &reply); err != nil {
				return err
			}
			if r.asJSON {
				if err := printJSON(e.out, reply); err != nil {
					return err
				}
			}
			line := fmt.Sprintf("%s of %s %s", count(int64(reply.Removed), "message", "messages"), placeName(reply.Where),
				would(reply.Stayed, "removed", "would be removed"))
			return r.report(line, reply.Where, reply.Removed, reply.Stayed)
		},
	}
	r = remoteFlags(e, c)
	place = placeFlags(c)
	selectionFlags(c, &what, "remove")
	return c
}
