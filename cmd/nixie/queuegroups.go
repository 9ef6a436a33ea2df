package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

const queueGroupsLong = `
List the message groups (JMSXGroupID) of a queue that belong to a consumer now: which one,
and how many messages of the group it has. While it has no room, the group waits for it.

--release takes a group from its consumer, --release-all all of them: as soon as the
consumer is done with the messages that it has, or is closed, the group goes to whoever has
room. What hangs with a consumer that does nothing comes back when its connection is ended:
see 'nixie connections close'.`

func queueGroupsCommand(e *env) *cobra.Command {
	var r *remote
	var what admin.Release
	c := &cobra.Command{
		Use:     "groups QUEUE",
		Short:   "See which consumers the message groups of a queue belong to, and take them from them",
		Long:    strings.TrimSpace(queueGroupsLong),
		Example: "  nixie queue groups ORDERS\n  nixie queue groups ORDERS --release customer-4711",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return usageError{fmt.Errorf("say which queue; '%s --help' tells more", c.CommandPath())}
			}
			if err := arguments(1)(c, args); err != nil {
				return err
			}
			named := c.Flags().Changed("release")
			switch {
			case named && what.Group == "":
				return usageError{errors.New("--release needs the name of a group; --release-all is for all of them")}
			case named && what.All:
				return usageError{errors.New("--release and --release-all go not together")}
			case named, what.All:
				return releaseGroups(c, r, args[0], what)
			}
			return listGroups(c, r, args[0])
		},
	}
	c.Flags().StringVar(&what.Group, "release", "", "take this `group` from its consumer")
	c.Flags().BoolVar(&what.All, "release-all", false, "take all groups from their consumers")
	r = remoteFlags(e, c)
	return c
}

func releaseGroups(c *cobra.Command, r *remote, queue string, what admin.Release) error {
	var reply admin.Released
	if err := r.post(c.Context(), queuePath(queue, "/groups/release"), what, &reply); err != nil {
		return err
	}
	if r.asJSON {
		return printJSON(r.e.out, reply)
	}
	_, err := fmt.Fprintf(r.e.out, "%s taken from their consumers, as soon as those are done with what they have\n", count(int64(reply.Released), "group", "groups"))
	return err
}

func listGroups(c *cobra.Command, r *remote, queue string) error {
	var reply admin.Groups
	if err := r.get(c.Context(), queuePath(queue, "/groups"), &reply); err != nil {
		return err
	}
	if r.asJSON {
		return printJSON(r.e.out, reply)
	}
	if len(reply.Groups) == 0 {
		_, err := fmt.Fprintf(r.e.out, "no message group of %s belongs to a consumer\n", oneLine(reply.Queue))
		return err
	}
	t := newTable(r.e.out, "GROUP", "OUT", "CONSUMER", "CLIENT", "ADDRESS")
	for _, g := range reply.Groups {
		out := fmt.Sprint(g.Out)
		if g.Leaving {
			out += ", then released"
		}
		t.row(g.Group, out, g.Consumer, cmp.Or(g.ClientID, "-"), cmp.Or(g.Address, "-"))
	}
	return t.flush()
}
