package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// recordPaymentLinks reads pages of payment links with all combinations of filters, and
// single links.
func recordPaymentLinks(t *testing.T, read *store.Store, what *string) {
	t.Helper()
	for i := range 1 << 4 {
		pick := func(bit int, value string) string {
			if i>>bit&1 == 0 {
				return ""
			}
			return value
		}
		f := store.PaymentLinkFilter{MerchantID: pick(0, "m"), Slug: pick(1, "a"), Before: pick(2, "lnk_5"), Limit: 50}
		if i>>3 == 1 {
			f.Archived = new(bool)
		}
		*what = fmt.Sprintf("payment links %d", i)
		_, err := read.PaymentLinks(t.Context(), f)
		must(t, err)
	}
	*what = "payment link"
	_, err := read.PaymentLink(t.Context(), "lnk_1")
	must(t, wantNotFound(err))
	_, err = read.PaymentLinkBySlug(t.Context(), "m", "a")
	must(t, wantNotFound(err))
	_, _, err = read.PaymentLinkByKey(t.Context(), "", "k")
	must(t, wantNotFound(err))
}

// TestPaymentLinkKeepsItsTerms stores a link with every member, and one with as few as
// possible.
func TestPaymentLinkKeepsItsTerms(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		whole := invoice.PaymentLink{
			ID: "lnk_1", MerchantID: "m", Slug: strings.Repeat("a", invoice.MaxSlug), CreatedAt: at(1), ChangedAt: at(2),
			PaymentLinkTerms: invoice.PaymentLinkTerms{
				Title: "T", Description: "D", Minimum: invoice.NewAmount(1), Maximum: invoice.MaxAmount, Currency: "USDC", ChainKey: "base", Merchant: invoice.Address{1},
				LineItem: "L", ReferencePrefix: "R", Collection: invoice.Deposit, ReturnURL: "https://r.example", CancelURL: "https://c.example", Lifetime: invoice.MaxLifetime,
			},
		}
		least := invoice.PaymentLink{
			ID: "lnk_2", MerchantID: "m", Slug: "b", CreatedAt: at(1), ChangedAt: at(1),
			PaymentLinkTerms: invoice.PaymentLinkTerms{Title: "T", Currency: "USDC", ChainKey: "base", Lifetime: invoice.MinLinkLifetime},
		}
		for _, l := range []invoice.PaymentLink{whole, least} {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.InsertPaymentLink(ctx, l, "", "", invoice.Hash{})
			})
			if got, err := s.PaymentLink(t.Context(), l.ID); err != nil || got != l {
				t.Errorf("read %+v, %v; want %+v", got, err, l)
			}
		}
		whole.PaymentLinkTerms, whole.Archived = least.PaymentLinkTerms, true
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.LockPaymentLink(ctx, whole.ID); err != nil {
				return err
			}
			return tx.UpdatePaymentLink(ctx, whole)
		})
		if got, err := s.PaymentLink(t.Context(), whole.ID); err != nil || got != whole {
			t.Errorf("read %+v, %v; want %+v", got, err, whole)
		}
	})
}
