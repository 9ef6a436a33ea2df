package main

import "github.com/spf13/cobra"

func configCommand(e *env) *cobra.Command {
	c := group("config", "Work with configuration files: reload, translate, describe", `
Work with the configuration of a broker: let a changed file hold without a restart,
translate the file of another broker into NixieMQ's own YAML, which says the same in
fewer lines, and print the JSON schema with which editors complete and check such files.`, `
  nixie config reload --dry-run    what a change of the file would change
  nixie config reload              make it hold, without a restart
  nixie config convert activemq.xml --output nixie.yaml
  nixie config schema > nixie-config.schema.json`)
	c.AddCommand(configReloadCommand(e), configConvertCommand(e), configSchemaCommand(e))
	return c
}
