package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/ledger"
)

func newRecoverTransfers(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "transfers --config FILE",
		Short: "list transfers that may have refunded payments, or mark them as checked",
		Long: `Lists the transfers out of settlement addresses that quittance recover found and that are
no known refunds, each with payments that it may have refunded. Refunds of such
payments cannot be sent, because the customer could get the money twice.

Find out with the merchants what each transfer was. With --checked it is not listed any
more, and refunds are offered again, also of a payment that it did refund: do not send
these. The service may run.`,
		Example: `  quittance recover transfers --config quittance.yaml
  quittance recover transfers --config quittance.yaml --checked all`,
		Args: noArgs,
	}
	path := requiredConfigFlag(cmd)
	checked := cmd.Flags().StringSlice("checked", nil, "transfers that somebody has checked: all, or `ID,ID`")
	cmd.RunE = withConfig(path, func(ctx context.Context, cfg config.Config, _ []string) error {
		left := 0
		err := admin.UnrecognizedTransfers(asCommand(ctx), cfg.Database, *checked, time.Now(), func(some []ledger.UnrecognizedTransfer) error {
			left += len(some)
			return printTransfers(env.stdout, some)
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.stdout, "%s to check.\n", count(left, "transfer"))
		return err
	})
	return cmd
}

// printTransfers prints unrecognized transfers, one a line.
func printTransfers(w io.Writer, some []ledger.UnrecognizedTransfer) error {
	for _, t := range some {
		_, err := fmt.Fprintf(w, "%s  %s: %s minor units of %s from %s to %s in transaction %s; may have refunded %s\n", t.ID, t.ChainKey, t.Amount, t.Currency,
			chain.Checksum(t.From), chain.Checksum(t.To), t.TxHash, cmp.Or(strings.Join(t.Payments, ", "), "no known payment"))
		if err != nil {
			return err
		}
	}
	return nil
}
