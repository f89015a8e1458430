package commit

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// submit signs a transaction for a batch, saves it and broadcasts it. An empty
// batch uses up a nonce.
func (w *Writer) submit(ctx context.Context, nonce uint64, kind invoice.IntentKind, batch []store.Intent) error {
	commitments, intents := make([]invoice.Hash, len(batch)), make([]string, len(batch))
	for i, in := range batch {
		commitments[i], intents[i] = in.CommitmentID, in.ID
	}
	data := pack(kind, commitments)
	gas, err := w.node.estimate(ctx, w.sender, w.registry(), data)
	if refused(err) {
		return w.turnedDown(ctx, kind, commitments, err)
	}
	if err != nil {
		return err
	}
	gas += gas * gasMargin / 100
	head, offer, err := w.price(ctx, gas)
	if err != nil {
		return w.obstructed(gas, err)
	}
	t := store.ChainTx{
		ID: w.ids.New(invoice.PrefixTx), ChainKey: w.conf.Chain.Key, Sender: w.sender, Nonce: nonce,
		Kind: kind, Status: store.TxSent, CreatedMS: w.conf.Now().UnixMilli(),
	}
	form, err := w.sign(nonce, gas, data, offer)
	if err != nil {
		return err
	}
	t.Attempts = []store.TxAttempt{form}
	if err := w.conf.Store.SaveChainTx(ctx, w.lease, t, intents); err != nil {
		return fmt.Errorf("save a registry transaction: %w", err)
	}
	w.conf.Metrics.txs.WithLabelValues(w.conf.Chain.Key, string(store.TxSent)).Inc()
	w.conf.Logger.Info("registry transaction signed", "tx", form.TxHash, "kind", kind, "nonce", nonce, "commitments", len(batch))
	w.update(func(s *Status) { s.InFlight++ })
	return w.push(ctx, t, head, true)
}

// push broadcasts a transaction when it is time to. When it is stuck, and the
// first in line, it does so in a form with a higher fee.
func (w *Writer) push(ctx context.Context, t store.ChainTx, head *block, first bool) error {
	now, form := w.conf.Now(), t.Attempts[len(t.Attempts)-1]
	f := w.flights[t.ID]
	stuck := f.form == form.TxHash && uint64(*head.Number) >= f.since+bumpBlocks &&
		now.UnixMilli()-form.CreatedMS >= bumpAfter.Milliseconds()
	var dear error
	if first && stuck && !unfunded(f.err) {
		form, dear = w.raise(ctx, t, head, outbid(f.err))
	}
	if f.form != form.TxHash {
		f = flight{form: form.TxHash, since: uint64(*head.Number)}
	} else if now.Sub(f.at) < rebroadcastAfter {
		return errors.Join(dear, f.trouble())
	}
	f.at, f.err = now, w.node.broadcast(ctx, form.Raw)
	if unfunded(f.err) {
		f.err = w.short(ctx, form, f.err)
	}
	w.flights[t.ID] = f
	return errors.Join(dear, f.trouble())
}

// raise signs and saves a form of a transaction that replaces the last one,
// and returns it; or returns the last one, and why the fee cannot rise. When
// that was outbid, by a node's own rule or another program's transaction, an
// eighth more would be long in coming there, and the fee is doubled.
func (w *Writer) raise(ctx context.Context, t store.ChainTx, head *block, outbid bool) (store.TxAttempt, error) {
	last := t.Attempts[len(t.Attempts)-1]
	market, err := w.market(ctx, head)
	if err != nil {
		return last, err
	}
	if outbid {
		market.cap = greatest(market.cap, new(big.Int).Lsh(last.FeeCap, 1))
		market.tip = greatest(market.tip, new(big.Int).Lsh(last.TipCap, 1))
	}
	offer, ok := raised(fees{cap: last.FeeCap, tip: last.TipCap}, market, w.conf.MaxFee)
	if !ok || len(t.Attempts) >= maxAttempts {
		return last, fmt.Errorf("%w: transaction %s is stuck after %d forms, offers %s wei for a unit of gas, and may offer %s",
			errDear, last.TxHash, len(t.Attempts), last.FeeCap, w.conf.MaxFee)
	}
	old, err := decode(last)
	if err != nil {
		return last, err
	}
	if err := w.afford(ctx, old.Gas(), offer); err != nil {
		return last, err // the last one may still be carried out
	}
	form, err := w.sign(t.Nonce, old.Gas(), old.Data(), offer)
	if err != nil {
		return last, err
	}
	if err := w.conf.Store.AddAttempt(ctx, w.lease, t.ID, len(t.Attempts)+1, form); err != nil {
		return last, fmt.Errorf("save a registry transaction with a higher fee: %w", err)
	}
	w.conf.Metrics.bumps.WithLabelValues(w.conf.Chain.Key).Inc()
	w.conf.Logger.Info("registry transaction is stuck; offering more", "tx", form.TxHash, "replaces", last.TxHash,
		"nonce", t.Nonce, "fee_cap", offer.cap, "tip_cap", offer.tip)
	return form, nil
}

// sign makes a form of a transaction to the registry.
func (w *Writer) sign(nonce, gas uint64, data []byte, offer fees) (store.TxAttempt, error) {
	id, registry := new(big.Int).SetUint64(w.conf.Chain.ID), w.registry()
	tx, err := types.SignNewTx(w.conf.Key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID: id, Nonce: nonce, GasTipCap: offer.tip, GasFeeCap: offer.cap, Gas: gas, To: &registry, Data: data,
	})
	if err != nil {
		return store.TxAttempt{}, fmt.Errorf("sign a registry transaction: %w", err)
	}
	raw, err := tx.MarshalBinary()
	return store.TxAttempt{
		TxHash: invoice.Hash(tx.Hash()), Raw: raw, FeeCap: offer.cap, TipCap: offer.tip, CreatedMS: w.conf.Now().UnixMilli(),
	}, err
}

// pack writes the calldata that has the registry open or close commitments.
func pack(kind invoice.IntentKind, commitments []invoice.Hash) []byte {
	ids := make([][32]byte, len(commitments))
	for i, id := range commitments {
		ids[i] = id
	}
	if kind == invoice.IntentClose {
		return contracts.NewInvoiceRegistry().PackClose(ids)
	}
	return contracts.NewInvoiceRegistry().PackOpen(ids)
}

// contents reads what a transaction tells the registry.
func contents(t store.ChainTx) (invoice.IntentKind, []invoice.Hash, error) {
	tx, err := decode(t.Attempts[0])
	if err != nil {
		return "", nil, err
	}
	// A selector, the offset of the only argument, its length, its elements.
	words := tx.Data()[4+2*32:]
	ids := make([]invoice.Hash, len(words)/32)
	for i := range ids {
		ids[i] = invoice.Hash(words[32*i:])
	}
	return t.Kind, ids, nil
}

func decode(a store.TxAttempt) (*types.Transaction, error) {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(a.Raw); err != nil {
		return nil, fmt.Errorf("decode the saved transaction %s: %w", a.TxHash, err)
	}
	return tx, nil
}
