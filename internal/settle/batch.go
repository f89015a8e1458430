package settle

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

const (
	// createBatch is how many invoices one transaction creates at most.
	createBatch = 64
	// createLanes is how many such transactions run at once.
	createLanes = 2
	// createPatience bounds one of them.
	createPatience = 30 * time.Second
)

// creates gathers invoices that are created at the same time, so that they
// share statements and a commit. Nothing waits for a batch to fill: one goes
// out as soon as a lane is free.
type creates struct {
	mu      sync.Mutex
	waiting []*pendingCreate
	running int // lanes in use

	known map[store.Settlement]bool // recorded in the database
}

type pendingCreate struct {
	inv  invoice.Invoice
	done chan error
}

func (s *Service) createBatched(ctx context.Context, inv invoice.Invoice) (invoice.Invoice, error) {
	p := &pendingCreate{inv: inv, done: make(chan error, 1)}
	s.creates.mu.Lock()
	s.creates.waiting = append(s.creates.waiting, p)
	if s.creates.running < createLanes {
		s.creates.running++
		go s.createLane()
	}
	s.creates.mu.Unlock()
	select {
	case err := <-p.done:
		return p.inv, err
	case <-ctx.Done():
		return invoice.Invoice{}, ctx.Err()
	}
}

// createLane creates what waits, batch after batch, until nothing does.
func (s *Service) createLane() {
	for {
		batch := s.creates.take()
		if batch == nil {
			return
		}
		s.createAll(batch)
	}
}

// take returns the next batch; when there is none it frees the lane.
func (c *creates) take() []*pendingCreate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.running--
		return nil
	}
	n := min(len(c.waiting), createBatch)
	batch := c.waiting[:n:n]
	c.waiting = c.waiting[n:]
	return batch
}

// createAll creates the invoices of a batch, in as many transactions as it
// takes until each has a transfer amount of its own, and reports to each.
func (s *Service) createAll(batch []*pendingCreate) {
	ctx, cancel := context.WithTimeout(context.Background(), createPatience)
	defer cancel()
	reports := make(map[string]chan<- error, len(batch))
	left := make([]*invoice.Invoice, len(batch))
	for i, p := range batch {
		reports[p.inv.ID], left[i] = p.done, &p.inv
	}
	for try := 0; len(left) > 0; try++ {
		var again []*invoice.Invoice
		err := s.update(ctx, func(tx *store.Tx, out *outbox) (err error) {
			again, err = s.insertInvoices(ctx, tx, out, left, try)
			return err
		})
		s.remember(left, err == nil)
		if err != nil {
			again = nil
		}
		for _, inv := range left {
			if !slices.Contains(again, inv) {
				reports[inv.ID] <- err
			}
		}
		left = again
	}
}

// knownLimit bounds the memory of settlement addresses that the database has.
const knownLimit = 100_000

// insertSettlements records the merchants and addresses of invoices that the
// database may not have yet.
func (s *Service) insertSettlements(ctx context.Context, tx *store.Tx, invoices []*invoice.Invoice) error {
	var fresh []store.Settlement
	s.creates.mu.Lock()
	seen := make(map[store.Settlement]bool)
	for _, inv := range invoices {
		key := settlementOf(inv)
		if !s.creates.known[key] && !seen[key] {
			seen[key] = true
			fresh = append(fresh, key)
		}
	}
	s.creates.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	return tx.InsertSettlements(ctx, fresh, s.now().Unix())
}

// remember notes whether the database is known to have the invoices'
// addresses. After a transaction that failed it is not: the rows are never
// deleted, but a standby that took over may lack the newest.
func (s *Service) remember(invoices []*invoice.Invoice, there bool) {
	s.creates.mu.Lock()
	defer s.creates.mu.Unlock()
	if len(s.creates.known) > knownLimit {
		clear(s.creates.known)
	}
	for _, inv := range invoices {
		if there {
			s.creates.known[settlementOf(inv)] = true
		} else {
			delete(s.creates.known, settlementOf(inv))
		}
	}
}

func settlementOf(inv *invoice.Invoice) store.Settlement {
	return store.Settlement{ChainKey: inv.ChainKey, Address: inv.Merchant, MerchantID: inv.MerchantID}
}
