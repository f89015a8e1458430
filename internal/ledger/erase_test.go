package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// Texts about a customer: one in texts that programs write, and one in texts that people write when they decide.
const (
	marker  = "ada-lovelace"
	noticed = "Countess"
)

// personal are the columns that may have personal data of a customer, except the reasons that people write when they decide.
var personal = []string{
	"attempts.excerpt", "events.body", "invoice_details.cancel_url", "invoice_details.customer_email", "invoice_details.customer_id",
	"invoice_details.description", "invoice_details.metadata", "invoice_details.return_url", "invoice_metadata.key", "invoice_metadata.value", "invoice_words.word",
	"invoices.line_items", "mails.error", "mails.recipient", "saved_filters.query",
}

// ofMarker makes an invoice of a customer with a marker in all data.
func ofMarker(d *invoice.Draft) {
	d.LineItems = []invoice.LineItem{{Label: "For " + marker, Amount: d.Amount}}
	d.Details = invoice.Details{
		Reference: "order-7", Description: "Dear " + marker, Customer: invoice.Customer{ID: marker + "/1", Email: marker + "@example.com"},
		ReturnURL: "https://shop.example/" + marker, CancelURL: "https://shop.example/?of=" + marker, Metadata: map[string]string{"of" + marker: marker},
	}
}

// spread writes a customer's data to every place where the service stores some: drafts, open, paid and
// expired invoices, answers of the merchant's server, a receipt, a saved filter, a decision, and the
// reasons of a refund and an attribution.
func (w *world) spread() {
	w.t.Helper()
	ctx := open(w.t)
	w.create(ofMarker, func(d *invoice.Draft) { d.Unissued = true })
	late := w.create(amount(500), ofMarker)
	paid := w.create(amount(1000), ofMarker)
	transfer := tagged(w.pay(paid.Amount), invoice.Evidence{Calldata: paid.CommitmentID})
	w.mine(w.head().Time.Unix()+1, transfer)
	w.final()
	w.mustPrepare(w.payment(transfer), 400, func(r *ledger.RefundRequest) { r.Reason = noticed + " asked" })
	mistaken := w.unattributedPayment(w.head().Time.Unix()+1, invoice.NewAmount(77))
	w.must(w.AttributeManually(ctx, ledger.ManualAttribution{PaymentID: mistaken.ID, InvoiceID: late.ID, By: "maria", Note: noticed}))
	w.mine(late.ExpiresAt.Unix() + 1)
	w.final()
	dismissal := w.dismissal(w.only(invoice.ItemUnderpaid))
	dismissal.Reason = "Agreed with " + noticed
	_, err := w.Decide(ctx, dismissal)
	w.must(err)
	for range ledger.EraseBatch {
		w.create(ofMarker)
	}
	mails := mailer.NewTables(w.db.store)
	w.must(mails.QueueMail(ctx, mailer.Mail{InvoiceID: paid.ID, Kind: mailer.Receipt, Language: "en", Recipient: marker + "@example.org", CreatedAt: at(start), SendAt: at(start)}, nil))
	leased, err := mails.LeaseMail(ctx, mailer.LeaseRequest{Lane: mailer.Asked, Now: at(start), Until: at(start)})
	w.must(err)
	leased.Error = "450 no " + marker
	w.must(mails.RetryMail(ctx, leased, at(start)))
	w.must(w.db.sql.ExecContext(ctx, `INSERT INTO attempts (seq, number, started_ms, duration_ms, status_code, excerpt)
		SELECT seq, 1, 1000 * created_at, 5, 500, '`+marker+` is unknown' FROM events WHERE merchant_id = $1`, w.merchant))
	w.must(w.db.store.Update(ctx, func(tx *db.Tx) error {
		return errors.Join(
			access.PutSavedFilter(ctx, tx, "key_1", access.SavedFilter{List: "/dashboard/invoices", Name: "Hers", Query: "customer=" + marker + "%2F1&status=paid", CreatedAt: at(start)}),
			access.PutSavedFilter(ctx, tx, "key_1", access.SavedFilter{List: "/dashboard/invoices", Name: "Others", Query: "customer=x&status=paid", CreatedAt: at(start)}))
	}))
}

// kept describes the data that an erasure must not change: the numbers, ids and deliveries of events,
// and the invoices except the texts about them.
func (w *world) kept() []string {
	w.t.Helper()
	all, _, err := ledger.NewReader(w.db.store).Invoices(w.t.Context(), ledger.InvoiceFilter{MerchantID: w.merchant, Limit: 1000})
	w.must(err)
	var kept []string
	for _, inv := range all {
		kept = append(kept, fmt.Sprintf("%+v", inv.Erase()))
	}
	for _, e := range dbtest.Events(w.t, w.db.sql, w.merchant) {
		kept = append(kept, fmt.Sprint(e.ID, e.Seq, e.Type, e.Subject, e.InvoiceID, e.DeliveryID, e.Due))
	}
	return kept
}

// TestEraseCustomer erases a customer, over a restart, and searches all tables.
func TestEraseCustomer(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		ctx := access.WithPrincipal(t.Context(), w.own())
		w.spread()
		other := w.create(func(d *invoice.Draft) { d.Details = details })
		before := w.kept()
		if diff := cmp.Diff(personal, dbtest.Find(t, w.db.sql, marker)); diff != "" {
			t.Fatalf("columns with the customer's data (-want +got):\n%s", diff)
		}

		e, err := w.EraseCustomer(ctx, w.merchant, marker+"/1", ledger.Once{})
		if err != nil || e.Invoices != ledger.EraseBatch || !e.FinishedAt.IsZero() {
			t.Fatalf("the first batch: %+v, %v", e, err)
		}
		if again, err := w.EraseCustomer(ctx, w.merchant, marker+"/1", ledger.Once{}); err != nil || again.ID != e.ID || again.Invoices != ledger.EraseBatch+3 {
			t.Errorf("asked again: %+v, %v", again, err)
		}
		restarted := w.service() // after a kill -9
		for e.ID != "" {
			e, err = restarted.EraseMore(t.Context(), "")
			w.must(err)
		}
		if places := dbtest.Find(t, w.db.sql, marker); len(places) > 0 {
			t.Errorf("the customer's data are in %s", places)
		}
		if places := dbtest.Find(t, w.db.sql, noticed); !slices.Equal(places, []string{"audit_entries.after"}) {
			t.Errorf("what people wrote of the customer is in %s", places)
		}
		if diff := cmp.Diff(before, w.kept()); diff != "" {
			t.Errorf("more was changed (-before +after):\n%s", diff)
		}
		expect.NoDiff(t, cmp.Diff(details, w.invoice(other.ID).Details), "another customer's invoice")
		if got := w.eventInvoice("invoice.expired"); got.Reference != "order-7" || got.LineItems[0].Label != invoice.Erased || got.Amount != "500" {
			t.Errorf("an event has %+v", got)
		}
		expect.List(t, dbtest.Find(t, w.db.sql, "customer=x"), []string{"saved_filters.query"}, "another filter is in")
		w.checkErasureAudit()
		w.checkWaiting()
	})
}

// checkWaiting checks the bodies of the waiting deliveries.
func (w *world) checkWaiting() {
	w.t.Helper()
	queues, err := webhooks.NewReader(w.db.store).Queues(w.t.Context())
	w.must(err)
	now := at(w.head().Time.Unix() + day)
	leased, err := webhooks.NewTables(w.db.store).LeaseDeliveries(w.t.Context(), webhooks.LeaseRequest{
		LeaseID: "lease", Now: now, Until: now.Add(time.Minute), Queues: queues, Healthy: 10, Suspect: 10, PerMerchant: 10,
	})
	if err != nil || len(leased.Deliveries) == 0 {
		w.t.Fatalf("%d deliveries wait, %v", len(leased.Deliveries), err)
	}
	for _, d := range leased.Deliveries {
		if strings.Contains(string(d.Body), marker) {
			w.t.Errorf("%s is sent as %s", d.EventID, d.Body)
		}
	}
}

// checkErasureAudit checks the entries of the only erasure that erased data.
func (w *world) checkErasureAudit() {
	w.t.Helper()
	var actions []string
	for _, e := range w.entries() {
		if strings.HasPrefix(string(e.Action), "customer.") {
			actions = append(actions, fmt.Sprint(e.Action, e.Before, e.After))
		}
	}
	if want := []string{fmt.Sprintf(`customer.erased{"invoices":%d}`, ledger.EraseBatch+3), "customer.erase", "customer.erase"}; !slices.Equal(actions, want) {
		w.t.Errorf("the audit log has %q, want %q", actions, want)
	}
}

// TestEraseIsOfOneMoment erases the invoices that exist at the time of the request, and no customer of
// another merchant.
func TestEraseIsOfOneMoment(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		if e, err := w.EraseCustomer(ctx, w.merchant, marker+"/1", ledger.Once{}); err != nil || e.FinishedAt.IsZero() || e.Invoices != 0 {
			t.Errorf("of an unknown customer: %+v, %v", e, err)
		}
		var stored int
		if w.must(w.db.sql.QueryRowContext(ctx, "SELECT count(*) FROM erasures").Scan(&stored)); stored != 0 {
			t.Errorf("%d erasures of unknown customers are stored", stored)
		}
		for range ledger.EraseBatch {
			w.create(ofMarker)
		}
		strange := w.create(ofMarker, func(d *invoice.Draft) { d.MerchantID = "silent" })
		if e, err := w.EraseCustomer(ctx, w.merchant, marker+"/1", ledger.Once{}); err != nil || !e.FinishedAt.IsZero() {
			t.Fatalf("it is finished too soon: %+v, %v", e, err)
		}
		later := w.create(ofMarker)
		again, err := w.EraseCustomer(ctx, w.merchant, marker+"/1", ledger.Once{})
		if err != nil || again.FinishedAt.IsZero() || again.Invoices != ledger.EraseBatch {
			t.Errorf("asked again: %+v, %v", again, err)
		}
		for _, inv := range []invoice.Invoice{later, strange} {
			if w.invoice(inv.ID).Details.IsZero() {
				t.Errorf("%s of %s was erased", inv.ID, inv.MerchantID)
			}
		}
	})
}

// TestEraseOnce repeats requests with their keys after the erasure has ended. Data that was created since stays.
func TestEraseOnce(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		var replayed bool
		key := func(k string) ledger.Once {
			replayed = false
			return ledger.Once{Key: k, Scope: w.merchant, Replayed: &replayed}
		}
		unknown, err := w.EraseCustomer(ctx, w.merchant, marker+"/1", key("before"))
		w.must(err)
		for range ledger.EraseBatch + 1 {
			w.create(ofMarker)
		}
		own := "erase " + marker
		begun, err := w.EraseCustomer(ctx, w.merchant, marker+"/1", key(own))
		if err != nil || replayed || !begun.FinishedAt.IsZero() {
			t.Fatalf("begun: replayed %t, %+v, %v", replayed, begun, err)
		}
		joined, err := w.EraseCustomer(ctx, w.merchant, marker+"/1", key("another tab"))
		if err != nil || replayed || joined.ID != begun.ID || joined.FinishedAt.IsZero() {
			t.Errorf("asked under another key meanwhile: replayed %t, %+v, %v", replayed, joined, err)
		}
		if places := dbtest.Find(t, w.db.sql, marker); len(places) > 0 {
			t.Errorf("the customer's data are in %s", places)
		}
		later := w.create(ofMarker)
		for k, id := range map[string]string{"before": unknown.ID, own: begun.ID, "another tab": begun.ID} {
			again, err := w.service().EraseCustomer(ctx, w.merchant, marker+"/1", key(k))
			if err != nil || !replayed || again.ID != id || again.FinishedAt.IsZero() {
				t.Errorf("%s: replayed %t, %+v, %v, want %s", k, replayed, again, err, id)
			}
		}
		expect.Error(t, ledger.ErrIdempotencyMismatch, "of another customer")(w.EraseCustomer(ctx, w.merchant, "x", key(own)))
		if w.invoice(later.ID).Details.IsZero() {
			t.Error("a repeated request erased a newer invoice")
		}
		last, err := w.EraseCustomer(ctx, w.merchant, marker+"/1", ledger.Once{Key: own, Scope: "other"})
		if err != nil || last.Invoices != 1 {
			t.Errorf("in another scope: %+v, %v", last, err)
		}
	})
}

// TestOldErasuresAreDeleted deletes erasures with and without invoices, and their keys, at the end of their time.
func TestOldErasuresAreDeleted(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.create(ofMarker)
		erase := func(customer string, want bool) {
			t.Helper()
			replayed := false
			_, err := w.EraseCustomer(ctx, w.merchant, customer, ledger.Once{Key: "k " + customer, Scope: w.merchant, Replayed: &replayed})
			if err != nil || replayed != want {
				t.Errorf("replayed %t, %v, want %t", replayed, err, want)
			}
		}
		count := func(want int) {
			t.Helper()
			for _, table := range []string{"erasures", "erasure_keys"} {
				var n int
				w.must(w.db.sql.QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n))
				expect.Equal(t, n, want, "rows of %s:", table)
			}
		}
		for _, customer := range []string{marker + "/1", "unknown"} {
			erase(customer, false)
		}
		end := w.seconds.Load() + int64(ledger.ErasureLifetime/time.Second)
		w.seconds.Store(end)
		w.must(w.DeleteOldKeys(ctx))
		count(2)
		erase("unknown", true)
		w.seconds.Store(end + 1)
		w.must(w.DeleteOldKeys(ctx))
		count(0)
		erase("unknown", false)
		w.must(w.DeleteOldKeys(ctx))
		count(1)
	})
}

// TestEraseOnceAtOnce sends the same request many times concurrently: one erasure begins.
func TestEraseOnceAtOnce(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.create(ofMarker)
		ids := make([]string, 8)
		var group sync.WaitGroup
		for i := range ids {
			group.Go(func() {
				e, err := w.EraseCustomer(t.Context(), w.merchant, marker+"/1", ledger.Once{Key: "k", Scope: w.merchant})
				for errors.Is(err, ledger.ErrIdempotencyInProgress) {
					e, err = w.EraseCustomer(t.Context(), w.merchant, marker+"/1", ledger.Once{Key: "k", Scope: w.merchant})
				}
				if ids[i] = e.ID; err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if ids = slices.Compact(ids); len(ids) != 1 {
			t.Errorf("erasures %s, want one", ids)
		}
	})
}

// TestEraseFilters erases a customer, and checks which saved filters of the operator are left.
func TestEraseFilters(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		queries := map[string]bool{ // and which are left
			"customer=Ada%2F1": false, "merchantId=" + w.merchant + "&q=Ada%2F1": false,
			"customer=Ada%2F1&merchantId=other": true, "customer=ada%2F1": true, "customer=Ada%2F12": true,
		}
		w.must(w.db.store.Update(ctx, func(tx *db.Tx) (err error) {
			for query := range queries {
				err = errors.Join(err, access.PutSavedFilter(ctx, tx, "key_1", access.SavedFilter{List: "/dashboard/invoices", Name: query, Query: query, CreatedAt: at(start)}))
			}
			return err
		}))
		w.must(w.EraseCustomer(ctx, w.merchant, "Ada/1", ledger.Once{}))
		for query, left := range queries {
			var rows int
			w.must(w.db.sql.QueryRowContext(ctx, "SELECT count(*) FROM saved_filters WHERE query = '"+query+"'").Scan(&rows))
			if left != (rows == 1) {
				t.Errorf("%s is left: %t, want %t", query, !left, left)
			}
		}
	})
}

// TestErasedEventsAreWrittenOnce lets an invoice expire while it is erased: the event never has the customer's data.
func TestErasedEventsAreWrittenOnce(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		inv := w.create(ofMarker)
		w.mine(inv.ExpiresAt.Unix() + 1)
		expired := make(chan error, 1)
		w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error {
			locked, _, err := ledger.LockInvoicesToErase(t.Context(), tx, ledger.Erasure{MerchantID: w.merchant, Customer: marker + "/1", Through: inv.ID}, 10)
			if err != nil {
				return err
			}
			go func() { expired <- w.Confirm(t.Context(), w.chainKey, w.head()) }()
			return ledger.EraseInvoices(t.Context(), tx, []invoice.Invoice{locked[0].Erase()})
		}))
		w.must(<-expired)
		if got := w.eventInvoice("invoice.expired"); got.Customer != nil {
			t.Errorf("the event has %+v", got)
		}
	})
}
