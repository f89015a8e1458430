package db_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestImpossibleStatesAreRefused tries to write impossible states by plain SQL, which the schema must reject.
func TestImpossibleStatesAreRefused(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, u string) {
		s := dbtest.Open(t, u)
		conn := dbtest.SQL(t, u)
		rowtest.Fill(t, s)
		_, err := s.ReadClock(t.Context(), time.Unix(1, 0), func(_ db.ClockReading, source time.Time) db.ClockReading {
			return db.ClockReading{Now: source}
		})
		rowtest.Must(t, err)
		account := "0x" + strings.Repeat("7", 40)
		const link, linkValues = "(id, merchant_id, slug, archived, title, currency, chain_key, lifetime, created_at, changed_at)",
			", 'm', 'a', 0, 't', 'USDC', 'base', 60, 1, 1"
		expect.Success(t)(conn.ExecContext(t.Context(), "INSERT INTO payment_links "+link+" SELECT 'lnk_1'"+linkValues))
		tx := "'0x" + strings.Repeat("f", 64) + "'"
		for _, statement := range []string{
			"UPDATE merchants SET id = ''",
			"UPDATE settlement_addresses SET address = '0x1'; from_block = -1",
			"INSERT INTO settlement_addresses VALUES ('base', '0x" + strings.Repeat("a", 40) + "', 'nobody', 1, 0)",
			"UPDATE held_addresses SET sole_holder = 'nobody'",
			"INSERT INTO held_addresses VALUES ('0xaa', NULL, 1)",
			"INSERT INTO address_grants VALUES ('0x" + strings.Repeat("9", 40) + "', 'm', 1)", // an address without a holder
			"UPDATE address_grants SET merchant_id = 'nobody'",
			"DELETE FROM held_addresses",
			"INSERT INTO listeners VALUES ('', 'm', '', '', 1)",
			"INSERT INTO listeners VALUES ('l', NULL, '', '', 1)",
			"INSERT INTO listeners VALUES ('l', 'm', '', '', NULL)",

			"INSERT INTO inbox_decisions (id, merchant_id, kind, object_id, version, decision, reason, decided_by, decided_at) VALUES ('dec_1', 'm', 'unattributed', 'p', '0', 'attributed', 'r', 'b', 1)",
			"INSERT INTO inbox_decisions (id, merchant_id, kind, object_id, version, decision, reason, decided_by, decided_at, applied_at) VALUES ('dec_1', 'm', 'unattributed', 'p', '0', 'dismissed', 'r', 'b', 1, 2)",
			"INSERT INTO payment_links " + link + " SELECT 'inv_1'" + linkValues,
			"INSERT INTO payment_links " + link + " SELECT 'lnk_9', 'nobody', 'a', 0, 't', 'USDC', 'base', 60, 1, 1",
			"INSERT INTO payment_links " + link + " SELECT 'lnk_9'" + linkValues, // another has the slug
			"UPDATE payment_links SET archived = 2; slug = ''; title = ''; amount = '0'; amount = '1', min_amount = '1'",
			"UPDATE payment_links SET amount = '1', max_amount = '1'; collection = 'escrow'; lifetime = 0; merchant_address = '0xaa'",
			"UPDATE payment_links SET idem_key = 'k'; idem_key = 'k', idem_scope = ''",

			"UPDATE invoices SET collection = 'escrow'; collection = NULL",
			"UPDATE invoices SET deposit_factory = '" + account + "'", // of direct ones
			"UPDATE invoices SET collection = 'deposit', deposit_address = '" + account + "'",
			"UPDATE invoices SET collection = 'deposit', deposit_factory = '0xaa'",
			"UPDATE invoices SET swept_tx = " + tx,
			"UPDATE payments SET settles_to = '" + account + "'",
			"UPDATE payments SET deposit_of = 'inv_1', settles_to = '0xaa'",
			"INSERT INTO deposits VALUES ('base', '0xaa', 'inv_1', 'm')",
			"INSERT INTO deposits VALUES ('base', '" + account + "', 'inv_9', 'm')",
			"INSERT INTO deposits VALUES ('base', '" + account + "', 'inv_1', 'nobody')",
			"INSERT INTO deposits SELECT chain_key, address, 'inv_2', merchant_id FROM deposits", // another invoice's
			"INSERT INTO deposits SELECT chain_key, '" + account + "', invoice_id, merchant_id FROM deposits",
			"UPDATE deposit_balances SET unswept = '0'; since = NULL; received = '-1'; swept = ''",
			"UPDATE deposit_balances SET address = '" + account + "'", // which is no deposit address
			"UPDATE sweeps SET status = 'confirmed'",
			"UPDATE sweeps SET from_address = '" + account + "'",
			"UPDATE sweeps SET invoice_id = 'inv_9'; amount = '0'; chain_key = 'none'",
			"DELETE FROM deposits",

			"UPDATE invoices SET status = 'Paid'; status = 'paid'",
			"UPDATE invoices SET settled_tx = " + tx + ", settled_at = 5",
			"UPDATE invoices SET status = 'paid', settled_tx = " + tx,
			"UPDATE invoices SET status = 'paid', settled_tx = 'abc', settled_at = 5; exception = 'lost'; exception = NULL; amount = '0'",
			"UPDATE invoices SET amount = '01'; amount = ''; amount = '-1'; amount = '1.5'; amount = '1 '",
			"UPDATE invoices SET amount = '" + strings.Repeat("9", 79) + "'",
			"UPDATE invoices SET amount = NULL; amount_paid = '-1'; amount_refunded = 'x'; transfer_amount = '1e3'; from_block = -1",
			"UPDATE invoices SET closed_block = -1; remaining = '0'; remaining = NULL, remaining_transfer = '7'",
			"UPDATE transfer_amounts SET amount = '107'", // both invoices are open
			"UPDATE transfer_amounts SET amount = '0'; base = '-1'; live = 2; remainder = 2; from_block = -1",
			"UPDATE transfer_amounts SET closed_block = 5", // both invoices are open
			"UPDATE transfer_amounts SET live = 0, closed_block = -1",
			"INSERT INTO transfer_amounts SELECT 'inv_9', base, '99', merchant_address, chain_key, token, 1, 1, 1, 1, NULL FROM transfer_amounts WHERE invoice_id = 'inv_1'",
			"INSERT INTO undecided_payments VALUES ('pay_9', 'base', '0xaa', 1, 1)",
			"INSERT INTO undecided_refunds SELECT 'ref_9', 'none', tx_hash, ordinal, log_index, block_number, block_hash, block_time, token, currency, to_address, from_address, amount, NULL, NULL, NULL FROM payments",
			"INSERT INTO undecided_refunds SELECT 'ref_9', chain_key, tx_hash, ordinal, log_index, block_number, block_hash, block_time, token, currency, to_address, from_address, '0', NULL, NULL, NULL FROM payments",
			"UPDATE chains SET unread_last = -1",
			"UPDATE invoices SET tolerance = amount; tolerance = '1000'; tolerance = ''; tolerance = '-1'; tolerance = NULL; sums_stale = 2",
			"UPDATE invoices SET payment_count = -1; arrived_in_time = '-1'; arrived_in_time = ''; arrived_in_time_dust = 'x'",
			"UPDATE invoices SET arrived_late = NULL; arrived_late_dust = '1.5'; newest_block = -1; newest_log = -1; due = '1 '",
			"UPDATE invoices SET due_dust = ''; beyond_dust = 'x'; counted_block = -1; counted_log = -1; expires_at = created_at",
			"UPDATE invoices SET merchant_id = 'nobody'; merchant_address = '0xaa'",
			"UPDATE invoices SET merchant_address = '0x" + strings.Repeat("9", 40) + "'", // which is not watched
			"UPDATE invoices SET chain_key = 'other'",                                    // a chain on which the address is not watched
			"DELETE FROM settlement_addresses",
			"UPDATE invoices SET commitment_id = '0xaa'",
			"UPDATE invoices SET commitment_id = " + tx,
			"UPDATE invoices SET token = ''; line_items = NULL",
			"DELETE FROM invoices",
			"DELETE FROM merchants",

			"UPDATE idempotency_keys SET idem_key = ''",
			"UPDATE idempotency_keys SET idem_key = '" + strings.Repeat("k", 256) + "'",
			"UPDATE idempotency_keys SET invoice_id = ''",

			"UPDATE chains SET confirmed_number = indexed_number + 1; indexed_number = -1, confirmed_number = -1; gap_next = 1",
			"UPDATE chains SET gap_next = 1, gap_last = 2; gap_next = 3, gap_last = 2, gap_last_time = 5",
			"UPDATE chains SET gap_next = -1, gap_last = 2, gap_last_time = 5; gap_next = 1, gap_last = indexed_number + 1, gap_last_time = 5",
			"INSERT INTO blocks VALUES ('nochain', 1, 'a', 'b', 1)",

			"UPDATE payments SET amount_refunded = '-1'; amount_refunded = ''; status = 'confirmed'; status = 'lost'; confirmed_at = 5",
			"UPDATE payments SET invoice_id = NULL WHERE id = 'pay_1'; merchant_id = NULL WHERE id = 'pay_1'",
			"UPDATE payments SET method = NULL WHERE id = 'pay_1'; method = 'guess' WHERE id = 'pay_1'; method = 'amount' WHERE id = 'pay_2'",
			"UPDATE payments SET method = 'by_hand' WHERE id = 'pay_1'", // without the person who attributed it
			"UPDATE payments SET attributed_by = 'x', attributed_at = 5 WHERE id = 'pay_1'",
			"UPDATE payments SET method = 'by_hand', attributed_by = 'x' WHERE id = 'pay_1'",
			"UPDATE payments SET method = 'by_hand', attributed_by = '', attributed_at = 5 WHERE id = 'pay_1'",
			"INSERT INTO unattributed VALUES ('seen_9', 'm', 'base')",
			"UPDATE unattributed SET merchant_id = 'nobody'",
			"UPDATE payments SET attribution_note = ''", "UPDATE payments SET attribution_note = '" + strings.Repeat("n", 201) + "'",
			"UPDATE payments SET invoice_id = 'inv_9' WHERE id = 'pay_1'; chain_key = 'nochain'",
			"UPDATE payments SET tx_hash = " + tx, // the same place twice
			"UPDATE payments SET seen_id = 'one'; amount = '0'; amount = '00'; ordinal = -1; block_number = -1; commitment_id = '0x'",
			"DELETE FROM payments",

			"UPDATE refunds SET payment_id = 'pay_9'; invoice_id = NULL; amount = '0'; status = 'confirmed'",
			"DELETE FROM chains",

			"UPDATE events SET type = 'invoice.voided'",
			"UPDATE events SET subject = 'x', type = 'invoice.paid'", // recorded twice
			"UPDATE events SET invoice_id = 'inv_9'",
			"DELETE FROM events",
			"UPDATE events SET seq = 0; seq = 2",
			"UPDATE deliveries SET attempts = -1; since = 1",
			"INSERT INTO deliveries VALUES (9, 'm', 0, 0, 1, 1, NULL)",
			"INSERT INTO finished_deliveries VALUES (9, 'm', 'failed', 1, 1)",
			"INSERT INTO finished_deliveries VALUES (1, 'm', 'pending', 1, 1)",
			"INSERT INTO finished_deliveries VALUES (1, 'm', 'failed', -1, 1)",
			"INSERT INTO attempts (seq, number, started_ms, duration_ms) VALUES (9, 1, 1, 1)",
			"INSERT INTO attempts (seq, number, started_ms, duration_ms) VALUES (1, 0, 1, 1)",
			"INSERT INTO attempts (seq, number, started_ms, duration_ms) VALUES (1, 1, 1, -1)",
			"INSERT INTO attempts (seq, number, started_ms, duration_ms, status_code) VALUES (1, 1, 1, 1, 99)",
			"INSERT INTO breakers VALUES ('x', 'closed', 1, 1, 0, 0, 0, 0)",
			"INSERT INTO breakers VALUES ('m', 'ajar', 1, 1, 0, 0, 0, 0)",
			"INSERT INTO breakers VALUES ('m', 'open', 1, 1, 0, 0, 0, 0)", // without a pause
			"INSERT INTO breakers VALUES ('m', 'closed', 1, 0, 0, 0, 0, 0)",
			"INSERT INTO endpoint_secrets VALUES ('m', 1, '', 'k', 'retiring', 1, NULL, NULL)",
			"INSERT INTO endpoint_headers VALUES ('m', NULL, 'k')",
			"INSERT INTO endpoint_headers VALUES ('" + strings.Repeat("m", 65) + "', 'x', 'k')",
			"INSERT INTO endpoint_headers VALUES ('m', '" + strings.Repeat("x", 32769) + "', 'k')",
			"INSERT INTO endpoint_secrets VALUES ('m', 1, '', 'k', 'active', 1, 1, NULL)",
			"INSERT INTO endpoint_secrets VALUES ('m', 1, '', 'k', 'active', 1, NULL, NULL), ('m', 2, '', 'k', 'active', 1, NULL, NULL)",
			"INSERT INTO endpoint_secrets VALUES ('m', 1, '', 'k', 'staged', 1, NULL, NULL), ('m', 2, '', 'k', 'staged', 1, NULL, NULL)",

			"INSERT INTO schedule_clock (id, now_ms, source_ms) VALUES (2, 1, 1)", // another clock
			"UPDATE schedule_clock SET id = 2; id = NULL; now_ms = -1; now_ms = NULL; source_ms = NULL",

			"INSERT INTO recovery (id, state, reason, since) VALUES (2, 'normal', '', 0)", // another state
			"UPDATE recovery SET state = 'restored', reason = 'x'",
			"UPDATE recovery SET state = 'suspected'", // without a reason
			"UPDATE recovery SET reason = 'x'",        // in the normal state
			"UPDATE recovery SET heartbeats = NULL",

			"UPDATE authorizations SET id = 'inv_1' WHERE id = 'aut_1'; nonce = '0x' || nonce WHERE id = 'aut_1'",
			"UPDATE authorizations SET nonce = (SELECT nonce FROM authorizations WHERE id = 'aut_2')", // which is bound
			"UPDATE authorizations SET token = '0xcc'; authorizer = ''; recipient = '0xaa'; invoice_id = 'inv_9'; merchant_id = 'nobody'",
			"UPDATE authorizations SET value = '0'; value = '-1'; valid_after = -1; valid_before = valid_after; signature = 'abc'; gas = 0",
			"UPDATE authorizations SET status = 'lost'",
			"UPDATE authorizations SET status = 'sent'", // without a transaction
			"UPDATE authorizations SET tx_id = 'ctx_9'; payment_id = 'pay_9'",
			"UPDATE authorizations SET status = 'paid', ended_ms = 5",    // without a payment
			"UPDATE authorizations SET status = 'refused', ended_ms = 5", // without a reason
			"UPDATE authorizations SET status = 'refused', reason = 'x'; reason = 'x'; ended_ms = 5",
			"UPDATE x402_settlements SET nonce = '0x'; token = ''; authorizer = '0xbb'; invoice_id = 'inv_9'; merchant_id = 'nobody'",
			"UPDATE x402_settlements SET resource = ''",
			"UPDATE x402_settlements SET resource = '" + strings.Repeat("r", 201) + "'",
			"UPDATE x402_settlements SET client_secret = 'abc'; answers = -1; answered_key = ''",
			"INSERT INTO x402_settlements SELECT 'ethereum', token, authorizer, nonce, invoice_id, merchant_id, resource, 0, 1, NULL, NULL FROM x402_settlements", // of one invoice twice
			"INSERT INTO x402_settlements SELECT chain_key, token, authorizer, nonce, 'inv_2', merchant_id, resource, 0, 1, NULL, NULL FROM x402_settlements",

			"UPDATE notices SET payment_id = 'pay_9'; provider = NULL",
			"UPDATE intents SET kind = 'keep'",
			"UPDATE intents SET status = 'sent'", // without a transaction
			"UPDATE intents SET tx_id = 'ctx_9'",
			"UPDATE intents SET kind = 'open', invoice_id = 'inv_1'", // twice the same
		} {
			update, _, _ := strings.Cut(statement, "SET ")
			for i, one := range strings.Split(statement, "; ") { // several updates of a table
				if i > 0 {
					one = update + "SET " + one
				}
				if result, err := conn.ExecContext(t.Context(), one); err == nil {
					n, err := result.RowsAffected()
					t.Errorf("%d rows, %v: nothing refuses %s", n, err, one)
				}
			}
		}
	})
}
