package checkout

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// TestTerms wants the terms to give the invoice's on-chain id, with a registry and without, and no longer if one of them is
// changed.
func TestTerms(t *testing.T) {
	w := newWorld()
	answer := w.ask(http.MethodGet, "/checkout/"+w.invoice.ID+"/terms")
	var got Terms
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("status %d, %v: %s", answer.Code, err, answer.Body)
	}
	if want := newTerms(w.invoice, w.chain); got != want {
		t.Errorf("terms are %+v, want %+v", got, want)
	}

	inv := openInvoice()
	if terms := newTerms(inv, localChain()); terms.DepositFactory != "" || terms.DepositAddress != "" {
		t.Errorf("the terms of an invoice without a deposit address name one: %+v", terms)
	}
	inv.DepositFactory, inv.DepositAddress = invoice.Address{1}, invoice.Address{2}
	if terms := newTerms(inv, localChain()); terms.DepositFactory != chain.Checksum(inv.DepositFactory) || terms.DepositAddress != chain.Checksum(inv.DepositAddress) {
		t.Errorf("the terms do not name the deposit address: %+v", terms)
	}
	for _, registry := range []invoice.Address{{}, inv.Registry} {
		inv.Registry = registry
		inv.CommitmentID = chain.CommitmentID(localChain().ID, registry, inv.Terms, inv.ID)
		terms := newTerms(inv, localChain())
		if id, err := terms.Commitment(); err != nil || id != inv.CommitmentID {
			t.Errorf("registry %s: the terms give the id %s (%v), want %s", registry, id, err, inv.CommitmentID)
		}
		for name, change := range map[string]func(*Terms){
			"registry":  func(t *Terms) { t.Registry = "0x00000000000000000000000000000000000000b2" },
			"merchant":  func(t *Terms) { t.MerchantAddress = "0x00000000000000000000000000000000000000b2" },
			"token":     func(t *Terms) { t.Token = "0x00000000000000000000000000000000000000b2" },
			"amount":    func(t *Terms) { t.Amount = "17" },
			"expiresAt": func(t *Terms) { t.ExpiresAt++ },
			"chainId":   func(t *Terms) { t.ChainID++ },
			"invoiceId": func(t *Terms) { t.InvoiceID += "0" },
		} {
			changed := terms
			change(&changed)
			if id, err := changed.Commitment(); err != nil || id == inv.CommitmentID {
				t.Errorf("with another %s, the id is %s (%v), want another", name, id, err)
			}
		}
	}
	for _, malformed := range []Terms{{Amount: "1"}, {MerchantAddress: "0x12"}, func() Terms {
		terms := newTerms(inv, localChain())
		terms.Amount = "1.5"
		return terms
	}()} {
		if id, err := malformed.Commitment(); err == nil {
			t.Errorf("%+v gives the id %s, want an error", malformed, id)
		}
	}
}
