package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// Errors of the use cases.
var (
	// ErrIdempotencyMismatch: the key was used for another request.
	ErrIdempotencyMismatch = errors.New("the Idempotency-Key was used for another request")
	// ErrIdempotencyInProgress: the first request with the key is in progress.
	ErrIdempotencyInProgress = errors.New("a request with this Idempotency-Key is in progress")
	// ErrUnverified: no node has confirmed the deposit factory of the chain since the start.
	ErrUnverified = errors.New("no node has confirmed the deposit factory of the chain")
	// ErrHalted: the chain's indexer was stopped and an operator must resume it.
	ErrHalted = errors.New("the chain is halted")
)

// Merchants finds the merchants of the service.
type Merchants interface {
	// Find returns a merchant, and whether invoices may be created for it. Its rules
	// apply to invoices created from now on.
	Find(ctx context.Context, merchantID string) (m invoice.Merchant, known bool, err error)
	// WantsEvents reports whether the merchant's events are to be delivered. An
	// event that is not scheduled when it is emitted is never delivered.
	WantsEvents(ctx context.Context, q db.Querier, merchantID string) (bool, error)
}

// Signals are called after a transaction that left work for another component. They must not block. The components also
// find the work without them, later. Each may be nil.
type Signals struct {
	WakeDeliverer func(events []webhooks.Event) // that were committed
	WakeTxManager func(chainKey string)         // intents are due
	WakeIndexer   func(chainKey string)         // a transfer was announced
	// OnUnattributed is called with each payment that no rule attributes, once it
	// is stored, and again when it is mined again.
	OnUnattributed func(p invoice.Payment)
	// OnForeignTx is called with each transaction that opened or closed commitments in one of the
	// service's registries and that the service has not stored.
	OnForeignTx func(chainKey string, tx invoice.Hash)
	// OnAuthorization is called when an authorization was accepted, with an empty refusal, or refused.
	OnAuthorization func(chainKey string, refused invoice.Refusal)
}

// orIgnored returns the signals with empty functions for nil ones.
func (s Signals) orIgnored() Signals {
	if s.WakeDeliverer == nil {
		s.WakeDeliverer = func([]webhooks.Event) {}
	}
	if s.WakeTxManager == nil {
		s.WakeTxManager = func(string) {}
	}
	if s.WakeIndexer == nil {
		s.WakeIndexer = func(string) {}
	}
	if s.OnForeignTx == nil {
		s.OnForeignTx = func(string, invoice.Hash) {}
	}
	if s.OnUnattributed == nil {
		s.OnUnattributed = func(invoice.Payment) {}
	}
	if s.OnAuthorization == nil {
		s.OnAuthorization = func(string, invoice.Refusal) {}
	}
	return s
}

// Config configures a Service. Store and Now are required. Merchants is required
// to create invoices and to process blocks.
type Config struct {
	Store     *db.DB
	Chains    []chain.Chain
	Merchants Merchants
	// OptionalEvents returns the optional types of events that a merchant gets, given the types that are
	// stored with its endpoint. Nil means no optional events.
	OptionalEvents func(merchantID string, stored []invoice.EventType) []invoice.EventType
	Signals        Signals
	// Remembered is the result of Remember; zero without a record.
	Remembered chain.RememberedChains
	// VerifyChain returns nil if the nodes of a chain serve that chain, with the token, as far as is known. Nil
	// means that this is not checked.
	VerifyChain func(ctx context.Context, chainKey string, token invoice.Address) error
	// VerifyContracts returns nil if a node has confirmed the code of a chain's contracts
	// since the start, and otherwise asks one. Nil means that they are not verified.
	VerifyContracts func(ctx context.Context, chainKey string) error
	// Gasless is zero if the service sends no authorizations.
	Gasless Gasless
	// Keyring derives the tokens of the pages on which payers name an address for a refund. Without it
	// they are random, and known only to the caller that prepared the refund.
	Keyring *access.Keyring
	Now     func() time.Time
	// Schedule is the clock by which deliveries are scheduled; nil is Now.
	Schedule func() time.Time
	// Confirmed is the clock for decisions that cannot be undone, such as ending the reservation of a
	// refund. nil is the earlier of Now and Schedule.
	Confirmed func() time.Time
	Rand      io.Reader // nil is crypto/rand
	// Screens is set if new payments wait for the verdict of a screening hook.
	Screens bool
	// Recovery is set while the chains are read after a restored backup: commitments that the database
	// lacks are recorded, and no invoice expires.
	Recovery bool
}

// Service runs the use cases. It is safe for concurrent use.
type Service struct {
	conf     Config
	byKey    map[string]chain.Chain
	missed   *missedBlocks
	ids      *invoice.IDs
	creates  *db.Batcher[*create, error]
	suffixes *suffixCache
	quotas   quotas
}

// New returns a Service. It panics without a Store or a clock.
func New(cfg Config) *Service {
	if cfg.Store == nil || cfg.Now == nil {
		panic("ledger: Config.Store and Config.Now are required")
	}
	if cfg.Schedule == nil {
		cfg.Schedule = cfg.Now
	}
	if cfg.Confirmed == nil {
		cfg.Confirmed = func() time.Time { return clock.Earlier(cfg.Now(), cfg.Schedule()) }
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	cfg.Signals = cfg.Signals.orIgnored()
	s := &Service{
		conf: cfg, byKey: make(map[string]chain.Chain), missed: newMissedBlocks(cfg.Remembered), ids: invoice.NewIDs(cfg.Now, cfg.Rand),
		suffixes: &suffixCache{now: cfg.Now, free: make(map[AmountKey]shortlist)},
	}
	for _, c := range cfg.Chains {
		s.byKey[c.Key] = c
	}
	s.creates = db.NewBatcher(db.BatchConfig[*create, error]{
		Lanes: createLanes, Full: createBatch, Patience: createPatience, Take: db.First[*create, error](createBatch), Flush: s.createAll,
	})
	return s
}

// seconds returns Now in UTC and whole seconds, as it is stored.
func (s *Service) seconds() time.Time { return invoice.Unix(s.conf.Now().Unix()) }

// scheduled returns Schedule in UTC and whole seconds, as it is stored.
func (s *Service) scheduled() time.Time { return invoice.Unix(s.conf.Schedule().Unix()) }
