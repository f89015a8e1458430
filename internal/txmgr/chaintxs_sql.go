package txmgr

import (
	"context"
	"database/sql"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// ChainTx is a transaction of the transaction manager: one nonce of its sender, with all its attempts.
type ChainTx struct {
	ID          string
	ChainKey    string
	Sender      invoice.Address
	Nonce       uint64
	Kind        TxKind
	Destination invoice.Address // the contract that it calls; zero when it is not known
	Status      TxStatus
	CreatedAt   time.Time
	Scheduled   time.Time      // CreatedAt by the schedule's clock
	Reserved    int64          // the most that it can cost, in gwei: billionths of the native coin
	Spent       *ledger.TxCost // what it did cost; nil while that is not known
	Attempts    []TxAttempt    // in the order they were made; never empty
}

// TxKind is what a transaction carries.
type TxKind string

// The kinds of transactions.
const (
	TxOpen          = TxKind(invoice.IntentOpen)  // intents to open commitments
	TxClose         = TxKind(invoice.IntentClose) // intents to close commitments
	TxSweep         = TxKind("sweep")             // deposits to sweep
	TxAuthorization = TxKind("authorization")     // payers' authorizations to relay
)

// columns returns the values of the columns kind and work.
func (k TxKind) columns() (kind string, work any) {
	if k == TxOpen || k == TxClose {
		return string(k), nil
	}
	return string(TxOpen), string(k)
}

// TxStatus is the state of a transaction, as far as the transaction manager knows.
type TxStatus string

// The states of a transaction. A reorg can revert the last two.
const (
	TxSent   TxStatus = "sent"   // saved, and perhaps broadcast
	TxMined  TxStatus = "mined"  // carried out in a block
	TxFailed TxStatus = "failed" // reverted, or its nonce was used otherwise
)

// TxAttempt is one signed version of a transaction.
type TxAttempt struct {
	TxHash    invoice.Hash
	Raw       []byte   // as it is broadcast
	FeeCap    *big.Int // wei for a unit of gas
	TipCap    *big.Int // wei for a unit of gas
	CreatedAt time.Time
	// AcceptedAt is when a node first accepted it into its pool, or zero.
	AcceptedAt time.Time
}

// SaveChainTx inserts a transaction with its attempts, assigns it the items of its kind with the ids, and records the
// merchants of the items. It returns ErrConflict if an item is not due, the nonce is taken, or the lease was lost.
func SaveChainTx(ctx context.Context, s *db.DB, l db.WorkLease, t ChainTx, items []string) error {
	return s.WithWorkLease(ctx, l, func(tx *db.Tx) error {
		kind, work := t.Kind.columns()
		n, err := tx.Exec(ctx, `INSERT INTO chain_txs (id, chain_key, sender, nonce, kind, work, destination, status, created_ms, reserved_gwei, created_scheduled_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (chain_key, sender, nonce) DO NOTHING`,
			t.ID, t.ChainKey, t.Sender.String(), int64(t.Nonce), kind, work, db.OrNull(t.Destination), string(t.Status), t.CreatedAt.UnixMilli(), t.Reserved, db.NullMilliseconds(t.Scheduled))
		if err != nil {
			return err
		}
		if n != 1 {
			return fmt.Errorf("nonce %d of %s is taken: %w", t.Nonce, t.Sender, db.ErrConflict)
		}
		for i, a := range t.Attempts {
			if err := insertAttempt(ctx, tx, t.ID, i+1, a); err != nil {
				return err
			}
		}
		assigned, err := assignItems(ctx, tx, t, items)
		if err != nil {
			return err
		}
		if assigned != int64(len(items)) {
			return fmt.Errorf("%d of %d items are due: %w", assigned, len(items), db.ErrConflict)
		}
		return insertTxMerchants(ctx, tx, t.ID, t.Kind)
	})
}

// assignItems assigns due items of the transaction's kind to it, and returns how many it assigned.
func assignItems(ctx context.Context, tx *db.Tx, t ChainTx, items []string) (int64, error) {
	switch t.Kind {
	case TxOpen, TxClose:
		return ledger.ChangeIntents(ctx, tx, "SET status = 'sent', tx_id = $1 WHERE status = 'due'", []any{t.ID}, items)
	case TxAuthorization:
		return ledger.AssignAuthorizations(ctx, tx, t.ID, items)
	case TxSweep:
		return ledger.AssignSweeps(ctx, tx, t.ID, items)
	}
	return 0, fmt.Errorf("no items belong to a transaction of kind %q", t.Kind)
}

// releaseItems makes the items of a transaction due again, whatever its kind.
func releaseItems(ctx context.Context, tx *db.Tx, txID string) error {
	if err := ledger.ReleaseTxAuthorizations(ctx, tx, txID); err != nil {
		return err
	}
	if err := ledger.ReleaseSweeps(ctx, tx, txID); err != nil {
		return err
	}
	return ledger.ReleaseTxIntents(ctx, tx, txID)
}

// AddAttempt inserts an attempt, numbered from 1, and updates the most that the
// transaction may cost, in gwei. It returns ErrConflict if the lease was lost.
func AddAttempt(ctx context.Context, s *db.DB, l db.WorkLease, txID string, number int, a TxAttempt, reserved int64) error {
	return s.WithWorkLease(ctx, l, func(tx *db.Tx) error {
		if err := insertAttempt(ctx, tx, txID, number, a); err != nil {
			return err
		}
		return tx.Do(ctx, "UPDATE chain_txs SET reserved_gwei = $2 WHERE id = $1", txID, reserved)
	})
}

// acceptAttempt records when a node first accepted an attempt into its pool. It
// returns ErrConflict if the lease was lost.
func acceptAttempt(ctx context.Context, s *db.DB, l db.WorkLease, txHash invoice.Hash, at time.Time) error {
	return s.WithWorkLease(ctx, l, func(tx *db.Tx) error {
		return tx.Do(ctx, "UPDATE chain_tx_attempts SET accepted_ms = $2 WHERE tx_hash = $1 AND accepted_ms IS NULL", txHash.String(), at.UnixMilli())
	})
}

func insertAttempt(ctx context.Context, tx *db.Tx, txID string, number int, a TxAttempt) error {
	return tx.Insert(ctx, attemptTable.Insertion("", "tx_id", "number BIGINT"), [][]any{attemptTable.Values(a, txID, number)})
}

// SetTxStatus updates a transaction's status and cost, and appends entries to the audit log. A nil
// cost leaves the recorded one, except that of a failed transaction becomes unknown, as it may not be
// in the chain. The items of a failed transaction become due again. It returns ErrConflict if the lease was lost.
func SetTxStatus(ctx context.Context, s *db.DB, l db.WorkLease, txID string, status TxStatus, spent *ledger.TxCost, audit ...access.Entry) error {
	return s.WithWorkLease(ctx, l, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE chain_txs SET status = $2 WHERE id = $1", txID, string(status)); err != nil {
			return err
		}
		if spent != nil || status == TxFailed {
			var gwei, at, scheduled any
			if spent != nil {
				gwei, at, scheduled = spent.Gwei, spent.At.UnixMilli(), db.NullMilliseconds(spent.Scheduled)
			}
			_, err := tx.Exec(ctx, "UPDATE chain_txs SET spent_gwei = $2, spent_ms = $3, spent_scheduled_ms = $4 WHERE id = $1", txID, gwei, at, scheduled)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "UPDATE chain_tx_merchants SET spent_ms = $2 WHERE tx_id = $1", txID, at); err != nil {
				return err
			}
		}
		if status == TxFailed {
			if err := releaseItems(ctx, tx, txID); err != nil {
				return err
			}
		}
		return access.AppendAudit(ctx, tx, audit...)
	})
}

// spending returns, in gwei, the cost of the chain's transactions in a window, and how much more they
// may cost. The second sum covers transactions in flight, including those that a reorg put there, and
// transactions in the window with unknown cost. It leaves out the transaction with the id exceptID, unless that is empty.
func spending(ctx context.Context, q db.Querier, chainKey string, w ledger.Window, exceptID string) (spent, reserved int64, err error) {
	oldest, since := w.Oldest.UnixMilli(), w.Since.UnixMilli()
	sum := func(what, condition string, args ...any) (int64, error) {
		return db.QueryRow(ctx, q, db.ScanSeq, "SELECT CAST(COALESCE(SUM("+what+"), 0) AS BIGINT) FROM chain_txs WHERE chain_key = $1 AND id <> $2 AND "+condition, append([]any{chainKey, exceptID}, args...)...)
	}
	if spent, err = sum("spent_gwei", "status <> 'sent' AND spent_ms >= $3 AND COALESCE(spent_scheduled_ms, spent_ms) >= $4", oldest, since); err != nil {
		return 0, 0, err
	}
	unknown, err := sum("reserved_gwei", "spent_ms IS NULL AND status <> 'sent' AND created_ms >= $3 AND COALESCE(created_scheduled_ms, created_ms) >= $4", oldest, since)
	if err != nil {
		return 0, 0, err
	}
	inFlight, err := sum("reserved_gwei", "status = 'sent'")
	return spent, unknown + inFlight, err
}

// UnsettledTxs returns, by nonce, the chain's transactions that the transaction manager must watch:
// the sent ones, the mined ones with unknown cost, and those with items that have no event on the chain yet.
func UnsettledTxs(ctx context.Context, q db.Querier, chainKey string) ([]ChainTx, error) {
	return chainTxs(ctx, q, `id IN (SELECT id FROM chain_txs WHERE chain_key = $1 AND status = 'sent' UNION ALL
		SELECT id FROM chain_txs WHERE chain_key = $1 AND status = 'mined' AND spent_ms IS NULL UNION ALL
		SELECT tx_id FROM intents WHERE chain_key = $1 AND status = 'sent' AND seen_block IS NULL UNION ALL
		SELECT a.tx_id`+ledger.AuthorizationTables+` WHERE a.chain_key = $1 AND a.status IN ('accepted', 'sent') AND a.status = 'sent' AND `+ledger.IsUnpaid+` UNION ALL
		SELECT tx_id FROM queued_sweeps WHERE chain_key = $1 AND tx_id IS NOT NULL)`, chainKey)
}

// HasWork reports whether a round of the chain's writer may find anything: an unsettled transaction, an intent or an
// authorization that is not done, or a queued sweep.
func HasWork(ctx context.Context, q db.Querier, chainKey string) (bool, error) {
	return db.QueryRow(ctx, q, func(row db.Scanner) (found bool, err error) {
		err = row.Scan(&found)
		return found, err
	}, `SELECT EXISTS (SELECT 1 FROM chain_txs WHERE chain_key = $1 AND status = 'sent')
		OR EXISTS (SELECT 1 FROM chain_txs WHERE chain_key = $1 AND status = 'mined' AND spent_ms IS NULL)
		OR EXISTS (SELECT 1 FROM intents WHERE chain_key = $1 AND status = 'due')
		OR EXISTS (SELECT 1 FROM intents WHERE chain_key = $1 AND status = 'sent' AND seen_block IS NULL)
		OR EXISTS (SELECT 1 FROM authorizations WHERE chain_key = $1 AND status IN ('accepted', 'sent'))
		OR EXISTS (SELECT 1 FROM queued_sweeps WHERE chain_key = $1)`, chainKey)
}

// ChainTxsFrom returns, by nonce, the sender's transactions from a nonce on.
func ChainTxsFrom(ctx context.Context, q db.Querier, chainKey string, sender invoice.Address, nonce uint64) ([]ChainTx, error) {
	return chainTxs(ctx, q, "chain_key = $1 AND sender = $2 AND nonce >= $3", chainKey, sender.String(), int64(nonce))
}

// hasChainTxs reports whether any transaction of the sender is stored.
func hasChainTxs(ctx context.Context, q db.Querier, chainKey string, sender invoice.Address) (bool, error) {
	n, err := db.QueryRow(ctx, q, db.ScanSeq, "SELECT count(*) FROM (SELECT 1 FROM chain_txs WHERE chain_key = $1 AND sender = $2 LIMIT 1) AS found",
		chainKey, sender.String())
	return n > 0, err
}

func chainTxs(ctx context.Context, q db.Querier, condition string, args ...any) ([]ChainTx, error) {
	txs, err := db.QueryAll(ctx, q, func(row db.Scanner) (t ChainTx, err error) {
		var spent sql.NullInt64
		var at, scheduled time.Time
		err = row.Scan(&t.ID, &t.ChainKey, db.Address(&t.Sender), &t.Nonce, &t.Kind, db.Address(&t.Destination), &t.Status, db.Milliseconds(&t.CreatedAt), &t.Reserved, &spent, db.Milliseconds(&at),
			db.Milliseconds(&t.Scheduled), db.Milliseconds(&scheduled))
		if spent.Valid {
			t.Spent = &ledger.TxCost{Gwei: spent.Int64, At: at, Scheduled: scheduled}
		}
		return t, err
	}, `SELECT id, chain_key, sender, nonce, COALESCE(work, kind), destination, status, created_ms, reserved_gwei, spent_gwei, spent_ms, created_scheduled_ms, spent_scheduled_ms
		FROM chain_txs WHERE `+condition+" ORDER BY nonce", args...)
	if err != nil {
		return nil, err
	}
	for i := range txs {
		txs[i].Attempts, err = db.QueryAll(ctx, q, attemptTable.Scan, attemptTable.Select()+" WHERE tx_id = $1 ORDER BY number", txs[i].ID)
		if err != nil {
			return nil, err
		}
	}
	return txs, nil
}

var attemptTable = db.NewTable("chain_tx_attempts", func(a *TxAttempt) []db.Column {
	return []db.Column{
		db.Col("tx_hash", db.Hash(&a.TxHash)),
		db.Col("raw", db.CodeOf(&a.Raw, hexutil.Decode, hexutil.Encode)),
		db.Col("fee_cap", db.CodeOf(&a.FeeCap, parseWei, (*big.Int).String)),
		db.Col("tip_cap", db.CodeOf(&a.TipCap, parseWei, (*big.Int).String)),
		db.Col("created_ms", db.Milliseconds(&a.CreatedAt)),
		db.Col("accepted_ms", db.Null(db.Milliseconds(&a.AcceptedAt))),
	}
})

func parseWei(text string) (*big.Int, error) {
	v, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return nil, fmt.Errorf("not a decimal number")
	}
	return v, nil
}
