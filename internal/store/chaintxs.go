package store

import (
	"context"
	"database/sql"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
)

// ChainTx is a transaction of the transaction manager: one nonce of its sender
// and all its attempts.
type ChainTx struct {
	ID          string
	ChainKey    string
	Sender      invoice.Address
	Nonce       uint64
	Kind        TxKind
	Destination invoice.Address // the contract that it calls; zero when it is not known
	Status      TxStatus
	CreatedAt   time.Time
	Scheduled   time.Time   // CreatedAt by the schedule's clock
	Reserved    int64       // the most that it can cost, in gwei: billionths of the native coin
	Spent       *TxCost     // what it did cost; nil while that is not known
	Attempts    []TxAttempt // in the order they were made; never empty
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

// TxCost is the cost of a mined transaction.
type TxCost struct {
	Gwei int64     // billionths of the chain's native coin
	At   time.Time // when it became known
	// Scheduled is At by the schedule's clock.
	Scheduled time.Time
}

// TxStatus is the state of a transaction, as far as the transaction manager
// knows.
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
	// AcceptedAt is when a node first accepted it into its pool, and zero while none
	// is known to have.
	AcceptedAt time.Time
}

// SaveChainTx inserts a transaction with its attempts, assigns it the items
// of its kind with the ids, and records whose they are. It returns ErrConflict
// if an item is not due, the nonce is taken, or the lease was lost.
func (s *Store) SaveChainTx(ctx context.Context, l WorkLease, t ChainTx, items []string) error {
	return s.withWorkLease(ctx, l, func(tx *Tx) error {
		kind, work := t.Kind.columns()
		n, err := tx.exec(ctx, `INSERT INTO chain_txs (id, chain_key, sender, nonce, kind, work, destination, status, created_ms, reserved_gwei, created_scheduled_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (chain_key, sender, nonce) DO NOTHING`,
			t.ID, t.ChainKey, t.Sender.String(), int64(t.Nonce), kind, work, orNull(t.Destination), string(t.Status), t.CreatedAt.UnixMilli(), t.Reserved, nullMilliseconds(t.Scheduled))
		if err != nil {
			return err
		}
		if n != 1 {
			return fmt.Errorf("nonce %d of %s is taken: %w", t.Nonce, t.Sender, ErrConflict)
		}
		for i, a := range t.Attempts {
			if err := tx.insertAttempt(ctx, t.ID, i+1, a); err != nil {
				return err
			}
		}
		assigned, err := tx.assignItems(ctx, t, items)
		if err != nil {
			return err
		}
		if assigned != int64(len(items)) {
			return fmt.Errorf("%d of %d items are due: %w", assigned, len(items), ErrConflict)
		}
		return tx.insertTxMerchants(ctx, t.ID, t.Kind)
	})
}

// assignItems assigns due items of the transaction's kind to it, and returns how
// many it assigned.
func (tx *Tx) assignItems(ctx context.Context, t ChainTx, items []string) (int64, error) {
	switch t.Kind {
	case TxOpen, TxClose:
		return tx.changeIntents(ctx, "SET status = 'sent', tx_id = $1 WHERE status = 'due'", []any{t.ID}, items)
	case TxAuthorization:
		return tx.assignAuthorizations(ctx, t.ID, items)
	case TxSweep:
		return tx.assignSweeps(ctx, t.ID, items)
	}
	return 0, fmt.Errorf("no items belong to a transaction of kind %q", t.Kind)
}

// releaseItems makes the items of a transaction due again, whatever its kind.
func (tx *Tx) releaseItems(ctx context.Context, txID string) error {
	if err := tx.releaseAuthorizations(ctx, txID); err != nil {
		return err
	}
	if err := tx.releaseSweeps(ctx, txID); err != nil {
		return err
	}
	return tx.releaseIntents(ctx, txID)
}

// AddAttempt inserts an attempt, numbered from 1, and updates the most that the
// transaction may cost, in gwei. It returns ErrConflict if the lease was lost.
func (s *Store) AddAttempt(ctx context.Context, l WorkLease, txID string, number int, a TxAttempt, reserved int64) error {
	return s.withWorkLease(ctx, l, func(tx *Tx) error {
		if err := tx.insertAttempt(ctx, txID, number, a); err != nil {
			return err
		}
		_, err := tx.exec(ctx, "UPDATE chain_txs SET reserved_gwei = $2 WHERE id = $1", txID, reserved)
		return err
	})
}

// AcceptAttempt records when a node first accepted an attempt into its pool. It
// returns ErrConflict if the lease was lost.
func (s *Store) AcceptAttempt(ctx context.Context, l WorkLease, txHash invoice.Hash, at time.Time) error {
	return s.withWorkLease(ctx, l, func(tx *Tx) error {
		_, err := tx.exec(ctx, "UPDATE chain_tx_attempts SET accepted_ms = $2 WHERE tx_hash = $1 AND accepted_ms IS NULL", txHash.String(), at.UnixMilli())
		return err
	})
}

func (tx *Tx) insertAttempt(ctx context.Context, txID string, number int, a TxAttempt) error {
	_, err := tx.exec(ctx, `INSERT INTO chain_tx_attempts (tx_id, number, tx_hash, raw, fee_cap, tip_cap, created_ms, accepted_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, txID, number, a.TxHash.String(), hexutil.Encode(a.Raw),
		a.FeeCap.String(), a.TipCap.String(), a.CreatedAt.UnixMilli(), nullMilliseconds(a.AcceptedAt))
	return err
}

// SetTxStatus updates a transaction's status and its cost, which is nil while
// unknown, and appends entries to the audit log. The items of a failed transaction
// become due again. It returns ErrConflict if the lease was lost.
func (s *Store) SetTxStatus(ctx context.Context, l WorkLease, txID string, status TxStatus, spent *TxCost, audit ...access.Entry) error {
	cost := []any{txID, string(status), nil, nil, nil}
	if spent != nil {
		cost = []any{txID, string(status), spent.Gwei, spent.At.UnixMilli(), nullMilliseconds(spent.Scheduled)}
	}
	return s.withWorkLease(ctx, l, func(tx *Tx) error {
		_, err := tx.exec(ctx, "UPDATE chain_txs SET status = $2, spent_gwei = $3, spent_ms = $4, spent_scheduled_ms = $5 WHERE id = $1", cost...)
		if err != nil {
			return err
		}
		if _, err := tx.exec(ctx, "UPDATE chain_tx_merchants SET spent_ms = $2 WHERE tx_id = $1", txID, cost[3]); err != nil {
			return err
		}
		if status == TxFailed {
			if err := tx.releaseItems(ctx, txID); err != nil {
				return err
			}
		}
		return tx.AppendAudit(ctx, audit...)
	})
}

// Spending returns, in gwei, the cost of the chain's transactions in a window, and how much they may
// cost in addition. The second sum is of transactions in flight, and of transactions in the window with
// unknown cost. It leaves out the transaction with the id exceptID, unless that is empty.
func (q *queries) Spending(ctx context.Context, chainKey string, w Window, exceptID string) (spent, reserved int64, err error) {
	oldest, since := w.Oldest.UnixMilli(), w.Since.UnixMilli()
	sum := func(what, condition string, args ...any) (int64, error) {
		return queryRow(ctx, q, func(row scanner) (n int64, err error) {
			err = row.Scan(&n)
			return n, err
		}, "SELECT CAST(COALESCE(SUM("+what+"), 0) AS BIGINT) FROM chain_txs WHERE chain_key = $1 AND id <> $2 AND "+condition, append([]any{chainKey, exceptID}, args...)...)
	}
	if spent, err = sum("spent_gwei", "spent_ms >= $3 AND COALESCE(spent_scheduled_ms, spent_ms) >= $4", oldest, since); err != nil {
		return 0, 0, err
	}
	recent, err := sum("reserved_gwei", "spent_ms IS NULL AND created_ms >= $3 AND (status = 'sent' OR COALESCE(created_scheduled_ms, created_ms) >= $4)", oldest, since)
	if err != nil {
		return 0, 0, err
	}
	older, err := sum("reserved_gwei", "spent_ms IS NULL AND created_ms < $3 AND status = 'sent'", oldest)
	return spent, recent + older, err
}

// UnsettledTxs returns, by nonce, the chain's transactions that the transaction
// manager must look after: those that are sent, and those with items that have
// no event on the chain yet.
func (q *queries) UnsettledTxs(ctx context.Context, chainKey string) ([]ChainTx, error) {
	return q.chainTxs(ctx, `id IN (SELECT id FROM chain_txs WHERE chain_key = $1 AND status = 'sent' UNION ALL
		SELECT tx_id FROM intents WHERE chain_key = $1 AND status = 'sent' AND seen_block IS NULL UNION ALL
		SELECT a.tx_id`+authorizationTables+` WHERE a.chain_key = $1 AND a.status IN ('accepted', 'sent') AND a.status = 'sent' AND `+isUnpaid+` UNION ALL
		SELECT tx_id FROM queued_sweeps WHERE chain_key = $1 AND tx_id IS NOT NULL)`, chainKey)
}

// ChainTxsFrom returns, by nonce, the sender's transactions from a nonce on.
func (q *queries) ChainTxsFrom(ctx context.Context, chainKey string, sender invoice.Address, nonce uint64) ([]ChainTx, error) {
	return q.chainTxs(ctx, "chain_key = $1 AND sender = $2 AND nonce >= $3", chainKey, sender.String(), int64(nonce))
}

// HasChainTxs reports whether any transaction of the sender is stored.
func (q *queries) HasChainTxs(ctx context.Context, chainKey string, sender invoice.Address) (bool, error) {
	n, err := queryRow(ctx, q, scanSeq, "SELECT count(*) FROM (SELECT 1 FROM chain_txs WHERE chain_key = $1 AND sender = $2 LIMIT 1) AS found",
		chainKey, sender.String())
	return n > 0, err
}

func (q *queries) chainTxs(ctx context.Context, condition string, args ...any) ([]ChainTx, error) {
	txs, err := queryAll(ctx, q, func(row scanner) (t ChainTx, err error) {
		var spent sql.NullInt64
		var at, scheduled time.Time
		err = row.Scan(&t.ID, &t.ChainKey, addressCol(&t.Sender), &t.Nonce, &t.Kind, addressCol(&t.Destination), &t.Status, milliseconds{&t.CreatedAt}, &t.Reserved, &spent, milliseconds{&at},
			milliseconds{&t.Scheduled}, milliseconds{&scheduled})
		if spent.Valid {
			t.Spent = &TxCost{Gwei: spent.Int64, At: at, Scheduled: scheduled}
		}
		return t, err
	}, `SELECT id, chain_key, sender, nonce, COALESCE(work, kind), destination, status, created_ms, reserved_gwei, spent_gwei, spent_ms, created_scheduled_ms, spent_scheduled_ms
		FROM chain_txs WHERE `+condition+" ORDER BY nonce", args...)
	if err != nil {
		return nil, err
	}
	for i := range txs {
		txs[i].Attempts, err = queryAll(ctx, q, scanAttempt, `SELECT tx_hash, raw, fee_cap, tip_cap, created_ms, accepted_ms
			FROM chain_tx_attempts WHERE tx_id = $1 ORDER BY number`, txs[i].ID)
		if err != nil {
			return nil, err
		}
	}
	return txs, nil
}

func scanAttempt(row scanner) (TxAttempt, error) {
	var a TxAttempt
	err := row.Scan(hashCol(&a.TxHash), parsedColumn[[]byte]{&a.Raw, hexutil.Decode}, weiCol(&a.FeeCap), weiCol(&a.TipCap), milliseconds{&a.CreatedAt}, milliseconds{&a.AcceptedAt})
	return a, err
}

func weiCol(dst **big.Int) parsedColumn[*big.Int] {
	return parsedColumn[*big.Int]{dst, func(text string) (*big.Int, error) {
		v, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return nil, fmt.Errorf("not a decimal number")
		}
		return v, nil
	}}
}
