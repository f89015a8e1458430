package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// The column item of a table is the kind of the item that an object is. Every transaction that
// changes what an item depends on sets it, under the chain's cursor.

// PaymentItem is a payment in the inbox of a merchant, or of the operator if MerchantID is
// empty, and the item that it is there.
type PaymentItem struct {
	Payment    PaymentRow
	MerchantID string
	Kind       invoice.ItemKind // empty if it needs no decision
	Version    string
}

// JudgePayments sets the kinds and versions of items, whatever was decided about them.
func (q *queries) JudgePayments(ctx context.Context, items []PaymentItem) error {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.Payment.ID
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(ids)))
	refunded, err := q.amountsSentBack(ctx, distinct)
	if err != nil {
		return err
	}
	claimed, err := q.whichClaimed(ctx, distinct)
	if err != nil {
		return err
	}
	for i, item := range items {
		var claims []Claim
		if slices.Contains(claimed, item.Payment.ID) {
			if claims, err = q.claimsOf(ctx, item.Payment.ID, item.MerchantID, maxItemClaims); err != nil {
				return err
			}
		}
		items[i].Kind, items[i].Version = invoice.ItemOfPayment(item.Payment.Payment, refunded[item.Payment.ID], len(claims))
	}
	return nil
}

// RefreshItems sets the items of payments, invoices and refunds, and the uses of the payments and of
// those that are refunded. The cursors of their chains must be locked.
func (tx *Tx) RefreshItems(ctx context.Context, objectIDs ...string) error {
	for _, of := range []struct {
		prefix  string
		refresh func(context.Context, []string) error
	}{
		{invoice.PrefixPayment, tx.refreshPayments}, {invoice.PrefixInvoice, tx.refreshInvoices}, {invoice.PrefixRefund, tx.refreshRefunds},
	} {
		var ids []string
		for _, id := range objectIDs {
			if strings.HasPrefix(id, of.prefix) {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			continue
		}
		if err := of.refresh(ctx, ids); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) refreshPayments(ctx context.Context, ids []string) error {
	payments, err := tx.PaymentsByID(ctx, ids)
	if err != nil {
		return err
	}
	merchants, err := tx.MerchantsOfUnattributed(ctx, ids)
	if err != nil {
		return err
	}
	var items []PaymentItem
	for _, p := range payments {
		for _, merchant := range append(merchants[p.ID], "") {
			items = append(items, PaymentItem{Payment: p, MerchantID: merchant})
		}
	}
	if err := tx.JudgePayments(ctx, items); err != nil {
		return err
	}
	decisions, err := tx.DecisionsInForce(ctx, ids)
	if err != nil {
		return err
	}
	var all, ofMerchants [][]any
	for _, item := range items {
		if slices.ContainsFunc(decisions, item.isDecidedBy) {
			item.Kind = ""
		}
		if item.MerchantID == "" {
			all = append(all, []any{item.Payment.ID, orNull(string(item.Kind))})
		} else {
			ofMerchants = append(ofMerchants, []any{item.Payment.SeenID, item.MerchantID, orNull(string(item.Kind))})
		}
	}
	err = tx.sendFrom(ctx, []string{"payment", "kind"}, all,
		"UPDATE payments SET item = kind FROM wanted WHERE payments.id = payment AND payments.item IS DISTINCT FROM kind")
	if err != nil {
		return err
	}
	err = tx.sendFrom(ctx, []string{"seen", "merchant", "kind"}, ofMerchants,
		"UPDATE unattributed SET item = kind FROM wanted WHERE unattributed.seen_id = seen AND unattributed.merchant_id = merchant AND unattributed.item IS DISTINCT FROM kind")
	if err != nil {
		return err
	}
	return tx.RefreshUses(ctx, ids...)
}

// isDecidedBy reports whether a decision is about the item as it is now. One of any merchant
// counts for the operator, and one of the operator alone for all.
func (i PaymentItem) isDecidedBy(d invoice.Decision) bool {
	return d.ObjectID == i.Payment.ID && d.Kind == i.Kind && d.Version == i.Version &&
		(i.MerchantID == "" || d.MerchantID == "" || d.MerchantID == i.MerchantID)
}

// undecided is the item of an invoice or a refund unless a decision about its version is in
// force. Its parameters are SQL.
func undecided(object, kind, version string) string {
	return "CASE WHEN NOT EXISTS (SELECT 1 FROM inbox_decisions AS d WHERE d.object_id = " + object + " AND d.kind = " + kind +
		" AND d.version = " + version + " AND d.undone_at IS NULL) THEN " + kind + " END"
}

// setItems sets the items of rows of a table, of which rows hold the id, the kind and the version. It writes
// only rows whose item changes.
func (tx *Tx) setItems(ctx context.Context, table string, rows [][]any) error {
	item := undecided("wanted.id", "wanted.kind", "wanted.version")
	return tx.sendFrom(ctx, []string{"id", "kind", "version"}, rows,
		"UPDATE "+table+" SET item = "+item+" FROM wanted WHERE "+table+".id = wanted.id AND "+table+".item IS DISTINCT FROM "+item)
}

// itemValues returns the item that an invoice is, and its version, whatever was decided.
func itemValues(inv invoice.Invoice) []any {
	kind, version := invoice.ItemOf(inv)
	return []any{orNull(string(kind)), orNull(version)}
}

func (tx *Tx) refreshInvoices(ctx context.Context, ids []string) error {
	invoices, err := tx.InvoicesWithoutLines(ctx, ids)
	if err != nil {
		return err
	}
	rows := make([][]any, len(invoices))
	for i, inv := range invoices {
		rows[i] = append([]any{inv.ID}, itemValues(inv)...)
	}
	return tx.setItems(ctx, "invoices", rows)
}

func (tx *Tx) refreshRefunds(ctx context.Context, ids []string) error {
	refunds, err := tx.RefundRecordsByID(ctx, ids)
	if err != nil {
		return err
	}
	rows := make([][]any, len(refunds))
	payments := make([]string, len(refunds))
	for i, r := range refunds {
		kind, version := invoice.ItemOfRefund(r, time.Time{}) // while it has not expired
		rows[i], payments[i] = []any{r.ID, orNull(string(kind)), orNull(version)}, r.PaymentID
	}
	if err := tx.setItems(ctx, "refund_records", rows); err != nil {
		return err
	}
	return tx.RefreshUses(ctx, payments...)
}

// RefreshRefundsOf sets the items of the refunds of payments that a reorg dropped or that are
// mined again. The cursors of their chains must be locked.
func (tx *Tx) RefreshRefundsOf(ctx context.Context, paymentIDs []string) error {
	ids, err := tx.RecordsOfPayments(ctx, paymentIDs)
	if err != nil || len(ids) == 0 {
		return err
	}
	return tx.refreshRefunds(ctx, ids)
}

// RecordsOfPayments returns the ids of the records of refunds of payments, in no order.
func (q *queries) RecordsOfPayments(ctx context.Context, paymentIDs []string) ([]string, error) {
	return queryIn(paymentIDs, func(chunk []any) ([]string, error) {
		return queryAll(ctx, q, scanID, "SELECT id FROM refund_records WHERE payment_id IN "+parameterList(0, len(chunk)), chunk...)
	})
}
