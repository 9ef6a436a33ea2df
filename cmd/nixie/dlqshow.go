package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/spf13/cobra"
)

const dlqShowLong = `
Without an ID, show the messages of a queue, a line each: when it died, where it failed,
after how many attempts, and why: the cause that its dead letter carries in the property
dlqDeliveryFailureCause, without the client's policy. Without QUEUE it is ActiveMQ.DLQ.

With an ID, show everything that is known of one message: its headers, its properties,
its body, and its story. The story has a line for each delivery that ended without
success: when, how it ended, who had it, and what was decided.

  recover    Session.recover(), or a listener that threw outside a transaction
  rollback   the transaction that took it was rolled back
  poison     the client has given it up
  closed, connection-lost
             its consumer went while the application had it, or may have had it
  ack-timeout
             it was with its consumer for longer than the policy allows
  expired    its time to live passed
  undispatchable
             it cannot be written to its consumer: damaged, or too large
  evicted    too much waited for a slow subscriber of a topic
  duplicate, released, broker-stopped
             it came back, and counts as no failure

Nothing is consumed, and nothing changes. It works for every queue, not only for those
with dead letters.`

const dlqShowExample = `
  nixie dlq show
  nixie dlq show DLQ.ORDERS --limit 20
  nixie dlq show --selector "dlqDeliveryFailureCause LIKE '%no customer%'"
  nixie dlq show ID:app-40001-1700000000000-1:1:1:1:7
  nixie dlq show DLQ.ORDERS ID:app-40001-1700000000000-1:1:1:1:7 --json`

// causeWidth is how much of a cause stands in a line.
const causeWidth = 100

func dlqShowCommand(e *env) *cobra.Command {
	var r *remote
	var p pageFlags
	c := &cobra.Command{
		Use:     "show [QUEUE] [ID]",
		Short:   "Show the messages of a dead letter queue, or everything about one",
		Long:    strings.TrimSpace(dlqShowLong),
		Example: strings.Trim(dlqShowExample, "\n"),
		Args:    arguments(2),
		RunE: func(c *cobra.Command, args []string) error {
			queue, ids, err := target(c, args, 1)
			if err != nil {
				return err
			}
			if len(ids) == 1 {
				return r.showMessage(c.Context(), queuePath(queue, ""), ids[0])
			}
			page, err := r.page(c.Context(), queuePath(queue, ""), &p)
			if err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, page)
			}
			return r.printPage(&p, page)
		},
	}
	r = remoteFlags(e, c)
	p.add(c)
	return c
}

// pageFlags say which part of a place's messages is shown.
type pageFlags struct {
	limit    int
	after    string
	selector string
}

func (p *pageFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&p.limit, "limit", admin.DefaultPageMessages, "show so `many` messages at the most")
	c.Flags().StringVar(&p.after, "after", "", "go on behind the `cursor` that the last line of a page tells")
	c.Flags().StringVar(&p.selector, "selector", "", "show those that a JMS `selector` fits, at any depth, e.g. \"JMSType = 'order' AND region = 'eu'\"")
}

// showMessage prints everything about one message of the place at path.
func (r *remote) showMessage(ctx context.Context, path, id string) error {
	var m admin.Detail
	if err := r.get(ctx, path+"/messages/"+segment(id), &m); err != nil {
		return err
	}
	if r.asJSON {
		return printJSON(r.e.out, m)
	}
	return printMessage(r.e.out, &m)
}

// page gets a page of the messages of the place at path.
func (r *remote) page(ctx context.Context, path string, p *pageFlags) (*admin.Page, error) {
	if p.limit < 1 || p.limit > admin.MaxPageMessages {
		return nil, usageError{fmt.Errorf("--limit %d: show 1 to %d messages at a time", p.limit, admin.MaxPageMessages)}
	}
	q := url.Values{"limit": {strconv.Itoa(p.limit)}}
	if p.after != "" {
		q.Set("after", p.after)
	}
	if p.selector != "" {
		q.Set("selector", p.selector)
	}
	var page admin.Page
	return &page, r.get(ctx, path+"/messages?"+q.Encode(), &page)
}

func (r *remote) printPage(p *pageFlags, page *admin.Page) error {
	w := r.e.out
	if len(page.Messages) == 0 {
		return p.printNone(w, page)
	}
	t := newTable(w, "ID", "DIED", "FROM", "ATTEMPTS", "STATE", "CAUSE")
	for i := range page.Messages {
		m := &page.Messages[i]
		died, from, cause := "-", "-", m.Error
		if m.DeadLetter != nil {
			died, from = moment(m.DeadLetter.At), m.DeadLetter.From
			if cause == "" {
				cause = reasonOf(m.DeadLetter)
			}
		}
		t.row(m.ID, died, from, strconv.Itoa(m.Attempts), m.State, short(cause, causeWidth))
	}
	if err := t.flush(); err != nil || page.Next == "" {
		return err
	}
	return printMore(w, page)
}

// printNone says that a page has no message.
func (p *pageFlags) printNone(w io.Writer, page *admin.Page) error {
	text := placeName(page.Where) + " is empty"
	switch {
	case page.Total > 0 && p.after != "":
		text = fmt.Sprintf("there is no more of the %s of %s", count(page.Total, "message", "messages"), placeName(page.Where))
	case page.Total > 0 && p.selector != "":
		text = fmt.Sprintf("the selector fits none of the %s of %s", count(page.Total, "message", "messages"), placeName(page.Where))
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// printMore says how to go on behind a page that is not the last.
func printMore(w io.Writer, page *admin.Page) error {
	if page.Selector != "" {
		_, err := fmt.Fprintf(w, "there may be more that the selector fits, of %d messages in all; go on with --after %s\n", page.Total, page.Next)
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %d messages; go on with --after %s\n", len(page.Messages), page.Total, page.Next)
	return err
}

// causeOf is why a message died, in the broker's word and the client's text.
func causeOf(d *admin.DeadLetter) string {
	_, expired := redelivery.ExpiredAt(d.Cause)
	switch {
	case expired: // however its last attempt had ended
		return "expired: " + d.Cause
	case d.Cause == "" && d.LastCause == "":
		return "not told"
	case d.Cause == "":
		return d.LastCause
	case d.LastCause == "":
		return d.Cause
	}
	return d.LastCause + ": " + d.Cause
}

// reasonOf is causeOf for a line of a list. Where the client gave the message up, it
// has what the application threw in the place of the client's policy.
func reasonOf(d *admin.DeadLetter) string {
	reason := *d
	if which, policy, ok := strings.Cut(d.Cause, " exceeds redelivery policy limit:"); ok {
		which = strings.TrimPrefix(which, "java.lang.Throwable: ")
		if _, thrown, _ := strings.Cut(policy, ", cause:"); thrown != "" && thrown != "null" {
			reason.Cause = which + ": " + thrown
		} else {
			reason.Cause = which + " exceeds the client's limit"
		}
	}
	return causeOf(&reason)
}
