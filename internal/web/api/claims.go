package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Limits of an unattributed payment in a list.
const (
	// MaxCandidates bounds its candidate invoices.
	MaxCandidates = 5
	// MaxListedClaims bounds its claims.
	MaxListedClaims = 5
)

// listClaims answers GET /api/claims.
func (a *API) listClaims(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	filter := ledger.ClaimFilter{MerchantID: q.merchantID(), PaymentID: q.id("paymentId", invoice.PrefixPayment, "a payment")}
	return listing[ledger.ClaimRow]{
		name: "claims", query: q, scope: q.scope("claims", "merchantId", "paymentId"), elements: elementsOf(Claim),
		key: func(c *ledger.ClaimRow) string { return c.ID },
		find: func(ctx context.Context, before string, n int) ([]ledger.ClaimRow, string, error) {
			filter.Before, filter.Limit = before, n
			return all(a.conf.Reader.Claims(ctx, filter))
		},
	}.serve(a, w, r)
}

// addCandidates adds the candidate invoices and the claims to unattributed payments. If
// merchantID is set, only invoices of that merchant are added.
func (a *API) addCandidates(ctx context.Context, list []apitypes.Payment, found []ledger.PaymentRow, merchantID string) error {
	var ids []string
	var lookups []ledger.NearLookup
	for _, p := range found {
		if !p.Attributed() {
			ids = append(ids, p.ID)
			lookups = append(lookups, ledger.NearLookup{Transfer: p.Transfer, CreatedBefore: p.ObservedAt.Add(time.Second)})
		}
	}
	near, err := a.conf.Reader.NearInvoices(ctx, lookups, merchantID)
	if err != nil {
		return fmt.Errorf("find candidates: %w", err)
	}
	for i, p := range found {
		if !p.Attributed() {
			list[i].Candidates = apiconv.PaymentCandidates(invoice.Suggest(p.Transfer, near[0], MaxCandidates))
			near = near[1:]
		}
	}
	claims, err := a.conf.Reader.ClaimsOfPayments(ctx, ids, merchantID, MaxListedClaims)
	if err != nil {
		return fmt.Errorf("read claims: %w", err)
	}
	for i, p := range found {
		if of := claims[p.ID]; len(of) > 0 {
			list[i].Claims = db.Each(of, Claim)
		}
	}
	return nil
}

// Claim returns a payer's claim with its current status.
func Claim(c ledger.ClaimRow) apitypes.Claim {
	w := apitypes.Claim{
		ID: c.ID, PaymentID: c.PaymentID, InvoiceID: c.InvoiceID, MerchantID: c.MerchantID,
		Signed: c.Signed, Status: apitypes.ClaimOpen, CreatedAt: invoice.UnixSeconds(c.At),
	}
	switch c.AttributedTo {
	case "":
	case c.InvoiceID:
		w.Status = apitypes.ClaimAccepted
	default:
		w.Status = apitypes.ClaimDeclined
	}
	return w
}

// attributePayment answers POST /api/payments/{id}/attribution.
func (a *API) attributePayment(w http.ResponseWriter, r *http.Request, o object) error {
	asked, err := parseAttribution(o)
	if err != nil {
		return err
	}
	asked.PaymentID, asked.MerchantID = r.PathValue("id"), access.FromContext(r.Context()).MerchantID
	p, err := a.conf.Ledger.AttributeManually(r.Context(), asked)
	if err != nil {
		return fmt.Errorf("attribute payment: %w", err)
	}
	return a.writePayment(w, r, p)
}

// parseAttribution parses the members of an attribution. It returns an *invoice.FieldError for the first invalid one.
func parseAttribution(o object) (ledger.ManualAttribution, error) {
	var asked ledger.ManualAttribution
	err := cmp.Or(
		text(o, "", "invoiceId", &asked.InvoiceID, parseInvoiceID),
		label(o, "by", &asked.By),
	)
	if _, given := o["note"]; err == nil && given {
		err = label(o, "note", &asked.Note)
	}
	return asked, err
}

// label reads a string that is stored for display.
func label(o object, name string, dst *string) error {
	if err := text(o, "", name, dst, asIs); err != nil {
		return err
	}
	return invoice.CheckLabel(name, *dst)
}

// parseInvoiceID checks the prefix and the characters of an invoice id, because not every text is valid in a database.
func parseInvoiceID(s string) (string, error) {
	if !strings.HasPrefix(s, invoice.PrefixInvoice) || !isVisibleASCII(s) {
		return "", errors.New("must be the id of an invoice")
	}
	return s, nil
}
