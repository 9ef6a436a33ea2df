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
redriven from where it went. Consumed there it is like any other message, and where it
fails again it becomes a dead letter of that queue.
` + selectionHelp + `

To bring dead letters back to where they failed, see 'nixie dlq redrive'.`

const queueMoveExample = `
  nixie queue move ORDERS ORDERS.PARKED --all --dry-run
  nixie queue move ORDERS ORDERS.EU --selector "region = 'eu'"
  nixie queue move ORDERS ORDERS.CANARY --limit 10
  nixie queue move ActiveMQ.DLQ DLQ.TO.MEND --id ID:app-40001-1700000000000-1:1:1:1:7
  nixie queue move --client reader-1 --subscription daily MISSED --all`

func queueMoveCommand(e *env) *cobra.Command {
	return elsewhereCommand(e, elsewhere[admin.Moved]{
		cobra.Command{
			Use:     "move FROM TO --id ID... | --selector SELECTOR | --all | --limit N",
			Short:   "Move messages to another queue or topic",
			Long:    strings.TrimSpace(queueMoveLong),
			Example: strings.Trim(queueMoveExample, "\n"),
		}, "move", "moved",
		func(m *admin.Moved) (admin.Where, string, int, admin.Stayed) { return m.Where, m.To, m.Moved, m.Stayed },
	})
}

const queueCopyLong = `
Copy messages of a queue, or of a durable subscription, to another queue, or with
topic:// before its name to a topic's durable subscriptions. Say which: --id, once for
each, --selector, --all, or the oldest --limit.

The messages stay where they are, also those that a consumer has just now. A copy has
the id, the headers and the expiration of its message, can be had at once, and its
failure count begins at zero; the story of its attempts stays with the message.
--dry-run changes nothing, and says what would be done.`

const queueCopyExample = `
  nixie queue copy ORDERS ORDERS.TEST --limit 10
  nixie queue copy ActiveMQ.DLQ ANALYSIS --selector "n = 1999"`

func queueCopyCommand(e *env) *cobra.Command {
	return elsewhereCommand(e, elsewhere[admin.Copied]{
		cobra.Command{
			Use:     "copy FROM TO --id ID... | --selector SELECTOR | --all | --limit N",
			Short:   "Copy messages to another queue or topic",
			Long:    strings.TrimSpace(queueCopyLong),
			Example: strings.Trim(queueCopyExample, "\n"),
		}, "copy", "copied",
		func(c *admin.Copied) (admin.Where, string, int, admin.Stayed) {
			return c.Where, c.To, c.Copied, c.Stayed
		},
	})
}

// elsewhere is what there is to a command that brings messages from one place to
// another.
type elsewhere[R any] struct {
	command   cobra.Command
	verb, did string
	parts     func(reply *R) (from admin.Where, to string, done int, stayed admin.Stayed)
}

func elsewhereCommand[R any](e *env, w elsewhere[R]) *cobra.Command {
	var r *remote
	var place *subscriptionFlag
	var what admin.MoveRequest
	c := &w.command
	c.RunE = func(c *cobra.Command, args []string) error {
		path, rest, err := place.path(c, args, 1)
		if err != nil {
			return err
		}
		if len(rest) == 0 {
			return usageError{fmt.Errorf("say where to %s them; '%s --help' tells more", w.verb, c.CommandPath())}
		}
		what.To = rest[0]
		if err := checkSelection(c, &what.Selection, false); err != nil {
			return err
		}
		var reply R
		if err := r.post(c.Context(), path+"/"+w.verb, what, &reply); err != nil {
			return err
		}
		if r.asJSON {
			if err := printJSON(e.out, reply); err != nil {
				return err
			}
		}
		from, to, done, stayed := w.parts(&reply)
		line := fmt.Sprintf("%s of %s %s to %s", count(int64(done), "message", "messages"), placeName(from),
			would(stayed, w.did, "would be "+w.did), oneLine(to))
		return r.report(line, from, done, stayed)
	}
	r = remoteFlags(e, c)
	place = placeFlags(c)
	selectionFlags(c, &what.Selection, w.verb)
	return c
}
