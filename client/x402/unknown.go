package x402

import (
	"crypto/sha256"
	"sync"
)

// maxUnknown bounds the settlements that a Middleware keeps because their outcome is not known. Beyond it, any one is
// forgotten.
const maxUnknown = 1000

// paymentID is a digest of a payment and what it pays.
type paymentID [sha256.Size]byte

// settlement is an attempt to settle a payment. Only the holder of its key gets the facilitator's answer again if that
// was lost, so each attempt releases one response.
type settlement struct {
	key     string
	payer   string
	unknown bool // the outcome was not known at the end of a request
}

// unknownOutcomes are settlements of payments that no request makes at present.
type unknownOutcomes struct {
	mu  sync.Mutex
	all map[paymentID]settlement
}

// take returns the settlement of a payment and removes it, so that one request has it.
func (u *unknownOutcomes) take(payment paymentID) (s settlement, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, ok = u.all[payment]
	delete(u.all, payment)
	return s, ok
}

// keep stores the settlement of a payment.
func (u *unknownOutcomes) keep(payment paymentID, s settlement) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = make(map[paymentID]settlement)
	}
	if len(u.all) >= maxUnknown {
		for other := range u.all {
			delete(u.all, other)
			break
		}
	}
	u.all[payment] = s
}
