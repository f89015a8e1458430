package txmgr

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// deposits is the tests' indexer's knowledge of deposit addresses.
type deposits struct {
	merchants map[string]common.Address // settlement addresses by merchant; other merchants have a default one
	token     common.Address            // the token with transfers that it reads
	invoices  map[common.Address]string // by deposit address
	pending   []types.Log               // transfers from deposit addresses that are not final
}

// sweeping sets a writer's policy on a chain with deposits.
func (w *world) sweeping(p chain.SweepPolicy) func(*Config) {
	return func(c *Config) {
		c.Chain.DepositFactory = invoice.Address(w.dev.DepositFactory)
		c.Chain.Tokens = []chain.Token{{Currency: chain.USDC, Address: invoice.Address(w.dev.Token), Decimals: 6}}
		c.Chain.Sweep = p
	}
}

// atOnce is the policy that sweeps everything.
var atOnce = chain.SweepPolicy{When: chain.SweepAtOnce}

// settlementOf returns a merchant's settlement address.
func (w *world) settlementOf(merchant string) common.Address {
	if a, ok := w.deposits.merchants[merchant]; ok {
		return a
	}
	return common.BytesToAddress([]byte("merchant " + merchant))
}

// deposit creates invoices of a merchant, pays amounts of the token to their deposit addresses, in blocks that are
// final for the indexer, and returns the addresses.
func (w *world) deposit(merchant string, amounts ...uint64) []common.Address {
	w.Helper()
	token := w.dev.Token
	if w.deposits.token == (common.Address{}) {
		w.deposits.token, w.deposits.invoices = token, make(map[common.Address]string)
	}
	var addresses []common.Address
	var invoices []invoice.Invoice
	var payments []ledger.PaymentRow
	settlement := w.settlementOf(merchant)
	for i, c := range commitments(len(amounts)) {
		factory := w.dev.DepositFactory
		address := contracts.DepositAddress(factory, settlement, common.Hash(c))
		id := w.ids.New(invoice.PrefixInvoice)
		invoices = append(invoices, invoice.Invoice{
			ID: id, CommitmentID: c, MerchantID: merchant, ChainKey: chain.Local, Currency: chain.USDC, Status: invoice.Open, CreatedAt: invoice.Unix(1),
			Collection: invoice.Deposit, DepositFactory: invoice.Address(factory), DepositAddress: invoice.Address(address),
			Terms: invoice.Terms{Merchant: invoice.Address(settlement), Token: invoice.Address(token), Amount: invoice.NewAmount(amounts[i]), ExpiresAt: invoice.Unix(2)},
		})
		payments = append(payments, w.depositPayment(id, address, amounts[i]))
		addresses = append(addresses, address)
		w.deposits.invoices[address] = id
		_, err := w.dev.SendToken(w.ctx, w.dev.Keys.Payer, address, new(big.Int).SetUint64(amounts[i]), nil)
		must(w, err)
	}
	w.seal(1)
	must(w, w.store.Update(w.ctx, func(tx *db.Tx) error {
		settles := access.SettlementAddress{ChainKey: chain.Local, Address: invoice.Address(settlement), MerchantID: merchant}
		if err := access.InsertSettlementAddresses(w.ctx, tx, []access.SettlementAddress{settles}, invoice.Unix(1)); err != nil {
			return err
		}
		if _, err := ledger.InsertInvoices(w.ctx, tx, invoices); err != nil {
			return err
		}
		return w.receive(tx, payments...)
	}))
	return addresses
}

// depositPayment returns a payment of the token to a deposit address in the next block.
func (w *world) depositPayment(invoiceID string, to common.Address, amount uint64) ledger.PaymentRow {
	p := ledger.PaymentRow{Payment: invoice.Payment{
		ID: w.ids.New(invoice.PrefixPayment), DepositOf: invoiceID, Status: invoice.Confirmed, ObservedAt: invoice.Unix(1), ConfirmedAt: invoice.Unix(1),
	}}
	p.SeenID = p.ID
	p.Transfer = invoice.Transfer{
		ChainKey: chain.Local, TxHash: sha256.Sum256([]byte(p.ID)), Token: invoice.Address(w.dev.Token), Currency: chain.USDC, To: invoice.Address(to),
		Amount:   invoice.NewAmount(amount),
		Position: invoice.Position{BlockNumber: w.head() + 1, BlockTime: invoice.Unix(w.clock.Now().Unix())},
	}
	return p
}

// receive stores payments to deposit addresses.
func (w *world) receive(tx *db.Tx, rows ...ledger.PaymentRow) error {
	payments := make([]invoice.Payment, len(rows))
	for i, row := range rows {
		payments[i] = row.Payment
	}
	return errors.Join(ledger.SavePayments(w.ctx, tx, rows), ledger.AddToDeposits(w.ctx, tx, payments, nil))
}

// indexSweeps reads the transfers from deposit addresses in the blocks starting at from, and makes those in blocks up
// to final final. It returns those that are not final. It changes only the transaction, which may run again.
func (w *world) indexSweeps(tx *db.Tx, from, final uint64) ([]types.Log, error) {
	if w.deposits.token == (common.Address{}) {
		return nil, nil
	}
	pending := slices.DeleteFunc(slices.Clone(w.deposits.pending), func(l types.Log) bool { return l.BlockNumber >= from })
	var logs []types.Log
	if from <= w.head() {
		var err error
		logs, err = w.client.FilterLogs(w.ctx, ethereum.FilterQuery{
			FromBlock: new(big.Int).SetUint64(from), Addresses: []common.Address{w.deposits.token}, Topics: [][]common.Hash{{chain.TransferTopic}},
		})
		if err != nil {
			return nil, err
		}
	}
	for _, l := range logs {
		if _, ok := w.deposits.invoices[common.BytesToAddress(l.Topics[1][:])]; ok {
			pending = append(pending, l)
		}
	}
	var sweeps []invoice.Sweep
	pending = slices.DeleteFunc(pending, func(l types.Log) bool {
		if l.BlockNumber > final {
			return false
		}
		deposit := common.BytesToAddress(l.Topics[1][:])
		s := invoice.Sweep{InvoiceID: w.deposits.invoices[deposit]} // it is not stored
		s.Transfer = invoice.Transfer{
			ChainKey: chain.Local, Token: invoice.Address(l.Address), From: invoice.Address(deposit), Amount: invoice.AmountFromBytes([32]byte(l.Data)),
			Position: invoice.Position{BlockNumber: l.BlockNumber, LogIndex: int(l.Index)},
		}
		sweeps = append(sweeps, s)
		return true
	})
	return pending, ledger.AddToDeposits(w.ctx, tx, nil, sweeps)
}

// wantQueue requires the numbers of waiting, in-flight and failing sweeps.
func (w *world) wantQueue(waiting, inFlight, failing int64) {
	w.Helper()
	got, err := ledger.CountSweeps(w.ctx, w.store, chain.Local, []invoice.Address{invoice.Address(w.dev.Token)})
	must(w, err)
	if want := (ledger.SweepCounts{Waiting: waiting, InFlight: inFlight, Failing: failing}); got != want {
		w.Fatalf("the queue is %+v, want %+v", got, want)
	}
}

// wantBalance requires an account's balance of the token.
func (w *world) wantBalance(of common.Address, want uint64) {
	w.Helper()
	got, err := w.dev.Balance(w.ctx, of)
	must(w, err)
	if got.Cmp(new(big.Int).SetUint64(want)) != 0 {
		w.Fatalf("%s has %s, want %d", of, got, want)
	}
}

func TestSweepsAtOnce(t *testing.T) {
	each(t, func(_ *testing.T, w *world) {
		writer := w.writer(w.sweeping(atOnce))
		w.deposit("m", 5, 7)
		w.deposit("n", 11)
		w.tick(writer)
		w.wantQueue(0, 3, 0)
		w.seal(1)
		w.wantBalance(w.settlementOf("m"), 12)
		w.wantBalance(w.settlementOf("n"), 11)
		w.tick(writer)
		w.wantQueue(0, 3, 0) // not final
		w.seal(finality)
		w.index()
		w.tick(writer)
		w.wantQueue(0, 0, 0)
		if tx := w.wantTxs(TxMined)[0]; tx.Kind != TxSweep || common.Address(tx.Destination) != w.dev.DepositFactory {
			w.Errorf("the transaction is of kind %s and calls %s", tx.Kind, tx.Destination)
		}
	})
}

// TestSweepsWithoutARegistry uses a chain with only a deposit factory.
func TestSweepsWithoutARegistry(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer(w.sweeping(atOnce), func(c *Config) { c.Chain.Registry = invoice.Address{} })
	w.deposit("m", 5)
	for range 3 {
		w.tick(writer)
		w.seal(1 + finality)
		w.index()
	}
	w.wantQueue(0, 0, 0)
	w.wantBalance(w.settlementOf("m"), 5)
}

// TestDepositThatIsPaidWhileItIsSwept pays a deposit again after its sweep was signed.
func TestDepositThatIsPaidWhileItIsSwept(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer(w.sweeping(atOnce))
	to := w.deposit("m", 5)[0]
	w.seal(1)
	w.index()
	w.tick(writer)
	w.seal(1)
	_, err := w.dev.SendToken(w.ctx, w.dev.Keys.Payer, to, big.NewInt(3), nil)
	must(t, err)
	p := w.depositPayment(w.deposits.invoices[to], to, 3)
	must(t, w.store.Update(w.ctx, func(tx *db.Tx) error { return w.receive(tx, p) }))
	w.seal(finality)
	w.index()
	w.tick(writer)
	w.tick(writer)
	w.wantQueue(0, 1, 0)
	w.seal(1 + finality)
	w.index()
	w.tick(writer)
	w.wantQueue(0, 0, 0)
	w.wantBalance(w.settlementOf("m"), 8)
}

// TestSweepPolicies expects each policy to sweep only the deposits that it wants.
func TestSweepPolicies(t *testing.T) {
	day := 24 * time.Hour
	for name, test := range map[string]struct {
		policy chain.SweepPolicy
		wait   time.Duration // wait before the second round
		first  int64         // in flight after the first round, and after the second
		second int64
	}{
		"at once":        {atOnce, 0, 3, 3},
		"never":          {chain.SweepPolicy{When: chain.SweepNever}, day, 0, 0},
		"above":          {chain.SweepPolicy{When: chain.SweepAbove, Amount: 2_000_000_000}, day, 2, 2},
		"above all":      {chain.SweepPolicy{When: chain.SweepAbove, Amount: 9_000_000_000}, day, 0, 0},
		"cheap gas":      {chain.SweepPolicy{When: chain.SweepCheapGas, GasPriceWei: 1 << 40}, 0, 3, 3},
		"gas too costly": {chain.SweepPolicy{When: chain.SweepCheapGas, GasPriceWei: 1}, day, 0, 0},
		"daily":          {chain.SweepPolicy{When: chain.SweepDaily, At: 8*time.Hour + time.Hour}, day, 0, 3},
		"cost":           {chain.SweepPolicy{When: chain.SweepAtOnce, MaxCost: chain.SweepCost{Percent: 1_000_000_000, CoinPrice: 1}}, 0, 3, 3},
		"cost too high":  {chain.SweepPolicy{When: chain.SweepAtOnce, MaxCost: chain.SweepCost{Percent: 1_000_000_000, CoinPrice: 1 << 60}}, day, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := onSQLite(t)
			writer := w.writer(w.sweeping(test.policy))
			w.deposit("m", 1_000_000, 2_000_000)
			w.deposit("n", 3_000_000)
			w.seal(1)
			w.index()
			for _, want := range []int64{test.first, test.second} {
				w.tick(writer)
				w.wantQueue(3-want, want, 0)
				w.clock.Add(test.wait)
			}
		})
	}
}

// TestWaitEndsWithTheLastDeposit lets another account sweep the deposit for which the writer waits for cheap gas.
func TestWaitEndsWithTheLastDeposit(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer(w.sweeping(chain.SweepPolicy{When: chain.SweepCheapGas, GasPriceWei: 1}))
	w.deposit("m", 5)
	waits := func(want bool) {
		t.Helper()
		w.tick(writer)
		w.clock.Add(countEvery)
		w.tick(writer)
		if got := writer.Status().Sweeps.Waiting; (got != "") != want {
			t.Errorf("the writer waits for %q", got)
		}
	}
	waits(true)
	_, err := w.dev.SendWithGas(w.ctx, w.dev.Keys.Merchant, w.dev.DepositFactory, chain.PackSweeps(calls(w.queued())), 1_000_000)
	must(t, err)
	w.seal(1 + finality)
	w.index()
	w.wantQueue(0, 0, 0)
	waits(false)
}

// TestSweepsAreFairToMerchants has one merchant with many deposits, and others with few.
func TestSweepsAreFairToMerchants(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer(w.sweeping(atOnce))
	writer.sweeps.batch = 6
	w.deposit("many", 9, 9, 9, 9, 9, 9, 9, 9)
	for i := range 3 {
		w.deposit(fmt.Sprint("shop", i), 1)
	}
	w.seal(1)
	w.index()
	b, err := writer.sweeps.next(w.ctx)
	must(t, err)
	served := make(map[string]int)
	for _, s := range w.queued() {
		if slices.Contains(b.items, s.ID) {
			served[s.MerchantID]++
		}
	}
	if served["shop0"] != 1 || served["shop1"] != 1 || served["shop2"] != 1 || served["many"] == 0 {
		t.Errorf("a batch of 6 serves %v, want each merchant", served)
	}
}

// TestSmallDepositsHoldUpNobody has one merchant with a deposit that the policy does not want, then, in the order of
// ids, one with a deposit that it wants, and batches of one deposit.
func TestSmallDepositsHoldUpNobody(t *testing.T) {
	each(t, func(_ *testing.T, w *world) {
		writer := w.writer(w.sweeping(chain.SweepPolicy{When: chain.SweepAbove, Amount: 1_000_000}))
		writer.sweeps.batch = 1
		w.deposit("a-small", 1)
		w.deposit("b-large", 2_000_000)
		w.seal(1)
		w.index()
		w.tick(writer)
		w.wantQueue(1, 1, 0)
		w.seal(1)
		w.wantBalance(w.settlementOf("b-large"), 2_000_000)
	})
}

// TestMerchantsAreServedInTheOrderOfTheDatabase uses merchant ids that Go sorts differently from PostgreSQL with a
// language's rules. Each merchant is served once in each of two turns.
func TestMerchantsAreServedInTheOrderOfTheDatabase(t *testing.T) {
	each(t, func(_ *testing.T, w *world) {
		writer := w.writer(w.sweeping(atOnce))
		writer.sweeps.batch = 1
		all := []string{"Zoe", "alice", "Bob", "carl_1", "carl-2", "_x"}
		for _, m := range all {
			w.deposit(m, 1, 2)
		}
		w.seal(1)
		w.index()
		served := make(map[string]int)
		for range 2 * len(all) {
			due, err := writer.sweeps.dueByPolicy(w.ctx, 1)
			must(w, err)
			if len(due) != 1 {
				w.Fatalf("%d deposits are due after %v", len(due), served)
			}
			writer.sweeps.after = due[0].MerchantID
			served[due[0].MerchantID]++
		}
		for _, m := range all {
			if served[m] != 2 {
				w.Errorf("in two turns %s was served %d times: %v", m, served[m], served)
			}
		}
	})
}

// queued returns the queue of all merchants.
func (w *world) queued() []ledger.QueuedSweep {
	w.Helper()
	f := ledger.SweepFilter{ChainKey: chain.Local, Token: invoice.Address(w.dev.Token)}
	merchants, err := ledger.MerchantsWithSweeps(w.ctx, w.store, f, "", 100)
	must(w, err)
	var all []ledger.QueuedSweep
	for _, m := range merchants {
		some, err := ledger.DueSweeps(w.ctx, w.store, f, m, 100)
		must(w, err)
		all = append(all, some...)
	}
	return all
}

// TestDepositThatCannotBeSwept has a settlement address that the token refuses to pay.
func TestDepositThatCannotBeSwept(t *testing.T) {
	parallelOnSQLite(t, func(_ *testing.T, w *world) {
		w.deposits.merchants = map[string]common.Address{"refused": {}}
		writer := w.writer(w.sweeping(atOnce))
		round := func() {
			w.tick(writer)
			w.seal(1 + finality)
			w.index()
			w.tick(writer)
		}
		w.deposit("m", 5)
		w.deposit("refused", 7)
		w.seal(1)
		w.index()
		round()
		w.wantBalance(w.settlementOf("m"), 5)
		w.wantQueue(1, 0, 1)
		for _, wait := range []time.Duration{sweepRetry, 2 * sweepRetry, 4 * sweepRetry} {
			w.clock.Add(wait - time.Second)
			w.deposit("m", 5) // this one is not delayed
			w.seal(1)
			w.index()
			round()
			w.wantQueue(1, 0, 1)
			w.clock.Add(time.Second)
			round()
			w.wantQueue(1, 0, 1)
		}
		w.wantBalance(w.settlementOf("m"), 20)
		w.wantTxs(slices.Repeat([]TxStatus{TxMined}, 7)...)
	})
}

// TestSweepThatIsRevertedWaits has a node whose estimates are too low. A deposit that is reverted on its own waits, and
// each time longer, so that no gas is spent in every block.
func TestSweepThatIsRevertedWaits(t *testing.T) {
	parallelOnSQLite(t, func(_ *testing.T, w *world) {
		low := &byzantine{Client: w.net, method: "eth_estimateGas", mutate: value(`"0xc350"`), times: -1}
		writer := w.writer(w.sweeping(atOnce), func(c *Config) {
			c.Client, c.Nodes = low, func() []Client { return []Client{low} }
		})
		w.deposit("m", 5)
		w.deposit("n", 7)
		w.seal(1)
		w.index()
		rounds := func(n int) {
			for range n {
				w.tick(writer)
				w.seal(1)
				w.index()
			}
		}
		rounds(8)
		w.wantQueue(2, 0, 2)
		w.wantTxs(TxFailed, TxFailed, TxFailed) // both, and then each on its own
		w.clock.Add(sweepRetry)
		low.times = 0
		rounds(3 + finality)
		w.wantQueue(0, 0, 0)
	})
}

// TestUnrecordedTokenIsTriedOnce has a command ask for a token that always refuses: it is not
// tried again at the operator's expense.
func TestUnrecordedTokenIsTriedOnce(t *testing.T) {
	each(t, func(_ *testing.T, w *world) {
		writer := w.writer(w.sweeping(chain.SweepPolicy{When: chain.SweepNever}))
		to := w.deposit("m", 5)[0]
		w.seal(1)
		w.index()
		noToken := invoice.Address(w.dev.DepositFactory)
		must(w, w.store.Update(w.ctx, func(tx *db.Tx) error {
			_, err := ledger.RequestSweeps(w.ctx, tx, ledger.SweepRequest{ChainKey: chain.Local, InvoiceID: w.deposits.invoices[to], Token: &noToken}, w.clock.Now())
			return err
		}))
		w.wantQueue(2, 0, 0)
		w.tick(writer)
		w.wantQueue(1, 1, 0)
		w.seal(1 + finality)
		w.index()
		w.tick(writer)
		w.wantQueue(1, 0, 0)
		w.clock.Add(sweepRetryMax)
		w.tick(writer)
		w.wantTxs(TxMined)
	})
}

// TestKindsDoNotBlockEachOther has the registry fail while deposits are due.
func TestKindsDoNotBlockEachOther(t *testing.T) {
	w := onSQLite(t)
	w.deposit("m", 5)
	w.seal(1)
	w.index()
	w.registry = common.Address{0xaa} // an account without code
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	writer := w.writer(w.sweeping(atOnce))
	if err := writer.tick(w.ctx); err == nil {
		t.Error("the registry's failure is not reported")
	}
	w.wantQueue(0, 1, 0)
	w.seal(1)
	w.wantBalance(w.settlementOf("m"), 5)
}

// TestCommitmentsGoBeforeSweeps has both kinds of work due.
func TestCommitmentsGoBeforeSweeps(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer(w.sweeping(atOnce))
	w.deposit("m", 5)
	w.seal(1)
	w.index()
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	for range 3 {
		w.tick(writer)
		w.seal(1)
	}
	txs := w.wantTxs(TxMined, TxMined)
	if txs[0].Kind != TxOpen || txs[1].Kind != TxSweep {
		t.Errorf("the transactions are of kinds %s and %s", txs[0].Kind, txs[1].Kind)
	}
}

// TestCommitmentsLeaveAPartOfTheBudget has a daily budget that commitments would use beyond their part, and not a sweep or
// an authorization.
func TestCommitmentsLeaveAPartOfTheBudget(t *testing.T) {
	measured := onSQLite(t)
	measured.enqueueIntents(invoice.IntentOpen, commitments(maxBatch)...)
	measured.tick(measured.writer())
	cost := uint64(measured.txs()[0].Reserved)

	w := onSQLite(t)
	writer := w.writer(w.gasless, w.sweeping(atOnce), func(c *Config) { c.Chain.Limits.PerDayGwei = cost * 100 / registryBudget * 9 / 10 })
	w.deposit("m", 5)
	w.acceptOf(w.payer(7))
	w.enqueueIntents(invoice.IntentOpen, commitments(maxBatch)...)
	for range 3 {
		if err := writer.tick(w.ctx); err != nil && !errors.Is(err, errBudget) {
			t.Fatal(err)
		}
		w.seal(1)
		w.clock.Add(blockerCheckEvery)
	}
	txs := w.wantTxs(TxMined, TxMined)
	if txs[0].Kind != TxAuthorization || txs[1].Kind != TxSweep {
		t.Errorf("the transactions are of kinds %s and %s", txs[0].Kind, txs[1].Kind)
	}
	w.wantDue(maxBatch)
}

// TestSweepLimitsAreDocumented compares the row of sweeps in the table of limits with the constants.
func TestSweepLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(testdeps.Repo("docs/operations.md"))
	must(t, err)
	want := fmt.Sprintf("| sweeps | %d deposits and %d gas in a transaction; a deposit that a transaction did not sweep is tried again after %d minutes then after twice as long each time up to %d hours |",
		maxBatch, chain.DefaultMaxTxGas, sweepRetry/time.Minute, sweepRetryMax/time.Hour)
	if !strings.Contains(strings.ReplaceAll(string(text), ",", ""), want) {
		t.Errorf("docs/operations.md lacks %q", want)
	}
}

// TestSweepBackoff doubles the wait of a deposit up to a day.
func TestSweepBackoff(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	k := &sweepWork{w: &Writer{conf: Config{Schedule: func() time.Time { return now }}}}
	for failures, want := range map[int]time.Duration{
		0: 10 * time.Minute, 1: 20 * time.Minute, 7: 1280 * time.Minute, 8: 24 * time.Hour, 15: 24 * time.Hour, 16: 24 * time.Hour, 1 << 40: 24 * time.Hour,
	} {
		if got := k.retryAt(ledger.QueuedSweep{Failures: failures}).Sub(now); got != want {
			t.Errorf("after %d failures it waits %s, want %s", failures, got, want)
		}
	}
}

// TestSweepBatch has one deposit more than fits in a transaction, and more than its gas allows.
func TestSweepBatch(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	writer := w.writer(w.sweeping(atOnce))
	w.deposit("m", slices.Repeat([]uint64{5}, maxBatch+1)...)
	w.seal(1)
	w.index()
	b, err := writer.sweeps.next(w.ctx)
	must(t, err)
	expect.Len(t, b.items, maxBatch, "deposits to be swept at once:")
	for range 2 {
		w.tick(writer)
		w.seal(1 + finality)
		w.index()
	}
	w.tick(writer)
	w.wantQueue(0, 0, 0)
	w.wantBalance(w.settlementOf("m"), 5*(maxBatch+1))
	for _, row := range w.wantTxs(TxMined, TxMined) {
		tx, err := decode(row.Attempts[0])
		must(t, err)
		if n, err := sweepsIn(row); err != nil || n > maxBatch || tx.Gas() > chain.DefaultMaxTxGas || tx.Gas() < uint64(n)*80_000 {
			t.Errorf("%d deposits have %d gas, %v", n, tx.Gas(), err)
		}
	}
}

// TestCostIsRecordedOnce has a node fall behind by a block after a sweep was mined.
func TestCostIsRecordedOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		receipts := &byzantine{Client: w.net, method: "eth_getTransactionReceipt", mutate: value(`null`)}
		nonces := &byzantine{Client: receipts, method: nonceMethod, mutate: ofTag("latest", `"0x0"`)}
		writer := w.writer(w.sweeping(atOnce), func(c *Config) { c.Client = nonces })
		w.deposit("m", 5)
		w.tick(writer)
		w.seal(1)
		w.tick(writer)
		first := w.wantTxs(TxMined)[0]
		w.clock.Add(time.Minute)
		receipts.times, nonces.times = 1, -1
		writer.report(writer.tick(w.ctx))
		w.wantTxs(TxSent)
		nonces.times = 0
		w.tick(writer)
		again := w.wantTxs(TxMined)[0]
		if first.Spent == nil || again.Spent == nil || *again.Spent != *first.Spent {
			t.Errorf("the cost is %+v, and was %+v", again.Spent, first.Spent)
		}
		entries, err := access.NewReader(w.store).AuditEntries(w.ctx, access.AuditFilter{Action: access.ActionDepositSwept, Limit: 10})
		must(t, err)
		if len(entries) != 1 {
			t.Errorf("there are %d entries, want 1", len(entries))
		}
	})
}

// TestSweepCostIsAudited expects an entry for each merchant with deposits in a transaction. The entries add up to the
// transaction's cost, even if it was reverted.
func TestSweepCostIsAudited(t *testing.T) {
	each(t, func(_ *testing.T, w *world) {
		writer := w.writer(w.sweeping(atOnce))
		w.deposit("m", 5, 7)
		w.deposit("n", 11)
		w.seal(1)
		w.index()
		w.tick(writer)
		w.seal(1)
		w.index()
		w.tick(writer)
		tx := w.wantTxs(TxMined)[0]
		entries, err := access.NewReader(w.store).AuditEntries(w.ctx, access.AuditFilter{Action: access.ActionDepositSwept, Limit: 10})
		must(w, err)
		sum, deposits := int64(0), make(map[string]int64)
		for _, e := range entries {
			var after auditedCost
			must(w, json.Unmarshal([]byte(e.After), &after))
			cost, err := strconv.ParseInt(after.CostGwei, 10, 64)
			must(w, err)
			sum += cost
			deposits[e.MerchantID] = after.Deposits
			if e.Actor != access.ActorService || e.Object != tx.Attempts[0].TxHash.String() || after.ChainKey != chain.Local || after.Reverted {
				w.Errorf("the entry is %+v", e)
			}
		}
		if len(entries) != 2 || deposits["m"] != 2 || deposits["n"] != 1 || tx.Spent == nil || sum != tx.Spent.Gwei || sum == 0 {
			w.Errorf("the entries have %v deposits and %d gwei, and the transaction cost %+v", deposits, sum, tx.Spent)
		}
	})
}
