package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

// LostInvoice is a commitment of a past that the database has lost.
type LostInvoice struct {
	ChainKey     string
	CommitmentID invoice.Hash
	Registry     invoice.Address // that announced it
	Block        uint64
	// Closed says that the database has the invoice as open, and the registry closed it before it expired.
	Closed bool
	// InvoiceID is the invoice that has the commitment now; empty without one. It is read and not written.
	InvoiceID string
}

// InsertLostInvoices records commitments, unless they are recorded.
func (tx *Tx) InsertLostInvoices(ctx context.Context, lost []LostInvoice) error {
	rows := make([][]any, len(lost))
	for i, l := range lost {
		rows[i] = []any{l.ChainKey, l.CommitmentID.String(), l.Registry.String(), int64(l.Block), bit(l.Closed)}
	}
	return tx.insert(ctx, insertion{"lost_invoices", []string{"chain_key", "commitment_id", "registry", "block_number", "closed"}, "ON CONFLICT (commitment_id) DO NOTHING"}, rows)
}

// LostInvoices returns the commitments of a chain that were recorded, in the order of their blocks. Those
// that were not closed and belong to an invoice by now are left out.
func (q *queries) LostInvoices(ctx context.Context, chainKey string) ([]LostInvoice, error) {
	all, err := queryAll(ctx, q, func(row scanner) (l LostInvoice, err error) {
		var block, closed int64
		err = row.Scan(&l.ChainKey, hashCol(&l.CommitmentID), addressCol(&l.Registry), &block, &closed)
		l.Block, l.Closed = uint64(block), closed == 1
		return l, err
	}, "SELECT chain_key, commitment_id, registry, block_number, closed FROM lost_invoices WHERE chain_key = $1 ORDER BY block_number, commitment_id", chainKey)
	if err != nil {
		return nil, fmt.Errorf("read lost invoices: %w", err)
	}
	lost := all[:0]
	for _, l := range all {
		inv, err := q.InvoiceByCommitment(ctx, l.CommitmentID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if l.InvoiceID = inv.ID; l.Closed == (l.InvoiceID != "") {
			lost = append(lost, l)
		}
	}
	return lost, nil
}

// InsertLostAddresses has payments to addresses recorded. The commitment is that of the lost invoice
// with the deposit address, or zero for a settlement address.
func (tx *Tx) InsertLostAddresses(ctx context.Context, chainKey string, addresses map[invoice.Address]invoice.Hash) error {
	rows := make([][]any, 0, len(addresses))
	for a, id := range addresses {
		rows = append(rows, []any{chainKey, a.String(), orNull(id)})
	}
	return tx.insert(ctx, insertion{"lost_addresses", []string{"chain_key", "address", "commitment_id"}, "ON CONFLICT (address, chain_key) DO NOTHING"}, rows)
}

// LostAddresses returns how many lost addresses of a chain are watched.
func (q *queries) LostAddresses(ctx context.Context, chainKey string) (int, error) {
	return queryRow(ctx, q, scanCount, "SELECT count(*) FROM lost_addresses WHERE chain_key = $1", chainKey)
}

// AllSettlementAddresses returns the settlement addresses of a chain, also those of lost invoices.
func (q *queries) AllSettlementAddresses(ctx context.Context, chainKey string) ([]invoice.Address, error) {
	return queryAll(ctx, q, func(row scanner) (a invoice.Address, err error) {
		err = row.Scan(addressCol(&a))
		return a, err
	}, `SELECT address FROM settlement_addresses WHERE chain_key = $1
		UNION SELECT address FROM lost_addresses WHERE chain_key = $1 AND commitment_id IS NULL ORDER BY address`, chainKey)
}

// lostDeposit begins the id that Deposits returns for the deposit address of a lost invoice.
const lostDeposit = "lost:"

// IsLostDeposit reports whether Deposits returned an id for the deposit address of a lost invoice.
func IsLostDeposit(id string) bool { return strings.HasPrefix(id, lostDeposit) }

// LostPayment returns the commitment of the lost invoice that a payment without an invoice was for: that of its
// deposit address, or the one that its evidence names. It is zero if neither exists.
func (q *queries) LostPayment(ctx context.Context, p invoice.Payment) (invoice.Hash, error) {
	id, err := queryRow(ctx, q, func(row scanner) (h invoice.Hash, err error) {
		err = row.Scan(hashCol(&h))
		return h, err
	}, `SELECT commitment_id FROM lost_addresses WHERE address = $1 AND chain_key = $2 AND commitment_id IS NOT NULL
		UNION SELECT commitment_id FROM lost_invoices WHERE closed = 0 AND commitment_id IN ($3, $4, $5) LIMIT 1`,
		p.To.String(), p.ChainKey, p.Evidence.Registry.String(), p.Evidence.Authorization.String(), p.Evidence.Calldata.String())
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return id, err
}

// RecoverFrom records the first block that the backup had not read of each chain, for a recovery that begins.
func (tx *Tx) RecoverFrom(ctx context.Context) error {
	for _, statement := range []string{
		"DELETE FROM recovery_chains",
		"INSERT INTO recovery_chains (chain_key, from_block) SELECT chain_key, indexed_number + 1 FROM chains",
	} {
		if _, err := tx.exec(ctx, statement); err != nil {
			return fmt.Errorf("record where the recovery begins: %w", err)
		}
	}
	return nil
}

// RecoveredFrom returns where the recovery began to read each chain.
func (q *queries) RecoveredFrom(ctx context.Context) (map[string]uint64, error) {
	from := make(map[string]uint64)
	_, err := queryAll(ctx, q, func(row scanner) (struct{}, error) {
		var key string
		var block int64
		err := row.Scan(&key, &block)
		from[key] = uint64(block)
		return struct{}{}, err
	}, "SELECT chain_key, from_block FROM recovery_chains")
	return from, err
}

// UnattributedSince returns the newest payments of a chain without an invoice in blocks from a number on.
func (q *queries) UnattributedSince(ctx context.Context, chainKey string, from uint64, limit int) ([]invoice.Payment, error) {
	rows, err := queryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+` FROM payments
		WHERE chain_key = $1 AND block_number >= $2 AND invoice_id IS NULL AND status <> 'orphaned' ORDER BY block_number DESC, log_index DESC LIMIT $3`, chainKey, int64(from), limit)
	all := make([]invoice.Payment, len(rows))
	for i, row := range rows {
		all[i] = row.Payment
	}
	return all, err
}

// RefundsByReason returns the ids of prepared refunds with a reason, the newest first.
func (q *queries) RefundsByReason(ctx context.Context, reason string, limit int) ([]string, error) {
	return queryAll(ctx, q, scanID, "SELECT id FROM refund_records WHERE reason = $1 ORDER BY list_id DESC LIMIT $2", reason, limit)
}
