package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/ledger"
)

func newChain(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "chain COMMAND", GroupID: groupService,
		Short: "look after the chains of a service",
		Long:  "Looks after the chains of a service.",
	}, newChainStatus(env), newChainRescan(env), newChainUnread(env), newChainResume(env), newChainDeploy(env),
		newChainRename(env), newChainRetire(env), newChainRetireToken(env))
}

// chainFlag adds the flag for a chain's key. Shells complete it from the configuration
// if --config precedes it.
func chainFlag(cmd *cobra.Command, usage string) *string {
	key := cmd.Flags().String("chain", "", usage)
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("chain", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var keys []string
		if cfg, err := config.Load(cmd.Flag("config").Value.String(), config.System); err == nil {
			for _, c := range cfg.Chains {
				keys = append(keys, c.Key)
			}
		}
		return keys, cobra.ShellCompDirectiveNoFileComp
	}))
	return key
}

// operated is the configuration of a service with one of its chains.
type operated struct {
	path, key *string
	admin.Config
	chain chain.Chain
	sends bool // it has an operator key
}

// operatedFlags adds the flags --config and --chain.
func operatedFlags(cmd *cobra.Command) *operated {
	o := &operated{Config: admin.Config{Now: time.Now}, path: requiredConfigFlag(cmd)}
	o.key = chainFlag(cmd, "`KEY` of the chain; needed if there are several")
	return o
}

// load reads the configuration and finds the chain in it. --chain is optional if there is
// only one.
func (o *operated) load() error {
	cfg, err := loadConfig(*o.path)
	if err != nil {
		return err
	}
	o.Database, o.Chains = cfg.Database, chainsOf(cfg)
	known := keysOf(o.Chains, func(c chain.Chain) string { return c.Key })
	if *o.key == "" && len(o.Chains) > 1 {
		return usageError{fmt.Errorf("--chain KEY is needed; there is %s", known)}
	}
	for _, c := range o.Chains {
		if *o.key == "" || c.Key == *o.key {
			o.chain = c
			o.sends = slices.ContainsFunc(cfg.Chains, func(f config.Chain) bool { return f.Key == c.Key && f.OperatorKey != nil })
			return nil
		}
	}
	return noChain(*o.key, known)
}

// chainsOf returns the chains without their operator keys.
func chainsOf(cfg config.Config) []chain.Chain {
	all := make([]chain.Chain, len(cfg.Chains))
	for i, c := range cfg.Chains {
		all[i] = c.Chain
	}
	return all
}

// keysOf returns the keys of the elements, separated by commas.
func keysOf[T any](all []T, key func(T) string) string {
	keys := make([]string, len(all))
	for i, t := range all {
		keys[i] = key(t)
	}
	return strings.Join(keys, ", ")
}

// noChain returns the error for an unknown chain key.
func noChain(key, known string) error {
	return usageError{fmt.Errorf("there is no chain %q; there is %s", key, known)}
}

func newChainRescan(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rescan --config FILE --chain KEY --from N",
		Short: "index blocks of a chain again",
		Long: `Schedules blocks of a chain for re-indexing, from block N up to the newest
indexed one, while the head is followed as usual. Payments, refunds and registry
events that were missed there are recorded. A running service begins within
seconds, any other when it starts.

Recorded payments do not change, and no event is emitted twice. In particular, a
recorded payment keeps its invoice, or stays unattributed, even if an earlier
payment that is found now would have decided otherwise.`,
		Example: "  quittance chain rescan --config quittance.yaml --chain base --from 38211000",
		Args:    noArgs,
	}
	o := operatedFlags(cmd)
	from := cmd.Flags().Int64("from", 0, "index again from block `N`")
	asJSON := jsonFlag(cmd, "write JSON: chainKey, and the first and the last block of the range: from, to")
	cobra.CheckErr(cmd.MarkFlagRequired("from"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runChainRescan(cmd.Context(), env, o, *from, *asJSON)
	}
	return cmd
}

func runChainRescan(ctx context.Context, env environment, o *operated, from int64, asJSON bool) error {
	if from < 0 {
		return usageError{fmt.Errorf("--from is %d; want the number of a block", from)}
	}
	if err := o.load(); err != nil {
		return err
	}
	gap, err := admin.InLedger(ctx, o.Config, func(l *ledger.Service) (ledger.Gap, error) {
		return l.Rescan(asCommand(ctx), o.chain.Key, uint64(from))
	})
	if err != nil {
		return err
	}
	if asJSON {
		return env.writeJSON(struct {
			ChainKey string `json:"chainKey"`
			From     uint64 `json:"from"`
			To       uint64 `json:"to"`
		}{o.chain.Key, gap.Next, gap.Last})
	}
	_, err = fmt.Fprintf(env.stdout, `Blocks %d to %d of %s are scheduled for re-indexing, %s.
A running service begins within seconds, while it follows the head. Invoices
that these blocks could settle do not expire before they are indexed. Recorded
payments keep their invoice, or stay unattributed.
Watch it with

  quittance chain status --config %s --chain %s
`, gap.Next, gap.Last, o.chain.Key, count(int(gap.Last-gap.Next+1), "block"), *o.path, o.chain.Key)
	return err
}

func newChainResume(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume --config FILE --chain KEY --yes",
		Short: "resume a halted chain",
		Long: `Resumes a halted chain. A chain is halted when its nodes replace a block that was
final, so that events may have announced payments that do not exist. Find out
first which history is right, as described in docs/operations.md. A running
service resumes by itself, and halts the chain again if the nodes still return the
other history.`,
		Args: noArgs,
	}
	o := operatedFlags(cmd)
	yes := cmd.Flags().Bool("yes", false, "resume; without it, the reason of the halt is shown")
	asJSON := jsonFlag(cmd, "write JSON: chainKey, halted (the reason) and resumed")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runChainResume(cmd.Context(), env, o, *yes, *asJSON)
	}
	return cmd
}

func runChainResume(ctx context.Context, env environment, o *operated, yes, asJSON bool) error {
	if err := o.load(); err != nil {
		return err
	}
	reason, err := o.halted(ctx)
	if err != nil {
		return err
	}
	var failed error
	resumed := false
	if reason != "" && !yes {
		failed = errors.New("nothing was changed; compare the chain's nodes with another one, and run this again with --yes to resume it")
	} else if reason != "" {
		failed = o.WithLedger(ctx, func(l *ledger.Service) error { return l.Resume(asCommand(ctx), o.chain.Key) })
		resumed = failed == nil
	}
	if asJSON {
		return cmp.Or(env.writeJSON(struct {
			ChainKey string `json:"chainKey"`
			Halted   string `json:"halted"`
			Resumed  bool   `json:"resumed"`
		}{o.chain.Key, reason, resumed}), failed)
	}
	return cmp.Or(printResume(env, o.chain.Key, reason, resumed), failed)
}

// halted returns why the chain is halted, or an empty text if it is not.
func (o *operated) halted(ctx context.Context) (string, error) {
	return admin.InLedger(ctx, o.Config, func(l *ledger.Service) (string, error) {
		cur, err := l.Cursor(ctx, o.chain.Key)
		if err == nil && !cur.Started {
			err = fmt.Errorf("%s: %w", o.chain.Key, ledger.ErrNotStarted)
		}
		return cur.Halted, err
	})
}

// printResume prints why a chain was halted, and whether it was resumed.
func printResume(env environment, chainKey, reason string, resumed bool) error {
	if reason == "" {
		_, err := fmt.Fprintf(env.stdout, "%s is not halted. There is nothing to do.\n", chainKey)
		return err
	}
	_, err := fmt.Fprintf(env.stdout, "%s is halted: %s\n", chainKey, reason)
	if err == nil && resumed {
		_, err = fmt.Fprintln(env.stdout, "It is resumed; a running service continues within seconds.")
	}
	return err
}
