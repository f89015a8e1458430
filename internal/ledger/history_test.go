package ledger_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// boundedRows are the rows of which a history has a limited number: how to insert inv_1's rows
// numbered in many, and how many a history has.
var boundedRows = map[string]struct {
	limit  int
	setup  string
	insert string // what to insert into, and what from
	from   string
	count  func(ledger.InvoiceHistory) int
}{
	"payments": {
		limit: ledger.MaxHistoryPayments,
		insert: `payments (id, seen_id, chain_key, tx_hash, ordinal, log_index, block_number, block_hash, block_time, token, currency,
			from_address, to_address, amount, status, observed_at, invoice_id, merchant_id, method, use)`,
		from: `'pay_x' || i, 'seen_' || i, chain_key, tx_hash, 100 + i, 100 + i, block_number, block_hash, block_time, token, currency,
			from_address, to_address, amount, 'pending', observed_at, 'inv_1', 'm', 'calldata', use FROM payments CROSS JOIN many WHERE id = 'pay_1'`,
		count: func(h ledger.InvoiceHistory) int { return len(h.Payments) },
	},
	"refunds": {
		limit: ledger.MaxHistoryPayments,
		insert: `refund_records (id, list_id, payment_id, invoice_id, merchant_id, chain_key, status, created_at, tag, amount, sender, recipient, token, account,
			many_invoices, expires_at)`,
		from: `'ref_x' || i, 'x' || i, 'pay_1', 'inv_1', 'm', chain_key, 'expired', 1, substr(tx_hash, 1, 60) || (100000 + i), '1', to_address, from_address, token, 'unknown', 0, 2
			FROM payments CROSS JOIN many WHERE id = 'pay_1'`,
		count: func(h ledger.InvoiceHistory) int { return len(h.Refunds) },
	},
	"sweeps": {
		limit: ledger.MaxHistoryPayments,
		insert: `sweeps (id, chain_key, tx_hash, ordinal, log_index, block_number, block_hash, block_time, token, currency,
			from_address, to_address, amount, status, observed_at, invoice_id)`,
		from: `'swp_x' || i, chain_key, tx_hash, 100 + i, 100 + i, block_number, block_hash, block_time, token, currency,
			from_address, to_address, amount, 'pending', observed_at, 'inv_1' FROM sweeps CROSS JOIN many WHERE id = 'swp_pay_91'`,
		count: func(h ledger.InvoiceHistory) int { return len(h.Sweeps) },
	},
	"events": {
		limit:  ledger.MaxHistoryEvents,
		insert: "events (seq, id, type, subject, merchant_id, invoice_id, created_at, body)",
		from:   "1000 + i, 'evt_x' || i, 'payment.received', 'x' || i, 'm', 'inv_1', 1, '{}' FROM many",
		count:  func(h ledger.InvoiceHistory) int { return len(h.Events) },
	},
	"attempts": {
		limit:  ledger.MaxHistoryAttempts,
		insert: "attempts (seq, number, started_ms, duration_ms)",
		from:   "seq, i, 1, 1 FROM events CROSS JOIN many WHERE id = 'evt_1'",
		count:  func(h ledger.InvoiceHistory) int { return len(h.Attempts) },
	},
	"transactions": {
		limit:  ledger.MaxHistoryTxs,
		setup:  "UPDATE intents SET tx_id = 'ctx_1', status = 'sent' WHERE id = 'int_1'",
		insert: "chain_tx_attempts (tx_id, number, tx_hash, raw, tip_cap, fee_cap, created_ms)",
		from:   "'ctx_1', i, substr(tx_hash, 1, 60) || (100000 + i), '0x', '1', '1', i FROM payments CROSS JOIN many WHERE id = 'pay_1'",
		count:  func(h ledger.InvoiceHistory) int { return len(h.Txs) },
	},
}

// TestHistoryIsBounded reads the history of an invoice with as many rows as the history may have, and with one more.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	for name, rows := range boundedRows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := dbtest.Migrated(t)
			s, conn := dbtest.Open(t, dsn), dbtest.SQL(t, dsn)
			rowtest.Fill(t, s)
			exec := func(statement string) {
				t.Helper()
				if _, err := conn.ExecContext(t.Context(), statement); err != nil {
					t.Fatalf("%v\n%s", err, statement)
				}
			}
			exec("INSERT INTO chain_txs (id, chain_key, sender, nonce, kind, status, created_ms) SELECT 'ctx_1', chain_key, to_address, 1, 'open', 'sent', 1 FROM payments WHERE id = 'pay_1'")
			if rows.setup != "" {
				exec(rows.setup)
			}
			history := func() ledger.InvoiceHistory {
				h, err := ledger.NewReader(s).InvoiceHistory(t.Context(), "inv_1")
				rowtest.Must(t, err)
				return h
			}
			insert := func(from, to int) {
				t.Helper()
				exec(fmt.Sprintf("INSERT INTO %s WITH RECURSIVE many (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM many WHERE i < %d) SELECT %s", rows.insert, from, to, rows.from))
			}
			room := rows.limit - rows.count(history())
			insert(1, room)
			if h := history(); rows.count(h) != rows.limit || h.Truncated {
				t.Errorf("as many as there is room for: %d, truncated %t", rows.count(h), h.Truncated)
			}
			insert(room+1, room+1)
			if h := history(); rows.count(h) != rows.limit || !h.Truncated {
				t.Errorf("one more: %d, truncated %t", rows.count(h), h.Truncated)
			}
		})
	}
}

// TestHistoryOfCosts expects the invoice's part of the cost of its commitment transaction, at the form
// that was signed last.
func TestHistoryOfCosts(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, dsn string) {
		s, conn := dbtest.Open(t, dsn), dbtest.SQL(t, dsn)
		rowtest.Fill(t, s)
		for _, statement := range []string{
			"INSERT INTO chain_txs (id, chain_key, sender, nonce, kind, status, created_ms, spent_gwei, spent_ms) SELECT 'ctx_1', chain_key, to_address, 1, 'open', 'mined', 1, 101, 9 FROM payments WHERE id = 'pay_1'",
			"INSERT INTO chain_tx_attempts (tx_id, number, tx_hash, raw, tip_cap, fee_cap, created_ms) SELECT 'ctx_1', 1, substr(tx_hash, 1, 60) || '000001', '0x', '1', '1', 1 FROM payments WHERE id = 'pay_1'",
			"INSERT INTO chain_tx_attempts (tx_id, number, tx_hash, raw, tip_cap, fee_cap, created_ms) SELECT 'ctx_1', 2, substr(tx_hash, 1, 60) || '000002', '0x', '2', '2', 2 FROM payments WHERE id = 'pay_1'",
			"UPDATE intents SET tx_id = 'ctx_1', status = 'sent'",
		} {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%v\n%s", err, statement)
			}
		}
		h, err := ledger.NewReader(s).InvoiceHistory(t.Context(), "inv_1")
		rowtest.Must(t, err)
		var costs []int64
		for _, tx := range h.Txs {
			costs = append(costs, tx.Cost.Gwei)
		}
		if want := []int64{0, 0, 50, 50}; !slices.Equal(costs, want) { // to open and to close
			t.Errorf("the transactions cost %d, want %d", costs, want)
		}
	})
}

// TestOpenings stores when the page of an invoice was first opened.
func TestOpenings(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
		h, err := ledger.NewReader(s).InvoiceHistory(t.Context(), "inv_1")
		if rowtest.Must(t, err); !h.OpenedAt.IsZero() {
			t.Errorf("opened at %s before it was", h.OpenedAt)
		}
		for _, second := range []int64{5, 7} {
			rowtest.Must(t, ledger.RecordOpenings(t.Context(), s, []ledger.Opening{{InvoiceID: "inv_1", At: rowtest.At(second)}}))
		}
		h, err = ledger.NewReader(s).InvoiceHistory(t.Context(), "inv_1")
		if rowtest.Must(t, err); !h.OpenedAt.Equal(rowtest.At(5)) {
			t.Errorf("opened at %s, want %s", h.OpenedAt, rowtest.At(5))
		}
	})
}

// figures are the figures of a line of a report.
type figures struct {
	Payments, Refunds                                                        int64
	Gross, Settled, Underpaid, Suffixes, Overpaid, Late, Duplicate, Refunded uint64
	Net                                                                      int64
}

// checkReport compares reports on the merchant with sums over the list of payments.
func (m *machine) checkReport(r *rapid.T) {
	from := time.Unix(m.seconds.Load()-rapid.Int64Range(0, 100).Draw(r, "from"), 0)
	to := from.Add(time.Duration(rapid.IntRange(1, 100).Draw(r, "length")) * time.Second)
	group := rapid.SampledFrom(report.Groups).Draw(r, "group")
	made, err := report.Settlement(m.t.Context(), report.NewReader(m.db.store), report.Request{
		MerchantID: m.merchant, From: from, To: to, GroupBy: group, Location: time.UTC, Decimals: func(string, string) (int, bool) { return 6, true },
	})
	expect.OK(r, err)
	want := m.addUp(r, func(at time.Time) bool { return !at.Before(from) && at.Before(to) })
	for name, lines := range map[string][]*report.Line{"lines": made.Lines, "totals": made.Totals} {
		var got figures
		for _, l := range lines {
			got.Payments, got.Refunds = got.Payments+l.Payments, got.Refunds+l.Refunds
			for sum, figure := range map[*uint64]*big.Int{
				&got.Gross: &l.Gross, &got.Settled: &l.Settled, &got.Underpaid: &l.Underpaid, &got.Suffixes: &l.Suffixes, &got.Overpaid: &l.Overpaid,
				&got.Late: &l.Late, &got.Duplicate: &l.Duplicate, &got.Refunded: &l.Refunded,
			} {
				*sum += figure.Uint64()
			}
			got.Net += l.Net.Int64()
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			r.Errorf("%s by %s from %v to %v (-list +report):\n%s", name, group, from.Unix(), to.Unix(), diff)
		}
		if parts := got.Settled + got.Underpaid + got.Suffixes + got.Overpaid + got.Late + got.Duplicate; parts != got.Gross {
			r.Errorf("the parts add up to %d, gross is %d", parts, got.Gross)
		}
	}
}

// addUp adds up the listed payments that were confirmed in a period, and the refunds of confirmed
// payments that were confirmed in it, also of earlier or later payments.
func (m *machine) addUp(r *rapid.T, within func(time.Time) bool) (f figures) {
	listed, _, err := ledger.NewReader(m.db.store).Payments(m.t.Context(), ledger.PaymentFilter{MerchantID: m.merchant, IncludePending: true, Limit: 1000})
	expect.OK(r, err)
	slices.SortFunc(listed, func(a, b ledger.PaymentRow) int { return a.Compare(b.Position) })
	due := make(map[string]uint64)
	for _, p := range listed {
		inv, err := ledger.NewReader(m.db.store).Invoice(m.t.Context(), p.InvoiceID)
		expect.OK(r, err)
		if p.Status != invoice.Confirmed {
			continue
		}
		f.add(within(p.ConfirmedAt), inv, p, due)
		refunds, err := ledger.RefundsOfPayments(m.t.Context(), m.db.store, []string{p.ID})
		expect.OK(r, err)
		for _, back := range refunds {
			if back.Status == invoice.Confirmed && within(back.ConfirmedAt) {
				f.Refunds, f.Refunded = f.Refunds+1, f.Refunded+number(back.Amount)
			}
		}
	}
	f.Net = int64(f.Gross) - int64(f.Refunded)
	return f
}

// add adds a payment; one outside the period only reduces what is due.
func (f *figures) add(within bool, inv invoice.Invoice, p ledger.PaymentRow, due map[string]uint64) {
	amount, price, paid := number(p.Amount), number(inv.Amount), inv.Status == invoice.Paid
	var counted, excess, returned uint64
	whole := &f.Late
	switch before := due[inv.ID]; {
	case p.BlockTime.After(inv.ExpiresAt), inv.Status == invoice.Void && p.BlockNumber > inv.ClosedBlock:
	case before >= price:
		if whole = &f.Duplicate; inv.Exception == invoice.Late {
			whole = &f.Late
		}
	default:
		due[inv.ID] += number(p.Counted())
		if inv.Exception == invoice.Late && number(inv.Sums.Tally.Counted())+number(inv.Tolerance) >= price {
			break
		}
		whole, counted, returned = nil, min(number(p.Counted()), price-before), amount-number(p.Counted())
		excess = amount - returned - counted
	}
	if !within {
		return
	}
	f.Payments, f.Gross = f.Payments+1, f.Gross+amount
	switch {
	case whole != nil:
		*whole += amount
	case due[inv.ID] > price+invoice.MaxSuffix:
		f.Overpaid += excess
	default:
		f.Suffixes += excess
	}
	f.Underpaid += returned
	if paid {
		f.Settled += counted
	} else {
		f.Underpaid += counted
	}
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	onSQLite(t, playScenarios)
}

// playScenarios plays what can happen to an invoice over 1,000,000 that expires 3600 s
// after the start, and checks its state.
func playScenarios(t *testing.T, d *database) {
	const (
		created, received, paidEvent = "invoice.created", "payment.received", "invoice.paid"
		expired, refunded            = "invoice.expired", "payment.refunded"
	)
	type want struct {
		status         invoice.Status
		exception      invoice.Exception
		paid, refunded uint64
		suffixes       uint64 // number of suffixes in the paid amount
		events         []string
		intents        []string
	}
	n := invoice.NewAmount
	for name, test := range map[string]struct {
		play func(w *world, inv invoice.Invoice)
		want want
	}{
		"transfer amount": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.TransferAmount))
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 1, []string{created, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"bare amount": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 0, []string{created, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"registry": {func(w *world, inv invoice.Invoice) {
			b := w.next(start+10, tagged(w.pay(inv.Amount), invoice.Evidence{Registry: inv.CommitmentID}))
			b.Registry = []ledger.RegistryEvent{{Registry: registry, Kind: ledger.RegistryPaid, CommitmentID: inv.CommitmentID}}
			w.observe(b)
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 0, []string{created, received, paidEvent}, []string{"open done 101"}}},
		"not final": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
		}, want{invoice.Open, "", 0, 0, 0, []string{created, received}, []string{"open due 0"}}},
		"two parts": {func(w *world, inv invoice.Invoice) {
			tag := invoice.Evidence{Calldata: inv.CommitmentID}
			w.mine(start+10, tagged(w.pay(n(400_000)), tag))
			w.final()
			w.mine(start+20, tagged(w.pay(n(600_000)), tag))
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 0, []string{created, received, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"two parts in one transaction": {func(w *world, inv invoice.Invoice) {
			one := tagged(w.pay(n(400_000)), invoice.Evidence{Calldata: inv.CommitmentID})
			two := one
			two.Ordinal, two.Amount = 1, n(600_000)
			w.mine(start+10, one, two)
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 0, []string{created, received, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"underpaid and expired": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, tagged(w.pay(n(999_999)), invoice.Evidence{Calldata: inv.CommitmentID}))
			w.mine(start + 3601)
			w.final()
		}, want{invoice.Expired, invoice.Underpaid, 999_999, 0, 0, []string{created, received, expired}, []string{"open due 0", "close due 0"}}},
		"overpaid": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, tagged(w.pay(n(5_000_000)), invoice.Evidence{Calldata: inv.CommitmentID}))
			w.final()
		}, want{invoice.Paid, invoice.Overpaid, 5_000_000, 0, 0, []string{created, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"twice": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.TransferAmount), w.pay(inv.TransferAmount))
			w.final()
		}, want{invoice.Paid, invoice.Duplicate, 2_000_000, 0, 2, []string{created, received, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"again when it was final": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.TransferAmount))
			w.final()
			w.mine(start+20, w.pay(inv.TransferAmount))
			w.final()
		}, want{invoice.Paid, invoice.Duplicate, 2_000_000, 0, 2, []string{created, received, paidEvent, received}, []string{"open due 0", "close due 0"}}},
		"late": {func(w *world, inv invoice.Invoice) {
			w.mine(start+3601, w.pay(inv.TransferAmount))
			w.final()
		}, want{invoice.Expired, invoice.Late, 1_000_000, 0, 1, []string{created, received, expired}, []string{"open due 0", "close due 0"}}},
		"late when it had expired": {func(w *world, inv invoice.Invoice) {
			w.mine(start + 3601)
			w.final()
			w.mine(start+3602, w.pay(inv.TransferAmount))
			w.final()
		}, want{invoice.Expired, invoice.Late, 1_000_000, 0, 1, []string{created, expired, received}, []string{"open due 0", "close due 0"}}},
		"last second": {func(w *world, inv invoice.Invoice) {
			w.mine(start+3600, w.pay(inv.TransferAmount))
			w.mine(start + 9999)
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 1, []string{created, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"last second, seen a day later": {func(w *world, inv invoice.Invoice) {
			w.seconds.Add(86400)
			w.mine(start + 3599)
			w.final()
			w.mine(start+3600, w.pay(inv.TransferAmount))
			w.mine(start + 3601)
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 1, []string{created, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"not expired in its last second": {func(w *world, _ invoice.Invoice) {
			w.mine(start + 3600)
			w.final()
		}, want{invoice.Open, "", 0, 0, 0, []string{created}, []string{"open due 0"}}},
		"expired by the chain alone": {func(w *world, _ invoice.Invoice) {
			w.mine(start + 3601)
			w.final()
		}, want{invoice.Expired, "", 0, 0, 0, []string{created, expired}, []string{"open due 0", "close due 0"}}},
		"not expired by the clock": {func(w *world, _ invoice.Invoice) {
			w.seconds.Add(86400)
			w.mine(start + 3601)
		}, want{invoice.Open, "", 0, 0, 0, []string{created}, []string{"open due 0"}}},
		"refunded whole": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
			w.final()
			w.mine(start+20, w.back(inv.Amount))
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 1_000_000, 0, []string{created, received, paidEvent, refunded}, []string{"open due 0", "close due 0"}}},
		"refunded before it is final": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
			w.mine(start+20, w.back(inv.Amount))
			w.final()
		}, want{invoice.Open, "", 1_000_000, 1_000_000, 0, []string{created, received, refunded}, []string{"open due 0"}}},
		"refunded in part, twice": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
			w.final()
			w.mine(start+20, w.back(n(300_000)), w.back(n(200_000)))
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 500_000, 0, []string{created, received, paidEvent, refunded, refunded}, []string{"open due 0", "close due 0"}}},
		"refunded more than once is not": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
			w.final()
			w.mine(start+20, w.back(inv.Amount), w.back(inv.Amount), w.back(n(1)))
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 1_000_000, 0, []string{created, received, paidEvent, refunded}, []string{"open due 0", "close due 0"}}},
		"refund not final": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
			w.final()
			w.mine(start+20, w.back(inv.Amount))
		}, want{invoice.Paid, "", 1_000_000, 0, 0, []string{created, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"late payment refunded": {func(w *world, inv invoice.Invoice) {
			w.mine(start+3601, w.pay(inv.TransferAmount))
			w.mine(start+3700, w.back(n(999_999)))
			w.final()
		}, want{invoice.Expired, invoice.Late, 1_000_000, 999_999, 1, []string{created, received, refunded, expired}, []string{"open due 0", "close due 0"}}},
		"mined again too late": {func(w *world, inv invoice.Invoice) {
			p := w.pay(inv.Amount)
			w.mine(start+10, p)
			w.reorg(1)
			w.mine(start+3601, p)
			w.final()
		}, want{invoice.Expired, invoice.Late, 1_000_000, 0, 0, []string{created, received, expired}, []string{"open due 0", "close due 0"}}},
		"nothing, to the address": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, tagged(w.pay(invoice.Amount{}), invoice.Evidence{Calldata: inv.CommitmentID}))
			w.final()
		}, want{invoice.Open, "", 0, 0, 0, []string{created}, []string{"open due 0"}}},
		"from the address to itself": {func(w *world, inv invoice.Invoice) {
			p := w.pay(inv.TransferAmount)
			p.From = p.To
			w.mine(start+10, p)
			w.final()
		}, want{invoice.Open, "", 0, 0, 0, []string{created}, []string{"open due 0"}}},
		"another token": {func(w *world, inv invoice.Invoice) {
			p := w.pay(inv.TransferAmount)
			p.Token = invoice.Address{9}
			w.mine(start+10, p)
			w.final()
		}, want{invoice.Open, "", 0, 0, 0, []string{created}, []string{"open due 0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := d.world(t)
			inv := w.create()
			test.play(w, inv)
			w.must(w.Confirm(t.Context(), w.chainKey, w.blocks[0].Header)) // already final, so it has no effect
			got := w.invoice(inv.ID)
			suffix := number(inv.TransferAmount) - 1_000_000
			paid, refunded := number(got.AmountPaid)-test.want.suffixes*suffix, number(got.AmountRefunded)
			if got.Status != test.want.status || got.Exception != test.want.exception || paid != test.want.paid || refunded != test.want.refunded {
				t.Errorf("it is %s, %q, paid %d and refunded %d; want %+v", got.Status, got.Exception, paid, refunded, test.want)
			}
			expect.NoDiff(t, gocmp.Diff(test.want.events, w.eventTypes(inv)), "events")
			expect.NoDiff(t, gocmp.Diff(test.want.intents, w.intents(inv)), "intents")
		})
	}
}
