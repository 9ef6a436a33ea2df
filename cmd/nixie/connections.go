package main

import (
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

func connectionsCommand(e *env) *cobra.Command {
	c := group("connections", "Move the clients of a running broker to other brokers", `
Move clients of a running broker to the other brokers that it tells them of: after a broker
came back and stands empty, or before one is stopped.`, `
  nixie connections move --count 20
  nixie connections move --all`)
	c.AddCommand(connectionsMoveCommand(e))
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
