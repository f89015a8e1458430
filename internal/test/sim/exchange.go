package main

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/clock"
)

// payFromExchange pays the transfer amount from an account of another merchant, which seems to send back what the shop
// has paid there. Because that account has sent no refund, it is a payment. It returns false without such a merchant.
func (o *order) payFromExchange() bool {
	w, token := o.merchant.world, contracts.NewTestUSDC()
	w.mu.Lock()
	i := slices.IndexFunc(w.orders, func(other *order) bool {
		return other.merchant != o.merchant && other.chain == o.chain && other.token() == o.token() && len(other.acks) > 0
	})
	w.mu.Unlock()
	if i < 0 || o.first().Invoice.TransferAmount == "" || !w.orders[i].merchant.becomeExchange() {
		return false
	}
	amount, other := o.shown(), w.orders[i]
	id := common.HexToHash(other.first().OnChainInvoiceID)
	o.send(account(o.payee), o.token(), append(token.PackTransfer(other.payTo(), amount), id[:]...))
	clock.Sleep(w.ctx, 2*o.chain.every, nil)
	o.send(account(other.payee), o.token(), token.PackTransfer(o.payTo(), amount))
	return true
}

// becomeExchange makes the merchant's accounts those of an exchange, and reports whether they are.
func (m *merchant) becomeExchange() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.exchange = m.exchange || !m.refunds
	return m.exchange
}

// mayRefund reports whether the merchant may prepare a refund.
func (m *merchant) mayRefund() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refunds = m.refunds || !m.exchange
	return !m.exchange
}
