package txmgr

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// foreignTransactions ends the reasons for suspecting a restore because of the operators' transactions.
const foreignTransactions = "either the database has lost transactions, or another program or person sends with the key of this account, " +
	"which should be the service's only. After --dismiss, transactions of this account do not count as evidence, until a recovery ends"

// AnyNonces makes NoteNonces accept all unknown nonces.
const AnyNonces = math.MaxUint64

// Operators returns the accounts with stored transactions on a chain.
func Operators(ctx context.Context, q db.Querier, chainKey string) ([]invoice.Address, error) {
	return db.QueryAll(ctx, q, db.One(db.Address), "SELECT DISTINCT sender FROM chain_txs WHERE chain_key = $1 ORDER BY sender", chainKey)
}

// noteNonces compares how many nonces an account has used on a chain with the database. The count must
// have been read before the call: a transaction is stored before it is broadcast, so the database
// knows all that were counted. The first call for an account accepts the nonces that are used or
// pending: after a recovery, pending transactions are of the lost past. Later, more unknown nonces than
// allowed are evidence that the database was restored. A running service would have noticed a loss: it
// allows AnyNonces, and removes the chain's former accounts. noteNonces reports whether it found evidence.
func noteNonces(ctx context.Context, s *db.DB, chainKey string, account invoice.Address, used, pending, allowed uint64, now time.Time) (suspected bool, err error) {
	err = s.Update(ctx, func(tx *db.Tx) error {
		suspected = false
		if allowed == AnyNonces {
			if err := forgetAccounts(ctx, tx, chainKey, account); err != nil {
				return err
			}
		}
		first, err := tx.Exec(ctx, "INSERT INTO operator_nonces (chain_key, account, known, shared) VALUES ($1, $2, $3, 0) ON CONFLICT (chain_key, account) DO NOTHING",
			chainKey, account.String(), int64(pending))
		if err != nil || first == 1 {
			return err
		}
		known, shared, err := knownNonces(ctx, tx, chainKey, account)
		if err != nil || used <= known {
			return err
		}
		if suspected = used-known > allowed && !shared; !suspected {
			return tx.Do(ctx, "UPDATE operator_nonces SET known = $3 WHERE chain_key = $1 AND account = $2 AND known < $3", chainKey, account.String(), int64(used))
		}
		return suspectAccount(ctx, tx, chainKey, account, used, fmt.Sprintf("account %s has sent %d transactions on %s, and the database knows of %d: %s",
			account, used, chainKey, known, foreignTransactions), now)
	})
	if err != nil {
		return false, fmt.Errorf("compare the nonces of %s on %s: %w", account, chainKey, err)
	}
	return suspected, nil
}

// NoteSigned is like NoteNonces, for a transaction that an account signed and that calls one of the
// service's registries.
func NoteSigned(ctx context.Context, s *db.DB, chainKey string, account invoice.Address, nonce uint64, txHash invoice.Hash, now time.Time) (suspected bool, err error) {
	err = s.Update(ctx, func(tx *db.Tx) error {
		suspected = false
		accepted, err := db.QueryAll(ctx, tx, db.ScanSeq, "SELECT known FROM operator_nonces WHERE chain_key = $1 AND account = $2 AND shared = 0", chainKey, account.String())
		if err != nil || len(accepted) == 0 || nonce < uint64(accepted[0]) {
			return err
		}
		stored, err := db.QueryRow(ctx, tx, db.ScanCount, "SELECT count(*) FROM chain_txs WHERE chain_key = $1 AND sender = $2 AND nonce = $3", chainKey, account.String(), int64(nonce))
		if err != nil || stored > 0 {
			return err
		}
		suspected = true
		return suspectAccount(ctx, tx, chainKey, account, nonce+1, fmt.Sprintf("transaction %s of account %s with nonce %d changed the registry on %s, and the database does not know it: %s",
			txHash, account, nonce, chainKey, foreignTransactions), now)
	})
	if err != nil {
		return false, fmt.Errorf("compare transaction %s on %s: %w", txHash, chainKey, err)
	}
	return suspected, nil
}

// ForgetOperators deletes the accounts of a chain without an operator key. A person may move their
// coins before a key returns.
func ForgetOperators(ctx context.Context, s *db.DB, chainKey string) error {
	return s.Update(ctx, func(tx *db.Tx) error { return forgetAccounts(ctx, tx, chainKey, invoice.Address{}) })
}

// forgetAccounts deletes the accounts of a chain except one account, and except accounts that others also use to send.
func forgetAccounts(ctx context.Context, tx *db.Tx, chainKey string, but invoice.Address) error {
	if _, err := tx.Exec(ctx, "DELETE FROM operator_nonces WHERE chain_key = $1 AND account <> $2 AND shared = 0", chainKey, but.String()); err != nil {
		return fmt.Errorf("forget former operators of %s: %w", chainKey, err)
	}
	return nil
}

// knownNonces returns how many nonces of an account are known, and whether others send with its key.
func knownNonces(ctx context.Context, tx *db.Tx, chainKey string, account invoice.Address) (known uint64, shared bool, err error) {
	type row struct{ accepted, stored, shared int64 }
	r, err := db.QueryRow(ctx, tx, func(s db.Scanner) (r row, err error) { return r, s.Scan(&r.accepted, &r.stored, &r.shared) },
		`SELECT known, (SELECT coalesce(max(nonce) + 1, 0) FROM chain_txs WHERE chain_key = $1 AND sender = $2), shared
		FROM operator_nonces WHERE chain_key = $1 AND account = $2`, chainKey, account.String())
	return uint64(max(r.accepted, r.stored)), r.shared == 1, err
}

// suspectAccount records evidence from an account's transactions. Until a recovery ends, the account
// gives no further evidence.
func suspectAccount(ctx context.Context, tx *db.Tx, chainKey string, account invoice.Address, used uint64, reason string, now time.Time) error {
	_, err := tx.Exec(ctx, "UPDATE operator_nonces SET known = $3, shared = 1 WHERE chain_key = $1 AND account = $2", chainKey, account.String(), int64(used))
	if err != nil {
		return err
	}
	return tx.SuspectRestore(ctx, reason, now)
}

// ForgetNonces makes the next start accept all nonces that are used by then, for the end of a recovery.
func ForgetNonces(ctx context.Context, tx *db.Tx) error {
	if _, err := tx.Exec(ctx, "DELETE FROM operator_nonces"); err != nil {
		return fmt.Errorf("forget the nonces of operators: %w", err)
	}
	return nil
}
