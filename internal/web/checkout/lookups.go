package checkout

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
)

// Limits of lookups at the nodes.
const (
	// LookupsOfInvoice bounds the lookups per minute for one invoice.
	LookupsOfInvoice = 15
	// LookupsOfClient bounds the lookups per minute of one client network.
	LookupsOfClient = 30
	// Lookups bounds the lookups per minute of all clients.
	Lookups = 300
	// MaxLookups bounds the lookups in flight. A merchant and a client network have a share.
	MaxLookups = 16
)

const (
	// AnswerWithin is how long an answer about a transaction waits for the nodes. A lookup that takes
	// longer continues, and the page asks again.
	AnswerWithin = 1500 * time.Millisecond
	// keepLookups is how long a finished lookup answers the same question.
	keepLookups = 5 * time.Second
	// keepQueued is how long a lookup is kept whose transaction was queued, so that the next one can find out that it
	// was replaced.
	keepQueued = maxAgain * againAsk
)

// Inspector looks up transactions at the nodes. *chain.Inspector implements it.
type Inspector interface {
	// Transaction returns the report of a transaction on the named chain or another one.
	// The error is chain.ErrUnavailable if the chain's nodes do not answer.
	Transaction(ctx context.Context, chainKey string, tx invoice.Hash, to invoice.Address) (chain.Report, error)
	// IsReplaced reports whether an unknown transaction of a sender can no longer be mined. The
	// error is chain.ErrUnavailable.
	IsReplaced(ctx context.Context, chainKey string, sender invoice.Address, nonce uint64) (bool, error)
}

// lookups are the lookups of transactions at the nodes. Requests with the same question share one.
//
// Invariant: recent holds those in flight, and those that ended less than keepLookups or, if their transaction was
// queued, keepQueued ago; older ones are removed when one begins.
type lookups struct {
	conf     Config
	limit    *limits.Divided
	inFlight *limits.Shares[limits.Party]

	mu     sync.Mutex
	recent map[transactionQuery]*nodeLookup
}

// transactionQuery is a question about a transaction.
type transactionQuery struct {
	invoiceID string
	chainKey  string
	tx        invoice.Hash
	to        invoice.Address
}

// nodeLookup is a lookup. The fields below done are set before it is closed.
type nodeLookup struct {
	done     chan struct{}
	ended    time.Time
	report   chain.Report
	queued   *chain.Report // of this or an earlier lookup; nil if the transaction was not queued
	replaced bool
	err      error
}

// isNewer reports whether the lookup has not ended, or ended less than a time ago.
func (n *nodeLookup) isNewer(now time.Time, than time.Duration) bool {
	select {
	case <-n.done:
		return now.Sub(n.ended).Abs() < than
	default:
		return true
	}
}

// ask returns the lookup that answers a question: a recent one, or one that begins, for the
// merchant owner. The error of a refusal is errTooOften or *limits.ExceededError.
func (l *lookups) ask(r *http.Request, owner string, q transactionQuery) (*nodeLookup, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.conf.Now()
	for other, lookup := range l.recent {
		if !lookup.isNewer(now, keepLookups) && (lookup.queued == nil || !lookup.isNewer(now, keepQueued)) {
			delete(l.recent, other)
		}
	}
	lookup := &nodeLookup{done: make(chan struct{})}
	if last := l.recent[q]; last != nil {
		if last.isNewer(now, keepLookups) {
			return last, nil
		}
		lookup.queued = last.queued
	}
	payer := limits.Payer(r.Context(), owner)
	if l.inFlight.Take(1, payer...) != nil {
		return nil, errTooOften
	}
	done := func() { l.inFlight.Give(1, payer...) }
	if err := l.limit.Take(r.Context(), owner, q.invoiceID); err != nil {
		done()
		return nil, err
	}
	l.recent[q] = lookup
	ctx := chain.OnBehalfOf(context.WithoutCancel(r.Context()), owner)
	go func() {
		defer done()
		l.run(ctx, q, lookup)
	}()
	return lookup, nil
}

// run asks the nodes, which the inspector bounds.
func (l *lookups) run(ctx context.Context, q transactionQuery, lookup *nodeLookup) {
	lookup.report, lookup.err = l.conf.Inspector.Transaction(ctx, q.chainKey, q.tx, q.to)
	switch {
	case lookup.err != nil:
	case lookup.report.State == chain.Queued && lookup.report.Chain.Key == q.chainKey:
		lookup.queued = &lookup.report
	case lookup.report.State == chain.Unknown && lookup.queued != nil:
		lookup.replaced, lookup.err = l.conf.Inspector.IsReplaced(ctx, q.chainKey, lookup.queued.Sender, lookup.queued.Nonce)
	}
	if errors.Is(lookup.err, chain.ErrUnavailable) {
		l.conf.Logger.LogAttrs(ctx, slog.LevelWarn, "transaction not looked up",
			slog.String("chain", q.chainKey), slog.String("tx", q.tx.String()), slog.Any("err", lookup.err))
	}
	lookup.ended = l.conf.Now()
	close(lookup.done)
}

// await waits for the outcome, at most for AnswerWithin. ok is false if it is not known then.
func (n *nodeLookup) await(ctx context.Context) (ok bool) {
	timer := time.NewTimer(AnswerWithin)
	defer timer.Stop()
	select {
	case <-n.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
