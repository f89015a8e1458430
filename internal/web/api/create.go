package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// createInvoice answers POST /api/invoices.
func (a *API) createInvoice(w http.ResponseWriter, r *http.Request, o object, once ledger.Once) error {
	p := access.FromContext(r.Context())
	draft, err := parseDraft(o, p.MerchantID)
	if err != nil {
		return err
	}
	if draft.MerchantID, err = ownMerchant(r.Context(), draft.MerchantID); err != nil {
		return err
	}
	inv, err := a.conf.Ledger.Create(r.Context(), ledger.CreateRequest{Once: once, Draft: draft, ByMerchant: !p.IsOperator()})
	return a.created(w, r, once, "/api/invoices/"+inv.ID, apiconv.CreateInvoiceResponse(inv, a.conf.PublicURL), db.During("create invoice", err))
}

// parseDraft parses the members of a create. It returns an *invoice.FieldError for the first member,
// in the interface's order, that is missing or malformed. Draft.Check checks the other rules.
// merchantID is the default of the member merchantId, which is required if that is empty.
func parseDraft(o object, merchantID string) (invoice.Draft, error) {
	if _, named := o["merchantId"]; !named && merchantID != "" {
		o["merchantId"] = merchantID
	}
	var d invoice.Draft
	err := cmp.Or(
		text(o, "", "merchantId", &d.MerchantID, asIs),
		merchantAddress(o, &d),
		text(o, "", "amount", &d.Amount, invoice.ParseAmount),
		text(o, "", "currency", &d.Currency, asIs),
		text(o, "", "chainKey", &d.ChainKey, asIs),
		lineItems(o, "lineItems", &d.LineItems),
		seconds(o, "expiresAt", &d.ExpiresAt),
		optional(o, "draft", func(name string) error { return boolean(o, name, &d.Unissued) }),
		optional(o, "collection", func(name string) error { return text(o, "", name, &d.Collection, parseCollection) }),
		details(o, &d.Details),
	)
	return d, err
}

// parseCollection parses a collection that a request names.
func parseCollection(s string) (invoice.Collection, error) {
	if c := invoice.Collection(s); slices.Contains(invoice.Collections, c) {
		return c, nil
	}
	return "", errors.New("must be direct or deposit")
}

// merchantAddress reads the member merchantAddress, which may be absent.
func merchantAddress(o object, d *invoice.Draft) error {
	const name = "merchantAddress"
	if _, named := o[name]; !named {
		d.AddressOmitted = true
		return nil
	}
	return text(o, "", name, &d.Merchant, chain.ParseAddress)
}

// invalidJSON returns the problem of a body that is incomplete or does not parse.
func invalidJSON(err error) error {
	if known := (*problemError)(nil); errors.As(err, &known) {
		return err
	}
	return problemf(apitypes.CodeInvalidJSON, "The body must be one JSON object: %v.", err)
}

// text parses a string member of the object at path into dst.
func text[T any](o object, path, name string, dst *T, parse func(string) (T, error)) error {
	s, err := o.text(name)
	if err == nil {
		*dst, err = parse(s)
	}
	if err != nil {
		return invalidField(path+name, "%v", err)
	}
	return nil
}

func asIs(s string) (string, error) { return s, nil }

// lineItems reads the optional array. Errors name the element and its member, as in
// lineItems[2].amount.
func lineItems(o object, name string, dst *[]invoice.LineItem) error {
	return array(o, name, dst, func(path string, element any, item *invoice.LineItem) error {
		member, ok := element.(map[string]any)
		if !ok {
			return invalidField(path, "must be an object; it is %s", kind(element))
		}
		return cmp.Or(
			text(member, path+".", "label", &item.Label, asIs),
			text(member, path+".", "amount", &item.Amount, invoice.ParseAmount),
		)
	})
}

// seconds reads a time in Unix seconds, in digits only: 1e9 and 1.0 are rejected.
func seconds(o object, name string, dst *time.Time) error {
	v, ok := o[name]
	if !ok {
		return invalidField(name, "is required")
	}
	number, ok := v.(json.Number)
	if !ok {
		return invalidField(name, "must be an integer; it is %s", kind(v))
	}
	if strings.Trim(number.String(), "0123456789") != "" {
		return invalidField(name, "must be Unix seconds, written in digits alone")
	}
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil {
		return invalidField(name, "must be Unix seconds, at most %d", math.MaxInt64)
	}
	*dst = invoice.Unix(n)
	return nil
}
