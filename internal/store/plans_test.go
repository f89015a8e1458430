package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// statement is a statement that the store ran, with its purpose.
type statement struct {
	what, query string
	args        []any
}

// TestStatementsUseIndexes checks the query plans of the statements that run repeatedly.
// None may scan a whole table, build a temporary index or sort a list, so that the cost
// does not grow with the stored rows. The plans are made with few rows, and with
// statistics of very many similar rows.
func TestStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		url := storetest.SQLite(t)
		statements := recordStatements(t, storetest.Open(t, url))
		db := storetest.SQL(t, url)
		db.SetMaxOpenConns(1) // the plans must come from the connection that ran ANALYZE
		for _, fill := range []func(*testing.T, *sql.DB){func(*testing.T, *sql.DB) {}, fillLopsided} {
			fill(t, db)
			for _, s := range statements {
				if strings.HasPrefix(s.query, "INSERT") && !strings.Contains(s.query, "SELECT") {
					continue // it reads nothing and has no plan
				}
				steps := explain(t, db, "EXPLAIN QUERY PLAN "+store.SQLiteText(s.query), s.args, 4)
				checkIndex(t, s, steps)
				checkOpenInvoices(t, s, steps)
				checkExpression(t, s, steps)
				checkPages(t, s, steps)
				for _, step := range withoutCoRoutine(steps) {
					constant := strings.Contains(step, "CONSTANT ROW") || strings.HasPrefix(step, "SCAN wanted") || strings.HasPrefix(step, "SCAN queued") ||
						strings.HasPrefix(step, "SCAN listed") || strings.HasPrefix(step, "SCAN chains") || step == "SCAN deliverers" // one row for each process
					whole := strings.HasPrefix(step, "SCAN") && !constant && (!s.isList() || !strings.Contains(step, "USING"))
					// The lopsided statistics have as many open invoices as rows.
					whole = whole || !s.isList() && strings.Contains(step, "INDEX invoices_by_status")
					if whole || strings.Contains(step, "AUTOMATIC") || s.isList() && strings.Contains(step, "TEMP B-TREE") {
						t.Errorf("%s: %s\n%s", s.what, step, s.query)
					}
				}
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := storetest.MigratedPostgres(t)
		statements := recordStatements(t, storetest.Open(t, url))
		defer func() { checkFilteredOnPostgres(t, url, statements) }()
		db := indexesAlone(t, url)
		for _, lopsided := range []bool{false, true} {
			if lopsided {
				fillLopsided(t, db)
			}
			for _, s := range statements {
				steps := explain(t, db, "EXPLAIN "+s.query, s.args, 1)
				checkIndex(t, s, steps)
				if !lopsided { // otherwise all open invoices of the chain have the amount
					checkOpenInvoices(t, s, steps)
				}
				for _, step := range steps {
					if strings.Contains(step, "Seq Scan on deliverers") {
						continue // one row for each process
					}
					if strings.Contains(step, "Seq Scan") || s.isList() && strings.Contains(step, "Sort") {
						t.Errorf("%s: %s\n%s", s.what, step, s.query)
					}
				}
			}
		}
	})
}

// checkFilteredOnPostgres checks that PostgreSQL scans no whole table for a filtered list
// and sorts no invoices, with the store's own settings and a generic plan.
func checkFilteredOnPostgres(t *testing.T, url string, statements []statement) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // nothing depends on it
	for _, query := range []string{
		store.SessionSettings, "SET plan_cache_mode = force_generic_plan",
		"INSERT INTO invoice_details (invoice_id, merchant_id, reference) SELECT id, merchant_id, 'order-' || id FROM invoices WHERE id LIKE 'inv_10%'",
		"INSERT INTO invoice_metadata (invoice_id, merchant_id, key, value) SELECT id, merchant_id, 'k', id FROM invoices WHERE id LIKE 'inv_10%'", "ANALYZE",
	} {
		_, err := conn.Exec(t.Context(), query)
		must(t, err)
	}
	for _, s := range statements {
		name, filtered := strings.CutPrefix(s.what, "filtered: ")
		if !filtered && !strings.HasPrefix(s.what, "sums: ") && s.what != "candidates" {
			continue
		}
		arguments := strings.TrimSuffix(strings.Repeat("NULL, ", len(s.args)), ", ")
		results, err := conn.PgConn().Exec(t.Context(), "DEALLOCATE ALL; PREPARE filtered AS "+s.query+"; EXPLAIN EXECUTE filtered ("+arguments+")").ReadAll()
		must(t, err)
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
			// Several indexes of payments begin with the same column. The planner may use
			// another one of them and sort.
			allowed := unwanted == "Sort" && (strings.HasPrefix(filterIndexes[name], "payments_") || filterIndexes[name] == "confirmation")
			if strings.Contains(plan, unwanted) && !allowed {
				t.Errorf("%s: %s\n%s\n%s", s.what, unwanted, s.query, plan)
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
func checkIndex(t *testing.T, s statement, steps []string) {
	t.Helper()
	plan := strings.Join(steps, "\n")
	want := map[string]string{"in time": "payments_in_time", "newest": "payments_by_invoice", "lacking": "invoices_without_transfer_amount"}[s.what]
	if name, filtered := strings.CutPrefix(s.what, "filtered: "); filtered {
		want = filterIndexes[name]
	}
	if strings.HasPrefix(s.what, "inbox: ") && strings.Contains(s.query, "item = ") {
		want = "_item"
	}
	if strings.HasPrefix(s.what, "customers: ") {
		want = "invoice_details_by_customer"
	}
	if strings.HasPrefix(s.what, "sums: ") {
		want = "_status"
	}
	if !strings.Contains(plan, want) {
		t.Errorf("%s: %q, want the index %s", s.what, steps, want)
	}
}

// checkExpression checks that SQLite finds a customer by the expression of the index, and does not read all
// customers of the merchant.
func checkExpression(t *testing.T, s statement, steps []string) {
	t.Helper()
	for _, step := range steps {
		if strings.Contains(step, "INDEX invoice_details_by_customer ") && !strings.Contains(step, "<expr>") {
			t.Errorf("%s: %s\n%s", s.what, step, s.query)
		}
	}
}

// checkPages checks that SQLite does not read the pages of a statement once more that come before.
func checkPages(t *testing.T, s statement, steps []string) {
	t.Helper()
	if strings.HasPrefix(s.what, "report: stated after ") && !strings.Contains(strings.Join(steps, "\n"), "(merchant_id=? AND id>? AND id<?)") {
		t.Errorf("%s: %q", s.what, steps)
	}
}

// checkOpenInvoices checks that invoices with an amount are not found by a scan of all
// open invoices of a chain.
func checkOpenInvoices(t *testing.T, s statement, steps []string) {
	t.Helper()
	if s.what != "candidates" && s.what != "taken" {
		return
	}
	plan := strings.Join(steps, "\n")
	for _, unwanted := range []string{"invoices_expiring", "invoices_bound", "invoices_without_transfer_amount", "invoices_by_status"} {
		if strings.Contains(plan, unwanted) {
			t.Errorf("%s: %q, which reads the open invoices of a chain by %s", s.what, steps, unwanted)
		}
	}
}

// fillLopsided stores very many rows with equal values in the searched columns, and
// updates the database's statistics. Only the payments of an invoice differ: they came
// late.
func fillLopsided(t *testing.T, db *sql.DB) {
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
		`INSERT INTO refund_records (id, list_id, refund_id, tx_hash, payment_id, merchant_id, chain_key, status, created_at, tag, amount, recipient, account,
			many_invoices, expires_at) SELECT 'ref_p' || id, id, id, tx_hash, payment_id, 'm', 'base', 'pending', 1, tx_hash, '1', to_address, 'unknown', 0, CAST(substr(id, 5) AS BIGINT)
			FROM refunds WHERE id LIKE 'ref_10%'`,
		"ANALYZE invoices", "ANALYZE transfer_amounts", "ANALYZE refunds", "ANALYZE payments", "ANALYZE refund_records",
	} {
		_, err := db.ExecContext(t.Context(), s)
		if err != nil {
			t.Fatalf("%v\n%s", err, s)
		}
	}
}

// leaseAll returns a request for deliveries of a merchant.
func leaseAll(lane delivery.Lane, now int64) delivery.LeaseRequest {
	return delivery.LeaseRequest{
		LeaseID: "l", Now: atMS(now), Until: atMS(now + 1), Lane: lane, Queues: []delivery.Queue{{MerchantID: "m"}}, Suspect: 9, PerMerchant: 9,
	}
}

// isList reports whether a caller reads the statement's rows in pages.
func (s statement) isList() bool {
	return (strings.Contains(s.query, " DESC LIMIT $") || strings.Contains(s.query, " AS invoices WHERE ") || strings.Contains(s.query, " AS payments WHERE ") || strings.HasPrefix(s.what, "claims of ") || strings.HasPrefix(s.what, "report: ") || strings.HasPrefix(s.what, "customers: ")) && s.what != "refund" && s.what != "notice" &&
		!strings.Contains(s.query, "payments.tx_hash = $")
}

// explain returns the steps of a plan, which are in the last of the given number of
// columns.
func explain(t *testing.T, db *sql.DB, query string, args []any, columns int) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer func() { must(t, rows.Close()) }()
	var steps []string
	for rows.Next() {
		var step string
		ignored := make([]any, columns)
		for i := range ignored {
			ignored[i] = new(any)
		}
		ignored[columns-1] = &step
		must(t, rows.Scan(ignored...))
		steps = append(steps, step)
	}
	must(t, rows.Err())
	if len(steps) == 0 {
		t.Fatalf("no plan for %s", query)
	}
	return steps
}

// recordStatements runs what the service runs, and returns the statements.
func recordStatements(t *testing.T, s *store.Store) []statement {
	t.Helper()
	var all []statement
	what := ""
	report := func(query string, args []any) { all = append(all, statement{what, query, slices.Clone(args)}) }
	read := store.Recorded(s, report)
	ctx := t.Context()
	fill(t, s)
	claim := store.Claim{ID: "clm_1", PaymentID: "pay_2", InvoiceID: "inv_1", MerchantID: "m"}
	update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SaveClaim(ctx, claim) })
	do := func(name string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for i := range 32 {
		pick := func(bit int, value string) string {
			if i>>bit&1 == 0 {
				return ""
			}
			return value
		}
		what = fmt.Sprintf("list %d", i)
		_, _, err := read.Invoices(ctx, store.InvoiceFilter{MerchantID: pick(0, "m"), Status: invoice.Status(pick(1, "open")), Before: pick(2, "inv_5"), Limit: 50})
		do(what, err)
		_, _, err = read.Payments(ctx, store.PaymentFilter{MerchantID: pick(0, "m"), ChainKey: pick(1, "base"), Before: store.PaymentPosition{SeenID: pick(2, "seen")}, IncludePending: i>>3&1 == 1, IncludeUnattributed: i>>4 == 1, Limit: 50})
		do(what, err)
	}
	for _, merchant := range []string{"", "m"} {
		for name, f := range filteredInvoices {
			f.MerchantID, f.Limit = merchant, 50
			what = "filtered: " + name
			_, _, err := read.Invoices(ctx, f)
			do(what, err)
		}
		for name, f := range filteredPayments {
			f.MerchantID, f.Limit = merchant, 50
			what = "filtered: " + name
			_, _, err := read.Payments(ctx, f)
			do(what, err)
		}
	}
	for i := range 8 {
		pick := func(bit int, value string) string {
			if i>>bit&1 == 0 {
				return ""
			}
			return value
		}
		what = fmt.Sprintf("claims %d", i)
		_, err := read.Claims(ctx, store.ClaimFilter{MerchantID: pick(0, "m"), PaymentID: pick(1, "pay_2"), Before: pick(2, "clm_5"), Limit: 50})
		do(what, err)
	}
	recordRefundLists(t, read, &what)
	recordPaymentLinks(t, read, &what)
	recordReports(t, read, &what)
	recordCustomers(t, read, &what)
	recordDecisions(t, read, &what)
	recordRequests(t, read, &what)
	recordOperator(t, read, &what)
	for i := range 8 * 5 {
		states := []delivery.Status{"", delivery.Pending, delivery.Delivered, delivery.Failed, delivery.None}
		f := store.EventFilter{Delivery: states[i/8], Before: 1000, Limit: 50}
		if i&1 == 1 {
			f.MerchantID = "m"
		}
		if i&2 == 2 {
			f.Type = invoice.EventPaid
		}
		if i&4 == 4 {
			after := int64(1)
			f.After = &after
		}
		what = fmt.Sprintf("events %+v", f)
		_, err := read.Events(ctx, f)
		do(what, err)
		_, err = read.EventsInParts(ctx, f)
		do(what, err)
		f.InvoiceID = "inv_1"
		what = fmt.Sprintf("events of an invoice %+v", f)
		_, err = read.Events(ctx, f)
		do(what, err)
	}
	moved := samplePayment(1).Transfer
	moved.Evidence = invoice.Evidence{Registry: invoice.Hash{1}, Authorization: invoice.Hash{2}, Calldata: invoice.Hash{3}}
	notice := invoice.Notice{Address: moved.To, Amount: moved.Amount, ChainKey: "base", Currency: "USDC", Provider: "p", Type: "t"}
	for name, fn := range map[string]func() error{
		"invoice":         func() error { _, err := read.Invoice(ctx, "inv_1"); return err },
		"references":      func() error { _, err := read.References(ctx, []string{"inv_1", "inv_2"}); return err },
		"note":            func() error { _, err := read.AttributionNote(ctx, "pay_1"); return err },
		"history":         func() error { _, err := read.InvoiceHistory(ctx, "inv_1"); return err },
		"find by id":      func() error { _, err := read.FindInvoices(ctx, "inv_1", "m", 50); return err },
		"find by payment": func() error { _, err := read.FindInvoices(ctx, "pay_1234567", "m", 50); return err },
		"find by event":   func() error { _, err := read.FindInvoices(ctx, "evt_1", "m", 50); return err },
		"find by refund":  func() error { _, err := read.FindInvoices(ctx, "ref_1", "m", 50); return err },
		"find by hash":    func() error { _, err := read.FindInvoices(ctx, moved.TxHash.String(), "m", 50); return err },
		"find by address": func() error { _, err := read.FindInvoices(ctx, moved.To.String(), "m", 50); return err },
		"invoices":        func() error { _, err := read.InvoicesWithoutLines(ctx, []string{"inv_1", "inv_2"}); return err },
		"expiring":        func() error { _, err := read.ExpiringInvoices(ctx, "base", 0, invoice.Unix(9999), 500); return err },
		"candidates": func() error {
			_, err := read.InvoicesByAmount(ctx, []store.AmountLookup{lookup(100, 8, 1500), lookup(1, 8, 1500)}, 16)
			return err
		},
		"taken": func() error {
			_, err := read.AmountUses(ctx, []store.AmountKey{{ChainKey: "base", Merchant: moved.To, Token: moved.Token, Amount: moved.Amount}}, func() time.Time { return invoice.Unix(0) })
			return err
		},
		"assigned": func() error {
			_, err := read.RemainderTransferAmounts(ctx, map[string][]invoice.Amount{"inv_1": {invoice.NewAmount(1)}})
			return err
		},
		"lacking": func() error { _, err := read.InvoicesLackingTransferAmounts(ctx, "base", "inv_1", 9); return err },
		"heights": func() error { _, err := read.IndexedHeights(ctx, []string{"base"}); return err },
		"deposits": func() error {
			_, err := read.Deposits(ctx, "base", []invoice.Address{moved.To, moved.From})
			return err
		},
		"deposit holdings": func() error {
			_, err := read.AreDeposits(ctx, []invoice.Address{moved.To, moved.From})
			return err
		},
		"watched": func() error {
			_, err := read.WatchedAddresses(ctx, "base", []invoice.Address{moved.To, moved.From})
			return err
		},
		"due sweeps": func() error {
			_, err := read.DueSweeps(ctx, store.SweepFilter{ChainKey: "base", Token: moved.Token, MinAmount: invoice.NewAmount(5)}, "m", 200)
			return err
		},
		"merchants with sweeps": func() error {
			_, err := read.MerchantsWithSweeps(ctx, store.SweepFilter{ChainKey: "base", Token: moved.Token, MinAmount: invoice.NewAmount(5)}, "", 200)
			return err
		},
		"requested sweeps":            func() error { _, err := read.RequestedSweeps(ctx, "base", 200); return err },
		"sweeps of a transaction":     func() error { _, err := read.SweepsOfTx(ctx, "ctx_1"); return err },
		"queued sweeps":               func() error { _, err := read.QueuedSweeps(ctx, "base", "", 200); return err },
		"queued sweeps of a merchant": func() error { _, err := read.QueuedSweeps(ctx, "base", "m", 200); return err },
		"count of sweeps":             func() error { _, err := read.CountSweeps(ctx, "base", []invoice.Address{moved.Token}); return err },
		"sweeps":                      func() error { _, err := read.SweepsByID(ctx, []string{"swp_1"}); return err },
		"pending sweeps":              func() error { _, err := read.PendingSweeps(ctx, "base", 0, 999); return err },
		"orphaned sweeps":             func() error { _, err := read.OrphanedSweeps(ctx, "base", 0, 999); return err },
		"undecided":                   func() error { _, err := read.UndecidedPayments(ctx, "base", 500); return err },
		"undecided refunds": func() error {
			_, err := read.UndecidedRefunds(ctx, "base", 0, 9, 500)
			return err
		},
		"payments to claim": func() error {
			_, err := read.PaymentsToClaim(ctx, sample("inv_1", "m"), moved.TxHash, moved.From, 100)
			return err
		},
		"awaits a refund": func() error { _, err := read.MayBeRefunded(ctx, moved); return err },
		"last undecided":  func() error { _, err := read.LastUndecidedBlock(ctx, "base"); return err },
		"waiting": func() error {
			_, err := read.ReceiverStates(ctx, "base", []invoice.Address{moved.To, moved.From})
			return err
		},
		"settlements": func() error {
			_, err := read.SettlementAddresses(ctx, "base", []invoice.Address{moved.To, moved.From})
			return err
		},
		"announced": func() error {
			_, err := read.Announced(ctx, []store.PaymentRow{samplePayment(1), samplePayment(2)})
			return err
		},
		"pairs": func() error {
			_, err := read.PaidPairs(ctx, "base", []store.Pair{{Payer: moved.From, Receiver: moved.To}, {Payer: moved.To}})
			return err
		},
		"tolerant": func() error {
			_, err := read.InvoicesWithTolerance(ctx, []store.AmountLookup{lookup(100, 8, 1500), lookup(1, 8, 1500)}, 500)
			return err
		},
		"transfer amounts": func() error {
			_, err := read.InvoicesByTransferAmount(ctx, []invoice.Transfer{moved, moved})
			return err
		},
		"commitments": func() error {
			_, err := read.InvoicesByCommitment(ctx, []invoice.Hash{{1}, {2}})
			return err
		},
		"payments by id": func() error { _, err := read.PaymentsByID(ctx, []string{"pay_1", "pay_2"}); return err },
		"refunds by id":  func() error { _, err := read.RefundsByID(ctx, []string{"ref_1"}); return err },
		"transaction": func() error {
			_, err := read.PaymentsOfTransaction(ctx, []string{"base", "ethereum"}, invoice.Hash{1})
			return err
		},
		"near": func() error {
			_, err := read.NearInvoices(ctx, []store.NearLookup{{moved, invoice.Unix(2_000_000_000)}, {moved, invoice.Unix(2_000_000_000)}}, "m")
			return err
		},
		"merchants of unattributed": func() error {
			_, err := read.MerchantsOfUnattributed(ctx, []string{"pay_1", "pay_2"})
			return err
		},
		"optional events":   func() error { _, err := read.OptionalEvents(ctx, []string{"m", "n"}); return err },
		"claims of invoice": func() error { _, err := read.OpenClaimsOfInvoice(ctx, "inv_1", 10); return err },
		"claims of payments": func() error {
			_, err := read.ClaimsOfPayments(ctx, []string{"pay_1", "pay_2"}, "", 10)
			return err
		},
		"claims of a merchant's payments": func() error {
			_, err := read.ClaimsOfPayments(ctx, []string{"pay_1", "pay_2"}, "m", 10)
			return err
		},
		"invoice claims": func() error { _, err := read.InvoiceClaims(ctx, "inv_1", "pay_2"); return err },
		"payment":        func() error { _, err := read.Payment(ctx, "pay_1"); return err },
		"payments":       func() error { _, err := read.PaymentsOfInvoices(ctx, []string{"inv_1"}); return err },
		"in time": func() error {
			_, err := read.PaymentsInTime(ctx, sample("inv_1", "m"))
			return err
		},
		"newest":     func() error { _, err := read.NewestPayments(ctx, "inv_1", 20); return err },
		"registered": func() error { _, err := read.PaidThroughRegistry(ctx, []string{"inv_1"}); return err },
		"unfinal":    func() error { _, err := read.PendingPayments(ctx, "base", 0, 999); return err },
		"orphaned":   func() error { _, err := read.OrphanedPayments(ctx, "base", 1, 999); return err },
		"among undecided": func() error {
			_, err := read.WhichUndecided(ctx, []string{"pay_1", "pay_2"})
			return err
		},
		"refund":          func() error { _, err := read.PaymentsBetween(ctx, "base", moved.From, moved.To, 999); return err },
		"refunds":         func() error { _, err := read.RefundsOfPayments(ctx, []string{"pay_1"}); return err },
		"refunded":        func() error { _, err := read.RefundsOfInvoices(ctx, []string{"inv_1"}); return err },
		"paid back":       func() error { _, err := read.RefundedSums(ctx, []string{"pay_1"}); return err },
		"unfinal too":     func() error { _, err := read.PendingRefunds(ctx, "base", 0, 999); return err },
		"refund record":   func() error { _, err := read.RefundRecord(ctx, "ref_none"); return wantNotFound(err) },
		"refund by token": func() error { _, err := read.RefundByClaimToken(ctx, "t"); return wantNotFound(err) },
		"refund by key":   func() error { _, _, err := read.RefundByKey(ctx, "pay_1", "m", "k"); return wantNotFound(err) },
		"prepared":        func() error { _, err := read.PreparedRefunds(ctx, "pay_1"); return err },
		"prepared for": func() error {
			_, err := read.PreparedFor(ctx, "base", []string{invoice.Hash{1}.String()}, []string{moved.To.String(), moved.From.String()})
			return err
		},
		"many invoices": func() error {
			_, err := read.HasPaidManyInvoices(ctx, invoice.Payment{Transfer: moved}, 10)
			return err
		},
		"key":            func() error { _, err := read.IdempotencyKey(ctx, "m", "k", invoice.Unix(1000)); return err },
		"cursor":         func() error { _, err := read.Cursor(ctx, "base"); return err },
		"created":        func() error { _, err := read.CreatedSeqs(ctx, []string{"inv_1", "inv_2"}); return err },
		"headers":        func() error { _, err := read.Headers(ctx, "base", 0, 999); return err },
		"notice":         func() error { _, err := read.UnlinkedPayment(ctx, notice); return err },
		"notices":        func() error { _, err := read.NoticesOfPayment(ctx, "pay_1"); return err },
		"due":            func() error { _, err := read.DueIntents(ctx, "base", testRegistry, "", 200); return err },
		"due count":      func() error { _, _, err := read.DueCount(ctx, "base", testRegistry); return err },
		"authorization":  func() error { _, err := read.Authorization(ctx, "aut_1"); return err },
		"authorizations": func() error { _, err := read.AuthorizationsOfInvoice(ctx, "inv_1", 10); return err },
		"authorization by nonce": func() error {
			_, err := read.AuthorizationByNonce(ctx, "base", moved.Token, moved.From, invoice.Hash{1})
			return wantNotFound(err)
		},
		"bound authorizations":    func() error { _, err := read.BoundAuthorizations(ctx, []invoice.Transfer{moved, moved}); return err },
		"pending authorization":   func() error { _, err := read.PendingAuthorization(ctx, "inv_1"); return err },
		"due authorizations":      func() error { _, err := read.DueAuthorizations(ctx, "base", 200); return err },
		"count of authorizations": func() error { _, err := read.CountDueAuthorizations(ctx, "base"); return err },
		"budget of authorizations": func() error {
			_, _, _, err := read.CountAuthorizations(ctx, "base", "m", moved.From, store.Window{Since: at(1), Oldest: at(1)})
			return err
		},
		"x402 settlement": func() error {
			_, err := read.X402Settlement(ctx, sampleSettlement(sampleAuthorization(1, "inv_1")).AuthorizationKey)
			return err
		},
		"sent transaction": func() error { _, err := read.SentTx(ctx, "ctx_1"); return wantNotFound(err) },
		"held by another":  func() error { _, err := read.IsHeldByOther(ctx, moved.To, "n"); return err },
		"unsettled":        func() error { _, err := read.UnsettledTxs(ctx, "base"); return err },
		"event":            func() error { _, _, err := read.EventRecord(ctx, "evt_1"); return err },
		"listened": func() error {
			_, err := read.HasListener(ctx, store.Event{MerchantID: "m", Type: invoice.EventPaid, InvoiceID: "inv_1"}, at(1))
			return err
		},
		"changes":      func() error { _, err := read.Changes(ctx, 5, 10); return err },
		"first queues": func() error { _, err := read.Queues(ctx, delivery.First); return err },
		"retry queues": func() error { _, err := read.Queues(ctx, delivery.Retry); return err },
		"last":         func() error { _, err := read.LastSeq(ctx); return err },
		"endpoints":    func() error { _, err := read.Endpoints(ctx, []string{"m", "n"}); return err },
		"nonces":       func() error { _, err := read.ChainTxsFrom(ctx, "base", invoice.Address{1}, 5); return err },
	} {
		what = name
		do(name, fn())
	}
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		write := store.RecordedTx(tx, report)
		for name, fn := range map[string]func() error{
			"claim": func() error {
				return write.SaveClaim(ctx, store.Claim{ID: "clm_2", PaymentID: "pay_2", InvoiceID: "inv_2", MerchantID: "m"})
			},
			"claim an address": func() error {
				_, err := write.ClaimAddresses(ctx, []store.Holding{{Address: moved.From, MerchantID: "m"}}, at(1))
				return err
			},
			"grant an address": func() error {
				_, _, err := write.GrantAddresses(ctx, []store.Holding{{Address: moved.From, MerchantID: "n"}}, at(1))
				return err
			},
			"release an address": func() error {
				held := store.Holding{Address: moved.From, MerchantID: "o"}
				if _, _, err := write.GrantAddresses(ctx, []store.Holding{held}, at(1)); err != nil {
					return err
				}
				return write.ReleaseAddress(ctx, held)
			},
			"listen": func() error {
				return write.PutListenerInTransaction(ctx, store.Listener{ID: "l", MerchantID: "m", Until: at(2)}, at(1))
			},
			"transition": func() error {
				return write.InsertInvoiceTransition(ctx, "inv_1", store.InvoiceTransition{Status: invoice.Void, At: at(1)})
			},
			"link": func() error { return write.LinkNotices(ctx, samplePayment(1).Payment) },
			"see": func() error {
				return write.MarkIntentsObserved(ctx, "base", []store.IntentObservation{{Kind: invoice.IntentOpen}, {Kind: invoice.IntentClose}})
			},
			"save": func() error {
				paid, other := samplePayment(1), samplePayment(3)
				return write.SavePayments(ctx, []store.PaymentRow{paid, other})
			},
			"reckoned": func() error {
				return write.UpdateInvoices(ctx, []invoice.Invoice{sample("inv_1", "m"), sample("inv_2", "m")})
			},
			"expire": func() error {
				return write.ExpireInvoices(ctx, "base", []invoice.Invoice{sample("inv_1", "m"), sample("inv_2", "m")})
			},
			"add to deposits": func() error {
				inv := invoice.Invoice{ID: "inv_3", DepositAddress: invoice.Address{0xda}}
				return write.AddToDeposits(ctx, []invoice.Payment{depositPayment(inv).Payment}, []invoice.Sweep{depositSweep(inv, 91, 60)})
			},
			"paid back": func() error {
				return write.SaveRefundedSums(ctx, map[string]invoice.Amount{"pay_1": invoice.NewAmount(1)})
			},
			"confirm":         func() error { return write.ConfirmThrough(ctx, "base", 5, at(1000)) },
			"save refund":     func() error { return write.SaveRefund(ctx, refundOf(samplePayment(1))) },
			"refund invoices": func() error { return write.SetRefundInvoices(ctx, []string{"pay_1"}) },
			"expire refunds":  func() error { _, err := write.ExpireRefunds(ctx, "base", at(1000), 10); return err },
			"unsee":           func() error { return write.UnmarkIntentsObserved(ctx, "base", 5) },
			"finish":          func() error { return write.FinishIntents(ctx, "base", 5) },
			"bind":            func() error { return write.LowerFromBlocks(ctx, "base", 500) },
			"await":           func() error { return write.MarkUndecided(ctx, []store.PaymentRow{samplePayment(1)}) },
			"decided":         func() error { return write.UnmarkUndecided(ctx, []string{"pay_1"}) },
			"orphan":          func() error { return write.OrphanAbove(ctx, "base", 500, at(9), at(9)) },
			"forget":          func() error { return write.DeleteHeaders(ctx, "base", 5, 500) },
			"forget key":      func() error { _, err := write.DeleteIdempotencyKeys(ctx, invoice.Unix(1), 10); return err },
			"forget erasures": func() error { _, err := write.DeleteErasures(ctx, at(1_800_000_000), 10); return err },
			"lease":           func() error { return write.LeaseInTransaction(ctx, leaseAll(delivery.First, 0)) },
			"probe":           func() error { return write.LeaseInTransaction(ctx, leaseAll(delivery.Retry, 1<<60)) },
			"deliver": func() error {
				return write.FinishInTransaction(ctx, []delivery.Outcome{
					{Delivery: delivery.Delivery{Seq: 2, MerchantID: "m"}, LeaseID: "l", Attempt: &delivery.Attempt{Number: 1}, Status: delivery.Failed},
				})
			},
			"again": func() error { return write.RedeliverInTransaction(ctx, []int64{2}) },
			"clean": func() error {
				return write.CleanInTransaction(ctx)
			},
			"payments of authorizations": func() error {
				return write.SetAuthorizationPayments(ctx, map[string]string{"aut_1": "pay_1", "aut_2": ""})
			},
			"end authorizations": func() error {
				return write.EndAuthorizations(ctx, "base", invoice.Unix(9999), invoice.RefusedWindowClosed, at(1))
			},
			"bind a nonce": func() error { return write.InsertAuthorization(ctx, sampleAuthorization(3, "inv_3")) },
			"lock":         func() error { _, err := write.LockCursor(ctx, "base"); return err },
		} {
			what = name
			do(name, fn())
		}
		return nil
	})
	return all
}

// indexesAlone opens the PostgreSQL database with the store's settings, and with sorts
// disabled where an index has the order.
func indexesAlone(t *testing.T, url string) *sql.DB {
	t.Helper()
	db := storetest.SQL(t, url)
	db.SetMaxOpenConns(1)
	for _, setting := range []string{store.SessionSettings, "SET enable_sort = off", "SET enable_incremental_sort = off"} {
		_, err := db.ExecContext(t.Context(), setting)
		must(t, err)
	}
	return db
}
