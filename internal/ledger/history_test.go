package ledger_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
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
		insert: `refund_records (id, list_id, payment_id, invoice_id, merchant_id, chain_key, status, created_at, tag, amount, recipient, account,
			many_invoices, expires_at)`,
		from: `'ref_x' || i, 'x' || i, 'pay_1', 'inv_1', 'm', chain_key, 'expired', 1, substr(tx_hash, 1, 60) || (100000 + i), '1', to_address, 'unknown', 0, 2
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
	for database, url := range dbtest.MigratedDatabases() {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			dsn := url(t)
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
