package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// attributePayment answers POST /api/payments/{id}/attribution.
func (a *API) attributePayment(w http.ResponseWriter, r *http.Request) error {
	if err := wantJSON(r); err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return badJSON(err)
	}
	asked, err := parseAttribution(body)
	if err != nil {
		return err
	}
	if asked.PaymentID, err = pathID(r, invoice.PrefixPayment); err != nil {
		return err
	}
	p, err := a.ledger.AttributeManually(r.Context(), asked)
	if err != nil {
		return fmt.Errorf("attribute payment: %w", err)
	}
	return a.writePayment(w, r, p)
}

// parseAttribution reads the body of an attribution, but not the payment that it
// is of. It returns a problemError when the body is not a JSON object, or an
// *invoice.FieldError for the first member that is missing or wrong.
func parseAttribution(body []byte) (settle.ManualAttribution, error) {
	var asked settle.ManualAttribution
	o, err := parseObject(body)
	if err != nil {
		return asked, badJSON(err)
	}
	err = cmp.Or(
		text(o, "", "invoiceId", &asked.InvoiceID, parseInvoiceID),
		label(o, "by", &asked.By),
	)
	if _, given := o["note"]; err == nil && given {
		err = label(o, "note", &asked.Note)
	}
	return asked, err
}

// label reads a string that is kept for people to read.
func label(o object, name string, dst *string) error {
	if err := text(o, "", name, dst, asIs); err != nil {
		return err
	}
	return invoice.CheckLabel(name, *dst)
}

// parseInvoiceID refuses what can be no invoice's id; not every text may go to
// a database.
func parseInvoiceID(s string) (string, error) {
	if !strings.HasPrefix(s, invoice.PrefixInvoice) || !visible(s) {
		return "", errors.New("must be the id of an invoice")
	}
	return s, nil
}
