package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/policy"
	"github.com/spf13/cobra"
)

const policyLintLong = `
Look for what in a configuration will surprise its owner: entries of which one never
applies, limits that the clients' own make meaningless, delays and caps that have no
effect, redelivery without an end, dead letters that nobody will see.

  error    the broker does not start with it, or dead letters go round
  warning  what is written does not do what it seems to, or messages are gone
  note     what one should know, and may well have meant; also what in the file is
           not honoured, although leaving it out is safe

Who may connect is not looked at: 'nixie serve' may still refuse to listen beyond loopback
without users.

The exit status is 1 where there is an error or a warning, 0 where there is none.

The clients' own limit is ActiveMQ's default, 6 redeliveries, unless --client-max says
otherwise.`

func policyLintCommand(e *env) *cobra.Command {
	var q *policyQuestion
	c := &cobra.Command{
		Use:   "lint",
		Short: "Look for what will surprise: overlaps, limits without effect, lost dead letters",
		Long:  strings.TrimSpace(policyLintLong),
		Example: `  nixie policy lint --config activemq.xml
  nixie policy lint --config nixie.yaml --client-max 0
  nixie policy lint --broker http://127.0.0.1:8161 --json | jq '.findings[].code'`,
		Args: arguments(0),
		RunE: func(c *cobra.Command, _ []string) error {
			report, err := q.lint()
			switch {
			case err != nil:
				return err
			case q.remote.asJSON:
				err = printJSON(e.out, report)
			default:
				err = printReport(e.out, report)
			}
			if err == nil && !report.Clean() {
				err = fmt.Errorf("not clean: %s, %s", count(int64(report.Errors), "error", "errors"), count(int64(report.Warnings), "warning", "warnings"))
			}
			return err
		},
	}
	q = questionFlags(e, c, policy.LintParams())
	return c
}

// lint asks for the findings. A file that cannot be used at all is a report, too.
func (q *policyQuestion) lint() (*policy.Report, error) {
	values := q.query("")
	client, err := policy.AskLint(values)
	if err != nil {
		return nil, q.wrong(err)
	}
	running, err := q.running()
	if err != nil {
		return nil, err
	}
	var report policy.Report
	switch {
	case running:
		err = q.remote.get(q.command.Context(), "/api/v1/policy/lint?"+values.Encode(), &report)
		return &report, err
	case q.options.File == "":
		return nil, usageError{fmt.Errorf("%s: name a file with --config, or a broker with --broker", q.command.CommandPath())}
	}
	c, notices, err := q.load()
	var bad *config.Error
	switch {
	case errors.As(err, &bad):
		report = policy.Refused(q.options.File, bad, notices)
	case err != nil:
		return nil, err
	default:
		report = policy.Lint(c, notices, client)
	}
	return &report, nil
}

func printReport(w io.Writer, r *policy.Report) error {
	var b strings.Builder
	for _, f := range r.Findings {
		if f.Source != "" {
			b.WriteString(f.Source + ": ")
		}
		fmt.Fprintf(&b, "%s: %s: ", f.Severity, f.Code)
		if f.Part != "" {
			b.WriteString(f.Part + ": ")
		}
		line := b.String() + f.Text
		b.Reset()
		if f.Remedy != "" {
			line += "; " + f.Remedy
		}
		if _, err := fmt.Fprintln(w, oneLine(line)); err != nil {
			return err
		}
	}
	name := r.File
	if name == "" {
		name = "the configuration"
	}
	_, err := fmt.Fprintf(w, "%s: %s, %s, %s\n", oneLine(name), count(int64(r.Errors), "error", "errors"), count(int64(r.Warnings), "warning", "warnings"), count(int64(r.Notes), "note", "notes"))
	return err
}
