package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
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
	limit, scope := q.limit(), q.scope("claims", "merchantId", "paymentId")
	merchantID, possible := q.merchantID()
	filter := ledger.ClaimFilter{MerchantID: merchantID, Before: q.cursor(scope)}
	if id, ok := q.get("paymentId"); ok {
		filter.PaymentID = id
		if !strings.HasPrefix(id, invoice.PrefixPayment) || !isVisibleASCII(id) {
			q.reject("paymentId", "must be the id of a payment")
		}
	}
	if q.err != nil {
		return q.err
	}
	page := listing[ledger.ClaimRow]{name: "claims", limit: limit, elements: elementsOf(Claim)}
	return page.before(scope, possible, func(c *ledger.ClaimRow) string { return c.ID }, func(ctx context.Context, before string, n int) ([]ledger.ClaimRow, error) {
		filter.Before, filter.Limit = cmp.Or(before, filter.Before), n
		found, err := a.conf.Reader.Claims(ctx, filter)
		return found, db.During("list claims", err)
	}).serve(a, w, r)
}

func fromClaims(claims []ledger.ClaimRow) []apitypes.Claim {
	list := make([]apitypes.Claim, len(claims))
	for i, c := range claims {
		list[i] = Claim(c)
	}
	return list
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
			list[i].Claims = fromClaims(of)
		}
	}
	return nil
}
