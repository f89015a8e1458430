package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// LostInvoice is a commitment of a past that the database has lost.
type LostInvoice struct {
	ChainKey     string
	CommitmentID invoice.Hash
	Registry     invoice.Address // that announced it
	Block        uint64
	TxHash       invoice.Hash // of the last known transaction that opened or closed it, or zero
	// ClosedBlock is the block in which the registry closed it, at ClosedAt; 0 if it is not closed.
	ClosedBlock uint64
	ClosedAt    time.Time
	// InvoiceID is the open invoice that has the commitment now, and that was closed before it expired;
	// empty without one. Inserts ignore it.
	InvoiceID string
}

var lostTable = db.NewTable("lost_invoices", func(l *LostInvoice) []db.Column {
	return []db.Column{
		db.Col("chain_key", db.Text(&l.ChainKey)),
		db.Col("commitment_id", db.Hash(&l.CommitmentID)),
		db.Col("registry", db.Address(&l.Registry)),
		db.Col("block_number", db.Int(&l.Block)),
		db.Col("tx_hash", db.Null(db.Hash(&l.TxHash))),
		db.Col("closed_block", db.Null(db.Int(&l.ClosedBlock))),
		db.Col("closed_at", db.Null(db.Seconds(&l.ClosedAt))),
	}
})

// insertLostInvoices records commitments. For recorded ones it updates where they were closed.
func insertLostInvoices(ctx context.Context, tx *db.Tx, lost []LostInvoice) error {
	for _, l := range lost { // few, and each at most twice
		err := tx.Insert(ctx, lostTable.Insertion(`ON CONFLICT (commitment_id) DO UPDATE SET tx_hash = coalesce(excluded.tx_hash, lost_invoices.tx_hash),
			closed_block = coalesce(excluded.closed_block, lost_invoices.closed_block), closed_at = coalesce(excluded.closed_at, lost_invoices.closed_at)`,
			"closed BIGINT"), [][]any{lostTable.Values(l, int64(0))})
		if err != nil {
			return fmt.Errorf("record a lost invoice: %w", err)
		}
	}
	return nil
}

// lostInvoice returns the record of a commitment, or ErrNotFound.
func lostInvoice(ctx context.Context, q db.Querier, id invoice.Hash) (LostInvoice, error) {
	return db.QueryRow(ctx, q, lostTable.Scan, lostTable.Select()+" WHERE commitment_id = $1", id.String())
}

// LostInvoices returns the recorded commitments of a chain in the order of their blocks: commitments
// without an invoice, and commitments of open invoices that ended in the lost past.
func LostInvoices(ctx context.Context, q db.Querier, chainKey string) ([]LostInvoice, error) {
	all, err := db.QueryAll(ctx, q, lostTable.Scan, lostTable.Select()+" WHERE chain_key = $1 ORDER BY block_number, commitment_id", chainKey)
	if err != nil {
		return nil, fmt.Errorf("read lost invoices: %w", err)
	}
	lost := all[:0]
	for _, l := range all {
		inv, err := invoiceByCommitment(ctx, q, l.CommitmentID)
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			return nil, err
		}
		if l.InvoiceID = inv.ID; inv.ID == "" || inv.EndedInLostPast() {
			lost = append(lost, l)
		}
	}
	return lost, nil
}

// markEndedInLostPast records that an open invoice ended in a past that the database has lost:
// transfers above a block do not pay it, it does not expire, and its sums are counted again. It leaves
// an invoice unchanged that has such a record.
func markEndedInLostPast(ctx context.Context, tx *db.Tx, id string, block uint64) error {
	return tx.Do(ctx, "UPDATE invoices SET closed_block = $2, sums_stale = 1 WHERE id = $1 AND status = 'open' AND closed_block IS NULL", id, int64(block))
}

// markClosed records whether the service still has to decide if the open invoice of a closed commitment becomes void.
func markClosed(ctx context.Context, tx *db.Tx, id invoice.Hash, undecided bool) error {
	return tx.Do(ctx, "UPDATE lost_invoices SET closed = $2 WHERE commitment_id = $1", id.String(), db.Bit(undecided))
}

// hasHeldPayment reports whether a payment of an invoice, up to the block at which the invoice ended, is held.
func hasHeldPayment(ctx context.Context, q db.Querier, inv invoice.Invoice) (bool, error) {
	n, err := db.QueryRow(ctx, q, db.ScanCount, "SELECT count(*) FROM payments WHERE invoice_id = $1 AND status = 'held' AND block_number <= $2",
		inv.ID, int64(inv.ClosedBlock))
	return n > 0, err
}

// closedInvoices returns the undecided commitments of a chain that were closed in blocks up to a
// number, with their invoices.
func closedInvoices(ctx context.Context, q db.Querier, chainKey string, through uint64, limit int) ([]LostInvoice, error) {
	all, err := db.QueryAll(ctx, q, lostTable.Scan, lostTable.Select()+" WHERE chain_key = $1 AND closed = 1 AND closed_block <= $2 ORDER BY closed_block LIMIT $3", chainKey, int64(through), limit)
	for i := range all {
		inv, err := invoiceByCommitment(ctx, q, all[i].CommitmentID)
		if err != nil {
			return nil, err
		}
		all[i].InvoiceID = inv.ID
	}
	return all, err
}

// reopenClosed deletes the records of commitments that were closed in blocks above a number, after a
// reorg dropped the blocks.
func reopenClosed(ctx context.Context, tx *db.Tx, chainKey string, above uint64) error {
	dropped, err := db.QueryAll(ctx, tx, lostTable.Scan, lostTable.Select()+" WHERE chain_key = $1 AND closed_block > $2", chainKey, int64(above))
	for _, l := range dropped {
		if _, err := tx.Exec(ctx, "UPDATE lost_invoices SET closed = 0, closed_block = NULL, closed_at = NULL WHERE commitment_id = $1", l.CommitmentID.String()); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE invoices SET closed_block = NULL, sums_stale = 1 WHERE "+hasCommitment(tx, "$1")+" AND status = 'open' AND closed_block = $2",
			l.CommitmentID.String(), int64(l.ClosedBlock)); err != nil {
			return err
		}
	}
	return err
}

// InsertLostAddresses makes the service record payments to addresses. The commitment is the one of the
// lost invoice with the deposit address, or zero for a settlement address.
func InsertLostAddresses(ctx context.Context, tx *db.Tx, chainKey string, addresses map[invoice.Address]invoice.Hash) error {
	rows := make([][]any, 0, len(addresses))
	for a, id := range addresses {
		rows = append(rows, []any{chainKey, a.String(), db.OrNull(id)})
	}
	return tx.Insert(ctx, db.Insertion{Table: "lost_addresses", Columns: []string{"chain_key", "address", "commitment_id"}, Conflict: "ON CONFLICT (address, chain_key) DO NOTHING"}, rows)
}

// LostAddresses returns how many lost addresses of a chain are watched.
func LostAddresses(ctx context.Context, q db.Querier, chainKey string) (int, error) {
	return db.QueryRow(ctx, q, db.ScanCount, "SELECT count(*) FROM lost_addresses WHERE chain_key = $1", chainKey)
}

// allSettlementAddresses returns the settlement addresses of a chain, including the ones of lost invoices.
func allSettlementAddresses(ctx context.Context, q db.Querier, chainKey string) ([]invoice.Address, error) {
	return db.QueryAll(ctx, q, db.One(db.Address), `SELECT address FROM settlement_addresses WHERE chain_key = $1
		UNION SELECT address FROM lost_addresses WHERE chain_key = $1 AND commitment_id IS NULL ORDER BY address`, chainKey)
}

// lostDeposit begins the id that Deposits returns for the deposit address of a lost invoice.
const lostDeposit = "lost:"

// isLostDeposit reports whether Deposits returned an id for the deposit address of a lost invoice.
func isLostDeposit(id string) bool { return strings.HasPrefix(id, lostDeposit) }

// LostPayments returns, by the ids of payments without an invoice, the commitments of the lost invoices that they were
// for: the one of the deposit address, or one that the payment's evidence names. It leaves out other payments.
func (q Reader) LostPayments(ctx context.Context, payments []invoice.Payment) (map[string]invoice.Hash, error) {
	rows := make([][]any, len(payments))
	for n, p := range payments {
		rows[n] = []any{int64(n), p.ChainKey, p.To.String(), p.Evidence.Registry.String(), p.Evidence.Authorization.String(), p.Evidence.Calldata.String()}
	}
	ids, err := lookUp(ctx, q, []string{"n BIGINT", "chain", "receiver", "registered", "signed", "tagged"}, rows, `SELECT max(lost.id) FROM (
		SELECT commitment_id AS id FROM lost_addresses WHERE address = receiver AND chain_key = chain
		UNION ALL SELECT commitment_id FROM lost_invoices WHERE commitment_id IN (registered, signed, tagged)
		) AS lost WHERE NOT EXISTS (SELECT 1 FROM invoices WHERE `+hasCommitment(q, "lost.id")+")")
	if err != nil {
		return nil, fmt.Errorf("find out which lost invoices payments are for: %w", err)
	}
	found := make(map[string]invoice.Hash)
	for n, text := range ids {
		if id, err := invoice.ParseHash(text); err == nil {
			found[payments[n].ID] = id
		}
	}
	return found, nil
}

// RecoverFrom records, at the start of a recovery, the first block of each chain that the backup had not read. Blocks
// that have replaced blocks of the backup are added once they are read. A chain keeps the block at which an earlier
// recovery began that has not ended or, if keep is set, that has ended: imports may still need the payments since then.
// It undoes the attributions that had not taken effect. It returns, by chain, how many lost addresses an earlier
// recovery that has ended found. The blocks of the earlier lost past were read with these.
func RecoverFrom(ctx context.Context, tx *db.Tx, keep bool, now time.Time) (watched map[string]int, err error) {
	if !keep {
		if _, err := tx.Exec(ctx, "DELETE FROM recovery_chains WHERE through_block IS NOT NULL"); err != nil {
			return nil, fmt.Errorf("forget an earlier recovery: %w", err)
		}
	}
	if watched, err = endedRecoveries(ctx, tx); err != nil {
		return nil, err
	}
	if err := ResumeRecovery(ctx, tx); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO recovery_chains (chain_key, from_block) SELECT chain_key, indexed_number + 1 FROM chains WHERE true
		ON CONFLICT (chain_key) DO UPDATE SET from_block = excluded.from_block WHERE excluded.from_block < recovery_chains.from_block`); err != nil {
		return nil, fmt.Errorf("record where the recovery begins: %w", err)
	}
	return watched, undoAttributions(ctx, tx, "quittance recover", now)
}

// endedRecoveries returns how many lost addresses are watched on each chain for which a recovery has ended.
func endedRecoveries(ctx context.Context, q db.Querier) (map[string]int, error) {
	watched, err := numberByChain[int](ctx, q, `SELECT chain_key, (SELECT count(*) FROM lost_addresses WHERE lost_addresses.chain_key = recovery_chains.chain_key)
		FROM recovery_chains WHERE through_block IS NOT NULL`)
	return watched, db.During("count the watched lost addresses", err)
}

// BackupTime returns the time of the newest block that the backup had read, at the start of a recovery, or zero if it
// had read none.
func BackupTime(ctx context.Context, tx *db.Tx) (time.Time, error) {
	return db.QueryRow(ctx, tx, db.ScanTime, "SELECT max(indexed_time) FROM chains")
}

// RecoverChainFrom records the first block that a recovery reads of a chain that the backup had never read.
func RecoverChainFrom(ctx context.Context, tx *db.Tx, chainKey string, from uint64) error {
	return tx.Do(ctx, "INSERT INTO recovery_chains (chain_key, from_block) VALUES ($1, $2)", chainKey, int64(from))
}

// lowerRecoveredFrom records that a recovery reads a chain from a block on, if it begins above it.
func lowerRecoveredFrom(ctx context.Context, tx *db.Tx, chainKey string, from uint64) error {
	return tx.Do(ctx, "UPDATE recovery_chains SET from_block = $2 WHERE chain_key = $1 AND from_block > $2", chainKey, int64(from))
}

// EndRecovery records the newest block of each chain that a recovery has read.
func EndRecovery(ctx context.Context, tx *db.Tx) error {
	return tx.Do(ctx, "UPDATE recovery_chains SET through_block = (SELECT indexed_number FROM chains WHERE chains.chain_key = recovery_chains.chain_key)")
}

// ResumeRecovery records that a recovery which had ended continues.
func ResumeRecovery(ctx context.Context, tx *db.Tx) error {
	return tx.Do(ctx, "UPDATE recovery_chains SET through_block = NULL")
}

// IsRecovering reports whether a recovery has begun and has not ended.
func IsRecovering(ctx context.Context, q db.Querier) (bool, error) {
	n, err := db.QueryRow(ctx, q, db.ScanCount, "SELECT count(*) FROM recovery_chains WHERE through_block IS NULL")
	return n > 0, err
}

// LostPast returns the blocks of a chain that the recovery has read and the backup had not; through is the greatest
// number while the recovery runs. It returns ErrNotFound for a chain that no recovery has read.
func LostPast(ctx context.Context, q db.Querier, chainKey string) (from, through uint64, err error) {
	_, err = db.QueryRow(ctx, q, func(row db.Scanner) (struct{}, error) { return struct{}{}, row.Scan(&from, &through) },
		"SELECT from_block, coalesce(through_block, $2) FROM recovery_chains WHERE chain_key = $1", chainKey, int64(math.MaxInt64))
	return from, through, err
}

// RecoveredFrom returns where the recovery began to read each chain.
func RecoveredFrom(ctx context.Context, q db.Querier) (map[string]uint64, error) {
	return numberByChain[uint64](ctx, q, "SELECT chain_key, from_block FROM recovery_chains")
}

// numberByChain returns the numbers that a statement selects with the keys of chains.
func numberByChain[N int | uint64](ctx context.Context, q db.Querier, query string) (map[string]N, error) {
	numbers := make(map[string]N)
	err := db.ForEach(ctx, q, func(row db.Scanner) error {
		var key string
		var n int64
		err := row.Scan(&key, &n)
		numbers[key] = N(n)
		return err
	}, query)
	return numbers, err
}

// isFromLostDeposit is the condition that a row of payments is a transfer from the deposit address of a lost invoice.
const isFromLostDeposit = `EXISTS (SELECT 1 FROM lost_addresses AS l
	WHERE l.address = payments.from_address AND l.chain_key = payments.chain_key AND l.commitment_id IS NOT NULL)`

// UnattributedSince returns the newest payments of a chain without an invoice in blocks from a number on. It leaves out
// a transfer from the deposit address of a lost invoice, because that sweeps a payment that is listed.
func UnattributedSince(ctx context.Context, q db.Querier, chainKey string, from uint64, limit int) ([]invoice.Payment, error) {
	rows, err := db.QueryAll(ctx, q, paymentTable.Scan, paymentTable.Select()+`
		WHERE chain_key = $1 AND block_number >= $2 AND invoice_id IS NULL AND status <> 'orphaned'
		AND NOT `+isFromLostDeposit+`
		ORDER BY block_number DESC, log_index DESC LIMIT $3`, chainKey, int64(from), limit)
	all := db.Each(rows, func(row PaymentRow) invoice.Payment { return row.Payment })
	return all, err
}

// RefundsByReason returns the ids of prepared refunds with a reason, the newest first.
func RefundsByReason(ctx context.Context, q db.Querier, reason string, limit int) ([]string, error) {
	return db.QueryAll(ctx, q, db.ScanID, "SELECT id FROM refund_records WHERE reason = $1 ORDER BY list_id DESC LIMIT $2", reason, limit)
}
