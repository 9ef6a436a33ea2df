package main

import (
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

const queuePauseLong = `
Have a queue hand out nothing, while something that its consumers need is mended. They
stay connected, keep what they have, and may acknowledge it or give it back. Messages come
in, expire, and can be looked at, moved and brought back as ever; those that become due
wait with the others. 'nixie queue list' names the queues that are paused.

It lasts until 'nixie queue resume', or until the broker is started anew.`

func queuePauseCommand(e *env) *cobra.Command {
	return pausingCommand(e, "pause", "Have a queue hand out nothing", queuePauseLong, "  nixie queue pause ORDERS", map[bool]string{
		false: "%s is paused: nobody is handed anything before 'nixie queue resume'", true: "%s was paused already"})
}

const queueResumeLong = `
Let a queue that was paused hand out again, from where it stopped.`

func queueResumeCommand(e *env) *cobra.Command {
	return pausingCommand(e, "resume", "Let a paused queue hand out again", queueResumeLong, "  nixie queue resume ORDERS", map[bool]string{
		true: "%s hands out again", false: "%s was not paused"})
}

// pausingCommand pauses or resumes a queue; says is the answer, by whether it was paused.
func pausingCommand(e *env, verb, short, long, example string, says map[bool]string) *cobra.Command {
	var r *remote
	c := &cobra.Command{
		Use: verb + " QUEUE", Short: short, Long: strings.TrimSpace(long), Example: example,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return usageError{fmt.Errorf("say which queue; '%s --help' tells more", c.CommandPath())}
			}
			if err := arguments(1)(c, args); err != nil {
				return err
			}
			var reply admin.Paused
			if err := r.post(c.Context(), queuePath(args[0], "/"+verb), struct{}{}, &reply); err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, reply)
			}
			_, err := fmt.Fprintf(e.out, says[reply.Was]+"\n", oneLine(reply.Queue))
			return err
		},
	}
	r = remoteFlags(e, c)
	return c
}

const queueDeleteLong = `
Delete a queue, a durable subscription that nobody uses any more, or with topic:// before
its name a topic, for good. What has consumers is not deleted, and what has messages only
with --with-messages; 'nixie queue move' keeps them, 'nixie queue purge' removes them.

A queue or topic comes to be again when a client next uses it, a durable subscription when
its client next subscribes: it then gets what is published from that time on.`

const queueDeleteExample = `
  nixie queue delete ORDRES
  nixie queue delete ORDERS.OLD --with-messages --dry-run
  nixie queue delete --client reader-1 --subscription daily --with-messages
  nixie queue delete topic://NEWS.OLD`

func queueDeleteCommand(e *env) *cobra.Command {
	var r *remote
	var place *subscriptionFlag
	var what admin.Deletion
	c := &cobra.Command{
		Use:     "delete QUEUE",
		Short:   "Delete a queue, a topic, or a durable subscription",
		Long:    strings.TrimSpace(queueDeleteLong),
		Example: strings.Trim(queueDeleteExample, "\n"),
		RunE: func(c *cobra.Command, args []string) error {
			path, _, err := place.path(c, args, 0)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if topic, ok := strings.CutPrefix(args[0], "topic://"); ok {
					path = "/api/v1/topics/" + segment(topic)
				}
			}
			var reply admin.Deleted
			if err := r.post(c.Context(), path+"/delete", what, &reply); err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, reply)
			}
			return printDeleted(e, &reply)
		},
	}
	r = remoteFlags(e, c)
	place = placeFlags(c)
	c.Flags().BoolVar(&what.WithMessages, "with-messages", false, "delete it also if it has messages, and them with it")
	c.Flags().BoolVar(&what.DryRun, "dry-run", false, "change nothing; say what would be done")
	return c
}

func printDeleted(e *env, d *admin.Deleted) error {
	name, did := placeName(d.Where), "is deleted"
	if d.Topic != "" {
		name = "topic://" + oneLine(d.Topic)
	}
	if d.DryRun {
		did = "would be deleted"
	}
	if d.Messages > 0 {
		did += ", with " + count(d.Messages, "message", "messages")
	}
	_, err := fmt.Fprintf(e.out, "%s %s\n", name, did)
	return err
}
