package txmgr

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/invoice"
)

// TestDailyBudgetStopsTheWriter uses up the daily budget. The writer reports it, and resumes when the spending is a day
// old. Another process sees the same budget.
func TestDailyBudgetStopsTheWriter(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		measured := prometheus.NewRegistry()
		var log bytes.Buffer
		allow := func(gwei int64) func(*Config) {
			return func(c *Config) {
				c.Chain.Limits.PerDayGwei = uint64(gwei)
				c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			}
		}
		writer := w.writer(allow(100_000_000_000), func(c *Config) { c.Metrics = NewMetrics(measured) })
		w.tick(writer)
		for _, line := range []string{
			"balance_wei{%s} ", "spent_wei{%s} 0", "budget_wei{%s} 1e+20", `blocked{%s,reason="funds"} 0`, `transactions_total{%s,kind="open",status="sent"} 0`,
			`cost_wei_total{%s,kind="close"} 0`, "fee_bumps_total{%s} 0", "due_intents{%s} 0",
		} {
			if line = "quittance_writer_" + fmt.Sprintf(line, `chain="`+writer.conf.Chain.Key+`"`); !strings.Contains(exported(measured), line) {
				t.Errorf("before the first transaction there is no %s:\n%s", line, exported(measured))
			}
		}
		first := commitments(20)
		w.enqueueIntents(invoice.IntentOpen, first...)
		w.tick(writer)
		w.seal(1)
		w.tick(writer)
		mined := w.wantTxs(TxMined)[0]
		balance, err := w.client.BalanceAt(w.ctx, crypto.PubkeyToAddress(w.operator.PublicKey), nil)
		must(t, err)
		before, err := w.client.BalanceAt(w.ctx, crypto.PubkeyToAddress(w.operator.PublicKey), new(big.Int).SetUint64(w.head()-1))
		must(t, err)
		if paid := inGwei(before.Sub(before, balance)); mined.Spent == nil || mined.Spent.Gwei != paid || mined.Reserved < paid {
			t.Errorf("%+v is recorded of %d reserved gwei, want the %d that were paid", mined.Spent, mined.Reserved, paid)
		}

		// Half of the amount reserved for another one is left, in a new process.
		w.clock.Add(DefaultLeaseTTL)
		writer = w.writer(allow(mined.Spent.Gwei+mined.Reserved/2), func(c *Config) { c.Metrics = writer.conf.Metrics })
		second := commitments(20)
		w.enqueueIntents(invoice.IntentOpen, second...)
		for range 3 {
			writer.report(writer.tick(w.ctx))
			w.clock.Add(blockerCheckEvery)
		}
		w.wantTxs(TxMined)
		w.wantDue(20)
		s := writer.Status()
		if !strings.Contains(s.Err, errBudget.Error()) || s.Spent.Cmp(inWei(uint64(mined.Spent.Gwei))) != 0 || s.Budget.Cmp(s.Spent) <= 0 {
			t.Errorf("status is %+v, want it to say that the budget is used up", s)
		}
		if got := strings.Count(log.String(), "level=ERROR"); got != 1 {
			t.Errorf("%d errors were logged, want 1:\n%s", got, &log)
		}
		families, err := measured.Gather()
		must(t, err)
		blocked := false
		for _, f := range families {
			for _, m := range f.GetMetric() {
				blocked = blocked || f.GetName() == "quittance_writer_blocked" && m.GetGauge().GetValue() == 1
			}
		}
		if !blocked {
			t.Error("no metric says that the writer is blocked")
		}

		w.clock.Add(budgetWindow - time.Minute)
		if err := writer.tick(w.ctx); !errors.Is(err, errBudget) {
			t.Errorf("before a day has passed a round ends with %v", err)
		}
		w.clock.Add(time.Minute)
		writer.report(writer.tick(w.ctx))
		w.seal(1)
		w.tick(writer)
		w.wantTxs(TxMined, TxMined)
		w.wantStatus(statusOpen, append(first, second...)...)
		if s := writer.Status(); s.Err != "" {
			t.Errorf("status is %+v after a day", s)
		}
	})
}

// TestDailyBudgetWhileTheClockIsAhead uses up the daily budget, and sets the machine's clock forward by two days. The
// writer may not spend again until a day has passed by the schedule's clock.
func TestDailyBudgetWhileTheClockIsAhead(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ahead := time.Duration(0)
		budget := func(gwei int64) func(*Config) {
			return func(c *Config) {
				c.Chain.Limits.PerDayGwei = uint64(gwei)
				c.Now, c.Schedule = func() time.Time { return w.clock.Now().Add(ahead) }, w.clock.Now
			}
		}
		writer := w.writer(budget(100_000_000_000))
		w.enqueueIntents(invoice.IntentOpen, commitments(20)...)
		w.tick(writer)
		w.seal(1)
		w.tick(writer)
		mined := w.wantTxs(TxMined)[0]
		w.clock.Add(DefaultLeaseTTL)
		writer = w.writer(budget(mined.Spent.Gwei + mined.Reserved/2))
		w.enqueueIntents(invoice.IntentOpen, commitments(20)...)
		ahead = 2 * budgetWindow
		if err := writer.tick(w.ctx); !errors.Is(err, errBudget) {
			t.Errorf("while the clock is ahead a round ends with %v", err)
		}
		w.clock.Add(budgetWindow)
		writer.report(writer.tick(w.ctx))
		w.seal(1)
		w.tick(writer)
		w.wantTxs(TxMined, TxMined)
	})
}

// TestBudgetCountsWhatIsInFlight makes a replacement cost more than the rest of the budget.
func TestBudgetCountsWhatIsInFlight(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(20)...)
	w.tick(writer)
	reserved := w.wantTxs(TxSent)[0].Reserved
	w.clock.Add(DefaultLeaseTTL)
	writer = w.writer(func(c *Config) { c.Chain.Limits.PerDayGwei = uint64(reserved) })
	w.tick(writer)
	w.sealEmpty(bumpBlocks)
	w.clock.Add(bumpAfter)
	if err := writer.tick(w.ctx); !errors.Is(err, errBudget) {
		t.Errorf("a round that offers more than is left ends with %v", err)
	}
	if attempts := w.wantTxs(TxSent)[0].Attempts; len(attempts) != 1 {
		t.Errorf("%d attempts were signed, want 1", len(attempts))
	}
	w.seal(1)
	w.tick(writer) // the transaction in flight is still mined
	w.wantTxs(TxMined)
}
