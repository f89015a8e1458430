package checkout

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// Limits of claims.
const (
	// MaxClaimForm is the size of the largest claim that is read, in bytes.
	MaxClaimForm = 4 << 10
	// ClaimsOfInvoice is how often payments may be claimed for one invoice in a
	// minute.
	ClaimsOfInvoice = 10
	// ClaimsOfClient is the same for one client address.
	ClaimsOfClient = 20
	// AllClaims is the same for all.
	AllClaims = 300
)

// Claims takes claims of payers. settle.Service is one.
type Claims interface {
	// Claim attributes a payment or keeps the claim. Its errors are those of
	// settle.Service.
	Claim(ctx context.Context, claim settle.Claim) (settle.ClaimResult, error)
}

// claimForm is what a payer is asked in order to claim a payment.
type claimForm struct {
	TxHash    string
	Payer     string // who has to sign
	Text      string // that is to be signed
	Signature string // as it was sent
	Problem   string // with what was sent
	Kept      bool   // the merchant has a claim already
	AtOnce    bool   // a signature is enough, as far as the page knows
}

func (c *Checkout) claimForm(ctx context.Context, s subject, p invoice.Payment) (*claimForm, error) {
	kept, err := c.reader.InvoiceClaims(ctx, s.invoice.ID, p.ID)
	if err != nil {
		return nil, fmt.Errorf("read claims of %s: %w", s.invoice.ID, err)
	}
	waits, err := c.reader.WhichUndecided(ctx, []string{p.ID})
	if err != nil {
		return nil, fmt.Errorf("read whether %s is decided: %w", p.ID, err)
	}
	d := invoice.NearInvoice{Invoice: s.invoice}.Differ(p.Transfer)
	return &claimForm{
		AtOnce: !d.Early && d.LateBy <= invoice.LateWindow && len(waits) == 0,
		TxHash: p.TxHash.String(), Payer: chain.Checksum(p.From), Text: chain.ClaimText(s.chain.ID, s.invoice, p.TxHash), Kept: kept,
	}, nil
}

// claim takes a payer's claim and leads to the page about the transaction.
func (c *Checkout) claim(w http.ResponseWriter, r *http.Request) error {
	if c.sameOrigin.Check(r) != nil {
		return errCrossOrigin
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxClaimForm)
	if err := r.ParseForm(); err != nil {
		return errBadForm
	}
	tx, err := invoice.ParseHash(r.PostForm.Get("tx"))
	if err != nil {
		return errBadForm
	}
	s, err := c.load(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	uses := []use{{everybody, AllClaims}, {s.invoice.ID, ClaimsOfInvoice}}
	if key := client(r); key != "" {
		uses = append(uses, use{key, ClaimsOfClient})
	}
	if !c.claimed.allow(c.now(), uses...) {
		return errTooOften
	}
	signature := compact(r.PostForm.Get("signature"))
	result, err := c.claims.Claim(r.Context(), settle.Claim{InvoiceID: s.invoice.ID, TxHash: tx, Signature: signature})
	problem, status := s.claimProblem(err)
	switch {
	case problem != "":
		return c.claimAgain(w, r, s, tx, signature, problem, status)
	case err != nil && !errors.Is(err, settle.ErrNothingToClaim): // what there is instead, the page says
		return fmt.Errorf("claim %s for %s: %w", tx, s.invoice.ID, err)
	case err == nil:
		c.logger.InfoContext(r.Context(), "payment claimed", "invoice", s.invoice.ID, "tx", tx.String(), "signed", signature != "", "result", result)
	}
	http.Redirect(w, r, "/checkout/"+s.invoice.ID+"/check?tx="+tx.String(), http.StatusSeeOther) //nolint:gosec // the path begins with /checkout/ and a stored id, and ends in a parsed hash
	return nil
}

// claimProblem says what a payer can mend; nothing for other errors.
func (s subject) claimProblem(err error) (problem string, status int) {
	switch {
	case errors.Is(err, chain.ErrSignature):
		return "This is not a signature. It begins with 0x and has 130 digits and letters after that.", http.StatusBadRequest
	case errors.Is(err, settle.ErrNotThePayer):
		return "This was signed by another account than the one that paid, or it signs another text.", http.StatusForbidden
	case errors.Is(err, settle.ErrTooManyClaims):
		return "Too many payments have been claimed for this invoice. Contact " + s.merchant() + " and give the transaction’s hash.", http.StatusConflict
	}
	return "", 0
}

// claimAgain shows the form again, with what was wrong.
func (c *Checkout) claimAgain(w http.ResponseWriter, r *http.Request, s subject, tx invoice.Hash, signature, problem string, status int) error {
	data, err := c.judged(r, s, tx)
	if err != nil {
		return err
	}
	if data.Claim != nil {
		data.Claim.Problem, data.Claim.Signature = problem, signature
	}
	return c.render(w, r, status, "check.html", data)
}

// compact removes the white space that pasting adds.
func compact(s string) string {
	kept := make([]byte, 0, len(s))
	for _, b := range []byte(s) {
		if b != ' ' && b != '\n' && b != '\r' && b != '\t' {
			kept = append(kept, b)
		}
	}
	return string(kept)
}
