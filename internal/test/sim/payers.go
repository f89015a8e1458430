package main

import (
	"cmp"
	"crypto/ecdsa"
	"errors"
	"math/big"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/internal/clock"
)

// drawPayer draws an account. It may be another merchant's, who may be an exchange.
func (o *order) drawPayer(r *rand.Rand) *ecdsa.PrivateKey {
	w := o.merchant.world
	if other := w.merchants[r.IntN(len(w.merchants))]; other != o.merchant && r.IntN(2) == 0 {
		return account(other.wallets()[r.IntN(2)])
	}
	return payers[r.IntN(len(payers))]
}

// shown returns the amount that the payer is asked for.
func (o *order) shown() *big.Int {
	inv := o.first().Invoice
	for _, text := range []string{inv.RemainingTransferAmount, inv.AmountRemaining, inv.TransferAmount, inv.Amount} {
		if text != "" {
			return toBig(text)
		}
	}
	panic("an invoice without an amount")
}

func (o *order) payTo() common.Address {
	if a := o.first().Invoice.DepositAddress; a != "" {
		return common.HexToAddress(a)
	}
	return o.wallet
}

// token returns the token that the order asks for.
func (o *order) token() common.Address { return o.chain.tokenOf(o.request.Currency) }

func (c *worldChain) tokenOf(currency string) common.Address {
	if currency == euros {
		return c.other
	}
	return c.token
}

// pay pays an amount in one of the ways that identify the invoice. A bare transfer does so only with an amount that
// the service has shown.
func (o *order) pay(r *rand.Rand, payer *ecdsa.PrivateKey, amount *big.Int, shown bool) {
	token, id := contracts.NewTestUSDC(), common.HexToHash(o.first().OnChainInvoiceID)
	way := r.IntN(6)
	if way > 3 && o.chain.writes && shown && o.authorize(r, payer) {
		return
	}
	switch {
	case o.first().Invoice.DepositAddress != "", way < 2 && shown:
		o.send(payer, o.token(), token.PackTransfer(o.payTo(), amount))
	case way == 2 && o.chain.writes && shown:
		terms := contracts.Terms{Merchant: o.wallet, Token: o.token(), Amount: o.amount(), ExpiresAt: uint64(o.request.ExpiresAt), Salt: contracts.Salt(o.first().ID)}
		o.send(payer, o.token(), token.PackApprove(o.chain.registry, o.amount()))
		o.send(payer, o.chain.registry, contracts.NewInvoiceRegistry().PackPay(terms))
	default:
		o.send(payer, o.token(), append(token.PackTransfer(o.payTo(), amount), id[:]...))
	}
}

func (o *order) send(payer *ecdsa.PrivateKey, to common.Address, data []byte) {
	tx := o.chain.send(payer, &to, data, callGas)
	if key := account(stranger); o.chain.omits { // with other logs in its block, a log can be left out unnoticed
		o.chain.send(key, &o.chain.token, contracts.NewTestUSDC().PackTransfer(addressOf(key), big.NewInt(1)), callGas)
	}
	o.merchant.world.log.say("payer of "+o.name, "transaction %s to %s", tx.Hash(), to)
	o.merchant.world.mu.Lock()
	defer o.merchant.world.mu.Unlock()
	o.sent = append(o.sent, tx)
}

// authorize signs an authorization for the service to send, and signs no other. Some payers send it, too, and some are
// a contract account that burns gas a little later. Some merchants make the invoice void at the same time. It reports
// whether the service took it or may have, or the payer has sent it.
func (o *order) authorize(r *rand.Rand, payer *ecdsa.PrivateKey) bool {
	until := min(o.request.ExpiresAt, time.Now().Add(lastWindow).Unix())
	a := contracts.Authorization{From: addressOf(payer), To: o.payTo(), Value: o.amount(), ValidAfter: new(big.Int), ValidBefore: big.NewInt(until), Nonce: common.HexToHash(o.first().OnChainInvoiceID)}
	signature, err := a.Sign(contracts.TestUSDCDomain(o.chain.id, o.token()), payer)
	if err != nil {
		panic(err)
	}
	text, own, burns := signature.Bytes(), !o.last && r.IntN(4) == 0, !o.last && r.IntN(4) == 0
	switch {
	case burns:
		a.From, text, own = o.chain.burner, make([]byte, 66), false
		o.send(payer, o.chain.burner, hostile.NewGasBurner().PackStop())
		clock.Sleep(o.merchant.world.ctx, 2*o.chain.every, nil)
		defer o.burn(r, payer)
	case own:
		o.send(payer, o.token(), contracts.NewTestUSDC().PackTransferWithAuthorization(a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce, signature.Bytes()))
		clock.Sleep(o.merchant.world.ctx, time.Duration(r.Int64N(int64(2*o.chain.every))), nil)
	}
	var void sync.WaitGroup
	races := !own && !burns && !o.last && r.IntN(8) == 0
	if races {
		void.Go(func() { _ = o.void() })
	}
	c := &client{world: o.merchant.world, name: "payer of " + o.name}
	err = c.call(http.MethodPost, "/checkout/"+o.first().ID+"/authorization", object{
		"from": a.From.Hex(), "to": a.To.Hex(), "value": o.request.Amount, "validAfter": 0, "validBefore": until, "nonce": a.Nonce.Hex(), "signature": hexutil.Encode(text),
	}, nil)
	void.Wait()
	return o.authorized(err, own)
}

// authorized notes the answer to an authorization, which the payer has sent, too, if it is their own.
func (o *order) authorized(err error, own bool) bool {
	o.merchant.world.mu.Lock()
	defer o.merchant.world.mu.Unlock()
	o.charging = err == nil
	o.uncharge = o.uncharge || !own && o.voided && o.charging
	var refused *refusedError
	return err == nil || !o.last && (own || !errors.As(err, &refused)) // after the faults there is an answer
}

// payFromExchange pays the transfer amount from an account of another merchant, which seems to send back what the shop
// has paid there. Because that account has sent no refund, it is a payment. It returns false without such a merchant.
func (o *order) payFromExchange() bool {
	w, token := o.merchant.world, contracts.NewTestUSDC()
	w.mu.Lock()
	i := slices.IndexFunc(w.orders, func(other *order) bool {
		return other.merchant != o.merchant && other.chain == o.chain && other.token() == o.token() && len(other.acks) > 0
	})
	w.mu.Unlock()
	if i < 0 || o.first().Invoice.TransferAmount == "" || !w.orders[i].merchant.plays(exchanges) {
		return false
	}
	amount, other := o.shown(), w.orders[i]
	id := common.HexToHash(other.first().OnChainInvoiceID)
	o.send(account(o.payee), o.token(), append(token.PackTransfer(other.payTo(), amount), id[:]...))
	clock.Sleep(w.ctx, 2*o.chain.every, nil)
	o.send(account(other.payee), o.token(), token.PackTransfer(o.payTo(), amount))
	return true
}

// Roles of a merchant's accounts.
const (
	exchanges = "exchanges" // they are an exchange's, and never send a prepared refund
	refunds   = "refunds"
)

// plays reports whether the merchant has a role. The first one that it is asked for is its own.
func (m *merchant) plays(role string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.role = cmp.Or(m.role, role)
	return m.role == role
}
