package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
)

const chainHelp = `Usage: quittance chain COMMAND

Commands:
  status    show how far the chains are read, and how their nodes do
  rescan    have blocks of a chain read again
  resume    have a chain that is halted read on
  deploy    deploy the registry contract to a chain

Run "quittance chain COMMAND --help" for what a command takes.
`

// runChain is chain without one of its commands: it lists them.
func runChain(_ context.Context, env environment, args []string) error {
	return listCommands(env, "chain", chainHelp, args)
}

// operated is a service's configuration and one of its chains, as the commands
// take them.
type operated struct {
	path, key string
	admin.Config
	chain chain.Chain
}

// operatedFlags adds the flags that say which chain of which service.
func operatedFlags(flags *flag.FlagSet) *operated {
	o := &operated{Config: admin.Config{Now: time.Now}}
	flags.StringVar(&o.path, "config", "", "")
	flags.StringVar(&o.key, "chain", "", "")
	return o
}

// load reads the configuration and finds the chain in it, which need not be
// named when it is the only one.
func (o *operated) load(command string) error {
	if o.path == "" {
		return usageError{fmt.Errorf("%s needs --config FILE", command)}
	}
	cfg, err := config.Load(o.path, config.System)
	if err != nil {
		return err
	}
	o.Database, o.Chains = cfg.Database, chainsOf(cfg)
	known := keysOf(o.Chains, func(c chain.Chain) string { return c.Key })
	if o.key == "" && len(o.Chains) > 1 {
		return usageError{fmt.Errorf("%s needs --chain KEY; there is %s", command, known)}
	}
	for _, c := range o.Chains {
		if o.key == "" || c.Key == o.key {
			o.chain = c
			return nil
		}
	}
	return noChain(o.key, known)
}

// chainsOf returns the chains without their operators' keys.
func chainsOf(cfg config.Config) []chain.Chain {
	all := make([]chain.Chain, len(cfg.Chains))
	for i, c := range cfg.Chains {
		all[i] = c.Chain
	}
	return all
}

// keysOf returns the keys of chains, with commas between.
func keysOf[C any](chains []C, key func(C) string) string {
	keys := make([]string, len(chains))
	for i, c := range chains {
		keys[i] = key(c)
	}
	return strings.Join(keys, ", ")
}

// noChain says that a chain is not among those that there are.
func noChain(key, known string) error {
	return usageError{fmt.Errorf("there is no chain %q; there is %s", key, known)}
}

const chainRescanHelp = `Usage: quittance chain rescan --config FILE --chain KEY --from N

Has the blocks of a chain be read again, from block N up to the newest one that
was read, beside the head. What was missed there is recorded: payments, refunds,
and what the registry said. What is known stays as it is, and nothing is told
twice: a known payment keeps the invoice that it has, or stays without one, even
if what is found below it would have decided otherwise. The service goes about
it at once if it runs, and else when it starts.

Flags:
  --config FILE    the service's configuration
  --chain KEY      which chain; needed when there are several
  --from N         first block to read again
`

func runChainRescan(ctx context.Context, env environment, args []string) error {
	flags := flag.NewFlagSet("chain rescan", flag.ContinueOnError)
	o := operatedFlags(flags)
	from := flags.Int64("from", -1, "")
	if err := parse(env, flags, chainRescanHelp, args); err != nil {
		return ended(err)
	}
	if *from < 0 {
		return usageError{errors.New("chain rescan needs --from N, the number of a block")}
	}
	if err := o.load("chain rescan"); err != nil {
		return err
	}
	gap, err := admin.Rescan(ctx, o.Config, o.chain.Key, uint64(*from))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.stdout, `Blocks %d to %d of %s are to be read again, %s.
A service that runs begins within seconds, beside the head; no invoice that they
could settle expires meanwhile. Payments that are known keep the invoice that
they have, or stay without one, whatever is found below them. Watch it with

  quittance chain status --config %s --chain %s
`, gap.Next, gap.Last, o.chain.Key, count(int(gap.Last-gap.Next+1), "block"), o.path, o.chain.Key)
	return err
}

const chainResumeHelp = `Usage: quittance chain resume --config FILE --chain KEY --yes

Has a chain that is halted read on. A chain is halted when its nodes tell of
another history below what was final, so that somebody was told of money that
may not be there. Find out first which is right: docs/operations.md says how.
The service goes on by itself if it runs, and halts the chain again if the nodes
still tell of the other history.

Flags:
  --config FILE    the service's configuration
  --chain KEY      which chain; needed when there are several
  --yes            do it; without it, the reason of the halt is shown
`

func runChainResume(ctx context.Context, env environment, args []string) error {
	flags := flag.NewFlagSet("chain resume", flag.ContinueOnError)
	o := operatedFlags(flags)
	yes := flags.Bool("yes", false, "")
	if err := parse(env, flags, chainResumeHelp, args); err != nil {
		return ended(err)
	}
	if err := o.load("chain resume"); err != nil {
		return err
	}
	reason, err := admin.Halted(ctx, o.Config, o.chain.Key)
	if err != nil {
		return err
	}
	if reason == "" {
		_, err := fmt.Fprintf(env.stdout, "%s is not halted. There is nothing to do.\n", o.chain.Key)
		return err
	}
	if _, err := fmt.Fprintf(env.stdout, "%s is halted: %s\n", o.chain.Key, reason); err != nil {
		return err
	}
	if !*yes {
		return errors.New("nothing was changed; compare the chain's nodes with another one, and run this again with --yes to have it read on")
	}
	if err := admin.Resume(ctx, o.Config, o.chain.Key); err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.stdout, "It is read on from where it stopped; a service that runs goes about it within seconds.")
	return err
}

const chainDeployHelp = `Usage: quittance chain deploy --rpc URL --key-env VAR [flags]

Deploys the invoice registry to a chain and prints its address, which belongs
into the configuration as the chain's registry. The key's account pays for the
gas, administers the registry and is its first operator.

Flags:
  --rpc URL          JSON-RPC of a node of the chain
  --key-env VAR      environment variable that holds the private key, 64 hex digits
  --operator ADDR    another account that may open and close invoices
`

func runChainDeploy(ctx context.Context, env environment, args []string) error {
	flags := flag.NewFlagSet("chain deploy", flag.ContinueOnError)
	url := flags.String("rpc", "", "")
	keyEnv := flags.String("key-env", "", "")
	operator := flags.String("operator", "", "")
	if err := parse(env, flags, chainDeployHelp, args); err != nil {
		return ended(err)
	}
	if *url == "" || *keyEnv == "" {
		return usageError{errors.New("chain deploy needs --rpc URL and --key-env VAR")}
	}
	if err := config.CheckNodeURL(*url); err != nil {
		return usageError{fmt.Errorf("--rpc %w", err)}
	}
	text, ok := os.LookupEnv(*keyEnv)
	if !ok {
		return usageError{fmt.Errorf("the environment variable %s is not set; it must hold the private key", *keyEnv)}
	}
	key, err := config.ParseKey(text)
	if err != nil {
		return usageError{fmt.Errorf("the environment variable %s %w", *keyEnv, err)}
	}
	d := chain.Deployment{RPC: *url, Key: key}
	if *operator != "" {
		if d.Operator, err = chain.ParseAddress(*operator); err != nil {
			return usageError{fmt.Errorf("--operator %w", err)}
		}
	}
	registry, err := d.Deploy(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.stdout, chain.Checksum(registry))
	return err
}
