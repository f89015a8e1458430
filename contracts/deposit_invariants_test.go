package contracts_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/contracts"
)

// TestExtraDepositInvariants pays deposit addresses, sweeps them in any batches, with any gas and by any call, also between
// payments of one block, and lets a token and a merchant misbehave. A merchant's address may be the deposit address of
// another. It compares balances with a model after each step; -rapid.checks and -rapid.steps set their number:
//
//   - money leaves a deposit only to its merchant, and only all of it;
//   - no money is swept twice, and money stays after a failed sweep;
//   - an event of the factory reports exactly how much left a deposit;
//   - no other account gains or loses, and the factory, its implementation and the relay stay empty;
//   - the code of a deposit never changes.
func TestExtraDepositInvariants(t *testing.T) {
	w := newFixedWorld(t)
	d := &depositWorld{world: w, hostile: w.hostile(), receiver: w.mock("CoinReceiver", common.Address{})}
	d.tokens = []common.Address{w.Token, coin, d.hostile.address}
	rapid.Check(t, func(r *rapid.T) {
		d.runs++
		m := newDepositModel(d)
		r.Repeat(map[string]func(*rapid.T){
			"":              m.check,
			"pay":           m.pay,
			"sweep":         m.sweep,
			"sweepOne":      m.sweepOne,
			"sweepDirect":   m.sweepDirect,
			"block":         m.block,
			"callBack":      m.callBack,
			"block account": m.blockAccount,
			"anyCall":       m.anyCall,
			"misbehave":     m.misbehave,
			"receiveBadly":  m.receiveBadly,
		})
	})
}

// depositWorld is shared by all runs.
type depositWorld struct {
	*world
	hostile  hostileToken
	receiver mock
	tokens   []common.Address
	runs     int
}

// depositModel holds the expected balances in one run.
type depositModel struct {
	*depositWorld
	deposits []modelDeposit
	deployed map[common.Address]bool
	held     map[holding]int64       // of deposits, merchants and bystanders
	manner   string                  // manner of the hostile token
	receives string                  // manner of the merchant that is a contract
	armed    *modelDeposit           // the hostile token sweeps USDC from it inside its next transfer
	blocked  map[common.Address]bool // by the hostile token
	firsts   int                     // number of sweeps to merchants that held none of the token
}

type modelDeposit struct {
	merchant common.Address
	id       common.Hash
	address  common.Address
}

type holding struct{ token, holder common.Address }

// newDepositModel returns a run with new deposits of three merchants, one of which is a contract.
func newDepositModel(d *depositWorld) *depositModel {
	m := &depositModel{
		depositWorld: d, deployed: make(map[common.Address]bool), held: make(map[holding]int64), blocked: make(map[common.Address]bool),
		manner: "Honest", receives: "Takes",
	}
	d.hostile.behave(m.manner)
	d.receiver.do("behave", uint8(0))
	d.hostile.do("blacklist", d.receiver.address, false)
	merchants := []common.Address{common.BigToAddress(big.NewInt(int64(1000 + 2*d.runs))), common.BigToAddress(big.NewInt(int64(1001 + 2*d.runs))), d.receiver.address}
	for i := range 4 {
		merchant, id := merchants[i%3], contracts.Salt(fmt.Sprint(d.runs, i/2))
		m.deposits = append(m.deposits, modelDeposit{merchant, id, contracts.DepositAddress(d.DepositFactory, merchant, id)})
	}
	id, next := contracts.Salt(fmt.Sprint(d.runs, "next")), m.deposits[0].address
	m.deposits = append(m.deposits, modelDeposit{next, id, contracts.DepositAddress(d.DepositFactory, next, id)})
	for _, token := range d.tokens {
		for _, merchant := range merchants {
			m.held[holding{token, merchant}] = d.world.held(token, merchant)
		}
		for _, none := range m.bystanders() {
			m.held[holding{token, none}] = d.world.held(token, none)
		}
		for _, deposit := range m.deposits {
			m.held[holding{token, deposit.address}] = 0
		}
	}
	return m
}

// bystanders are contracts that must not receive anything.
func (d *depositWorld) bystanders() []common.Address {
	return []common.Address{d.DepositFactory, d.AuthorizationRelay, contracts.DepositImplementation(d.DepositFactory)}
}

// check compares the chain with the model.
func (m *depositModel) check(r *rapid.T) {
	for h, want := range m.held {
		if h.token == m.hostile.address && (m.manner == "HidesBalances" || m.manner == "BurnsAtBalances") {
			continue // it is compared once the token answers again
		}
		if got := m.world.held(h.token, h.holder); got != want {
			r.Fatalf("%s has %d of %s, want %d", h.holder, got, h.token, want)
		}
	}
	for _, deposit := range m.deposits {
		code, want := m.code(deposit.address), []byte(nil)
		if m.deployed[deposit.address] {
			want = contracts.DepositCode(m.DepositFactory, deposit.merchant)
		}
		if !slices.Equal(code, want) {
			r.Fatalf("the code of %s is %#x, want %#x", deposit.address, code, want)
		}
	}
}

func (m *depositModel) deposit(r *rapid.T) modelDeposit {
	return rapid.SampledFrom(m.deposits).Draw(r, "deposit")
}

func (m *depositModel) token(r *rapid.T) common.Address {
	return rapid.SampledFrom(m.tokens).Draw(r, "token")
}

// pay sends money to a deposit, deployed or not; coin is also sent by force.
func (m *depositModel) pay(r *rapid.T) {
	deposit, token, amount := m.deposit(r), m.token(r), rapid.Int64Range(1, 100).Draw(r, "amount")
	if token == m.hostile.address && m.blocked[deposit.address] {
		r.Skip("the token blocks it")
	}
	if token == m.hostile.address && m.manner != "Honest" {
		m.behave("Honest")
	}
	if token == coin && rapid.Bool().Draw(r, "by force") {
		m.forceCoin(deposit.address, amount)
	} else {
		m.fund(token, deposit.address, amount)
	}
	m.held[holding{token, deposit.address}] += amount
}

func (m *depositModel) behave(manner string) {
	m.hostile.behave(manner)
	m.manner, m.armed = manner, nil
}

// callBack makes the hostile token sweep a deposit of USDC inside its next transfer.
func (m *depositModel) callBack(r *rapid.T) {
	inner := m.deposit(r)
	m.hostile.do("arm", m.DepositFactory, m.factory.PackSweepOne(m.sweepOf(inner, m.Token)))
	m.manner, m.armed = "CallsBack", &inner
}

// blockAccount makes the hostile token block a deposit or its merchant, or unblock it.
func (m *depositModel) blockAccount(r *rapid.T) {
	deposit := m.deposit(r)
	account := rapid.SampledFrom([]common.Address{deposit.address, deposit.merchant}).Draw(r, "account")
	m.blocked[account] = !m.blocked[account]
	m.hostile.do("blacklist", account, m.blocked[account])
}

// sweepOf returns the sweep of a token from a deposit.
func (m *depositModel) sweepOf(deposit modelDeposit, token common.Address) contracts.Sweep {
	return contracts.Sweep{Merchant: deposit.merchant, Id: deposit.id, Token: token}
}

// misbehave changes the behavior of the hostile token.
func (m *depositModel) misbehave(r *rapid.T) {
	m.behave(rapid.SampledFrom(hostileManners[:len(hostileManners)-1]).Draw(r, "manner")) // without CallsBack
}

// receiveBadly changes how the merchant that is a contract behaves when it receives coin.
func (m *depositModel) receiveBadly(r *rapid.T) {
	m.receives = rapid.SampledFrom([]string{"Takes", "TakesWithMuch", "Refuses", "RefusesWithMuch", "BurnsGas", "SendsBack"}).Draw(r, "manner")
	m.receiver.do("behave", uint8(slices.Index(receiverManners, m.receives)))
}

// expect applies a sweep to the model and returns its events in the factory. ok is false if it fails, without events.
func (m *depositModel) expect(deposit modelDeposit, token common.Address) (events []swept, ok bool) {
	from, to := holding{token, deposit.address}, holding{token, deposit.merchant}
	amount := m.held[from]
	hostile := token == m.hostile.address
	toReceiver := token == coin && deposit.merchant == m.receiver.address
	switch {
	case hostile && (m.manner == "HidesBalances" || m.manner == "BurnsAtBalances"):
		return nil, false
	case amount == 0:
		m.deployed[deposit.address] = true
		return nil, true
	case hostile && slices.Contains([]string{"ReturnsFalse", "MovesNothing", "Reverts", "RevertsWithMuch", "BurnsGas"}, m.manner),
		hostile && (m.blocked[deposit.address] || m.blocked[deposit.merchant]),
		toReceiver && slices.Contains([]string{"Refuses", "RefusesWithMuch", "BurnsGas"}, m.receives):
		return nil, false
	}
	m.deployed[deposit.address] = true
	if hostile && m.armed != nil {
		inner := *m.armed
		m.armed = nil
		events, _ = m.expect(inner, m.Token)
	}
	if m.held[to] == 0 {
		m.firsts++
	}
	if !toReceiver || m.receives != "SendsBack" {
		m.held[from] -= amount
		m.held[to] += amount
	}
	return append(events, swept{deposit.address, token, amount}), true
}

// batch returns sweeps and the events of the factory for them. A deposit may be repeated, and a merchant may not be the
// deposit's.
func (m *depositModel) batch(r *rapid.T, most int) (batch []contracts.Sweep, want []swept) {
	for range rapid.IntRange(0, most).Draw(r, "size") {
		deposit, token := m.deposit(r), m.token(r)
		s := m.sweepOf(deposit, token)
		if rapid.IntRange(0, 9).Draw(r, "thief") == 0 {
			s.Merchant = m.payer // another deposit, which is empty
			if token == m.hostile.address && (m.manner == "HidesBalances" || m.manner == "BurnsAtBalances") {
				want = append(want, swept{m.depositOf(s), token, failed})
			}
		} else if events, ok := m.expect(deposit, token); ok {
			want = append(want, events...)
		} else {
			want = append(want, swept{deposit.address, token, failed})
		}
		batch = append(batch, s)
	}
	return batch, want
}

// burns reports whether a sweep may use up its share of the gas.
func (m *depositModel) burns() bool {
	return m.manner == "BurnsGas" || m.manner == "BurnsAtBalances" || m.receives == "BurnsGas"
}

// sweep sends a batch with any gas that the factory accepts. A call back takes more than the least share, and so does a
// first transfer to a merchant (TestFirstSweepAfterABurner).
func (m *depositModel) sweep(r *rapid.T) {
	called, firsts := m.armed != nil, m.firsts
	batch, want := m.batch(r, 6)
	gas := params.MaxTxGas
	if !called && (!m.burns() || m.firsts == firsts) && rapid.Bool().Draw(r, "with little gas") {
		gas = params.TxGas + 60_000 + 10_000 + uint64(len(batch))*(sweepGas+2_000) + rapid.Uint64Range(0, 50_000).Draw(r, "more gas")
	}
	receipt := m.transactWithGas(m.Keys.Payer, m.DepositFactory, m.factory.PackSweep(batch), gas)
	if got := m.sweptIn(receipt); !slices.Equal(got, want) {
		r.Fatalf("the batch %+v with %d gas gave %+v, want %+v", batch, gas, got, want)
	}
}

// block mines payments and, between them, sweeps by another account, in one block.
func (m *depositModel) block(r *rapid.T) {
	type sent struct {
		hash common.Hash
		want []swept
	}
	var all []sent
	send := func(to common.Address, data []byte, want []swept) {
		hash, err := m.SendWithGas(m.Context(), m.Keys.Payer, to, data, 2_000_000)
		m.must(err)
		all = append(all, sent{hash, want})
	}
	for range rapid.IntRange(2, 6).Draw(r, "transactions") {
		if rapid.Bool().Draw(r, "pays") {
			deposit, amount := m.deposit(r), rapid.Int64Range(1, 100).Draw(r, "amount")
			send(m.Token, m.world.token.PackTransfer(deposit.address, big.NewInt(amount)), nil)
			m.held[holding{m.Token, deposit.address}] += amount
			continue
		}
		batch, want := m.batch(r, 3)
		send(m.DepositFactory, m.factory.PackSweep(batch), want)
	}
	m.must(m.Seal(m.Context()))
	number := int64(-1)
	for i, tx := range all {
		receipt, err := m.Mined(m.Context(), tx.hash)
		m.must(err)
		if got := m.sweptIn(receipt); !slices.Equal(got, tx.want) {
			r.Fatalf("transaction %d of the block gave %+v, want %+v", i, got, tx.want)
		}
		if number >= 0 && receipt.BlockNumber.Int64() != number {
			r.Fatal("the transactions are in several blocks")
		}
		number = receipt.BlockNumber.Int64()
	}
}

// sweepOne calls the factory's function that reverts if it fails.
func (m *depositModel) sweepOne(r *rapid.T) {
	deposit, token := m.deposit(r), m.token(r)
	want, ok := m.expect(deposit, token)
	receipt := m.transactWithGas(m.Keys.Operator, m.DepositFactory, m.factory.PackSweepOne(m.sweepOf(deposit, token)), params.MaxTxGas)
	if !ok {
		if receipt.Status != types.ReceiptStatusFailed {
			r.Fatal("a sweep that must fail succeeded")
		}
		return
	}
	if got := m.sweptIn(receipt); !slices.Equal(got, want) {
		r.Fatalf("the sweep gave %+v, want %+v", got, want)
	}
}

// sweepDirect calls a deposit without the factory.
func (m *depositModel) sweepDirect(r *rapid.T) {
	deposit, token := m.deposit(r), m.token(r)
	if !m.deployed[deposit.address] {
		r.Skip("not deployed")
	}
	_, ok := m.expect(deposit, token)
	receipt := m.transactWithGas(m.Keys.Payer, deposit.address, m.world.deposit.PackSweep(token), params.MaxTxGas)
	if (receipt.Status == types.ReceiptStatusSuccessful) != ok {
		r.Fatalf("the sweep ended with status %d, want success %t", receipt.Status, ok)
	}
}

// anyCall sends calldata to a deposit or the factory that no function there accepts, with the selectors of other
// functions.
func (m *depositModel) anyCall(r *rapid.T) {
	to := rapid.SampledFrom([]common.Address{m.deposit(r).address, m.DepositFactory, contracts.DepositImplementation(m.DepositFactory)}).Draw(r, "to")
	data := rapid.SampledFrom([][]byte{
		m.world.token.PackTransfer(m.payer, common.Big1),
		m.world.token.PackApprove(m.payer, common.Big1),
		m.registry.PackGrantRole([32]byte{}, m.payer),
		append([]byte{0xde, 0xad, 0xbe, 0xef}, m.payer.Bytes()...),
	}).Draw(r, "data")
	receipt := m.transact(m.Keys.Payer, to, data)
	if hasCode := m.deployed[to] || to == m.DepositFactory || to == contracts.DepositImplementation(m.DepositFactory); hasCode && receipt.Status != types.ReceiptStatusFailed {
		r.Fatalf("%s took the call %x", to, data)
	}
}

// FuzzDepositCaller sends any calldata to a deposit with money. Money that leaves it must arrive at its merchant.
func FuzzDepositCaller(f *testing.F) {
	w := newFixedWorld(f)
	merchant := common.Address{0xc0}
	s := contracts.Sweep{Merchant: merchant, Id: depositID(1), Token: w.Token}
	deposit := w.depositOf(s)
	w.wantSwept(w.sweep(s))
	w.fund(w.Token, deposit, 1000)
	w.fund(coin, deposit, 1000)
	for _, method := range w.deposit.GetABI().Methods {
		f.Add(slices.Concat(method.ID, make([]byte, 32*len(method.Inputs))))
	}
	f.Add(w.deposit.PackSweep(w.Token))
	f.Add(w.deposit.PackSweep(w.payer))
	f.Add(w.token.PackTransfer(w.operator, common.Big1))
	f.Fuzz(func(t *testing.T, data []byte) {
		w := w.in(t)
		if len(data) > 4096 {
			return
		}
		w.transact(w.Keys.Operator, deposit, data)
		for _, token := range []common.Address{w.Token, coin} {
			if left, arrived := w.held(token, deposit), w.held(token, merchant); left+arrived != 1000 || left != 0 && arrived != 0 {
				t.Errorf("the deposit has %d of %s and the merchant %d, want all at one of them", left, token, arrived)
			}
		}
	})
}
