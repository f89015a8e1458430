package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// createPaymentLink answers POST /api/payment-links.
func (a *API) createPaymentLink(w http.ResponseWriter, r *http.Request, o object, once ledger.Once) error {
	p := access.FromContext(r.Context())
	asked, err := parsePaymentLink(o, p.MerchantID)
	if err != nil {
		return err
	}
	if asked.MerchantID, err = ownMerchant(r.Context(), asked.MerchantID); err != nil {
		return err
	}
	asked.Once = once
	l, err := a.conf.Links.Create(r.Context(), p, asked)
	return a.created(w, r, once, "/api/payment-links/"+l.ID, a.linkResponse(l), db.During("create payment link", err))
}

func (a *API) linkResponse(l invoice.PaymentLink) apitypes.PaymentLinkResponse {
	return apitypes.PaymentLinkResponse{Link: apiconv.PaymentLink(l, a.conf.PublicURL)}
}

// parsePaymentLink parses the members of a new link. It returns an *invoice.FieldError for the first that is missing or
// malformed. merchantID is the default of the member merchantId, which is required if that is empty.
func parsePaymentLink(o object, merchantID string) (r ledger.PaymentLinkRequest, err error) {
	if _, named := o["merchantId"]; !named && merchantID != "" {
		o["merchantId"] = merchantID
	}
	if err := text(o, "", "merchantId", &r.MerchantID, parseMerchantID); err != nil {
		return r, err
	}
	if err := optional(o, "slug", func(name string) error { return text(o, "", name, &r.Slug, parseSlug) }); err != nil {
		return r, err
	}
	for _, name := range []string{"title", "currency", "chainKey"} {
		if _, given := o[name]; !given {
			return r, invalidField(name, "is required")
		}
	}
	change, err := paymentLinkChange(o, false)
	r.Terms = r.Terms.Change(change)
	return r, err
}

func parseSlug(s string) (string, error) {
	if !invoice.ValidSlug(s) {
		return "", fmt.Errorf("must be 1 to %d lower-case letters, digits and single hyphens between them", invoice.MaxSlug)
	}
	return s, nil
}

// paymentLinkChange parses the terms of a link. With removable, null removes what a member sets.
func paymentLinkChange(o object, removable bool) (c invoice.PaymentLinkChange, err error) {
	m := memberReader{removable}
	err = cmp.Or(
		optionalText(o, "title", &c.Title),
		m.text(o, "", "description", &c.Description),
		removableParsed(m, o, "amount", &c.Amount, parsePositive),
		removableParsed(m, o, "minAmount", &c.Minimum, parsePositive),
		removableParsed(m, o, "maxAmount", &c.Maximum, parsePositive),
		optionalText(o, "currency", &c.Currency),
		optionalText(o, "chainKey", &c.ChainKey),
		removableParsed(m, o, "merchantAddress", &c.Merchant, parseSettlementAddress),
		m.text(o, "", "lineItem", &c.LineItem),
		m.text(o, "", "referencePrefix", &c.ReferencePrefix),
		removableParsed(m, o, "collection", &c.Collection, parseCollection),
		m.text(o, "", "returnUrl", &c.ReturnURL),
		m.text(o, "", "cancelUrl", &c.CancelURL),
		optional(o, "expiresIn", func(name string) error {
			c.Lifetime = new(time.Duration)
			return lifetime(o, name, c.Lifetime)
		}),
	)
	return c, err
}

// removableParsed parses a string member into a new variable if it is present. If null removes the
// member, according to m, the variable is the zero value.
func removableParsed[T any](m memberReader, o object, name string, dst **T, parse func(string) (T, error)) error {
	if m.removes(o, name) {
		*dst = new(T)
		return nil
	}
	return optionalParsed(o, name, dst, parse)
}

// parseSettlementAddress parses an address that is not zero.
func parseSettlementAddress(s string) (invoice.Address, error) {
	a, err := chain.ParseAddress(s)
	if err == nil && a.IsZero() {
		err = errors.New("must not be the zero address")
	}
	return a, err
}

// lifetime reads a number of seconds, in digits only.
func lifetime(o object, name string, dst *time.Duration) error {
	var n int64
	err := integer(o, name, int64(invoice.MinLinkLifetime/time.Second), int64(invoice.MaxLifetime/time.Second), &n)
	*dst = time.Duration(n) * time.Second
	return err
}

// getPaymentLink answers GET /api/payment-links/{id}.
func (a *API) getPaymentLink(w http.ResponseWriter, r *http.Request) error {
	l, err := a.conf.Links.Get(r.Context(), access.FromContext(r.Context()), r.PathValue("id"))
	return a.writeJSON(w, r, http.StatusOK, a.linkResponse(l), db.During("read payment link", err))
}

// updatedLink has the members of a change of a link. A client may send the whole link back.
type updatedLink struct {
	Is     apitypes.PaymentLink
	Change apitypes.UpdatePaymentLinkRequest
}

// updatePaymentLink answers PATCH /api/payment-links/{id}.
func (a *API) updatePaymentLink(w http.ResponseWriter, r *http.Request, o object) error {
	id := r.PathValue("id")
	change, err := paymentLinkChange(o, true)
	if err != nil {
		return err
	}
	if err := optional(o, "archived", func(name string) error { return boolean(o, name, &change.Archived) }); err != nil {
		return err
	}
	p := access.FromContext(r.Context())
	was, err := a.conf.Links.Get(r.Context(), p, id)
	if err != nil {
		return fmt.Errorf("read payment link: %w", err)
	}
	if err := checkFixedLinkMembers(o, was); err != nil {
		return err
	}
	l, err := a.conf.Links.Update(r.Context(), p, id, change)
	return a.writeJSON(w, r, http.StatusOK, a.linkResponse(l), db.During("change payment link", err))
}

// checkFixedLinkMembers returns an *invoice.FieldError if a change would set a member that
// cannot be changed to another value. A client may send the whole link back.
func checkFixedLinkMembers(o object, l invoice.PaymentLink) error {
	for _, f := range []struct{ name, is string }{{"id", l.ID}, {"merchantId", l.MerchantID}, {"slug", l.Slug}} {
		if value, given := o[f.name]; given && value != f.is {
			return invalidField(f.name, "cannot be changed; leave it out")
		}
	}
	if o["archived"] == false && l.Archived {
		return invalidField("archived", "cannot be taken back; create another link with the slug")
	}
	return nil
}

// listPaymentLinks answers GET /api/payment-links.
func (a *API) listPaymentLinks(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	filter := ledger.PaymentLinkFilter{MerchantID: q.merchantID()}
	if slug, ok := q.get("slug"); ok {
		var err error
		if filter.Slug, err = parseSlug(slug); err != nil {
			q.reject("slug", "%v", err)
		}
	}
	if archived, ok := q.flag("archived"); ok {
		filter.Archived = &archived
	}
	return listing[invoice.PaymentLink]{
		name: "links", query: q, scope: q.scope("payment-links", "merchantId", "slug", "archived"), table: a.paymentLinkTable(),
		elements: elementsOf(func(l invoice.PaymentLink) apitypes.PaymentLink { return apiconv.PaymentLink(l, a.conf.PublicURL) }),
		key:      func(l *invoice.PaymentLink) string { return l.ID },
		find: func(ctx context.Context, before string, n int) ([]invoice.PaymentLink, string, error) {
			filter.Before, filter.Limit = before, n
			return all(a.conf.Links.List(ctx, filter))
		},
	}.serve(a, w, r)
}
