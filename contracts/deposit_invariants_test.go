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

// TestDepositInvariants pays deposit addresses, sweeps them in any batches and by any call, and lets a token and a merchant
// misbehave, and compares balances with a model after each step:
//
//   - money leaves a deposit only to its merchant, and only all of it;
//   - nothing is swept twice, and what failed stays;
//   - an event of the factory says exactly what left a deposit;
//   - nobody else gains or loses, and the factory, its implementation and the relay hold nothing;
//   - the code of a deposit never changes.
func TestDepositInvariants(t *testing.T) {
	w := newFixedWorld(t)
	d := &depositWorld{world: w, hostile: w.hostile(), receiver: w.mock("CoinReceiver", common.Address{})}
	d.tokens = []common.Address{w.Token, coin, d.hostile.address}
	rapid.Check(t, func(r *rapid.T) {
		d.runs++
		m := newDepositModel(d)
		r.Repeat(map[string]func(*rapid.T){
			"":             m.check,
			"pay":          m.pay,
			"sweep":        m.sweep,
			"sweepOne":     m.sweepOne,
			"sweepDirect":  m.sweepDirect,
			"anyCall":      m.anyCall,
			"misbehave":    m.misbehave,
			"receiveBadly": m.receiveBadly,
		})
	})
}

// depositWorld is what all runs share.
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
	held     map[holding]int64 // of deposits, merchants and bystanders
	manner   string            // of the hostile token
	receives string            // manner of the merchant that is a contract
}

type modelDeposit struct {
	merchant common.Address
	id       common.Hash
	address  common.Address
}

type holding struct{ token, holder common.Address }

// newDepositModel returns a run with deposits of three merchants, one of which is a contract, that no other run had.
func newDepositModel(d *depositWorld) *depositModel {
	m := &depositModel{
		depositWorld: d, deployed: make(map[common.Address]bool), held: make(map[holding]int64),
		manner: "Honest", receives: "Takes",
	}
	d.hostile.behave(m.manner)
	d.receiver.do("behave", uint8(0))
	merchants := []common.Address{common.BigToAddress(big.NewInt(int64(1000 + 2*d.runs))), common.BigToAddress(big.NewInt(int64(1001 + 2*d.runs))), d.receiver.address}
	for i := range 4 {
		merchant, id := merchants[i%3], contracts.Salt(fmt.Sprint(d.runs, i/2))
		m.deposits = append(m.deposits, modelDeposit{merchant, id, contracts.DepositAddress(d.DepositFactory, merchant, id)})
	}
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

// pay sends money to a deposit, deployed or not; coin also by force.
func (m *depositModel) pay(r *rapid.T) {
	deposit, token, amount := m.deposit(r), m.token(r), rapid.Int64Range(1, 100).Draw(r, "amount")
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
	m.manner = manner
}

// misbehave changes what the hostile token does.
func (m *depositModel) misbehave(r *rapid.T) {
	m.behave(rapid.SampledFrom(hostileManners[:len(hostileManners)-1]).Draw(r, "manner")) // without CallsBack
}

// receiveBadly changes what the merchant that is a contract does when it is sent coin.
func (m *depositModel) receiveBadly(r *rapid.T) {
	m.receives = rapid.SampledFrom([]string{"Takes", "TakesWithMuch", "Refuses", "RefusesWithMuch", "BurnsGas", "SendsBack"}).Draw(r, "manner")
	m.receiver.do("behave", uint8(slices.Index(receiverManners, m.receives)))
}

// expect returns the outcome of a sweep, and applies it. The outcome is nil if there is nothing to sweep.
func (m *depositModel) expect(deposit modelDeposit, token common.Address) *swept {
	from, to := holding{token, deposit.address}, holding{token, deposit.merchant}
	amount := m.held[from]
	result := &swept{deposit.address, token, failed}
	switch {
	case token == m.hostile.address && (m.manner == "HidesBalances" || m.manner == "BurnsAtBalances"):
		return result
	case amount == 0:
		m.deployed[deposit.address] = true
		return nil
	case token == m.hostile.address && slices.Contains([]string{"ReturnsFalse", "MovesNothing", "Reverts", "RevertsWithMuch", "BurnsGas"}, m.manner),
		token == coin && deposit.merchant == m.receiver.address && slices.Contains([]string{"Refuses", "RefusesWithMuch", "BurnsGas"}, m.receives):
		return result
	}
	result.Amount = amount
	m.deployed[deposit.address] = true
	if token == coin && deposit.merchant == m.receiver.address && m.receives == "SendsBack" {
		return result
	}
	m.held[from] -= amount
	m.held[to] += amount
	return result
}

// sweep sends a batch, in which a deposit may be repeated, and merchants may be named that are not the deposit's.
func (m *depositModel) sweep(r *rapid.T) {
	var batch []contracts.Sweep
	var want []swept
	for range rapid.IntRange(0, 6).Draw(r, "size") {
		deposit, token := m.deposit(r), m.token(r)
		s := contracts.Sweep{Merchant: deposit.merchant, Id: deposit.id, Token: token}
		if rapid.IntRange(0, 9).Draw(r, "thief") == 0 {
			s.Merchant = m.payer // another deposit, where nothing is
			if token == m.hostile.address && (m.manner == "HidesBalances" || m.manner == "BurnsAtBalances") {
				want = append(want, swept{m.depositOf(s), token, failed})
			}
		} else if outcome := m.expect(deposit, token); outcome != nil {
			want = append(want, *outcome)
		}
		batch = append(batch, s)
	}
	if got := m.world.sweep(batch...); !slices.Equal(got, want) {
		r.Fatalf("the batch %+v gave %+v, want %+v", batch, got, want)
	}
}

// sweepOne calls the factory's function that reverts if it fails.
func (m *depositModel) sweepOne(r *rapid.T) {
	deposit, token := m.deposit(r), m.token(r)
	want := m.expect(deposit, token)
	receipt := m.transactWithGas(m.Keys.Operator, m.DepositFactory,
		m.factory.PackSweepOne(contracts.Sweep{Merchant: deposit.merchant, Id: deposit.id, Token: token}), params.MaxTxGas)
	if want != nil && want.Amount == failed {
		if receipt.Status != types.ReceiptStatusFailed {
			r.Fatal("a sweep that must fail succeeded")
		}
		return
	}
	var all []swept
	if want != nil {
		all = append(all, *want)
	}
	if got := m.sweptIn(receipt); !slices.Equal(got, all) {
		r.Fatalf("the sweep gave %+v, want %+v", got, all)
	}
}

// sweepDirect calls a deposit without the factory.
func (m *depositModel) sweepDirect(r *rapid.T) {
	deposit, token := m.deposit(r), m.token(r)
	if !m.deployed[deposit.address] {
		r.Skip("not deployed")
	}
	want := m.expect(deposit, token)
	receipt := m.transactWithGas(m.Keys.Payer, deposit.address, m.world.deposit.PackSweep(token), params.MaxTxGas)
	if (receipt.Status == types.ReceiptStatusFailed) != (want != nil && want.Amount == failed) {
		r.Fatalf("the sweep ended with status %d, want %+v", receipt.Status, want)
	}
}

// anyCall sends calldata that no function takes to a deposit or the factory, with the names of other functions.
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

// FuzzDepositCaller sends any calldata to a deposit with money. What leaves it arrives at its merchant.
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
