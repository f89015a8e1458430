package dashboard

import (
	"net/http"
)

// finalizeInvoice makes a draft open.
func (d *Dashboard) finalizeInvoice(w http.ResponseWriter, r *http.Request) error {
	return d.actOnInvoice(w, r, http.MethodPost, "/finalize", struct{}{}, id("/dashboard/invoices", r.PathValue("id")))
}

// voidInvoice makes a draft or an open invoice void.
func (d *Dashboard) voidInvoice(w http.ResponseWriter, r *http.Request) error {
	return d.actOnInvoice(w, r, http.MethodPost, "/void", struct{}{}, id("/dashboard/invoices", r.PathValue("id")))
}

// actOnInvoice makes a request about the invoice of a page, and leads to a page afterwards. If the
// interface refuses the request, it shows the reason on the invoice's page.
func (d *Dashboard) actOnInvoice(w http.ResponseWriter, r *http.Request, method, act string, body any, then string) error {
	err := d.service.send(r.Context(), method, id("/api/invoices", r.PathValue("id"))+act, body, nil)
	refused, err := detail(err)
	switch {
	case err != nil:
		return err
	case refused != "":
		return d.showInvoice(w, r, http.StatusConflict, refused)
	}
	d.redirect(w, r, then)
	return nil
}

// deleteInvoice deletes a draft.
func (d *Dashboard) deleteInvoice(w http.ResponseWriter, r *http.Request) error {
	return d.actOnInvoice(w, r, http.MethodDelete, "", struct{}{}, "/dashboard/invoices")
}

// redirect leads to a page of the dashboard after a form was sent.
func (d *Dashboard) redirect(w http.ResponseWriter, r *http.Request, path string, pairs ...string) {
	seeOther(w, r, visitOf(r).Link(path, pairs...))
}
