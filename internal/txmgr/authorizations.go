package txmgr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// authorizationWork submits transfers that payers have signed. Its items are
// authorizations. One is done when its payment is final, which the indexer finds.
//
// Each is simulated right before it is sent. One that would be reverted and that no
// transaction has carried is refused, at no cost. Once a transaction has carried it, its
// signature is public, and only a final block past its window makes a refusal certain.
type authorizationWork struct {
	w     *Writer
	relay common.Address // submits several at once; zero without one

	// What follows is a cache: a new writer begins without it.
	batch   int                  // how many authorizations the next transaction takes
	skipped map[string]time.Time // those that would be reverted now, and until when they are skipped
}

func newAuthorizationWork(w *Writer) *authorizationWork {
	return &authorizationWork{
		w: w, relay: common.Address(w.conf.Chain.AuthorizationRelay), batch: maxAuthorizations, skipped: make(map[string]time.Time),
	}
}

func (k *authorizationWork) carries(kind store.TxKind) bool { return kind == store.TxAuthorization }

func (k *authorizationWork) budgetPercent() uint64 { return authorizationBudget }

func (k *authorizationWork) resign() {}

// count counts the due authorizations.
func (k *authorizationWork) count(ctx context.Context) error {
	due, err := k.w.conf.Store.CountDueAuthorizations(ctx, k.w.conf.Chain.Key)
	if err != nil {
		return err
	}
	k.w.conf.Metrics.authorizations.WithLabelValues(k.w.conf.Chain.Key).Set(float64(due))
	return nil
}

func (k *authorizationWork) finish(context.Context, store.Cursor) error { return nil }

func (k *authorizationWork) check(context.Context) error { return nil }

// next returns due authorizations that would be carried out now, the first to lapse first. It
// returns none if no authorizations are sent; those that were sent before are followed.
func (k *authorizationWork) next(ctx context.Context, _ store.Cursor) (batch, error) {
	if !k.w.conf.Gasless {
		return batch{}, nil
	}
	due, err := k.w.conf.Store.DueAuthorizations(ctx, k.w.conf.Chain.Key, maxDueAuthorizations)
	if err != nil || len(due) == 0 {
		return batch{}, err
	}
	ready, err := k.ready(ctx, due)
	if err != nil || len(ready) == 0 {
		return batch{}, err
	}
	if k.relay == (common.Address{}) || len(ready) == 1 && ready[0].call.Deployer == (common.Address{}) {
		return k.direct(ready[0]), nil
	}
	items := make([]string, len(ready))
	calls := make([]contracts.RelayedAuthorization, len(ready))
	for i, r := range ready {
		items[i], calls[i] = r.row.ID, r.call
	}
	return batch{
		kind: store.TxAuthorization, to: k.relay, items: items,
		pack: func(n int) []byte { return contracts.PackRelay(calls[:n]) },
		refused: func(_ context.Context, n int, why error) error {
			k.batch = max(1, n/2)
			return fmt.Errorf("the relay at %s refuses %d authorizations: %w", k.relay, n, why)
		},
	}, nil
}

// readyAuthorization is an authorization that would be carried out now.
type readyAuthorization struct {
	row  store.Authorization
	call contracts.RelayedAuthorization
}

// direct returns the batch of one authorization, which calls the token itself.
func (k *authorizationWork) direct(r readyAuthorization) batch {
	return batch{
		kind: store.TxAuthorization, to: r.call.Token, items: []string{r.row.ID},
		pack: func(int) []byte { return contracts.PackTransferWithAuthorization(r.call) },
		refused: func(ctx context.Context, _ int, why error) error {
			return errors.Join(k.refuse(ctx, r.row, invoice.RefusedReverts), fmt.Errorf("the token refuses authorization %s: %w", r.row.ID, why))
		},
	}
}

// ready returns those of the due authorizations that a simulation carries out, up to the
// size of a batch, and one for each payer: what a payer has may not suffice for two. It
// refuses those that were never sent and cannot be.
func (k *authorizationWork) ready(ctx context.Context, due []store.Authorization) ([]readyAuthorization, error) {
	now := k.w.conf.Now()
	maps.DeleteFunc(k.skipped, func(_ string, until time.Time) bool { return !now.Before(until) })
	ids := make([]string, len(due))
	for i, a := range due {
		ids[i] = a.InvoiceID
	}
	invoices, err := k.w.conf.Store.InvoicesWithoutLines(ctx, ids)
	if err != nil {
		return nil, err
	}
	awaited := make(map[string]invoice.Amount, len(invoices))
	for _, inv := range invoices {
		awaited[inv.ID] = inv.Due()
	}
	var ready []readyAuthorization
	payers := make(map[invoice.Address]bool)
	for _, a := range due {
		if _, skipped := k.skipped[a.ID]; skipped || payers[a.From] {
			continue
		}
		call, reason, err := k.simulate(ctx, a, awaited[a.InvoiceID])
		if err != nil {
			return nil, err
		}
		if reason != "" {
			if err := k.refuse(ctx, a, reason); err != nil {
				return nil, err
			}
			continue
		}
		payers[a.From] = true
		if ready = append(ready, readyAuthorization{a, call}); len(ready) == k.batch {
			break
		}
	}
	return ready, nil
}

// simulate returns an authorization as contracts take it, and why it is not to be sent;
// the reason is empty if it would be carried out.
func (k *authorizationWork) simulate(ctx context.Context, a store.Authorization, awaited invoice.Amount) (contracts.RelayedAuthorization, invoice.Refusal, error) {
	value := a.Value.Bytes()
	call, err := contracts.AuthorizationOf(common.Address(a.Token), contracts.Authorization{
		From: common.Address(a.From), To: common.Address(a.To), Value: new(big.Int).SetBytes(value[:]),
		ValidAfter: big.NewInt(a.ValidAfter.Unix()), ValidBefore: big.NewInt(a.ValidBefore.Unix()), Nonce: common.Hash(a.Nonce),
	}, a.Signature)
	switch {
	case err != nil:
		return call, invoice.RefusedSignature, nil //nolint:nilerr // it was checked before it was stored
	case awaited != a.Value:
		return call, invoice.RefusedInvoiceClosed, nil
	}
	to, data := call.Token, contracts.PackTransferWithAuthorization(call)
	if call.Deployer != (common.Address{}) {
		if k.relay == (common.Address{}) {
			return call, invoice.RefusedNotDeployed, nil
		}
		to, data = k.relay, contracts.PackRelayOne(call)
	}
	if _, err := k.w.node.estimate(ctx, k.w.sender, to, data); reverted(err) {
		return call, invoice.RefusedReverts, nil
	} else if err != nil {
		return call, "", err
	}
	return call, "", nil
}

// refuse refuses an authorization that no transaction ever carried. Another one is skipped
// for retryAuthorization: it may still be carried out until its window closes.
func (k *authorizationWork) refuse(ctx context.Context, a store.Authorization, reason invoice.Refusal) error {
	if a.TxID != "" {
		k.skipped[a.ID] = k.w.conf.Now().Add(retryAuthorization)
		return nil
	}
	k.w.conf.Logger.Info("authorization refused before it was sent", "authorization", a.ID, "invoice", a.InvoiceID, "reason", reason)
	return k.w.conf.Store.RefuseAuthorizations(ctx, k.w.lease, reason, k.w.conf.Now(), a.ID)
}

func (k *authorizationWork) mined(store.ChainTx, *chain.Receipt) {
	k.batch = min(2*k.batch, maxAuthorizations)
}

func (k *authorizationWork) reverted(store.ChainTx) error { return nil }

// settle makes the authorizations that the transaction did not carry out due again.
func (k *authorizationWork) settle(ctx context.Context, t store.ChainTx, _ *chain.Receipt) error {
	return k.w.conf.Store.ReleaseAuthorizations(ctx, k.w.lease, t.ID)
}
