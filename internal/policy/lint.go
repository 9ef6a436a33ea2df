package policy

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A Severity says how much a finding weighs.
type Severity string

// The severities there are. A configuration with errors or warnings is not clean.
const (
	SeverityError   Severity = "error"   // the broker does not start, or messages are lost in a loop
	SeverityWarning Severity = "warning" // what is written does not do what it seems to
	SeverityNote    Severity = "note"    // what one should know, and may well have meant
)

// A Finding is one thing in a configuration that may surprise its owner.
type Finding struct {
	// Code names the kind of finding; docs/policies.md lists them all.
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Source is "file:line"; empty where no line is to blame.
	Source string `json:"source,omitempty"`
	// Part is the entry or element that is spoken of.
	Part string `json:"part,omitempty"`
	// Text says what happens, Remedy what to write instead.
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// A Report is all findings, in the order of their places.
type Report struct {
	File     string    `json:"file,omitempty"`
	Findings []Finding `json:"findings"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Notes    int       `json:"notes"`
}

// Clean reports whether there is no error and no warning.
func (r *Report) Clean() bool { return r.Errors+r.Warnings == 0 }

// MaxFindings bounds a report.
const MaxFindings = 500

// LintParams are the words of [Lint].
func LintParams() []Param { return clientParams() }

// AskLint reads the client of a lint from parameters.
func AskLint(values url.Values) (Client, error) {
	q := NewQuestion(message.Destination{})
	err := q.read(values, LintParams())
	return q.Client, err
}

// codes says what each kind of finding is about. docs/policies.md has the same.
var codes = map[string]string{
	"refused":                  "the file cannot be used: what 'nixie serve' would say",
	"not-honoured":             "what in the file is left out, or differs, and is safe to leave out",
	"no-scheduler":             "a redeliveryPlugin, and the scheduler is turned off (R-PLG-01)",
	"overlap":                  "two patterns match one destination, and neither is the narrower (R-MAP-13)",
	"overlaps":                 "there are too many entries to compare",
	"twice":                    "two entries for one pattern; only the later is used (C17)",
	"no-wildcard":              "a pattern with a wildcard where it is a letter (R-MAP-03)",
	"unused":                   "a default entry that nothing is left for",
	"shadowed":                 "a redelivery policy in whose place a policy has a redelivery of its own",
	"client-limit":             "the clients' own limit is the larger, the policy never acts (C03)",
	"client-first":             "the clients redeliver by themselves first (C03)",
	"zero-attempts":            "max-delivery-attempts of 0, which means no limit (C01)",
	"negative-limit":           "a negative limit other than -1, which means 0 (R-POL-16)",
	"hot-loop":                 "redelivery without end and without delay (C25)",
	"endless":                  "redelivery without end",
	"multiplier-unused":        "a multiplier without exponential back-off (R-POL-11)",
	"no-growth":                "exponential back-off that does not grow (R-POL-11, R-HQ-32)",
	"cap-unused":               "a cap on delays that do not grow (R-POL-11)",
	"cap-below-delay":          "a cap below the delay itself (R-POL-11, R-POL-13, R-HQ-32, R-HQ-35)",
	"cap-unreached":            "a cap that the last delay does not reach",
	"jitter-unused":            "collision avoidance that spreads nothing (R-POL-12, R-POL-13)",
	"jitter-wide":              "collision avoidance beyond 100 % (R-POL-12)",
	"negative-delay":           "a delay below 0, which means at once (R-POL-04)",
	"first-delay":              "redeliveryDelay without initialRedeliveryDelay (E6)",
	"long":                     "more than a week until the dead letter",
	"non-persistent-vanish":    "non-persistent messages become no dead letters (R-DLS-20)",
	"expired-vanish":           "expired messages become no dead letters (R-DLS-20)",
	"discarding":               "no message becomes a dead letter",
	"dead-letters-expire":      "dead letters have a time to live",
	"discard-own":              "dead letters that fail where they lie are gone (R-EDGE-04)",
	"dead-letters-unbound":     "dead letters go to a topic, perhaps without a subscription, or to an address without a queue",
	"no-dead-letter-address":   "no dead-letter-address (R-HQ-44, R-HQ-140)",
	"own-dead-letter-queue":    "a queue is its own dead letter queue (R-DLS-04)",
	"dead-letters-redelivered": "a redelivery policy that names a dead letter queue, and so holds for its dead letters (R-EDGE-31)",
	"dead-letter-loop":         "dead letters of dead letter queues go round (R-EDGE-28)",
	"drop-at-limit":            "what the broker gives up is gone (R-PLG-20)",
	"drop-without-policy":      "what a client gives up is gone where no policy is for it",
	"drop-dead-letters":        "what would become a dead letter is gone (R-DLQ-40)",
	"duplicates-vanish":        "what a client takes for a duplicate is gone (R-EDGE-09)",
	"backlog-unused":           "a backlog of queues, of which nothing is ever evicted",
	"limit-unused":             "a memoryLimit that stops nobody, as what waits is in the store",
	"drop-when-full":           "what is sent to a full destination is gone",
	"more":                     "there are more findings than are shown",
}

// A linter collects the findings of one configuration.
type linter struct {
	c        *config.Config
	resolver *config.Resolver
	client   Client
	found    []Finding
}

// Lint looks for what in a configuration will surprise its owner. client is what
// the clients do by themselves. notices are what reading the file said; they
// become notes.
func Lint(c *config.Config, notices []config.Notice, client Client) Report {
	l := &linter{c: c, resolver: c.Resolver(), client: client}
	for _, check := range []func(*linter){overlaps, unmatchable, unused, shadowed, policies, strategies, addresses, producerLimits, backlogs, withoutScheduler} {
		check(l)
	}
	for _, n := range notices {
		if !strings.HasPrefix(n.Text, "overlaps ") { // there is a finding of it
			l.notice(n, "not-honoured", SeverityNote)
		}
	}
	return l.report()
}

// Refused makes a report of a file that cannot be used at all.
func Refused(file string, err *config.Error, notices []config.Notice) Report {
	l := &linter{c: &config.Config{File: file}}
	for _, n := range err.Problems {
		l.notice(n, "refused", SeverityError)
	}
	for _, n := range notices {
		l.notice(n, "not-honoured", SeverityNote)
	}
	return l.report()
}

func (l *linter) notice(n config.Notice, code string, s Severity) {
	f := Finding{Code: code, Severity: s, Part: n.Part, Text: n.Text, Source: n.File}
	if n.Line > 0 {
		f.Source += ":" + strconv.Itoa(n.Line)
	}
	l.found = append(l.found, f)
}

// report sorts and counts the findings.
func (l *linter) report() Report {
	r := Report{File: l.c.File, Findings: l.found}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		aFile, aLine := splitSource(a.Source)
		bFile, bLine := splitSource(b.Source)
		return cmp.Or(cmp.Compare(aFile, bFile), cmp.Compare(aLine, bLine), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Part, b.Part))
	})
	if more := len(r.Findings) - MaxFindings; more > 0 {
		r.Findings = append(r.Findings[:MaxFindings:MaxFindings],
			Finding{Code: "more", Severity: SeverityWarning, Text: fmt.Sprintf("%d more findings are not shown", more)})
	}
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	for _, f := range r.Findings {
		switch f.Severity {
		case SeverityError:
			r.Errors++
		case SeverityWarning:
			r.Warnings++
		default:
			r.Notes++
		}
	}
	return r
}

// splitSource takes "FILE:LINE" apart; line is 0 where there is none.
func splitSource(source string) (file string, line int) {
	i := strings.LastIndexByte(source, ':')
	if i < 0 {
		return source, 0
	}
	n, err := strconv.Atoi(source[i+1:])
	if err != nil {
		return source, 0
	}
	return source[:i], n
}

// A keyed is one entry of a map of the configuration.
type keyed struct {
	kind    string // what its file calls it
	pattern message.Destination
	source  string
	name    string // instead of the pattern, where it is none of ActiveMQ's
}

func (k *keyed) String() string {
	switch {
	case k.name != "":
		return strings.TrimSpace(k.kind + " " + k.name)
	case k.pattern.IsZero():
		return "default " + k.kind
	}
	return k.kind + " " + k.pattern.String()
}

// maps are the entries of the configuration, map by map.
func (l *linter) maps() [][]keyed {
	var entries, plugged []keyed
	for _, p := range l.c.Policies {
		entries = append(entries, keyed{kind: "policy", pattern: p.Destination, source: p.Source})
	}
	if l.c.Redelivery != nil {
		for _, p := range l.c.Redelivery.Policies {
			plugged = append(plugged, keyed{kind: "redelivery policy", pattern: p.Policy.Destination, source: p.Policy.Source})
		}
	}
	return [][]keyed{entries, plugged}
}

// maxCompared bounds the entries of a map that are compared in pairs.
const maxCompared = 1000

// overlaps finds entries of which a reader cannot easily tell which one wins
// (R-MAP-13, C17).
func overlaps(l *linter) {
	for _, entries := range l.maps() {
		if len(entries) > maxCompared {
			l.add("overlaps", SeverityNote, &entries[0], fmt.Sprintf("with more than %d entries, overlaps are not looked for", maxCompared), "")
			continue
		}
		m := new(redelivery.Map[struct{}])
		for _, e := range entries {
			m.Put(e.pattern, struct{}{})
		}
		for _, c := range m.Conflicts() {
			first, second := &entries[c.First], &entries[c.Second]
			if first.pattern == second.pattern {
				l.add("twice", SeverityWarning, first, fmt.Sprintf("there is another entry for the same pattern (%s), and it is used; nothing of this one is, as entries are not merged", second.source),
					"write all settings into one entry")
				continue
			}
			winner := first
			if c.Winner == c.Second {
				winner = second
			}
			why := "by the order of the letters"
			if c.Chance {
				why = "in ActiveMQ by chance, here always"
			}
			l.add("overlap", SeverityWarning, second, fmt.Sprintf("overlaps %s (%s): where both match, %s (%s) is used, %s, and nothing of the other",
				first.pattern, first.source, winner.pattern, winner.source, why), "make one of them narrower, or write one entry for what both match")
		}
	}
}

// unmatchable finds patterns with a wildcard where it is none (R-MAP-03).
func unmatchable(l *linter) {
	for _, entries := range l.maps() {
		for i := range entries {
			e := &entries[i]
			steps := strings.Split(e.pattern.Name, ".")
			for n, step := range steps {
				switch {
				case step == ">" && n < len(steps)-1 && strings.Trim(strings.Join(steps[n:], ""), ">") != "":
					l.add("no-wildcard", SeverityWarning, e, `">" matches any number of steps only at the end of a pattern; before it, it is a name like any other, so this entry matches nothing`,
						`use "*" for one step`)
				case step != "*" && step != ">" && strings.ContainsAny(step, "*>#"):
					l.add("no-wildcard", SeverityWarning, e, fmt.Sprintf("a wildcard is a whole step between dots; in %q it is a letter like any other, so this entry matches nothing but that very name", step),
						`write "orders.*" rather than "orders*"; "#" is HornetQ's, here it is ">"`)
				default:
					continue
				}
				break
			}
		}
	}
}

// unused finds default entries that nothing is left for.
func unused(l *linter) {
	all := func(entries []keyed) bool {
		covered := map[message.DestinationKind]bool{}
		for _, e := range entries {
			if e.pattern.Name == ">" {
				covered[e.pattern.Kind] = true
			}
		}
		return covered[message.Queue] && covered[message.Topic] && covered[message.TempQueue] && covered[message.TempTopic]
	}
	maps := l.maps()
	if d := l.c.DefaultPolicy; d != nil && all(maps[0]) {
		l.add("unused", SeverityWarning, &keyed{kind: "policy", source: d.Source}, `is never used, as there are entries for ">" of every kind`, "remove it")
	}
	if r := l.c.Redelivery; r != nil && r.Default != nil && all(maps[1]) {
		l.add("unused", SeverityWarning, &keyed{kind: "redelivery policy", source: r.Default.Policy.Source}, `is never used, as there are entries for ">" of every kind`, "remove it")
	}
}

// shadowed finds policies of a redeliveryPlugin in whose place a policy entry has a
// redelivery of its own.
func shadowed(l *linter) {
	if l.c.Redelivery == nil {
		return
	}
	for i := range l.c.Redelivery.Policies {
		p := &l.c.Redelivery.Policies[i].Policy
		d := sampleOf(p.Destination)
		won := l.resolver.Policy(d)
		for j := range l.c.Policies {
			if e := &l.c.Policies[j]; e.Rules.Redelivery != nil && e.Source == won.Source && e.Destination.Matches(d) {
				l.add("shadowed", SeverityWarning, &keyed{kind: "redelivery policy", pattern: p.Destination, source: p.Source},
					fmt.Sprintf("the redelivery of the policy for %s (%s) goes before it", e.Destination, e.Source), "remove one of them")
				break
			}
		}
	}
}

// sampleOf is a destination that a pattern fits, though a narrower one may, too.
func sampleOf(pattern message.Destination) message.Destination {
	pattern.Name = strings.NewReplacer("*", "x", ">", "x").Replace(pattern.Name)
	return pattern
}

// withoutScheduler finds a plugin that ActiveMQ would not start with (R-PLG-01). Load
// refuses an activemq.xml with it.
func withoutScheduler(l *linter) {
	if r := l.c.Redelivery; r != nil && l.c.NoScheduler {
		l.add("no-scheduler", SeverityNote, &keyed{name: "redeliveryPlugin", source: r.Source},
			"delays messages although the scheduler is turned off, which only concerns what clients schedule", "")
	}
}

func (l *linter) add(code string, s Severity, e *keyed, text, remedy string) {
	f := Finding{Code: code, Severity: s, Text: text, Remedy: remedy}
	if e != nil {
		f.Source, f.Part = e.source, e.String()
	}
	l.found = append(l.found, f)
}
