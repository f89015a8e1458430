package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/txmgr"
)

// authorizedPayment returns the n-th payment, by an authorization.
func authorizedPayment(n int, a ledger.Authorization) ledger.PaymentRow {
	p := rowtest.SamplePayment(n)
	p.From, p.To, p.Amount, p.Evidence.Authorization = a.From, a.To, a.Value, a.Nonce
	p.InvoiceID, p.MerchantID, p.Method = a.InvoiceID, a.MerchantID, invoice.ByAuthorization
	return p
}

func TestAuthorizationRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Fill(t, s)
		want := rowtest.SampleAuthorization(1, "inv_1")
		check := func() {
			t.Helper()
			byNonce, err := ledger.NewReader(s).AuthorizationByNonce(t.Context(), want.ChainKey, want.Token, want.From, want.Nonce)
			rowtest.Must(t, err)
			all, err := ledger.NewReader(s).AuthorizationsOfInvoice(t.Context(), want.InvoiceID, 10)
			if diff := cmp.Diff([]ledger.Authorization{byNonce}, all, rowtest.Equal); err != nil || diff != "" {
				t.Errorf("%v (-by nonce +of the invoice):\n%s", err, diff)
			}
			expect.NoDiff(t, cmp.Diff(want, byNonce, rowtest.Equal), "")
		}
		check()
		for name, a := range map[string][4]any{
			"chain": {"ethereum", want.Token, want.From, want.Nonce}, "token": {"base", invoice.Address{1}, want.From, want.Nonce},
			"payer": {"base", want.Token, invoice.Address{1}, want.Nonce}, "nonce": {"base", want.Token, want.From, invoice.Hash{1}},
		} {
			_, err := ledger.NewReader(s).AuthorizationByNonce(t.Context(), a[0].(string), a[1].(invoice.Address), a[2].(invoice.Address), a[3].(invoice.Hash))
			expect.Error(t, db.ErrNotFound, "with another %s", name)(err)
		}
		again := rowtest.SampleAuthorization(1, "inv_2")
		again.ID = "aut_9"
		err := s.Update(t.Context(), func(tx *db.Tx) error { return ledger.InsertAuthorization(t.Context(), tx, again) })
		expect.Error(t, db.ErrConflict, "the nonce is bound twice")(err)

		p := authorizedPayment(5, want)
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			if err := ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p}); err != nil {
				return err
			}
			return ledger.SetAuthorizationPayments(ctx, tx, map[string]string{want.ID: p.ID})
		})
		want.Payment = &ledger.AuthorizedPayment{ID: p.ID, TxHash: p.TxHash, Status: invoice.Pending}
		check()
		bound, err := ledger.BoundAuthorizations(t.Context(), s, []invoice.Transfer{rowtest.SamplePayment(1).Transfer, p.Transfer})
		wantBound := map[int]ledger.BoundAuthorization{1: {ID: want.ID, InvoiceID: "inv_1", To: want.To, Value: want.Value, PaymentID: p.ID}}
		expect.NoError(t, err)
		expect.NoDiff(t, cmp.Diff(wantBound, bound, rowtest.Equal), "")
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return ledger.SetAuthorizationPayments(ctx, tx, map[string]string{want.ID: "", "aut_2": ""})
		})
		want.Payment = nil
		check()
	})
}

// TestDueAuthorizations expects that accepted authorizations without a payment are due, ordered by when they lapse.
func TestDueAuthorizations(t *testing.T) {
	t.Parallel()
	rowtest.EachWriter(t, 4, func(t *testing.T, s *db.DB, _ *sql.DB) {
		rowtest.StartChain(t, s, "base")
		all := []ledger.Authorization{
			rowtest.SampleAuthorization(4, "inv_0"), rowtest.SampleAuthorization(3, "inv_1"), rowtest.SampleAuthorization(2, "inv_2"), rowtest.SampleAuthorization(1, "inv_3"),
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			for _, a := range all {
				if err := ledger.InsertAuthorization(ctx, tx, a); err != nil {
					return err
				}
			}
			return nil
		})
		wantDue := func(want ...string) {
			t.Helper()
			due, err := ledger.DueAuthorizations(t.Context(), s, "base", time.Time{}, time.Time{}, "", 10)
			rowtest.Must(t, err)
			var got []string
			for _, a := range due {
				got = append(got, a.ID)
			}
			expect.NoDiff(t, cmp.Diff(want, got), "due")
			if n, err := ledger.CountDueAuthorizations(t.Context(), s, "base"); err != nil || n != int64(len(want)) {
				t.Errorf("%d are due, %v; want %d", n, err, len(want))
			}
		}
		wantPending := func(invoiceID string, want bool) {
			t.Helper()
			if _, err := ledger.NewReader(s).PendingAuthorization(t.Context(), invoiceID); (err == nil) != want || err != nil && !errors.Is(err, db.ErrNotFound) {
				t.Errorf("of %s one is pending: %v, want %v", invoiceID, err, want)
			}
		}
		wantDue("aut_1", "aut_2", "aut_3", "aut_4")
		second := rowtest.SampleAuthorization(2, "inv_2")
		for id, want := range map[string]int{"": 3, second.ID: 2} {
			if due, err := ledger.DueAuthorizations(t.Context(), s, "base", second.ValidBefore, second.ValidBefore, id, 10); err != nil || len(due) != want {
				t.Errorf("%d lapse after %q, %v; want %d", len(due), id, err, want)
			}
		}
		tx := rowtest.ChainTx("ctx_1", 1)
		tx.Kind = txmgr.TxAuthorization
		rowtest.Must(t, txmgr.SaveChainTx(t.Context(), s, rowtest.WriterLease, tx, []string{"aut_1"}))
		rowtest.Must(t, ledger.RefuseAuthorization(t.Context(), s, rowtest.WriterLease, "aut_2", invoice.RefusedReverts, rowtest.At(1500)))
		rowtest.Must(t, ledger.RefuseAuthorization(t.Context(), s, rowtest.WriterLease, "aut_1", invoice.RefusedReverts, rowtest.At(1500))) // which was sent
		p := authorizedPayment(5, all[1])
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			if err := ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p}); err != nil {
				return err
			}
			return ledger.SetAuthorizationPayments(ctx, tx, map[string]string{"aut_3": p.ID})
		})
		wantDue("aut_4")
		for id, want := range map[string]bool{"inv_0": true, "inv_1": false, "inv_2": false, "inv_3": true} {
			wantPending(id, want)
		}
		// A reorg drops the payment, and the transaction fails.
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return ledger.OrphanAbove(ctx, tx, "base", 100, rowtest.At(9))
		})
		rowtest.Must(t, txmgr.SetTxStatus(t.Context(), s, rowtest.WriterLease, "ctx_1", txmgr.TxFailed, nil))
		wantDue("aut_1", "aut_3", "aut_4")
		wantPending("inv_1", true)
		for _, id := range []string{"aut_1", "aut_3"} { // one was sent, and one is on the chain of others
			rowtest.Must(t, ledger.RefuseAuthorization(t.Context(), s, rowtest.WriterLease, id, invoice.RefusedReverts, rowtest.At(1500)))
		}
		wantDue("aut_1", "aut_3", "aut_4")
		lost := db.WorkLease{Name: rowtest.WriterLease.Name, Holder: "another"}
		if err := ledger.RefuseAuthorization(t.Context(), s, lost, "aut_4", invoice.RefusedReverts, rowtest.At(1500)); !errors.Is(err, db.ErrConflict) {
			t.Errorf("without the lease: %v", err)
		}
	})
}

func TestX402Settlements(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Fill(t, s)
		want := rowtest.SampleSettlement(rowtest.SampleAuthorization(1, "inv_1"))
		check := func(want ledger.X402Settlement) {
			t.Helper()
			got, err := ledger.NewReader(s).X402Settlement(t.Context(), want.AuthorizationKey)
			expect.NoError(t, err)
			expect.NoDiff(t, cmp.Diff(want, got), "")
		}
		check(want)
		second := want
		second.InvoiceID, second.Resource = "inv_2", "https://api.shop.example/2"
		insert := func(row ledger.X402Settlement) error {
			return s.Update(t.Context(), func(tx *db.Tx) error { return ledger.InsertX402Settlement(t.Context(), tx, row) })
		}
		expect.Error(t, db.ErrConflict, "a second settlement of an authorization")(insert(second))
		check(want)
		secret := rowtest.SampleSettlement(rowtest.SampleAuthorization(2, "inv_2"))
		secret.ClientSecret = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		rowtest.Must(t, insert(secret))
		check(secret)
		unknown := want.AuthorizationKey
		unknown.Nonce = invoice.Hash{1}
		expect.Error(t, db.ErrNotFound, "of another nonce")(ledger.NewReader(s).X402Settlement(t.Context(), unknown))
		for n := range 3 {
			counted, err := ledger.NewTables(s).CountX402Answer(t.Context(), want.AuthorizationKey, 2, "")
			if err != nil || counted != (n < 2) {
				t.Errorf("answer %d of 2 is counted: %v, %v", n+1, counted, err)
			}
		}
		want.Answers = 2
		check(want)
		if counted, err := ledger.NewTables(s).CountX402Answer(t.Context(), unknown, 2, ""); err != nil || counted {
			t.Errorf("an answer of no settlement is counted: %v, %v", counted, err)
		}
		for merchantID, foreign := range map[string]bool{"m": false, "n": true} {
			if got, err := ledger.NewReader(s).IsHeldByOther(t.Context(), invoice.Address{0xaa}, merchantID); err != nil || got != foreign {
				t.Errorf("for %s the address is another's: %v, %v", merchantID, got, err)
			}
		}
		if got, err := ledger.NewReader(s).IsHeldByOther(t.Context(), invoice.Address{0x99}, "n"); err != nil || got {
			t.Errorf("an address that nobody holds is another's: %v, %v", got, err)
		}
		expect.Error(t, db.ErrNotFound, "of no transaction")(ledger.NewReader(s).SentTx(t.Context(), "ctx_none"))
	})
}

// TestCountAuthorizations counts against each budget.
func TestCountAuthorizations(t *testing.T) {
	t.Parallel()
	rowtest.EachWriter(t, 3, func(t *testing.T, s *db.DB, _ *sql.DB) {
		other := rowtest.SampleAuthorization(3, "inv_2")
		other.From = invoice.Address{0xbc}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return errors.Join(ledger.InsertAuthorization(ctx, tx, rowtest.SampleAuthorization(1, "inv_0")),
				ledger.InsertAuthorization(ctx, tx, rowtest.SampleAuthorization(2, "inv_1")), ledger.InsertAuthorization(ctx, tx, other))
		})
		count := func(since time.Time, merchantID string, want [3]int64) {
			t.Helper()
			all, merchant, payer, err := ledger.CountAuthorizations(t.Context(), s, "base", merchantID, invoice.Address{0xbb}, ledger.Window{Since: since, Oldest: since})
			if got := [3]int64{all, merchant, payer}; err != nil || got != want {
				t.Errorf("since %v: %v, %v; want %v", since, got, err, want)
			}
		}
		count(rowtest.AtMS(0), "m", [3]int64{3, 3, 2})
		count(rowtest.AtMS(0), "n", [3]int64{3, 0, 2})
		count(rowtest.AtMS(1000), "m", [3]int64{2, 2, 1}) // the first is as old as that
		rowtest.Must(t, ledger.RefuseAuthorization(t.Context(), s, rowtest.WriterLease, "aut_2", invoice.RefusedReverts, rowtest.At(1500)))
		count(rowtest.AtMS(0), "m", [3]int64{2, 2, 2}) // it cost no gas
	})
}

// TestHotWalletIsNoSettlementAddress: a merchant names an exchange's account as settlement address, to
// which another merchant has sent money. Payments that the exchange then makes for its customers must
// not become refunds of that money.
func TestHotWalletIsNoSettlementAddress(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for name, c := range map[string]struct {
			proved bool
			names  bool // the transfer names the invoice that it refunds
			refund bool
		}{
			"a hot wallet": {}, "an address whose holder proved control": {proved: true, refund: true}, "named": {names: true, refund: true},
		} {
			w := d.world(t)
			exchange := invoice.Address{0: 0xec, 18: w.address[18], 19: w.address[19]}
			theirs := w.create(amount(1_000_000), func(d *invoice.Draft) { d.Merchant = exchange })
			inv := w.create(amount(1_000_000))
			out := toward(w.pay(invoice.NewAmount(1_000_000)), exchange)
			out.From, out.Evidence.Calldata = w.address, theirs.CommitmentID
			w.mine(start+1, out)
			w.final()
			if c.proved { // by the transaction of a prepared refund
				r := w.mustPrepare(w.payment(out), 1, to(invoice.Address{0xee}))
				proof := w.send(r)
				proof.From = exchange
				w.mine(start+2, proof)
				inv = w.create(amount(999_999))
			}
			paid := w.pay(inv.Amount)
			paid.From = exchange
			if c.names {
				paid.Evidence.Calldata = theirs.CommitmentID
			}
			w.mine(start+3, paid)
			w.final()
			want := "payment by amount"
			if c.refund {
				want = "refund of " + inv.Amount.String()
			}
			if got := w.storedAs(paid); got != want {
				t.Errorf("%s: the transfer is a %s, want a %s", name, got, want)
			}
			if got := w.invoice(inv.ID).Status; (got == invoice.Paid) == c.refund {
				t.Errorf("%s: the invoice is %s", name, got)
			}
		}
	})
}

// storedAs returns the role of a transfer between two settlement addresses.
func (w *world) storedAs(t invoice.Transfer) string {
	w.t.Helper()
	p := w.payment(t)
	refunds, err := ledger.RefundsByID(w.t.Context(), w.db.store, []string{invoice.TransferID(invoice.PrefixRefund, t.ChainKey, t.TxHash, t.Ordinal)})
	w.must(err)
	back := len(refunds) > 0 && refunds[0].Status == invoice.Confirmed
	switch {
	case back && p.Attributed():
		return "both"
	case back:
		return fmt.Sprintf("refund of %s", refunds[0].Amount)
	case p.Attributed():
		return fmt.Sprintf("payment by %s", p.Method)
	}
	return "nothing"
}
