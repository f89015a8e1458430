package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Snapshot is what the database holds of the things that a decision looks at, as they were before it. A decision is a
// pure function of a snapshot. It asks for what it needs: what was not read counts as absent, is read, and the
// decision is made again. Each read has one statement for each kind of facts, however many transfers ask.
type Snapshot struct {
	scope      chainScope
	transferID func(prefix string, t invoice.Transfer) string
	lookups    map[AmountKey]AmountLookup         // of the transfers
	kinds      []interface{ read() (int, error) } // all facts below
	lacking    bool                               // something was asked for that was not read

	settlements facts[invoice.Address, bool]
	deposits    facts[invoice.Address, string] // invoices
	bound       facts[*invoice.Transfer, BoundAuthorization]
	lastSeq     facts[struct{}, int64] // number of the newest event
	payments    facts[string, PaymentRow]
	undecided   facts[string, bool] // payments
	receivers   facts[invoice.Address, ReceiverState]

	named    facts[invoice.Hash, string]      // invoices by commitment
	assigned facts[*invoice.Transfer, string] // invoices that have the amount as transfer amount
	byAmount facts[listKey, []string]         // invoices with the amount, as theirs or as a former remainder
	tolerant facts[listKey, []string]         // invoices with a tolerance and a larger amount

	invoices   facts[string, invoice.Invoice]
	created    facts[string, int64]            // numbers of invoice.created events by invoice, 0 if removed
	paymentsOf facts[string, []PaymentRow]     // by invoice
	inTime     facts[expiryKey, []string]      // payments of invoices that were mined before these expired
	registered facts[string, bool]             // invoices with a confirmed payment through the registry
	waivers    facts[string, invoice.Decision] // decisions that waive the rest of invoices

	refunds      facts[string, invoice.Refund]
	refundsOf    facts[string, []invoice.Refund]             // by payment
	recordsOf    facts[string, []invoice.RefundRecord]       // by payment: those that may reserve a part of it
	refundedSums facts[string, RefundedSum]                  // by payment
	submissions  facts[string, []invoice.Submission]         // by record
	recorded     facts[string, bool]                         // ids of records that exist
	preparedBy   facts[invoice.Hash, []invoice.RefundRecord] // by tag
	fitting      facts[fittingKey, []invoice.RefundRecord]   // pending ones that no transfer pays
	fittingFirst int                                         // length of the first of these lists
	paidPairs    facts[Pair, bool]
	between      facts[Pair, []string]   // the newest payments between two accounts
	newest       facts[string, []string] // the newest payments of invoices
	proved       facts[invoice.Address, bool]
	sweeps       facts[string, invoice.Sweep]
}

// expiryKey is an invoice and when it expires, in Unix seconds.
type expiryKey struct {
	invoiceID string
	expiresAt int64
}

// facts are what the database holds of one kind, by key.
type facts[K comparable, V any] struct {
	rows    map[K]V // what was read; zero where there is nothing
	wanted  map[K]bool
	asked   []K // wanted, in the order in which it was asked for
	lacking *bool
	query   func(keys []K) (map[K]V, error)
}

// of returns the facts of a key. known is false if they were not read; then they will be.
func (f *facts[K, V]) of(key K) (v V, known bool) {
	if v, known = f.rows[key]; !known {
		*f.lacking = true
		if !f.wanted[key] {
			f.wanted[key], f.asked = true, append(f.asked, key)
		}
	}
	return v, known
}

// get is of for callers that need not know whether the facts were read.
func (f *facts[K, V]) get(key K) V {
	v, _ := f.of(key)
	return v
}

// has reports whether the facts of a key were read.
func (f *facts[K, V]) has(key K) bool {
	_, known := f.rows[key]
	return known
}

// read reads what was asked for since the last read, and returns how much that was.
func (f *facts[K, V]) read() (n int, err error) {
	if len(f.wanted) == 0 {
		return 0, nil
	}
	keys := f.asked
	found, err := f.query(keys)
	for _, key := range keys {
		f.rows[key] = found[key]
	}
	clear(f.wanted)
	f.asked = nil
	return len(keys), err
}

// load returns a state with some invoices.
func (s *Service) load(ctx context.Context, tx *db.Tx, chainKey string, invoiceIDs ...string) (*Changes, error) {
	return change(ctx, tx, s.scope(chainKey, Cursor{}), func(ch *Changes) {
		for _, id := range invoiceIDs {
			ch.invoice(id)
		}
	})
}

const (
	// maxReads bounds how often a decision about one transfer, or about stored rows, is made again with more facts. Each
	// of the few steps of a decision may need another read, and each longer list of candidates.
	maxReads = 200
	// fewReads bounds it for many transfers, which are divided beyond.
	fewReads = 32
)

// errManyReads is returned for a decision that was not complete after many reads.
var errManyReads = errors.New("a decision was not complete after many reads")

// decide makes a decision with all facts that it asks for. The decision must depend on nothing else. transfers are those
// that it is about, in the chain's order. The chain's cursor must be locked.
func decide(
	ctx context.Context, tx *db.Tx, scope chainScope, transfers []invoice.Transfer, decision func(*Snapshot) *Changes,
) (*Changes, error) {
	return newSnapshot(ctx, tx, scope, transfers).decide(maxReads, decision)
}

// decide makes a decision again until it has asked for nothing that was not read.
func (s *Snapshot) decide(reads int, decision func(*Snapshot) *Changes) (*Changes, error) {
	for range reads {
		ch := decision(s)
		if n, err := s.read(); n == 0 || err != nil {
			return ch, err
		}
	}
	return nil, fmt.Errorf("chain %s: %w", s.scope.key, errManyReads)
}

// change is decide for a decision that begins with nothing changed.
func change(ctx context.Context, tx *db.Tx, scope chainScope, decision func(ch *Changes)) (*Changes, error) {
	return decide(ctx, tx, scope, nil, func(before *Snapshot) *Changes {
		ch := newChanges(before)
		decision(ch)
		return ch
	})
}

// read reads what was asked for since the last read, and returns how much that was.
func (s *Snapshot) read() (n int, err error) {
	for _, kind := range s.kinds {
		more, err := kind.read()
		if err != nil {
			return n, err
		}
		n += more
	}
	return n, nil
}
