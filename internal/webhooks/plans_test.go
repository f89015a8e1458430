package webhooks_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/txmgr"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestStatementsUseIndexes checks the query plans of the statements that run repeatedly. No plan may
// scan a whole table, build a temporary index or sort a list, so that the cost does not grow with the
// stored rows. The plans are made with few rows, and with statistics of very many similar rows.
func TestStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		url := dbtest.SQLite(t)
		statements := recordStatements(t, dbtest.Open(t, url))
		conn := dbtest.SQL(t, url)
		conn.SetMaxOpenConns(1) // the connection that ran ANALYZE must make the plans
		for _, fill := range []func(*testing.T, *sql.DB){func(*testing.T, *sql.DB) {}, fillLopsided} {
			fill(t, conn)
			for _, s := range statements {
				if strings.HasPrefix(s.Query, "INSERT") && !strings.Contains(s.Query, "SELECT") {
					continue // it reads no table and has no plan
				}
				steps := rowtest.Explain(t, conn, "EXPLAIN QUERY PLAN "+db.SQLiteText(s.Query), s.Args, 4)
				checkIndex(t, s, steps)
				checkOpenInvoices(t, s, steps)
				checkExpression(t, s, steps)
				checkPages(t, s, steps)
				for _, step := range withoutCoRoutine(steps) {
					constant := strings.Contains(step, "CONSTANT ROW") || strings.HasPrefix(step, "SCAN wanted") || strings.HasPrefix(step, "SCAN queued") ||
						strings.HasPrefix(step, "SCAN listed") || step == "SCAN points" || strings.HasPrefix(step, "SCAN chains") || step == "SCAN deliverers" // one row for each process
					whole := strings.HasPrefix(step, "SCAN") && !constant && (!s.IsList() || !strings.Contains(step, "USING"))
					// The lopsided statistics have as many open invoices as rows.
					whole = whole || !s.IsList() && !s.IsMerged() && strings.Contains(step, "INDEX invoices_by_state")
					if whole || strings.Contains(step, "AUTOMATIC") || s.IsList() && strings.Contains(step, "TEMP B-TREE") {
						t.Errorf("%s: %s\n%s", s.What, step, s.Query)
					}
				}
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := dbtest.MigratedPostgres(t)
		statements := recordStatements(t, dbtest.Open(t, url))
		defer func() { checkFilteredOnPostgres(t, url, statements) }()
		conn := rowtest.IndexesAlone(t, url)
		for _, lopsided := range []bool{false, true} {
			if lopsided {
				fillLopsided(t, conn)
			}
			for _, s := range statements {
				steps := rowtest.Explain(t, conn, "EXPLAIN "+s.Query, s.Args, 1)
				checkIndex(t, s, steps)
				if !lopsided { // otherwise all open invoices of the chain have the amount
					checkOpenInvoices(t, s, steps)
				}
				for _, step := range steps {
					if strings.Contains(step, "Seq Scan on deliverers") {
						continue // one row for each process
					}
					if strings.Contains(step, "Seq Scan") || s.IsList() && !s.IsMerged() && strings.Contains(step, "Sort") {
						t.Errorf("%s: %s\n%s", s.What, step, s.Query)
					}
				}
			}
		}
	})
}

// checkFilteredOnPostgres checks that PostgreSQL scans no whole table for a filtered list
// and sorts no invoices, with the store's own settings and a generic plan.
func checkFilteredOnPostgres(t *testing.T, url string, statements []rowtest.Statement) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	rowtest.Must(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // a failure has no consequences
	for _, query := range []string{
		db.SessionSettings, "SET plan_cache_mode = force_generic_plan",
		"INSERT INTO invoice_details (invoice_id, merchant_id, reference) SELECT id, merchant_id, 'order-' || id FROM invoices WHERE id LIKE 'inv_10%'",
		"INSERT INTO invoice_metadata (invoice_id, merchant_id, key, value) SELECT id, merchant_id, 'k', id FROM invoices WHERE id LIKE 'inv_10%'", "ANALYZE",
	} {
		expect.Success(t)(conn.Exec(t.Context(), query))
	}
	for _, s := range statements {
		name, filtered := strings.CutPrefix(s.What, "filtered: ")
		if !filtered && !strings.HasPrefix(s.What, "sums: ") && s.What != "candidates" {
			continue
		}
		arguments := strings.TrimSuffix(strings.Repeat("NULL, ", len(s.Args)), ", ")
		results, err := conn.PgConn().Exec(t.Context(), "DEALLOCATE ALL; PREPARE filtered AS "+s.Query+"; EXPLAIN EXECUTE filtered ("+arguments+")").ReadAll()
		rowtest.Must(t, err)
		var plan string
		for _, row := range results[len(results)-1].Rows {
			plan += string(row[0]) + "\n"
		}
		if !filtered {
			checkIndex(t, s, []string{plan})
			checkOpenInvoices(t, s, []string{plan})
			continue
		}
		for _, unwanted := range []string{"Incremental Sort", "Sort", "Hash", "Merge Join", "Bitmap", "Parallel"} {
			// Several indexes of payments begin with the same column. The planner may use another one of them and sort.
			allowed := unwanted == "Sort" && (s.IsMerged() || strings.HasPrefix(filterIndexes[name], "payments_") || filterIndexes[name] == "confirmation")
			if strings.Contains(plan, unwanted) && !allowed {
				t.Errorf("%s: %s\n%s\n%s", s.What, unwanted, s.Query, plan)
				break
			}
		}
	}
}

// withoutCoRoutine returns a SQLite plan without the step of a co-routine.
func withoutCoRoutine(steps []string) []string {
	for _, step := range steps {
		if name, ok := strings.CutPrefix(step, "CO-ROUTINE "); ok {
			i := slices.Index(steps, "SCAN "+name)
			return slices.Delete(slices.Clone(steps), i, i+1)
		}
	}
	return steps
}

// checkIndex checks that a statement uses the index that is made for it, because others
// would read many rows that do not match.
func checkIndex(t *testing.T, s rowtest.Statement, steps []string) {
	t.Helper()
	plan := strings.Join(steps, "\n")
	want := map[string]string{"in time": "payments_in_time", "newest": "payments_by_invoice", "lacking": "invoices_rare"}[s.What]
	if name, filtered := strings.CutPrefix(s.What, "filtered: "); filtered {
		want = filterIndexes[name]
	}
	if strings.HasPrefix(s.What, "inbox: ") && strings.Contains(s.Query, "item = ") {
		want = "_item"
	}
	if strings.HasPrefix(s.What, "inbox: ") && s.IsMerged() {
		want = "_state"
	}
	if strings.HasPrefix(s.What, "customers: ") {
		want = "invoice_details_by_customer"
	}
	if strings.HasPrefix(s.What, "sums: ") {
		want = "_state"
	}
	if !strings.Contains(plan, want) {
		t.Errorf("%s: %q, want the index %s", s.What, steps, want)
	}
}

// checkExpression checks that SQLite finds a customer by the expression of the index, and does not read all
// customers of the merchant.
func checkExpression(t *testing.T, s rowtest.Statement, steps []string) {
	t.Helper()
	for _, step := range steps {
		if strings.Contains(step, "INDEX invoice_details_by_customer ") && !strings.Contains(step, "<expr>") {
			t.Errorf("%s: %s\n%s", s.What, step, s.Query)
		}
	}
}

// checkPages checks that SQLite, for a statement, does not read the earlier pages again.
func checkPages(t *testing.T, s rowtest.Statement, steps []string) {
	t.Helper()
	if strings.HasPrefix(s.What, "report: stated after ") && !strings.Contains(strings.Join(steps, "\n"), "(merchant_id=? AND id>? AND id<?)") {
		t.Errorf("%s: %q", s.What, steps)
	}
}

// checkOpenInvoices checks that a lookup of invoices by amount does not scan all open invoices of a chain.
func checkOpenInvoices(t *testing.T, s rowtest.Statement, steps []string) {
	t.Helper()
	if s.What != "candidates" && s.What != "taken" {
		return
	}
	plan := strings.Join(steps, "\n")
	for _, unwanted := range []string{"invoices_expiring", "invoices_rare", "invoices_by_state"} {
		if strings.Contains(plan, unwanted) {
			t.Errorf("%s: %q, which reads the open invoices of a chain by %s", s.What, steps, unwanted)
		}
	}
}

// fillLopsided stores very many rows with equal values in the searched columns, and updates the database's statistics.
// Only the payments of an invoice differ: they came late.
func fillLopsided(t *testing.T, conn *sql.DB) {
	t.Helper()
	const many = "WITH RECURSIVE many (i) AS (SELECT 100000 UNION ALL SELECT i + 1 FROM many WHERE i < 103000) "
	for _, s := range []string{
		`INSERT INTO invoices (id, commitment_id, merchant_id, merchant_address, chain_key, token, currency, amount, tolerance, line_items,
			status, created_at, expires_at, from_block, closed_block, registry) ` + many + `
			SELECT 'inv_' || i, '0x' || substr(commitment_id, 3, 26) || i || substr(commitment_id, 35), merchant_id, merchant_address, chain_key, token, currency, amount, tolerance, line_items,
			CASE WHEN i % 3 = 0 THEN 'open' ELSE 'expired' END, created_at, expires_at, 1, CASE WHEN i % 3 = 0 THEN NULL ELSE 5 END, registry
			FROM invoices CROSS JOIN many WHERE id = 'inv_1'`,
		`INSERT INTO transfer_amounts (invoice_id, base, merchant_address, chain_key, token, from_block, expires_at, remainder, live, closed_block)
			SELECT id, amount, merchant_address, chain_key, token, 1, expires_at, 1, CASE WHEN status = 'open' THEN 1 ELSE 0 END, closed_block
			FROM invoices WHERE id LIKE 'inv_10%'`,
		`INSERT INTO payments (id, seen_id, chain_key, tx_hash, ordinal, log_index, block_number, block_hash, block_time, token, currency,
			from_address, to_address, amount, status, observed_at, confirmed_at, invoice_id, merchant_id, method, use) ` + many + `
			SELECT 'pay_' || i, 'seen_' || i, chain_key, '0x' || substr(tx_hash, 3, 58) || i, 0, 1, block_number, block_hash, block_time + i, token, currency,
			from_address, to_address, amount, 'confirmed', observed_at, observed_at,
			CASE WHEN i % 2 = 0 THEN 'inv_1' END, CASE WHEN i % 2 = 0 THEN 'm' END, CASE WHEN i % 2 = 0 THEN 'calldata' END,
			CASE WHEN i % 2 = 0 THEN 'counted' ELSE 'undecided' END
			FROM payments CROSS JOIN many WHERE id = 'pay_1'`,
		`INSERT INTO refunds (id, chain_key, tx_hash, ordinal, log_index, block_number, block_hash, block_time, token, currency, from_address, to_address, amount,
			status, payment_id, observed_at, confirmed_at) SELECT 'ref_' || substr(id, 5), chain_key, tx_hash, 7, 7, block_number, block_hash, block_time, token, currency,
			to_address, from_address, amount, 'confirmed', id, 1, 1 FROM payments WHERE id LIKE 'pay_10%'`,
		`INSERT INTO refund_records (id, list_id, refund_id, tx_hash, payment_id, merchant_id, chain_key, status, created_at, tag, amount, sender, recipient, token, account,
			many_invoices, expires_at) SELECT 'ref_p' || id, id, id, tx_hash, payment_id, 'm', 'base', 'pending', 1, tx_hash, '1', from_address, to_address, token, 'unknown', 0, CAST(substr(id, 5) AS BIGINT)
			FROM refunds WHERE id LIKE 'ref_10%'`,
		"ANALYZE invoices", "ANALYZE transfer_amounts", "ANALYZE refunds", "ANALYZE payments", "ANALYZE refund_records",
	} {
		_, err := conn.ExecContext(t.Context(), s)
		if err != nil {
			t.Fatalf("%v\n%s", err, s)
		}
	}
}

// runner names a statement, and then checks the results of the call that runs it.
type runner func(what string) func(results ...any)

// leaseAll returns a request for deliveries of a merchant.
func leaseAll(now int64) webhooks.LeaseRequest {
	return webhooks.LeaseRequest{
		LeaseID: "l", Now: rowtest.AtMS(now), Until: rowtest.AtMS(now + 1), Queues: []webhooks.Queue{{MerchantID: "m"}}, Suspect: 9, PerMerchant: 9,
	}
}

// recordStatements runs what the service runs, and returns the statements.
func recordStatements(t *testing.T, s *db.DB) []rowtest.Statement {
	t.Helper()
	var all []rowtest.Statement
	what := ""
	report := func(query string, args []any) {
		all = append(all, rowtest.Statement{What: what, Query: query, Args: slices.Clone(args)})
	}
	read := db.Recorded(s, report)
	ctx := t.Context()
	rowtest.Fill(t, s)
	claim := ledger.ClaimRow{ID: "clm_1", PaymentID: "pay_2", InvoiceID: "inv_1", MerchantID: "m"}
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.SaveClaim(ctx, tx, claim) })
	run := runner(func(name string) func(...any) {
		what = name
		return func(results ...any) {
			t.Helper()
			if err, _ := results[len(results)-1].(error); err != nil && !errors.Is(err, db.ErrNotFound) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
	for i := range 32 {
		pick := func(bit int, value string) string {
			if i>>bit&1 == 0 {
				return ""
			}
			return value
		}
		run(fmt.Sprintf("list %d", i))(ledger.NewReader(read).Invoices(ctx, ledger.InvoiceFilter{MerchantID: pick(0, "m"), Status: invoice.Status(pick(1, "open")), Before: pick(2, "inv_5"), Limit: 50}))
		run(fmt.Sprintf("list %d", i))(ledger.NewReader(read).Payments(ctx, ledger.PaymentFilter{MerchantID: pick(0, "m"), ChainKey: pick(1, "base"), Before: ledger.PaymentPosition{SeenID: pick(2, "seen")}, IncludePending: i>>3&1 == 1, IncludeUnattributed: i>>4 == 1, Limit: 50}))
	}
	for _, merchant := range []string{"", "m"} {
		for name, f := range filteredInvoices {
			f.MerchantID, f.Limit = merchant, 50
			run("filtered: " + name)(ledger.NewReader(read).Invoices(ctx, f))
		}
		for name, f := range filteredPayments {
			f.MerchantID, f.Limit = merchant, 50
			run("filtered: " + name)(ledger.NewReader(read).Payments(ctx, f))
		}
	}
	for i := range 8 {
		pick := func(bit int, value string) string {
			if i>>bit&1 == 0 {
				return ""
			}
			return value
		}
		run(fmt.Sprintf("claims %d", i))(ledger.NewReader(read).Claims(ctx, ledger.ClaimFilter{MerchantID: pick(0, "m"), PaymentID: pick(1, "pay_2"), Before: pick(2, "clm_5"), Limit: 50}))
	}
	recordRefundLists(t, read, run)
	recordPaymentLinks(t, read, run)
	recordReports(t, read, run)
	recordCustomers(t, read, run)
	recordDecisions(t, read, run)
	recordRequests(t, read, run)
	recordOperator(t, read, run)
	for i := range 4 * 5 { // the other lists of events are in eventLists
		states := []webhooks.Status{"", webhooks.Pending, webhooks.Delivered, webhooks.Failed, webhooks.None}
		f := webhooks.EventFilter{Delivery: states[i/4], After: new(int64), Limit: 50}
		if i&1 == 1 {
			f.MerchantID = "m"
		}
		if i&2 == 2 {
			f.Type = invoice.EventPaid
		}
		run(fmt.Sprintf("events %+v", f))(webhooks.NewReader(read).Events(ctx, f))
	}
	moved := rowtest.SamplePayment(1).Transfer
	moved.Evidence = invoice.Evidence{Registry: invoice.Hash{1}, Authorization: invoice.Hash{2}, Calldata: invoice.Hash{3}}
	notice := invoice.Notice{Address: moved.To, Amount: moved.Amount, ChainKey: "base", Currency: "USDC", Provider: "p", Type: "t"}
	run("invoice")(ledger.NewReader(read).Invoice(ctx, "inv_1"))
	run("references")(ledger.NewReader(read).References(ctx, []string{"inv_1", "inv_2"}))
	run("history")(ledger.NewReader(read).InvoiceHistory(ctx, "inv_1"))
	run("find by id")(ledger.NewReader(read).FindInvoices(ctx, "inv_1", "m", 50))
	run("find by payment")(ledger.NewReader(read).FindInvoices(ctx, "pay_1234567", "m", 50))
	run("find by event")(ledger.NewReader(read).FindInvoices(ctx, "evt_1234567", "m", 50))
	run("find by refund")(ledger.NewReader(read).FindInvoices(ctx, "ref_1234567", "m", 50))
	run("find by hash")(ledger.NewReader(read).FindInvoices(ctx, moved.TxHash.String(), "m", 50))
	run("find by ends")(ledger.NewReader(read).FindInvoices(ctx, "0x123456…abcdef", "m", 50))
	run("find by words")(ledger.NewReader(read).FindInvoices(ctx, "two ladders", "m", 50))
	run("find in all merchants")(ledger.NewReader(read).FindInvoices(ctx, "two ladders", "", 50))
	run("find payments by ends")(ledger.NewReader(read).FindPayments(ctx, "0x123456…abcdef", "m", 50))
	run("find payments by id")(ledger.NewReader(read).FindPayments(ctx, "pay_1234567", "m", 50))
	run("find by address")(ledger.NewReader(read).FindInvoices(ctx, moved.To.String(), "m", 50))
	run("invoices")(ledger.InvoicesWithoutLines(ctx, read, []string{"inv_1", "inv_2"}))
	run("expiring")(ledger.ExpiringInvoices(ctx, read, "base", 0, invoice.Unix(9999), 500))
	run("candidates")(ledger.InvoicesByAmount(ctx, read, []ledger.AmountLookup{rowtest.Lookup(100, 8, 1500), rowtest.Lookup(1, 8, 1500)}, 16))
	run("taken")(ledger.AmountUses(ctx, read, []ledger.AmountKey{{ChainKey: "base", Merchant: moved.To, Token: moved.Token, Amount: moved.Amount}}, func() time.Time { return invoice.Unix(0) }))
	run("assigned")(ledger.RemainderTransferAmounts(ctx, read, map[string][]invoice.Amount{"inv_1": {invoice.NewAmount(1)}}))
	run("lacking")(ledger.InvoicesLackingTransferAmounts(ctx, read, "base", "inv_1", 9))
	refund := invoice.RefundRecord{ChainKey: "base", Token: moved.Token, Amount: moved.Amount}
	run("a transfer like a refund's")(ledger.NewReader(read).TransferLike(ctx, refund, invoice.Unix(9999)))
	run("heights")(ledger.IndexedHeights(ctx, read, []string{"base"}))
	run("deposits")(ledger.Deposits(ctx, read, "base", []invoice.Address{moved.To, moved.From}))
	run("deposit holdings")(ledger.NewReader(read).AreDeposits(ctx, []invoice.Address{moved.To, moved.From}))
	run("watched")(ledger.WatchedAddresses(ctx, read, "base", []invoice.Address{moved.To, moved.From}))
	run("due sweeps")(ledger.DueSweeps(ctx, read, ledger.SweepFilter{ChainKey: "base", Token: moved.Token, MinAmount: invoice.NewAmount(5)}, "m", 200))
	run("merchants with sweeps")(ledger.MerchantsWithSweeps(ctx, read, ledger.SweepFilter{ChainKey: "base", Token: moved.Token, MinAmount: invoice.NewAmount(5)}, "", 200))
	run("requested sweeps")(ledger.RequestedSweeps(ctx, read, "base", 200))
	run("sweeps of a transaction")(ledger.SweepsOfTx(ctx, read, "ctx_1"))
	run("queued sweeps")(ledger.QueuedSweeps(ctx, read, "base", "", 200))
	run("queued sweeps of a merchant")(ledger.QueuedSweeps(ctx, read, "base", "m", 200))
	run("count of sweeps")(ledger.CountSweeps(ctx, read, "base", []invoice.Address{moved.Token}))
	run("sweeps")(ledger.SweepsByID(ctx, read, []string{"swp_1"}))
	run("pending sweeps")(ledger.PendingSweeps(ctx, read, "base", 0, 999))
	run("orphaned sweeps")(ledger.OrphanedSweeps(ctx, read, "base", 0, 999))
	run("undecided")(ledger.UndecidedPayments(ctx, read, "base", 500))
	run("undecided refunds")(ledger.UndecidedRefunds(ctx, read, "base", 0, 9, 500))
	run("payments to claim")(ledger.PaymentsToClaim(ctx, read, rowtest.Sample("inv_1", "m"), moved.TxHash, moved.From, 100))
	run("awaits a refund")(ledger.MayBeRefunded(ctx, read, moved))
	run("last undecided")(ledger.LastUndecidedBlock(ctx, read, "base"))
	run("waiting")(ledger.ReceiverStates(ctx, read, "base", []invoice.Address{moved.To, moved.From}))
	run("settlements")(access.SettlementAddresses(ctx, read, "base", []invoice.Address{moved.To, moved.From}))
	run("announced")(ledger.Announced(ctx, read, []ledger.PaymentRow{rowtest.SamplePayment(1), rowtest.SamplePayment(2)}))
	for _, orPrepared := range []bool{false, true} {
		run("pairs")(ledger.PaidPairs(ctx, read, "base", []ledger.Pair{{Payer: moved.From, Receiver: moved.To}, {Payer: moved.To}}, orPrepared))
	}
	run("tolerant")(ledger.InvoicesWithTolerance(ctx, read, []ledger.AmountLookup{rowtest.Lookup(100, 8, 1500), rowtest.Lookup(1, 8, 1500)}, 500))
	run("transfer amounts")(ledger.InvoicesByTransferAmount(ctx, read, []invoice.Transfer{moved, moved}))
	run("commitments")(ledger.InvoicesByCommitment(ctx, read, []invoice.Hash{{1}, {2}}))
	run("payments by id")(ledger.PaymentsByID(ctx, read, []string{"pay_1", "pay_2"}))
	run("refunds by id")(ledger.RefundsByID(ctx, read, []string{"ref_1"}))
	run("transaction")(ledger.NewReader(read).PaymentsOfTransaction(ctx, []string{"base", "ethereum"}, invoice.Hash{1}))
	run("near")(ledger.NewReader(read).NearInvoices(ctx, []ledger.NearLookup{
		{Transfer: moved, CreatedBefore: invoice.Unix(2_000_000_000)}, {Transfer: moved, CreatedBefore: invoice.Unix(2_000_000_000)},
	}, "m"))
	run("merchants of unattributed")(ledger.MerchantsOfUnattributed(ctx, read, []string{"pay_1", "pay_2"}))
	run("optional events")(webhooks.OptionalEvents(ctx, read, []string{"m", "n"}))
	run("claims of invoice")(ledger.OpenClaimsOfInvoice(ctx, read, "inv_1", 10))
	run("claims of payments")(ledger.NewReader(read).ClaimsOfPayments(ctx, []string{"pay_1", "pay_2"}, "", 10))
	run("claims of a merchant's payments")(ledger.NewReader(read).ClaimsOfPayments(ctx, []string{"pay_1", "pay_2"}, "m", 10))
	run("invoice claims")(ledger.NewReader(read).InvoiceClaims(ctx, "inv_1", "pay_2"))
	run("payment")(ledger.NewReader(read).Payment(ctx, "pay_1"))
	run("payments")(ledger.NewReader(read).PaymentsOfInvoices(ctx, []string{"inv_1"}))
	run("in time")(ledger.PaymentsInTime(ctx, read, []invoice.Invoice{rowtest.Sample("inv_1", "m")}))
	run("newest")(ledger.NewReader(read).NewestPayments(ctx, "inv_1", 20))
	run("newest ids")(ledger.NewestPaymentIDs(ctx, read, []string{"inv_1", "inv_2"}, 1000))
	run("recorded")(ledger.WhichRecorded(ctx, read, []string{"ref_1", "ref_2"}))
	run("submissions of many")(ledger.NewReader(read).Submissions(ctx, "ref_1", "ref_2"))
	run("registered")(ledger.PaidThroughRegistry(ctx, read, []string{"inv_1"}))
	run("unfinal")(ledger.PendingPayments(ctx, read, "base", 0, 999))
	run("orphaned")(ledger.OrphanedPayments(ctx, read, "base", 1, 999))
	run("among undecided")(ledger.NewReader(read).WhichUndecided(ctx, []string{"pay_1", "pay_2"}))
	pair := ledger.Pair{Payer: moved.From, Receiver: moved.To}
	run("refund")(ledger.PaymentsBetween(ctx, read, "base", []ledger.Pair{pair}, 999))
	run("refunds")(ledger.RefundsOfPayments(ctx, read, []string{"pay_1"}))
	run("refunded")(ledger.RefundsOfInvoices(ctx, read, []string{"inv_1"}))
	run("paid back")(ledger.RefundedSums(ctx, read, []string{"pay_1"}))
	run("unfinal too")(ledger.PendingRefunds(ctx, read, "base", 0, 999))
	run("refund record")(ledger.NewReader(read).RefundRecord(ctx, "ref_none"))
	run("refund by token")(ledger.RefundByClaimToken(ctx, read, "t"))
	run("refund by key")(ledger.RefundByKey(ctx, read, "pay_1", "m", "k"))
	run("prepared for")(ledger.PreparedByTag(ctx, read, "base", []invoice.Hash{{1}}))
	fitting := ledger.PreparedKey{From: moved.To, To: moved.From, Token: moved.Token, Amount: moved.Amount}
	run("fitting")(ledger.PreparedFitting(ctx, read, "base", []ledger.PreparedKey{fitting}, 8))
	fitting.SubmittedTx = moved.TxHash
	run("fitting")(ledger.PreparedFitting(ctx, read, "base", []ledger.PreparedKey{fitting}, 8))
	run("many invoices")(ledger.HasPaidManyInvoices(ctx, read, invoice.Payment{Transfer: moved}, 10))
	run("key")(ledger.FindIdempotencyKey(ctx, read, "m", "k", invoice.Unix(1000)))
	run("cursor")(ledger.NewReader(read).Cursor(ctx, "base"))
	run("created")(webhooks.CreatedSeqs(ctx, read, []string{"inv_1", "inv_2"}))
	run("headers")(ledger.Headers(ctx, read, "base", 0, 999))
	run("notice")(ledger.UnlinkedPayment(ctx, read, notice))
	run("notices")(rowtest.NoticesOfPayment(ctx, read, "pay_1"))
	run("due")(ledger.DueIntents(ctx, read, "base", rowtest.TestRegistry, "", 200))
	run("due count")(ledger.DueCount(ctx, read, "base", rowtest.TestRegistry))
	run("authorization")(ledger.NewReader(read).Authorization(ctx, "aut_1"))
	run("authorizations")(ledger.NewReader(read).AuthorizationsOfInvoice(ctx, "inv_1", 10))
	run("authorization by nonce")(ledger.NewReader(read).AuthorizationByNonce(ctx, "base", moved.Token, moved.From, invoice.Hash{1}))
	run("bound authorizations")(ledger.BoundAuthorizations(ctx, read, []invoice.Transfer{moved, moved}))
	run("pending authorization")(ledger.NewReader(read).PendingAuthorization(ctx, "inv_1"))
	run("due authorizations")(ledger.DueAuthorizations(ctx, read, "base", rowtest.At(1), rowtest.At(1), "", 200))
	run("count of authorizations")(ledger.CountDueAuthorizations(ctx, read, "base"))
	run("budget of authorizations")(ledger.CountAuthorizations(ctx, read, "base", "m", moved.From, ledger.Window{Since: rowtest.At(1), Oldest: rowtest.At(1)}))
	run("x402 settlement")(ledger.NewReader(read).X402Settlement(ctx, rowtest.SampleSettlement(rowtest.SampleAuthorization(1, "inv_1")).AuthorizationKey))
	run("sent transaction")(ledger.NewReader(read).SentTx(ctx, "ctx_1"))
	run("held by another")(ledger.NewReader(read).IsHeldByOther(ctx, moved.To, "n"))
	run("unsettled")(txmgr.UnsettledTxs(ctx, read, "base"))
	run("work")(txmgr.HasWork(ctx, read, "base"))
	run("event")(webhooks.NewReader(read).EventRecord(ctx, "evt_1"))
	run("listened")(webhooks.HasListener(ctx, read, webhooks.Event{MerchantID: "m", Type: invoice.EventPaid, InvoiceID: "inv_1"}, rowtest.At(1)))
	run("changes")(access.NewReader(read).Changes(ctx, 5, 10))
	run("queues")(webhooks.NewReader(read).Queues(ctx))
	run("last")(webhooks.NewReader(read).LastSeq(ctx))
	run("endpoints")(webhooks.Endpoints(ctx, read, []string{"m", "n"}))
	run("nonces")(txmgr.ChainTxsFrom(ctx, read, "base", invoice.Address{1}, 5))
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		write := db.RecordedTx(tx, report)
		run("claim")(ledger.SaveClaim(ctx, write, ledger.ClaimRow{ID: "clm_2", PaymentID: "pay_2", InvoiceID: "inv_2", MerchantID: "m"}))
		at := []access.SettlementAddress{{ChainKey: "base", Address: moved.From, MerchantID: "m"}}
		run("settled")(access.SendSettled(ctx, write, at, at))
		run("claim an address")(access.ClaimAddresses(ctx, write, []access.Holding{{Address: moved.From, MerchantID: "m"}}, rowtest.At(1)))
		run("grant an address")(access.GrantAddresses(ctx, write, []access.Holding{{Address: moved.From, MerchantID: "n"}}, rowtest.At(1)))
		held := access.Holding{Address: moved.From, MerchantID: "o"}
		run("grant another address")(access.GrantAddresses(ctx, write, []access.Holding{held}, rowtest.At(1)))
		run("release an address")(access.ReleaseAddress(ctx, write, held))
		run("listen")(webhooks.PutListenerInTransaction(ctx, write, webhooks.Listener{ID: "l", MerchantID: "m", Until: rowtest.At(2)}, rowtest.At(1)))
		run("transition")(ledger.InsertInvoiceTransition(ctx, write, "inv_1", ledger.InvoiceTransition{Status: invoice.Void, At: rowtest.At(1)}))
		run("link")(ledger.LinkNotices(ctx, write, rowtest.SamplePayment(1).Payment))
		run("see")(ledger.MarkIntentsObserved(ctx, write, "base", []ledger.IntentObservation{{Kind: invoice.IntentOpen}, {Kind: invoice.IntentClose}}))
		paid, other := rowtest.SamplePayment(1), rowtest.SamplePayment(3)
		run("save")(ledger.SavePayments(ctx, write, []ledger.PaymentRow{paid, other}))
		run("reckoned")(ledger.UpdateInvoices(ctx, write, []invoice.Invoice{rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "m")}))
		run("expire")(ledger.ExpireInvoices(ctx, write, "base", []invoice.Invoice{rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "m")}))
		inv := invoice.Invoice{ID: "inv_3", DepositAddress: invoice.Address{0xda}}
		run("add to deposits")(ledger.AddToDeposits(ctx, write, []invoice.Payment{rowtest.DepositPayment(inv).Payment}, []invoice.Sweep{rowtest.DepositSweep(inv, 91, 60)}))
		run("paid back")(ledger.SaveRefundedSums(ctx, write, map[string]ledger.RefundedSum{"pay_1": {All: invoice.NewAmount(1)}}))
		run("confirm")(ledger.ConfirmThrough(ctx, write, "base", 5, rowtest.At(1000), false))
		run("confirm in a recovery")(ledger.ConfirmThrough(ctx, write, "base", 5, rowtest.At(1000), true))
		run("save refund")(ledger.SaveRefunds(ctx, write, rowtest.RefundOf(rowtest.SamplePayment(1))))
		run("refund invoices")(ledger.SetRefundInvoices(ctx, write, []string{"pay_1"}))
		run("expire refunds")(ledger.ExpireRefunds(ctx, write, "base", rowtest.At(1000), 10))
		run("unsee")(ledger.UnmarkIntentsObserved(ctx, write, "base", 5))
		run("finish")(ledger.FinishIntents(ctx, write, "base", 5))
		run("bind")(ledger.LowerFromBlocks(ctx, write, "base", 500, 510))
		run("await")(ledger.MarkUndecided(ctx, write, []ledger.PaymentRow{rowtest.SamplePayment(1)}))
		run("decided")(ledger.UnmarkUndecided(ctx, write, []string{"pay_1"}))
		run("orphan")(ledger.OrphanAbove(ctx, write, "base", 500, rowtest.At(9)))
		run("forget")(ledger.DeleteHeaders(ctx, write, "base", 5, 500))
		run("forget key")(ledger.DeleteIdempotencyKeys(ctx, write, invoice.Unix(1), 10))
		run("forget erasures")(ledger.DeleteErasures(ctx, write, rowtest.At(1_800_000_000), 10))
		run("lease")(webhooks.LeaseInTransaction(ctx, write, leaseAll(0)))
		run("probe")(webhooks.LeaseInTransaction(ctx, write, leaseAll(1<<60)))
		run("deliver")(webhooks.FinishInTransaction(ctx, write, []webhooks.Outcome{
			{Delivery: webhooks.Delivery{Seq: 2, MerchantID: "m"}, LeaseID: "l", Attempt: &webhooks.Attempt{Number: 1}, Status: webhooks.Failed},
		}))
		run("again")(webhooks.RedeliverInTransaction(ctx, write, []int64{2}))
		run("clean")(webhooks.CleanInTransaction(ctx, write))
		run("payments of authorizations")(ledger.SetAuthorizationPayments(ctx, write, map[string]string{"aut_1": "pay_1", "aut_2": ""}))
		run("end authorizations")(ledger.EndAuthorizations(ctx, write, "base", invoice.Unix(9999), invoice.RefusedWindowClosed, rowtest.At(1)))
		run("bind a nonce")(ledger.InsertAuthorization(ctx, write, rowtest.SampleAuthorization(3, "inv_3")))
		run("lock")(ledger.LockCursor(ctx, write, "base"))
		return nil
	})
	return all
}
