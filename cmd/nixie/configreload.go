package main

import (
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

const configReloadLong = `
Let a running broker read its configuration file again, with the flags that it was
started with, and make hold what can change without a restart: policies, the plugins for
redelivery and dead letters, users and rights, virtual and composite destinations,
destinations that are to be there, and the brokers that clients are told of. Each
difference is printed, old and new, with file and line, and logged by the broker before
it holds. SIGHUP does the same.

What needs a restart is named and left: listeners, the data directory, the broker's name,
the first users, limits of memory and disk. A file that cannot be used changes nothing,
and all that is wrong with it is printed.

What was decided stays: a message that waits for its retry keeps its time, and dead
letters lie where they are. The next failure is decided by what holds then.`

func configReloadCommand(e *env) *cobra.Command {
	var r *remote
	var what admin.ReloadRequest
	c := &cobra.Command{
		Use:     "reload",
		Short:   "Let a running broker read its configuration again",
		Long:    strings.TrimSpace(configReloadLong),
		Example: "  nixie config reload --dry-run\n  nixie config reload\n  kill -HUP $(pidof nixie)",
		Args:    arguments(0),
		RunE: func(c *cobra.Command, _ []string) error {
			var reply admin.Reloaded
			if err := r.post(c.Context(), "/api/v1/reload", what, &reply); err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, reply)
			}
			return printReloaded(e, &reply)
		},
	}
	r = remoteFlags(e, c)
	c.Flags().BoolVar(&what.DryRun, "dry-run", false, "change nothing; say what would change")
	return c
}

func printReloaded(e *env, reply *admin.Reloaded) error {
	var b strings.Builder
	left := 0
	for _, w := range reply.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", oneLine(w))
	}
	for _, c := range reply.Changes {
		fmt.Fprintln(&b, oneLine(c.String()))
		if c.Restart {
			left++
		}
	}
	switch n := len(reply.Changes) - left; {
	case len(reply.Changes) == 0:
		fmt.Fprintf(&b, "%s says what holds already\n", oneLine(reply.File))
	case reply.DryRun:
		fmt.Fprintf(&b, "%s would hold at once, %d after a restart\n", count(int64(n), "change", "changes"), left)
	case left > 0:
		fmt.Fprintf(&b, "%s now, %d after a restart\n", holds(n), left)
	default:
		fmt.Fprintf(&b, "%s now\n", holds(n))
	}
	_, err := fmt.Fprint(e.out, b.String())
	return err
}

func holds(n int) string {
	if n == 1 {
		return "1 change holds"
	}
	return fmt.Sprintf("%d changes hold", n)
}
