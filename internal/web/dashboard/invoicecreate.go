package dashboard

import (
	"maps"
	"net/http"
	"slices"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
)

// newInvoice shows the form of a new invoice, with the terms of the one that the parameter from names, if any.
func (d *Dashboard) newInvoice(w http.ResponseWriter, r *http.Request) error {
	f := d.newInvoiceForm(visitOf(r))
	if from := r.URL.Query().Get("from"); from != "" {
		f = d.formOf(visitOf(r), get[apitypes.InvoiceResponse](d, r, id("/api/invoices", from), nil).Invoice)
	}
	return d.renderInvoiceForm(w, r, http.StatusOK, f)
}

func (d *Dashboard) renderInvoiceForm(w http.ResponseWriter, r *http.Request, status int, f *invoiceForm) error {
	title := "invoices.new"
	if f.Draft != "" {
		title = "invoiceForm.edit"
	}
	return d.render(w, r, status, "invoiceform.html", title, f)
}

// saveInvoice creates an invoice or a draft, only once if the form is sent several times, or changes a draft. It leads to
// the invoice's page.
func (d *Dashboard) saveInvoice(w http.ResponseWriter, r *http.Request) error {
	v, f := visitOf(r), d.postedInvoiceForm(r)
	if f.Has("more") {
		f.addRows()
		return d.renderInvoiceForm(w, r, http.StatusOK, f)
	}
	if body, rows, ok := f.request(v); ok {
		var err error
		saved := apitypes.CreateInvoiceResponse{ID: f.Draft}
		if f.Draft == "" {
			body["draft"] = f.Has("draft")
			err = d.service.sendOnce(r.Context(), http.MethodPost, "/api/invoices", f.Get("once"), f.creation(v, body), &saved)
		} else {
			if f.Get("expiresAt") == f.Get("expiresBefore") { // it has no seconds, and an hour comes twice a year
				delete(body, "expiresAt")
			}
			err = d.service.send(r.Context(), http.MethodPatch, id("/api/invoices", f.Draft), body, nil)
		}
		if err == nil {
			return d.redirect(w, r, nil, id("/dashboard/invoices", saved.ID))
		}
		if err := f.refuse(err, rows); err != nil {
			return err
		}
	}
	return d.renderInvoiceForm(w, r, http.StatusBadRequest, f)
}

// setMetadata shows metadata in rows, and stores its keys in the form.
func (f *invoiceForm) setMetadata(metadata apitypes.Metadata) {
	empty := f.Pairs
	f.Pairs = nil
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		f.Pairs = append(f.Pairs, metadataRow{Key: key, Value: metadata[key]})
		f.Add("metadataBefore", key)
	}
	f.Pairs = append(f.Pairs, empty...)
	f.Pairs = f.Pairs[:min(len(f.Pairs), invoice.MaxMetadata)]
}

// editInvoice shows the form of a draft.
func (d *Dashboard) editInvoice(w http.ResponseWriter, r *http.Request) error {
	v, inv := visitOf(r), d.findInvoice(r)
	f := d.formOf(v, inv)
	f.Draft = inv.ID
	f.Set("reference", inv.Reference)
	f.setMetadata(inv.Metadata)
	f.Set("expiresAt", clock.Format(clock.Unix(inv.ExpiresAt), v.Zone(), formTime))
	f.Set("expiresBefore", f.Get("expiresAt"))
	if v.err == nil && inv.Status != apitypes.StatusDraft {
		return &pageError{Status: http.StatusConflict, Title: "error.refused.title", Text: "invoiceForm.notDraft"}
	}
	return d.renderInvoiceForm(w, r, http.StatusOK, f)
}
