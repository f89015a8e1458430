package main

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/contracts/hostile"
)

// refund prepares a refund of all that is left of a payment, and sends it.
func (m *merchant) refund(h *handled) bool {
	var answer apitypes.RefundResponse
	if !m.plays(refunds) || m.call(http.MethodPost, "/api/payments/"+h.payment.ID+"/refunds", object{}, &answer, "Idempotency-Key", "clerk-"+h.payment.ID) != nil {
		return false
	}
	if tx := answer.Transaction; tx != nil {
		m.sendFrom(h, tx.To, tx.Data)
	}
	return true
}

// sendBack sends all of a payment back to its payer, and waits until the service shows it as refunded.
func (m *merchant) sendBack(h *handled) bool {
	w, p := m.world, &h.payment
	c := w.chainOf(p.ChainKey)
	if r := stream(w.seed, "parts of "+p.ID); r.IntN(2) == 0 {
		m.split(r, h)
	} else {
		m.sendFrom(h, c.tokenOf(p.Currency).Hex(), hexutil.Encode(contracts.NewTestUSDC().PackTransfer(common.HexToAddress(p.From), toBig(p.Amount))))
	}
	for range 12 {
		var now apitypes.PaymentResponse
		if !w.pause(c.every) {
			return false
		}
		if m.call(http.MethodGet, "/api/payments/"+p.ID, nil, &now) == nil && now.Payment.AmountRefunded == p.Amount {
			return true
		}
	}
	return false
}

// split gives a payment back in many transfers of one transaction. For some of them a refund is prepared.
func (m *merchant) split(r *rand.Rand, h *handled) {
	c, p := m.world.chainOf(h.payment.ChainKey), &h.payment
	n := 2 + r.IntN(40)
	part := new(big.Int).Div(toBig(p.Amount), big.NewInt(int64(n)))
	for i := range r.IntN(n) {
		if m.call(http.MethodPost, "/api/payments/"+p.ID+"/refunds", object{"amount": part.String()}, nil, "Idempotency-Key", fmt.Sprint("part ", i, p.ID)) != nil {
			break
		}
	}
	to, amounts := slices.Repeat([]common.Address{common.HexToAddress(p.From)}, n), slices.Repeat([]*big.Int{part}, n)
	amounts[n-1] = new(big.Int).Add(part, new(big.Int).Mod(toBig(p.Amount), big.NewInt(int64(n))))
	m.sendFrom(h, c.tokenOf(p.Currency).Hex(), hexutil.Encode(contracts.NewTestUSDC().PackApprove(c.disperse, toBig(p.Amount))))
	m.sendFrom(h, c.disperse.Hex(), hexutil.Encode(hostile.NewDisperse().PackDisperse(c.tokenOf(p.Currency), to, amounts)))
}

// sendFrom sends a transaction that gives a payment back.
func (m *merchant) sendFrom(h *handled, to, data string) {
	w, address := m.world, common.HexToAddress(to)
	w.mu.Lock()
	h.back = append(h.back, data)
	w.mu.Unlock()
	c := w.chainOf(h.payment.ChainKey)
	tx := c.send(account(h.payee), &address, hexutil.MustDecode(data), 4*callGas)
	c.withhold(stream(w.seed, data), tx.Hash())
	w.log.say(m.name, "transaction %s gives back %s", tx.Hash(), h.payment.ID)
}
