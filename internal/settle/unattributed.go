package settle

import (
	"context"
	"slices"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

const (
	// suggested is how many invoices payment.unattributed names that the payment
	// could be meant for.
	suggested = 5
	// suggestLimit bounds the payments of one transaction for which such invoices
	// are looked for. Of more, the event names none: the API does.
	suggestLimit = 100
)

// emitUnattributed announces payments that no rule attributes to those
// merchants of their address who ask for it, each once.
func (s *Service) emitUnattributed(ctx context.Context, tx *store.Tx, out *outbox) error {
	if s.Optional == nil || len(out.unattributed) == 0 {
		return nil
	}
	ids := make([]string, len(out.unattributed))
	for i, p := range out.unattributed {
		ids[i] = p.ID
	}
	merchants, err := tx.MerchantsOfUnattributed(ctx, ids)
	if err != nil {
		return err
	}
	asks, err := s.wantsUnattributed(ctx, tx, merchants)
	if err != nil {
		return err
	}
	emitted := 0
	for _, p := range out.unattributed {
		for _, merchantID := range merchants[p.ID] {
			if !asks[merchantID] {
				continue
			}
			emitted++
			if err := s.emitUnattributedTo(ctx, tx, out, p, merchantID, emitted <= suggestLimit); err != nil {
				return err
			}
		}
	}
	return nil
}

// emitUnattributedTo announces a payment to one merchant. suggest says
// whether the event names invoices that the payment could be meant for.
func (s *Service) emitUnattributedTo(ctx context.Context, tx *store.Tx, out *outbox, p invoice.Payment, merchantID string, suggest bool) error {
	var near []invoice.NearInvoice
	if suggest {
		var err error
		if near, err = tx.NearInvoices(ctx, p.Transfer, merchantID, p.ObservedAt+1); err != nil {
			return err
		}
	}
	data := apiconv.UnattributedData(p, invoice.Suggest(p.Transfer, near, suggested))
	return s.emitTo(out, invoice.EventUnattributed, p.ID+"/"+merchantID, merchantID, "", data)
}

// wantsUnattributed returns which of the payments' merchants are sent
// payment.unattributed. What their endpoints ask for is read in the transaction,
// because another replica may have stored it.
func (s *Service) wantsUnattributed(ctx context.Context, tx *store.Tx, merchants map[string][]string) (map[string]bool, error) {
	asks := make(map[string]bool)
	var ids []string
	for _, some := range merchants {
		for _, id := range some {
			if _, known := asks[id]; !known {
				asks[id] = false
				ids = append(ids, id)
			}
		}
	}
	stored, err := tx.OptionalEvents(ctx, ids)
	for _, id := range ids {
		asks[id] = slices.Contains(s.Optional(id, stored[id]), invoice.EventUnattributed)
	}
	return asks, err
}
