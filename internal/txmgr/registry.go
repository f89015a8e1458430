package txmgr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// registryWork opens and closes commitments in the chain's registry. Its items are
// intents. An intent is done when its registry event is final.
type registryWork struct {
	w       *Writer
	address common.Address // of the registry; without one no intent is due

	// The fields below are a cache: a new writer begins without it.
	batch     int                     // number of intents in the next transaction
	skipped   map[intentKey]time.Time // intents that the registry refused on their own, with the end of their skip
	satisfied map[string]blockRef     // by intent: the block as of which the registry satisfies it
	time      uint64                  // time of the newest block at the last request
}

func newRegistryWork(w *Writer) *registryWork {
	return &registryWork{
		w: w, address: common.Address(w.conf.Chain.Registry), batch: maxBatch,
		skipped: make(map[intentKey]time.Time), satisfied: make(map[string]blockRef),
	}
}

// intentClass is a common property of a batch's intents. The registry stores nothing for expired commitments that it
// closes, so they are not closed together with others.
type intentClass struct {
	kind    invoice.IntentKind
	expired bool
}

func (k *registryWork) classOf(in ledger.Intent) intentClass {
	return intentClass{in.Kind, in.Kind == invoice.IntentClose && k.time > expiryOf(in)}
}

// expiryOf returns when an intent's invoice expires, in the registry's time.
func expiryOf(in ledger.Intent) uint64 { return uint64(max(0, in.ExpiresAt.Unix())) }

// intentKey identifies the request of an intent.
type intentKey struct {
	kind       invoice.IntentKind
	commitment invoice.Hash
}

// blockRef is the block as of which an intent is satisfied. Once it is final, the intent is done.
type blockRef struct {
	number uint64
	hash   common.Hash
}

func (k *registryWork) carries(kind TxKind) bool { return kind == TxOpen || kind == TxClose }

func (k *registryWork) budgetPercent() uint64 { return registryBudget }

func (k *registryWork) resign() { clear(k.satisfied) }

// count counts the due intents.
func (k *registryWork) count(ctx context.Context) error {
	w := k.w
	due, elsewhere, err := ledger.DueCount(ctx, w.conf.Store, w.conf.Chain.Key, w.conf.Chain.Registry)
	if err != nil {
		return err
	}
	w.conf.Metrics.due.WithLabelValues(w.conf.Chain.Key).Set(float64(due))
	w.conf.Metrics.elsewhere.WithLabelValues(w.conf.Chain.Key).Set(float64(elsewhere))
	w.update(func(s *Status) { s.Due, s.Elsewhere = due, elsewhere })
	return nil
}

// check fails if the registry reverts even an empty batch of the operator's account.
func (k *registryWork) check(ctx context.Context) error {
	none := pack(invoice.IntentOpen, nil, 0)
	_, err := k.w.node.estimate(ctx, k.w.sender, k.address, none)
	if err != nil && k.w.node.refuses(ctx, k.w.sender, k.address, none, err) {
		return fmt.Errorf("%w: account %s, registry %s: %w", errRole, common.Address(k.w.sender), k.address, err)
	}
	return err
}

// next returns the oldest due intents of one kind that need a transaction.
func (k *registryWork) next(ctx context.Context) (batch, error) {
	intents, err := k.pickBatch(ctx)
	if err != nil || len(intents) == 0 {
		return batch{}, err
	}
	kind := intents[0].Kind
	ids, commitments := make([]string, len(intents)), make([]invoice.Hash, len(intents))
	var latest uint64
	for i, in := range intents {
		ids[i], commitments[i] = in.ID, in.CommitmentID
		latest = max(latest, expiryOf(in))
	}
	return batch{
		kind: TxKind(kind), to: k.address, items: ids,
		most: func(n int) uint64 { return txGas + uint64(n)*intentGas },
		pack: func(n int) []byte { return pack(kind, commitments[:n], latest) },
		refused: func(ctx context.Context, n int, why error) error {
			return k.classifyRevert(ctx, kind, commitments[:n], why)
		},
	}, nil
}

func (k *registryWork) mined(ChainTx, *chain.Receipt) { k.batch = min(2*k.batch, maxBatch) }

func (k *registryWork) reverted(_ context.Context, t ChainTx) (then func() error, err error) {
	kind, commitments, err := commitmentsOf(t)
	if err == nil {
		k.halveBatch(kind, commitments)
	}
	return nil, err
}

// settle ends intents for which the indexer has seen no event, if the receipt has an event for each commitment.
// Otherwise it makes them due again: the registry skipped some that were paid or closed before, and they are checked
// again.
func (k *registryWork) settle(ctx context.Context, t ChainTx, r *chain.Receipt) error {
	_, commitments, err := commitmentsOf(t)
	if err != nil {
		return err
	}
	logged := 0
	for _, l := range r.Logs {
		if l.Address == common.Address(t.Destination) {
			logged++
		}
	}
	if logged < len(commitments) {
		return ledger.ReleaseIntents(ctx, k.w.conf.Store, k.w.lease, t.ID)
	}
	return ledger.SettleIntents(ctx, k.w.conf.Store, k.w.lease, t.ID)
}

// pickBatch returns the oldest due intents of one kind that need a transaction. A batch of closes has only expired
// invoices, or only others.
func (k *registryWork) pickBatch(ctx context.Context) ([]ledger.Intent, error) {
	now := k.w.conf.Schedule()
	maps.DeleteFunc(k.skipped, func(_ intentKey, until time.Time) bool { return !now.Before(until) })
	var batch []ledger.Intent
	after := ""
	for range maxPages {
		page, err := ledger.DueIntents(ctx, k.w.conf.Store, k.w.conf.Chain.Key, k.w.conf.Chain.Registry, after, maxBatch)
		if err != nil {
			return nil, err
		}
		wanting, err := k.unsatisfied(ctx, page)
		if err != nil {
			return nil, err
		}
		for _, in := range wanting {
			if len(batch) > 0 && k.classOf(in) != k.classOf(batch[0]) {
				continue
			}
			if batch = append(batch, in); len(batch) == k.batch {
				return batch, nil
			}
		}
		if len(page) < maxBatch {
			break
		}
		after = page[len(page)-1].ID
	}
	return batch, nil
}

// unsatisfied returns the intents that are neither skipped nor satisfied as of the newest block. It remembers the
// satisfied ones: the indexer has yet to read their event, or the event came before the intent.
func (k *registryWork) unsatisfied(ctx context.Context, page []ledger.Intent) ([]ledger.Intent, error) {
	var unknown []ledger.Intent
	var commitments []invoice.Hash
	for _, in := range page {
		_, stands := k.satisfied[in.ID]
		_, skipped := k.skipped[intentKey{in.Kind, in.CommitmentID}]
		if !stands && !skipped {
			unknown = append(unknown, in)
			commitments = append(commitments, in.CommitmentID)
		}
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	head, err := k.w.node.head(ctx)
	if err != nil {
		return nil, err
	}
	statuses, err := k.w.node.statuses(ctx, k.address, *head.Hash, commitments)
	if err != nil {
		return nil, err
	}
	k.time = head.Time.N
	// A commitment that is paid or closed needs to be neither opened nor closed. On one branch of the chain that does not
	// change.
	var wanting, ended []ledger.Intent
	for i, in := range unknown {
		if statuses[i] == contracts.StatusNone {
			wanting = append(wanting, in)
		} else {
			ended = append(ended, in)
		}
	}
	denied, certain := k.denied(ctx, *head.Hash, ended)
	for i, in := range ended {
		if denied[i] {
			wanting = append(wanting, in)
		} else if certain {
			k.satisfied[in.ID] = blockRef{head.Number.N, *head.Hash}
		}
	}
	return wanting, nil
}

// denied reports which intents the other nodes do not confirm to be satisfied as of a block, by as many nodes as confirm
// it. The result is not certain if there are other nodes and none answers.
func (k *registryWork) denied(ctx context.Context, at common.Hash, intents []ledger.Intent) (denied []bool, certain bool) {
	denied, against := make([]bool, len(intents)), make([]int, len(intents))
	commitments := make([]invoice.Hash, len(intents))
	for i, in := range intents {
		commitments[i] = in.CommitmentID
	}
	nodes := k.w.nodes()
	certain = len(nodes) < 2
	for n := 1; n < len(nodes) && len(intents) > 0; n++ { // the first one is k.w.node's
		statuses, err := nodes[n].statuses(ctx, k.address, at, commitments)
		certain = certain || err == nil
		for i, status := range statuses {
			if status == contracts.StatusNone {
				against[i]++
			} else {
				against[i]--
			}
			denied[i] = against[i] > 0
		}
	}
	return denied, certain
}

// finish finishes the intents that a final block satisfies. If another block
// became final at its height, they are checked again.
func (k *registryWork) finish(ctx context.Context, cursor ledger.Cursor) error {
	final := make(map[blockRef][]string)
	for id, at := range k.satisfied {
		if at.number <= cursor.Confirmed.Number {
			final[at] = append(final[at], id)
		}
	}
	for at, ids := range final {
		canonical, err := k.w.node.block(ctx, hexutil.EncodeUint64(at.number))
		if err != nil {
			return err
		}
		if canonical == nil {
			return errors.New("the node lacks a block that is final")
		}
		if *canonical.Hash == at.hash {
			if err := ledger.SatisfyIntents(ctx, k.w.conf.Store, k.w.lease, ids); err != nil {
				return err
			}
		}
		for _, id := range ids {
			delete(k.satisfied, id)
		}
	}
	return nil
}

// halveBatch halves the size of the next batches after the registry reverted one, to isolate the intent that it
// rejects. An intent that was reverted in a batch of one is skipped for skipFor.
func (k *registryWork) halveBatch(kind invoice.IntentKind, refused []invoice.Hash) {
	k.batch = max(1, len(refused)/2)
	if len(refused) == 1 {
		k.skipped[intentKey{kind, refused[0]}] = k.w.conf.Schedule().Add(skipFor)
	}
}

// classifyRevert determines whether the registry rejects the operator's account or the commitments, and returns that as
// an error.
func (k *registryWork) classifyRevert(ctx context.Context, kind invoice.IntentKind, commitments []invoice.Hash, why error) error {
	if err := k.check(ctx); err != nil {
		return k.w.noteBlocker(k, 0, err)
	}
	k.halveBatch(kind, commitments)
	return fmt.Errorf("the registry refuses to %s %d commitments: %w", kind, len(commitments), why)
}

// pack writes the calldata with which the registry opens commitments, or closes commitments that have all expired by a
// time.
func pack(kind invoice.IntentKind, commitments []invoice.Hash, latest uint64) []byte {
	ids := make([][32]byte, len(commitments))
	for i, id := range commitments {
		ids[i] = id
	}
	if kind == invoice.IntentClose {
		return contracts.NewInvoiceRegistry().PackClose(ids, latest)
	}
	return contracts.NewInvoiceRegistry().PackOpen(ids)
}

// commitmentsOf decodes the kind and commitments of a transaction.
func commitmentsOf(t ChainTx) (invoice.IntentKind, []invoice.Hash, error) {
	tx, err := decode(t.Attempts[0])
	if err != nil {
		return "", nil, err
	}
	// A selector, the offset of the commitments, when the last one of those to close expires, their number, and the
	// commitments.
	words := tx.Data()[4+2*32:]
	if t.Kind == TxClose {
		words = words[32:]
	}
	ids := make([]invoice.Hash, len(words)/32)
	for i := range ids {
		ids[i] = invoice.Hash(words[32*i:])
	}
	return invoice.IntentKind(t.Kind), ids, nil
}
