package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// UnreadReason is how an unrecorded transaction became known.
type UnreadReason string

// Reasons of unread transactions.
const (
	UnreadLookup     UnreadReason = "lookup"     // a payer looked it up
	UnreadReceipt    UnreadReason = "receipt"    // a receipt that was read for another payment shows it
	UnreadNode       UnreadReason = "node"       // another node, or the block's receipts, show it
	UnreadUnreadable UnreadReason = "unreadable" // the nodes have its log, and do not return its receipt or its calldata
	UnreadOversized  UnreadReason = "oversized"  // the nodes have its log, and their answers are longer than maxAnswerMiB
)

// UnreadReasons are all reasons.
var UnreadReasons = []UnreadReason{UnreadLookup, UnreadReceipt, UnreadNode, UnreadUnreadable, UnreadOversized}

// IsOfBlock reports whether the transaction's block names it.
func (r UnreadReason) IsOfBlock() bool { return r == UnreadUnreadable || r == UnreadOversized }

// UnreadTransaction is a transaction that may move a token from or to an address of ours, and that is not recorded.
type UnreadTransaction struct {
	TxHash      invoice.Hash
	Block       uint64
	Reason      UnreadReason
	Detail      string // the error of the last attempt to read it
	Attempts    int    // how many attempts to read it have failed
	FoundAt     time.Time
	NextAt      time.Time // when it is read next
	DismissedAt time.Time // zero until a person dismisses it
}

var unreadTable = db.NewTable("unread_transactions", func(u *UnreadTransaction) []db.Column {
	return []db.Column{
		db.Col("tx_hash", db.Hash(&u.TxHash)),
		db.Col("block_number", db.Int(&u.Block)),
		db.Col("reason", db.Text(&u.Reason)),
		db.Col("detail", db.Text(&u.Detail)),
		db.Col("attempts", db.Int(&u.Attempts)),
		db.Col("found_at", db.Seconds(&u.FoundAt)),
		db.Col("next_at", db.Seconds(&u.NextAt)),
		db.Col("dismissed_at", db.Null(db.Seconds(&u.DismissedAt))),
	}
})

// isOfBlock is the condition that the transaction's block names it.
const isOfBlock = "reason IN ('unreadable', 'oversized')"

var selectUnread = unreadTable.Select() + " WHERE chain_key = $1"

// insertUnread stores unread transactions of a chain, except those that are stored. One that became known otherwise gets
// the reason of its block, once its block names it.
func insertUnread(ctx context.Context, tx *db.Tx, chainKey string, all []UnreadTransaction) error {
	rows := db.Each(all, func(u UnreadTransaction) []any { return unreadTable.Values(u, chainKey) })
	if err := tx.Insert(ctx, unreadTable.Insertion("ON CONFLICT (chain_key, tx_hash) DO NOTHING", "chain_key"), rows); err != nil {
		return err
	}
	for _, u := range all {
		if !u.Reason.IsOfBlock() {
			continue
		}
		err := tx.Send(ctx, nil, "UPDATE unread_transactions SET reason = $3, block_number = $4, detail = $5 WHERE chain_key = $1 AND tx_hash = $2 AND NOT "+isOfBlock,
			chainKey, u.TxHash.String(), string(u.Reason), int64(u.Block), u.Detail)
		if err != nil {
			return err
		}
	}
	return nil
}

// findUnreadTransaction returns an unread transaction, or ErrNotFound.
func findUnreadTransaction(ctx context.Context, q db.Querier, chainKey string, hash invoice.Hash) (UnreadTransaction, error) {
	return db.QueryRow(ctx, q, unreadTable.Scan, selectUnread+" AND tx_hash = $2", chainKey, hash.String())
}

// unreadTransactions returns the transactions that were not dismissed, in the order of their blocks.
func unreadTransactions(ctx context.Context, q db.Querier, chainKey string, limit int) ([]UnreadTransaction, error) {
	return db.QueryAll(ctx, q, unreadTable.Scan, selectUnread+" AND dismissed_at IS NULL ORDER BY block_number, tx_hash LIMIT $2", chainKey, limit)
}

// dueUnread returns the transactions that are due to be read, in the order of their blocks. If wanted, oversized ones
// follow: they take turns, since only one is read in a minute.
func dueUnread(ctx context.Context, q db.Querier, chainKey string, now time.Time, limit int, oversized bool) ([]UnreadTransaction, error) {
	without := " AND reason <> 'oversized'"
	if oversized {
		without = ""
	}
	return db.QueryAll(ctx, q, unreadTable.Scan, selectUnread+" AND dismissed_at IS NULL AND next_at <= $2"+without+`
		ORDER BY CASE WHEN reason = 'oversized' THEN next_at ELSE 0 END, block_number, tx_hash LIMIT $3`,
		chainKey, now.Unix(), limit)
}

// countUnread returns how many unread transactions of a chain were not dismissed, by reason; nil if
// there are no such transactions.
func countUnread(ctx context.Context, q db.Querier, chainKey string) (map[UnreadReason]int, error) {
	var counts map[UnreadReason]int
	err := db.ForEach(ctx, q, func(row db.Scanner) error {
		var reason UnreadReason
		var n int
		err := row.Scan(&reason, &n)
		if counts == nil {
			counts = map[UnreadReason]int{}
		}
		counts[reason] = n
		return err
	}, "SELECT reason, count(*) FROM unread_transactions WHERE chain_key = $1 AND dismissed_at IS NULL GROUP BY reason", chainKey)
	return counts, err
}

// postponeUnread records a failed attempt to read a transaction, and when it is read next.
func postponeUnread(ctx context.Context, tx *db.Tx, chainKey string, u UnreadTransaction) error {
	return tx.Do(ctx, "UPDATE unread_transactions SET detail = $3, attempts = $4, next_at = $5 WHERE chain_key = $1 AND tx_hash = $2",
		chainKey, u.TxHash.String(), u.Detail, u.Attempts, u.NextAt.Unix())
}

// retryUnread schedules a transaction to be read at a time, even if it was dismissed, and before all that were
// postponed since it was found. It returns ErrNotFound for an unknown transaction.
func retryUnread(ctx context.Context, tx *db.Tx, chainKey string, hash invoice.Hash, at time.Time) error {
	return changeUnread(ctx, tx, "next_at = CASE WHEN found_at < $3 THEN found_at ELSE $3 END, dismissed_at = NULL", chainKey, hash, at)
}

// dismissUnread ends the attempts to read a transaction. It returns ErrNotFound for an unknown transaction.
func dismissUnread(ctx context.Context, tx *db.Tx, chainKey string, hash invoice.Hash, at time.Time) error {
	return changeUnread(ctx, tx, "dismissed_at = $3", chainKey, hash, at)
}

func changeUnread(ctx context.Context, tx *db.Tx, set, chainKey string, hash invoice.Hash, at time.Time) error {
	n, err := tx.Exec(ctx, "UPDATE unread_transactions SET "+set+" WHERE chain_key = $1 AND tx_hash = $2", chainKey, hash.String(), at.Unix())
	if err == nil && n == 0 {
		return db.ErrNotFound
	}
	return err
}

// deleteUnread deletes transactions that were read.
func deleteUnread(ctx context.Context, tx *db.Tx, chainKey string, hashes []invoice.Hash) error {
	for _, hash := range hashes {
		if err := tx.Send(ctx, nil, "DELETE FROM unread_transactions WHERE chain_key = $1 AND tx_hash = $2", chainKey, hash.String()); err != nil {
			return err
		}
	}
	return nil
}

// deleteUnreadAbove deletes the unread transactions that blocks above a number named. It keeps dismissed ones, which would
// be announced again.
func deleteUnreadAbove(ctx context.Context, tx *db.Tx, chainKey string, number uint64) error {
	return tx.Send(ctx, nil, "DELETE FROM unread_transactions WHERE chain_key = $1 AND block_number > $2 AND dismissed_at IS NULL AND "+isOfBlock,
		chainKey, int64(number))
}

// foreignTxs returns the transactions that are not stored as sent by the service.
func foreignTxs(ctx context.Context, q db.Querier, txs []invoice.Hash) ([]invoice.Hash, error) {
	rows := db.Each(txs, func(t invoice.Hash) []any { return []any{t.String()} })
	stored, err := q.WhichExist(ctx, []string{"hash"}, rows, "chain_tx_attempts WHERE tx_hash = hash")
	if err != nil {
		return nil, fmt.Errorf("look up transactions: %w", err)
	}
	foreign := slices.Clone(txs)
	for _, i := range stored {
		foreign[i] = invoice.Hash{}
	}
	return slices.DeleteFunc(foreign, invoice.Hash.IsZero), nil
}
