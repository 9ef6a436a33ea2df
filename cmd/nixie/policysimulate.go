package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/policy"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/spf13/cobra"
)

const policySimulateLong = `
Follow one message through its deliveries: which fail, how long it waits for the next,
and how it ends. Nothing is sent; the rules are asked as the broker asks them.

With --fail N the first N deliveries fail, with --fail always all do. With --odds each
delivery fails with that probability, and the answer is how likely each number of
deliveries is and when it is over: half of all messages by p50, 99 in 100 by p99. So
it is where delays are spread by chance. Chance is drawn from --seed: the same question
has the same answer.

With --max, --initial, --delay, --multiplier, --cap, --exponential or --jitter a change
of the broker's policy is tried, and shown beside what is configured. What the client
does is set with --client-...`

func policySimulateCommand(e *env) *cobra.Command {
	var q *policyQuestion
	c := &cobra.Command{
		Use:   "simulate DESTINATION",
		Short: "Follow one message that fails, and try another policy",
		Long:  strings.TrimSpace(policySimulateLong),
		Example: `  nixie policy simulate ORDERS --config activemq.xml --fail 3 --work 200ms
  nixie policy simulate ORDERS --config activemq.xml --client-max 0 --max 9 --multiplier 2 --cap 1m
  nixie policy simulate ORDERS --broker http://127.0.0.1:8161 --odds 30% --rate 100/s`,
		Args: oneDestination,
		RunE: func(c *cobra.Command, args []string) error {
			var s policy.Simulation
			err := q.answer(c.Context(), "/api/v1/policy/simulate", args[0], &s, func(c *config.Config, question policy.Question) {
				s = policy.Simulate(c, question)
			})
			switch {
			case err != nil:
				return err
			case q.remote.asJSON:
				return printJSON(e.out, s)
			}
			return printSimulation(e.out, &s)
		},
	}
	q = questionFlags(e, c, policy.SimulateParams())
	return c
}

func printSimulation(w io.Writer, s *policy.Simulation) error {
	var b strings.Builder
	b.WriteString(oneLine(s.Destination) + "\n")
	if s.Tried == nil {
		if err := printOutcome(&b, &s.Present); err != nil {
			return err
		}
	} else if err := printTried(&b, s); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printOutcome shows how the message fares under one policy.
func printOutcome(b *strings.Builder, o *policy.Outcome) error {
	if err := printTurns(b, o); err != nil {
		return err
	}
	if err := printChance(b, o.Chance); err != nil {
		return err
	}
	if o.Waiting != nil {
		fmt.Fprintf(b, "\nWith %s messages each second, on average %s wait in the broker and %s in clients; there are %s deliveries each second.\n",
			figure(o.Waiting.PerSecond), figure(o.Waiting.Broker), figure(o.Waiting.Client), figure(o.Waiting.Deliveries))
	}
	for _, n := range o.Notes {
		fmt.Fprintf(b, "\nNote: %s.\n", oneLine(n))
	}
	return nil
}

func printTurns(b *strings.Builder, o *policy.Outcome) error {
	if o.End == nil {
		return nil
	}
	b.WriteString("\n")
	t := newTable(b, "  AT", "DELIVERY", "OUTCOME")
	shown := o.Turns
	if len(shown) > shownRows {
		shown = shown[:shownRows]
	}
	for _, turn := range shown {
		t.row("  "+span(turn.AtMillis), strconv.Itoa(turn.Delivery), turnText(turn))
	}
	if o.End.Deliveries > len(shown) {
		t.row("  ...")
	}
	if o.End.How != policy.EndNone {
		t.row("  "+span(o.End.AtMillis), "", endText(o.End.How, o.End.Target, o.End.Reason, o.End.Setting))
	}
	return t.flush()
}

func turnText(t policy.Turn) string {
	switch {
	case !t.Failed:
		return "succeeds"
	case t.By == "":
		return "fails, and is the last"
	case t.ExpiresFirst:
		return fmt.Sprintf("fails; its time to live ends in %s, before the delay does", span(t.DelayMillis))
	}
	return fmt.Sprintf("fails; the %s brings it back after %s", t.By, span(t.DelayMillis))
}

func endText(how, target, reason, setting string) string {
	switch how {
	case policy.EndProcessed:
		return "processed"
	case policy.EndNone:
		return "no end in sight"
	}
	text := fateText(policy.Fate{Action: how, Target: target, Reason: reason, Setting: setting})
	if target != "" && reason == string(redelivery.ReasonExpired) {
		text += ", expired"
	}
	return text
}

func printChance(b *strings.Builder, c *policy.Chance) error {
	if c == nil {
		return nil
	}
	b.WriteString("\n")
	if len(c.Deliveries) > 1 {
		t := newTable(b, "  DELIVERIES", "SHARE")
		for _, s := range c.Deliveries {
			t.row("  "+strconv.Itoa(s.Deliveries), percent(s.Share))
		}
		if err := t.flush(); err != nil {
			return err
		}
		b.WriteString("\n")
	}
	t := newTable(b, "  END", "SHARE")
	for _, e := range c.Ends {
		t.row("  "+endText(e.How, e.Target, e.Reason, e.Setting), percent(e.Share))
	}
	if err := t.flush(); err != nil {
		return err
	}
	p := c.EndMillis
	fmt.Fprintf(b, "\nOver after %s at the least, p50 %s, p90 %s, p99 %s, at the most %s (%d runs of chance, seed %d).\n",
		span(p.Least), span(p.P50), span(p.P90), span(p.P99), span(p.Most), c.Runs, c.Seed)
	return nil
}

// printTried shows two policies side by side.
func printTried(b *strings.Builder, s *policy.Simulation) error {
	b.WriteString("\n")
	t := newTable(b, "", "PRESENT", "TRIED")
	row := func(name string, of func(*policy.Outcome) string) {
		if p, q := of(&s.Present), of(s.Tried); p != "" || q != "" {
			t.row("  "+name, dash(p), dash(q))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tried.Policy)) {
		if p, q := s.Present.Policy[name], s.Tried.Policy[name]; p != q {
			row(name, func(o *policy.Outcome) string { return o.Policy[name] })
		}
	}
	for n := range min(max(len(s.Present.Turns), len(s.Tried.Turns)), shownRows) {
		row("delivery "+strconv.Itoa(n+1), func(o *policy.Outcome) string {
			if n >= len(o.Turns) {
				return ""
			}
			turn := o.Turns[n]
			by := ""
			if n > 0 {
				by = ", by the " + o.Turns[n-1].By
			}
			return span(turn.AtMillis) + by
		})
	}
	row("ends", func(o *policy.Outcome) string {
		if o.End == nil {
			return ""
		}
		return span(o.End.AtMillis) + ", " + endText(o.End.How, o.End.Target, o.End.Reason, o.End.Setting)
	})
	chance := func(name string, of func(*policy.Chance) string) {
		row(name, func(o *policy.Outcome) string {
			if o.Chance == nil {
				return ""
			}
			return of(o.Chance)
		})
	}
	for _, way := range waysOf(s) {
		chance(way, func(c *policy.Chance) string {
			share := 0.0
			for _, e := range c.Ends {
				if endText(e.How, e.Target, e.Reason, e.Setting) == way {
					share += e.Share
				}
			}
			return percent(share)
		})
	}
	chance("over, p50", func(c *policy.Chance) string { return span(c.EndMillis.P50) })
	chance("over, p90", func(c *policy.Chance) string { return span(c.EndMillis.P90) })
	chance("over, p99", func(c *policy.Chance) string { return span(c.EndMillis.P99) })
	waiting := func(name string, of func(*policy.Waiting) float64) {
		row(name, func(o *policy.Outcome) string {
			if o.Waiting == nil {
				return ""
			}
			return figure(of(o.Waiting))
		})
	}
	waiting("wait in the broker", func(w *policy.Waiting) float64 { return w.Broker })
	waiting("wait in clients", func(w *policy.Waiting) float64 { return w.Client })
	waiting("deliveries each second", func(w *policy.Waiting) float64 { return w.Deliveries })
	if err := t.flush(); err != nil {
		return err
	}
	for _, o := range []struct {
		name  string
		notes []string
	}{{"present", s.Present.Notes}, {"tried", s.Tried.Notes}} {
		for _, n := range o.notes {
			fmt.Fprintf(b, "\nNote on what is %s: %s.\n", o.name, oneLine(n))
		}
	}
	return nil
}

// waysOf lists the ways to end under either policy, as people read them.
func waysOf(s *policy.Simulation) []string {
	var all []string
	for _, o := range []*policy.Outcome{&s.Present, s.Tried} {
		if o.Chance == nil {
			continue
		}
		for _, e := range o.Chance.Ends {
			if text := endText(e.How, e.Target, e.Reason, e.Setting); !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// percent is a share for people: with more digits where it is near nothing or all.
func percent(share float64) string {
	digits := 1
	for edge := min(share, 1-share); edge > 0 && edge < 0.001 && digits < 9; edge *= 10 {
		digits++
	}
	return strconv.FormatFloat(share*100, 'f', digits, 64) + " %"
}

// figure is a number for people, with as many digits as are worth telling.
func figure(f float64) string {
	if f >= 100 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}
