package settle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/wire"
)

// Observe stores what blocks on top of the newest one read hold: pending
// payments, attributed where a rule says to whom, their payment.received
// events, pending refunds, and what the registry announced. The cursor moves
// with it, in the same transaction.
//
// Blocks come in ascending order. The first must be the child of the newest
// block read, and one that follows the block before it must be its child;
// otherwise the error is ErrCursorMoved. After the first, and below the
// finality line, blocks without anything of interest may be left out.
func (s *Service) Observe(ctx context.Context, chainKey string, blocks []Block) error {
	if len(blocks) == 0 {
		return nil
	}
	return s.update(ctx, func(tx *store.Tx, c *changes) error {
		cur, err := s.lock(ctx, tx, chainKey)
		if err != nil {
			return err
		}
		headers := make([]Header, len(blocks))
		last := cur.Indexed
		for i, b := range blocks {
			if !follows(b.Header, last) || (i == 0 && b.Number != last.Number+1) {
				return ErrCursorMoved
			}
			headers[i], last = b.Header, b.Header
		}
		if err := tx.InsertHeaders(ctx, chainKey, headers); err != nil {
			return err
		}
		o := observer{Service: s, tx: tx, changes: c}
		for _, b := range blocks {
			if err := o.block(ctx, chainKey, b); err != nil {
				return fmt.Errorf("block %d of %s: %w", b.Number, chainKey, err)
			}
		}
		cur.Indexed = last
		return tx.SaveCursor(ctx, chainKey, cur)
	})
}

// follows reports whether a block can stand above another: as its child, or
// higher up with blocks between them that were left out.
func follows(b, below Header) bool {
	if b.Number == below.Number+1 {
		return b.Parent == below.Hash
	}
	return b.Number > below.Number && b.Time >= below.Time
}

// lock takes the chain's cursor for the length of the transaction.
func (s *Service) lock(ctx context.Context, tx *store.Tx, chainKey string) (store.Cursor, error) {
	cur, err := tx.LockCursor(ctx, chainKey)
	if err == nil && cur.Halted != "" {
		err = fmt.Errorf("%w: %s", ErrHalted, cur.Halted)
	}
	return cur, err
}

// observer stores the contents of blocks in one transaction.
type observer struct {
	*Service
	tx      *store.Tx
	changes *changes
}

func (o observer) block(ctx context.Context, chainKey string, b Block) error {
	var ends []invoice.Address
	for _, t := range b.Transfers {
		ends = append(ends, t.From, t.To)
	}
	ours, err := o.tx.SettlementAddresses(ctx, chainKey, ends)
	if err != nil {
		return err
	}
	for _, t := range b.Transfers {
		if t.Amount.IsZero() {
			continue // anyone may send nothing from anywhere to anywhere
		}
		if ours[t.To] {
			if err := o.payment(ctx, t); err != nil {
				return err
			}
		}
		if ours[t.From] {
			if err := o.refund(ctx, t); err != nil {
				return err
			}
		}
	}
	return o.registry(ctx, chainKey, b)
}

// payment stores a transfer to a settlement address. One that was seen before,
// in a block that a reorg left, is the same payment; it keeps its invoice as
// long as it moves the same money.
func (o observer) payment(ctx context.Context, t invoice.Transfer) error {
	id := invoice.TransferID(invoice.PrefixPayment, t.ChainKey, t.TxHash, t.Ordinal)
	row, err := o.tx.Payment(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		row = store.PaymentRow{SeenID: o.ids.New("")}
		row.ID, row.ObservedAt = id, o.Now().Unix()
	case err != nil:
		return err
	case row.Status == invoice.Confirmed:
		return nil // final: reading the chain again changes nothing
	}
	keep := row.Attributed() && row.SameMovement(t)
	row.Transfer, row.Status = t, invoice.Pending
	if !keep {
		if err := o.attribute(ctx, &row.Payment); err != nil {
			return err
		}
	}
	if err := o.tx.SavePayment(ctx, row); err != nil {
		return err
	}
	return o.tx.LinkNotices(ctx, row.Payment)
}

// attribute finds the payment's invoice and announces the payment to its
// merchant.
func (o observer) attribute(ctx context.Context, p *invoice.Payment) error {
	p.InvoiceID, p.MerchantID, p.Method = "", "", ""
	found, err := o.tx.CandidateInvoices(ctx, p.Transfer)
	if err != nil {
		return err
	}
	payments, err := o.paymentsOf(ctx, found.Invoices)
	if err != nil {
		return err
	}
	candidates := make([]invoice.Candidate, len(found.Invoices))
	for i, inv := range found.Invoices {
		// In a crowd nobody is ruled out: there are others that were not seen.
		candidates[i] = invoice.Candidate{Invoice: inv, Covered: !found.Crowded && inv.Covered(payments[inv.ID])}
	}
	a, ok := invoice.Attribute(p.Transfer, candidates)
	if !ok {
		return nil
	}
	p.InvoiceID, p.MerchantID, p.Method = a.Invoice.ID, a.Invoice.MerchantID, a.Method
	return o.announce(o.changes, invoice.EventReceived, p.ID+"/"+a.Invoice.ID, a.Invoice, wire.ReceivedData(*p))
}

// paymentsOf returns the payments of invoices, by the invoice's id.
func (o observer) paymentsOf(ctx context.Context, invoices []invoice.Invoice) (map[string][]invoice.Payment, error) {
	ids := make([]string, len(invoices))
	for i, inv := range invoices {
		ids[i] = inv.ID
	}
	rows, err := o.tx.PaymentsOfInvoices(ctx, ids)
	byInvoice := make(map[string][]invoice.Payment, len(ids))
	for _, row := range rows {
		byInvoice[row.InvoiceID] = append(byInvoice[row.InvoiceID], row.Payment)
	}
	return byInvoice, err
}

// registry notes which intents the registry has carried out. Paid and Closed
// end an intent to open as well: the commitment is past being opened.
func (o observer) registry(ctx context.Context, chainKey string, b Block) error {
	for _, e := range b.Registry {
		kinds := []invoice.IntentKind{invoice.IntentOpen, invoice.IntentClose}
		if e.Kind == RegistryOpened {
			kinds = kinds[:1]
		}
		for _, kind := range kinds {
			if err := o.tx.SeeIntent(ctx, chainKey, e.CommitmentID, kind, b.Number); err != nil {
				return err
			}
		}
	}
	return nil
}

// refund stores a transfer out of a settlement address, if it pays back a
// payment. Other transfers out of it are the merchant's own business.
func (o observer) refund(ctx context.Context, t invoice.Transfer) error {
	r := invoice.Refund{ID: invoice.TransferID(invoice.PrefixRefund, t.ChainKey, t.TxHash, t.Ordinal)}
	stored, err := o.tx.Refund(ctx, r.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		r.ObservedAt = o.Now().Unix()
	case err != nil:
		return err
	case stored.Status == invoice.Confirmed:
		return nil
	default:
		r = stored
	}
	p, ok, err := o.refunded(ctx, t, r.ID)
	if err != nil {
		return err
	}
	if !ok {
		return nil // one stored before stays orphaned
	}
	r.Transfer, r.Status = t, invoice.Pending
	r.PaymentID, r.InvoiceID, r.MerchantID = p.ID, p.InvoiceID, p.MerchantID
	return o.tx.SaveRefund(ctx, r)
}

// refunded finds the payment that a transfer pays back: among the newest from
// the one account to the other, and those of the invoice that the transfer's
// calldata names.
func (o observer) refunded(ctx context.Context, t invoice.Transfer, refundID string) (invoice.Payment, bool, error) {
	rows, err := o.tx.PaymentsBetween(ctx, t.ChainKey, t.To, t.From)
	if err != nil || len(rows) == 0 {
		return invoice.Payment{}, false, err
	}
	tagged, err := o.taggedPayments(ctx, t)
	if err != nil {
		return invoice.Payment{}, false, err
	}
	byID := make(map[string]invoice.Payment)
	named := make(map[string]bool)
	for _, row := range rows {
		byID[row.ID] = row.Payment
	}
	for _, row := range tagged {
		byID[row.ID], named[row.ID] = row.Payment, true
	}
	refunds, err := o.tx.RefundsOfPayments(ctx, slices.Collect(maps.Keys(byID)))
	if err != nil {
		return invoice.Payment{}, false, err
	}
	back := make(map[string]invoice.Amount)
	for _, r := range refunds {
		if r.ID != refundID && r.Status != invoice.Orphaned {
			back[r.PaymentID] = back[r.PaymentID].Plus(r.Amount)
		}
	}
	p, ok := invoice.AttributeRefund(t, slices.Collect(maps.Values(byID)),
		func(p invoice.Payment) invoice.Amount { return p.Amount.Minus(back[p.ID]) },
		func(p invoice.Payment) bool { return named[p.ID] })
	return p, ok, nil
}

// taggedPayments returns the payments of the invoice that the transfer's
// calldata names.
func (o observer) taggedPayments(ctx context.Context, t invoice.Transfer) ([]store.PaymentRow, error) {
	if t.Evidence.Calldata.IsZero() {
		return nil, nil
	}
	inv, err := o.tx.InvoiceByCommitment(ctx, t.Evidence.Calldata)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return o.tx.PaymentsOfInvoices(ctx, []string{inv.ID})
}
