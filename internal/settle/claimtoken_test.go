package settle_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/keyring/keyringtest"
	"github.com/quittance/quittance/internal/settle"
)

// TestClaimTokenIsMadeAgain derives the tokens of refunds from the master keys; only hashes are
// stored. Without the key that made a token, only the caller that prepared the refund knows it.
func TestClaimTokenIsMadeAgain(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		old, newer := keyringtest.Key(t), keyringtest.Key(t)
		under := func(k *keyring.Keyring) *settle.Service {
			return w.service(func(c *settle.Config) { c.Keyring = k })
		}
		p := w.paid(1000)
		prepare := func(s *settle.Service) invoice.RefundRecord {
			t.Helper()
			r, err := s.PrepareRefund(t.Context(), settle.RefundRequest{PaymentID: p.ID, MerchantID: w.merchant, Amount: invoice.NewAmount(1), AskPayer: true})
			w.must(err)
			if len(r.ClaimToken) != 32 || s.ClaimToken(r) != r.ClaimToken || r.ClaimHash != invoice.HashClaimToken(r.ClaimToken) {
				t.Fatalf("prepared %+v", r)
			}
			return r
		}
		known, random := prepare(under(keyring.New(old))), prepare(under(nil))
		for name, c := range map[string]struct {
			s       *settle.Service
			isKnown bool
		}{
			"the key": {under(keyring.New(old)), true}, "a newer one, too": {under(keyring.New(newer, old)), true},
			"another": {under(keyring.New(newer)), false}, "none": {under(nil), false},
		} {
			stored := w.refund(known.ID)
			if stored.ClaimToken != "" {
				t.Errorf("the token %s is stored", stored.ClaimToken)
			}
			if got := c.s.ClaimToken(stored); (got == known.ClaimToken) != c.isKnown || !c.isKnown && got != "" {
				t.Errorf("with %s the token is %q", name, got)
			}
			if got := c.s.ClaimToken(w.refund(random.ID)); got != "" {
				t.Errorf("with %s a random token is %q", name, got)
			}
		}
		if one, two := prepare(under(keyring.New(old))), prepare(under(nil)); one.ClaimToken == known.ClaimToken || two.ClaimToken == random.ClaimToken {
			t.Error("two refunds have one token")
		}
		for _, r := range []invoice.RefundRecord{known, random} { // each replica takes the token
			got, err := under(nil).NameRefundAddress(t.Context(), settle.RefundClaim{Token: r.ClaimToken, To: invoice.Address{0xcc}, Account: invoice.AccountWithKey})
			if err != nil || got.Status != invoice.RefundAwaitingApproval {
				t.Errorf("an address is named: %+v, %v", got, err)
			}
		}
	})
}
