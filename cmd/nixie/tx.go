package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

func txCommand(e *env) *cobra.Command {
	c := group("tx", "See and end the distributed transactions of a running broker", `
See the distributed (XA) transactions of a running broker, and end those that are prepared
and whose transaction manager does not come back.

A prepared transaction is kept until it is committed or rolled back, whatever happens to
its client or to the broker. What it has received is nobody's meanwhile, and what it has
sent is seen by nobody. That is for its transaction manager to decide, which asks for it
when it recovers. Decide yourself only where that will not happen, and ask it first what
it did with the other branches: what you decide cannot be undone.`, `
  nixie tx list
  nixie tx commit 'XID:[131075,globalId=2d531f,branchId=01]'
  nixie tx rollback 'XID:[131075,globalId=2d531f,branchId=01]'`)
	c.AddCommand(txListCommand(e),
		txEndCommand(e, "commit", "Commit a prepared transaction by hand", `
Commit a prepared transaction by hand: what it has sent is seen, and what it has received
is gone, at once and for good. Its transaction manager is told when it next asks (XA_HEURCOM),
until it forgets the transaction.`),
		txEndCommand(e, "rollback", "Roll a prepared transaction back by hand", `
Roll a prepared transaction back by hand: what it has sent is gone, and what it has received
goes back to its queues, where its delivery counts as failed. A consumer that still has such
a message loses it. The transaction manager is told when it next asks (XA_HEURRB), until it
forgets the transaction.`),
		txEndCommand(e, "forget", "Forget a transaction that was ended by hand", `
Forget a transaction that was ended by hand, where its transaction manager will not ask for
it any more. Nothing else changes.`))
	return c
}

const txListLong = `
List the distributed transactions, the oldest first

  STATE     active; preparing; prepared, waits for its transaction manager; ending;
            by-hand, someone has committed it or rolled it back, and its transaction
            manager does not know yet; timed-out, its client does not know yet
  BEGUN     when its client began it; of one prepared before the broker started, when that was
  SENDS     messages it sends
  ACKS      messages it takes out of DESTINATIONS; not counted before it is prepared
  CLIENT    client id of the client that began it, or prepared it

Local transactions, of one connection alone, are not listed: they end with it.`

func txListCommand(e *env) *cobra.Command {
	var r *remote
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the distributed transactions",
		Long:    strings.TrimSpace(txListLong),
		Example: "  nixie tx list\n  nixie tx list --json | jq -r '.transactions[] | select(.state == \"prepared\").id'",
		Args:    arguments(0),
		RunE: func(c *cobra.Command, _ []string) error {
			var all admin.Transactions
			if err := r.get(c.Context(), "/api/v1/transactions", &all); err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, all)
			}
			return printTransactions(e, &all)
		},
	}
	r = remoteFlags(e, c)
	return c
}

func printTransactions(e *env, all *admin.Transactions) error {
	if len(all.Transactions) == 0 {
		_, err := fmt.Fprintln(e.out, "there are no distributed transactions")
		return err
	}
	t := newTable(e.out, "ID", "STATE", "BEGUN", "PREPARED", "SENDS", "ACKS", "CLIENT", "DESTINATIONS")
	for i := range all.Transactions {
		x := &all.Transactions[i]
		state := x.State
		if x.Outcome != "" {
			state += " " + x.Outcome
		}
		t.row(x.ID, state, moment(x.Begun), moment(x.Prepared), strconv.Itoa(x.Sends), strconv.Itoa(x.Acks), x.ClientID, strings.Join(x.Destinations, " "))
	}
	return t.flush()
}

func txEndCommand(e *env, verb, short, long string) *cobra.Command {
	var r *remote
	c := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Long:    strings.TrimSpace(long) + "\n\nID is as 'nixie tx list' shows it. Quote it: it has brackets.",
		Example: "  nixie tx " + verb + " 'XID:[131075,globalId=2d531f,branchId=01]'",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("%s: which transaction? 'nixie tx list' shows them", c.CommandPath())}
			}
			return arguments(1)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			var reply admin.Ended
			if err := r.post(c.Context(), "/api/v1/transactions/"+segment(args[0])+"/"+verb, struct{}{}, &reply); err != nil {
				return err
			}
			if r.asJSON {
				return printJSON(e.out, reply)
			}
			_, err := fmt.Fprintf(e.out, "%s is %s\n", oneLine(reply.ID), reply.Outcome)
			return err
		},
	}
	r = remoteFlags(e, c)
	return c
}
