package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
)

// errNothingChanged is the error of a command that changes recorded configuration, if --yes is
// missing.
var errNothingChanged = errors.New("nothing was changed; run this again with --yes to do it")

// knownChange is a command that changes the record of a chain, which the configuration need not name.
type knownChange struct {
	path *string
	yes  *bool
}

// flags adds the flags of the command.
func (k *knownChange) flags(cmd *cobra.Command, required ...string) {
	k.path = requiredConfigFlag(cmd)
	k.yes = cmd.Flags().Bool("yes", false, "do it; without it, the command only says what it would do")
	for _, name := range required {
		cobra.CheckErr(cmd.MarkFlagRequired(name))
	}
}

// run prints the effect of the command on the chain and, with --yes, applies it.
func (k *knownChange) run(ctx context.Context, env environment, chainKey string, text func(admin.KnownChain) (string, error), do func(context.Context, admin.Config) error) error {
	cfg, err := loadConfig(*k.path)
	if err != nil {
		return err
	}
	c := admin.Config{Database: cfg.Database, Now: time.Now}
	known, err := admin.RememberedChain(ctx, c, chainKey)
	if err != nil {
		return fmt.Errorf("chain %s: %w", chainKey, err)
	}
	effect, err := text(known)
	if err == nil {
		_, err = fmt.Fprintln(env.stdout, effect)
	}
	if err != nil {
		return err
	}
	if !*k.yes {
		return errNothingChanged
	}
	if err := do(asCommand(ctx), c); err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.stdout, "Done.")
	return err
}

func newChainRename(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rename --config FILE --from OLD --to NEW --yes",
		Short: "give a chain another key",
		Long: `Gives a chain another chainKey, in all rows of the database at once. Invoices,
payments, refunds and deposit addresses keep their ids. Events that were sent or
wait to be sent keep the former key in their bodies.

Stop the service first. On PostgreSQL, replicas that still run stop their work.
Then change chainKey in the configuration, also where merchants, providers and
payment links of the configuration name it, and start the service.`,
		Example: "  quittance chain rename --config quittance.yaml --from base --to base-mainnet --yes",
		Args:    noArgs,
	}
	var k knownChange
	from := cmd.Flags().String("from", "", "the chain's `KEY` so far")
	to := cmd.Flags().String("to", "", "its new `KEY`, which was never used")
	k.flags(cmd, "from", "to")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *to == "" {
			return usageError{errors.New("--to is empty; want the chain's new key")}
		}
		return k.run(cmd.Context(), env, *from, func(c admin.KnownChain) (string, error) {
			return fmt.Sprintf("The chain %s (chain id %d) becomes %s in the whole database.", c.Key, c.ID, *to), nil
		}, func(ctx context.Context, c admin.Config) error {
			return admin.WithStopped(ctx, c.Database, func(store *db.DB) error {
				return ledger.RenameChain(ctx, store, *from, *to, c.Now())
			})
		})
	}
	return cmd
}

func newChainRetire(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retire --config FILE --chain KEY --yes",
		Short: "give up a chain, so that its chain id can start anew",
		Long: `Gives up a chain under its key. Its blocks are never read again: its open invoices
neither settle nor expire, and its refunds stay as they are. Afterwards, another
key can be configured for the same chain id, and starts without a past. The
retired key cannot be used again.

Use it for a chain that was rewritten, such as a test network that was reset, or
if another network took over its chain id. Void its open invoices first.

Stop the service first. On PostgreSQL, replicas that still run stop their work.`,
		Example: "  quittance chain retire --config quittance.yaml --chain house --yes",
		Args:    noArgs,
	}
	var k knownChange
	key := cmd.Flags().String("chain", "", "`KEY` of the chain")
	k.flags(cmd, "chain")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return k.run(cmd.Context(), env, *key, func(c admin.KnownChain) (string, error) {
			text := fmt.Sprintf("The chain %s (chain id %d) is never read again under this key.", c.Key, c.ID)
			if uses := c.Uses.String(); uses != "" {
				text += fmt.Sprintf("\nIt still has %s. They stay as they are.", uses)
			}
			return text, nil
		}, func(ctx context.Context, c admin.Config) error {
			return admin.WithStopped(ctx, c.Database, func(store *db.DB) error {
				return ledger.RetireChain(ctx, store, *key, c.Now())
			})
		})
	}
	return cmd
}

func newChainRetireToken(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retire-token --config FILE --chain KEY --token ADDRESS --yes",
		Short: "end the reading of a token that left the configuration",
		Long: `Ends the reading of a token that left the configuration. A token that the service
was ever configured with is read until then, because payers of its invoices may
still pay. Later payments in it are not seen.

It is refused while the token has open invoices, payments or refunds that are not
final, held payments, or deposits that are not swept. The service may run;
its replicas go on reading the token until they are restarted. If the token is
configured again later, the blocks since then are read again for it.`,
		Example: "  quittance chain retire-token --config quittance.yaml --chain base --token 0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42 --yes",
		Args:    noArgs,
	}
	var k knownChange
	key := cmd.Flags().String("chain", "", "`KEY` of the chain")
	token := cmd.Flags().String("token", "", "`ADDRESS` of the token's contract")
	k.flags(cmd, "chain", "token")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		at, err := chain.ParseAddress(*token)
		if err != nil {
			return usageError{fmt.Errorf("--token is %q; want the address of a token", *token)}
		}
		return k.run(cmd.Context(), env, *key, func(c admin.KnownChain) (string, error) {
			t, ok := c.TokenAt(at)
			if !ok || t.Retired() {
				return "", fmt.Errorf("chain %s is not read for the token %s; quittance config check --database names those that left the configuration", c.Key, chain.Checksum(at))
			}
			return fmt.Sprintf("The token %s %s of chain %s is read no more.", t.Currency, chain.Checksum(at), c.Key), nil
		}, func(ctx context.Context, c admin.Config) error {
			return admin.WithStore(ctx, c.Database, func(store *db.DB) error {
				return ledger.RetireToken(ctx, store, *key, at, c.Now())
			})
		})
	}
	return cmd
}
