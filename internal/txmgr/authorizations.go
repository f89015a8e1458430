package txmgr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// authorizationWork submits transfers that payers have signed. Its items are authorizations. An authorization is done
// when its payment is final, which the indexer detects.
//
// Each is simulated right before it is sent. If it would be reverted, no transaction has carried it and its nonce is
// unused, it is refused, at no cost. Otherwise its signature is public, and only a final block past its window makes a
// refusal certain.
type authorizationWork struct {
	w     *Writer
	relay common.Address // submits several in one transaction; zero without one

	// The fields below are a cache: a new writer begins without it.
	batch    int                             // number of authorizations in the next transaction
	attempts map[string]authorizationAttempt // of due authorizations, by id
	head     time.Time                       // of the newest block that the indexer has read
	after    string                          // the merchant of the last simulation
}

// authorizationAttempt is the outcome of sending a due authorization.
type authorizationAttempt struct {
	seen   time.Time     // when it was last due
	until  time.Time     // end of the skip
	failed string        // newest transaction that did not carry it out; empty if there was no failure
	pause  time.Duration // the last skip's
}

func newAuthorizationWork(w *Writer) *authorizationWork {
	return &authorizationWork{
		w: w, relay: common.Address(w.conf.Chain.AuthorizationRelay), batch: maxAuthorizations, attempts: make(map[string]authorizationAttempt),
	}
}

func (k *authorizationWork) carries(kind TxKind) bool { return kind == TxAuthorization }

func (k *authorizationWork) budgetPercent() uint64 { return authorizationBudget }

func (k *authorizationWork) resign() {}

// count counts the due authorizations.
func (k *authorizationWork) count(ctx context.Context) error {
	due, err := ledger.CountDueAuthorizations(ctx, k.w.conf.Store, k.w.conf.Chain.Key)
	if err != nil {
		return err
	}
	k.w.conf.Metrics.authorizations.WithLabelValues(k.w.conf.Chain.Key).Set(float64(due))
	return nil
}

func (k *authorizationWork) finish(_ context.Context, cursor ledger.Cursor) error {
	k.head = cursor.Indexed.Time
	return nil
}

func (k *authorizationWork) check(context.Context) error { return nil }

// next returns due authorizations that would be carried out now, merchants in turn, the first to expire first. With
// gasless turned off it refuses those that no transaction carried and returns no others; it still follows those that
// were sent.
func (k *authorizationWork) next(ctx context.Context) (batch, error) {
	due, err := k.due(ctx)
	if err != nil || len(due) == 0 {
		return batch{}, err
	}
	if !k.w.conf.Gasless {
		return batch{}, k.refuseUnsent(ctx, due)
	}
	ready, err := k.ready(ctx, due)
	if err != nil || len(ready) == 0 {
		return batch{}, err
	}
	if k.relay == (common.Address{}) || len(ready) == 1 && ready[0].call.Deployer == (common.Address{}) {
		return k.direct(ready[0]), nil
	}
	items, limits := make([]string, len(ready)), make([]uint64, len(ready))
	calls := make([]contracts.RelayedAuthorization, len(ready))
	for i, r := range ready {
		items[i], calls[i], limits[i] = r.row.ID, r.call, r.limit
	}
	pack := func(n int) []byte { return contracts.PackRelay(calls[:n], limits[:n]) }
	return batch{
		kind: TxAuthorization, to: k.relay, items: items, pack: pack,
		most: func(n int) uint64 {
			before, _ := contracts.TransactionGas(pack(n))
			most := before + txGas
			for i := range n {
				most += contracts.RelayGas(calls[i], limits[i])
			}
			return most
		},
		refused: func(_ context.Context, n int, why error) error {
			k.batch = max(1, n/2)
			return fmt.Errorf("the relay at %s refuses %d authorizations: %w", k.relay, n, why)
		},
	}, nil
}

// due returns up to maxSimulations due authorizations that do not wait, except lapsed ones that were sent: one of each
// payer, because a payer's balance may not suffice for two, and merchants in turn, so that one merchant's
// authorizations do not delay the others'.
func (k *authorizationWork) due(ctx context.Context) ([]ledger.Authorization, error) {
	k.forget()
	all := make(map[string][]ledger.Authorization) // by merchant
	payers := make(map[invoice.Address]bool)
	lapse, id := time.Time{}, ""
	for range maxAuthorizationPages {
		page, err := ledger.DueAuthorizations(ctx, k.w.conf.Store, k.w.conf.Chain.Key, k.head, lapse, id, maxDueAuthorizations)
		if err != nil {
			return nil, err
		}
		for _, a := range page {
			if !k.isSkipped(a) && !payers[a.From] {
				payers[a.From] = true
				all[a.MerchantID] = append(all[a.MerchantID], a)
			}
		}
		if len(page) < maxDueAuthorizations {
			break
		}
		last := page[len(page)-1]
		lapse, id = last.ValidBefore, last.ID
	}
	merchants := slices.Sorted(maps.Keys(all))
	first, _ := slices.BinarySearch(merchants, k.after+"\x00")
	merchants = slices.Concat(merchants[first:], merchants[:first])
	var some []ledger.Authorization
	for len(some) < min(maxSimulations, len(payers)) {
		for _, m := range merchants {
			if len(all[m]) > 0 && len(some) < maxSimulations {
				some, all[m] = append(some, all[m][0]), all[m][1:]
			}
		}
	}
	return some, nil
}

// readyAuthorization is an authorization that would be carried out now.
type readyAuthorization struct {
	row   ledger.Authorization
	call  contracts.RelayedAuthorization
	limit uint64 // the most gas that the relay allows it
}

// direct returns the batch of one authorization, which calls the token directly.
func (k *authorizationWork) direct(r readyAuthorization) batch {
	return batch{
		kind: TxAuthorization, to: r.call.Token, items: []string{r.row.ID},
		most: func(int) uint64 { return chain.MaxAuthorizationGas },
		pack: func(int) []byte { return contracts.PackTransferWithAuthorization(r.call) },
		refused: func(_ context.Context, _ int, why error) error {
			k.skip(r.row.ID) // its next simulation decides whether to refuse it
			return fmt.Errorf("the token refuses authorization %s: %w", r.row.ID, why)
		},
	}
}

// ready returns the due authorizations that a simulation carries out, up to the size of a batch. It refuses those that
// were never sent and cannot be carried out.
func (k *authorizationWork) ready(ctx context.Context, due []ledger.Authorization) ([]readyAuthorization, error) {
	awaited, err := k.awaited(ctx, due)
	if err != nil {
		return nil, err
	}
	most := k.batch
	if k.relay == (common.Address{}) {
		most = 1
	}
	var ready []readyAuthorization
	var failed []error
	for _, a := range due {
		k.after = a.MerchantID
		found, err := k.simulate(chain.Simulating(ctx), a, awaited[a.InvoiceID])
		if err != nil {
			k.postpone(a.ID, err) // a slow or failing one must not delay the others
			failed = append(failed, fmt.Errorf("simulate authorization %s: %w", a.ID, err))
			if len(failed) == maxFailedSimulations || ctx.Err() != nil {
				break
			}
			continue
		}
		if found.refusal != "" {
			if err := k.refuse(ctx, a, found); err != nil {
				return nil, err
			}
			continue
		}
		if ready = append(ready, readyAuthorization{a, found.call, found.limit}); len(ready) == most {
			break
		}
	}
	if err := errors.Join(failed...); err != nil && len(ready) == 0 {
		return nil, err
	} else if err != nil {
		k.w.conf.Logger.Warn("simulation of an authorization failed, will retry", "err", err)
	}
	return ready, nil
}

// awaited returns the amounts that the invoices of authorizations await, by invoice.
func (k *authorizationWork) awaited(ctx context.Context, due []ledger.Authorization) (map[string]invoice.Amount, error) {
	ids := make([]string, len(due))
	for i, a := range due {
		ids[i] = a.InvoiceID
	}
	invoices, err := ledger.InvoicesWithoutLines(ctx, k.w.conf.Store, ids)
	awaited := make(map[string]invoice.Amount, len(invoices))
	for _, inv := range invoices {
		awaited[inv.ID] = inv.Due()
	}
	return awaited, err
}

// isSkipped reports whether a due authorization waits. After a transaction that did not carry it out it waits for
// retryAuthorization, and twice as long each time: the payer's account may behave differently in a simulation, at the
// operator's cost.
func (k *authorizationWork) isSkipped(a ledger.Authorization) bool {
	now := k.w.conf.Schedule()
	last, known := k.attempts[a.ID]
	if known && a.TxID != last.failed {
		last.double(now)
	}
	last.seen, last.failed = now, a.TxID
	k.attempts[a.ID] = last
	return now.Before(last.until)
}

// double makes an authorization wait twice as long as the last time.
func (a *authorizationAttempt) double(now time.Time) {
	a.pause = max(retryAuthorization, 2*a.pause)
	a.until = now.Add(a.pause)
}

// skip makes an authorization wait, longer each time.
func (k *authorizationWork) skip(id string) {
	last := k.attempts[id]
	last.double(k.w.conf.Schedule())
	k.attempts[id] = last
}

// postpone makes an authorization wait after a node failed its simulation, longer each time if the failure may be the
// authorization's: an answer, a disagreement or a timeout.
func (k *authorizationWork) postpone(id string, err error) {
	if isAnswer(err) || chain.IsClientError(err) ||
		errors.Is(err, errDivided) || errors.Is(err, chain.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		k.skip(id)
		return
	}
	last := k.attempts[id]
	last.until = k.w.conf.Schedule().Add(retryAuthorization)
	k.attempts[id] = last
}

// forget drops the attempts of authorizations that are no longer due.
func (k *authorizationWork) forget() {
	old := k.w.conf.Schedule().Add(-invoice.MaxAuthorizationWindow)
	maps.DeleteFunc(k.attempts, func(_ string, last authorizationAttempt) bool { return last.seen.Before(old) })
}

// authorizationSimulation is the result of simulating an authorization.
type authorizationSimulation struct {
	call    contracts.RelayedAuthorization
	limit   uint64          // the most gas that the relay should allow it
	refusal invoice.Refusal // why it must not be sent; empty if it would be carried out
	// isPublic is set if the token may have seen the nonce, so that another account may have submitted the
	// authorization.
	isPublic bool
}

// simulate simulates an authorization for an invoice that awaits an amount.
func (k *authorizationWork) simulate(ctx context.Context, a ledger.Authorization, awaited invoice.Amount) (authorizationSimulation, error) {
	call, err := chain.AuthorizationCall(a.Token, a.Authorization)
	found := authorizationSimulation{call: call}
	switch {
	case err != nil:
		found.refusal = invoice.RefusedSignature
		return found, nil //nolint:nilerr // it was checked before it was stored
	case awaited != a.Value:
		found.refusal = invoice.RefusedInvoiceClosed
		return found, nil
	}
	deploys, err := k.deploys(ctx, &call)
	if err != nil {
		return found, err
	}
	found.call = call
	to, data := call.Token, contracts.PackTransferWithAuthorization(call)
	relayed := deploys && k.relay != (common.Address{})
	if relayed {
		to, data = k.relay, contracts.PackRelayOne(call)
	}
	most := chain.AuthorizationGas(relayed)
	gas, refused, err := k.w.gasOf(ctx, to, data, most, true) // a refusal is final
	found.limit = min(gas, contracts.RelayLimit(call, most))
	switch {
	case !refused || errors.Is(err, errDivided):
		return found, err
	case deploys && !relayed:
		found.refusal = invoice.RefusedNotDeployed
	case errors.Is(err, errTooMuchGas):
		found.refusal = invoice.RefusedGas
	default:
		found.refusal = invoice.RefusedReverts
		checked, err := k.w.node.checkAuthorization(ctx, call)
		// Another node than before may answer, which may be at an older block.
		found.isPublic = err != nil || checked.Used || checked.Transferred
	}
	return found, nil
}

// refuseUnsent refuses due authorizations that no transaction carried and that have an unused nonce, because gasless is
// turned off.
func (k *authorizationWork) refuseUnsent(ctx context.Context, due []ledger.Authorization) error {
	for _, a := range due {
		found := authorizationSimulation{refusal: invoice.RefusedGaslessOff}
		if call, err := chain.AuthorizationCall(a.Token, a.Authorization); err == nil { // it was checked before it was stored
			checked, err := k.w.node.checkAuthorization(chain.Simulating(ctx), call)
			if err != nil {
				k.postpone(a.ID, err) // a failing one must not delay the others
				return err
			}
			found.isPublic = checked.Used
		}
		if err := k.refuse(ctx, a, found); err != nil {
			return err
		}
	}
	return nil
}

// deploys reports whether the payer's account must be deployed, by any node: the relay deploys no account that exists.
// If the account has code, its deployer is left out of the call.
func (k *authorizationWork) deploys(ctx context.Context, call *contracts.RelayedAuthorization) (bool, error) {
	if call.Deployer == (common.Address{}) {
		return false, nil
	}
	there, err := k.w.node.hasCode(ctx, call.From)
	for i, nodes := 1, k.w.nodes(); there && i < len(nodes); i++ { // the first one is k.w.node's
		other, failed := nodes[i].hasCode(ctx, call.From)
		there = other || failed != nil
	}
	if there {
		call.Deployer, call.DeployData = common.Address{}, []byte{}
	}
	return !there, err
}

// refuse refuses an authorization that certainly cannot be carried out. It skips one that can still be carried out
// until its window closes.
func (k *authorizationWork) refuse(ctx context.Context, a ledger.Authorization, found authorizationSimulation) error {
	if found.isPublic || a.TxID != "" || a.Payment != nil {
		k.skip(a.ID)
		return nil
	}
	k.w.conf.Logger.Info("authorization refused before it was sent", "authorization", a.ID, "invoice", a.InvoiceID, "reason", found.refusal)
	return ledger.RefuseAuthorization(ctx, k.w.conf.Store, k.w.lease, a.ID, found.refusal, k.w.conf.Now())
}

func (k *authorizationWork) mined(ChainTx, *chain.Receipt) {
	k.batch = min(2*k.batch, maxAuthorizations)
}

func (k *authorizationWork) reverted(context.Context, ChainTx) (then func() error, err error) {
	return nil, nil
}

// settle makes authorizations due again that the transaction did not carry out.
func (k *authorizationWork) settle(ctx context.Context, t ChainTx, _ *chain.Receipt) error {
	return ledger.ReleaseAuthorizations(ctx, k.w.conf.Store, k.w.lease, t.ID)
}
