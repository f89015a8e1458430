package store_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// sampleAuthorization returns the n-th accepted authorization of an account, for an invoice.
func sampleAuthorization(n int, invoiceID string) store.Authorization {
	return store.Authorization{
		Authorization: invoice.Authorization{
			From: invoice.Address{0xbb}, To: invoice.Address{0xaa}, Value: invoice.NewAmount(100), ValidAfter: invoice.Unix(0),
			ValidBefore: invoice.Unix(int64(2000 + n)), Nonce: invoice.Hash{0xee, byte(n)}, Signature: []byte{1, byte(n)},
		},
		ID: "aut_" + string(rune('0'+n)), ChainKey: "base", Token: invoice.Address{0xcc}, InvoiceID: invoiceID, MerchantID: "m",
		Gas: 60_000, Status: store.AuthorizationAccepted, CreatedAt: atMS(int64(1000 * n)),
	}
}

// sampleSettlement returns the settlement of an authorization.
func sampleSettlement(a store.Authorization) store.X402Settlement {
	return store.X402Settlement{
		AuthorizationKey: store.AuthorizationKey{ChainKey: a.ChainKey, Token: a.Token, Authorizer: a.From, Nonce: a.Nonce},
		InvoiceID:        a.InvoiceID, MerchantID: a.MerchantID, Resource: "https://api.shop.example/1", CreatedAt: atMS(5),
	}
}

// fillAuthorizations stores the authorizations of two invoices, and the settlement of the first.
func fillAuthorizations(t *testing.T, s *store.Store) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(tx.InsertAuthorization(ctx, sampleAuthorization(1, "inv_1")), tx.InsertAuthorization(ctx, sampleAuthorization(2, "inv_2")),
			tx.InsertX402Settlement(ctx, sampleSettlement(sampleAuthorization(1, "inv_1"))))
	})
}

// authorizedPayment returns the n-th payment, by an authorization.
func authorizedPayment(n int, a store.Authorization) store.PaymentRow {
	p := samplePayment(n)
	p.From, p.To, p.Amount, p.Evidence.Authorization = a.From, a.To, a.Value, a.Nonce
	p.InvoiceID, p.MerchantID, p.Method = a.InvoiceID, a.MerchantID, invoice.ByAuthorization
	return p
}

func TestAuthorizationRoundTrip(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		fill(t, s)
		want := sampleAuthorization(1, "inv_1")
		check := func() {
			t.Helper()
			byNonce, err := s.AuthorizationByNonce(t.Context(), want.ChainKey, want.Token, want.From, want.Nonce)
			must(t, err)
			all, err := s.AuthorizationsOfInvoice(t.Context(), want.InvoiceID, 10)
			if diff := cmp.Diff([]store.Authorization{byNonce}, all, equal); err != nil || diff != "" {
				t.Errorf("%v (-by nonce +of the invoice):\n%s", err, diff)
			}
			if diff := cmp.Diff(want, byNonce, equal); diff != "" {
				t.Errorf("(-written +read):\n%s", diff)
			}
		}
		check()
		for name, a := range map[string][4]any{
			"chain": {"ethereum", want.Token, want.From, want.Nonce}, "token": {"base", invoice.Address{1}, want.From, want.Nonce},
			"payer": {"base", want.Token, invoice.Address{1}, want.Nonce}, "nonce": {"base", want.Token, want.From, invoice.Hash{1}},
		} {
			_, err := s.AuthorizationByNonce(t.Context(), a[0].(string), a[1].(invoice.Address), a[2].(invoice.Address), a[3].(invoice.Hash))
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("with another %s: %v", name, err)
			}
		}
		again := sampleAuthorization(1, "inv_2")
		again.ID = "aut_9"
		err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.InsertAuthorization(t.Context(), again) })
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("the nonce is bound twice: %v", err)
		}

		p := authorizedPayment(5, want)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.SavePayments(ctx, []store.PaymentRow{p}); err != nil {
				return err
			}
			return tx.SetAuthorizationPayments(ctx, map[string]string{want.ID: p.ID})
		})
		want.Payment = &store.AuthorizedPayment{ID: p.ID, TxHash: p.TxHash, Status: invoice.Pending}
		check()
		bound, err := s.BoundAuthorizations(t.Context(), []invoice.Transfer{samplePayment(1).Transfer, p.Transfer})
		wantBound := map[int]store.BoundAuthorization{1: {ID: want.ID, InvoiceID: "inv_1", To: want.To, Value: want.Value, PaymentID: p.ID}}
		if diff := cmp.Diff(wantBound, bound, equal); err != nil || diff != "" {
			t.Errorf("%v (-want +bound):\n%s", err, diff)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.SetAuthorizationPayments(ctx, map[string]string{want.ID: "", "aut_2": ""})
		})
		want.Payment = nil
		check()
	})
}

// TestDueAuthorizations expects those to be due that are accepted and have no payment, the
// first to lapse first.
func TestDueAuthorizations(t *testing.T) {
	t.Parallel()
	eachWriter(t, 4, func(t *testing.T, s *store.Store, _ *sql.DB) {
		startChain(t, s, "base")
		all := []store.Authorization{
			sampleAuthorization(4, "inv_0"), sampleAuthorization(3, "inv_1"), sampleAuthorization(2, "inv_2"), sampleAuthorization(1, "inv_3"),
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			for _, a := range all {
				if err := tx.InsertAuthorization(ctx, a); err != nil {
					return err
				}
			}
			return nil
		})
		wantDue := func(want ...string) {
			t.Helper()
			due, err := s.DueAuthorizations(t.Context(), "base", 10)
			must(t, err)
			var got []string
			for _, a := range due {
				got = append(got, a.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("due (-want +got):\n%s", diff)
			}
			if n, err := s.CountDueAuthorizations(t.Context(), "base"); err != nil || n != int64(len(want)) {
				t.Errorf("%d are due, %v; want %d", n, err, len(want))
			}
		}
		wantPending := func(invoiceID string, want bool) {
			t.Helper()
			if _, err := s.PendingAuthorization(t.Context(), invoiceID); (err == nil) != want || err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("of %s one is pending: %v, want %v", invoiceID, err, want)
			}
		}
		wantDue("aut_1", "aut_2", "aut_3", "aut_4")
		tx := chainTx("ctx_1", 1)
		tx.Kind = store.TxAuthorization
		must(t, s.SaveChainTx(t.Context(), writerLease, tx, []string{"aut_1"}))
		must(t, s.RefuseAuthorization(t.Context(), writerLease, "aut_2", invoice.RefusedReverts, at(1500)))
		must(t, s.RefuseAuthorization(t.Context(), writerLease, "aut_1", invoice.RefusedReverts, at(1500))) // which was sent
		p := authorizedPayment(5, all[1])
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.SavePayments(ctx, []store.PaymentRow{p}); err != nil {
				return err
			}
			return tx.SetAuthorizationPayments(ctx, map[string]string{"aut_3": p.ID})
		})
		wantDue("aut_4")
		for id, want := range map[string]bool{"inv_0": true, "inv_1": false, "inv_2": false, "inv_3": true} {
			wantPending(id, want)
		}
		// A reorg drops the payment, and the transaction fails.
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.OrphanAbove(ctx, "base", 100, at(9), at(9)) })
		must(t, s.SetTxStatus(t.Context(), writerLease, "ctx_1", store.TxFailed, nil))
		wantDue("aut_1", "aut_3", "aut_4")
		wantPending("inv_1", true)
		for _, id := range []string{"aut_1", "aut_3"} { // one was sent, and one is on the chain of others
			must(t, s.RefuseAuthorization(t.Context(), writerLease, id, invoice.RefusedReverts, at(1500)))
		}
		wantDue("aut_1", "aut_3", "aut_4")
		lost := store.WorkLease{Name: writerLease.Name, Holder: "another"}
		if err := s.RefuseAuthorization(t.Context(), lost, "aut_4", invoice.RefusedReverts, at(1500)); !errors.Is(err, store.ErrConflict) {
			t.Errorf("without the lease: %v", err)
		}
	})
}

// TestEndAuthorizations ends authorizations at final blocks.
func TestEndAuthorizations(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		fill(t, s)
		paid := sampleAuthorization(1, "inv_1")
		p := authorizedPayment(5, paid)
		end := func(final int64) {
			t.Helper()
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.EndAuthorizations(ctx, "base", invoice.Unix(final), invoice.RefusedWindowClosed, at(3000))
			})
		}
		want := func(id string, status store.AuthorizationStatus, reason invoice.Refusal) {
			t.Helper()
			a, err := s.Authorization(t.Context(), id)
			if err != nil || a.Status != status || a.Reason != reason || a.EndedAt.IsZero() != (status == store.AuthorizationAccepted) {
				t.Errorf("%s is %s (%s) since %v, %v; want %s", id, a.Status, a.Reason, a.EndedAt, err, status)
			}
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.SavePayments(ctx, []store.PaymentRow{p}); err != nil {
				return err
			}
			return tx.SetAuthorizationPayments(ctx, map[string]string{paid.ID: p.ID})
		})
		end(2001)
		want("aut_1", store.AuthorizationAccepted, "") // its payment is pending
		want("aut_2", store.AuthorizationAccepted, "") // its window has a second left
		end(2002)
		want("aut_1", store.AuthorizationAccepted, "")
		want("aut_2", store.AuthorizationRefused, invoice.RefusedWindowClosed)
		p.Status, p.ConfirmedAt = invoice.Confirmed, at(2500)
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SavePayments(ctx, []store.PaymentRow{p}) })
		end(2002)
		want("aut_1", store.AuthorizationPaid, "")
	})
}

// TestCountAuthorizations counts against each budget.
func TestCountAuthorizations(t *testing.T) {
	t.Parallel()
	eachWriter(t, 3, func(t *testing.T, s *store.Store, _ *sql.DB) {
		other := sampleAuthorization(3, "inv_2")
		other.From = invoice.Address{0xbc}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.InsertAuthorization(ctx, sampleAuthorization(1, "inv_0")),
				tx.InsertAuthorization(ctx, sampleAuthorization(2, "inv_1")), tx.InsertAuthorization(ctx, other))
		})
		count := func(since time.Time, merchantID string, want [3]int64) {
			t.Helper()
			all, merchant, payer, err := s.CountAuthorizations(t.Context(), "base", merchantID, invoice.Address{0xbb}, store.Window{Since: since, Oldest: since})
			if got := [3]int64{all, merchant, payer}; err != nil || got != want {
				t.Errorf("since %v: %v, %v; want %v", since, got, err, want)
			}
		}
		count(atMS(0), "m", [3]int64{3, 3, 2})
		count(atMS(0), "n", [3]int64{3, 0, 2})
		count(atMS(1000), "m", [3]int64{2, 2, 1}) // the first is as old as that
		must(t, s.RefuseAuthorization(t.Context(), writerLease, "aut_2", invoice.RefusedReverts, at(1500)))
		count(atMS(0), "m", [3]int64{2, 2, 2}) // it cost no gas
	})
}

func TestX402Settlements(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		fill(t, s)
		want := sampleSettlement(sampleAuthorization(1, "inv_1"))
		check := func(want store.X402Settlement) {
			t.Helper()
			got, err := s.X402Settlement(t.Context(), want.AuthorizationKey)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-written +read):\n%s", err, diff)
			}
		}
		check(want)
		second := want
		second.InvoiceID, second.Resource = "inv_2", "https://api.shop.example/2"
		insert := func(row store.X402Settlement) error {
			return s.Update(t.Context(), func(tx *store.Tx) error { return tx.InsertX402Settlement(t.Context(), row) })
		}
		if err := insert(second); !errors.Is(err, store.ErrConflict) {
			t.Errorf("a second settlement of an authorization: %v", err)
		}
		check(want)
		secret := sampleSettlement(sampleAuthorization(2, "inv_2"))
		secret.ClientSecret = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		must(t, insert(secret))
		check(secret)
		unknown := want.AuthorizationKey
		unknown.Nonce = invoice.Hash{1}
		if _, err := s.X402Settlement(t.Context(), unknown); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of another nonce: %v", err)
		}
		for n := range 3 {
			counted, err := s.CountX402Answer(t.Context(), want.AuthorizationKey, 2)
			if err != nil || counted != (n < 2) {
				t.Errorf("answer %d of 2 is counted: %v, %v", n+1, counted, err)
			}
		}
		want.Answers = 2
		check(want)
		if counted, err := s.CountX402Answer(t.Context(), unknown, 2); err != nil || counted {
			t.Errorf("an answer of no settlement is counted: %v, %v", counted, err)
		}
		for merchantID, foreign := range map[string]bool{"m": false, "n": true} {
			if got, err := s.IsHeldByOther(t.Context(), invoice.Address{0xaa}, merchantID); err != nil || got != foreign {
				t.Errorf("for %s the address is another's: %v, %v", merchantID, got, err)
			}
		}
		if got, err := s.IsHeldByOther(t.Context(), invoice.Address{0x99}, "n"); err != nil || got {
			t.Errorf("an address that nobody holds is another's: %v, %v", got, err)
		}
		if _, err := s.SentTx(t.Context(), "ctx_none"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of no transaction: %v", err)
		}
	})
}
