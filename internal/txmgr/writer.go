// Package txmgr tells the registry of a chain which invoices are open and
// which are closed.
//
// What to tell is an intent: a row, written by whoever caused it in the
// transaction that caused it. The writer of a chain takes due intents in
// batches, and saves the transaction that it signed for a batch, with its
// nonce, before it broadcasts it. From then on the transaction is followed
// until it stands in the chain: broadcast again when it was dropped, replaced
// by one with a higher fee when it is stuck, taken up again when a reorg
// removed it. An intent is done when the indexer has seen its event and that
// is final; until then a reorg makes it due by itself.
//
// One writer at a time works on a chain, the holder of its lease, and has one
// transaction in flight, with the nonce that the newest block leaves. That is
// slower than a queue of nonces, and leaves nothing to go wrong between them:
// 200 commitments a block are enough. The contract skips what it knows already,
// so a commitment that is sent twice costs gas and nothing else. This is what
// every doubtful case falls back on.
//
// What a node answers is one node's word. Each answer that could make the
// writer spend is bounded or checked against another node: the nonce (nonce.go),
// the tip and the base fee (fees.go, by the chain's purse), the gas (the higher
// of two estimates, within maxGas), the cost on a receipt (budget.go). The
// chain's id is the configured one, and a wrong balance only delays.
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

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Store is what the writer keeps. *store.Store is one.
type Store interface {
	AcquireLease(ctx context.Context, l store.Lease, nowMS, untilMS int64) (bool, error)
	ReleaseLease(ctx context.Context, l store.Lease) error
	Cursor(ctx context.Context, chainKey string) (store.Cursor, error)
	DueIntents(ctx context.Context, chainKey string, registry invoice.Address, after string, limit int) ([]store.Intent, error)
	DueCount(ctx context.Context, chainKey string, registry invoice.Address) (due, elsewhere int64, err error)
	SatisfyIntents(ctx context.Context, l store.Lease, ids []string) error
	ReleaseIntents(ctx context.Context, l store.Lease, txID string) error
	UnsettledTxs(ctx context.Context, chainKey string) ([]store.ChainTx, error)
	ChainTxsFrom(ctx context.Context, chainKey string, sender invoice.Address, nonce uint64) ([]store.ChainTx, error)
	HasChainTxs(ctx context.Context, chainKey string, sender invoice.Address) (bool, error)
	SaveChainTx(ctx context.Context, l store.Lease, t store.ChainTx, intentIDs []string) error
	AddAttempt(ctx context.Context, l store.Lease, txID string, number int, a store.TxAttempt, reserved int64) error
	AcceptAttempt(ctx context.Context, l store.Lease, txHash invoice.Hash, atMS int64) error
	SetTxStatus(ctx context.Context, l store.Lease, txID string, status store.TxStatus, spent *store.TxCost) error
	Spending(ctx context.Context, chainKey string, sinceMS int64, but string) (spent, reserved int64, err error)
}

// Config says for which chain to write and how.
type Config struct {
	Chain  chain.Chain       // its key, id, registry and purse are used
	Key    *ecdsa.PrivateKey // of an operator of the registry
	Client Client
	// Nodes returns the chain's nodes, each to be asked by itself: one's word is
	// checked against another's. nil: there is one node, the Client.
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
	lease       store.Lease
	leasedUntil time.Time // until when the lease is surely ours

	// What follows is only remembered: a new writer does without.
	batch        int                       // how many intents the next transaction takes
	skipped      map[intentKey]time.Time   // what the registry refused by itself, and until when it is skipped
	satisfied    map[string]blockRef       // by intent: the block as of which the registry satisfies it
	broadcasts   map[string]broadcastState // by transaction: its broadcasts by this writer
	lostSince    map[string]time.Time      // by transaction: since when its nonce is used and no receipt is there
	foreignClaim nonceClaim                // the nonce that another program's transaction holds
	nonceClaim   nonceClaim                // how many nonces are used, as long as that is not certain
	blocker      *blocker                  // what holds up everything; nil: nothing
	reported     error                     // the obstacle that was reported last
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
		lease:      store.Lease{Name: "writer:" + conf.Chain.Key, Holder: ids.New("lse_")},
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

// Run writes until ctx ends, and then gives the lease back. Whatever fails is
// logged, shown by Status, and tried again.
func (w *Writer) Run(ctx context.Context) error {
	ticker := time.NewTicker(w.conf.Poll)
	defer ticker.Stop()
	for {
		err := w.tick(ctx)
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

// tick does what can be done now, if the lease is ours.
func (w *Writer) tick(ctx context.Context) error {
	now := w.conf.Now()
	if now.Add(w.conf.LeaseTTL / 2).After(w.leasedUntil) {
		until := now.Add(w.conf.LeaseTTL)
		ours, err := w.conf.Store.AcquireLease(ctx, w.lease, now.UnixMilli(), until.UnixMilli())
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

// resign has the writer wait for its turn. What it remembers is another's to
// change meanwhile.
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
	if err := w.conf.Store.ReleaseLease(ctx, w.lease); err != nil {
		return fmt.Errorf("give back the writer's lease: %w", err)
	}
	return nil
}

func (w *Writer) registry() common.Address { return common.Address(w.conf.Chain.Registry) }
