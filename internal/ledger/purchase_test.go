package ledger_test

import (
	"errors"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// TestBlockBeforePurchase reads a block, or accepts another request, between the check of a purchase's authorization
// and the creation of its invoice. The purchase is refused and does not leave an invoice.
func TestBlockBeforePurchase(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(w *world, a invoice.Authorization)
		want      invoice.Refusal
	}{
		"nothing": {func(*world, invoice.Authorization) {}, ""},
		"the transfer by somebody else": {func(w *world, a invoice.Authorization) {
			w.mine(start+1, w.transferOf(a))
		}, invoice.RefusedNonceUsed},
		"the last of the budget": {func(w *world, _ invoice.Authorization) {
			other := w.create()
			_, err := w.Authorize(w.t.Context(), other.ID, w.authorization(other, w.hash("another nonce")))
			w.must(err)
		}, invoice.RefusedBudget},
	} {
		t.Run(name, func(t *testing.T) {
			eachWorld(t, func(t *testing.T, w *world) {
				checker := w.gasless(ledger.AuthorizationBudget{PerMerchant: 9, PerPayer: 9, PerDay: 1})
				w.create() // has the address watched
				draft := w.draft()
				a := invoice.Authorization{
					From: payer, To: draft.Merchant, Value: draft.Amount, ValidAfter: invoice.Unix(0),
					ValidBefore: invoice.Unix(w.seconds.Load() + 600), Nonce: w.hash("nonce"), Signature: []byte{1, 2, 3},
				}
				key := ledger.AuthorizationKey{ChainKey: w.chainKey, Token: usdc, Authorizer: a.From, Nonce: a.Nonce}
				checker.meanwhile = func() { test.meanwhile(w, a) }
				made, err := w.Purchase(t.Context(), ledger.Purchase{
					Draft: draft, Authorization: a,
					Settlement: ledger.X402Settlement{AuthorizationKey: key, MerchantID: w.merchant, Resource: "https://api.shop.example/1", CreatedAt: at(w.seconds.Load())},
				})
				settled, settlementErr := ledger.NewReader(w.db.store).X402Settlement(t.Context(), key)
				if test.want == "" {
					w.must(errors.Join(err, settlementErr))
					if settled.InvoiceID != made.InvoiceID || w.invoice(made.InvoiceID).Status != invoice.Open {
						t.Errorf("accepted: %+v, settled: %+v", made, settled)
					}
					return
				}
				wantRefused(t, err, test.want)
				if !errors.Is(settlementErr, db.ErrNotFound) {
					t.Errorf("its settlement is %+v, %v", settled, settlementErr)
				}
				if _, err := ledger.NewReader(w.db.store).AuthorizationByNonce(t.Context(), w.chainKey, usdc, a.From, a.Nonce); !errors.Is(err, db.ErrNotFound) {
					t.Errorf("the nonce is bound: %v", err)
				}
			})
		})
	}
}
