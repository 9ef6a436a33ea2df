package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

func connectionsCommand(e *env) *cobra.Command {
	c := group("connections", "See the clients of a running broker, end their connections, or move them to other brokers", `
See who is connected to a running broker, and end a connection that hangs; or move clients to
the other brokers that it tells them of: after a broker came back and stands empty, or
before one is stopped.`, `
  nixie connections list
  nixie connections close ID:app-40001-1700000000000-1:1
  nixie connections move --count 20
  nixie connections move --all`)
	c.AddCommand(connectionsListCommand(e), connectionsCloseCommand(e), connectionsMoveCommand(e))
	return c
}

const connectionsListLong = `
List the clients that are connected: the id of the connection, the JMS client id, the user,
where it comes from, and what it consumes and produces to, with how many consumers and
producers. A producer that names a destination with each message is told as "any".`

func connectionsListCommand(e *env) *cobra.Command {
	var r *remote
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the clients that are connected",
		Long:    strings.TrimSpace(connectionsListLong),
		Example: "  nixie connections list\n  nixie connections list --json | jq '.connections[] | select(.consumers | any(.destination == \"queue://ORDERS\")).address'",
		Args:    arguments(0),
		RunE: func(c *cobra.Command, _ []string) error {
			var all admin.Connections
			if err := r.get(c.Context(), "/api/v1/connections", &all); err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, all)
			}
			return printConnections(e, all.Connections)
		},
	}
	r = remoteFlags(e, c)
	return c
}

func printConnections(e *env, all []admin.Connection) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(e.out, "nobody is connected")
		return err
	}
	t := newTable(e.out, "CONNECTION", "CLIENT", "USER", "ADDRESS", "CONSUMES", "PRODUCES")
	for i := range all {
		c := &all[i]
		var consumes, produces []string
		for _, k := range c.Consumers {
			consumes = append(consumes, k.Destination)
		}
		for _, p := range c.Producers {
			produces = append(produces, cmp.Or(p.Destination, "any"))
		}
		t.row(c.ID, cmp.Or(c.ClientID, "-"), cmp.Or(c.User, "-"), c.Address, grouped(consumes), grouped(produces))
	}
	return t.flush()
}

// grouped lists names, each once with how often it is there.
func grouped(names []string) string {
	times := map[string]int{}
	for _, n := range names {
		times[n]++
	}
	var all []string
	for _, n := range slices.Sorted(maps.Keys(times)) {
		if times[n] > 1 {
			n = fmt.Sprintf("%s (%d)", n, times[n])
		}
		all = append(all, n)
	}
	return cmp.Or(strings.Join(all, ", "), "-")
}

const connectionsCloseLong = `
End the connection of a client, as if the network had lost it: its open transactions are
rolled back, what it had comes back to its queues, and what its application had, or may have
had, counts as a failed delivery. A client over failover comes back at once.`

func connectionsCloseCommand(e *env) *cobra.Command {
	var r *remote
	c := &cobra.Command{
		Use:     "close ID",
		Short:   "End a client's connection",
		Long:    strings.TrimSpace(connectionsCloseLong),
		Example: "  nixie connections close ID:app-40001-1700000000000-1:1",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return usageError{errors.New("say which connection, by its id; 'nixie connections list' shows them")}
			}
			if err := arguments(1)(c, args); err != nil {
				return err
			}
			var reply admin.ClosedConnection
			if err := r.post(c.Context(), "/api/v1/connections/"+segment(args[0])+"/close", struct{}{}, &reply); err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, reply)
			}
			_, err := fmt.Fprintf(e.out, "connection %s is ended\n", oneLine(reply.ID))
			return err
		},
	}
	r = remoteFlags(e, c)
	return c
}

const connectionsMoveLong = `
Send clients to other brokers. Their connections are ended; clients over failover that were
told of other brokers (updateClusterClients) go to one of these. What they had comes back to
its queues, flagged redelivered, and no failure is counted. An open transaction is rolled
back, and its commit fails.

Messages do not go with them: each broker has its own. Clients without failover, and those
with updateURIsSupported=false, come back to this broker or stay. So do those that find no
other broker.`

func connectionsMoveCommand(e *env) *cobra.Command {
	var r *remote
	var what admin.MoveConnections
	c := &cobra.Command{
		Use:     "move",
		Short:   "Send clients to other brokers",
		Long:    strings.TrimSpace(connectionsMoveLong),
		Example: "  nixie connections move --count 20\n  nixie connections move --all --dry-run",
		Args:    arguments(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if what.All == (what.Count > 0) || what.Count < 0 {
				return usageError{fmt.Errorf("%s: say how many: --count N, or --all", c.CommandPath())}
			}
			var reply admin.MovedConnections
			if err := r.post(c.Context(), "/api/v1/connections/move", what, &reply); err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, reply)
			}
			verb := "sent to other brokers"
			if reply.DryRun {
				verb = "would be sent to other brokers"
			}
			_, err := fmt.Fprintf(e.out, "%s %s, of %d that can go\n", count(int64(reply.Moved), "client", "clients"), verb, reply.Could)
			return err
		},
	}
	r = remoteFlags(e, c)
	c.Flags().IntVar(&what.Count, "count", 0, "send `N` clients")
	c.Flags().BoolVar(&what.All, "all", false, "send all clients that can go")
	c.Flags().BoolVar(&what.DryRun, "dry-run", false, "send nobody; say how many could go")
	return c
}
