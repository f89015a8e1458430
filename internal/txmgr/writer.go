// Package txmgr is the transaction manager: it records in a chain's registry which
// invoices are open and which are closed.
//
// Work comes as intents: rows that are written in the transaction that causes them. The
// writer of a chain takes due intents in batches, signs a transaction for each batch, and
// saves it with its nonce before broadcasting it. It then follows the transaction until
// it is mined: it rebroadcasts one that was dropped, replaces one that is stuck by an
// attempt with a higher fee, and resumes one that a reorg removed. An intent is done when
// its registry event is final; until then a reorg makes it due again.
//
// One writer at a time works on a chain, the holder of its lease, with one transaction in
// flight, at the nonce of the newest block. That is slower than a queue of nonces, but
// leaves nothing to go wrong between them, and 200 commitments a block are enough. The
// contract skips what it knows, so a commitment that is sent twice only costs gas. Every
// doubtful case relies on that.
//
// A node's answer alone cannot make the writer overspend. Each answer is bounded or
// compared with another node's: the nonce (nonce.go), the tip and the base fee (fees.go,
// by the chain's limits), the gas (the higher of two estimates, within maxGas), the cost
// on a receipt (budget.go). The chain id is the configured one, and a wrong balance only
// delays.
package txmgr

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/tracing"
)

// Store is the writer's storage. *store.Store is one.
type Store interface {
	AcquireWorkLease(ctx context.Context, l store.WorkLease, now, until time.Time) (bool, error)
	ReleaseWorkLease(ctx context.Context, l store.WorkLease) error
	Cursor(ctx context.Context, chainKey string) (store.Cursor, error)
	DueIntents(ctx context.Context, chainKey string, registry invoice.Address, after string, limit int) ([]store.Intent, error)
	DueCount(ctx context.Context, chainKey string, registry invoice.Address) (due, elsewhere int64, err error)
	SatisfyIntents(ctx context.Context, l store.WorkLease, ids []string) error
	ReleaseIntents(ctx context.Context, l store.WorkLease, txID string) error
	UnsettledTxs(ctx context.Context, chainKey string) ([]store.ChainTx, error)
	ChainTxsFrom(ctx context.Context, chainKey string, sender invoice.Address, nonce uint64) ([]store.ChainTx, error)
	HasChainTxs(ctx context.Context, chainKey string, sender invoice.Address) (bool, error)
	SaveChainTx(ctx context.Context, l store.WorkLease, t store.ChainTx, intentIDs []string) error
	AddAttempt(ctx context.Context, l store.WorkLease, txID string, number int, a store.TxAttempt, reserved int64) error
	AcceptAttempt(ctx context.Context, l store.WorkLease, txHash invoice.Hash, at time.Time) error
	SetTxStatus(ctx context.Context, l store.WorkLease, txID string, status store.TxStatus, spent *store.TxCost) error
	Spending(ctx context.Context, chainKey string, since time.Time, but string) (spent, reserved int64, err error)
}

// Config configures a Writer.
type Config struct {
	Chain  chain.Chain       // its key, id, registry and limits are used
	Key    *ecdsa.PrivateKey // of an operator of the registry
	Client Client
	// Nodes returns a client of each of the chain's nodes, to compare their answers.
	// nil: there is one node, the Client.
	Nodes  func() []Client
	Store  Store
	Logger *slog.Logger

	Wake     <-chan struct{} // says that intents may be due; nil leaves it to polling
	Poll     time.Duration   // between looks; 0 means DefaultPoll
	LeaseTTL time.Duration   // after which a dead writer is replaced; 0 means DefaultLeaseTTL
	Metrics  *Metrics        // nil keeps none

	Now  func() time.Time // nil means time.Now
	Rand io.Reader        // for identifiers; nil means crypto/rand.Reader
}

// Writer is the writer of one chain. Run it once.
type Writer struct {
	conf        Config
	node        node
	sender      invoice.Address
	ids         *invoice.IDs
	lease       store.WorkLease
	leasedUntil time.Time // until when the lease is surely ours

	// What follows is a cache: a new writer begins without it.
	batch        int                       // how many intents the next transaction takes
	skipped      map[intentKey]time.Time   // intents that the registry refused on their own, and until when they are skipped
	satisfied    map[string]blockRef       // by intent: the block as of which the registry satisfies it
	broadcasts   map[string]broadcastState // by transaction: its broadcasts by this writer
	lostSince    map[string]time.Time      // by transaction: since when its nonce is used and no receipt is there
	foreignClaim nonceClaim                // the nonce that another program's transaction holds
	nonceClaim   nonceClaim                // how many nonces are used, as long as that is not certain
	blocker      *blocker                  // what keeps every transaction back, or nil
	reported     error                     // the blocker that was logged last
	countedAt    time.Time                 // when due intents were last counted

	mu     sync.Mutex
	status Status
}

// New returns a writer. It fails when the chain has no registry or there is no
// key: such a chain has no writer.
func New(conf Config) (*Writer, error) {
	if conf.Chain.Registry.IsZero() {
		return nil, fmt.Errorf("chain %s has no registry to write to", conf.Chain.Key)
	}
	if conf.Key == nil {
		return nil, fmt.Errorf("chain %s has no operator key to write with", conf.Chain.Key)
	}
	conf.Chain.Limits = conf.Chain.Limits.OrDefault()
	setDefault(&conf.Poll, DefaultPoll)
	setDefault(&conf.LeaseTTL, DefaultLeaseTTL)
	setDefault(&conf.Metrics, NewMetrics(nil))
	setDefault(&conf.Logger, slog.New(slog.DiscardHandler))
	if conf.Now == nil {
		conf.Now = time.Now
	}
	if conf.Rand == nil {
		conf.Rand = rand.Reader
	}
	sender := crypto.PubkeyToAddress(conf.Key.PublicKey)
	ids := invoice.NewIDs(conf.Now, conf.Rand)
	conf.Logger = conf.Logger.With("component", "writer", "chain", conf.Chain.Key)
	return &Writer{
		conf: conf, node: node{conf.Client}, sender: invoice.Address(sender), ids: ids,
		lease:      store.WorkLease{Name: "writer:" + conf.Chain.Key, Holder: ids.New("lse_")},
		batch:      maxBatch,
		skipped:    make(map[intentKey]time.Time),
		satisfied:  make(map[string]blockRef),
		broadcasts: make(map[string]broadcastState),
		lostSince:  make(map[string]time.Time),
		status:     Status{ChainKey: conf.Chain.Key, Sender: sender},
	}, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Run writes until ctx ends, and then releases the lease. Failures are logged, shown by
// Status, and retried.
func (w *Writer) Run(ctx context.Context) error {
	ticker := time.NewTicker(w.conf.Poll)
	defer ticker.Stop()
	for {
		round, span := tracing.Start(ctx, "write commitments", trace.SpanKindInternal)
		span.SetAttributes(attribute.String("quittance.chain", w.conf.Chain.Key))
		err := w.tick(round)
		tracing.End(span, err)
		if ctx.Err() == nil {
			w.report(err)
		}
		select {
		case <-ctx.Done():
			return w.release(context.WithoutCancel(ctx))
		case <-w.conf.Wake:
		case <-ticker.C:
		}
	}
}

// tick acquires the lease if it is due, and processes if it is ours.
func (w *Writer) tick(ctx context.Context) error {
	now := w.conf.Now()
	if now.Add(w.conf.LeaseTTL / 2).After(w.leasedUntil) {
		until := now.Add(w.conf.LeaseTTL)
		ours, err := w.conf.Store.AcquireWorkLease(ctx, w.lease, now, until)
		if err != nil {
			return fmt.Errorf("acquire the writer's lease: %w", err)
		}
		w.update(func(s *Status) { s.Leader = ours })
		if !ours {
			w.resign()
			return nil
		}
		w.leasedUntil = until
	}
	err := w.process(ctx)
	if errors.Is(err, store.ErrConflict) {
		w.leasedUntil = time.Time{} // perhaps the lease went: ask before the next round
	}
	return err
}

// resign forgets the state of a leader, because another writer may change it.
func (w *Writer) resign() {
	w.leasedUntil = time.Time{}
	clear(w.satisfied)
	clear(w.broadcasts)
	clear(w.lostSince)
	w.foreignClaim, w.nonceClaim, w.blocker = nonceClaim{}, nonceClaim{}, nil
}

func (w *Writer) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	if err := w.conf.Store.ReleaseWorkLease(ctx, w.lease); err != nil {
		return fmt.Errorf("give back the writer's lease: %w", err)
	}
	return nil
}

func (w *Writer) registry() common.Address { return common.Address(w.conf.Chain.Registry) }
