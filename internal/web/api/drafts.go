package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
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
