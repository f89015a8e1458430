// Package txmgr is the transaction manager: it sends the service's transactions to a chain.
//
// There are several kinds of work, each in its own file behind the interface work: registry.go records in the chain's
// registry which invoices are open and which are closed, and sweeps.go sends the contents of deposit addresses to the
// merchants. Work is stored as rows. A chain's writer asks each kind, in order of urgency, for a batch of due rows,
// signs a transaction for the first batch it gets, and saves it with its nonce before broadcasting it. It then follows
// the transaction until it is mined: it rebroadcasts a transaction that was dropped, replaces a stuck one by an attempt
// with a higher fee, and resumes one that a reorg removed. A row is done when the indexer has seen its event in a final
// block; until then a reorg makes it due again.
//
// Only the holder of a chain's lease writes, with one transaction in flight, whatever its kind, at the nonce of the
// newest block. That is slower than a queue of nonces, but avoids all problems of several pending nonces, and 200 rows
// per block are enough. The contracts skip work that is already done, so a row that is sent twice only costs gas. Every
// case of doubt relies on that. A kind of work that fails, or that lacks funds for its next transaction, does not block
// the others.
//
// To add a kind of work:
//
//  1. Give its transactions a TxKind, and define in chaintxs_sql.go which rows such
//     a transaction carries: SaveChainTx assigns them, a failed transaction makes them due
//     again, and UnsettledTxs returns their transaction until they are done.
//  2. Write a type that implements work, in a separate file, and add it to the list in
//     New, in order of urgency.
//  3. Have the indexer finish its rows, under the chain's cursor, and undo that when a
//     reorg removes the block.
//
// A single node's answer cannot make the writer overspend. Each answer is bounded or compared with another node's: the
// nonce (nonce.go), the tip and the base fee (fees.go, by the chain's limits), the gas (the higher of two estimates,
// within the limits of the items and the network's cap), the cost on a receipt (budget.go). The chain id is the
// configured one, and a wrong balance only causes delay.
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
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/tracing"
)

// Leases are leases on work, by the clock of its caller. *db.DB implements it.
type Leases interface {
	AcquireWorkLease(ctx context.Context, l db.WorkLease, now, until time.Time) (bool, error)
	ReleaseWorkLease(ctx context.Context, l db.WorkLease) error
}

// Config configures a Writer.
type Config struct {
	Chain  chain.Chain       // Key, ID, Registry and Limits are used
	Key    *ecdsa.PrivateKey // of an operator of the registry
	Client Client
	// Nodes returns a client for each of the chain's nodes, to compare their answers. If it is nil, the Client is the
	// only node.
	Nodes  func() []Client
	Store  *db.DB
	Leases Leases // nil means Store
	Logger *slog.Logger

	Wake     <-chan struct{} // signals that intents may be due; nil means only polling
	Poll     time.Duration   // time between rounds; 0 means DefaultPoll
	LeaseTTL time.Duration   // time after which a dead writer is replaced; 0 means DefaultLeaseTTL
	Metrics  *Metrics        // nil disables metrics
	Gasless  bool            // send payers' authorizations

	Now func() time.Time // nil means time.Now
	// Schedule is the schedule's clock, which does not jump. All durations are measured by it. nil means Now.
	Schedule func() time.Time
	Rand     io.Reader // for identifiers; nil means crypto/rand.Reader
}

// Writer is the writer of one chain. Run it once.
type Writer struct {
	conf        Config
	node        node
	sender      invoice.Address
	allowed     uint64    // how many unknown nonces are not evidence; all of them once this process has compared
	notedAt     time.Time // when the used nonces were last queried or recorded
	restored    bool      // the used nonces were evidence, so no more transactions are sent
	ids         *invoice.IDs
	lease       db.WorkLease
	leasedUntil time.Time // the lease is certainly ours until then

	registry *registryWork
	sweeps   *sweepWork
	works    []work // in order of urgency

	// The fields below are a cache: a new writer begins without it.
	broadcasts   map[string]broadcastState // by transaction: its broadcasts by this writer
	lostSince    map[string]time.Time      // by transaction: since when its nonce is used and it has no receipt
	foreignClaim nonceClaim                // the nonce that another program's transaction holds
	nonceClaim   nonceClaim                // number of used nonces, while that is not certain
	blockers     map[work]*blocker         // by kind of work: what blocks all of its transactions
	reported     error                     // the blocker that was logged last
	waits        bool                      // whether the last round ended with errFirstNonce
	countedAt    time.Time                 // when due items were last counted
	measuredAt   time.Time                 // when the balance and the spending were to be published
	idle         bool                      // whether the last round found no work
	decides      int                       // the node that may grant a call on which the nodes are divided

	mu     sync.Mutex
	status Status
}

// New returns a writer. It fails if the chain has no contract to call or there is no key: such a chain has no writer.
func New(conf Config) (*Writer, error) {
	if conf.Chain.Registry.IsZero() && conf.Chain.DepositFactory.IsZero() {
		return nil, fmt.Errorf("chain %s has no contract to call", conf.Chain.Key)
	}
	if conf.Key == nil {
		return nil, fmt.Errorf("chain %s has no operator key to write with", conf.Chain.Key)
	}
	conf.Chain.Limits = conf.Chain.Limits.OrDefault()
	setDefault(&conf.Chain.MaxTxGas, chain.DefaultMaxTxGas)
	setDefault(&conf.Poll, DefaultPoll)
	setDefault(&conf.LeaseTTL, DefaultLeaseTTL)
	setDefault(&conf.Metrics, NewMetrics(nil))
	setDefault(&conf.Logger, slog.New(slog.DiscardHandler))
	if conf.Leases == nil {
		conf.Leases = conf.Store
	}
	if conf.Now == nil {
		conf.Now = time.Now
	}
	if conf.Schedule == nil {
		conf.Schedule = conf.Now
	}
	if conf.Rand == nil {
		conf.Rand = rand.Reader
	}
	conf.Metrics.begin(conf.Chain)
	sender := crypto.PubkeyToAddress(conf.Key.PublicKey)
	ids := invoice.NewIDs(conf.Now, conf.Rand)
	conf.Logger = conf.Logger.With("component", "writer", "chain", conf.Chain.Key)
	w := &Writer{
		conf: conf, node: node{conf.Client}, sender: invoice.Address(sender), ids: ids,
		lease:      db.WorkLease{Name: "writer:" + conf.Chain.Key, Holder: ids.New("lse_")},
		broadcasts: make(map[string]broadcastState),
		lostSince:  make(map[string]time.Time),
		blockers:   make(map[work]*blocker),
		status:     Status{ChainKey: conf.Chain.Key, Sender: sender},
	}
	w.registry = newRegistryWork(w)
	w.sweeps = newSweepWork(w)
	w.works = []work{newAuthorizationWork(w), w.registry, w.sweeps} // authorizations go first, because they expire
	return w, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Run writes until ctx ends, and then releases the lease. It logs and retries failures, and reports them in Status.
func (w *Writer) Run(ctx context.Context) error {
	ticker := time.NewTicker(w.conf.Poll)
	defer ticker.Stop()
	for {
		round, span := tracing.Start(ctx, "manage transactions", trace.SpanKindInternal)
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

// tick acquires the lease if that is due, and runs process if the lease is ours.
func (w *Writer) tick(ctx context.Context) error {
	now := w.conf.Schedule()
	if now.Add(w.conf.LeaseTTL / 2).After(w.leasedUntil) {
		ours, err := w.acquireLease(ctx)
		if err != nil {
			return err
		}
		w.update(func(s *Status) { s.Leader = ours })
		if !ours {
			w.resign()
			return nil
		}
		w.leasedUntil = now.Add(w.conf.LeaseTTL)
	}
	err := w.keepingLease(ctx, w.process)
	if errors.Is(err, db.ErrConflict) {
		w.leasedUntil = time.Time{} // the lease may be lost: check before the next round
	}
	return err
}

func (w *Writer) acquireLease(ctx context.Context) (ours bool, err error) {
	now := w.conf.Schedule()
	ours, err = w.conf.Leases.AcquireWorkLease(ctx, w.lease, now, now.Add(w.conf.LeaseTTL))
	return ours, db.During("acquire the writer's lease", err)
}

// keepingLease runs a round and extends the lease while it takes long: nodes may answer slowly, and another replica
// would take the lease before the round has saved its transaction. It ends the round once another replica has it.
func (w *Writer) keepingLease(ctx context.Context, round func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() {
		ticker := time.NewTicker(w.conf.LeaseTTL / 4)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if ours, err := w.acquireLease(ctx); err == nil && !ours {
				cancel(fmt.Errorf("another replica has the writer's lease: %w", db.ErrConflict))
			}
		}
	})
	err := round(ctx)
	if lost := context.Cause(ctx); errors.Is(lost, db.ErrConflict) {
		err = errors.Join(err, lost)
	}
	cancel(nil)
	keeper.Wait()
	return err
}

// resign drops the state of a leader, because another writer may change it.
func (w *Writer) resign() {
	w.leasedUntil = time.Time{}
	clear(w.broadcasts)
	clear(w.lostSince)
	clear(w.blockers)
	w.foreignClaim, w.nonceClaim = nonceClaim{}, nonceClaim{}
	w.idle = false
	for _, k := range w.works {
		k.resign()
	}
}

func (w *Writer) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	if err := w.conf.Leases.ReleaseWorkLease(ctx, w.lease); err != nil {
		return fmt.Errorf("give back the writer's lease: %w", err)
	}
	return nil
}

// process runs a round, unless there is no work and the last round found none. The first one also measures.
func (w *Writer) process(ctx context.Context) error {
	if err := w.noteAgain(ctx); err != nil {
		return err
	}
	if err := w.count(ctx); err != nil {
		return err
	}
	found, err := HasWork(ctx, w.conf.Store, w.conf.Chain.Key)
	if err != nil || !found && w.idle {
		return err
	}
	w.idle = false
	if err := w.advance(ctx); err != nil {
		return err
	}
	w.idle = !found
	return w.measure(ctx)
}

// advance follows the transactions in flight and, if there are no such transactions, sends the next one.
func (w *Writer) advance(ctx context.Context) error {
	// The cursor is read first: for everything still unsettled afterwards, the indexer has seen all events up to the
	// cursor.
	cursor, err := ledger.NewReader(w.conf.Store).Cursor(ctx, w.conf.Chain.Key)
	if err != nil && !errors.Is(err, db.ErrNotFound) { // no block is final before the chain is read
		return err
	}
	txs, err := UnsettledTxs(ctx, w.conf.Store, w.conf.Chain.Key)
	if err != nil {
		return err
	}
	if len(txs) > 0 {
		used, missing, err := w.recordReceipts(ctx, cursor, txs)
		if err != nil {
			return err
		}
		w.update(func(s *Status) { s.InFlight, s.Nonce = len(missing), used })
		if len(missing) > 0 {
			return w.resubmit(ctx, used, missing)
		}
	}
	if cursor.Halted != "" {
		return nil // a transaction sent now could never be seen
	}
	return w.sendNext(ctx, cursor)
}

// work is one kind of work of a writer. The writer calls its methods from one
// goroutine, and only while it holds the lease.
type work interface {
	// carries reports whether transactions of a kind belong to this work.
	carries(kind TxKind) bool
	// budgetPercent is the part of the daily budget up to which this work may begin a transaction.
	budgetPercent() uint64
	// count publishes how much is due. It is called every countEvery.
	count(ctx context.Context) error
	// finish finishes what is due and needs no transaction.
	finish(ctx context.Context, cursor ledger.Cursor) error
	// check fails with a blocker if every transaction of this work would be reverted.
	check(ctx context.Context) error
	// next returns the contents of the next transaction, or a batch without items if no item is due. It calls a node
	// only if an item may be due.
	next(ctx context.Context) (batch, error)
	// mined is called when a transaction was mined and succeeded, once unless a reorg removes it.
	mined(t ChainTx, r *chain.Receipt)
	// reverted is called when a transaction was mined and reverted, before its items are due again. The writer calls
	// the function that it returns, if any, afterwards: it may make the items wait.
	reverted(ctx context.Context, t ChainTx) (then func() error, err error)
	// settle is called while the transaction is in a final block and items are still assigned to it. It may be called
	// again after it succeeded.
	settle(ctx context.Context, t ChainTx, r *chain.Receipt) error
	// resign drops state that another writer may change.
	resign()
}

// batch is the contents of one transaction.
type batch struct {
	kind  TxKind
	to    common.Address
	items []string // ids of the rows, the most urgent ones first; SaveChainTx assigns them
	// most returns the most gas that a transaction with the first n items may take.
	most func(n int) uint64
	// pack returns the calldata for the first n items.
	pack func(n int) []byte
	// refused is called when a node reports that the call for the first n items would be reverted or takes too much
	// gas. It returns the error of the round.
	refused func(ctx context.Context, n int, why error) error
}

// workOf returns the work with transactions of a kind, or nil.
func (w *Writer) workOf(kind TxKind) work {
	for _, k := range w.works {
		if k.carries(kind) {
			return k
		}
	}
	return nil
}
