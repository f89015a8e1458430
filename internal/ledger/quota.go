package ledger

import (
	"context"
	"errors"
	"sync"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/limits"
)

const (
	// maxCounted bounds how many merchants' invoices are counted in a round. The others are counted in a later round.
	maxCounted = 10_000
	// countSteps bounds how often the store counts a batch of a merchant's invoices in a round.
	countSteps = 20
)

// retryQuota is the Retry-After of a merchant beyond its quota, in seconds. The operator decides how long it takes.
const retryQuota = "3600"

// quotas record which merchants have used up their quota of invoices.
type quotas struct {
	mu     sync.Mutex
	active map[string]bool // active since the last round, also if a create was refused
	full   map[string]bool
}

// admit records that a merchant makes an invoice. It returns a *limits.ExceededError if the
// merchant has used up its quota.
func (q *quotas) admit(merchantID string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.active == nil {
		q.active = make(map[string]bool)
	}
	if len(q.active) < maxCounted {
		q.active[merchantID] = true
	}
	if q.full[merchantID] {
		return &limits.ExceededError{Limit: access.InvoiceQuotaName, RetryAfter: retryQuota}
	}
	return nil
}

// take returns the merchants that were active since the last call.
func (q *quotas) take() map[string]bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	active := q.active
	q.active = nil
	return active
}

// set stores whether a merchant has used up its quota.
func (q *quotas) set(merchantID string, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !full {
		delete(q.full, merchantID)
		return
	}
	if q.full == nil || len(q.full) >= maxCounted {
		q.full = make(map[string]bool)
	}
	q.full[merchantID] = true
}

// CountInvoices counts the invoices of the merchants that were active since the last call, so that a
// create need not count. The caller calls it every access.QuotaInterval.
func (s *Service) CountInvoices(ctx context.Context) error {
	var errs []error
	for merchantID := range s.quotas.take() {
		for range countSteps {
			stored, more, err := access.CountInvoices(ctx, s.conf.Store, merchantID)
			if err != nil {
				errs = append(errs, err)
				break
			}
			s.quotas.set(merchantID, stored.Invoices >= stored.InvoiceQuota)
			if !more {
				break
			}
		}
	}
	return errors.Join(errs...)
}
