package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
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
		text(o, "", "merchantId", &d.MerchantID, parseMerchantID),
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

// lineItems reads the optional array. Errors name the element and its member, as in lineItems[2].amount.
func lineItems(o object, name string, dst *[]invoice.LineItem) error {
	return objects(o, name, dst, func(path string, in object, item *invoice.LineItem) error {
		return cmp.Or(text(in, path, "label", &item.Label, asIs), text(in, path, "amount", &item.Amount, invoice.ParseAmount))
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

// updatedInvoice has the members of a change of an invoice. A client may send the whole invoice back.
type updatedInvoice struct {
	Is     apitypes.Invoice
	Change apitypes.UpdateInvoiceRequest
	Draft  bool `json:"draft"`
}

// updateInvoice answers PATCH /api/invoices/{id}.
func (a *API) updateInvoice(w http.ResponseWriter, r *http.Request, o object) error {
	id := r.PathValue("id")
	change, err := invoiceChange(o)
	if err != nil {
		return err
	}
	if err := a.checkFixedMembers(r.Context(), id, o); err != nil {
		return err
	}
	inv, err := a.conf.Ledger.UpdateInvoice(r.Context(), access.FromContext(r.Context()), id, change)
	return a.writeJSON(w, r, http.StatusOK, apitypes.InvoiceResponse{Invoice: apiconv.Invoice(inv)}, db.During("change invoice", err))
}

// invoiceChange parses the members of an invoice's change. It returns an
// *invoice.FieldError for the first that is malformed.
func invoiceChange(o object) (c ledger.InvoiceChange, err error) {
	err = cmp.Or(
		optionalParsed(o, "merchantAddress", &c.Merchant, chain.ParseAddress),
		optionalParsed(o, "amount", &c.Amount, invoice.ParseAmount),
		optionalParsed(o, "currency", &c.Currency, asIs),
		optionalParsed(o, "chainKey", &c.ChainKey, asIs),
		optional(o, "lineItems", func(name string) error {
			c.LineItems = new([]invoice.LineItem)
			return lineItems(o, name, c.LineItems)
		}),
		optional(o, "expiresAt", func(name string) error {
			c.ExpiresAt = new(time.Time)
			return seconds(o, name, c.ExpiresAt)
		}),
		optionalParsed(o, "collection", &c.Collection, parseCollection),
	)
	if err == nil {
		c.Details, err = detailsChange(o, true)
	}
	return c, err
}

// optionalParsed parses a string member into a new variable if it is present.
func optionalParsed[T any](o object, name string, dst **T, parse func(string) (T, error)) error {
	return optional(o, name, func(name string) error {
		*dst = new(T)
		return text(o, "", name, *dst, parse)
	})
}

// finalizeInvoice answers POST /api/invoices/{id}/finalize. The body is not read.
func (a *API) finalizeInvoice(w http.ResponseWriter, r *http.Request) error {
	inv, err := a.conf.Ledger.Finalize(r.Context(), access.FromContext(r.Context()), r.PathValue("id"))
	return a.writeJSON(w, r, http.StatusOK, apiconv.CreateInvoiceResponse(inv, a.conf.PublicURL), db.During("finalize invoice", err))
}

// voidInvoice answers POST /api/invoices/{id}/void. The body is not read.
func (a *API) voidInvoice(w http.ResponseWriter, r *http.Request) error {
	inv, err := a.conf.Ledger.Void(r.Context(), access.FromContext(r.Context()), r.PathValue("id"))
	return a.writeJSON(w, r, http.StatusOK, apitypes.InvoiceResponse{Invoice: apiconv.Invoice(inv)}, db.During("void invoice", err))
}

// deleteInvoice answers DELETE /api/invoices/{id}.
func (a *API) deleteInvoice(w http.ResponseWriter, r *http.Request) error {
	return noContent(w, db.During("delete invoice", a.conf.Ledger.DeleteDraft(r.Context(), access.FromContext(r.Context()), r.PathValue("id"))))
}

// fixedMembers are the members of an invoice that a change of it cannot set, and draft,
// which is set when it is created.
var fixedMembers = slices.DeleteFunc(append(memberNames[apitypes.Invoice](), "draft"), func(name string) bool {
	return slices.Contains(memberNames[apitypes.UpdateInvoiceRequest](), name)
})

// memberNames returns the JSON names of the members of a structure.
func memberNames[T any]() (names []string) {
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// checkFixedMembers returns an *invoice.FieldError if a change of an invoice would set one of
// fixedMembers to another value. A client may send the whole invoice back.
func (a *API) checkFixedMembers(ctx context.Context, id string, change object) error {
	if !slices.ContainsFunc(fixedMembers, func(name string) bool { _, named := change[name]; return named }) {
		return nil
	}
	inv, err := a.visibleInvoice(ctx, id)
	if err != nil {
		return err
	}
	text, err := json.Marshal(apiconv.Invoice(inv))
	if err != nil {
		return fmt.Errorf("encode the present invoice: %w", err)
	}
	present, err := parseObject(text)
	if err != nil {
		return fmt.Errorf("parse the present invoice: %w", err)
	}
	present["draft"] = inv.Status == invoice.Drafted
	for _, name := range fixedMembers {
		if value, named := change[name]; named && !reflect.DeepEqual(value, present[name]) {
			return invalidField(name, "cannot be changed; leave it out")
		}
	}
	return nil
}

// details reads the details of a new invoice.
func details(o object, dst *invoice.Details) error {
	change, err := detailsChange(o, false)
	if err == nil {
		*dst = dst.Change(change)
	}
	return err
}

// detailsChange reads the members of an invoice's details. With removable, null removes a value, as in RFC 7396.
func detailsChange(o object, removable bool) (c invoice.DetailsChange, err error) {
	m := memberReader{removable}
	err = cmp.Or(
		m.text(o, "", "reference", &c.Reference),
		m.uniqueReference(o, &c.UniqueReference),
		m.metadata(o, &c),
		m.customer(o, &c),
		m.text(o, "", "description", &c.Description),
		m.text(o, "", "returnUrl", &c.ReturnURL),
		m.text(o, "", "cancelUrl", &c.CancelURL),
	)
	return c, err
}

// memberReader reads optional members.
type memberReader struct{ removable bool }

// removes reports whether the member is null and null removes it.
func (m memberReader) removes(o object, name string) bool {
	v, ok := o[name]
	return ok && v == nil && m.removable
}

// text reads a text that is not empty. A pointer to an empty text removes it.
func (m memberReader) text(o object, path, name string, dst **string) error {
	if m.removes(o, name) {
		*dst = new(string)
		return nil
	}
	return optional(o, name, func(string) error {
		*dst = new(string)
		if err := text(o, path, name, *dst, asIs); err != nil {
			return err
		}
		switch {
		case **dst != "":
			return nil
		case m.removable:
			return invalidField(path+name, "must not be empty; null removes it")
		}
		return invalidField(path+name, "must not be empty; leave it out")
	})
}

func (m memberReader) uniqueReference(o object, dst **bool) error {
	return optional(o, "uniqueReference", func(name string) error {
		*dst = new(bool)
		return boolean(o, name, *dst)
	})
}

func (m memberReader) customer(o object, c *invoice.DetailsChange) error {
	const name = "customer"
	if m.removes(o, name) {
		c.CustomerID, c.CustomerEmail = new(string), new(string)
		return nil
	}
	return optional(o, name, func(string) error {
		customer, err := o.object("", name)
		if err != nil {
			return err
		}
		return cmp.Or(m.text(customer, name+".", "id", &c.CustomerID), m.text(customer, name+".", "email", &c.CustomerEmail))
	})
}

func (m memberReader) metadata(o object, c *invoice.DetailsChange) error {
	const name = "metadata"
	if m.removes(o, name) {
		c.NoMetadata = true
		return nil
	}
	return optional(o, name, func(string) error {
		pairs, err := o.object("", name)
		if err != nil {
			return err
		}
		c.Metadata = make(map[string]*string, len(pairs))
		for _, key := range slices.Sorted(maps.Keys(pairs)) {
			if m.removes(pairs, key) {
				c.Metadata[key] = nil
				continue
			}
			value, ok := pairs[key].(string)
			if !ok {
				return invalidField(fmt.Sprintf("%s[%.40s]", name, key), "must be a string; it is %s", kind(pairs[key]))
			}
			c.Metadata[key] = &value
		}
		return nil
	})
}

// texts reads an array of strings into dst, which is unchanged if the array is absent. It does not check the texts.
func texts[T ~string](o object, name string, dst *[]T) error {
	return array(o, name, dst, func(path string, element any, to *T) error {
		text, ok := element.(string)
		if *to = T(text); !ok {
			return invalidField(path, "must be a string; it is %s", kind(element))
		}
		return nil
	})
}
