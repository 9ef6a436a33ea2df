package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the program's, as the build has noted it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	return v
}

// A build is what 'nixie version' tells.
type build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

func versionCommand(e *env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Tell the program's version",
		Args:  arguments(0),
		RunE: func(*cobra.Command, []string) error {
			b := build{Version: version(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
			if asJSON {
				return printJSON(e.out, b)
			}
			_, err := fmt.Fprintf(e.out, "nixie %s, %s, %s\n", b.Version, b.Go, b.System)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
