// Command nixie is a message broker for what happens to a message that fails.
// Unmodified ActiveMQ clients connect to it. The same program talks to a broker
// that runs: what its commands print is what the broker's admin listener says.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(program()) }

// program runs the command line until it is done or a signal ends it. A second
// signal ends the process at once.
func program() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
