package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// own is the principal of the world's merchant.
func (w *world) own() access.Principal {
	return access.Principal{MerchantID: w.merchant, Scopes: access.Admin}
}

// drafted makes a draft.
func (w *world) drafted(change ...func(*invoice.Draft)) invoice.Invoice {
	w.t.Helper()
	return w.create(append(change, func(d *invoice.Draft) { d.Unissued = true })...)
}

func (w *world) finalize(inv invoice.Invoice) invoice.Invoice {
	w.t.Helper()
	issued, err := w.Finalize(w.t.Context(), w.own(), inv.ID)
	w.must(err)
	return issued
}

func TestDraft(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		d := w.drafted(func(d *invoice.Draft) { d.Details = details })
		if d.Status != invoice.Drafted || !d.TransferAmount.IsZero() || len(w.eventTypes(d)) != 0 || len(w.intents(d)) != 0 {
			t.Errorf("the draft is %+v, with events %v and intents %v", d, w.eventTypes(d), w.intents(d))
		}
		if diff := cmp.Diff(d, w.invoice(d.ID), comparer); diff != "" {
			t.Errorf("stored (-created +stored):\n%s", diff)
		}
		w.mine(start+10, w.pay(d.Amount), tagged(w.pay(d.Amount), invoice.Evidence{Calldata: d.CommitmentID}))
		w.final()
		expect.Len(t, w.unattributed(), 2, "unattributed payments to a draft:")

		w.seconds.Add(20)
		amount, expiry, currency := invoice.NewAmount(2_000_000), invoice.Unix(start+9000), "USDC"
		lines := []invoice.LineItem{{Label: "tea", Amount: amount}}
		changed, err := w.UpdateInvoice(t.Context(), w.own(), d.ID, ledger.InvoiceChange{
			Amount: &amount, LineItems: &lines, ExpiresAt: &expiry, Currency: &currency, Merchant: &invoice.Address{1, byte(len(w.merchant)), 19: w.address[19]},
		})
		w.must(err)
		if diff := cmp.Diff(changed, w.invoice(d.ID), comparer); diff != "" || changed.Amount != amount || changed.CommitmentID == d.CommitmentID ||
			!changed.CreatedAt.Equal(d.CreatedAt) || !cmp.Equal(changed.Details, details) {
			t.Errorf("changed %+v (-returned +stored):\n%s", changed, diff)
		}
		issued := w.finalize(d)
		if diff := cmp.Diff(issued, w.invoice(d.ID), comparer); diff != "" {
			t.Errorf("issued (-returned +stored):\n%s", diff)
		}
		suffix := number(issued.TransferAmount) - 2_000_000
		if issued.Status != invoice.Open || suffix < 1 || suffix > 999 || issued.FromBlock != w.head().Number || issued.ClosedBlock != 0 ||
			issued.CommitmentID != chain.CommitmentID(1337, registry, changed.Terms, d.ID) {
			t.Errorf("issued %+v", issued)
		}
		w.finalize(d)
		expect.NoDiff(t, cmp.Diff([]string{"invoice.created"}, w.eventTypes(d)), "events")
		w.checkTransitions(d, ledger.InvoiceTransition{Status: invoice.Open, At: at(start + 20), By: access.ActorOpen})
		if got := w.eventInvoice("invoice.created"); got.Status != "open" || got.Amount != "2000000" || got.Reference != details.Reference {
			t.Errorf("invoice.created has %+v", got)
		}
		expect.NoDiff(t, cmp.Diff([]string{"open due 0"}, w.intents(d)), "intents")
		paying := w.pay(issued.TransferAmount)
		paying.To = issued.Merchant
		w.mine(start+40, paying)
		w.final()
		expect.Equal(t, w.invoice(d.ID).Status, invoice.Paid, "the issued draft is")
		w.finalize(d)
	})
}

func TestDraftErrors(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		ctx, amount, past := t.Context(), invoice.NewAmount(7), invoice.Unix(start-1)
		d, open := w.drafted(), w.create()
		_, err := w.UpdateInvoice(ctx, w.own(), open.ID, ledger.InvoiceChange{Amount: &amount})
		expect.Error(t, ledger.ErrNotDraft, "terms of an open invoice")(err)
		_, err = w.UpdateInvoice(ctx, w.own(), open.ID, ledger.InvoiceChange{
			Merchant: &open.Merchant, Amount: &open.Amount, Currency: &open.Currency, ChainKey: &open.ChainKey, LineItems: new([]invoice.LineItem), ExpiresAt: &open.ExpiresAt,
		})
		expect.Error(t, nil, "the present terms of an open invoice")(err)
		expect.Error(t, ledger.ErrNotDraft, "deleting an open invoice")(w.DeleteDraft(ctx, w.own(), open.ID))
		for name, c := range map[string]ledger.InvoiceChange{"expiresAt": {ExpiresAt: &past}, "merchantAddress": {Merchant: &invoice.Address{}}, "amount": {Amount: new(invoice.Amount)}} {
			_, err := w.UpdateInvoice(ctx, w.own(), d.ID, c)
			if field := (*invoice.FieldError)(nil); !errors.As(err, &field) || field.Field != name {
				t.Errorf("a wrong %s: %v", name, err)
			}
		}
		other := access.Principal{MerchantID: "other", Scopes: access.Admin}
		_, err = w.UpdateInvoice(ctx, other, d.ID, ledger.InvoiceChange{})
		expect.Error(t, db.ErrNotFound, "change by another merchant")(err)
		expect.Error(t, db.ErrNotFound, "finalize by another merchant")(w.Finalize(ctx, other, d.ID))
		expect.Error(t, db.ErrNotFound, "void by another merchant")(w.Void(ctx, other, d.ID))
		expect.Error(t, db.ErrNotFound, "delete by another merchant")(w.DeleteDraft(ctx, other, d.ID))

		w.seconds.Add(3600)
		_, err = w.Finalize(ctx, w.own(), d.ID)
		if field := (*invoice.FieldError)(nil); !errors.As(err, &field) || field.Field != "expiresAt" {
			t.Errorf("finalize after expiresAt: %v", err)
		}
		w.must(w.DeleteDraft(ctx, w.own(), d.ID))
		expect.Error(t, db.ErrNotFound, "the deleted draft")(ledger.NewReader(w.db.store).Invoice(ctx, d.ID))
		expect.Error(t, db.ErrNotFound, "deleting it again")(w.DeleteDraft(ctx, w.own(), d.ID))
		if e := w.newestEntry(d.ID); e.Action != access.ActionInvoiceDelete || e.MerchantID != w.merchant {
			t.Errorf("audit entry %+v", e)
		}
	})
}

// TestDraftKeepsItsIdempotencyKey repeats the create of a draft that was changed, issued and paid, and of one that
// was deleted.
func TestDraftKeepsItsIdempotencyKey(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		request := ledger.CreateRequest{Once: ledger.Once{Key: "k", Scope: w.merchant}, Draft: w.draft()}
		request.Draft.Unissued, request.Draft.Details = true, details
		first, err := w.Create(t.Context(), request)
		w.must(err)
		same := func(what string, status invoice.Status) {
			t.Helper()
			again, err := w.Create(t.Context(), request)
			if diff := cmp.Diff(w.invoice(first.ID), again, comparer); err != nil || diff != "" || again.Status != status {
				t.Errorf("%s: %s, %v (-stored +again):\n%s", what, again.Status, err, diff)
			}
		}
		same("at once", invoice.Drafted)
		amount, none := invoice.NewAmount(3_000_000), ""
		w.must(w.UpdateInvoice(t.Context(), w.own(), first.ID, ledger.InvoiceChange{Amount: &amount, Details: invoice.DetailsChange{Reference: &none}}))
		same("changed", invoice.Drafted)
		issued := w.finalize(first)
		same("issued", invoice.Open)
		w.mine(w.head().Time.Unix()+1, w.pay(issued.TransferAmount))
		w.final()
		same("paid", invoice.Paid)
		request.Draft.Unissued = false
		expect.Error(t, ledger.ErrIdempotencyMismatch, "another draft member")(w.Create(t.Context(), request))
	})
}

// TestKeyOfDeletedDraft repeats the create of a draft that was deleted, at two replicas and also once it would be refused.
func TestKeyOfDeletedDraft(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		request := ledger.CreateRequest{Once: ledger.Once{Key: "k", Scope: w.merchant}, Draft: w.draft()}
		request.Draft.Unissued = true
		draft, err := w.Create(t.Context(), request)
		w.must(err)
		w.must(w.DeleteDraft(t.Context(), w.own(), draft.ID))
		repeat := func(what string) {
			t.Helper()
			for _, s := range []*ledger.Service{w.Service, w.service()} {
				var deleted *ledger.DraftDeletedError
				if inv, err := s.Create(t.Context(), request); !errors.As(err, &deleted) || deleted.InvoiceID != draft.ID {
					t.Errorf("%s: %s, %v", what, inv.ID, err)
				}
			}
		}
		repeat("at once")
		other := request
		other.Draft.Unissued = false
		expect.Error(t, ledger.ErrIdempotencyMismatch, "another request")(w.Create(t.Context(), other))
		w.seconds.Store(request.Draft.ExpiresAt.Unix() + 1)
		w.must(w.DeleteOldKeys(t.Context()))
		repeat("after it would have expired")
		w.seconds.Store(start + day)
		other.Draft.ExpiresAt = invoice.Unix(start + 2*day)
		if inv, err := w.Create(t.Context(), other); err != nil || inv.ID == draft.ID {
			t.Errorf("after a day: %s, %v", inv.ID, err)
		}
		w.seconds.Store(start + 2*day)
		w.must(w.DeleteOldKeys(t.Context()))
		var kept int
		w.must(w.db.sql.QueryRowContext(t.Context(), "SELECT count(*) FROM idempotency_keys WHERE scope = '"+w.merchant+"'").Scan(&kept))
		expect.Equal(t, kept, 0, "keys are kept after two days:")
	})
}

func TestDetailsAreEditableInEveryState(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		value, link := "v", "https://shop.example/new"
		change := ledger.InvoiceChange{Details: invoice.DetailsChange{Metadata: map[string]*string{"k": &value, "cart": nil}, ReturnURL: &link}}
		paid, voided, open, draft := w.create(), w.create(), w.create(), w.drafted()
		w.mine(start+10, w.pay(paid.TransferAmount))
		w.final()
		w.must(w.Void(t.Context(), w.own(), voided.ID))
		for _, inv := range []invoice.Invoice{paid, voided, open, draft} {
			changed, err := w.UpdateInvoice(t.Context(), w.own(), inv.ID, change)
			w.must(err)
			stored := w.invoice(inv.ID)
			if diff := cmp.Diff(stored, changed, comparer); diff != "" || stored.Details.Metadata["k"] != "v" || stored.Details.ReturnURL != link {
				t.Errorf("%s: %+v (-stored +returned):\n%s", stored.Status, stored.Details, diff)
			}
		}
		reference, unique := "r", true
		claim := ledger.InvoiceChange{Details: invoice.DetailsChange{Reference: &reference, UniqueReference: &unique}}
		w.must(w.UpdateInvoice(t.Context(), w.own(), draft.ID, claim))
		_, err := w.UpdateInvoice(t.Context(), w.own(), open.ID, claim)
		wantTaken(t, err, draft.ID)
		w.must(w.DeleteDraft(t.Context(), w.own(), draft.ID))
		w.must(w.UpdateInvoice(t.Context(), w.own(), open.ID, claim))
		bad := "javascript:alert(1)"
		_, err = w.UpdateInvoice(t.Context(), w.own(), open.ID, ledger.InvoiceChange{Details: invoice.DetailsChange{CancelURL: &bad}})
		if field := (*invoice.FieldError)(nil); !errors.As(err, &field) || field.Field != "cancelUrl" {
			t.Errorf("a bad URL: %v", err)
		}
	})
}

// checkTransitions checks which transitions of an invoice are recorded.
func (w *world) checkTransitions(inv invoice.Invoice, want ...ledger.InvoiceTransition) {
	w.t.Helper()
	h, err := ledger.NewReader(w.db.store).InvoiceHistory(w.t.Context(), inv.ID)
	w.must(err)
	expect.NoDiff(w.t, cmp.Diff(want, h.Transitions), "transitions")
}

// void makes an invoice void, and returns the stored invoice.
func (w *world) void(inv invoice.Invoice) invoice.Invoice {
	w.t.Helper()
	voided, err := w.Void(w.t.Context(), w.own(), inv.ID)
	w.must(err)
	if diff := cmp.Diff(w.invoice(inv.ID), voided, comparer); diff != "" || voided.Status != invoice.Void {
		w.t.Errorf("voided (-stored +returned):\n%s", diff)
	}
	return voided
}

func TestVoid(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		w.void(inv)
		w.void(inv)
		expect.NoDiff(t, cmp.Diff([]string{"invoice.created"}, w.eventTypes(inv)), "events")
		expect.NoDiff(t, cmp.Diff([]string{"open due 0", "close due 0"}, w.intents(inv)), "intents")
		if e := w.newestEntry(inv.ID); e.Action != access.ActionInvoiceVoid || e.MerchantID != w.merchant {
			t.Errorf("audit entry %+v", e)
		}
		// Its transfer amount is recognised, and its amount pays another invoice.
		other := w.create()
		late, price := w.pay(inv.TransferAmount), w.pay(inv.Amount)
		w.mine(start+10, late, price)
		w.final()
		w.checkAttributed(late, inv, invoice.ByTransferAmount)
		w.checkAttributed(price, other, invoice.ByAmount)
		got := w.invoice(inv.ID)
		if got.Status != invoice.Void || got.Exception != invoice.Late || got.AmountPaid != inv.TransferAmount || w.invoice(other.ID).Status != invoice.Paid {
			t.Errorf("after a late payment: %s %s %s", got.Status, got.Exception, got.AmountPaid)
		}
		expect.NoDiff(t, cmp.Diff([]string{"invoice.created", "payment.received"}, w.eventTypes(inv)), "events")
		w.advance(start + 2*day)
		expect.Equal(t, w.invoice(inv.ID).Status, invoice.Void, "after expiresAt it is")

		w.checkTransitions(inv, ledger.InvoiceTransition{Status: invoice.Void, At: at(start), By: access.ActorOpen})
		w.checkTransitions(other)
		draft := w.drafted()
		w.void(draft)
		w.checkTransitions(draft, ledger.InvoiceTransition{Status: invoice.Void, At: at(start + 2*day), By: access.ActorOpen})
		expect.Len(t, w.intents(draft), 0, "a void draft has intents")
		expect.Error(t, ledger.ErrVoid, "finalize a void draft")(w.Finalize(t.Context(), w.own(), draft.ID))
		expired := w.create(func(d *invoice.Draft) { d.ExpiresAt = d.ExpiresAt.Add(2 * day * time.Second) })
		w.advance(start + 5*day)
		for name, inv := range map[string]invoice.Invoice{"paid": other, "expired": expired} {
			expect.Error(t, invoice.ErrFinal, "%s", name)(w.Void(t.Context(), w.own(), inv.ID))
		}
	})
}

func TestVoidWaitsForUnreadBlocks(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		w.mine(start + 10)
		w.final()
		w.rescan()
		expect.Error(t, ledger.ErrUnread, "void in a gap")(w.Void(t.Context(), w.own(), inv.ID))
		w.must(w.Halt(t.Context(), w.chainKey, "test"))
		_, err := w.Void(t.Context(), w.own(), inv.ID)
		expect.Error(t, ledger.ErrUnread, "void on a halted chain")(err)
	})
}
