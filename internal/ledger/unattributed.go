package ledger

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

const (
	// maxSuggestions is how many invoices payment.unattributed suggests.
	maxSuggestions = 5
	// maxSuggestedPayments bounds the events of one transaction with suggestions.
	// For the others the API suggests invoices.
	maxSuggestedPayments = 100
)

// emitUnattributed emits payment.unattributed for payments that no rule attributes, to the merchants
// of their address that ask for it. It emits no events during a recovery: a merchant may have a copy
// of the invoice, and gets payment.received again once that is imported.
func (s *Service) emitUnattributed(ctx context.Context, tx *db.Tx, out *outbox) error {
	if s.conf.OptionalEvents == nil || s.conf.Recovery || len(out.unattributed) == 0 {
		return nil
	}
	ids := db.Each(out.unattributed, func(p invoice.Payment) string { return p.ID })
	merchants, err := MerchantsOfUnattributed(ctx, tx, ids)
	if err != nil {
		return err
	}
	wants, err := s.wantsUnattributed(ctx, tx, merchants)
	if err != nil {
		return err
	}
	if !slices.Contains(slices.Collect(maps.Values(wants)), true) {
		return nil
	}
	lost, err := NewReader(tx).LostPayments(ctx, out.unattributed)
	if err != nil {
		return err
	}
	emitted := 0
	for _, p := range out.unattributed {
		for _, merchantID := range merchants[p.ID] {
			if !wants[merchantID] {
				continue
			}
			emitted++
			if err := s.emitUnattributedTo(ctx, tx, out, p, lost[p.ID], merchantID, emitted <= maxSuggestedPayments); err != nil {
				return err
			}
		}
	}
	return nil
}

// emitUnattributedTo emits payment.unattributed to one merchant. lost is the commitment of the lost
// invoice that the payment was for, or zero. suggest makes the event suggest invoices.
func (s *Service) emitUnattributedTo(ctx context.Context, tx *db.Tx, out *outbox, p invoice.Payment, lost invoice.Hash, merchantID string, suggest bool) error {
	var near []invoice.NearInvoice
	if suggest {
		found, err := NewReader(tx).NearInvoices(ctx, []NearLookup{{Transfer: p.Transfer, CreatedBefore: p.ObservedAt.Add(time.Second)}}, merchantID)
		if err != nil {
			return err
		}
		near = found[0]
	}
	data := apiconv.UnattributedData(p, invoice.Suggest(p.Transfer, near, maxSuggestions))
	if !lost.IsZero() {
		apiconv.OfLostInvoice(&data.Payment, lost)
	}
	return s.emitTo(out, invoice.EventUnattributed, p.ID+"/"+merchantID, merchantID, "", data)
}

// wantsUnattributed returns which of the payments' merchants ask for payment.unattributed. Their endpoints are read in
// the transaction, because another replica may have changed them.
func (s *Service) wantsUnattributed(ctx context.Context, tx *db.Tx, merchants map[string][]string) (map[string]bool, error) {
	wants := make(map[string]bool)
	var ids []string
	for _, some := range merchants {
		for _, id := range some {
			if _, known := wants[id]; !known {
				wants[id] = false
				ids = append(ids, id)
			}
		}
	}
	stored, err := webhooks.OptionalEvents(ctx, tx, ids)
	for _, id := range ids {
		wants[id] = slices.Contains(s.conf.OptionalEvents(id, stored[id]), invoice.EventUnattributed)
	}
	return wants, err
}
