package settle

import (
	"context"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// InboxItem is a payment, an invoice or a refund that needs a decision.
type InboxItem struct {
	Kind    invoice.ItemKind // empty if it needs none
	Version string           // changes with what the decision depends on
	// Position orders the items by when their objects were created.
	Position string
	Payment  store.PaymentRow     // of an unattributed or claimed one
	Invoice  invoice.Invoice      // of an exception
	Refund   invoice.RefundRecord // of an approval
}

// ObjectID returns the id of what the item is about.
func (i InboxItem) ObjectID() string { return i.Payment.ID + i.Invoice.ID + i.Refund.ID }

// InboxFilter selects items. Empty fields match all.
type InboxFilter struct {
	MerchantID string
	Kind       invoice.ItemKind
	Before     string // a position
	Limit      int
}

// InboxCount is how many items of a kind there are.
type InboxCount struct {
	Kind  invoice.ItemKind
	Count int
	More  bool // there may be more
}

const (
	// MaxInboxCount bounds what InboxCounts counts of a kind.
	MaxInboxCount = 100
	// MaxInboxExamined bounds the objects of a kind that are examined for a page, and for a count.
	MaxInboxExamined = 1000
	// inboxBatch is how many of them are examined at a time.
	inboxBatch = 250
	// maxItemClaims bounds the claims that the version of a payment's item counts.
	maxItemClaims = 10
)

// inboxReader reads up to limit objects with positions below one, newest first, and returns where it
// goes on, or "" at the end.
type inboxReader func(ctx context.Context, before string, limit int) (items []InboxItem, next string, err error)

// inboxSource is where items of some kinds come from.
type inboxSource struct {
	kinds []invoice.ItemKind
	read  inboxReader
}

func (s inboxSource) has(kind invoice.ItemKind) bool { return slices.Contains(s.kinds, kind) }

// Inbox lists what needs a decision, newest first. If it examined many objects without finding
// enough items, next is where the list goes on; it is empty at the end.
func (s *Service) Inbox(ctx context.Context, f InboxFilter) (found []InboxItem, next string, err error) {
	for _, source := range s.inboxSources(f.MerchantID, f.Kind) {
		items, stopped, err := s.collect(ctx, source, f, f.Limit)
		if err != nil {
			return nil, "", err
		}
		found, next = append(found, items...), max(next, stopped)
	}
	slices.SortFunc(found, func(a, b InboxItem) int { return strings.Compare(b.Position, a.Position) })
	if next != "" { // what is below may be incomplete
		found = slices.DeleteFunc(found, func(i InboxItem) bool { return i.Position < next })
	}
	if len(found) > f.Limit {
		found = found[:f.Limit]
		next = found[f.Limit-1].Position
	}
	return found, next, nil
}

// InboxCounts counts the items of each kind, up to MaxInboxCount.
func (s *Service) InboxCounts(ctx context.Context, merchantID string) ([]InboxCount, error) {
	counts := make([]InboxCount, len(invoice.ItemKinds))
	for i, kind := range invoice.ItemKinds {
		counts[i].Kind = kind
	}
	for _, source := range s.inboxSources(merchantID, "") {
		items, stopped, err := s.collect(ctx, source, InboxFilter{MerchantID: merchantID}, MaxInboxCount)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			counts[slices.Index(invoice.ItemKinds, item.Kind)].Count++
		}
		for i := range counts {
			if stopped != "" && source.has(counts[i].Kind) {
				counts[i].More = true
			}
		}
	}
	return counts, nil
}

// collect reads up to limit items of a source that nothing was decided about. If it stopped
// before the end, it also returns the position behind which the source goes on.
func (s *Service) collect(ctx context.Context, source inboxSource, f InboxFilter, limit int) (found []InboxItem, stopped string, err error) {
	before, batch := f.Before, min(limit+1, inboxBatch)
	for examined := 0; ; batch = inboxBatch {
		items, next, err := source.read(ctx, before, batch)
		if err != nil {
			return nil, "", err
		}
		items = slices.DeleteFunc(items, func(i InboxItem) bool { return i.Kind == "" || f.Kind != "" && i.Kind != f.Kind })
		if items, err = s.undecidedItems(ctx, items, f.MerchantID); err != nil {
			return nil, "", err
		}
		if found = append(found, items...); len(found) > limit {
			return found[:limit], found[limit-1].Position, nil
		}
		if examined += batch; next == "" || examined >= MaxInboxExamined {
			return found, next, nil
		}
		before = next
	}
}

// undecidedItems returns the items without a decision in force.
func (s *Service) undecidedItems(ctx context.Context, items []InboxItem, merchantID string) ([]InboxItem, error) {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.ObjectID()
	}
	decisions, err := s.store.DecisionsInForce(ctx, ids, merchantID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(items, func(i InboxItem) bool {
		return slices.ContainsFunc(decisions, func(d invoice.Decision) bool { return i.decidedBy(d) })
	}), nil
}

// decidedBy reports whether a decision is about the item as it is now.
func (i InboxItem) decidedBy(d invoice.Decision) bool {
	return d.ObjectID == i.ObjectID() && d.Kind == i.Kind && d.Version == i.Version
}

// inboxSources returns the sources with the items of a kind, or of all.
func (s *Service) inboxSources(merchantID string, kind invoice.ItemKind) []inboxSource {
	sources := []inboxSource{
		{[]invoice.ItemKind{invoice.ItemUnattributed, invoice.ItemClaimed}, s.paymentItems(merchantID)},
		{[]invoice.ItemKind{invoice.ItemApproval}, s.refundItems(merchantID)},
	}
	for _, e := range invoice.Exceptions {
		sources = append(sources, inboxSource{[]invoice.ItemKind{invoice.ItemKind(e)}, s.invoiceItems(merchantID, e)})
	}
	return slices.DeleteFunc(sources, func(s inboxSource) bool { return kind != "" && !s.has(kind) })
}

// paymentItems reads the payments without an invoice.
func (s *Service) paymentItems(merchantID string) inboxReader {
	return func(ctx context.Context, before string, limit int) (items []InboxItem, next string, err error) {
		rows, _, err := s.store.Payments(ctx, store.PaymentFilter{
			MerchantID: merchantID, IncludePending: true, IncludeUnattributed: true, UnattributedOnly: true,
			Before: store.PaymentPosition{SeenID: before}, Limit: limit,
		})
		if err != nil {
			return nil, "", err
		}
		items, err = paymentItems(ctx, s.store, rows, merchantID)
		if len(rows) == limit {
			next = rows[len(rows)-1].SeenID
		}
		return items, next, err
	}
}

// itemReader reads what the items of payments depend on. *store.Store and *store.Tx implement
// it.
type itemReader interface {
	AmountsRefunded(ctx context.Context, paymentIDs []string) (map[string]invoice.Amount, error)
	ClaimsOfPayments(ctx context.Context, paymentIDs []string, merchantID string, limit int) (map[string][]store.Claim, error)
}

// paymentItems returns the items that payments are.
func paymentItems(ctx context.Context, r itemReader, rows []store.PaymentRow, merchantID string) ([]InboxItem, error) {
	ids := make([]string, len(rows))
	for i, p := range rows {
		ids[i] = p.ID
	}
	refunded, err := r.AmountsRefunded(ctx, ids)
	if err != nil {
		return nil, err
	}
	claims, err := r.ClaimsOfPayments(ctx, ids, merchantID, maxItemClaims)
	if err != nil {
		return nil, err
	}
	items := make([]InboxItem, len(rows))
	for i, p := range rows {
		items[i] = InboxItem{Position: p.SeenID, Payment: p}
		items[i].Kind, items[i].Version = invoice.ItemOfPayment(p.Payment, refunded[p.ID], len(claims[p.ID]))
	}
	return items, nil
}

// invoiceItems reads the invoices with an exception.
func (s *Service) invoiceItems(merchantID string, e invoice.Exception) inboxReader {
	return func(ctx context.Context, before string, limit int) (items []InboxItem, next string, err error) {
		if before != "" {
			before = invoice.PrefixInvoice + before
		}
		found, _, err := s.store.Invoices(ctx, store.InvoiceFilter{MerchantID: merchantID, Exception: e, Before: before, Limit: limit})
		if err != nil {
			return nil, "", err
		}
		for _, inv := range found {
			items = append(items, invoiceItem(inv))
		}
		if len(found) == limit {
			next = items[len(items)-1].Position
		}
		return items, next, nil
	}
}

func invoiceItem(inv invoice.Invoice) InboxItem {
	item := InboxItem{Position: strings.TrimPrefix(inv.ID, invoice.PrefixInvoice), Invoice: inv}
	item.Kind, item.Version = invoice.ItemOf(inv)
	return item
}

// refundItems reads the refunds that await an approval.
func (s *Service) refundItems(merchantID string) inboxReader {
	return func(ctx context.Context, before string, limit int) (items []InboxItem, next string, err error) {
		found, err := s.store.RefundRecords(ctx, store.RefundFilter{MerchantID: merchantID, Status: invoice.RefundAwaitingApproval, Before: before, Limit: limit})
		if err != nil {
			return nil, "", err
		}
		for _, r := range found {
			items = append(items, s.refundItem(r))
		}
		if len(found) == limit {
			next = items[len(items)-1].Position
		}
		return items, next, nil
	}
}

func (s *Service) refundItem(r invoice.RefundRecord) InboxItem {
	item := InboxItem{Position: store.RefundListID(r.CreatedAt, r.ID), Refund: r}
	item.Kind, item.Version = invoice.ItemOfRefund(r, s.now())
	return item
}
