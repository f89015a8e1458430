package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// attributePayment answers POST /api/payments/{id}/attribution.
func (a *API) attributePayment(w http.ResponseWriter, r *http.Request) error {
	o, err := readObject[apitypes.AttributePaymentRequest](w, r)
	if err != nil {
		return err
	}
	asked, err := parseAttribution(o)
	if err != nil {
		return err
	}
	if asked.PaymentID, err = pathID(r, invoice.PrefixPayment); err != nil {
		return err
	}
	asked.MerchantID = access.FromContext(r.Context()).MerchantID
	p, err := a.conf.Ledger.AttributeManually(r.Context(), asked)
	if err != nil {
		return fmt.Errorf("attribute payment: %w", err)
	}
	return a.writePayment(w, r, p)
}

// parseAttribution parses the members of an attribution. It returns an *invoice.FieldError for the first invalid one.
func parseAttribution(o object) (ledger.ManualAttribution, error) {
	var asked ledger.ManualAttribution
	err := cmp.Or(
		text(o, "", "invoiceId", &asked.InvoiceID, parseInvoiceID),
		label(o, "by", &asked.By),
	)
	if _, given := o["note"]; err == nil && given {
		err = label(o, "note", &asked.Note)
	}
	return asked, err
}

// label reads a string that is stored for display.
func label(o object, name string, dst *string) error {
	if err := text(o, "", name, dst, asIs); err != nil {
		return err
	}
	return invoice.CheckLabel(name, *dst)
}

// parseInvoiceID checks the prefix and the characters of an invoice id, because not every
// text is valid in a database.
func parseInvoiceID(s string) (string, error) {
	if !strings.HasPrefix(s, invoice.PrefixInvoice) || !isVisibleASCII(s) {
		return "", errors.New("must be the id of an invoice")
	}
	return s, nil
}
