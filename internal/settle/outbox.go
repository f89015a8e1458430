package settle

import (
	"context"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// emit adds an event about the invoice's subject to the changes. Its body
// is written now and never again.
func (s *Service) emit(out *outbox, typ invoice.EventType, subject string, inv invoice.Invoice, data any) error {
	return s.emitTo(out, typ, subject, inv.MerchantID, inv.ID, data)
}

// emitTo adds an event to the changes that tells a merchant of the subject.
func (s *Service) emitTo(out *outbox, typ invoice.EventType, subject, merchantID, invoiceID string, data any) error {
	now := s.Now()
	id := s.ids.New(invoice.PrefixEvent)
	body, err := apiconv.EventBody(id, typ, now.Unix(), data)
	if err != nil {
		return err
	}
	e := store.Event{
		ID: id, Type: typ, Subject: subject, MerchantID: merchantID, InvoiceID: invoiceID,
		Body: body, CreatedAt: now.Unix(), DueMS: s.Schedule().UnixMilli(),
	}
	if s.Merchants.WantsEvents(merchantID) {
		e.DeliveryID = s.ids.New(invoice.PrefixDelivery)
	}
	out.events = append(out.events, e)
	return nil
}

// save writes the events and intents.
func (out *outbox) save(ctx context.Context, tx *store.Tx) error {
	if err := tx.InsertIntents(ctx, out.intents); err != nil {
		return err
	}
	return tx.InsertEvents(ctx, out.events)
}

// update runs a transaction that collects changes, saves them in it, and
// wakes the workers after it.
func (s *Service) update(ctx context.Context, fn func(tx *store.Tx, out *outbox) error) error {
	var out outbox
	err := s.Store.Update(ctx, func(tx *store.Tx) error {
		out = outbox{}
		if err := fn(tx, &out); err != nil {
			return err
		}
		if err := s.emitUnattributed(ctx, tx, &out); err != nil {
			return err
		}
		return out.save(ctx, tx)
	})
	if err == nil {
		s.wake(out)
	}
	return err
}
