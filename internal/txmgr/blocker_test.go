package txmgr

import (
	"bytes"
	"errors"
	"log/slog"
	"maps"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
)

func TestOperatorResumesWhenFunded(t *testing.T) {
	w := onSQLite(t)
	poor, err := crypto.GenerateKey()
	must(t, err)
	w.grant(devchain.Address(poor))
	var log bytes.Buffer
	measured := prometheus.NewRegistry()
	writer := w.writer(func(c *Config) {
		c.Key, c.Logger, c.Metrics = poor, slog.New(slog.NewTextHandler(&log, nil)), NewMetrics(measured)
	})
	ids := commitments(maxBatch)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	writer.report(writer.tick(w.ctx))
	began := w.clock.Now()
	first := writer.Status()
	if !first.InsufficientFunds || !strings.Contains(first.Err, errInsufficientFunds.Error()) || !strings.Contains(first.Err, first.Sender.Hex()) ||
		first.Balance.Sign() != 0 || first.Needed.Sign() <= 0 {
		t.Errorf("status is %+v, want it to say what is missing, and where", first)
	}
	asked := w.net.tally()
	for range 3 {
		w.sealEmpty(1)
		w.clock.Add(blockerCheckEvery - 1)
		writer.report(writer.tick(w.ctx))
		w.clock.Add(1)
		writer.report(writer.tick(w.ctx))
	}
	want := map[string]int{"eth_estimateGas": 3, "eth_getBlockByNumber": 3, "eth_feeHistory": 3, "eth_getBalance": 3}
	if got := asked(); !maps.Equal(got, want) {
		t.Errorf("an operator without funds asked for %v in three times %s, want %v", got, blockerCheckEvery, want)
	}
	later := writer.Status()
	if later.Needed.Cmp(first.Needed) >= 0 || later.Err == first.Err || !later.Since.Equal(began) {
		t.Errorf("status is %+v; want what the fees of now need, since the beginning", later)
	}
	w.wantDue(maxBatch)

	// One wei less than needed is too little; then it suffices.
	w.fund(devchain.Address(poor), 1)
	w.clock.Add(blockerCheckEvery)
	writer.report(writer.tick(w.ctx))
	left := new(big.Int).Sub(writer.Status().Needed, writer.Status().Balance)
	w.fund(devchain.Address(poor), left.Int64())
	w.clock.Add(blockerCheckEvery)
	writer.report(writer.tick(w.ctx))
	w.seal(1)
	w.wantStatus(statusOpen, ids...)
	if s := writer.Status(); s.Err != "" || s.InsufficientFunds {
		t.Errorf("status still says %+v", s)
	}
	if got := measure(t, measured, "quittance_writer_balance_wei"); got == 0 {
		t.Error("the balance is not measured")
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 1 {
		t.Errorf("%d warnings were logged, want 1:\n%s", got, &log)
	}
}

// TestFeeThatCannotBePaid has a sender with enough for a transaction, and too little for one with a higher fee.
func TestFeeThatCannotBePaid(t *testing.T) {
	w := onSQLite(t)
	poor, err := crypto.GenerateKey()
	must(t, err)
	w.grant(devchain.Address(poor))
	writer := w.writer(func(c *Config) {
		c.Key, c.Chain.Limits.MinTipWei = poor, 20*params.GWei // the tip does not fall with the base fee
	})
	ids := commitments(1)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	if err := writer.tick(w.ctx); !errors.Is(err, errInsufficientFunds) {
		t.Fatal(err)
	}
	w.fund(devchain.Address(poor), writer.Status().Needed.Int64())
	w.clock.Add(blockerCheckEvery)
	w.tick(writer)
	for range 5 { // until the account's balance is too little for falling fees
		w.sealEmpty(bumpBlocks)
		w.clock.Add(bumpAfter)
		writer.report(writer.tick(w.ctx))
	}
	if s := writer.Status(); !s.InsufficientFunds || s.InFlight != 1 {
		t.Errorf("status is %+v, want a transaction in flight and no funds for a higher fee", s)
	}
	// A payable attempt is not given up for one that cannot be paid.
	w.dev.DropPending()
	w.clock.Add(rebroadcastAfter)
	writer.report(writer.tick(w.ctx))
	w.seal(1)
	writer.report(writer.tick(w.ctx))
	if s := writer.Status(); s.InsufficientFunds || s.Err != "" {
		t.Errorf("status is %+v after the transaction was mined", s)
	}
	w.wantStatus(statusOpen, ids...)
}

func TestOperatorWithoutItsRole(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	operator := devchain.Address(w.dev.Keys.Operator)
	w.external(w.dev.Keys.Deployer, contracts.NewInvoiceRegistry().PackRevokeRole(operatorRole, operator))
	w.seal(1)
	ids := commitments(maxBatch)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	writer.report(writer.tick(w.ctx))
	asked := w.net.tally()
	for range 4 {
		w.clock.Add(blockerCheckEvery)
		writer.report(writer.tick(w.ctx))
		if s := writer.Status(); !strings.Contains(s.Err, errRole.Error()) || !strings.Contains(s.Err, operator.Hex()) {
			t.Fatalf("status is %+v, want it to say that the operator is refused", s)
		}
		writer.report(writer.tick(w.ctx))
	}
	if got, want := asked(), map[string]int{"eth_estimateGas": 4}; !maps.Equal(got, want) {
		t.Errorf("an operator that is refused asked for %v in four times %s, want %v", got, blockerCheckEvery, want)
	}
	w.grant(operator)
	w.clock.Add(blockerCheckEvery)
	w.tick(writer)
	w.seal(1)
	w.wantTxs(TxSent) // one batch: no item was blamed
	w.wantStatus(statusOpen, ids...)
}

// TestRegistryThatIsNoRegistry configures an account without code as the registry: it accepts every call, and answers
// without data.
func TestRegistryThatIsNoRegistry(t *testing.T) {
	w := onSQLite(t)
	w.registry = common.Address{0xaa}
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	if err := writer.tick(w.ctx); err == nil || !strings.Contains(err.Error(), "answered 0x when asked for a status") {
		t.Errorf("a round ends with %v", err)
	}
	w.wantTxs()
}

var operatorRole = crypto.Keccak256Hash([]byte("OPERATOR_ROLE"))

// grant lets an account open and close commitments.
func (w *world) grant(to common.Address) {
	w.Helper()
	w.external(w.dev.Keys.Deployer, contracts.NewInvoiceRegistry().PackGrantRole(operatorRole, to))
	w.seal(1)
}

// fund gives an account an amount of wei.
func (w *world) fund(to common.Address, wei int64) {
	w.Helper()
	_, err := w.dev.SendCoins(w.ctx, w.dev.Keys.Payer, to, big.NewInt(wei))
	must(w, err)
	w.seal(1)
}

// tally returns a function that counts the calls since, by method.
func (f *faults) tally() func() map[string]int {
	calls := make(map[string]int)
	f.before = func(method string, _ []any) error {
		calls[method]++
		return nil
	}
	return func() map[string]int {
		f.before = nil
		return calls
	}
}
