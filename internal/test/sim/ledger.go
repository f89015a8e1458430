package main

import (
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
)

// First topics of the token's logs.
var (
	transferTopic = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
	usedTopic     = crypto.Keccak256Hash([]byte("AuthorizationUsed(address,bytes32)"))
)

// transfer is a movement of a token on a final chain.
type transfer struct {
	chain    *worldChain
	tx       *types.Transaction
	block    *block
	from, to common.Address
	amount   *big.Int
	currency string
	paid     []common.Hash // ids in the registry's Paid logs of the transaction
	nonce    common.Hash   // of the authorization that made it
	refund   bool          // it gives a payment back
	lost     bool          // it gives back a payment of a lost order, which the service may not know
}

// transfers returns the tokens' movements in the final blocks, in order.
func (c *worldChain) transfers() (all []transfer) {
	for _, b := range c.final() {
		for i := range b.txs {
			all = append(all, c.transfersOf(b, i)...)
		}
	}
	return all
}

func (c *worldChain) transfersOf(b *block, i int) (all []transfer) {
	var paid []common.Hash
	for _, l := range b.receipts[i].Logs {
		if l.Address == c.registry && l.Topics[0] == contracts.PaidTopic {
			paid = append(paid, l.Topics[1])
		}
	}
	var nonce common.Hash
	for _, l := range b.receipts[i].Logs {
		currency, ok := map[common.Address]string{c.token: chain.USDC, c.other: euros}[l.Address]
		switch {
		case !ok:
		case l.Topics[0] == usedTopic:
			nonce = l.Topics[2]
		case l.Topics[0] == transferTopic:
			all = append(all, transfer{c, b.txs[i], b, common.BytesToAddress(l.Topics[1][:]), common.BytesToAddress(l.Topics[2][:]), new(big.Int).SetBytes(l.Data), currency, paid, nonce, false, false})
			nonce = common.Hash{}
		}
	}
	return all
}

// belongs reports whether a transfer must be, and whether it may be, a payment of an order.
func (o *order) belongs(t transfer) (must, may bool) {
	if t.refund || t.chain != o.chain || t.currency != o.request.Currency || len(o.acks) == 0 || t.to != o.payTo() && t.to != o.wallet || t.from == o.payTo() {
		return false, false
	}
	id := common.HexToHash(o.first().OnChainInvoiceID)
	data := t.tx.Data()
	_, decided := o.attributed(t)
	switch {
	case o.first().Invoice.DepositAddress != "" && t.to == o.payTo(), slices.Contains(t.paid, id), t.nonce == id, len(data) >= 32 && common.Hash(data[len(data)-32:]) == id:
		return !t.lost, true
	case o.first().Invoice.DepositAddress != "":
		return false, decided
	case o.issued[t.amount.String()]:
		return t.block.number > o.seen && !t.lost, true // a reorg may mine it in a block that was read before the invoice existed
	}
	return false, decided || o.mayName(t)
}

// mayName reports whether the service may take a transfer's amount for the order's.
func (o *order) mayName(t transfer) bool {
	_, named := o.issued[t.amount.String()]
	return named || t.amount.Cmp(o.amount()) == 0 || o.merchant.world.ofLost(t)
}

// ofLost reports whether a transfer was sent for a lost order. The service may take it for the rest of another one.
func (w *world) ofLost(t transfer) bool {
	return slices.ContainsFunc(w.allOrders(), func(o *order) bool {
		return o.lost && slices.ContainsFunc(o.sent, func(tx *types.Transaction) bool { return tx.Hash() == t.tx.Hash() })
	})
}

// keeps reports whether a transfer is certainly a payment of the order, and whether it was one before the order expired:
// people may have attributed it.
func (o *order) keeps(t transfer, must bool) (kept, early bool) {
	at, _ := o.attributed(t)
	decided := !at.IsZero()
	return must || decided, must || decided && at.Add(10*time.Second).Unix() < o.request.ExpiresAt // a block may be dated ahead
}

// balance is what an order's transfers amount to.
type balance struct {
	due, mayDue *big.Int // the most in time, less what was refunded until then: what certainly counts, and what may
	all, mayAll *big.Int // also later
	back        *big.Int // what the order's refund has returned
	mayBack     *big.Int // and what other refunds may have returned
	charged     bool     // an authorization was carried out
}

// isRefund reports whether a transfer is the order's prepared refund.
func (o *order) isRefund(t transfer) bool {
	return o.refund != nil && o.refund.Transaction != nil && t.chain == o.chain && hexutil.Encode(t.tx.Data()) == o.refund.Transaction.Data
}

// markRefunds marks the transfers that give payments back. They pay no invoice, wherever they go.
func (w *world) markRefunds(all []transfer) {
	prepared, lost := map[string]bool{}, map[string]bool{}
	for _, o := range w.orders {
		if o.refund != nil && o.refund.Transaction != nil {
			prepared[o.refund.Transaction.Data], lost[o.refund.Transaction.Data] = !o.lost, o.lost
		}
	}
	for _, h := range w.handled {
		for _, data := range h.back {
			prepared[data] = true
		}
	}
	for i, t := range all {
		data := hexutil.Encode(t.tx.Data())
		all[i].refund, all[i].lost = prepared[data], lost[data]
	}
}

// refunding returns the most that a prepared refund reserves.
func (o *order) refunding() *big.Int {
	if o.refund != nil {
		return toBig(o.refund.Refund.Amount)
	}
	return o.amount()
}

func (o *order) account(all []transfer) balance {
	a := balance{due: new(big.Int), mayDue: new(big.Int), all: new(big.Int), mayAll: new(big.Int), back: new(big.Int), mayBack: new(big.Int)}
	now, may := new(big.Int).Neg(o.suspect(all)), new(big.Int) // covered at the time, less refunds
	returned := o.returned()
	for _, t := range all {
		if o.isRefund(t) {
			a.back.Add(a.back, t.amount)
			a.mayBack.Add(a.mayBack, t.amount)
			may.Sub(may, t.amount)
		} else if t.chain == o.chain && returned[hexutil.Encode(t.tx.Data())] || o.seemsBack(t) {
			a.mayBack.Add(a.mayBack, t.amount)
		}
		must, maybe := o.belongs(t)
		inTime := t.block.time.Unix() <= o.request.ExpiresAt
		kept, early := o.keeps(t, must)
		maybe, kept, early = o.merchant.world.screening.counts(t, maybe, kept, early)
		a.charged = a.charged || must && t.nonce == common.HexToHash(o.first().OnChainInvoiceID)
		for _, s := range []struct {
			sum   *big.Int
			count bool
		}{{now, early && inTime}, {may, maybe && inTime}, {a.all, kept}, {a.mayAll, maybe}} {
			if s.count {
				s.sum.Add(s.sum, t.amount)
			}
		}
		for _, s := range [][2]*big.Int{{a.due, now}, {a.mayDue, may}} {
			if s[0].Cmp(s[1]) < 0 {
				s[0].Set(s[1])
			}
		}
	}
	return a
}

// suspect returns the most that is refunded from some time on, or seems to be.
func (o *order) suspect(all []transfer) *big.Int {
	sum := new(big.Int)
	if o.early {
		sum.Set(o.refunding())
	}
	for _, t := range all {
		if o.seemsBack(t) {
			sum.Add(sum, t.amount)
		}
	}
	return sum
}

// seemsBack reports whether a transfer from the order's account seems to be a refund of the order: it gives back another
// payment of an account that has paid the order, or pays a lost order or a lost remainder of one. In the latter case the
// service may not know that the receiver is paid, and take it for a refund of what that has paid.
func (o *order) seemsBack(t transfer) bool {
	return t.chain == o.chain && t.from == o.wallet && (o.returnsOther(t) || slices.ContainsFunc(o.merchant.world.allOrders(), func(other *order) bool {
		kept, named := other.issued[t.amount.String()]
		return (other.lost || named && !kept) && other.chain == t.chain && other.payTo() == t.to
	}))
}

// returnsOther reports whether a transfer gives back a payment by an account of which people may have attributed another
// payment to the order. If the first one is refunded already, the service takes the transfer for a refund of the other.
func (o *order) returnsOther(t transfer) bool {
	w, data, returns, attributed := o.merchant.world, hexutil.Encode(t.tx.Data()), false, false
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.handled {
		if common.HexToAddress(h.payment.From) == t.to {
			returns = returns || h.order != o && !h.began[actReturn].IsZero() && slices.Contains(h.back, data)
			attributed = attributed || h.order == o && !(h.began[actAttribute].IsZero() && h.began[actClaim].IsZero())
		}
	}
	return returns && attributed
}

// statuses returns the states that an order may have in the end.
func (o *order) statuses(a balance) (all []apitypes.InvoiceStatus) {
	paid := o.amount().Cmp(a.due) <= 0
	if o.voided {
		return []apitypes.InvoiceStatus{"void"}
	}
	if o.voiding || o.lostAttribution() {
		all = append(all, "void")
	}
	if o.amount().Cmp(a.mayDue) <= 0 {
		all = append(all, "paid")
	}
	if !paid || o.chain.omits && (len(o.chain.nodes) == 1 || o.merchant.world.changes) { // then only the audit may show a log
		all = append(all, "expired")
	}
	return all
}

// commitments returns how often the registry has logged each event about each id, in the final blocks.
func (c *worldChain) commitments() map[[2]common.Hash]int {
	times := map[[2]common.Hash]int{}
	for _, b := range c.final() {
		for _, r := range b.receipts {
			for _, l := range r.Logs {
				if l.Address == c.registry && len(l.Topics) > 1 {
					times[[2]common.Hash{l.Topics[0], l.Topics[1]}]++
				}
			}
		}
	}
	return times
}

func toBig(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		panic("no amount: " + text)
	}
	return n
}
