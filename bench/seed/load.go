package seed

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/webhooks"
)

// Rows are what a service would have written about some invoices.
type Rows struct {
	Heads      map[string]invoice.Header  // up to which chains were read, by chain key
	Addresses  []access.SettlementAddress // each is held by its merchant
	Since      time.Time                  // since when the merchants and their addresses exist
	Invoices   []invoice.Invoice          // in their current state, with their details
	Remainders []ledger.TransferAmount
	Voided     map[string]time.Time
	Payments   []ledger.PaymentRow
	Refunds    []invoice.Refund // of Payments of the same Rows
	Events     []Event
}

// Event is an event with its number and the outcome of its delivery.
type Event struct {
	webhooks.Event
	Status   webhooks.Status // empty for an event without a delivery
	Finished time.Time       // zero while it is pending
	Tried    int             // how many attempts were made
	Attempts []webhooks.Attempt
}

// Load writes rows into an empty database, each Rows in a transaction.
func Load(ctx context.Context, s *db.DB, all iter.Seq2[Rows, error]) error {
	for rows, err := range all {
		if err == nil {
			err = s.Update(ctx, func(tx *db.Tx) error { return rows.write(ctx, tx) })
		}
		if err != nil {
			return fmt.Errorf("fill the database: %w", err)
		}
	}
	return nil
}

func (r Rows) write(ctx context.Context, tx *db.Tx) error {
	holdings := make([]access.Holding, len(r.Addresses))
	for i, a := range r.Addresses {
		holdings[i] = access.Holding{Address: a.Address, MerchantID: a.MerchantID}
	}
	refunded, changed := make(map[string]ledger.RefundedSum), make([]string, 0, 2*len(r.Refunds))
	for _, refund := range r.Refunds { // each is confirmed
		sum := refunded[refund.PaymentID].All.Plus(refund.Amount)
		refunded[refund.PaymentID] = ledger.RefundedSum{All: sum, Final: sum}
		changed = append(changed, refund.PaymentID, refund.ID)
	}
	for _, write := range []func() error{
		func() error { return access.InsertSettlementAddresses(ctx, tx, r.Addresses, r.Since) },
		func() error { _, _, err := access.GrantAddresses(ctx, tx, holdings, r.Since); return err },
		func() error { return r.writeInvoices(ctx, tx) },
		func() error { return ledger.SavePayments(ctx, tx, r.Payments) },
		func() error { return ledger.SaveRefundedSums(ctx, tx, refunded) },
		func() error { return ledger.SaveRefunds(ctx, tx, r.Refunds...) },
		func() error { return ledger.RefreshItems(ctx, tx, changed...) },
		func() error { return ledger.UpdateInvoices(ctx, tx, r.Invoices) },
		// No sum has been computed that the payments could change.
		func() error { _, err := tx.Exec(ctx, "DELETE FROM stale_rollups"); return err },
		func() error { return r.writeEvents(ctx, tx) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

func (r Rows) writeInvoices(ctx context.Context, tx *db.Tx) error {
	for key, head := range r.Heads {
		if _, err := ledger.InsertChain(ctx, tx, key, head, nil); err != nil {
			return err
		}
	}
	invoices := slices.Clone(r.Invoices)
	for i := range invoices {
		if invoices[i].Status == invoice.Paid { // it has no payments yet; UpdateInvoices makes it paid
			invoices[i].Status = invoice.Expired
		}
	}
	inserted, err := ledger.InsertInvoices(ctx, tx, invoices)
	if err != nil {
		return err
	}
	for _, inv := range r.Invoices {
		if !inserted[inv.ID] {
			return fmt.Errorf("the transfer amount of invoice %s is taken", inv.ID)
		}
	}
	if err := ledger.InsertBareRemainders(ctx, tx, r.Remainders); err != nil {
		return err
	}
	for id, at := range r.Voided {
		if err := ledger.InsertInvoiceTransition(ctx, tx, id, ledger.InvoiceTransition{Status: invoice.Void, At: at}); err != nil {
			return err
		}
	}
	return nil
}

// writeEvents writes events, their deliveries and attempts.
func (r Rows) writeEvents(ctx context.Context, tx *db.Tx) error {
	var events, pending, finished, attempts [][]any
	for _, e := range r.Events {
		events = append(events, webhooks.EventTable.Values(e.Event))
		switch e.Status {
		case "":
		case webhooks.Pending:
			pending = append(pending, []any{e.Seq, e.MerchantID, e.Tried, e.Due.UnixMilli(), e.CreatedAt.Add(webhooks.RetryWindow).UnixMilli()})
		default:
			finished = append(finished, webhooks.FinishedTable.Values(webhooks.FinishedDelivery{
				Seq: e.Seq, MerchantID: e.MerchantID, Status: e.Status, Attempts: e.Tried, Finished: e.Finished,
			}))
		}
		for _, a := range e.Attempts {
			attempts = append(attempts, webhooks.AttemptTable.Values(a, e.Seq))
		}
	}
	for _, t := range []struct {
		db.Insertion
		rows [][]any
	}{
		{webhooks.EventTable.Insertion(""), events},
		{db.Insertion{Table: "deliveries", Columns: []string{"seq BIGINT", "merchant_id", "attempts BIGINT", "due_ms BIGINT", "deadline_ms BIGINT"}}, pending},
		{webhooks.FinishedTable.Insertion(""), finished},
		{webhooks.AttemptTable.Insertion("", "seq BIGINT"), attempts},
	} {
		if err := tx.Insert(ctx, t.Insertion, t.rows); err != nil {
			return err
		}
	}
	return nil
}
