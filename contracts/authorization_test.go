package contracts_test

import (
	"crypto/ecdsa"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/contracts"
)

func (w *world) domain() contracts.Domain { return contracts.TestUSDCDomain(w.ChainID(), w.Token) }

func (w *world) authorization(t contracts.Terms) contracts.Authorization {
	return contracts.Authorization{
		From: w.payer, To: t.Merchant, Value: t.Amount,
		ValidAfter: new(big.Int), ValidBefore: new(big.Int).SetUint64(t.ExpiresAt + 1), Nonce: w.id(t),
	}
}

// payWith packs the registry call that submits an authorization signed by key.
func (w *world) payWith(t contracts.Terms, a contracts.Authorization, key *ecdsa.PrivateKey) []byte {
	w.Helper()
	sig, err := a.Sign(w.domain(), key)
	w.must(err)
	return w.registry.PackPayWithAuthorization(t, a.From, a.ValidAfter, a.ValidBefore, sig.V, sig.R, sig.S)
}

func (w *world) permit(value int64) (contracts.Permit, contracts.Signature) {
	w.Helper()
	nonce, err := w.token.UnpackNonces(w.call(w.Token, w.token.PackNonces(w.payer)))
	w.must(err)
	p := contracts.Permit{Owner: w.payer, Spender: w.Registry, Value: big.NewInt(value),
		Nonce: nonce, Deadline: new(big.Int).SetUint64(w.now() + 1000)}
	sig, err := p.Sign(w.domain(), w.Keys.Payer)
	w.must(err)
	return p, sig
}

func TestDomainSeparator(t *testing.T) {
	w := newWorld(t)
	if got := common.BytesToHash(w.call(w.Token, w.token.PackDOMAINSEPARATOR())); got != w.domain().Separator() {
		t.Errorf("token signs under %s, want %s", got, w.domain().Separator())
	}
}

func TestPayWithPermit(t *testing.T) {
	w := newWorld(t)
	terms := w.terms()
	p, sig := w.permit(1000)
	call := w.registry.PackPayWithPermit(terms, p.Deadline, sig.V, sig.R, sig.S)
	w.wantPaid(w.do(w.Keys.Payer, w.Registry, call), terms, w.payer)
	w.refused(w.Keys.Payer, w.Registry, call, w.registryError("AlreadyPaid"))
	w.wantBalance(w.merchant, 1000)
}

// TestPayWithPermitThatWasFrontRun submits the payer's permit from another account first.
func TestPayWithPermitThatWasFrontRun(t *testing.T) {
	w := newWorld(t)
	terms := w.terms()
	p, sig := w.permit(1000)
	w.do(w.Keys.Merchant, w.Token, w.token.PackPermit0(p.Owner, p.Spender, p.Value, p.Deadline, sig.V, sig.R, sig.S))
	call := w.registry.PackPayWithPermit(terms, p.Deadline, sig.V, sig.R, sig.S)
	w.wantPaid(w.do(w.Keys.Payer, w.Registry, call), terms, w.payer)
}

// TestPermitServesItsSignerOnly sends the payer's permit with another account's payment: it must not move
// the payer's money.
func TestPermitServesItsSignerOnly(t *testing.T) {
	w := newWorld(t)
	terms := w.terms()
	p, sig := w.permit(1000)
	call := w.registry.PackPayWithPermit(terms, p.Deadline, sig.V, sig.R, sig.S)
	w.refused(w.Keys.Operator, w.Registry, call, w.tokenError("ERC20InsufficientAllowance"))
	w.wantStatus(w.id(terms), contracts.StatusNone)
}

func TestPayWithBadPermit(t *testing.T) {
	w := newWorld(t)
	terms := w.terms()
	p, sig := w.permit(999)
	call := w.registry.PackPayWithPermit(terms, p.Deadline, sig.V, sig.R, sig.S)
	w.refused(w.Keys.Payer, w.Registry, call, w.tokenError("ERC20InsufficientAllowance"))
}

func TestPayWithAuthorization(t *testing.T) {
	w := newWorld(t)
	terms := w.terms()
	call := w.payWith(terms, w.authorization(terms), w.Keys.Payer)
	receipt := w.do(w.Keys.Operator, w.Registry, call) // not the payer: any account may send it
	w.wantPaid(receipt, terms, w.payer)
	used := receipt.Logs[0]
	if used.Topics[0] != w.token.GetABI().Events["AuthorizationUsed"].ID || used.Topics[2] != w.id(terms) {
		t.Errorf("first log is %+v, want AuthorizationUsed with the invoice's id as nonce, before the Transfer", used)
	}
	w.refused(w.Keys.Operator, w.Registry, call, w.registryError("AlreadyPaid"))
	w.wantBalance(w.merchant, 1000)
}

// TestAuthorizationUsedBeforehand submits the authorization directly to the token first: the money has moved once, and
// the registry must not move it again.
func TestAuthorizationUsedBeforehand(t *testing.T) {
	w := newWorld(t)
	terms := w.terms()
	a := w.authorization(terms)
	hash, err := w.TransferWithAuthorization(w.Context(), w.Keys.Merchant, w.Keys.Payer, a)
	w.must(err)
	w.must(w.Seal(w.Context()))
	receipt, err := w.Mined(w.Context(), hash)
	w.must(err)
	if receipt.Status != types.ReceiptStatusSuccessful {
		t.Fatal("the token refused the authorization")
	}
	w.refused(w.Keys.Operator, w.Registry, w.payWith(terms, a, w.Keys.Payer),
		w.tokenError("AuthorizationUsedOrCanceled"))
	w.wantBalance(w.merchant, 1000)
	w.wantStatus(w.id(terms), contracts.StatusNone)
}

func TestAuthorizationMustMatchTheInvoice(t *testing.T) {
	w := newWorld(t)
	terms := w.terms()
	for name, change := range map[string]func(*contracts.Authorization){
		"recipient": func(a *contracts.Authorization) { a.To = w.operator },
		"value":     func(a *contracts.Authorization) { a.Value = big.NewInt(1001) },
		"nonce":     func(a *contracts.Authorization) { a.Nonce[0] ^= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			a := w.authorization(terms)
			change(&a)
			w.refused(w.Keys.Operator, w.Registry, w.payWith(terms, a, w.Keys.Payer), w.tokenError("InvalidSignature"))
		})
	}
	t.Run("signer", func(t *testing.T) {
		w := w.in(t)
		call := w.payWith(terms, w.authorization(terms), w.Keys.Operator)
		w.refused(w.Keys.Operator, w.Registry, call, w.tokenError("InvalidSignature"))
	})
	w.wantStatus(w.id(terms), contracts.StatusNone)
}

// TestAuthorizationValidityIsStrict tries the block times at, before and after both ends.
func TestAuthorizationValidityIsStrict(t *testing.T) {
	w := newWorld(t)
	from := w.now() + 1000
	for i, test := range []struct {
		name               string
		after, before, now uint64
		want               uint64
	}{
		{"at validAfter", from, from + 100, from, types.ReceiptStatusFailed},
		{"one second in", from, from + 100, from + 1, types.ReceiptStatusSuccessful},
		{"last second", from, from + 100, from + 99, types.ReceiptStatusSuccessful},
		{"at validBefore", from, from + 100, from + 100, types.ReceiptStatusFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := w.in(t)
			a := contracts.Authorization{From: w.payer, To: w.merchant, Value: common.Big1,
				ValidAfter: new(big.Int).SetUint64(test.after), ValidBefore: new(big.Int).SetUint64(test.before),
				Nonce: common.BigToHash(big.NewInt(int64(i + 1)))}
			hash, err := w.TransferWithAuthorization(w.Context(), w.Keys.Operator, w.Keys.Payer, a)
			w.must(err)
			w.at(test.now)
			receipt, err := w.Mined(w.Context(), hash)
			w.must(err)
			if receipt.Status != test.want {
				t.Errorf("status is %d, want %d", receipt.Status, test.want)
			}
		})
	}
}

func TestTokenRefusesAnExpiredPermit(t *testing.T) {
	w := newWorld(t)
	p, sig := w.permit(1000)
	call := w.token.PackPermit0(p.Owner, p.Spender, p.Value, p.Deadline, sig.V, sig.R, sig.S)
	w.at(p.Deadline.Uint64() + 1)
	w.refused(w.Keys.Payer, w.Token, call, w.tokenError("PermitExpired"))
}

func TestOnlyTheOwnerMints(t *testing.T) {
	w := newWorld(t)
	w.refused(w.Keys.Payer, w.Token, w.token.PackMint(w.payer, common.Big1), w.tokenError("OwnableUnauthorizedAccount"))
}

// TestTokenAuthorizationForms uses, replays and cancels authorizations with the token's functions, with the signature
// in parts and in one piece.
func TestTokenAuthorizationForms(t *testing.T) {
	w := newWorld(t)
	type parts = func(contracts.Authorization, contracts.Signature) []byte
	transfer := func(a contracts.Authorization, s contracts.Signature) []byte {
		return w.token.PackTransferWithAuthorization0(a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce, s.V, s.R, s.S)
	}
	receive := func(a contracts.Authorization, s contracts.Signature) []byte {
		return w.token.PackReceiveWithAuthorization0(a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce, s.V, s.R, s.S)
	}
	for i, test := range []struct {
		name              string
		transfer, receive parts
		cancel            parts
	}{
		{"parts", transfer, receive, func(a contracts.Authorization, s contracts.Signature) []byte {
			return w.token.PackCancelAuthorization(a.From, a.Nonce, s.V, s.R, s.S)
		}},
		{"bytes", func(a contracts.Authorization, s contracts.Signature) []byte {
			return w.token.PackTransferWithAuthorization(a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce, s.Bytes())
		}, func(a contracts.Authorization, s contracts.Signature) []byte {
			return w.token.PackReceiveWithAuthorization(a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce, s.Bytes())
		}, func(a contracts.Authorization, s contracts.Signature) []byte {
			return w.token.PackCancelAuthorization0(a.From, a.Nonce, s.Bytes())
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := w.in(t)
			spent := w.tokenError("AuthorizationUsedOrCanceled")
			sent, received, cancelled := w.authorization(w.terms()), w.authorization(w.terms()), w.authorization(w.terms())

			sig, err := sent.Sign(w.domain(), w.Keys.Payer)
			w.must(err)
			w.wantState(sent, false)
			w.do(w.Keys.Operator, w.Token, test.transfer(sent, sig))
			w.wantState(sent, true)
			w.refused(w.Keys.Operator, w.Token, test.transfer(sent, sig), spent)

			sig, err = received.SignReceive(w.domain(), w.Keys.Payer)
			w.must(err)
			w.refused(w.Keys.Operator, w.Token, test.receive(received, sig), w.tokenError("CallerMustBePayee"))
			w.refused(w.Keys.Operator, w.Token, test.transfer(received, sig), w.tokenError("InvalidSignature"))
			w.do(w.Keys.Merchant, w.Token, test.receive(received, sig))
			w.refused(w.Keys.Merchant, w.Token, test.receive(received, sig), spent)

			sig, err = cancelled.SignCancel(w.domain(), w.Keys.Merchant)
			w.must(err)
			w.refused(w.Keys.Merchant, w.Token, test.cancel(cancelled, sig), w.tokenError("InvalidSignature"))
			w.wantState(cancelled, false)
			sig, err = cancelled.SignCancel(w.domain(), w.Keys.Payer)
			w.must(err)
			receipt := w.do(w.Keys.Operator, w.Token, test.cancel(cancelled, sig))
			if receipt.Logs[0].Topics[0] != w.token.GetABI().Events["AuthorizationCanceled"].ID {
				t.Errorf("cancelling logged %+v, want AuthorizationCanceled", receipt.Logs[0])
			}
			w.wantState(cancelled, true)
			sig, err = cancelled.Sign(w.domain(), w.Keys.Payer)
			w.must(err)
			w.refused(w.Keys.Operator, w.Token, test.transfer(cancelled, sig), spent)

			w.wantBalance(w.merchant, int64(i+1)*2000)
		})
	}
}

// wantState requires that the token reports an authorization's nonce as used or cancelled, or as unused.
func (w *world) wantState(a contracts.Authorization, want bool) {
	w.Helper()
	got, err := w.token.UnpackAuthorizationState(w.call(w.Token, w.token.PackAuthorizationState(a.From, a.Nonce)))
	w.must(err)
	if got != want {
		w.Errorf("authorizationState is %v, want %v", got, want)
	}
}
