package checkout

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

// TestPayIsOfferedForTheInvoicesRegistryAlone configures a registry that is not the
// invoice's, and terms that do not match its commitment.
func TestPayIsOfferedForTheInvoicesRegistryAlone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *pageInput)
		offers bool
	}{
		"the invoice's":      {func(*pageInput) {}, true},
		"replaced":           {func(s *pageInput) { s.chain.Registry = invoice.Address{9} }, false},
		"configured later":   {func(s *pageInput) { s.invoice.Registry = invoice.Address{} }, false},
		"no longer there":    {func(s *pageInput) { s.chain.Registry = invoice.Address{} }, false},
		"another chain id":   {func(s *pageInput) { s.chain.ID++ }, false},
		"another commitment": {func(s *pageInput) { s.invoice.CommitmentID[0]++ }, false},
	} {
		s := pageInput{invoice: openInvoice(), chain: localChain(), now: invoice.Unix(defaultNow)}
		s.token, _ = s.chain.Token(s.invoice.Currency)
		test.change(&s)
		if p := s.payInFull(); (p.Call != nil) != test.offers {
			t.Errorf("%s: the page offers %+v", name, p.Call)
		}
	}
}
