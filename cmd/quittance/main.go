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
	"time"

	"github.com/spf13/cobra"
)

func main() {
	cobra.EnableCommandSorting = false // help lists commands in the order of newRoot
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	code := run(ctx, environment{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		color: wantsColor(os.Stdout), width: widthOf(os.Stdout), zone: time.Local,
		key: os.Getenv(keyVariable), profile: profilePath(), program: programName(os.Args[0]),
	}, os.Args[1:])
	stop()
	os.Exit(code)
}

// usageError is the error of an invalid command line. The exit code is 2.
type usageError struct{ error }

// run executes a command line and returns the exit code: 0 for success, 2 for an invalid
// command line, 1 for other errors.
func run(ctx context.Context, env environment, args []string) int {
	root := newRoot(env, args)
	accepted := false // errors before RunE are usage errors
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := cmp.Or(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
		accepted = err == nil
		return err
	}
	cmd, err := findCommand(root, args)
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
		err = nameFlags(cmd, err)
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

// seeHelp adds a hint to the command's help to a usage error.
func seeHelp(cmd *cobra.Command, err error) error {
	name := cmd.Root().Name()
	return usageError{fmt.Errorf("%w; run \"%s help%s\"", err, name, strings.TrimPrefix(cmd.CommandPath(), name))}
}
