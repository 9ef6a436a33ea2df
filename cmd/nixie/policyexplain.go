package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/policy"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/spf13/cobra"
)

const policyExplainLong = `
Explain what holds for a destination: which entry of the configuration decides, which
line gave each value, when a message that always fails is delivered again, and what
becomes of it in the end.

A client redelivers by itself while its own policy allows; then it gives the message
up and the broker's policy decides, by the count of all failures so far. So two limits
come to the larger of them, plus the first delivery. The client's policy is ActiveMQ's
default (6 redeliveries, one second apart) unless --client-... says otherwise.

Where delays are spread by chance, the range of each stands in brackets.`

func policyExplainCommand(e *env) *cobra.Command {
	var q *policyQuestion
	c := &cobra.Command{
		Use:   "explain DESTINATION",
		Short: "Explain what holds for a destination, and which line says so",
		Long:  strings.TrimSpace(policyExplainLong),
		Example: `  nixie policy explain queue://orders.eu --config activemq.xml
  nixie policy explain ORDERS --client-max 0 --broker http://127.0.0.1:8161
  nixie policy explain ORDERS --client-url 'tcp://mq:61616?jms.redeliveryPolicy.maximumRedeliveries=3'
  nixie policy explain topic://prices --config nixie.yaml --json | jq .schedule.steps`,
		Args: oneDestination,
		RunE: func(c *cobra.Command, args []string) error {
			var x policy.Explanation
			err := q.answer(c.Context(), "/api/v1/policy", args[0], &x, func(c *config.Config, question policy.Question) {
				x = policy.Explain(c, question)
			})
			switch {
			case err != nil:
				return err
			case q.remote.asJSON:
				return printJSON(e.out, x)
			}
			return printExplanation(e.out, &x)
		},
	}
	q = questionFlags(e, c, policy.ExplainParams())
	return c
}

func printExplanation(w io.Writer, x *policy.Explanation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n\n", oneLine(x.Destination), decidedBy(x))
	t := newTable(&b, "  VALUE", "IS", "DECIDED BY")
	for _, v := range x.Values {
		source := v.Source
		if v.Written != "" {
			source += " (" + v.Written + ")"
		}
		t.row("  "+v.Name, v.Value, source)
	}
	if err := t.flush(); err != nil {
		return err
	}
	for i, v := range x.Others {
		if i == 0 {
			b.WriteString("\nThe entry also says\n")
		}
		fmt.Fprintf(&b, "  %s=%q (%s)\n", oneLine(v.Name), v.Value, oneLine(v.Source))
	}
	b.WriteString("\n" + totals(x) + "\n")
	if err := printSchedule(&b, &x.Schedule); err != nil {
		return err
	}
	if err := printFates(&b, x); err != nil {
		return err
	}
	for i, n := range x.Notes {
		if i == 0 {
			b.WriteString("\nTo know\n")
		}
		b.WriteString("  - " + oneLine(n) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// decidedBy says which entries hold.
func decidedBy(x *policy.Explanation) string {
	var text []string
	switch {
	case x.Entry != nil:
		text = append(text, entryText(x.Entry))
	case x.File == "":
		text = append(text, "There is no configuration file: the defaults hold.")
	case x.Redelivery == nil:
		text = append(text, oneLine("No entry of "+x.File+" is for it: the defaults hold."))
	}
	if x.Redelivery != nil {
		text = append(text, entryText(x.Redelivery))
	}
	return strings.Join(text, "\n")
}

// entryText names an entry, and those that it overrules.
func entryText(e *policy.Entry) string {
	kind := strings.ReplaceAll(e.Kind, "redelivery-policy", "redelivery policy")
	text := fmt.Sprintf("The default %s (%s) decides", kind, e.Source)
	if e.Pattern != "" {
		text = fmt.Sprintf("The %s for %s (%s) decides", kind, e.Pattern, e.Source)
	}
	for i, o := range e.Merged {
		switch i {
		case 0:
			text += "; what it does not say, that for "
		default:
			text += ", then that for "
		}
		text += fmt.Sprintf("%s (%s)", o.Pattern, o.Source)
		if i == len(e.Merged)-1 {
			text += " does"
		}
	}
	for i, o := range e.Overruled {
		switch i {
		case 0:
			text += ", and overrules that for "
		default:
			text += ", "
		}
		text += fmt.Sprintf("%s (%s)", o.Pattern, o.Source)
	}
	return oneLine(text + ".")
}

// totals says how often and how long a message that always fails is delivered.
func totals(x *policy.Explanation) string {
	text := "A message that always fails is delivered for ever"
	s := &x.Schedule
	if s.Deliveries >= 0 {
		text = "A message that always fails is delivered " + times(s.Deliveries)
		if s.Deliveries > 1 {
			text += ", the last time " + spread(s.EndMillis, s.EarliestMillis, s.LatestMillis) + " after the first"
		}
	}
	text += ".\n  the client allows " + allowed(&x.Client) + "\n  the broker "
	if x.Broker == nil {
		return text + "sets no limit"
	}
	text += "allows " + allowed(x.Broker)
	if x.Broker.Source != "" {
		text += " (" + oneLine(x.Broker.Source) + ")"
	}
	return text
}

func allowed(s *policy.Side) string {
	switch {
	case s.None:
		return "itself none: each failure goes to the broker"
	case s.Deliveries < 0:
		return "deliveries without end"
	case s.Deliveries == 1:
		return "1 delivery, none again"
	}
	return strconv.Itoa(s.Deliveries) + " deliveries"
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return strconv.Itoa(n) + " times"
}

// shownRows is how many deliveries a table has; --json has more.
const shownRows = 20

func printSchedule(w io.Writer, s *policy.Schedule) error {
	fmt.Fprintln(w) // an error shows at the flush
	t := newTable(w, "  DELIVERY", "BROUGHT BY", "AFTER", "AT")
	shown := s.Steps[:min(len(s.Steps), shownRows)]
	for _, step := range shown {
		if step.By == policy.ByFirst {
			t.row("  1", "-", "-", "0s")
			continue
		}
		t.row("  "+strconv.Itoa(step.Delivery), step.By, spread(step.DelayMillis, step.LowMillis, step.HighMillis),
			spread(step.AtMillis, step.EarliestMillis, step.LatestMillis))
	}
	if s.Deliveries < 0 || s.Deliveries > len(shown) {
		t.row("  ...")
	}
	return t.flush()
}

// fateTexts say when a fate comes about.
var fateTexts = map[string]string{
	policy.WhenGivenUp: "its last delivery fails",
	policy.WhenExpired: "its time to live passes",
	policy.WhenUnsent:  "no consumer can be sent it",
}

// reasonTexts say why a message is dropped.
var reasonTexts = map[redelivery.Reason]string{
	redelivery.ReasonNonPersistent: "no dead letters of non-persistent messages",
	redelivery.ReasonExpired:       "its time to live has passed",
	redelivery.ReasonDiscarding:    "the strategy keeps no dead letters",
	redelivery.ReasonTemporary:     "its destination is temporary (a topic, or expired)",
	redelivery.ReasonNoPolicy:      "no policy is for it",
	redelivery.ReasonLimit:         "the limit is reached",
	redelivery.ReasonPlugin:        "dead letters are dropped",
	redelivery.ReasonOwnQueue:      "it is in its own dead letter queue",
}

func printFates(b *strings.Builder, x *policy.Explanation) error {
	b.WriteString("\nIn the end\n")
	t := &table{w: newTable(b, "  WHEN", "PERSISTENT MESSAGE", "NON-PERSISTENT MESSAGE").w}
	for _, when := range []string{policy.WhenGivenUp, policy.WhenExpired, policy.WhenUnsent} {
		row := []string{"  " + fateTexts[when], "-", "-"}
		for _, f := range x.Fates {
			if f.When == when && f.Persistent {
				row[1] = fateText(f)
			} else if f.When == when {
				row[2] = fateText(f)
			}
		}
		if row[1] != "-" {
			t.row(row...)
		}
	}
	if err := t.flush(); err != nil || x.Grave == nil {
		return err
	}
	g := x.Grave
	fmt.Fprintf(b, "\nA dead letter in %s ", oneLine(g.Destination))
	stays := func(f policy.Fate) string {
		if f.Action == redelivery.Keep.String() {
			return "stays there"
		}
		if f.Target != "" {
			return "goes on to " + oneLine(f.Target)
		}
		return "is " + fateText(f)
	}
	if g.ExpireMillis > 0 {
		fmt.Fprintf(b, "has a time to live of %s: when it passes, it %s; one that fails there %s.\n", span(g.ExpireMillis), stays(g.Expiring), stays(g.Failing))
	} else {
		fmt.Fprintf(b, "stays until somebody takes it; one that fails there %s.\n", stays(g.Failing))
	}
	return nil
}

func fateText(f policy.Fate) string {
	switch f.Action {
	case redelivery.DeadLetter.String():
		return "dead letter in " + f.Target
	case redelivery.Keep.String():
		return "stays where it is"
	case redelivery.Discard.String():
		text := "dropped: " + reasonText(f.Reason)
		if f.Setting != "" {
			text += " (" + f.Setting[strings.LastIndexByte(f.Setting, '.')+1:] + ")"
		}
		return text
	case redelivery.Again.String():
		return "delivered again at once"
	}
	return f.Action
}

func reasonText(reason string) string {
	if text := reasonTexts[redelivery.Reason(reason)]; text != "" {
		return text
	}
	return reason
}

// spread is a time with the range that chance gives it.
func spread(at, low, high int64) string {
	if low == high {
		return span(at)
	}
	return fmt.Sprintf("%s (%s to %s)", span(at), span(low), span(high))
}

// longSpan is what is not worth telling apart: 200 years.
const longSpan = 200 * 365 * 24 * int64(time.Hour/time.Millisecond)

// span is a time in milliseconds for people: exact, with days.
func span(millis int64) string {
	if millis >= longSpan {
		return "for ever"
	}
	const day = int64(24 * time.Hour / time.Millisecond)
	days, rest := millis/day, time.Duration(millis%day)*time.Millisecond
	text := rest.String()
	for _, tail := range []string{"m0s", "h0m"} {
		if cut, ok := strings.CutSuffix(text, tail); ok {
			text = cut + tail[:1]
		}
	}
	switch {
	case days == 0:
		return text
	case rest == 0:
		return fmt.Sprintf("%dd", days)
	}
	return fmt.Sprintf("%dd%s", days, text)
}
