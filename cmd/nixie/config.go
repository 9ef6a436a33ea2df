package main

import "github.com/spf13/cobra"

func configCommand(e *env) *cobra.Command {
	c := group("config", "Work with the configuration of a broker", `
Work with the configuration of a broker.`, `
  nixie config reload --dry-run    what a change of the file would change
  nixie config reload              make it hold, without a restart`)
	c.AddCommand(configReloadCommand(e))
	return c
}
