package ledger_test

import (
	"context"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestPaymentLinkKeepsItsTerms stores a link with every member, and one with as few as
// possible.
func TestPaymentLinkKeepsItsTerms(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		whole := invoice.PaymentLink{
			ID: "lnk_1", MerchantID: "m", Slug: strings.Repeat("a", invoice.MaxSlug), CreatedAt: rowtest.At(1), ChangedAt: rowtest.At(2),
			PaymentLinkTerms: invoice.PaymentLinkTerms{
				Title: "T", Description: "D", Minimum: invoice.NewAmount(1), Maximum: invoice.MaxAmount, Currency: "USDC", ChainKey: "base", Merchant: invoice.Address{1},
				LineItem: "L", ReferencePrefix: "R", Collection: invoice.Deposit, ReturnURL: "https://r.example", CancelURL: "https://c.example", Lifetime: invoice.MaxLifetime,
			},
		}
		least := invoice.PaymentLink{
			ID: "lnk_2", MerchantID: "m", Slug: "b", CreatedAt: rowtest.At(1), ChangedAt: rowtest.At(1),
			PaymentLinkTerms: invoice.PaymentLinkTerms{Title: "T", Currency: "USDC", ChainKey: "base", Lifetime: invoice.MinLinkLifetime},
		}
		for _, l := range []invoice.PaymentLink{whole, least} {
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
				return ledger.InsertPaymentLink(ctx, tx, l, "", "", invoice.Hash{})
			})
			if got, err := ledger.PaymentLink(t.Context(), s, l.ID); err != nil || got != l {
				t.Errorf("read %+v, %v; want %+v", got, err, l)
			}
		}
		whole.PaymentLinkTerms, whole.Archived = least.PaymentLinkTerms, true
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			if _, err := ledger.LockPaymentLink(ctx, tx, whole.ID); err != nil {
				return err
			}
			return ledger.UpdatePaymentLink(ctx, tx, whole)
		})
		if got, err := ledger.PaymentLink(t.Context(), s, whole.ID); err != nil || got != whole {
			t.Errorf("read %+v, %v; want %+v", got, err, whole)
		}
	})
}
