package store

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/internal/invoice"
)

// ChainTx is a transaction of the on-chain writer: one nonce of its sender,
// and every form in which it was signed.
type ChainTx struct {
	ID        string
	ChainKey  string
	Sender    invoice.Address
	Nonce     uint64
	Kind      invoice.IntentKind
	Status    TxStatus
	CreatedMS int64       // Unix milliseconds
	Attempts  []TxAttempt // in the order they were made; never empty
}

// TxStatus is where such a transaction stands, as far as the writer knows.
type TxStatus string

// The states of a transaction. A reorg may take each of the last two back.
const (
	TxSent   TxStatus = "sent"   // saved, and perhaps broadcast
	TxMined  TxStatus = "mined"  // carried out in a block
	TxFailed TxStatus = "failed" // reverted, or its nonce was used otherwise
)

// TxAttempt is a signed form of a transaction.
type TxAttempt struct {
	TxHash    invoice.Hash
	Raw       []byte   // as it is broadcast
	FeeCap    *big.Int // wei for a unit of gas
	TipCap    *big.Int // wei for a unit of gas
	CreatedMS int64    // Unix milliseconds
}

// SaveChainTx writes a new transaction with its attempts and gives it the
// intents, which must be due. It is ErrConflict when one of them no longer is,
// when the nonce is taken, or when the lease is another's.
func (s *Store) SaveChainTx(ctx context.Context, l Lease, t ChainTx, intentIDs []string) error {
	return s.under(ctx, l, func(tx *Tx) error {
		n, err := tx.exec(ctx, `INSERT INTO chain_txs (id, chain_key, sender, nonce, kind, status, created_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (chain_key, sender, nonce) DO NOTHING`,
			t.ID, t.ChainKey, t.Sender.String(), int64(t.Nonce), string(t.Kind), string(t.Status), t.CreatedMS)
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
		moved, err := tx.changeIntents(ctx, "SET status = 'sent', tx_id = $1 WHERE status = 'due'", []any{t.ID}, intentIDs)
		if err == nil && moved != int64(len(intentIDs)) {
			return fmt.Errorf("%d of %d intents are due: %w", moved, len(intentIDs), ErrConflict)
		}
		return err
	})
}

// AddAttempt writes one more signed form of a transaction; the first form has
// the number 1. It is ErrConflict when the lease is another's.
func (s *Store) AddAttempt(ctx context.Context, l Lease, txID string, number int, a TxAttempt) error {
	return s.under(ctx, l, func(tx *Tx) error { return tx.insertAttempt(ctx, txID, number, a) })
}

func (tx *Tx) insertAttempt(ctx context.Context, txID string, number int, a TxAttempt) error {
	_, err := tx.exec(ctx, `INSERT INTO chain_tx_attempts (tx_id, number, tx_hash, raw, fee_cap, tip_cap, created_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`, txID, number, a.TxHash.String(), hexutil.Encode(a.Raw),
		a.FeeCap.String(), a.TipCap.String(), a.CreatedMS)
	return err
}

// SetTxStatus moves a transaction. When it failed, its intents are due again.
// It is ErrConflict when the lease is another's.
func (s *Store) SetTxStatus(ctx context.Context, l Lease, txID string, status TxStatus) error {
	return s.under(ctx, l, func(tx *Tx) error {
		if _, err := tx.exec(ctx, "UPDATE chain_txs SET status = $2 WHERE id = $1", txID, string(status)); err != nil {
			return err
		}
		if status != TxFailed {
			return nil
		}
		return tx.releaseIntents(ctx, txID)
	})
}

// UnsettledTxs returns, by nonce, the chain's transactions that the writer
// must look after: those that are sent, and those with intents of which
// nothing was seen in the chain.
func (q *queries) UnsettledTxs(ctx context.Context, chainKey string) ([]ChainTx, error) {
	return q.chainTxs(ctx, `id IN (SELECT id FROM chain_txs WHERE chain_key = $1 AND status = 'sent' UNION ALL
		SELECT tx_id FROM intents WHERE chain_key = $1 AND status = 'sent' AND seen_block IS NULL)`, chainKey)
}

// ChainTxsFrom returns, by nonce, the sender's transactions on the chain with
// that nonce or a higher one.
func (q *queries) ChainTxsFrom(ctx context.Context, chainKey string, sender invoice.Address, nonce uint64) ([]ChainTx, error) {
	return q.chainTxs(ctx, "chain_key = $1 AND sender = $2 AND nonce >= $3", chainKey, sender.String(), int64(nonce))
}

func (q *queries) chainTxs(ctx context.Context, condition string, args ...any) ([]ChainTx, error) {
	txs, err := collect(ctx, q, func(row scanner) (t ChainTx, err error) {
		err = row.Scan(&t.ID, &t.ChainKey, addressCol(&t.Sender), &t.Nonce, &t.Kind, &t.Status, &t.CreatedMS)
		return t, err
	}, "SELECT id, chain_key, sender, nonce, kind, status, created_ms FROM chain_txs WHERE "+condition+" ORDER BY nonce", args...)
	if err != nil {
		return nil, err
	}
	for i := range txs {
		txs[i].Attempts, err = collect(ctx, q, scanAttempt, `SELECT tx_hash, raw, fee_cap, tip_cap, created_ms
			FROM chain_tx_attempts WHERE tx_id = $1 ORDER BY number`, txs[i].ID)
		if err != nil {
			return nil, err
		}
	}
	return txs, nil
}

func scanAttempt(row scanner) (TxAttempt, error) {
	var a TxAttempt
	err := row.Scan(hashCol(&a.TxHash), column[[]byte]{&a.Raw, hexutil.Decode}, weiCol(&a.FeeCap), weiCol(&a.TipCap), &a.CreatedMS)
	return a, err
}

func weiCol(dst **big.Int) column[*big.Int] {
	return column[*big.Int]{dst, func(text string) (*big.Int, error) {
		v, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return nil, fmt.Errorf("not a decimal number")
		}
		return v, nil
	}}
}
