// Package settle holds the use cases of Quittance. Each is one database
// transaction: what it changes and the events about it are stored together or not
// at all.
//
// The rules themselves are pure functions of package invoice. This package
// loads what they need, applies them and stores what they say.
package settle

import (
	"errors"
	"io"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Errors of the use cases.
var (
	// ErrIdempotencyMismatch: the key was used for another request.
	ErrIdempotencyMismatch = errors.New("the Idempotency-Key was used for another request")
	// ErrIdempotencyInProgress: the first request with the key is under way.
	ErrIdempotencyInProgress = errors.New("a request with this Idempotency-Key is under way")
	// ErrHalted: the chain's indexer was stopped and must be looked at.
	ErrHalted = errors.New("the chain is halted")
)

// Merchants knows the merchants that the service was configured with.
type Merchants interface {
	// Known reports whether invoices may be created for the merchant.
	Known(merchantID string) bool
	// WantsEvents reports whether the merchant's events are to be delivered.
	// What is not scheduled when it happens never will be.
	WantsEvents(merchantID string) bool
	// Tolerance is how much less than the amount the merchant's invoices may
	// be paid with. It counts from an invoice's creation on.
	Tolerance(merchantID string) invoice.Tolerance
}

// Signals are called after a transaction that left work for somebody. They
// must not block; the workers find the work without them as well, only later.
type Signals struct {
	WakeDeliverer func()                // deliveries are due
	WakeTxManager func(chainKey string) // intents are due
	WakeIndexer   func(chainKey string) // a transfer was announced
	// OnUnattributed is called with each payment that no rule attributes, once it is
	// stored; of one that is mined again, again. It may be nil.
	OnUnattributed func(p invoice.Payment)
}

// Config is what a Service needs. All members but Schedule must be set.
type Config struct {
	Store     *store.Store
	Chains    []chain.Chain
	Merchants Merchants
	// Optional returns the optional types of events that a merchant is sent, given
	// those that are stored with its endpoint. It may be nil: then none is sent any.
	Optional func(merchantID string, stored []invoice.EventType) []invoice.EventType
	Signals  Signals
	Now      func() time.Time
	// Schedule is the time by which deliveries are scheduled; nil is Now.
	Schedule func() time.Time
	Rand     io.Reader
}

// Service runs the use cases. It is safe for concurrent use.
type Service struct {
	Config
	chains   map[string]chain.Chain
	ids      *invoice.IDs
	creates  creates
	suffixes *suffixes
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Schedule == nil {
		cfg.Schedule = cfg.Now
	}
	s := &Service{Config: cfg, chains: make(map[string]chain.Chain), ids: invoice.NewIDs(cfg.Now, cfg.Rand)}
	for _, c := range cfg.Chains {
		s.chains[c.Key] = c
	}
	s.creates.known = make(map[store.Settlement]bool)
	s.suffixes = newSuffixes(cfg.Now)
	return s
}

// earlier returns the time, or that of the schedule if it is earlier. What is
// forgotten by it is old by both: one of them may have jumped.
func (s *Service) earlier() time.Time {
	now, scheduled := s.Now(), s.Schedule()
	if scheduled.Before(now) {
		return scheduled
	}
	return now
}

// outbox collects what a transaction leaves for others: the events and
// intents to insert, and whom to wake when it is committed.
type outbox struct {
	events       []store.Event
	intents      []store.Intent
	unattributed []invoice.Payment // that no rule attributes
}

// wake tells the workers what was committed.
func (s *Service) wake(out outbox) {
	if len(out.events) > 0 {
		s.Signals.WakeDeliverer()
	}
	seen := make(map[string]bool)
	for _, in := range out.intents {
		if !seen[in.ChainKey] {
			seen[in.ChainKey] = true
			s.Signals.WakeTxManager(in.ChainKey)
		}
	}
	if s.Signals.OnUnattributed != nil {
		for _, p := range out.unattributed {
			s.Signals.OnUnattributed(p)
		}
	}
}
