// Command quittance turns invoices into settled stablecoin payments.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	cobra.EnableCommandSorting = false // help keeps the order of newRoot
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next such signal ends the process at once
	code := run(ctx, environment{stdout: os.Stdout, stderr: os.Stderr, color: wantsColor(os.Stdout)}, os.Args[1:])
	stop()
	os.Exit(code)
}

// usageError is returned by a command that finds its command line wrong. run
// exits with 2 then.
type usageError struct{ error }

// run executes a command line and returns the exit code: 0 for success, 2 for a
// command line that cannot be run, 1 for everything else.
func run(ctx context.Context, env environment, args []string) int {
	root := newRoot(env, args)
	accepted := false // whatever fails before is wrong in the command line
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := cmp.Or(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
		accepted = err == nil
		return err
	}
	cmd, err := findCommand(root, args)
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if err == nil {
		return 0
	}
	if !accepted {
		err = seeHelp(cmd, err)
	}
	fmt.Fprintf(env.stderr, "quittance: %v\n", err)
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

// seeHelp adds to an error of a command line how to see the help of its command.
func seeHelp(cmd *cobra.Command, err error) error {
	name := cmd.Root().Name()
	return usageError{fmt.Errorf("%w; run \"%s help%s\"", err, name, strings.TrimPrefix(cmd.CommandPath(), name))}
}
