package main

import (
	"math/big"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/internal/chain"
)

// Bounds of what a world may use in the end.
const (
	maxGoroutines  = 300        // of the services and the world
	maxConnections = 100        // of a service to nodes, receivers and clients
	maxDatabase    = 15_000_000 // bytes, with the write-ahead log; each order may add bytesOfOrder
	bytesOfOrder   = 100_000
)

// judgeResources compares what the services use with the bounds.
func (w *world) judgeResources() {
	w.judgeAmount("goroutines", runtime.NumGoroutine(), maxGoroutines*len(w.services))
	for _, s := range w.services {
		s.host.mu.Lock()
		connections := len(s.host.conns)
		s.host.mu.Unlock()
		w.judgeAmount("connections", connections, maxConnections)
		path, ok := strings.CutPrefix(s.database, "sqlite:")
		if !ok {
			continue
		}
		size := 0
		for _, ending := range []string{"", "-wal"} {
			if info, err := os.Stat(path + ending); err == nil {
				size += int(info.Size())
			}
		}
		w.judgeAmount("bytes in the database", size, maxDatabase+bytesOfOrder*len(w.orders))
	}
	for _, c := range w.chains {
		w.judgeSpending(c)
	}
}

// judgeAmount compares an amount of something with its bound.
func (w *world) judgeAmount(of string, n, most int) {
	w.log.say("JUDGE", "%d %s", n, of)
	if n > most {
		w.fail("there are %d %s, want up to %d", n, of, most)
	}
}

// judgeSpending compares what the operator's account paid for gas with its limits, for each transaction and for any 24
// hours. A clock that was set moves these hours, by less than 12.
func (w *world) judgeSpending(c *worldChain) {
	day := 24 * time.Hour
	if len(w.machine.recent()) > 1 {
		day = 12 * time.Hour
	}
	all, most := c.spending(), new(big.Int)
	for i, p := range all {
		if p.reserved.Cmp(inWei(c.limits.PerTxGwei)) > 0 {
			w.fail("transaction %s could cost %s wei, and the limit is %d gwei", p.tx, p.reserved, c.limits.PerTxGwei)
		}
		sum := new(big.Int)
		for _, earlier := range all[:i+1] {
			if p.at.Sub(earlier.at) < day {
				sum.Add(sum, earlier.paid)
			}
		}
		if most.Cmp(sum) < 0 {
			most = sum
		}
	}
	w.log.say("JUDGE", "%s: %d transactions of the operator cost up to %s wei in %s, of %d gwei", c.key, len(all), most, day, c.limits.PerDayGwei)
	if most.Cmp(inWei(c.limits.PerDayGwei)) > 0 && !w.isRestored() { // a backup lacks what was paid since
		w.fail("%s: the operator paid %s wei in %s, and the limit is %d gwei", c.key, most, day, c.limits.PerDayGwei)
	}
}

// expense is the cost of a transaction of the operator.
type expense struct {
	tx             common.Hash
	at             time.Time
	reserved, paid *big.Int // the most that it could cost, and what it did
}

// spending returns what the operator's account paid in the final blocks.
func (c *worldChain) spending() (all []expense) {
	for _, b := range c.final() {
		for i, tx := range b.txs {
			if c.senderOf(tx) != addressOf(operatorKey) {
				continue
			}
			r, gas := b.receipts[i], new(big.Int).SetUint64(tx.Gas())
			all = append(all, expense{
				tx: tx.Hash(), at: b.time, reserved: gas.Mul(gas, tx.GasFeeCap()),
				paid: new(big.Int).Mul(r.EffectiveGasPrice, new(big.Int).SetUint64(r.GasUsed)),
			})
		}
	}
	return all
}

// drawLimits draws limits of spending, of which some are small.
func (c *worldChain) drawLimits(r *mathrand.Rand) {
	c.limits, c.limited = chain.DefaultSpendLimits(), r.IntN(4) == 0
	if c.limited {
		c.limits.PerTxGwei = 300_000 + r.Uint64N(1_500_000)
		c.limits.PerDayGwei = c.limits.PerTxGwei + r.Uint64N(1_000_000)
	}
}

func inWei(gwei uint64) *big.Int {
	return new(big.Int).Mul(new(big.Int).SetUint64(gwei), big.NewInt(params.GWei))
}
