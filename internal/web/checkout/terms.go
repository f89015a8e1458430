package checkout

import (
	"fmt"
	"net/http"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Terms are the values that are hashed into an invoice's on-chain id, and where the invoice is paid,
// for programs that compute both again.
type Terms struct {
	InvoiceID       string `json:"invoiceId"`
	CommitmentID    string `json:"onChainInvoiceId"`
	ChainKey        string `json:"chainKey"`
	ChainID         uint64 `json:"chainId"`
	Registry        string `json:"registry,omitempty"` // absent if it is the zero address
	MerchantAddress string `json:"merchantAddress"`
	Token           string `json:"token"`
	Amount          string `json:"amount"`
	ExpiresAt       int64  `json:"expiresAt"`
	// DepositFactory and DepositAddress are absent unless the invoice has a deposit address.
	DepositFactory string `json:"depositFactory,omitempty"`
	DepositAddress string `json:"depositAddress,omitempty"`
}

// terms answers with the Terms of an invoice.
func (c *Checkout) terms(w http.ResponseWriter, r *http.Request) error {
	s, err := c.load(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.WriteJSON(w, r, http.StatusOK, newTerms(s.invoice, s.chain))
}

func newTerms(inv invoice.Invoice, on chain.Chain) Terms {
	return Terms{
		InvoiceID: inv.ID, CommitmentID: inv.CommitmentID.String(), ChainKey: on.Key, ChainID: on.ID,
		Registry: optional(inv.Registry), MerchantAddress: chain.Checksum(inv.Merchant), Token: chain.Checksum(inv.Token),
		Amount: inv.Amount.String(), ExpiresAt: inv.ExpiresAt.Unix(),
		DepositFactory: optional(inv.DepositFactory), DepositAddress: optional(inv.DepositAddress),
	}
}

// optional returns an address, or "" for the zero address.
func optional(a invoice.Address) string {
	if a.IsZero() {
		return ""
	}
	return chain.Checksum(a)
}

// Commitment computes the on-chain id from the terms. It fails if one of them is malformed.
func (t Terms) Commitment() (invoice.Hash, error) {
	terms := invoice.Terms{ExpiresAt: invoice.Unix(t.ExpiresAt)}
	var registry invoice.Address
	for _, field := range []struct {
		name, text string
		into       *invoice.Address
	}{
		{"registry", t.Registry, &registry}, {"merchantAddress", t.MerchantAddress, &terms.Merchant}, {"token", t.Token, &terms.Token},
	} {
		var err error
		if field.text == "" && field.into == &registry {
			continue
		}
		if *field.into, err = chain.ParseAddress(field.text); err != nil {
			return invoice.Hash{}, fmt.Errorf("%s %w", field.name, err)
		}
	}
	var err error
	if terms.Amount, err = invoice.ParseAmount(t.Amount); err != nil {
		return invoice.Hash{}, fmt.Errorf("amount: %w", err)
	}
	return chain.CommitmentID(t.ChainID, registry, terms, t.InvoiceID), nil
}
