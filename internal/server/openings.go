package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
)

const (
	// maxOpenings bounds the openings that wait to be stored. More are dropped.
	maxOpenings = 1024
	// maxOpened bounds the cache of invoices that were opened. Beyond it, the cache is cleared, and
	// opening an invoice again costs a statement without effect.
	maxOpened = 100_000
	// openingsDelay is how long openings are gathered before they are stored together.
	openingsDelay = time.Second
)

// openings stores when the pages of invoices were first opened, without making a payer wait.
type openings struct {
	store  *db.DB
	now    func() time.Time
	logger *slog.Logger
	queue  chan ledger.Opening
	known  map[string]struct{} // belongs to the goroutine of run
}

func newOpenings(s *db.DB, now func() time.Time, logger *slog.Logger) *openings {
	return &openings{store: s, now: now, logger: logger, queue: make(chan ledger.Opening, maxOpenings), known: make(map[string]struct{})}
}

// add notes that the page of an invoice was opened.
func (o *openings) add(invoiceID string) {
	select {
	case o.queue <- ledger.Opening{InvoiceID: invoiceID, At: o.now()}:
	default:
	}
}

// run stores openings until ctx ends.
func (o *openings) run(ctx context.Context) error {
	for {
		select {
		case first := <-o.queue:
			clock.Sleep(ctx, openingsDelay, nil)
			o.save(context.WithoutCancel(ctx), o.gather(first))
		case <-ctx.Done():
			return nil
		}
	}
}

// gather returns an opening and the waiting ones, except openings of known invoices.
func (o *openings) gather(next ledger.Opening) (fresh []ledger.Opening) {
	for range maxOpenings {
		if _, ok := o.known[next.InvoiceID]; !ok {
			if len(o.known) >= maxOpened {
				clear(o.known)
			}
			o.known[next.InvoiceID] = struct{}{}
			fresh = append(fresh, next)
		}
		select {
		case next = <-o.queue:
		default:
			return fresh
		}
	}
	return fresh
}

// save stores openings. Those that cannot be stored are stored when the page is opened again.
func (o *openings) save(ctx context.Context, fresh []ledger.Opening) {
	if len(fresh) == 0 {
		return
	}
	if err := ledger.RecordOpenings(ctx, o.store, fresh); err != nil {
		for _, opening := range fresh {
			delete(o.known, opening.InvoiceID)
		}
		o.logger.Error("openings of pages not stored", "err", err)
	}
}
