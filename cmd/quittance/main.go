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
	"strings"
	"syscall"
)

const usage = `Quittance turns invoices into settled stablecoin payments.

Usage:
  quittance demo              watch four real invoices live, on a chain in this process
  quittance dev               keep such a world running, to develop against
  quittance serve             run the service on your database and your chains
  quittance chain status      show how far your chains are read, and how their nodes do
  quittance chain rescan      have blocks of a chain read again
  quittance chain resume      have a chain that is halted read on
  quittance chain deploy      deploy the registry contract to a chain
  quittance events list       list events, and how their deliveries stand
  quittance events show       show one event, and every attempt to deliver it
  quittance events redeliver  send events again
  quittance secrets reseal    encrypt webhook secrets under a new master key
  quittance listen            print events as they come, and forward them to your receiver
  quittance trigger           make an event happen in the world of quittance dev
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
	"demo":             runDemo,
	"dev":              runDev,
	"serve":            runServe,
	"chain":            runChain,
	"chain status":     runChainStatus,
	"chain rescan":     runChainRescan,
	"chain resume":     runChainResume,
	"chain deploy":     runChainDeploy,
	"events":           runEvents,
	"events list":      asking(runEventsList),
	"events show":      asking(runEventsShow),
	"events redeliver": asking(runEventsRedeliver),
	"secrets":          runSecrets,
	"secrets reseal":   runSecretsReseal,
	"listen":           asking(runListen),
	"trigger":          asking(runTrigger),
	"version":          runVersion,
	"--version":        runVersion,
	"-v":               runVersion,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next such signal ends the process at once
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
	words, err := parseWords(env, flags, help, args)
	if err == nil && len(words) > 0 {
		err = usageError{fmt.Errorf("%s takes flags alone, not %q", flags.Name(), words[0])}
	}
	return err
}

// parseWords is parse for a command that takes other arguments, before, behind
// and between its flags. It returns them.
func parseWords(env environment, flags *flag.FlagSet, help string, args []string) (words []string, err error) {
	flags.SetOutput(io.Discard)
	for {
		err := flags.Parse(args)
		switch {
		case errors.Is(err, flag.ErrHelp):
			if _, err := fmt.Fprint(env.stdout, help); err != nil {
				return nil, err
			}
			return nil, flag.ErrHelp
		case err != nil:
			return nil, usageError{fmt.Errorf("%w; run \"quittance %s --help\" for what it takes", err, flags.Name())}
		case flags.NArg() == 0:
			return words, nil
		}
		words = append(words, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// listCommands is a group of commands without one of them: it lists them.
func listCommands(env environment, group, help string, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(env.stderr, help)
		return usageError{fmt.Errorf("which command of %s?", group)}
	}
	if !strings.HasPrefix(args[0], "-") {
		return usageError{fmt.Errorf("there is no command \"%s %s\"; run \"quittance %[1]s\" for those there are", group, args[0])}
	}
	return ended(parse(env, flag.NewFlagSet(group, flag.ContinueOnError), help, args))
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
