package checkout

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Limits of claims.
const (
	// MaxClaimForm bounds the body of a claim, in bytes.
	MaxClaimForm = 4 << 10
	// ClaimsOfInvoice bounds the claims per minute for one invoice.
	ClaimsOfInvoice = 10
	// ClaimsOfClient bounds the claims per minute of one client network.
	ClaimsOfClient = 20
	// AllClaims bounds the claims per minute of all clients.
	AllClaims = 300
)

// Claims accepts claims of payers. *ledger.Service implements it.
type Claims interface {
	// Claim attributes a payment or stores the claim. See ledger.Service.Claim.
	Claim(ctx context.Context, claim ledger.Claim) (ledger.ClaimResult, error)
}

// claimForm is the form to claim a payment.
type claimForm struct {
	TxHash    string
	Payer     string // account that must sign
	Text      string // to be signed
	Signature string // as submitted
	Problem   string // why the submitted form is invalid
	Kept      bool   // a claim is stored already
	AtOnce    bool   // a signature attributes the payment at once
}

// claimForm returns the form for a payment of a transaction in which a number of payments await a decision.
func (c *Checkout) claimForm(ctx context.Context, s pageInput, p invoice.Payment, open int) (*claimForm, error) {
	kept, err := c.conf.Reader.InvoiceClaims(ctx, s.invoice.ID, p.ID)
	if err != nil {
		return nil, fmt.Errorf("read claims of %s: %w", s.invoice.ID, err)
	}
	waits, err := c.conf.Reader.WhichUndecided(ctx, []string{p.ID})
	if err != nil {
		return nil, fmt.Errorf("read whether %s is decided: %w", p.ID, err)
	}
	d := invoice.NearInvoice{Invoice: s.invoice}.Differ(p.Transfer)
	return &claimForm{
		AtOnce: !d.Early && d.LateBy <= invoice.LateWindow && len(waits) == 0 && open == 1,
		TxHash: p.TxHash.String(), Payer: chain.Checksum(p.From), Text: chain.ClaimText(s.chain.ID, s.invoice, p.TxHash), Kept: kept,
	}, nil
}

// claim submits a payer's claim and redirects to the page about the transaction.
func (c *Checkout) claim(w http.ResponseWriter, r *http.Request) error {
	tx, err := invoice.ParseHash(r.PostForm.Get("tx"))
	if err != nil {
		return errBadForm
	}
	s, err := c.loadFor(r)
	if err != nil {
		return err
	}
	if err := c.claimed.Take(r.Context(), s.invoice.MerchantID, s.invoice.ID); err != nil {
		return err
	}
	signature := compact(r.PostForm.Get("signature"))
	result, err := c.conf.Claims.Claim(r.Context(), ledger.Claim{InvoiceID: s.invoice.ID, TxHash: tx, Signature: signature})
	wrong, status := signatureProblem(err)
	switch {
	case wrong != "":
		return c.claimAgain(w, r, s, tx, signature, s.text.T(string(wrong), values{"Merchant": s.merchant()}), status)
	case err != nil && !errors.Is(err, ledger.ErrNothingToClaim): // the page shows the state
		return fmt.Errorf("claim %s for %s: %w", tx, s.invoice.ID, err)
	case err == nil:
		c.conf.Logger.InfoContext(r.Context(), "payment claimed", "invoice", s.invoice.ID, "tx", tx.String(), "signed", signature != "", "result", result)
	}
	return lead(w, r, "/checkout/"+s.invoice.ID+"/check?tx="+tx.String()+keepLang(r, "&"))
}

// claimAgain answers with the form and a problem.
func (c *Checkout) claimAgain(w http.ResponseWriter, r *http.Request, s pageInput, tx invoice.Hash, signature, problem string, status int) error {
	data, err := c.checkPage(r, s, tx)
	if err != nil {
		return err
	}
	if data.Claim != nil {
		data.Claim.Problem, data.Claim.Signature = problem, signature
	}
	return c.render(w, r, status, "check.html", data)
}

// compact removes all white space.
func compact(s string) string {
	return strings.NewReplacer(" ", "", "\n", "", "\r", "", "\t", "").Replace(s)
}

// Limits of wallets' reports of sent transactions.
const (
	// ReportsOfInvoice bounds the reports per minute for one invoice.
	ReportsOfInvoice = 10
	// ReportsOfClient bounds the reports per minute of one client network.
	ReportsOfClient = 60
	// AllReports bounds the reports of all clients.
	AllReports = 600
)

// Reports stores wallets' reports of sent transactions. ledger.Tables implement it.
type Reports interface {
	// ReportTransaction stores a transaction that a wallet gave to the page of an invoice.
	ReportTransaction(ctx context.Context, invoiceID string, t ledger.ReportedTransaction) error
}

// sent takes the hash of the transaction that a wallet gave the page. Anyone can report any hash, so
// it is shown as reported, and no decision depends on it.
func (c *Checkout) sent(w http.ResponseWriter, r *http.Request) error {
	tx, err := invoice.ParseHash(r.PostForm.Get("tx"))
	if err != nil {
		return errBadForm
	}
	s, err := c.loadFor(r)
	if err != nil {
		return err
	}
	if s.invoice.Status == invoice.Drafted {
		return errNotFound
	}
	if err := c.reported.Take(r.Context(), s.invoice.MerchantID, s.invoice.ID); err != nil {
		return err
	}
	if err := c.conf.Reports.ReportTransaction(r.Context(), s.invoice.ID, ledger.ReportedTransaction{Hash: tx, At: c.conf.Now()}); err != nil {
		return fmt.Errorf("keep what a wallet sent for %s: %w", s.invoice.ID, err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
