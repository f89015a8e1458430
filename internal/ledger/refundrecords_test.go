package ledger_test

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// preparedRefund returns a pending refund record of the first sample payment.
func preparedRefund(id string) invoice.RefundRecord {
	p := rowtest.SamplePayment(1)
	return invoice.RefundRecord{
		ID: id, PaymentID: p.ID, ChainKey: p.ChainKey, Token: p.Token, Currency: p.Currency, From: p.To, Payer: p.From, Left: p.Amount, PaymentStatus: p.Status,
		Status: invoice.RefundPending, CreatedAt: rowtest.At(2000), Tag: invoice.Hash{9, byte(len(id))}, Amount: invoice.NewAmount(60), To: p.From,
		Reason: "naïve \"quotes\" ☕", Account: invoice.AccountUnknown, ManyInvoices: true, ClaimToken: strings.Repeat("t", 32), ExpiresAt: rowtest.At(3000),
	}
}

// savePrepared stores a payment with a prepared refund and an observed one that was not prepared.
func savePrepared(t *testing.T, s *db.DB) (prepared invoice.RefundRecord, observed invoice.Refund) {
	t.Helper()
	rowtest.StartChain(t, s, "base")
	rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
	prepared, observed = preparedRefund("ref_prepared"), rowtest.RefundOf(rowtest.SamplePayment(1))
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		if err := ledger.SavePayments(ctx, tx, []ledger.PaymentRow{rowtest.SamplePayment(1)}); err != nil {
			return err
		}
		if err := ledger.InsertPreparedRefund(ctx, tx, prepared, "m", "key", invoice.Hash{5}); err != nil {
			return err
		}
		return ledger.SaveRefund(ctx, tx, observed)
	})
	return prepared, observed
}

func TestRefundRecordRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		prepared, observed := savePrepared(t, s)
		got, err := ledger.NewReader(s).RefundRecord(t.Context(), prepared.ID)
		rowtest.Must(t, err)
		token := prepared.ClaimToken
		prepared.ClaimToken, prepared.ClaimHash = "", invoice.HashClaimToken(token) // this is all that is stored
		expect.NoDiff(t, cmp.Diff(prepared, got, rowtest.Equal), "")
		byKey, hash, err := ledger.RefundByKey(t.Context(), s, prepared.PaymentID, "m", "key")
		if err != nil || byKey.ID != prepared.ID || hash != (invoice.Hash{5}) {
			t.Errorf("by its key: %s, %s, %v", byKey.ID, hash, err)
		}
		byToken, err := ledger.RefundByClaimToken(t.Context(), s, token)
		if err != nil || byToken.ID != prepared.ID {
			t.Errorf("by its token: %s, %v", byToken.ID, err)
		}
		stored := invoice.HashClaimToken(token)
		if r, err := ledger.RefundByClaimToken(t.Context(), s, hex.EncodeToString(stored[:])); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("by the hash that is stored of its token: %s, %v", r.ID, err)
		}
		// The transfer is linked to the prepared refund, unlinked and linked again.
		for _, id := range []string{prepared.ID, "", prepared.ID} {
			observed.PreparedID = id
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.SaveRefund(ctx, tx, observed) })
			list, err := ledger.NewReader(s).RefundRecords(t.Context(), ledger.RefundFilter{PaymentID: prepared.PaymentID, Limit: 9})
			rowtest.Must(t, err)
			transfers, err := ledger.RefundsByID(t.Context(), s, []string{observed.ID})
			rowtest.Must(t, err)
			for _, r := range list {
				if r.Transfer.ID != "" && !r.Transfer.BlockTime.Equal(observed.BlockTime) {
					t.Errorf("paid by %q: the block of the transfer has the time %v, want %v", id, r.Transfer.BlockTime, observed.BlockTime)
				}
			}
			if want := map[string]int{"": 2, prepared.ID: 1}[id]; len(list) != want || len(transfers) != 1 || transfers[0].PreparedID != id {
				t.Errorf("paid by %q: %d records, the transfer is %+v", id, len(list), transfers)
			}
		}
	})
}

func TestImpossibleRefundRecordsAreRefused(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, u string) {
		s := dbtest.Open(t, u)
		savePrepared(t, s)
		conn := dbtest.SQL(t, u)
		for _, set := range []string{
			"status = 'paid'", "status = 'orphaned'", "status = 'confirmed'", "status = 'canceled'", "status = 'awaiting_address'",
			"status = 'awaiting_approval', recipient = NULL, account = NULL",
			"refund_id = 'ref_none', tx_hash = '0x" + strings.Repeat("1", 64) + "'", "refund_id = 'ref_of_pay_1'", "tx_hash = '0x" + strings.Repeat("1", 64) + "'",
			"tag = NULL", "tag = '0x1'", "amount = NULL", "amount = '0'", "amount = '-1'", "recipient = NULL", "recipient = '0x1'", "account = NULL", "account = 'exchange'",
			"recipient = NULL, account = NULL, claim_token = NULL", "many_invoices = 2", "many_invoices = NULL", "claim_token = 'short'", "claim_signature = '0x1'",
			"reason = ''", "expires_at = NULL", "idem_key = NULL", "idem_scope = NULL", "request_hash = NULL", "payment_id = 'pay_none'", "merchant_id = 'nobody'",
			"chain_key = 'mars'", "id = 'pay_1'", "item = 'late'",
		} {
			result, err := conn.ExecContext(t.Context(), "UPDATE refund_records SET "+set+" WHERE id = 'ref_prepared'")
			if err == nil {
				n, _ := result.RowsAffected()
				t.Errorf("nothing refuses %s (%d rows)", set, n)
			}
		}
		for _, set := range []string{"status = 'canceled'", "recipient = from_address", "refund_id = NULL, tx_hash = NULL", "canceled_at = 1", "claim_token = '" + strings.Repeat("u", 32) + "'"} {
			if _, err := conn.ExecContext(t.Context(), "UPDATE refund_records SET "+set+" WHERE id = 'ref_of_pay_1'"); err == nil {
				t.Errorf("nothing refuses %s of a transfer that was not prepared", set)
			}
		}
	})
}
