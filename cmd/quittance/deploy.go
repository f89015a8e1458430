package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
)

// deployFlags are the flags of chain deploy.
type deployFlags struct {
	url, keyEnv, operator string
	contracts             []string
}

func newChainDeploy(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deploy --rpc URL --key-env VAR",
		Short: "deploy the service's contracts to a chain",
		Long: `Deploys the service's contracts to a chain: the deposit factory, the authorization
relay and the invoice registry. It prints their addresses as settings of the chain
in the configuration.

The factory and the relay have no owner, and the same addresses on nearly all
networks, whoever deploys them: if they are there already, nothing is sent. The
registry is deployed anew each time. The key's account pays for the gas, administers
the registry and is its first operator.`,
		Example: `  OPERATOR_KEY=… quittance chain deploy --rpc https://your-node.example --key-env OPERATOR_KEY
  OPERATOR_KEY=… quittance chain deploy --rpc https://your-node.example --key-env OPERATOR_KEY --contracts depositFactory`,
		Args: noArgs,
	}
	all := keysOf(chain.Contracts, func(c chain.Contract) string { return string(c) })
	var f deployFlags
	cmd.Flags().StringVar(&f.url, "rpc", "", "JSON-RPC `URL` of a node of the chain")
	cmd.Flags().StringVar(&f.keyEnv, "key-env", "", "environment variable `VAR` that holds the private key, 64 hex digits")
	cmd.Flags().StringVar(&f.operator, "operator", "", "another account, `ADDR`, that may open and close invoices")
	cmd.Flags().StringSliceVar(&f.contracts, "contracts", nil, "only these contracts, `LIST` of "+all)
	asJSON := jsonFlag(cmd, "write JSON: the address of each contract, as registry, depositFactory and authorizationRelay")
	cobra.CheckErr(cmd.MarkFlagRequired("rpc"))
	cobra.CheckErr(cmd.MarkFlagRequired("key-env"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, contracts, err := f.parse()
		if err != nil {
			return usageError{err}
		}
		return runChainDeploy(cmd.Context(), env, d, contracts, *asJSON)
	}
	return cmd
}

// runChainDeploy prints each address as soon as the contract is deployed, so that it can be configured
// even if the next deployment fails.
func runChainDeploy(ctx context.Context, env environment, d chain.Deployment, contracts []chain.Contract, asJSON bool) error {
	deployed := make(map[chain.Contract]string)
	var failed error
	for _, contract := range contracts {
		address, err := d.Deploy(ctx, contract)
		if err != nil {
			failed = fmt.Errorf("%s: %w", contract, err)
			break
		}
		deployed[contract] = chain.Checksum(address)
		if asJSON {
			continue
		}
		if _, err := fmt.Fprintf(env.stdout, "%s: %q\n", contract, chain.Checksum(address)); err != nil {
			return err
		}
	}
	if asJSON && len(deployed) > 0 {
		return cmp.Or(env.writeJSON(deployed), failed)
	}
	return failed
}

// parse returns the deployment that the flags describe, and the contracts to deploy.
func (f deployFlags) parse() (chain.Deployment, []chain.Contract, error) {
	fail := func(format string, args ...any) (chain.Deployment, []chain.Contract, error) {
		return chain.Deployment{}, nil, fmt.Errorf(format, args...)
	}
	if err := config.CheckNodeURL(f.url); err != nil {
		return fail("--rpc %w", err)
	}
	text, ok := os.LookupEnv(f.keyEnv)
	if !ok {
		return fail("the environment variable %s is not set; it must hold the private key", f.keyEnv)
	}
	key, err := config.ParseKey(text)
	if err != nil {
		return fail("the environment variable %s %w", f.keyEnv, err)
	}
	d := chain.Deployment{RPC: f.url, Key: key}
	if f.operator != "" {
		if d.Operator, err = chain.ParseAddress(f.operator); err != nil {
			return fail("--operator %w", err)
		}
	}
	for _, name := range f.contracts {
		if !slices.Contains(chain.Contracts, chain.Contract(name)) {
			return fail("--contracts names %q; want some of %s", name, keysOf(chain.Contracts, func(c chain.Contract) string { return string(c) }))
		}
	}
	contracts := slices.DeleteFunc(slices.Clone(chain.Contracts), func(c chain.Contract) bool {
		return len(f.contracts) > 0 && !slices.Contains(f.contracts, string(c))
	})
	return d, contracts, nil
}
