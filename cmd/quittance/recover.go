package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/server"
)

func newRecover(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "recover --config FILE", GroupID: groupService,
		Short: "make a restored database ready to be served",
		Long: `Prepares a database that was restored from a backup, so that serve starts on it. Stop
every replica before. It starts a new timeline, ends all sessions and links that sign
in, and reads the chains from the backup on; until it ends, nothing is sent out. It finds
invoices that the backup lacks by their commitments on chain, and records payments
to them. It prints what a person must check, and --report writes it to a file, as JSON
if the name ends in .json, or else as Markdown.

The backup does not know which keys of the API were revoked since. Say which ones stay
valid: --keep-keys all, none, or their ids. The others are revoked.

While it reads, it logs how far each chain is, and which node does not answer. It ends with an
error once a chain has made no progress for --patience, as with nodes that are behind: the
newest block must not be older than 15 minutes. --old-heads accepts it, of a chain that
has stopped.

It may be stopped at any time and run again. serve starts once it has ended with 0.

With --dismiss it does none of this, and ends a false alarm: nothing was restored, or the
live database was marked as a copy by mistake, with serve --isolated --copy.`,
		Example: `  quittance recover --config quittance.yaml --report recovery.md
  quittance recover --config quittance.yaml --report recovery.md --keep-keys all
  quittance recover --config quittance.yaml --dismiss`,
		Args: noArgs,
	}
	path := configFlag(cmd)
	keep := cmd.Flags().StringSlice("keep-keys", nil, "keys of the API that stay valid: all, none, or `ID,ID`")
	to := cmd.Flags().String("report", "", "write the report to `FILE`")
	patience := cmd.Flags().Duration("patience", server.DefaultPatience, "`TIME` without progress of a chain after which it ends with an error")
	old := cmd.Flags().Bool("old-heads", false, "accept a newest block that is older than 15 minutes")
	dismiss := cmd.Flags().Bool("dismiss", false, "nothing was restored: let serve start")
	cmd.MarkFlagsMutuallyExclusive("dismiss", "keep-keys")
	cmd.MarkFlagsMutuallyExclusive("dismiss", "report")
	cmd.RunE = withConfig(path, func(ctx context.Context, cfg config.Config, _ []string) error {
		if *patience <= 0 {
			return usageError{fmt.Errorf("--patience is %s; want a time such as %s", *patience, server.DefaultPatience)}
		}
		ctx = asCommand(ctx)
		report, err := server.Recover(ctx, recoverConfig(env, cfg), server.RecoverOptions{Dismiss: *dismiss, KeepKeys: *keep, Patience: *patience, OldHeads: *old})
		switch {
		case err == nil && *dismiss:
			_, err := fmt.Fprintln(env.stdout, "The database counts as it was before. serve starts on it.")
			return err
		case err != nil && !errors.Is(err, server.ErrKeysUndecided):
			return err
		}
		return errors.Join(err, writeRecovery(env, report, *to))
	})
	cmd.AddCommand(newRecoverImport(env), newRecoverTransfers(env))
	return cmd
}

// recoverConfig converts the configuration for a recovery, which serves no requests.
func recoverConfig(env environment, cfg config.Config) server.Config {
	out := serverConfig(cfg, nil, env.serviceLogger(cfg.Log), nil)
	out.ReadOnly, out.Now, out.Rand = "", time.Now, rand.Reader
	return out
}

// writeRecovery prints the report, and writes it to a file if one is named.
func writeRecovery(env environment, report server.RecoveryReport, path string) error {
	if path == "" {
		_, err := fmt.Fprintln(env.stdout, report.Markdown())
		return err
	}
	text := []byte(report.Markdown())
	if strings.EqualFold(filepath.Ext(path), ".json") {
		var err error
		if text, err = json.MarshalIndent(report, "", "  "); err != nil {
			return err
		}
	}
	if err := config.ReplaceFile(path, append(text, '\n')); err != nil { // an earlier report stays
		return fmt.Errorf("write the report: %w; the recovery itself is not affected, run it again for the report", err)
	}
	_, err := fmt.Fprintf(env.stdout, "%s says what to check.\n", path)
	return err
}
