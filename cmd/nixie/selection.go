package main

import (
	"errors"
	"fmt"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

// selectionHelp is what the help of a command says that acts on messages.
const selectionHelp = `
It is for those that are there when the command reaches the broker, at any depth, also
those that wait for their time. Messages that a consumer has just now stay where they
are, and the answer says how many. --dry-run changes nothing, and says what would be
done.`

// selectionFlags adds the flags that say which messages a command is for; verb is
// what it does with them.
func selectionFlags(c *cobra.Command, what *admin.Selection, verb string) {
	f := c.Flags()
	f.StringArrayVar(&what.IDs, "id", nil, verb+" the message with this `ID`; may be repeated")
	f.StringVar(&what.Selector, "selector", "", verb+" those that a JMS `selector` fits, e.g. \"JMSType = 'order' AND region = 'eu'\"")
	f.BoolVar(&what.All, "all", false, verb+" all that are there")
	f.IntVar(&what.Limit, "limit", 0, verb+" so `many` at the most, the oldest first")
	f.BoolVar(&what.DryRun, "dry-run", false, "change nothing; say what would be done")
}

// checkSelection completes a selection: a limit alone is for all. Where all is the
// default, nothing has to be said.
func checkSelection(c *cobra.Command, what *admin.Selection, all bool) error {
	if c.Flags().Changed("limit") && what.Limit < 1 {
		return usageError{fmt.Errorf("--limit %d: it is 1 or more", what.Limit)}
	}
	ways := 0
	for _, said := range []bool{what.All, len(what.IDs) > 0, what.Selector != ""} {
		if said {
			ways++
		}
	}
	if ways == 0 && (all || what.Limit > 0) {
		what.All, ways = true, 1
	}
	if ways != 1 {
		return usageError{errors.New("say which messages: --id ID, once for each, or --selector SELECTOR, or --all, or --limit N for the oldest")}
	}
	return nil
}

// report prints the outcome of a command in words, unless it was printed as JSON.
// Where ids were given and not all of them went, that is an error in any case.
func (r *remote) report(line string, where admin.Where, done int, s admin.Stayed) error {
	w := r.e.out
	if !r.asJSON {
		if s.Out > 0 {
			line += fmt.Sprintf("\n%s: at a consumer, or acknowledged in a transaction that is still open", stay(s.Out))
		}
		if s.Left > 0 {
			line += fmt.Sprintf("\n%s: without a place to go back to", stay(s.Left))
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	switch found := done + s.Out + s.Left; {
	case found < s.Asked:
		return fmt.Errorf("%d of %d did not go: not in %s, or not to be had", s.Asked-done, s.Asked, placeName(where))
	case done < s.Asked:
		return fmt.Errorf("%d of %d did not go", s.Asked-done, s.Asked)
	}
	return nil
}

func stay(n int) string {
	if n == 1 {
		return "1 message stays"
	}
	return fmt.Sprintf("%d messages stay", n)
}

// would is the verb of a reply, of a dry run in the conditional.
func would(s admin.Stayed, did, would string) string {
	if s.DryRun {
		return would
	}
	return did
}

// placeName is a place for people.
func placeName(w admin.Where) string {
	if w.Subscription != "" {
		return fmt.Sprintf("subscription %s of client %s", oneLine(w.Subscription), oneLine(w.ClientID))
	}
	return oneLine(w.Queue)
}

// A subscriptionFlag names a durable subscription instead of a queue.
type subscriptionFlag struct{ client, name string }

func placeFlags(c *cobra.Command) *subscriptionFlag {
	s := &subscriptionFlag{}
	c.Flags().StringVar(&s.client, "client", "", "JMS `client id` of a durable subscription, together with --subscription, instead of a queue")
	c.Flags().StringVar(&s.name, "subscription", "", "`name` of the durable subscription")
	return s
}

// path is that of the place named by the flags, or by the first argument, with the
// arguments that are left, no more than most.
func (s *subscriptionFlag) path(c *cobra.Command, args []string, most int) (path string, rest []string, err error) {
	switch {
	case s.client != "" && s.name != "":
		path, rest = "/api/v1/subscriptions/"+segment(s.client)+"/"+segment(s.name), args
	case s.client != "" || s.name != "":
		return "", nil, usageError{errors.New("a durable subscription is named by both --client and --subscription; 'nixie queue list' shows them")}
	case len(args) == 0 || args[0] == "":
		return "", nil, usageError{fmt.Errorf("say which queue, or which durable subscription with --client and --subscription; '%s --help' tells more", c.CommandPath())}
	default:
		path, rest = queuePath(args[0], ""), args[1:]
	}
	return path, rest, arguments(most)(c, rest)
}
