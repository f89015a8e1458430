package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// listMerchants answers GET /api/merchants.
func (a *API) listMerchants(w http.ResponseWriter, r *http.Request) error {
	return a.serveMerchants(w, r, "merchants", elementsOf(apiconv.Merchant))
}

// serveMerchants answers with a list of merchants; elements makes its elements. kind separates its
// cursors from other lists' cursors.
func (a *API) serveMerchants(w http.ResponseWriter, r *http.Request, kind string, elements func(context.Context, []invoice.Merchant) ([]any, error)) error {
	q := parseQuery(r)
	return listing[invoice.Merchant]{
		name: "merchants", query: q, scope: q.scope(kind), elements: elements, key: func(m *invoice.Merchant) string { return m.ID },
		find: func(ctx context.Context, after string, n int) ([]invoice.Merchant, string, error) {
			return all(a.conf.Merchants.List(ctx, access.FromContext(r.Context()), after, n))
		},
	}.serve(a, w, r)
}

// getMerchant answers GET /api/merchants/{id}.
func (a *API) getMerchant(w http.ResponseWriter, r *http.Request) error {
	m, err := a.conf.Merchants.Get(r.Context(), access.FromContext(r.Context()), r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("read merchant: %w", err)
	}
	stored, err := a.conf.Reader.MerchantStorage(r.Context(), m.ID)
	return a.writeJSON(w, r, http.StatusOK, apitypes.MerchantResponse{Merchant: apiconv.Merchant(m), Storage: &apitypes.MerchantStorage{
		AuditBytes: stored.AuditBytes, AuditQuota: stored.AuditQuota, Invoices: stored.Invoices, InvoiceQuota: stored.InvoiceQuota,
	}}, err)
}

// createMerchant answers POST /api/merchants.
func (a *API) createMerchant(w http.ResponseWriter, r *http.Request, o object) error {
	var id string
	if err := text(o, "", "id", &id, parseMerchantID); err != nil {
		return err
	}
	change, err := parseMerchantChange(o)
	if err != nil {
		return err
	}
	m, err := a.conf.Merchants.Create(r.Context(), access.FromContext(r.Context()), id, change)
	return a.created(w, r, ledger.Once{}, "/api/merchants/"+m.ID, apitypes.MerchantResponse{Merchant: apiconv.Merchant(m)}, db.During("create merchant", err))
}

// updatedMerchant has the members of a change of a merchant. A client may send the whole merchant back.
type updatedMerchant struct {
	Is     apitypes.Merchant
	Change apitypes.UpdateMerchantRequest
}

// updateMerchant answers PATCH /api/merchants/{id}.
func (a *API) updateMerchant(w http.ResponseWriter, r *http.Request, o object) error {
	change, err := parseMerchantChange(o)
	if err != nil {
		return err
	}
	m, err := a.conf.Merchants.Update(r.Context(), access.FromContext(r.Context()), r.PathValue("id"), change)
	return a.writeJSON(w, r, http.StatusOK, apitypes.MerchantResponse{Merchant: apiconv.Merchant(m)}, db.During("change merchant", err))
}

// parseMerchantChange parses the members of a merchant. It returns an *invoice.FieldError
// for the first that is malformed.
func parseMerchantChange(o object) (c invoice.MerchantChange, err error) {
	err = cmp.Or(
		optionalText(o, "name", &c.Name),
		optionalText(o, "color", &c.Color),
		optionalText(o, "supportContact", &c.SupportContact),
		optionalText(o, "statement", &c.Statement),
		optionalText(o, "timezone", &c.Timezone),
		optionalParsed(o, "tolerance", &c.Tolerance, invoice.ParseTolerance),
		optionalParsed(o, "collection", &c.Collection, parseCollection),
		optional(o, "defaultAddresses", func(n string) (err error) { c.DefaultAddresses, err = addressesByChain(o, n); return err }),
		allowedAddresses(o, "allowedAddresses", &c.Allowed),
		optional(o, "immediately", func(n string) error { return boolean(o, n, &c.Immediately) }),
		texts(o, "returnHosts", &c.ReturnHosts),
		texts(o, "embedOrigins", &c.EmbedOrigins),
		reminderHours(o, &c.ReminderHours),
	)
	return c, err
}

// optionalText reads a string member into a new variable if it is present.
func optionalText(o object, name string, dst **string) error {
	return optionalParsed(o, name, dst, asIs)
}

// addressesByChain reads an object of addresses by chain key.
func addressesByChain(o object, name string) (map[string]invoice.Address, error) {
	in, err := o.object("", name)
	if err != nil {
		return nil, err
	}
	all := make(map[string]invoice.Address, len(in))
	for key := range in {
		var address invoice.Address
		if err := text(in, name+".", key, &address, chain.ParseAddress); err != nil {
			return nil, err
		}
		all[key] = address
	}
	return all, nil
}

// allowedAddresses reads an array of objects with chainKey and address into dst, which is unchanged if the array is
// absent.
func allowedAddresses(o object, name string, dst *[]invoice.AllowedAddress) error {
	return objects(o, name, dst, func(path string, in object, to *invoice.AllowedAddress) error {
		return cmp.Or(text(in, path, "chainKey", &to.ChainKey, asIs), text(in, path, "address", &to.Address, chain.ParseAddress))
	})
}

// getLogo answers GET /api/merchants/{id}/logo.
func (a *API) getLogo(w http.ResponseWriter, r *http.Request) error {
	png, err := a.conf.Merchants.Logo(r.Context(), access.FromContext(r.Context()), r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("read logo: %w", err)
	}
	w.Header().Set("Content-Type", "image/png")
	if _, err := w.Write(png); err != nil { //nolint:gosec // it was encoded by the service, and its type is not sniffed
		a.conf.Logger.DebugContext(r.Context(), "write logo", "err", err) // the client has disconnected
	}
	return nil
}

// putLogo answers PUT /api/merchants/{id}/logo. The body is the image.
func (a *API) putLogo(w http.ResponseWriter, r *http.Request) error {
	image, err := readBytes(w, r, "logo", access.MaxLogoBytes)
	if err != nil {
		return err
	}
	m, err := a.conf.Merchants.SetLogo(r.Context(), access.FromContext(r.Context()), r.PathValue("id"), image)
	return a.writeJSON(w, r, http.StatusOK, apitypes.MerchantResponse{Merchant: apiconv.Merchant(m)}, db.During("set logo", err))
}

// readBytes reads a body of at most a number of bytes, which errors call by a name.
func readBytes(w http.ResponseWriter, r *http.Request, name string, most int64) ([]byte, error) {
	body, err := readUpTo(w, r, most, problemf(apitypes.CodeBodyTooLarge, "The %s must be at most %d bytes.", name, most))
	if errors.Is(err, errSlowBody) || errors.Is(err, errBrokenBody) {
		err = invalidField(name, "%v", err)
	}
	return body, err
}

// deleteLogo answers DELETE /api/merchants/{id}/logo.
func (a *API) deleteLogo(w http.ResponseWriter, r *http.Request) error {
	return noContent(w, db.During("drop logo", a.conf.Merchants.DropLogo(r.Context(), access.FromContext(r.Context()), r.PathValue("id"))))
}

// releaseAddress answers DELETE /api/merchants/{id}/addresses/{address}.
func (a *API) releaseAddress(w http.ResponseWriter, r *http.Request) error {
	address, err := chain.ParseAddress(r.PathValue("address"))
	if err != nil {
		return invalidField("address", "%v", err)
	}
	return noContent(w, db.During("release address", a.conf.Merchants.Release(r.Context(), access.FromContext(r.Context()), r.PathValue("id"), address)))
}
