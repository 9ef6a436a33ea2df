package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/policy"
	"github.com/spf13/cobra"
)

func policyCommand(e *env) *cobra.Command {
	c := group("policy", "Ask what becomes of a message that fails, and why", `
Ask what becomes of a message that fails, and why. A policy says how often and after
which delays it is delivered again, and what becomes of it then.

The question is about a configuration file (--config), about a broker that runs
(--broker), or, with neither, about a broker without a configuration. The answer is
what the broker does: it asks the same rules.`, `
  nixie policy explain queue://orders.eu --config activemq.xml
  nixie policy simulate ORDERS --fail 3 --work 200ms
  nixie policy simulate ORDERS --config nixie.yaml --max 9 --multiplier 2
  nixie policy lint --config activemq.xml`)
	c.AddCommand(policyExplainCommand(e), policySimulateCommand(e), policyLintCommand(e))
	return c
}

// A policyQuestion is a question about policies, and whom to ask.
type policyQuestion struct {
	e       *env
	remote  *remote
	options config.Options
	params  []policy.Param
	values  map[string]*string
	command *cobra.Command
}

// questionFlags adds the flags of a question.
func questionFlags(e *env, c *cobra.Command, params []policy.Param) *policyQuestion {
	q := &policyQuestion{e: e, params: params, values: map[string]*string{}, command: c}
	f := c.Flags()
	q.remote = remoteFlags(e, c)
	f.Lookup("broker").Usage = "ask the running broker at this admin `URL`"
	f.Lookup("broker").DefValue = ""
	f.Lookup("json").Usage = "print the answer as JSON"
	f.StringVar(&q.options.File, "config", "", "ask about this configuration `file`: activemq.xml, hornetq-configuration.xml, broker.xml or YAML, told apart by content")
	f.StringArrayVarP(&q.options.Defines, "define", "D", nil, "set `NAME=VALUE` for ${NAME} in the configuration file; may be repeated")
	for _, p := range params {
		v := new(string)
		if p.Flag {
			f.VarPF((*switchValue)(v), p.Name, "", p.Usage).NoOptDefVal = "true"
		} else {
			f.StringVar(v, p.Name, "", p.Usage)
		}
		q.values[p.Name] = v
	}
	return q
}

// A switchValue is the text of a flag whose value may be left out. What it may be is for
// the question to say, which the admin listener is asked, too.
type switchValue string

func (v *switchValue) Set(s string) error { *v = switchValue(s); return nil }
func (v *switchValue) String() string     { return string(*v) }
func (v *switchValue) Type() string       { return "bool" }

// query gives the question as the admin listener takes it.
func (q *policyQuestion) query(destination string) url.Values {
	values := url.Values{}
	if destination != "" {
		values.Set(policy.DestinationParam, destination)
	}
	for name, v := range q.values {
		if q.command.Flags().Changed(name) {
			values.Set(name, *v)
		}
	}
	return values
}

// running reports whether a broker is asked.
func (q *policyQuestion) running() (bool, error) {
	broker := q.command.Flags().Changed("broker")
	if broker && (q.options.File != "" || len(q.options.Defines) > 0) {
		return false, usageError{errors.New("give --config or --broker, not both: the question is about a file or about a broker that runs")}
	}
	if !broker && q.command.Flags().Changed("user") {
		return false, usageError{errors.New("--user is for a broker that runs; name it with --broker")}
	}
	return broker, nil
}

// load reads the configuration that is asked about. That nobody could listen with
// it is no reason not to answer.
func (q *policyQuestion) load() (*config.Config, []config.Notice, error) {
	o := q.options
	o.AllowAnonymous, o.WithoutKeys, o.LookupEnv = true, true, q.e.lookup
	return config.Load(o)
}

// answer puts the question to whom it is for: the running broker at path, or local
// with the configuration. What a running broker says is read into remote.
func (q *policyQuestion) answer(ctx context.Context, path, destination string, remote any, local func(*config.Config, policy.Question)) error {
	values := q.query(destination)
	question, err := policy.Ask(values, q.params)
	if err != nil {
		return q.wrong(err)
	}
	running, err := q.running()
	if err != nil {
		return err
	}
	if running {
		return q.remote.get(ctx, path+"?"+values.Encode(), remote)
	}
	c, notices, err := q.load()
	if err != nil {
		return err
	}
	if len(notices) > 0 {
		fmt.Fprintf(q.e.err, "%s: %s; 'nixie policy lint' shows them\n", oneLine(q.options.File), count(int64(len(notices)), "warning", "warnings"))
	}
	local(c, question)
	return nil
}

// wrong is what is wrong with the words of a question, as the command line has
// them.
func (q *policyQuestion) wrong(err error) error {
	var wrong *policy.ParamError
	switch {
	case !errors.As(err, &wrong):
		return err
	case wrong.Param == policy.DestinationParam:
		return usageError{fmt.Errorf("%s: destination: %s", q.command.CommandPath(), wrong.Text)}
	}
	return usageError{fmt.Errorf("--%s: %s", wrong.Param, wrong.Text)}
}

// oneDestination wants one argument, the destination.
func oneDestination(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError{fmt.Errorf("%s: name the destination, such as queue://ORDERS; '%s --help' tells more", c.CommandPath(), c.CommandPath())}
	}
	return arguments(1)(c, args)
}
