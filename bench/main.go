// Command bench measures the service on this machine in six parts: creates, deliveries, back-fill, bursts, lists and
// memory. Each figure has a baseline that is measured in the same run, and is written to a dated file.
//
// The server runs in a separate process, so that its memory and its CPU time can be read. The load, the database and
// the chain share the machine with it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

// roles are the roles of this program in the processes that a measurement starts. Each gets its configuration as JSON.
var roles = map[string]func(ctx context.Context, config string) error{
	serverRole: serve, nodeRole: serveNode, fillRole: fill,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if len(os.Args) == 3 && roles[os.Args[1]] != nil {
		err = roles[os.Args[1]](ctx, os.Args[2])
	} else {
		err = run(ctx, os.Stdout)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
