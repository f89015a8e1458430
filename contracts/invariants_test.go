package contracts_test

import (
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/contracts"
)

// TestExtraInvariants calls the registry as the operator, payers and others in any order, with honest, fee-taking and fake
// tokens, and compares it with a model after each call:
//
//   - a status changes from none to open, and from these two to paid or closed, and then never again;
//   - storage holds only payments, and invoices that were closed before they expired;
//   - an invoice is paid by exactly one call, in time, and its merchant's balance grows by exactly its amount;
//   - only the operator opens or closes;
//   - only the amounts of paid invoices move, and the registry's balance stays 0;
//   - a payment emits one event, and opening or closing emits one for each id that it does not skip.
func TestExtraInvariants(t *testing.T) {
	w := newFixedWorld(t)
	fee, feeABI := w.deploy("FeeToken", w.payer)
	fake, _ := w.deploy("FakeToken", common.Address{})
	unlimited := new(big.Int).Lsh(common.Big1, 255)
	w.do(w.Keys.Payer, w.Token, w.token.PackApprove(w.Registry, unlimited))
	w.do(w.Keys.Payer, fee, pack(w, feeABI, "approve", w.Registry, unlimited))
	rapid.Check(t, func(r *rapid.T) {
		m := &model{world: w, fee: fee, fake: fake, before: w.holdings(fee), gained: map[common.Address]int64{}}
		r.Repeat(map[string]func(*rapid.T){
			"":                     m.check,
			"issue":                m.issue,
			"open":                 m.open,
			"close":                m.close,
			"pay":                  m.pay,
			"payWithAuthorization": m.payWithAuthorization,
			"payWithPermit":        m.payWithPermit,
			"transfer":             m.transfer,
			"wait":                 m.wait,
		})
	})
}

// model is the expected state of the registry in one run.
type model struct {
	*world
	fee, fake common.Address
	before    holdings                 // balances at the start of the run
	gained    map[common.Address]int64 // of the test USDC, by merchant, since then
	invoices  []*modelInvoice
}

type modelInvoice struct {
	contracts.Terms
	status   contracts.Status
	isStored bool // the registry stores that it is closed
}

// holdings are balances of the test USDC, and the registry's balance of the other token.
type holdings struct{ payer, merchant, operator, registry, registryFee int64 }

func (w *world) holdings(fee common.Address) holdings {
	w.Helper()
	of := func(token, holder common.Address) int64 {
		return new(big.Int).SetBytes(w.call(token, w.token.PackBalanceOf(holder))).Int64()
	}
	return holdings{
		of(w.Token, w.payer), of(w.Token, w.merchant), of(w.Token, w.operator), of(w.Token, w.Registry), of(fee, w.Registry),
	}
}

// check compares the chain with the model.
func (m *model) check(r *rapid.T) {
	for _, inv := range m.invoices {
		n, err := m.registry.UnpackStatusOf(m.call(m.Registry, m.registry.PackStatusOf(m.id(inv.Terms))))
		got, want := contracts.StoredStatus(n), contracts.StatusNone
		if inv.status == contracts.StatusPaid || inv.isStored {
			want = inv.status
		}
		if err != nil || got != want {
			r.Fatalf("of %+v %s is stored, %v; want %s", inv.Terms, got, err, want)
		}
	}
	want := m.before
	want.merchant += m.gained[m.merchant]
	want.operator += m.gained[m.operator]
	want.payer -= m.gained[m.merchant] + m.gained[m.operator]
	if got := m.holdings(m.fee); got != want {
		r.Fatalf("balances are %+v, want %+v", got, want)
	}
}

// issue makes an invoice without a transaction. An amount below 100 is too small for the token's fee.
func (m *model) issue(r *rapid.T) {
	*m.salts++
	m.invoices = append(m.invoices, &modelInvoice{Terms: contracts.Terms{
		Merchant:  rapid.SampledFrom([]common.Address{m.merchant, m.operator, m.payer}).Draw(r, "merchant"),
		Token:     rapid.SampledFrom([]common.Address{m.Token, m.Token, m.fee, m.fake}).Draw(r, "token"),
		Amount:    big.NewInt(rapid.Int64Range(0, 200).Draw(r, "amount")),
		ExpiresAt: m.now() + rapid.Uint64Range(0, 12).Draw(r, "lifetime"),
		Salt:      contracts.Salt(fmt.Sprint("inv_", *m.salts)),
	}})
}

func (m *model) invoice(r *rapid.T) *modelInvoice {
	if len(m.invoices) == 0 {
		r.Skip("no invoice yet")
	}
	return rapid.SampledFrom(m.invoices).Draw(r, "invoice")
}

func (m *model) caller(r *rapid.T) *ecdsa.PrivateKey {
	return rapid.SampledFrom([]*ecdsa.PrivateKey{m.Keys.Operator, m.Keys.Payer, m.Keys.Merchant}).Draw(r, "caller")
}

// send sends a registry call and requires that it succeeds or fails, and the number of logs of the registry.
func (m *model) send(r *rapid.T, from *ecdsa.PrivateKey, data []byte, success bool, events int) []*types.Log {
	receipt := m.transact(from, m.Registry, data)
	var logs []*types.Log
	for _, log := range receipt.Logs {
		if log.Address == m.Registry {
			logs = append(logs, log)
		}
	}
	if (receipt.Status == types.ReceiptStatusSuccessful) != success || len(logs) != events {
		r.Fatalf("the call ended with status %d and %d events, want success %t and %d", receipt.Status, len(logs), success, events)
	}
	return logs
}

// batch draws some invoices, and returns them with their ids and the latest of their expiries.
func (m *model) batch(r *rapid.T) (batch []*modelInvoice, ids [][32]byte, latest uint64) {
	if len(m.invoices) == 0 {
		r.Skip("no invoice yet")
	}
	batch = rapid.SliceOfN(rapid.SampledFrom(m.invoices), 0, 5).Draw(r, "batch")
	for _, inv := range batch {
		ids, latest = append(ids, m.id(inv.Terms)), max(latest, inv.ExpiresAt)
	}
	return batch, ids, latest
}

// open opens some invoices in one call, which emits a log for each.
func (m *model) open(r *rapid.T) {
	batch, ids, _ := m.batch(r)
	caller := m.caller(r)
	if caller != m.Keys.Operator {
		m.send(r, caller, m.registry.PackOpen(ids), false, 0)
		return
	}
	for i, log := range m.send(r, caller, m.registry.PackOpen(ids), true, len(ids)) {
		if id, err := contracts.ParseOpened(*log); err != nil || id != ids[i] {
			r.Fatalf("event %d is of %s, %v; want %x", i, id, err, ids[i])
		}
	}
	for _, inv := range batch {
		if inv.status == contracts.StatusNone {
			inv.status = contracts.StatusOpen
		}
	}
}

// close closes some invoices in one call, which emits a log for each that it closes. After the last one has expired,
// paid and closed ones get a log, too.
func (m *model) close(r *rapid.T) {
	batch, ids, latest := m.batch(r)
	caller := m.caller(r)
	if caller != m.Keys.Operator {
		m.send(r, caller, m.registry.PackClose(ids, latest), false, 0)
		return
	}
	expired := m.now()+1 > latest
	var logged []common.Hash
	for i, inv := range batch {
		final := inv.status == contracts.StatusPaid || inv.isStored
		if expired || !final {
			logged = append(logged, ids[i])
		}
		if !final {
			inv.status, inv.isStored = contracts.StatusClosed, !expired
		}
	}
	for i, log := range m.send(r, caller, m.registry.PackClose(ids, latest), true, len(logged)) {
		if id, err := contracts.ParseClosed(*log); err != nil || id != logged[i] {
			r.Fatalf("event %d is of %s, %v; want %s", i, id, err, logged[i])
		}
	}
}

// payable reports whether a payment in the next block is accepted if the token moves the money.
func (m *model) payable(inv *modelInvoice) bool {
	final := inv.status == contracts.StatusPaid || inv.status == contracts.StatusClosed
	return !final && inv.Amount.Sign() > 0 && m.now()+1 <= inv.ExpiresAt && inv.Merchant != m.payer
}

// arrives reports whether a transfer of the token delivers the invoice's whole amount.
func (m *model) arrives(inv *modelInvoice) bool {
	return inv.Token == m.Token || inv.Token == m.fee && inv.Amount.Int64() < 100
}

// settle sends a payment and requires that it is accepted or refused.
func (m *model) settle(r *rapid.T, from *ecdsa.PrivateKey, inv *modelInvoice, data []byte, taken bool) {
	if !taken {
		m.send(r, from, data, false, 0)
		return
	}
	paid, err := contracts.ParsePaid(*m.send(r, from, data, true, 1)[0])
	if err != nil || paid.ID != m.id(inv.Terms) || paid.Payer != m.payer || paid.Merchant != inv.Merchant ||
		paid.Token != inv.Token || paid.Amount.Cmp(inv.Amount) != 0 {
		r.Fatalf("the event is %+v, %v; want the payment of %+v", paid, err, inv.Terms)
	}
	inv.status = contracts.StatusPaid
	if inv.Token == m.Token {
		m.gained[inv.Merchant] += inv.Amount.Int64()
	}
}

// pay pays from an allowance, which only the payer has given.
func (m *model) pay(r *rapid.T) {
	inv, caller := m.invoice(r), m.caller(r)
	taken := m.payable(inv) && m.arrives(inv) && caller == m.Keys.Payer
	m.settle(r, caller, inv, m.registry.PackPay(inv.Terms), taken)
}

// payWithPermit pays with an unsigned permit, which is not an error: the allowance decides.
func (m *model) payWithPermit(r *rapid.T) {
	inv, caller := m.invoice(r), m.caller(r)
	junk := [32]byte{1}
	data := m.registry.PackPayWithPermit(inv.Terms, new(big.Int).SetUint64(inv.ExpiresAt), 27, junk, junk)
	m.settle(r, caller, inv, data, m.payable(inv) && m.arrives(inv) && caller == m.Keys.Payer)
}

// payWithAuthorization sends an authorization from any account. The payer signed it for this invoice, or for another
// one of the same amount, or another account signed it in the payer's name.
func (m *model) payWithAuthorization(r *rapid.T) {
	inv, caller := m.invoice(r), m.caller(r)
	a, signer, good := m.authorization(inv.Terms), m.Keys.Payer, inv.Token == m.Token
	switch rapid.SampledFrom([]string{"good", "good", "another nonce", "another signer"}).Draw(r, "signature") {
	case "another nonce":
		a.Nonce[0] ^= 1
		good = false
	case "another signer":
		signer, good = m.Keys.Merchant, false
	}
	m.settle(r, caller, inv, m.payWith(inv.Terms, a, signer), m.payable(inv) && good)
}

// transfer sends money to a merchant that pays no invoice.
func (m *model) transfer(r *rapid.T) {
	value := rapid.Int64Range(0, 200).Draw(r, "value")
	receipt := m.transact(m.Keys.Payer, m.Token, m.token.PackTransfer(m.merchant, big.NewInt(value)))
	if receipt.Status != types.ReceiptStatusSuccessful {
		r.Fatalf("a transfer of %d failed", value)
	}
	m.gained[m.merchant] += value
}

// wait seals an empty block, possibly so late that invoices expire.
func (m *model) wait(r *rapid.T) {
	m.at(m.now() + rapid.Uint64Range(1, 6).Draw(r, "seconds"))
}

// FuzzCaller sends any calldata from an account that is not an operator and has no allowance to the registry, which must
// leave invoices and balances as they are. The payer has given the registry an allowance.
func FuzzCaller(f *testing.F) {
	w := newFixedWorld(f)
	w.approve(1000)
	open, closed := w.terms(), w.terms()
	w.do(w.Keys.Operator, w.Registry, w.registry.PackOpen([][32]byte{w.id(open)}))
	w.do(w.Keys.Operator, w.Registry, w.registry.PackClose([][32]byte{w.id(closed)}, closed.ExpiresAt))
	for _, method := range w.registry.GetABI().Methods {
		f.Add(slices.Concat(method.ID, make([]byte, 32*len(method.Inputs))))
	}
	for _, terms := range []contracts.Terms{open, closed} {
		f.Add(w.registry.PackPay(terms))
		f.Add(w.payWith(terms, w.authorization(terms), w.Keys.Merchant))
		f.Add(w.registry.PackClose([][32]byte{w.id(terms)}, terms.ExpiresAt))
	}
	before := w.holdings(w.Token)
	f.Fuzz(func(t *testing.T, data []byte) {
		w := w.in(t)
		if len(data) > 4096 {
			return
		}
		receipt := w.transact(w.Keys.Merchant, w.Registry, data)
		if len(receipt.Logs) > 0 {
			t.Errorf("it left logs: %+v", receipt.Logs[0])
		}
		w.wantRead(w.id(open), contracts.StatusOpen)
		w.wantStatus(w.id(closed), contracts.StatusClosed)
		if after := w.holdings(w.Token); after != before {
			t.Errorf("balances were %+v and are %+v", before, after)
		}
	})
}

// FuzzTokenCaller sends any calldata from an account without tokens and allowances to the test token, which must leave
// balances, the supply, and the allowance that the payer has given the registry as they are.
func FuzzTokenCaller(f *testing.F) {
	w := newFixedWorld(f)
	w.approve(1000)
	a := w.authorization(w.terms())
	for _, method := range w.token.GetABI().Methods {
		f.Add(slices.Concat(method.ID, make([]byte, 32*len(method.Inputs))))
	}
	f.Add(w.token.PackTransferFrom(w.payer, w.merchant, common.Big1))
	f.Add(w.token.PackMint(w.merchant, common.Big1))
	f.Add(w.token.PackTransferWithAuthorization(a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce, nil))
	state := func(w *world) string {
		return fmt.Sprint(w.holdings(w.Token), w.call(w.Token, w.token.PackTotalSupply()), w.call(w.Token, w.token.PackAllowance(w.payer, w.Registry)))
	}
	before := state(w)
	f.Fuzz(func(t *testing.T, data []byte) {
		w := w.in(t)
		if len(data) > 4096 {
			return
		}
		w.transact(w.Keys.Merchant, w.Token, data)
		if after := state(w); after != before {
			t.Errorf("the token was %s and is %s", before, after)
		}
	})
}

// FuzzSignature sends any signature with an authorization that the payer has signed: only the payer's pays.
func FuzzSignature(f *testing.F) {
	w := newFixedWorld(f)
	terms := w.terms()
	terms.ExpiresAt = 1 << 40
	a := w.authorization(terms)
	good, err := a.Sign(w.domain(), w.Keys.Payer)
	w.must(err)
	twin := contracts.Signature{V: 55 - good.V, R: good.R} // the other root of the curve, with the order less s
	order, _ := new(big.Int).SetString("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)
	order.Sub(order, new(big.Int).SetBytes(good.S[:])).FillBytes(twin.S[:])
	for _, sig := range []contracts.Signature{{}, twin, {V: good.V - 27, R: good.R, S: good.S}, {V: good.V, R: good.S, S: good.R}} {
		f.Add(sig.V, sig.R[:], sig.S[:])
	}
	f.Fuzz(func(t *testing.T, v uint8, r, s []byte) {
		w := w.in(t)
		sig := contracts.Signature{V: v, R: [32]byte(common.LeftPadBytes(r, 32)[:32]), S: [32]byte(common.LeftPadBytes(s, 32)[:32])}
		if sig == good {
			return
		}
		data := w.registry.PackPayWithAuthorization(terms, a.From, a.ValidAfter, a.ValidBefore, sig.V, sig.R, sig.S)
		if receipt := w.transact(w.Keys.Operator, w.Registry, data); receipt.Status != types.ReceiptStatusFailed {
			t.Errorf("it pays with %+v, which is not the payer's signature", sig)
		}
		w.wantStatus(w.id(terms), contracts.StatusNone)
	})
}
