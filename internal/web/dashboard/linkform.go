package dashboard

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
)

// linkForm is the form of a payment link.
type linkForm struct {
	fields
	ID      string // of the link that is changed, or empty
	Tokens  []tokenChoice
	Confirm bool // the person must confirm before the form is accepted
}

// linkFields are the fields of the form with the same names as in the interface.
var linkFields = []string{
	"merchantId", "title", "description", "slug", "amount", "minAmount", "maxAmount", "merchantAddress", "lineItem", "referencePrefix", "returnUrl", "cancelUrl", "expiresIn",
}

// linkTexts are the fields that are sent as typed.
var linkTexts = []string{"description", "merchantAddress", "lineItem", "referencePrefix", "returnUrl", "cancelUrl"}

// linkLifetimes are the offered lifetimes of a link's invoices, in seconds.
var linkLifetimes = []int64{15 * 60, 60 * 60, 24 * 60 * 60, 7 * 24 * 60 * 60, 30 * 24 * 60 * 60}

// Lifetimes returns the choices of expiresIn. It is for templates.
func (f *linkForm) Lifetimes() []int64 {
	chosen, err := strconv.ParseInt(f.Get("expiresIn"), 10, 64)
	if err != nil || slices.Contains(linkLifetimes, chosen) {
		return linkLifetimes
	}
	return append([]int64{chosen}, linkLifetimes...)
}

// newLink shows the form of a new payment link.
func (d *Dashboard) newLink(w http.ResponseWriter, r *http.Request) error {
	values := url.Values{"once": {rand.Text()}, "expiresIn": {strconv.FormatInt(int64(invoice.DefaultLinkLifetime.Seconds()), 10)}}
	return d.renderLinkForm(w, r, http.StatusOK, &linkForm{fields: newFields(values), Tokens: visitOf(r).tokens("")})
}

// editLink shows the form of a link with its terms.
func (d *Dashboard) editLink(w http.ResponseWriter, r *http.Request) error {
	l, err := d.findLink(r)
	if err != nil {
		return err
	}
	v, choice := visitOf(r), l.ChainKey+"/"+l.Currency
	f := &linkForm{fields: newFields(url.Values{}), ID: l.ID, Tokens: v.tokens(choice)}
	for name, value := range map[string]string{
		"token": choice, "title": l.Title, "description": l.Description, "merchantAddress": l.MerchantAddress, "lineItem": l.LineItem,
		"referencePrefix": l.ReferencePrefix, "returnUrl": l.ReturnURL, "cancelUrl": l.CancelURL, "expiresIn": strconv.FormatInt(l.ExpiresIn, 10),
	} {
		f.Set(name, value)
	}
	for name, minor := range map[string]string{"amount": l.Amount, "minAmount": l.MinAmount, "maxAmount": l.MaxAmount} {
		if minor != "" {
			f.Set(name, v.major(minor))
		}
	}
	return d.renderLinkForm(w, r, http.StatusOK, f)
}

func (d *Dashboard) renderLinkForm(w http.ResponseWriter, r *http.Request, status int, f *linkForm) error {
	title := "links.new"
	if f.ID != "" {
		title = "linkForm.edit"
	}
	return d.render(w, r, status, "linkform.html", title, f)
}

// createLink creates a payment link, only once if the form is sent several times.
func (d *Dashboard) createLink(w http.ResponseWriter, r *http.Request) error {
	return d.saveLink(w, r, func(f *linkForm, body map[string]any) (string, error) {
		body["slug"] = f.member("slug")
		var made apitypes.PaymentLinkResponse
		err := d.service.create(r.Context(), "/api/payment-links", f.Get("once"), f.creation(visitOf(r), body), &made)
		return made.Link.ID, err
	})
}

// changeLink changes the terms of a payment link.
func (d *Dashboard) changeLink(w http.ResponseWriter, r *http.Request) error {
	return d.saveLink(w, r, func(f *linkForm, body map[string]any) (string, error) {
		return f.ID, d.service.send(r.Context(), http.MethodPatch, id("/api/payment-links", f.ID), body, nil)
	})
}

// saveLink sends a form's values to the interface, and leads to the link's page. send returns the
// link's id.
func (d *Dashboard) saveLink(w http.ResponseWriter, r *http.Request, send func(f *linkForm, body map[string]any) (string, error)) error {
	f := &linkForm{fields: newFields(r.PostForm), ID: r.PathValue("id"), Tokens: visitOf(r).tokens(r.PostForm.Get("token"))}
	if body := f.request(visitOf(r)); len(f.Errors) == 0 {
		if f.Confirm = f.member("merchantAddress") != nil && !visitOf(r).session.Confirmed(d.cfg.Now()); f.Confirm {
			return d.renderLinkForm(w, r, http.StatusForbidden, f)
		}
		saved, err := send(f, body)
		if err == nil {
			return d.redirect(w, r, nil, id("/dashboard/links", saved))
		}
		if err := f.refuse(err); err != nil {
			return err
		}
	}
	return d.renderLinkForm(w, r, http.StatusBadRequest, f)
}

// request returns the body of the request to the interface.
func (f *linkForm) request(v *visit) map[string]any {
	chainKey, currency, _ := strings.Cut(f.Get("token"), "/")
	body := map[string]any{"chainKey": chainKey, "currency": currency, "title": strings.TrimSpace(f.Get("title"))}
	for _, name := range linkTexts {
		body[name] = f.member(name)
	}
	for _, name := range []string{"amount", "minAmount", "maxAmount"} {
		body[name] = nil
		if strings.TrimSpace(f.Get(name)) == "" {
			continue
		}
		amount, problem := v.parseAmount(f.Get(name))
		if body[name] = amount.String(); problem != "" {
			f.Errors[name] = problem
		}
	}
	seconds, err := strconv.ParseInt(f.Get("expiresIn"), 10, 64)
	if body["expiresIn"] = seconds; err != nil {
		f.Errors["expiresIn"] = v.text.T("linkForm.error.expires", nil)
	}
	return body
}

// refuse shows an error of the interface at its field.
func (f *linkForm) refuse(err error) error {
	var p *problem
	switch errors.As(err, &p); {
	case p != nil && p.Status == http.StatusBadRequest && (p.Code == apitypes.CodeInvalidChain || p.Field == "chainKey" || p.Field == "currency"):
		f.Errors["token"] = p.Detail
		return nil
	case p != nil && p.Status == http.StatusConflict && f.ID == "" && f.Get("slug") != "":
		f.Errors["slug"] = p.Detail
		return nil
	}
	return f.refuseAt(err, linkFields)
}
