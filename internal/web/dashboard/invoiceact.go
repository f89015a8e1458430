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
	return d.outcome(w, r, err, d.showInvoice, then)
}

// outcome leads to a page if err is nil, and shows a refusal of the interface on the page of the form. It returns other
// errors.
func (d *Dashboard) outcome(
	w http.ResponseWriter, r *http.Request, err error, show func(w http.ResponseWriter, r *http.Request, status int, refused string) error, path string,
) error {
	refused, err := detail(err)
	if refused != "" {
		return show(w, r, http.StatusConflict, refused)
	}
	return d.redirect(w, r, err, path)
}

// deleteInvoice deletes a draft.
func (d *Dashboard) deleteInvoice(w http.ResponseWriter, r *http.Request) error {
	return d.actOnInvoice(w, r, http.MethodDelete, "", struct{}{}, "/dashboard/invoices")
}

// redirect leads to a page of the dashboard after a form was sent, if err is nil. It returns err.
func (d *Dashboard) redirect(w http.ResponseWriter, r *http.Request, err error, path string, pairs ...string) error {
	if err == nil {
		seeOther(w, r, visitOf(r).Link(path, pairs...))
	}
	return err
}
