// Command gen writes the data types of OpenWire and their marshalling from
// commands.yaml. It is run by go generate in the directory of package wire.
//
// What the table does not say stands in table.go: Go names and types, and the
// values of fields that a version does not have. One struct stands for all
// seven messages, and a hand-written one for the four kinds of destination.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run("commands.yaml", "."); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run reads the table and writes the generated files into dir.
func run(tablePath, dir string) error {
	src, err := os.ReadFile(tablePath)
	if err != nil {
		return err
	}
	files, err := generate(src)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(dir+"/"+name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
