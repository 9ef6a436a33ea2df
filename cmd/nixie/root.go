package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/server"
	"github.com/spf13/cobra"
)

// The exit statuses of the program.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2 // the command line is wrong
	// exitNoRoom is that of a start on a full disk, and of a store that had to end, as
	// its disk is full or broken (docs/storage.md).
	exitNoRoom = 75
)

// An env is what a command has to do with the world.
type env struct {
	out, err io.Writer
	lookup   func(string) (string, bool) // environment variables
}

// A usageError is the command line's fault.
type usageError struct{ error }

// run executes a command line and returns the exit status.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	root := rootCommand(&env{out: out, err: errs, lookup: os.LookupEnv})
	root.SetOut(out)
	root.SetErr(errs)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	var usage usageError
	var bad *config.Error
	switch {
	case errors.As(err, &usage):
		fmt.Fprintf(errs, "nixie: %v\n", err)
		return exitUsage
	case errors.As(err, &bad):
		fmt.Fprintf(errs, "nixie: the configuration cannot be used:\n%v\n", err)
	case server.NoRoom(err):
		fmt.Fprintf(errs, "nixie: %v\n", err)
		return exitNoRoom
	default:
		fmt.Fprintf(errs, "nixie: %v\n", err)
	}
	return exitFailed
}

func rootCommand(e *env) *cobra.Command {
	root := group("nixie", "A message broker for what happens to a message that fails", `
NixieMQ is a message broker that unmodified ActiveMQ clients connect to. A delivery
that fails is redelivered, and in the end becomes a dead letter, exactly once, with
the whole story of its attempts attached.

'nixie serve' runs the broker. 'queue', 'dlq', 'tx', 'connections' and 'config reload' talk
to one that runs, at its admin address: http://127.0.0.1:8161, or the one given with
--broker. 'produce' and 'consume' are clients of it: tcp://127.0.0.1:61616, or --url.`, `
  nixie demo                           see in ten seconds what it is about
  nixie serve                          run a broker for tcp://127.0.0.1:61616
  nixie queue list                     what is in its queues
  nixie dlq show                       what became a dead letter, and why
  nixie dlq redrive --all              bring the dead letters back
  nixie policy explain ORDERS          what becomes of a message that fails, and why`)
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; '%s --help' tells more", err, c.CommandPath())}
	})
	root.AddCommand(serveCommand(e), demoCommand(e), produceCommand(e), consumeCommand(e), queueCommand(e), dlqCommand(e), policyCommand(e), txCommand(e), scheduledCommand(e), connectionsCommand(e), configCommand(e), versionCommand(e))
	return root
}

// group is a command that only has others below it.
func group(use, short, long, example string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: strings.TrimSpace(long), Example: strings.Trim(example, "\n"),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			text := fmt.Sprintf("%s has no command %q", c.CommandPath(), args[0])
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				text += fmt.Sprintf("; did you mean %q?", near[0])
			}
			return usageError{fmt.Errorf("%s; '%s --help' lists them", text, c.CommandPath())}
		},
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
		SuggestionsMinimumDistance: 2,
	}
}

// arguments allows at most so many, and names the command where there are more.
func arguments(most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) <= most {
			return nil
		}
		return usageError{fmt.Errorf("%s: %q is one argument too many; '%s --help' tells more", c.CommandPath(), args[most], c.CommandPath())}
	}
}
