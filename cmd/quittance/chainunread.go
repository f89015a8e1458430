package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

func newChainUnread(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unread --config FILE --chain KEY [--retry TX | --dismiss TX]",
		Short: "list transactions that are not recorded",
		Long: `Lists transactions that may be payments and are not recorded yet: a node left out
their logs, or no node returns their receipt or calldata. The service reads them
again by itself, first after seconds and at last every hour; of those with an
answer longer than maxAnswerMiB (oversized), one in a minute. Until one is read,
invoices that were created before its block do not expire.

--retry has a transaction read at once, also if it was dismissed: after a node was
added, or maxAnswerMiB raised. --dismiss ends that: look the transaction up in a
block explorer first, and attribute its payment by other means if it is one.`,
		Args: noArgs,
	}
	o := operatedFlags(cmd)
	retry := cmd.Flags().String("retry", "", "read the transaction `TX` at once")
	dismiss := cmd.Flags().String("dismiss", "", "do not read the transaction `TX` any more")
	asJSON := jsonFlag(cmd, "write JSON: a list of txHash, block, reason, detail, attempts, foundAt and nextAt")
	cmd.MarkFlagsMutuallyExclusive("retry", "dismiss", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.load(); err != nil {
			return err
		}
		switch {
		case *retry != "":
			const done = "It is read again within seconds by a running service, or within a minute if others are oversized."
			return decideUnread(cmd.Context(), env, o, *retry, done, (*ledger.Service).RetryUnread)
		case *dismiss != "":
			return decideUnread(cmd.Context(), env, o, *dismiss, "It is not read any more.", (*ledger.Service).DismissUnread)
		}
		all, err := admin.InLedger(cmd.Context(), o.Config, func(l *ledger.Service) ([]ledger.UnreadTransaction, error) {
			return l.UnreadTransactions(cmd.Context(), o.chain.Key)
		})
		if err != nil {
			return err
		}
		return printUnread(env, o.chain.Key, all, *asJSON)
	}
	return cmd
}

// decideUnread decides about a transaction that is named by its hash.
func decideUnread(
	ctx context.Context, env environment, o *operated, hash, done string,
	decide func(l *ledger.Service, ctx context.Context, chainKey string, tx invoice.Hash) error,
) error {
	tx, err := invoice.ParseHash(hash)
	if err != nil {
		return usageError{fmt.Errorf("%q is not the hash of a transaction", hash)}
	}
	err = o.WithLedger(ctx, func(l *ledger.Service) error { return decide(l, asCommand(ctx), o.chain.Key, tx) })
	if errors.Is(err, db.ErrNotFound) {
		return fmt.Errorf("%s is not among the unread transactions of %s", tx, o.chain.Key)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.stdout, done)
	return err
}

// unreadLine is an unread transaction as JSON.
type unreadLine struct {
	TxHash   string `json:"txHash"`
	Block    uint64 `json:"block"`
	Reason   string `json:"reason"`
	Detail   string `json:"detail"`
	Attempts int    `json:"attempts"`
	FoundAt  int64  `json:"foundAt"`
	NextAt   int64  `json:"nextAt"`
}

// printUnread prints unread transactions.
func printUnread(env environment, chainKey string, all []ledger.UnreadTransaction, asJSON bool) error {
	lines := make([]unreadLine, len(all))
	for i, u := range all {
		lines[i] = unreadLine{u.TxHash.String(), u.Block, string(u.Reason), u.Detail, u.Attempts, u.FoundAt.Unix(), u.NextAt.Unix()}
	}
	if asJSON {
		return env.writeJSON(lines)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(env.stdout, "All transactions of %s that are known to concern the service are recorded.\n", chainKey)
		return err
	}
	return env.writeTable(func(table io.Writer) {
		fmt.Fprintln(table, "BLOCK\tTRANSACTION\tREASON\tATTEMPTS\tNEXT\tDETAIL")
		for _, l := range lines {
			fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%s\t%s\n", l.Block, l.TxHash, l.Reason, l.Attempts, env.localTime(l.NextAt), printable(l.Detail))
		}
	})
}
