package ledger

import (
	"context"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// InboxItem is a payment, an invoice or a refund that needs a decision.
type InboxItem struct {
	Kind    invoice.ItemKind // empty if it needs no decision
	Version string           // changes with the facts that the decision depends on
	// Position orders the items by when their objects were created.
	Position string
	Payment  PaymentRow           // of an unattributed or claimed one
	Invoice  invoice.Invoice      // of an exception
	Refund   invoice.RefundRecord // to be approved, or without a payment
}

// ObjectID returns the id of the item's object.
func (i InboxItem) ObjectID() string { return i.Payment.ID + i.Invoice.ID + i.Refund.ID }

// InboxCount is how many items of a kind there are.
type InboxCount struct {
	Kind  invoice.ItemKind
	Count int
	More  bool // there are more
}

// MaxInboxCount bounds the items of a kind that InboxCounts counts.
const MaxInboxCount = 100

// Inbox lists the items that need a decision, newest first. next is the position after which the list
// continues, or "" at the end.
func (s *Service) Inbox(ctx context.Context, f InboxFilter) (found []InboxItem, next string, err error) {
	if f.ObjectID != "" {
		found, err = s.itemOf(ctx, f)
		return found, "", err
	}
	limit := f.Limit
	f.Limit++
	entries, err := InboxEntries(ctx, s.conf.Store, f, s.conf.Confirmed())
	if err != nil {
		return nil, "", err
	}
	if len(entries) > limit {
		entries, next = entries[:limit], entries[limit-1].Position
	}
	items, err := s.readItems(ctx, entries, f.MerchantID)
	for _, e := range entries {
		// An item that changed since the entries were read needs no decision, or a different one.
		if item, ok := items[e.Position]; ok && item.Kind == e.Kind {
			found = append(found, item)
		}
	}
	return found, next, err
}

// itemOf returns the item about a payment or an invoice, or none.
func (s *Service) itemOf(ctx context.Context, f InboxFilter) (items []InboxItem, err error) {
	invoices, err := InvoicesByID(ctx, s.conf.Store, []string{f.ObjectID})
	if err != nil {
		return nil, err
	}
	for _, inv := range invoices {
		if f.MerchantID == "" || inv.MerchantID == f.MerchantID {
			items = append(items, invoiceItem(inv))
		}
	}
	payments, err := PaymentsByID(ctx, s.conf.Store, []string{f.ObjectID})
	if err != nil {
		return nil, err
	}
	for _, p := range payments {
		if seen, err := sees(ctx, s.conf.Store, f.MerchantID, p); err != nil || !seen {
			return nil, err
		}
		if items, err = paymentItems(ctx, s.conf.Store, payments, f.MerchantID); err != nil {
			return nil, err
		}
	}
	decisions, err := DecisionsInForce(ctx, s.conf.Store, []string{f.ObjectID})
	return slices.DeleteFunc(items, func(i InboxItem) bool {
		return i.Kind == "" || f.MerchantID != "" && i.Kind == invoice.ItemQuarantined || slices.ContainsFunc(decisions, i.decidedBy)
	}), err
}

// InboxCounts counts the items of each kind, up to MaxInboxCount.
func (s *Service) InboxCounts(ctx context.Context, merchantID string) ([]InboxCount, error) {
	found, err := CountInbox(ctx, s.conf.Store, merchantID, s.conf.Confirmed(), MaxInboxCount+1)
	if err != nil {
		return nil, err
	}
	counts := make([]InboxCount, len(found))
	for i, n := range found {
		counts[i] = InboxCount{invoice.ItemKinds[i], min(n, MaxInboxCount), n > MaxInboxCount}
	}
	return counts, nil
}

// readItems reads the items of entries, by position.
func (s *Service) readItems(ctx context.Context, entries []InboxEntry, merchantID string) (map[string]InboxItem, error) {
	var seen, invoiceIDs, refundIDs []string
	for _, e := range entries {
		switch {
		case e.Kind == invoice.ItemApproval, e.Kind == invoice.ItemWithoutPayment:
			refundIDs = append(refundIDs, e.Key)
		case e.Kind.OfPayment():
			seen = append(seen, e.Key)
		default:
			invoiceIDs = append(invoiceIDs, e.Key)
		}
	}
	payments, err := PaymentsSeen(ctx, s.conf.Store, seen)
	if err != nil {
		return nil, err
	}
	found, err := paymentItems(ctx, s.conf.Store, payments, merchantID)
	if err != nil {
		return nil, err
	}
	invoices, err := InvoicesByID(ctx, s.conf.Store, invoiceIDs)
	if err != nil {
		return nil, err
	}
	for _, inv := range invoices {
		found = append(found, invoiceItem(inv))
	}
	refunds, err := RefundRecordsByID(ctx, s.conf.Store, refundIDs)
	for _, r := range refunds {
		found = append(found, s.refundItem(r))
	}
	items := make(map[string]InboxItem, len(found))
	for _, item := range found {
		items[item.Position] = item
	}
	return items, err
}

// IsWaived reports whether a person waived the rest of an invoice's amount. It is false while the invoice can be paid.
func (q Reader) IsWaived(ctx context.Context, inv invoice.Invoice) (bool, error) {
	if inv.Status != invoice.Expired && inv.Status != invoice.Void || inv.Exception == "" {
		return false, nil
	}
	decisions, err := DecisionsInForce(ctx, q, []string{inv.ID})
	return slices.ContainsFunc(decisions, func(d invoice.Decision) bool { return d.Outcome == invoice.Accepted }), err
}

// decidedBy reports whether a decision is about the item's current version.
func (i InboxItem) decidedBy(d invoice.Decision) bool {
	return d.ObjectID == i.ObjectID() && d.Kind == i.Kind && d.Version == i.Version
}

// paymentItems returns the items of payments in the inbox of a merchant, or of the operator if merchantID is empty.
func paymentItems(ctx context.Context, r db.Querier, rows []PaymentRow, merchantID string) ([]InboxItem, error) {
	judged := db.Each(rows, func(p PaymentRow) PaymentItem { return PaymentItem{Payment: p, MerchantID: merchantID} })
	err := judgePayments(ctx, r, judged)
	items := make([]InboxItem, len(rows))
	for i, j := range judged {
		items[i] = InboxItem{Kind: j.Kind, Version: j.Version, Position: j.Payment.SeenID, Payment: j.Payment}
	}
	return items, err
}

func invoiceItem(inv invoice.Invoice) InboxItem {
	item := InboxItem{Position: strings.TrimPrefix(inv.ID, invoice.PrefixInvoice), Invoice: inv}
	item.Kind, item.Version = invoice.ItemOf(inv)
	return item
}

func (s *Service) refundItem(r invoice.RefundRecord) InboxItem {
	item := InboxItem{Position: RefundListID(r.CreatedAt, r.ID), Refund: r}
	item.Kind, item.Version = invoice.ItemOfRefund(r, s.conf.Confirmed())
	return item
}
