package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// foreignTransactions ends the reasons that the operators' transactions give.
const foreignTransactions = "either the database has lost transactions, or another program or person sends with the key of this account, " +
	"which should be the service's only. After --dismiss, transactions of this account do not count as evidence, until a recovery ends"

// AnyNonces allows all unknown nonces, for NoteNonces.
const AnyNonces = math.MaxUint64

// Operators returns the accounts whose transactions on a chain are stored.
func (q *queries) Operators(ctx context.Context, chainKey string) ([]invoice.Address, error) {
	return queryAll(ctx, q, func(row scanner) (a invoice.Address, err error) {
		err = row.Scan(addressCol(&a))
		return a, err
	}, "SELECT DISTINCT sender FROM chain_txs WHERE chain_key = $1 ORDER BY sender", chainKey)
}

// ForeignTxs returns the transactions that are not stored as sent by the service.
func (q *queries) ForeignTxs(ctx context.Context, txs []invoice.Hash) ([]invoice.Hash, error) {
	rows := make([][]any, len(txs))
	for i, t := range txs {
		rows[i] = []any{t.String()}
	}
	stored, err := q.whichExist(ctx, []string{"hash"}, rows, "chain_tx_attempts WHERE tx_hash = hash")
	if err != nil {
		return nil, fmt.Errorf("look up transactions: %w", err)
	}
	foreign := slices.Clone(txs)
	for _, i := range stored {
		foreign[i] = invoice.Hash{}
	}
	return slices.DeleteFunc(foreign, invoice.Hash.IsZero), nil
}

// NoteNonces compares how many nonces an account has used on a chain with what the database knows. The count must have
// been read before the call: a transaction is stored before it is broadcast, so that the database knows all that were
// counted. What was used before the first call for an account is accepted. Later, more unknown nonces than are allowed
// are evidence that the database was restored. A service that runs has noticed no loss: it allows AnyNonces, and
// forgets the chain's former accounts. NoteNonces reports whether it found evidence.
func (s *Store) NoteNonces(ctx context.Context, chainKey string, account invoice.Address, used, allowed uint64, now time.Time) (suspected bool, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		suspected = false
		if allowed == AnyNonces {
			if err := tx.forgetAccounts(ctx, chainKey, account); err != nil {
				return err
			}
		}
		first, err := tx.exec(ctx, "INSERT INTO operator_nonces (chain_key, account, known, shared) VALUES ($1, $2, $3, 0) ON CONFLICT (chain_key, account) DO NOTHING",
			chainKey, account.String(), int64(used))
		if err != nil || first == 1 {
			return err
		}
		known, shared, err := tx.knownNonces(ctx, chainKey, account)
		if err != nil || used <= known {
			return err
		}
		if suspected = used-known > allowed && !shared; !suspected {
			_, err := tx.exec(ctx, "UPDATE operator_nonces SET known = $3 WHERE chain_key = $1 AND account = $2 AND known < $3", chainKey, account.String(), int64(used))
			return err
		}
		return tx.suspectAccount(ctx, chainKey, account, used, fmt.Sprintf("account %s has sent %d transactions on %s, and the database knows of %d: %s",
			account, used, chainKey, known, foreignTransactions), now)
	})
	if err != nil {
		return false, fmt.Errorf("compare the nonces of %s on %s: %w", account, chainKey, err)
	}
	return suspected, nil
}

// NoteSigned is NoteNonces for a transaction that an account signed, and that calls one of the service's registries.
func (s *Store) NoteSigned(ctx context.Context, chainKey string, account invoice.Address, nonce uint64, txHash invoice.Hash, now time.Time) (suspected bool, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		suspected = false
		accepted, err := queryAll(ctx, &tx.queries, scanSeq, "SELECT known FROM operator_nonces WHERE chain_key = $1 AND account = $2 AND shared = 0", chainKey, account.String())
		if err != nil || len(accepted) == 0 || nonce < uint64(accepted[0]) {
			return err
		}
		stored, err := queryRow(ctx, &tx.queries, scanCount, "SELECT count(*) FROM chain_txs WHERE chain_key = $1 AND sender = $2 AND nonce = $3", chainKey, account.String(), int64(nonce))
		if err != nil || stored > 0 {
			return err
		}
		suspected = true
		return tx.suspectAccount(ctx, chainKey, account, nonce+1, fmt.Sprintf("transaction %s of account %s with nonce %d changed the registry on %s, and the database does not know it: %s",
			txHash, account, nonce, chainKey, foreignTransactions), now)
	})
	if err != nil {
		return false, fmt.Errorf("compare transaction %s on %s: %w", txHash, chainKey, err)
	}
	return suspected, nil
}

// ForgetOperators forgets the accounts of a chain that has no operator key. Their coins may be moved by hand before one
// returns.
func (s *Store) ForgetOperators(ctx context.Context, chainKey string) error {
	return s.Update(ctx, func(tx *Tx) error { return tx.forgetAccounts(ctx, chainKey, invoice.Address{}) })
}

// forgetAccounts forgets the accounts of a chain but one, and those that others send with.
func (tx *Tx) forgetAccounts(ctx context.Context, chainKey string, but invoice.Address) error {
	if _, err := tx.exec(ctx, "DELETE FROM operator_nonces WHERE chain_key = $1 AND account <> $2 AND shared = 0", chainKey, but.String()); err != nil {
		return fmt.Errorf("forget former operators of %s: %w", chainKey, err)
	}
	return nil
}

// knownNonces returns how many nonces of an account are known, and whether others send with its key.
func (tx *Tx) knownNonces(ctx context.Context, chainKey string, account invoice.Address) (known uint64, shared bool, err error) {
	type row struct{ accepted, stored, shared int64 }
	r, err := queryRow(ctx, &tx.queries, func(s scanner) (r row, err error) { return r, s.Scan(&r.accepted, &r.stored, &r.shared) },
		`SELECT known, (SELECT coalesce(max(nonce) + 1, 0) FROM chain_txs WHERE chain_key = $1 AND sender = $2), shared
		FROM operator_nonces WHERE chain_key = $1 AND account = $2`, chainKey, account.String())
	return uint64(max(r.accepted, r.stored)), r.shared == 1, err
}

// suspectAccount records evidence that the transactions of an account gave. It gives no other, until a recovery ends.
func (tx *Tx) suspectAccount(ctx context.Context, chainKey string, account invoice.Address, used uint64, reason string, now time.Time) error {
	_, err := tx.exec(ctx, "UPDATE operator_nonces SET known = $3, shared = 1 WHERE chain_key = $1 AND account = $2", chainKey, account.String(), int64(used))
	if err != nil {
		return err
	}
	return tx.SuspectRestore(ctx, reason, now)
}

// ForgetNonces has the nonces that are used at the next start accepted, for the end of a recovery.
func (tx *Tx) ForgetNonces(ctx context.Context) error {
	if _, err := tx.exec(ctx, "DELETE FROM operator_nonces"); err != nil {
		return fmt.Errorf("forget the nonces of operators: %w", err)
	}
	return nil
}
