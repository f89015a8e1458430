package ledger

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// outbox collects the rows that a transaction inserts at its end: events and intents for other
// components, and audit entries. They are saved in the same transaction, and signalled after it.
type outbox struct {
	events       []webhooks.Event
	intents      []Intent
	unattributed []invoice.Payment // that no rule attributes
	foreign      []foreignTx
	audit        []access.Entry
	held         *time.Duration // if not nil, receives how long the transaction kept others from inserting events
}

// foreignTx is a transaction that changed a registry and that the service has not stored.
type foreignTx struct {
	chainKey string
	hash     invoice.Hash
}

// update runs a transaction with an outbox, saves the outbox in it, and wakes
// the other components after it. fn may run more than once.
func (s *Service) update(ctx context.Context, fn func(tx *db.Tx, out *outbox) error) error {
	var out outbox
	err := s.conf.Store.Update(ctx, func(tx *db.Tx) error {
		out = outbox{}
		if err := fn(tx, &out); err != nil {
			return err
		}
		if err := s.emitUnattributed(ctx, tx, &out); err != nil {
			return err
		}
		return s.saveOutbox(ctx, tx, &out)
	})
	if err == nil {
		s.signal(out)
	}
	return err
}

// saveOutbox inserts the intents, the audit entries and the events.
func (s *Service) saveOutbox(ctx context.Context, tx *db.Tx, out *outbox) error {
	if err := InsertIntents(ctx, tx, out.intents); err != nil {
		return err
	}
	if err := access.AppendAudit(ctx, tx, out.audit...); err != nil {
		return err
	}
	wants := make(map[string]bool)
	for i, e := range out.events {
		if _, asked := wants[e.MerchantID]; !asked {
			var err error
			if wants[e.MerchantID], err = s.conf.Merchants.WantsEvents(ctx, tx, e.MerchantID); err != nil {
				return err
			}
		}
		if !wants[e.MerchantID] {
			out.events[i].DeliveryID = ""
		}
	}
	if err := webhooks.InsertEvents(ctx, tx, out.events); err != nil || len(out.events) == 0 || out.held == nil {
		return err
	}
	return webhooks.MeasureHold(ctx, tx, out.held)
}

// signal wakes the components for which a committed outbox has work.
func (s *Service) signal(out outbox) {
	if len(out.events) > 0 {
		s.conf.Signals.WakeDeliverer(out.events)
	}
	seen := make(map[string]bool)
	for _, in := range out.intents {
		if !seen[in.ChainKey] {
			seen[in.ChainKey] = true
			s.conf.Signals.WakeTxManager(in.ChainKey)
		}
	}
	for _, p := range out.unattributed {
		s.conf.Signals.OnUnattributed(p)
	}
	for _, t := range out.foreign {
		s.conf.Signals.OnForeignTx(t.chainKey, t.hash)
	}
}

// emit adds an event of the invoice's merchant to the outbox. An event of the same type and subject is stored once.
func (s *Service) emit(out *outbox, typ invoice.EventType, subject string, inv invoice.Invoice, data any) error {
	return s.emitTo(out, typ, subject, inv.MerchantID, inv.ID, data)
}

// emitTo adds an event of a merchant to the outbox. Its body is rendered here and never changes.
func (s *Service) emitTo(out *outbox, typ invoice.EventType, subject, merchantID, invoiceID string, data any) error {
	now := s.seconds()
	id := invoice.EventID(typ, subject, merchantID, invoiceID)
	body, err := apiconv.EventBody(id, typ, now, data)
	if err != nil {
		return err
	}
	e := webhooks.Event{
		ID: id, Type: typ, Subject: subject, MerchantID: merchantID, InvoiceID: invoiceID,
		Body: body, CreatedAt: now, Due: s.conf.Schedule(), DeliveryID: invoice.DeliveryID(typ, subject, merchantID, invoiceID),
	}
	out.events = append(out.events, e)
	return nil
}

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
