package contracts_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/contracts"
)

func TestOnlyTheOperatorOpensAndCloses(t *testing.T) {
	w := newWorld(t)
	ids := [][32]byte{w.id(w.terms())}
	unauthorized := w.registryError("AccessControlUnauthorizedAccount")
	// The deployer is the registry's admin: it may name operators, and is not one itself.
	w.refused(w.Keys.Deployer, w.Registry, w.registry.PackOpen(ids), unauthorized)
	w.refused(w.Keys.Merchant, w.Registry, w.registry.PackOpen(ids), unauthorized)
	w.refused(w.Keys.Payer, w.Registry, w.registry.PackClose(ids, 0), unauthorized)
	w.wantStatus(ids[0], contracts.StatusNone)

	role := [32]byte(w.call(w.Registry, w.registry.PackOPERATORROLE()))
	w.refused(w.Keys.Operator, w.Registry, w.registry.PackGrantRole(role, w.merchant), unauthorized)
	w.do(w.Keys.Deployer, w.Registry, w.registry.PackRevokeRole(role, w.operator))
	w.refused(w.Keys.Operator, w.Registry, w.registry.PackOpen(ids), unauthorized)
	w.do(w.Keys.Deployer, w.Registry, w.registry.PackGrantRole(role, w.merchant))
	w.do(w.Keys.Merchant, w.Registry, w.registry.PackOpen(ids))
	w.wantRead(ids[0], contracts.StatusOpen)
}

// TestBatches sends batches with ids in every state, and one id twice. The batches must not fail. Each id gets a log,
// but an id that is paid or closed in storage is not closed again before it expires.
func TestBatches(t *testing.T) {
	for name, test := range map[string]struct {
		call  func(*world, [][32]byte) []byte
		parse func(types.Log) (common.Hash, error)
		// the new state of an id that was none, open, paid, closed
		none, open, paid, closed contracts.Status
		logs                     int
	}{
		"open": {func(w *world, ids [][32]byte) []byte { return w.registry.PackOpen(ids) }, contracts.ParseOpened,
			contracts.StatusOpen, contracts.StatusOpen, contracts.StatusPaid, contracts.StatusClosed, 5},
		"close": {func(w *world, ids [][32]byte) []byte { return w.registry.PackClose(ids, w.now()+3600) }, contracts.ParseClosed,
			contracts.StatusClosed, contracts.StatusClosed, contracts.StatusPaid, contracts.StatusClosed, 2},
		"close expired": {func(w *world, ids [][32]byte) []byte { return w.registry.PackClose(ids, w.now()-1) }, contracts.ParseClosed,
			contracts.StatusClosed, contracts.StatusClosed, contracts.StatusPaid, contracts.StatusClosed, 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			paidTerms := w.terms()
			none, open, closed := w.id(w.terms()), w.id(w.terms()), w.id(w.terms())
			paid := w.id(paidTerms)
			w.do(w.Keys.Operator, w.Registry, w.registry.PackOpen([][32]byte{open}))
			w.do(w.Keys.Operator, w.Registry, w.registry.PackClose([][32]byte{closed}, w.now()+3600))
			w.approve(1000)
			w.do(w.Keys.Payer, w.Registry, w.registry.PackPay(paidTerms))

			receipt := w.do(w.Keys.Operator, w.Registry, test.call(w, [][32]byte{paid, none, closed, open, none}))
			for id, want := range map[common.Hash]contracts.Status{none: test.none, open: test.open, paid: test.paid, closed: test.closed} {
				w.wantRead(id, want)
			}
			if len(receipt.Logs) != test.logs {
				t.Errorf("batch left %d logs, want %d", len(receipt.Logs), test.logs)
			}
			for _, log := range receipt.Logs {
				if id, err := test.parse(*log); err != nil {
					t.Errorf("log of %s: %v", id, err)
				}
			}
		})
	}
}

// TestCloseAtTheLastSecondAndAfterIt closes invoices in the block at their expiry, which is stored, and in the next
// one, which is not.
func TestCloseAtTheLastSecondAndAfterIt(t *testing.T) {
	w := newWorld(t)
	terms := w.terms()
	for after, want := range []contracts.Status{contracts.StatusClosed, contracts.StatusNone} {
		id := w.id(w.terms())
		hash, err := w.Send(w.Context(), w.Keys.Operator, w.Registry, w.registry.PackClose([][32]byte{id}, terms.ExpiresAt))
		w.must(err)
		w.at(terms.ExpiresAt + uint64(after))
		receipt, err := w.Mined(w.Context(), hash)
		w.must(err)
		if closed, err := contracts.ParseClosed(*receipt.Logs[0]); err != nil || closed != id {
			t.Errorf("it logged %s (%v)", closed, err)
		}
		w.wantStatus(id, want)
		w.wantRead(id, contracts.StatusClosed)
	}
}

func TestEmptyBatch(t *testing.T) {
	w := newWorld(t)
	w.do(w.Keys.Operator, w.Registry, w.registry.PackOpen(nil))
	w.do(w.Keys.Operator, w.Registry, w.registry.PackClose(nil, 0))
}

func TestPay(t *testing.T) {
	w := newWorld(t)
	w.approve(3000)
	unopened, opened := w.terms(), w.terms()
	w.do(w.Keys.Operator, w.Registry, w.registry.PackOpen([][32]byte{w.id(opened)}))
	for i, terms := range []contracts.Terms{unopened, opened} {
		w.wantPaid(w.do(w.Keys.Payer, w.Registry, w.registry.PackPay(terms)), terms, w.payer)
		w.wantBalance(w.merchant, int64(i+1)*1000)
		w.wantBalance(w.Registry, 0)
		w.refused(w.Keys.Payer, w.Registry, w.registry.PackPay(terms), w.registryError("AlreadyPaid"))
	}
	w.wantBalance(w.merchant, 2000)
}

func TestPayAfterClose(t *testing.T) {
	w := newWorld(t)
	w.approve(1000)
	terms := w.terms()
	w.do(w.Keys.Operator, w.Registry, w.registry.PackClose([][32]byte{w.id(terms)}, terms.ExpiresAt))
	w.refused(w.Keys.Payer, w.Registry, w.registry.PackPay(terms), w.registryError("InvoiceClosed"))
	w.wantStatus(w.id(terms), contracts.StatusClosed)
	w.wantBalance(w.merchant, 0)
}

func TestPayAtTheLastSecondAndAfterIt(t *testing.T) {
	w := newWorld(t)
	w.approve(2000)
	inTime, late := w.terms(), w.terms()
	late.ExpiresAt = inTime.ExpiresAt

	hash, err := w.Send(w.Context(), w.Keys.Payer, w.Registry, w.registry.PackPay(inTime))
	w.must(err)
	w.at(inTime.ExpiresAt)
	receipt, err := w.Mined(w.Context(), hash)
	w.must(err)
	w.wantPaid(receipt, inTime, w.payer)

	hash, err = w.Send(w.Context(), w.Keys.Payer, w.Registry, w.registry.PackPay(late))
	w.must(err)
	w.at(late.ExpiresAt + 1)
	receipt, err = w.Mined(w.Context(), hash)
	w.must(err)
	if receipt.Status != types.ReceiptStatusFailed {
		t.Error("a payment one second after expiry was taken")
	}
	w.refused(w.Keys.Payer, w.Registry, w.registry.PackPay(late), w.registryError("InvoiceExpired"))
	w.wantStatus(w.id(late), contracts.StatusNone)
	w.wantBalance(w.merchant, 1000)
}

// TestWrongTerms pays terms that differ in one field from the terms of a closed invoice. Each is another invoice, so
// the closed one stays closed and the payments do not count for it.
func TestWrongTerms(t *testing.T) {
	w := newWorld(t)
	right := w.terms()
	w.do(w.Keys.Operator, w.Registry, w.registry.PackOpen([][32]byte{w.id(right)}))
	w.approve(10_000)
	otherToken, _ := w.deploy("FakeToken", common.Address{})
	for name, change := range map[string]func(*contracts.Terms){
		"merchant":  func(t *contracts.Terms) { t.Merchant = w.operator },
		"token":     func(t *contracts.Terms) { t.Token = otherToken },
		"amount":    func(t *contracts.Terms) { t.Amount = big.NewInt(999) },
		"expiresAt": func(t *contracts.Terms) { t.ExpiresAt++ },
		"salt":      func(t *contracts.Terms) { t.Salt[31] ^= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			wrong := right
			change(&wrong)
			if w.id(wrong) == w.id(right) {
				t.Fatal("the id does not depend on this field")
			}
			if name != "token" { // a fake token is rejected
				receipt := w.do(w.Keys.Payer, w.Registry, w.registry.PackPay(wrong))
				w.wantPaid(receipt, wrong, w.payer)
			}
			w.wantRead(w.id(right), contracts.StatusOpen)
		})
	}
}

func TestPayRefusesNothing(t *testing.T) {
	w := newWorld(t)
	terms := w.terms()
	terms.Amount = new(big.Int)
	w.refused(w.Keys.Payer, w.Registry, w.registry.PackPay(terms), w.registryError("ZeroAmount"))
}

func TestPayRefusesTheMerchantPayingItself(t *testing.T) {
	w := newWorld(t)
	hash, err := w.SendToken(w.Context(), w.Keys.Payer, w.merchant, big.NewInt(1000), nil)
	w.must(err)
	w.must(w.Seal(w.Context()))
	_, err = w.Mined(w.Context(), hash)
	w.must(err)
	w.do(w.Keys.Merchant, w.Token, w.token.PackApprove(w.Registry, big.NewInt(1000)))
	terms := w.terms()
	w.refused(w.Keys.Merchant, w.Registry, w.registry.PackPay(terms), w.registryError("WrongAmountReceived"))
	w.wantStatus(w.id(terms), contracts.StatusNone)
}

func TestPayWithoutAllowance(t *testing.T) {
	w := newWorld(t)
	w.approve(999)
	terms := w.terms()
	w.refused(w.Keys.Payer, w.Registry, w.registry.PackPay(terms), w.tokenError("ERC20InsufficientAllowance"))
	w.wantStatus(w.id(terms), contracts.StatusNone)
}

func TestHostileTokens(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"FeeToken", "FakeToken"} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			terms := w.terms()
			var parsed = w.token.GetABI()
			terms.Token, _ = w.deploy(name, w.payer)
			w.do(w.Keys.Payer, terms.Token, pack(w, parsed, "approve", w.Registry, terms.Amount))
			refusal := w.registryError("WrongAmountReceived")
			w.refused(w.Keys.Payer, w.Registry, w.registry.PackPay(terms), refusal)
			if name == "FakeToken" {
				w.refused(w.Keys.Payer, w.Registry, w.registry.PackPayWithAuthorization(
					terms, w.payer, new(big.Int), big.NewInt(1<<40), 27, [32]byte{}, [32]byte{}), refusal)
			}
			w.wantStatus(w.id(terms), contracts.StatusNone)
		})
	}
}

func TestTokenThatReturnsNothing(t *testing.T) {
	w := newWorld(t)
	terms := w.terms()
	token, parsed := w.deploy("SilentToken", w.payer)
	terms.Token = token
	w.do(w.Keys.Payer, token, pack(w, parsed, "approve", w.Registry, terms.Amount))
	w.wantPaid(w.do(w.Keys.Payer, w.Registry, w.registry.PackPay(terms)), terms, w.payer)
}

// TestReentrancy lets a token call the registry's payment again from inside a payment, for the same invoice and for
// another one. The inner call must be made and refused; the outer one counts once.
func TestReentrancy(t *testing.T) {
	w := newWorld(t)
	token, parsed := w.deploy("ReentrantToken", w.payer)
	w.do(w.Keys.Payer, token, pack(w, parsed, "approve", w.Registry, big.NewInt(1e9)))
	guard := w.registryError("ReentrancyGuardReentrantCall")
	other := w.terms()
	other.Token = token
	zero := [32]byte{}
	for name, inner := range map[string][]byte{
		"same invoice":  nil, // set once it exists
		"other invoice": w.registry.PackPay(other),
		"permit":        w.registry.PackPayWithPermit(other, big.NewInt(1<<40), 27, zero, zero),
		"authorization": w.registry.PackPayWithAuthorization(
			other, w.payer, new(big.Int), big.NewInt(1<<40), 27, zero, zero),
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			terms := w.terms()
			terms.Token = token
			if name == "same invoice" {
				inner = w.registry.PackPay(terms)
			}
			w.do(w.Keys.Payer, token, pack(w, parsed, "arm", w.Registry, inner))
			receipt := w.do(w.Keys.Payer, w.Registry, w.registry.PackPay(terms))
			w.wantPaid(receipt, terms, w.payer)
			if len(receipt.Logs) != 2 {
				t.Errorf("payment left %d logs, want one Transfer and one Paid", len(receipt.Logs))
			}
			for method, want := range map[string]bool{"attempted": true, "succeeded": false} {
				out, err := parsed.Unpack(method, w.call(token, pack(w, parsed, method)))
				w.must(err)
				if out[0] != want {
					t.Errorf("inner call: %s is %v, want %v", method, out[0], want)
				}
			}
			out, err := parsed.Unpack("answer", w.call(token, pack(w, parsed, "answer")))
			w.must(err)
			if answer := out[0].([]byte); len(answer) < 4 || [4]byte(answer[:4]) != [4]byte(guard.ID[:4]) {
				t.Errorf("inner call was answered with %#x, want %s", answer, guard.Sig)
			}
			w.wantStatus(w.id(other), contracts.StatusNone)
		})
	}
}
