package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/spf13/cobra"
)

const configConvertLong = `
Read a configuration file, of any kind that 'nixie serve' reads, and write it as
NixieMQ's own YAML. What holds by default is left out. Comments say where each entry
stood, and what did not carry over.

What is written is read again, and compared with the file: where it would not say the
same, nothing is written. Placeholders are filled in: from -D, the file's properties and
the environment. Passwords are written as they are.`

func configConvertCommand(e *env) *cobra.Command {
	o := config.Options{}
	var output string
	c := &cobra.Command{
		Use:     "convert FILE",
		Short:   "Translate a configuration file into YAML",
		Long:    strings.TrimSpace(configConvertLong),
		Example: "  nixie config convert /opt/activemq/conf/activemq.xml --output nixie.yaml\n  nixie config convert activemq.xml -D activemq.hostname=mq1",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("%s: name the file; '%s --help' tells more", c.CommandPath(), c.CommandPath())}
			}
			return arguments(1)(c, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			o.File, o.LookupEnv = args[0], e.lookup
			text, notices, err := config.Convert(o)
			if err != nil {
				return err
			}
			if len(notices) > 0 {
				fmt.Fprintf(e.err, "%s: %s, at the head of what is written\n", oneLine(o.File), count(int64(len(notices)), "warning", "warnings"))
			}
			if output == "" {
				_, err = e.out.Write(text)
				return err
			}
			return writeNew(output, text)
		},
	}
	c.Flags().StringArrayVarP(&o.Defines, "define", "D", nil, "set `NAME=VALUE` for ${NAME} in the file; may be repeated")
	c.Flags().BoolVar(&o.AllowAnonymous, "allow-anonymous", false, "translate a file also where the rights that it gives cannot be enforced, without them")
	c.Flags().StringVarP(&output, "output", "o", "", "write to this `file`, which must not exist, instead of to standard output")
	return c
}

// writeNew writes a file that is not there yet, for its owner alone: it may hold
// passwords.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists; remove it, or name another file", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

func configSchemaCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of NixieMQ's YAML",
		Long: strings.TrimSpace(`
Print the JSON schema of NixieMQ's own YAML. Editors that know it complete keys and mark
what is wrong; with the YAML language server, a file names it in its first line:

  # yaml-language-server: $schema=nixie-config.schema.json`),
		Example: "  nixie config schema > nixie-config.schema.json",
		Args:    arguments(0),
		RunE: func(*cobra.Command, []string) error {
			_, err := e.out.Write(config.Schema())
			return err
		},
	}
}
