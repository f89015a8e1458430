package txmgr

import (
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

func TestStuckTransactionIsReplaced(t *testing.T) {
	parallelOnSQLite(t, func(t *testing.T, w *world) {
		measured := prometheus.NewRegistry()
		metrics := NewMetrics(measured)
		writer := w.writer(func(c *Config) { c.Metrics = metrics })
		ids := commitments(2)
		w.enqueueIntents(invoice.IntentOpen, ids...)
		w.tick(writer)
		for _, step := range []struct {
			blocks   int
			after    time.Duration
			attempts int
		}{
			{bumpBlocks - 1, bumpAfter, 1}, // the chain does not advance; the transaction is not the cause
			{1, 0, 2},
			{bumpBlocks, bumpAfter - time.Millisecond, 2},
			{0, time.Millisecond, 3},
		} {
			w.sealEmpty(step.blocks)
			w.clock.Add(step.after)
			w.tick(writer)
			if got := len(w.txs()[0].Attempts); got != step.attempts {
				t.Fatalf("after %+v there are %d attempts", step, got)
			}
		}
		if got := measure(t, measured, "quittance_writer_fee_bumps_total"); got != 2 {
			t.Errorf("%v fee bumps are counted, want 2", got)
		}
		last := w.txs()[0].Attempts[2]
		if _, pending, err := w.dev.Client().TransactionByHash(w.ctx, [32]byte(last.TxHash)); err != nil || !pending {
			t.Fatalf("the node did not take the last attempt: pending %t, %v", pending, err)
		}
		w.wantSameContents()
		w.seal(1)
		w.tick(writer)
		w.wantTxs(TxMined)
		w.wantStatus(statusOpen, ids...)
	})
}

// TestStuckTransactionInACalmMarket has blocks leave out a transaction that offers the market fees: its fee does not
// climb to the cap.
func TestStuckTransactionInACalmMarket(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.tick(writer)
	var err error
	for range 40 {
		w.sealEmpty(bumpBlocks)
		w.clock.Add(bumpAfter)
		err = writer.tick(w.ctx)
	}
	if !errors.Is(err, errStuck) {
		t.Errorf("a round that does not offer more ends with %v", err)
	}
	attempts := w.txs()[0].Attempts
	first, last := attempts[0], attempts[len(attempts)-1]
	if most := new(big.Int).Lsh(first.FeeCap, 1); len(attempts) < 2 || last.FeeCap.Cmp(most) > 0 {
		t.Errorf("the %d attempts rose from %s to %s wei, want some, and no more than %s", len(attempts), first.FeeCap, last.FeeCap, most)
	}
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
}

func TestFeeIsCapped(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer(func(c *Config) { c.Chain.Limits.MaxFeeWei = 1 })
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	if err := writer.tick(w.ctx); !errors.Is(err, errFeeCapExceeded) || !strings.Contains(err.Error(), "base fee") {
		t.Errorf("with a base fee above the cap a round ends with %v", err)
	}
	w.wantTxs()
}

// TestNodeThatWantsMoreToReplace uses a node that replaces a transaction only at twice its fee.
func TestNodeThatWantsMoreToReplace(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(1)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.tick(writer)
	first, err := decode(w.txs()[0].Attempts[0])
	must(t, err)
	w.net.before = func(method string, args []any) error {
		if method != sendRaw {
			return nil
		}
		next := new(types.Transaction)
		must(t, next.UnmarshalBinary(rawOf(args)))
		for _, pair := range [][2]*big.Int{{first.GasFeeCap(), next.GasFeeCap()}, {first.GasTipCap(), next.GasTipCap()}} {
			if new(big.Int).Lsh(pair[0], 1).Cmp(pair[1]) > 0 {
				return answer("no")
			}
		}
		return nil
	}
	for range 2 {
		w.sealEmpty(bumpBlocks)
		w.clock.Add(bumpAfter)
		w.tick(writer)
	}
	last := w.wantTxs(TxSent)[0].Attempts[2]
	if _, pending, err := w.dev.Client().TransactionByHash(w.ctx, [32]byte(last.TxHash)); err != nil || !pending {
		t.Fatalf("the node did not take the attempt after the one it refused: pending %t, %v", pending, err)
	}
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
}

// TestAttemptsAreLimited has a node refuse every attempt because of another transaction with its nonce.
func TestAttemptsAreLimited(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer(func(c *Config) {
		c.Chain.Limits = chain.SpendLimits{MaxFeeWei: 1 << 62, MaxTipWei: 1 << 61, PerTxGwei: 1 << 62, PerDayGwei: 1 << 62}
	})
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.net.refuseBroadcasts("no", func() {
		w.net.refuseBroadcasts("no", nil)
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
	})
	var err error
	for range maxAttempts + 3 {
		w.clock.Add(bumpAfter)
		err = writer.tick(w.ctx)
		w.sealEmpty(bumpBlocks)
	}
	if got := len(w.txs()[0].Attempts); got > maxAttempts || !errors.Is(err, errFeeCapExceeded) && !errors.Is(err, errInsufficientFunds) {
		t.Errorf("there are %d attempts, want at most %d; %v", got, maxAttempts, err)
	}
}

// measure returns the value of a counter or a gauge with one child.
func measure(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	t.Fatalf("nothing measures %s", name)
	return 0
}
