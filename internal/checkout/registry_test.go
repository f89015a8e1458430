package checkout

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

// TestPayIsOfferedForTheInvoicesRegistryAlone has the configuration name a
// registry that is not the invoice's, and terms that are not its commitment's.
func TestPayIsOfferedForTheInvoicesRegistryAlone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *subject)
		offers bool
	}{
		"the invoice's":      {func(*subject) {}, true},
		"replaced":           {func(s *subject) { s.chain.Registry = invoice.Address{9} }, false},
		"configured later":   {func(s *subject) { s.invoice.Registry = invoice.Address{} }, false},
		"no longer there":    {func(s *subject) { s.chain.Registry = invoice.Address{} }, false},
		"another chain id":   {func(s *subject) { s.chain.ID++ }, false},
		"another commitment": {func(s *subject) { s.invoice.CommitmentID[0]++ }, false},
	} {
		s := subject{invoice: openInvoice(), chain: localChain(), now: present}
		s.token, _ = s.chain.Token(s.invoice.Currency)
		test.change(&s)
		if p := s.payInFull(); (p.Call != nil) != test.offers {
			t.Errorf("%s: the page offers %+v", name, p.Call)
		}
	}
}
