package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nixiemq/nixie/internal/admin"
)

// printMessage draws one message for a person.
func printMessage(w io.Writer, m *admin.Detail) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n", oneLine(m.ID))
	printFacts(&b, m)
	printHeaders(&b, &m.Headers)
	printProperties(&b, m.Properties)
	printStory(&b, m.Story, m.Attempts)
	printBody(&b, &m.Body)
	_, err := w.Write(b.Bytes())
	return err
}

// A fact is a name and its value; one without a value is left out.
type fact struct{ name, value string }

func printFactList(b *bytes.Buffer, facts []fact) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, f := range facts {
		if f.value != "" && f.value != "-" {
			fmt.Fprintf(t, "  %s\t%s\n", oneLine(f.name), oneLine(f.value))
		}
	}
	_ = t.Flush() // a buffer takes everything
}

func printFacts(b *bytes.Buffer, m *admin.Detail) {
	state := m.State
	if !m.Due.IsZero() {
		state += ", not before " + moment(m.Due)
	}
	facts := []fact{{"queue", m.Queue}, {"state", state}}
	if d := m.DeadLetter; d != nil {
		died := moment(d.At)
		if !d.At.IsZero() {
			died += ", " + age(d.At, time.Now()) + " ago"
		}
		facts = append(facts, fact{"died", died}, fact{"failed in", d.From}, fact{"cause", causeOf(d)})
	}
	deliveries := fmt.Sprintf("%s, failure count %d; %s ended; a client would now be told the redelivery counter %d",
		count(int64(m.Attempts), "attempt failed", "attempts failed"), m.Failures,
		count(int64(m.HandOuts), "hand-out", "hand-outs"), m.RedeliveryCounter)
	if m.Suspected {
		deliveries += "; the fate of the last hand-out is not known"
	}
	facts = append(facts, fact{"deliveries", deliveries}, fact{"size", fmt.Sprintf("%d bytes, as limits count them", m.SizeBytes)},
		fact{"position", fmt.Sprint(m.Position)}, fact{"error", m.Error})
	printFactList(b, facts)
}

func printHeaders(b *bytes.Buffer, h *admin.Headers) {
	if h.Destination == "" {
		return // they could not be read
	}
	expiration := moment(h.Expiration)
	if h.Expiration.IsZero() {
		expiration = "never"
	}
	group := h.GroupID
	if group != "" {
		group = fmt.Sprintf("%s, number %d", h.GroupID, h.GroupSequence)
	}
	fmt.Fprintln(b, "\nHeaders")
	printFactList(b, []fact{
		{"JMSDestination", h.Destination}, {"original destination", h.OriginalDestination}, {"JMSDeliveryMode", h.DeliveryMode},
		{"JMSPriority", fmt.Sprint(h.Priority)}, {"JMSTimestamp", moment(h.Timestamp)}, {"taken by the broker", moment(h.BrokerInTime)},
		{"JMSExpiration", expiration}, {"JMSReplyTo", h.ReplyTo}, {"JMSCorrelationID", h.CorrelationID}, {"JMSType", h.Type},
		{"JMSXGroupID", group}, {"JMSXUserID", h.UserID}, {"transaction", h.TransactionID},
	})
}

func printProperties(b *bytes.Buffer, properties map[string]any) {
	if len(properties) == 0 {
		return
	}
	fmt.Fprintln(b, "\nProperties")
	var facts []fact
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		var value strings.Builder
		e := json.NewEncoder(&value)
		e.SetEscapeHTML(false)
		_ = e.Encode(properties[name]) // it came as JSON
		facts = append(facts, fact{name, strings.TrimSpace(value.String())})
	}
	printFactList(b, facts)
}

func printStory(b *bytes.Buffer, story []admin.Attempt, attempts int) {
	fmt.Fprintf(b, "\nStory: %s\n", count(int64(attempts), "attempt", "attempts"))
	if attempts == 0 {
		fmt.Fprintln(b, "  no delivery of it has failed")
	}
	last, who := 0, ""
	for i := range story {
		a := &story[i]
		if gap := a.Number - last - 1; gap > 0 {
			fmt.Fprintf(b, "       %s\n", count(int64(gap), "line is not kept", "lines are not kept"))
		}
		last = a.Number
		printAttempt(b, a)
		if w := whoHad(a); w != "" && w != who {
			fmt.Fprintf(b, "       %s\n", oneLine(w))
			who = w
		}
		if a.Text != "" {
			b.WriteString(lines(a.Text, "       "))
		}
	}
}

func printAttempt(b *bytes.Buffer, a *admin.Attempt) {
	counted := "counted"
	if !a.Counted {
		counted = "not counted"
	}
	fmt.Fprintf(b, "  %3d  %s  %s, %s: %s\n", a.Number, moment(a.Ended), oneLine(a.Cause), counted, oneLine(decision(a)))
	if a.Uncertain {
		fmt.Fprintln(b, "       nobody saw it; a later signal told of it")
	}
}

// decision says what was decided after an attempt.
func decision(a *admin.Attempt) string {
	var text string
	switch a.Decision {
	case "client":
		return "the client delivers it once more"
	case "again":
		text = "available again at once"
	case "later":
		text = "again from " + moment(a.NextDue)
	case "dead-letter":
		text = "dead letter"
	case "discard":
		text = "discarded"
	case "keep":
		text = "kept in its place"
	case "hold":
		text = "kept from that connection until " + moment(a.NextDue)
	default:
		text = a.Decision
	}
	if a.Policy != "" {
		text += ", by policy " + a.Policy
	}
	return text
}

// whoHad says who had the message, and since when. It is printed where it differs
// from the attempt before.
func whoHad(a *admin.Attempt) string {
	if a.Consumer == "" {
		return ""
	}
	text := "consumer " + a.Consumer
	var more []string
	if a.ClientID != "" {
		more = append(more, "client "+a.ClientID)
	}
	if a.Address != "" {
		more = append(more, "at "+a.Address)
	}
	if a.Protocol != "" {
		more = append(more, a.Protocol)
	}
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	if !a.HandedOut.IsZero() {
		text += fmt.Sprintf(", handed out %s with the redelivery counter %d", moment(a.HandedOut), a.RedeliveryCounter)
	}
	return text
}

func printBody(b *bytes.Buffer, body *admin.Body) {
	fmt.Fprintf(b, "\nBody: %s\n", count(int64(body.Bytes), "byte", "bytes"))
	if body.Error != "" {
		fmt.Fprintf(b, "  it cannot be shown: %s\n", oneLine(body.Error))
	}
	if body.Text != "" {
		b.WriteString(lines(body.Text, "  "))
	}
	if body.Cut {
		fmt.Fprintln(b, "  (only the beginning is shown)")
	}
}
