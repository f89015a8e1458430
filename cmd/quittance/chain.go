package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
)

const chainHelp = `Usage: quittance chain COMMAND

Commands:
  deploy    deploy the registry contract to a chain

Run "quittance chain COMMAND --help" for what a command takes.
`

// runChain is chain without one of its commands: it lists them.
func runChain(_ context.Context, env environment, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(env.stderr, chainHelp)
		return usageError{errors.New("which command of chain?")}
	}
	if !strings.HasPrefix(args[0], "-") {
		return usageError{fmt.Errorf("there is no command \"chain %s\"; run \"quittance chain\" for those there are", args[0])}
	}
	return ended(parse(env, flag.NewFlagSet("chain", flag.ContinueOnError), chainHelp, args))
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
