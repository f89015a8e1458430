package ledger_test

import (
	"errors"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// guard sets the policy of approvals of the world's merchant, and returns a key of the merchant.
func (w *world) guard(p access.ApprovalPolicy) access.Principal {
	w.t.Helper()
	w.must(w.db.store.Update(w.t.Context(), func(tx *db.Tx) error { return access.PutApprovalPolicy(w.t.Context(), tx, w.merchant, p) }))
	return access.Principal{KeyID: "key_1", MerchantID: w.merchant, Scopes: access.Admin}
}

// wantGuarded fails the test unless an error means that approvals are missing, of an action with a sum.
func (w *world) wantGuarded(what string, err error, sum uint64) {
	w.t.Helper()
	var required *access.ApprovalRequiredError
	if !errors.As(err, &required) || required.Amount != invoice.NewAmount(sum) {
		w.t.Errorf("%s: %v, of %+v; want approvals of %d", what, err, required, sum)
	}
}

// TestGuardOfRefunds wants approvals for refunds of a payment that are in sum above the limit, however they are divided,
// and for the address that a payer names.
func TestGuardOfRefunds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		w := d.world(t)
		paid := w.paid(1_000)
		by := w.guard(access.ApprovalPolicy{People: 2, RefundsAbove: invoice.NewAmount(300), AttributionsAbove: invoice.MaxAmount})
		prepare := func(n uint64, change ...func(*ledger.RefundRequest)) (invoice.RefundRecord, error) {
			req := ledger.RefundRequest{PaymentID: paid.ID, MerchantID: w.merchant, Amount: invoice.NewAmount(n), Account: invoice.AccountWithKey}
			for _, apply := range change {
				apply(&req)
			}
			return w.PrepareRefund(access.WithPrincipal(t.Context(), by), req)
		}
		if _, err := w.PrepareRefund(t.Context(), ledger.RefundRequest{PaymentID: paid.ID, Amount: invoice.NewAmount(1), Account: invoice.AccountWithKey}); err == nil {
			t.Error("a refund was prepared without a principal")
		}
		_, err := prepare(301)
		w.wantGuarded("above the limit", err, 301)
		_, err = prepare(0)
		w.wantGuarded("the whole payment", err, 1_000)
		first, err := prepare(100)
		w.must(err)
		_, err = prepare(201)
		w.wantGuarded("above the limit in sum", err, 301)
		asked, err := prepare(200, askPayer)
		w.must(err)
		_, err = prepare(1)
		w.wantGuarded("one more", err, 301)

		w.guard(access.ApprovalPolicy{People: 2, RefundsAbove: invoice.NewAmount(299), AttributionsAbove: invoice.MaxAmount})
		recipient := invoice.Address{0xcc}
		w.must(w.NameRefundAddress(t.Context(), ledger.RefundClaim{Token: asked.ClaimToken, To: recipient, Account: invoice.AccountWithKey}))
		_, err = w.ApproveRefund(access.WithPrincipal(t.Context(), by), asked.ID, w.merchant, recipient)
		w.wantGuarded("an address that the payer named", err, 300)
		if r := w.refund(asked.ID); r.Status != invoice.RefundAwaitingApproval {
			t.Errorf("the refund is %s", r.Status)
		}
		w.must(w.CancelRefund(access.WithPrincipal(t.Context(), by), first.ID, w.merchant))
		w.must(w.ApproveRefund(access.WithPrincipal(t.Context(), by), asked.ID, w.merchant, recipient))
		if _, err := w.PrepareRefund(access.WithPrincipal(t.Context(), access.Open()), ledger.RefundRequest{PaymentID: paid.ID, Amount: invoice.NewAmount(700), Account: invoice.AccountWithKey}); err != nil {
			t.Errorf("by the operator: %v", err)
		}
	})
}

// TestGuardOfAttributions wants approvals for attributions by hand above the limit, by programs and by decisions, and none
// of the service, which applies a decision.
func TestGuardOfAttributions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		w := d.world(t)
		inv := w.create()
		p := w.unattributedPayment(start+10, invoice.NewAmount(1_500_000))
		w.final()
		policy := access.ApprovalPolicy{People: 2, RefundsAbove: invoice.MaxAmount, AttributionsAbove: invoice.NewAmount(1_499_999)}
		ctx := access.WithPrincipal(t.Context(), w.guard(policy))
		_, err := w.AttributeManually(ctx, ledger.ManualAttribution{PaymentID: p.ID, InvoiceID: inv.ID, By: "maria", MerchantID: w.merchant})
		w.wantGuarded("by a program", err, 1_500_000)
		req := w.attribution(w.only(invoice.ItemUnattributed), inv)
		_, err = w.Decide(ctx, req)
		w.wantGuarded("by a decision", err, 1_500_000)
		policy.AttributionsAbove = invoice.NewAmount(1_500_000)
		w.guard(policy)
		w.must(w.Decide(ctx, req))
		w.guard(access.ApprovalPolicy{People: 2})
		w.seconds.Add(int64(invoice.AttributionDelay.Seconds()))
		w.must(w.ApplyAttributions(t.Context()))
		if got := w.payment(p.Transfer); got.InvoiceID != inv.ID {
			t.Errorf("the payment is of %q", got.InvoiceID)
		}
	})
}
