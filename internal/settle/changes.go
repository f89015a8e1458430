package settle

import (
	"context"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// announce adds an event about the invoice's subject to the changes. Its body
// is written now and never again.
func (s *Service) announce(c *changes, typ invoice.EventType, subject string, inv invoice.Invoice, data any) error {
	return s.announceTo(c, typ, subject, inv.MerchantID, inv.ID, data)
}

// announceTo adds an event to the changes that tells a merchant of the subject.
func (s *Service) announceTo(c *changes, typ invoice.EventType, subject, merchantID, invoiceID string, data any) error {
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
	c.events = append(c.events, e)
	return nil
}

// save writes the changes.
func (c *changes) save(ctx context.Context, tx *store.Tx) error {
	if err := tx.InsertIntents(ctx, c.intents); err != nil {
		return err
	}
	return tx.InsertEvents(ctx, c.events)
}

// update runs a transaction that collects changes, saves them in it, and
// wakes the workers after it.
func (s *Service) update(ctx context.Context, fn func(tx *store.Tx, c *changes) error) error {
	var left changes
	err := s.Store.Update(ctx, func(tx *store.Tx) error {
		left = changes{}
		if err := fn(tx, &left); err != nil {
			return err
		}
		if err := s.announceUnattributed(ctx, tx, &left); err != nil {
			return err
		}
		return left.save(ctx, tx)
	})
	if err == nil {
		s.wake(left)
	}
	return err
}
