package main

import (
	"crypto/ecdsa"
	"math/big"
	"math/rand/v2"
	"time"

	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
)

// lastWindow is the time that the service has to send an authorization after the faults. It must be able to recover in
// this time, for example to replace a transaction that no node accepts.
const lastWindow = 25 * time.Minute

// afterwards gives the service one more authorization on each chain to which it writes. It must carry it out, whatever
// has happened before.
func (w *world) afterwards() {
	for _, offset := range w.machine.recent() {
		if offset.Abs() > lastWindow/5 {
			return // the times of authorizations are compared with the service's clock, too
		}
	}
	for i, c := range w.chains {
		if !c.writes || c.limited {
			continue
		}
		m, r := w.merchants[0], stream(w.seed, "last order of "+c.key)
		o := m.newOrder(r, 1000+i)
		o.chain, o.last, o.key, o.request.ChainKey, o.request.Currency = c, true, "key-"+o.name, c.key, chain.USDC
		if must, _ := m.allows(o.wallet, time.Now()); !must {
			continue
		}
		o.request.ExpiresAt = time.Now().Add(lastWindow + time.Minute).Unix()
		w.mu.Lock()
		w.orders = append(w.orders, o)
		w.mu.Unlock()
		if !o.create(r) {
			w.fail("%s: a create after the faults failed", o.name)
			return
		}
		until := time.Now().Add(lastWindow / 2)
		for !o.authorize(r, account("last payer")) {
			if time.Now().After(until) || !clock.Sleep(w.ctx, 10*time.Second, nil) {
				w.fail("%s: the service accepts no authorization after the faults", o.name)
				return
			}
		}
	}
}

// burn makes the contract account of the chain burn gas whenever it checks a signature: first all gas, so that a transfer
// that is on its way fails, and then all but a drawn amount.
func (o *order) burn(r *rand.Rand, sender *ecdsa.PrivateKey) {
	for _, leaves := range []int64{0, []int64{1_000_000, 6_000_000, 12_000_000}[r.IntN(3)]} {
		o.send(sender, o.chain.burner, hostile.NewGasBurner().PackBurn(big.NewInt(leaves)))
		clock.Sleep(o.merchant.world.ctx, 2*o.chain.every, nil)
	}
}

// authorizationGas is the most gas that the operator pays for an authorization, in the documented bound of the service
// and the relay.
const authorizationGas = chain.MaxAuthorizationGas + 25_000

// judgeGas checks that the operator has paid for no more gas than the bound of the authorizations in a transaction.
func (w *world) judgeGas() {
	for _, c := range w.chains {
		for _, b := range c.final() {
			for i, tx := range b.txs {
				most := uint64(authorizationGas)
				switch to := tx.To(); {
				case to == nil || c.senderOf(tx) != addressOf(operatorKey):
					continue
				case *to == c.relay:
					most = relayed(tx.Data()) * authorizationGas
				case *to != c.token && *to != c.other:
					continue
				}
				if used := b.receipts[i].GasUsed; used > most+100_000 {
					w.fail("transaction %s of the operator used %d gas, and its authorizations may use %d", tx.Hash(), used, most)
				}
			}
		}
	}
}

// relayed returns how many authorizations a call of the relay has: the length of the list in its first argument.
func relayed(data []byte) uint64 {
	const selector, word = 4, 32
	at := selector + new(big.Int).SetBytes(data[selector:selector+word]).Uint64()
	return new(big.Int).SetBytes(data[at : at+word]).Uint64()
}
