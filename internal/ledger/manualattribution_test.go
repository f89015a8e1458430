package ledger_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// unattributedPayment mines a payment that no rule attributes.
func (w *world) unattributedPayment(at int64, a invoice.Amount) ledger.PaymentRow {
	w.t.Helper()
	t := w.pay(a)
	w.mine(at, t)
	p := w.payment(t)
	if p.Attributed() {
		w.t.Fatalf("the payment of %s went to %s", a, p.InvoiceID)
	}
	return p
}

// attribute attributes the payment to the invoice manually.
func (w *world) attribute(p ledger.PaymentRow, inv invoice.Invoice) (invoice.Payment, error) {
	return w.AttributeManually(open(w.t), ledger.ManualAttribution{PaymentID: p.ID, InvoiceID: inv.ID, By: "maria", Note: "she wrote to us"})
}

// unattributed returns the ids of the merchant's unattributed payments.
func (w *world) unattributed() []string {
	w.t.Helper()
	all, _, err := ledger.NewReader(w.db.store).Payments(w.t.Context(), ledger.PaymentFilter{MerchantID: w.merchant, IncludePending: true, IncludeUnattributed: true, Limit: 100})
	w.must(err)
	ids := []string{}
	for _, p := range all {
		if !p.Attributed() {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

func TestAttributeManually(t *testing.T) {
	t.Parallel()
	const created, received, paid = "invoice.created", "payment.received", "invoice.paid"
	onSQLite(t, func(t *testing.T, d *database) {
		for name, test := range map[string]struct {
			play      func(w *world, inv invoice.Invoice) ledger.PaymentRow
			status    invoice.Status
			exception invoice.Exception
			paid      uint64
			events    []string
		}{
			"pending": {func(w *world, _ invoice.Invoice) ledger.PaymentRow {
				return w.unattributedPayment(start+10, invoice.NewAmount(1_500_000))
			}, invoice.Open, "", 0, []string{created, received}},
			"final, and more than the amount": {func(w *world, _ invoice.Invoice) ledger.PaymentRow {
				p := w.unattributedPayment(start+10, invoice.NewAmount(1_500_000))
				w.final()
				return p
			}, invoice.Paid, invoice.Overpaid, 1_500_000, []string{created, received, paid}},
			"final, and less than the amount": {func(w *world, _ invoice.Invoice) ledger.PaymentRow {
				p := w.unattributedPayment(start+10, invoice.NewAmount(400_000))
				w.final()
				return p
			}, invoice.Open, invoice.Underpaid, 400_000, []string{created, received}},
			"late": {func(w *world, _ invoice.Invoice) ledger.PaymentRow {
				p := w.unattributedPayment(start+3601, invoice.NewAmount(1_500_000))
				w.final()
				return p
			}, invoice.Expired, invoice.Late, 1_500_000, []string{created, "invoice.expired", received}},
			"in time, of an invoice that expired": {func(w *world, _ invoice.Invoice) ledger.PaymentRow {
				p := w.unattributedPayment(start+10, invoice.NewAmount(1_500_000))
				w.mine(start + 3601)
				w.final()
				return p
			}, invoice.Expired, invoice.Late, 1_500_000, []string{created, "invoice.expired", received}},
			"of an invoice that is paid": {func(w *world, inv invoice.Invoice) ledger.PaymentRow {
				w.mine(start+10, w.pay(inv.Amount))
				p := w.unattributedPayment(start+20, invoice.NewAmount(1_500_000))
				w.final()
				return p
			}, invoice.Paid, invoice.Duplicate, 2_500_000, []string{created, received, paid, received}},
		} {
			for _, later := range []bool{false, true} {
				w := d.world(t)
				inv := w.create()
				p := test.play(w, inv)
				w.seconds.Add(77)
				if got := w.unattributed(); !slices.Equal(got, []string{p.ID}) {
					t.Errorf("%s: without an invoice are %v, want %s", name, got, p.ID)
				}
				want := w.payment(p.Transfer).Payment
				want.InvoiceID, want.MerchantID, want.Method = inv.ID, inv.MerchantID, invoice.ByHand
				want.AttributedBy, want.AttributedAt = "maria", at(start+77)
				if later {
					w.seconds.Add(-60)
					w.must(w.attributeLater(p, inv))
				}
				for range 2 { // repeating it gives the same result
					got, err := w.attribute(p, inv)
					if diff := cmp.Diff(want, got, amounts); err != nil || diff != "" {
						t.Errorf("%s: %v, payment (-want +got):\n%s", name, err, diff)
					}
					w.seconds.Add(1)
				}
				if got := w.invoice(inv.ID); got.Status != test.status || got.Exception != test.exception || number(got.AmountPaid) != test.paid {
					t.Errorf("%s: the invoice is %s, %q, paid %s", name, got.Status, got.Exception, got.AmountPaid)
				}
				expect.NoDiff(t, cmp.Diff(test.events, w.eventTypes(inv)), "%s: events", name)
				expect.Len(t, w.unattributed(), 0, "%s: still without an invoice are", name)
				if got := w.payment(p.Transfer); got.AttributedBy != "maria" || got.Note != "she wrote to us" || !got.AttributedAt.Equal(at(start+77)) {
					t.Errorf("%s: it was attributed by %q at %s, %q", name, got.AttributedBy, got.AttributedAt, got.Note)
				}
				// Once final, all of them count.
				w.final()
				if got := w.invoice(inv.ID); name == "pending" && (got.Status != invoice.Paid || number(got.AmountPaid) != 1_500_000) {
					t.Errorf("%s: final, the invoice is %s, paid %s", name, got.Status, got.AmountPaid)
				}
			}
		}
	})
}

var amounts = cmp.Comparer(func(a, b invoice.Amount) bool { return a == b })

func TestAttributeManuallyErrors(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv, other := w.create(), w.create(amount(9_000_000))
		elsewhere := w.create(func(d *invoice.Draft) { d.Merchant = invoice.Address{0xdd, 1} })
		unregistered := w.create(func(d *invoice.Draft) { d.ChainKey = "unregistered" })
		p := w.unattributedPayment(start+10, invoice.NewAmount(3))
		taken := w.pay(other.Amount)
		w.mine(start+20, taken)
		gone := w.unattributedPayment(start+30, invoice.NewAmount(4))
		w.reorg(1)
		for name, test := range map[string]struct {
			payment ledger.PaymentRow
			invoice invoice.Invoice
			want    error
			field   string
		}{
			"no payment":         {ledger.PaymentRow{Payment: invoice.Payment{ID: "pay_0"}}, inv, db.ErrNotFound, ""},
			"no invoice":         {p, invoice.Invoice{ID: "inv_0"}, nil, "invoiceId"},
			"another address":    {p, elsewhere, nil, "invoiceId"},
			"another chain":      {p, unregistered, nil, "invoiceId"},
			"another's":          {w.payment(taken), inv, ledger.ErrAttributed, ""},
			"left by the chain":  {gone, inv, ledger.ErrOrphaned, ""},
			"orphan, no invoice": {gone, invoice.Invoice{ID: "inv_0"}, ledger.ErrOrphaned, ""},
		} {
			_, err := w.attribute(test.payment, test.invoice)
			var field *invoice.FieldError
			if test.want != nil && !errors.Is(err, test.want) || test.field != "" && (!errors.As(err, &field) || field.Field != test.field) {
				t.Errorf("%s: %v, want %v %s", name, err, test.want, test.field)
			}
		}
		expect.Len(t, w.eventTypes(inv), 1, "what was refused is announced:")
		if got := w.payment(p.Transfer); got.Attributed() {
			t.Errorf("what was refused has been done: it is of %s", got.InvoiceID)
		}
	})
}
