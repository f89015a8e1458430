// Command quittance turns invoices into settled stablecoin payments.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

const usage = `Quittance turns invoices into settled stablecoin payments.

Usage:
  quittance demo              watch four real invoices live, on a chain in this process
  quittance dev               keep such a world running, to develop against
  quittance serve             run the service on your database and your chains
  quittance chain deploy      deploy the registry contract to a chain
  quittance version           print the version

Run "quittance COMMAND --help" for what a command takes.
`

// environment is what a command has of the world around it.
type environment struct {
	stdout, stderr io.Writer
	color          bool // stdout is a terminal that wants colour
}

// command runs with the arguments after its name.
type command func(ctx context.Context, env environment, args []string) error

var commands = map[string]command{
	"demo":         runDemo,
	"dev":          runDev,
	"serve":        runServe,
	"chain":        runChain,
	"chain deploy": runChainDeploy,
	"version":      runVersion,
	"--version":    runVersion,
	"-v":           runVersion,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, environment{stdout: os.Stdout, stderr: os.Stderr, color: wantsColor(os.Stdout)}, os.Args[1:])
	stop()
	os.Exit(code)
}

// usageError is a command line that cannot be run.
type usageError struct{ error }

// run runs a command line and returns the exit code: 0 for success, 2 for a
// command line that cannot be run, 1 for everything else.
func run(ctx context.Context, env environment, args []string) int {
	err := dispatch(ctx, env, args)
	var wrong usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintf(env.stderr, "quittance: %v\n", err)
		return 2
	}
	fmt.Fprintf(env.stderr, "quittance: %v\n", err)
	return 1
}

func dispatch(ctx context.Context, env environment, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(env.stderr, usage)
		return usageError{errors.New("which command?")}
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		_, err := fmt.Fprint(env.stdout, usage)
		return err
	}
	for words := min(2, len(args)); words > 0; words-- {
		name := args[0]
		if words == 2 {
			name += " " + args[1]
		}
		if c, ok := commands[name]; ok {
			return c(ctx, env, args[words:])
		}
	}
	return usageError{fmt.Errorf("there is no command %q; run \"quittance help\" for those there are", args[0])}
}

// parse reads the flags of a command, which takes no other arguments. With
// --help it prints the help and returns flag.ErrHelp, on which the command is
// to end well.
func parse(env environment, flags *flag.FlagSet, help string, args []string) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		if _, err := fmt.Fprint(env.stdout, help); err != nil {
			return err
		}
		return flag.ErrHelp
	case err != nil:
		return usageError{fmt.Errorf("%w; run \"quittance %s --help\" for what it takes", err, flags.Name())}
	case flags.NArg() > 0:
		return usageError{fmt.Errorf("%s takes flags alone, not %q", flags.Name(), flags.Arg(0))}
	}
	return nil
}

const versionHelp = `Usage: quittance version

Prints the version and what it was built from.
`

func runVersion(_ context.Context, env environment, args []string) error {
	if err := parse(env, flag.NewFlagSet("version", flag.ContinueOnError), versionHelp, args); err != nil {
		return ended(err)
	}
	version, revision := "(unknown)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
	}
	_, err := fmt.Fprintf(env.stdout, "quittance %s%s\n", version, revision)
	return err
}

// ended is nil for a command that only printed its help.
func ended(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}
