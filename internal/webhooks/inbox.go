package webhooks

import (
	"sync"

	"github.com/quittance/quittance/internal/clock"
)

// mail is what happened outside the goroutine of a worker.
type mail struct {
	fresh    []Event         // committed by this process
	leases   []*leaseRequest // requests that ended
	finished []finished      // how attempts ended
	resyncs  []snapshot      // what a resync read; there is one at a time
	expiries []bool          // whether late deliveries are left; runs do not overlap
}

// inbox collects mail for a worker.
type inbox struct {
	arrived chan struct{} // signals that there is mail

	mu   sync.Mutex
	mail mail
}

// put adds to the mail.
func (b *inbox) put(add func(*mail)) {
	b.mu.Lock()
	add(&b.mail)
	b.mu.Unlock()
	clock.Wake(b.arrived)
}

// take removes the mail.
func (b *inbox) take() mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.mail
	b.mail = mail{}
	return taken
}
