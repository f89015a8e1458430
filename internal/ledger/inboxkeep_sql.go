package ledger

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// The column item of a table is the kind of inbox item of an object. Every transaction that changes
// one of the facts that decide it sets it, under the chain's cursor.

// PaymentItem is a payment and its item in the inbox of a merchant, or of the operator if MerchantID is empty.
type PaymentItem struct {
	Payment    PaymentRow
	MerchantID string
	Kind       invoice.ItemKind // empty if it needs no decision
	Version    string
}

// judgePayments sets the kinds and versions of items, regardless of decisions about them.
func judgePayments(ctx context.Context, q db.Querier, items []PaymentItem) error {
	ids := db.Each(items, func(item PaymentItem) string { return item.Payment.ID })
	distinct := slices.Compact(slices.Sorted(slices.Values(ids)))
	refunded, err := RefundedSums(ctx, q, distinct)
	if err != nil {
		return err
	}
	claimed, err := whichClaimed(ctx, q, distinct)
	if err != nil {
		return err
	}
	for i, item := range items {
		var claims []ClaimRow
		if slices.Contains(claimed, item.Payment.ID) {
			if claims, err = claimsOf(ctx, q, item.Payment.ID, item.MerchantID, maxItemClaims); err != nil {
				return err
			}
		}
		items[i].Kind, items[i].Version = invoice.ItemOfPayment(item.Payment.Payment, refunded[item.Payment.ID].All, len(claims))
	}
	return nil
}

// RefreshItems sets the items of payments, invoices and refunds, and the uses of the payments and of
// the refunded payments. The cursors of their chains must be locked.
func RefreshItems(ctx context.Context, tx *db.Tx, objectIDs ...string) error {
	for _, of := range []struct {
		prefix  string
		refresh func(context.Context, *db.Tx, []string) error
	}{
		{invoice.PrefixPayment, refreshPayments}, {invoice.PrefixInvoice, refreshInvoices}, {invoice.PrefixRefund, refreshRefunds},
	} {
		var ids []string
		for _, id := range slices.Compact(slices.Sorted(slices.Values(objectIDs))) {
			if strings.HasPrefix(id, of.prefix) {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			continue
		}
		if err := of.refresh(ctx, tx, ids); err != nil {
			return err
		}
	}
	return nil
}

func refreshPayments(ctx context.Context, tx *db.Tx, ids []string) error {
	payments, err := PaymentsByID(ctx, tx, ids)
	if err != nil {
		return err
	}
	merchants, err := MerchantsOfUnattributed(ctx, tx, ids)
	if err != nil {
		return err
	}
	var items []PaymentItem
	for _, p := range payments {
		for _, merchant := range append(merchants[p.ID], "") {
			items = append(items, PaymentItem{Payment: p, MerchantID: merchant})
		}
	}
	if err := judgePayments(ctx, tx, items); err != nil {
		return err
	}
	decisions, err := DecisionsInForce(ctx, tx, ids)
	if err != nil {
		return err
	}
	var all, ofMerchants [][]any
	for _, item := range items {
		if slices.ContainsFunc(decisions, item.isDecidedBy) || item.MerchantID != "" && item.Kind == invoice.ItemQuarantined {
			item.Kind = ""
		}
		if item.MerchantID == "" {
			all = append(all, []any{item.Payment.ID, db.OrNull(string(item.Kind))})
		} else {
			ofMerchants = append(ofMerchants, []any{item.Payment.SeenID, item.MerchantID, db.OrNull(string(item.Kind))})
		}
	}
	err = tx.SendFrom(ctx, []string{"payment", "kind"}, all,
		"UPDATE payments SET item = kind FROM wanted WHERE payments.id = payment AND payments.item IS DISTINCT FROM kind")
	if err != nil {
		return err
	}
	err = tx.SendFrom(ctx, []string{"seen", "merchant", "kind"}, ofMerchants,
		"UPDATE unattributed SET item = kind FROM wanted WHERE unattributed.seen_id = seen AND unattributed.merchant_id = merchant AND unattributed.item IS DISTINCT FROM kind")
	if err != nil {
		return err
	}
	return refreshUses(ctx, tx, ids...)
}

// isDecidedBy reports whether a decision is about the item in its current version. A decision of any
// merchant counts for the operator, and a decision of the operator for all.
func (i PaymentItem) isDecidedBy(d invoice.Decision) bool {
	return d.ObjectID == i.Payment.ID && d.Kind == i.Kind && d.Version == i.Version &&
		(i.MerchantID == "" || d.MerchantID == "" || d.MerchantID == i.MerchantID)
}

const (
	// undecided is the wanted item of an invoice or a refund unless a decision about its version is in force.
	undecided = "CASE WHEN NOT EXISTS (SELECT 1 FROM inbox_decisions AS d WHERE d.object_id = wanted.id AND d.kind = wanted.kind" +
		" AND d.version = wanted.version AND d.undone_at IS NULL) THEN wanted.kind END"
	// undecidedInvoice is undecided for the column of invoices, which is never null.
	undecidedInvoice = "coalesce(" + undecided + ", '')"
)

// setItems sets the items of rows of a table; rows hold the id, the kind and the version. It writes
// only rows with an item that changes.
func setItems(ctx context.Context, tx *db.Tx, table, item string, rows [][]any) error {
	return tx.SendFrom(ctx, []string{"id", "kind", "version"}, rows,
		"UPDATE "+table+" SET item = "+item+" FROM wanted WHERE "+table+".id = wanted.id AND "+table+".item IS DISTINCT FROM "+item)
}

// itemValues returns the kind and version of an invoice's item, regardless of decisions.
func itemValues(inv invoice.Invoice) []any {
	kind, version := invoice.ItemOf(inv)
	return []any{db.OrNull(string(kind)), db.OrNull(version)}
}

func refreshInvoices(ctx context.Context, tx *db.Tx, ids []string) error {
	invoices, err := InvoicesWithoutLines(ctx, tx, ids)
	if err != nil {
		return err
	}
	rows := db.Each(invoices, func(inv invoice.Invoice) []any { return append([]any{inv.ID}, itemValues(inv)...) })
	return setItems(ctx, tx, "invoices", undecidedInvoice, rows)
}

func refreshRefunds(ctx context.Context, tx *db.Tx, ids []string) error {
	refunds, err := db.AllIn(ctx, tx, scanRecord, selectRecords+"WHERE refund_records.id IN ", ids)
	if err != nil {
		return err
	}
	rows := make([][]any, len(refunds))
	payments := make([]string, len(refunds))
	for i, r := range refunds {
		kind, version := invoice.ItemOfRefund(r, time.Time{}) // while it has not expired
		rows[i], payments[i] = []any{r.ID, db.OrNull(string(kind)), db.OrNull(version)}, r.PaymentID
	}
	if err := setItems(ctx, tx, "refund_records", undecided, rows); err != nil {
		return err
	}
	return refreshUses(ctx, tx, payments...)
}

// refreshRefundsOf sets the items of the refunds of payments that a reorg dropped or that are
// mined again. The cursors of their chains must be locked.
func refreshRefundsOf(ctx context.Context, tx *db.Tx, paymentIDs []string) error {
	ids, err := RecordsOfPayments(ctx, tx, paymentIDs)
	if err != nil || len(ids) == 0 {
		return err
	}
	return refreshRefunds(ctx, tx, ids)
}

// RecordsOfPayments returns the ids of the records of refunds of payments, in no order.
func RecordsOfPayments(ctx context.Context, q db.Querier, paymentIDs []string) ([]string, error) {
	return db.AllIn(ctx, q, db.ScanID, "SELECT id FROM refund_records WHERE payment_id IN ", paymentIDs)
}
