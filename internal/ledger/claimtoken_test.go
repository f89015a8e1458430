package ledger_test

import (
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
)

// TestClaimTokenIsMadeAgain derives the tokens of refunds from the master keys; only hashes are
// stored. Without the key that made a token, only the caller that prepared the refund knows it.
func TestClaimTokenIsMadeAgain(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		old, newer := keyringtest.Key(t), keyringtest.Key(t)
		under := func(k *access.Keyring) *ledger.Service { return w.service(func(c *ledger.Config) { c.Keyring = k }) }
		p := w.paid(1000)
		prepare := func(s *ledger.Service) invoice.RefundRecord {
			t.Helper()
			r, err := s.PrepareRefund(open(t), ledger.RefundRequest{PaymentID: p.ID, MerchantID: w.merchant, Amount: invoice.NewAmount(1), AskPayer: true})
			w.must(err)
			if len(r.ClaimToken) != 32 || s.ClaimToken(r) != r.ClaimToken || r.ClaimHash != invoice.HashClaimToken(r.ClaimToken) {
				t.Fatalf("prepared %+v", r)
			}
			return r
		}
		known, random := prepare(under(access.NewKeyring(old))), prepare(under(nil))
		for name, c := range map[string]struct {
			s       *ledger.Service
			isKnown bool
		}{
			"the key": {under(access.NewKeyring(old)), true}, "a newer one, too": {under(access.NewKeyring(newer, old)), true},
			"another": {under(access.NewKeyring(newer)), false}, "none": {under(nil), false},
		} {
			stored := w.refund(known.ID)
			expect.Equal(t, stored.ClaimToken, "", "the stored token is")
			if got := c.s.ClaimToken(stored); (got == known.ClaimToken) != c.isKnown || !c.isKnown && got != "" {
				t.Errorf("with %s the token is %q", name, got)
			}
			expect.Equal(t, c.s.ClaimToken(w.refund(random.ID)), "", "with %s a random token is", name)
		}
		if one, two := prepare(under(access.NewKeyring(old))), prepare(under(nil)); one.ClaimToken == known.ClaimToken || two.ClaimToken == random.ClaimToken {
			t.Error("two refunds have one token")
		}
		for _, r := range []invoice.RefundRecord{known, random} { // each replica takes the token
			got, err := under(nil).NameRefundAddress(t.Context(), ledger.RefundClaim{Token: r.ClaimToken, To: invoice.Address{0xcc}, Account: invoice.AccountWithKey})
			if err != nil || got.Status != invoice.RefundAwaitingApproval {
				t.Errorf("an address is named: %+v, %v", got, err)
			}
		}
	})
}
