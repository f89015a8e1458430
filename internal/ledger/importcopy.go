package ledger

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/webhook"
)

// MaxCopy bounds a merchant's copy of an invoice, in bytes: a copy of the largest body with headers, quoted in JSON.
const MaxCopy = 1 << 20

// ErrNoTerms is the error for an event that does not have the terms of an invoice, such as invoice.paid.
var ErrNoTerms = errors.New("the event does not have the terms of an invoice")

// InvoiceCopy is a merchant's copy of an invoice that the database has lost.
type InvoiceCopy struct {
	Invoice    apitypes.Invoice
	Commitment string // onChainInvoiceId; empty if the copy lacks it
	// Signature is the header with which the service signed Body; empty without a signature.
	Signature string
	Body      []byte
}

// copiedLine has the members of every kind of copy: of a delivery with headers, an event, an API response and a bare
// invoice.
type copiedLine struct {
	Headers          map[string]string `json:"headers"`
	Body             *string           `json:"body"`
	Type             string            `json:"type"`
	Data             *copiedLine       `json:"data"`
	ID               string            `json:"id"`
	OnChainInvoiceID string            `json:"onChainInvoiceId"`
	Invoice          json.RawMessage   `json:"invoice"`
	MerchantAddress  string            `json:"merchantAddress"`
}

// invoiceID is the form of an invoice's id.
var invoiceID = regexp.MustCompile(`^inv_[0-9a-hjkmnp-tv-z]{26}$`)

// ParseInvoiceCopy reads one line of a file of copies: the body of an event, an answer of the API, an invoice, or a
// delivery as {"headers": {…}, "body": "…", "onChainInvoiceId": "…"}, of which the last may be absent. It returns
// ErrNoTerms for an event that does not have the terms of an invoice.
func ParseInvoiceCopy(line []byte) (c InvoiceCopy, err error) {
	if len(line) > MaxCopy {
		return c, fmt.Errorf("it has %d bytes, at most %d are read", len(line), MaxCopy)
	}
	var l copiedLine
	if err := json.Unmarshal(line, &l); err != nil {
		return c, fmt.Errorf("it is no JSON object of a known kind: %w", err)
	}
	if l.Body != nil {
		if c.Signature = l.signature(); c.Signature == "" {
			return c, fmt.Errorf("its headers lack %s", webhook.HeaderSignature)
		}
		c.Body, c.Commitment = []byte(*l.Body), l.OnChainInvoiceID
		l, line = copiedLine{}, c.Body
		if err := json.Unmarshal(line, &l); err != nil || l.Body != nil {
			return c, errors.New("its body is no event")
		}
	}
	switch {
	case l.Data != nil:
		if line = l.Data.Invoice; !hasTerms(line) {
			return c, ErrNoTerms
		}
	case l.Invoice != nil:
		line, c.Commitment = l.Invoice, cmp.Or(l.OnChainInvoiceID, c.Commitment)
	case l.MerchantAddress == "":
		return c, errors.New("it holds no invoice: want an event, an answer of the API, or an invoice")
	}
	if err := json.Unmarshal(line, &c.Invoice); err != nil {
		return c, fmt.Errorf("its invoice cannot be read: %w", err)
	}
	if !invoiceID.MatchString(c.Invoice.ID) {
		return c, fmt.Errorf("its invoice has the id %.40q; want inv_ and 26 characters", c.Invoice.ID)
	}
	return c, nil
}

// signature returns the header with the signature of a delivery, or "".
func (l copiedLine) signature() string {
	for name, value := range l.Headers {
		if strings.EqualFold(name, webhook.HeaderSignature) {
			return value
		}
	}
	return ""
}

// hasTerms reports whether the event of an invoice may have its terms. An unreadable one may.
func hasTerms(text []byte) bool {
	var terms copiedLine
	return len(text) > 0 && (json.Unmarshal(text, &terms) != nil || terms.MerchantAddress != "")
}

// signedBy reports whether one of the secrets signed the copy, at any time: a copy is old.
func (c InvoiceCopy) signedBy(secrets []string) bool {
	at, ok := signedAt(c.Signature)
	if !ok {
		return false
	}
	for _, secret := range secrets {
		if secret != "" && webhook.Verify(secret, c.Signature, c.Body, at) == nil {
			return true
		}
	}
	return false
}

// signedAt returns the time in a signature.
func signedAt(header string) (time.Time, bool) {
	for part := range strings.SplitSeq(header, ",") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(part), "t="); ok {
			seconds, err := strconv.ParseInt(text, 10, 64)
			return time.Unix(seconds, 0), err == nil
		}
	}
	return time.Time{}, false
}

// draft returns the terms and details of the copy as a request to create the invoice, and its transfer amount and
// tolerance, which may be zero.
func (c InvoiceCopy) draft() (d invoice.Draft, transfer, tolerance invoice.Amount, err error) {
	w := c.Invoice
	amount := func(field, text string) (a invoice.Amount) {
		if text != "" {
			var wrong error
			if a, wrong = invoice.ParseAmount(text); wrong != nil && err == nil {
				err = fmt.Errorf("its %s is %.80q: %w", field, text, wrong)
			}
		}
		return a
	}
	d = invoice.Draft{
		MerchantID: w.MerchantID, Amount: amount("amount", w.Amount), Currency: w.Currency, ChainKey: w.ChainKey, ExpiresAt: invoice.Unix(w.ExpiresAt),
		Collection: invoice.Collection(w.Collection),
		Details: invoice.Details{
			Reference: w.Reference, UniqueReference: w.UniqueReference, Description: w.Description, ReturnURL: w.ReturnURL, CancelURL: w.CancelURL, Metadata: w.Metadata,
		},
	}
	if w.Customer != nil {
		d.Details.Customer = invoice.Customer{ID: w.Customer.ID, Email: w.Customer.Email}
	}
	for _, item := range w.LineItems {
		d.LineItems = append(d.LineItems, invoice.LineItem{Label: item.Label, Amount: amount("line item", item.Amount)})
	}
	transfer, tolerance = amount("transferAmount", w.TransferAmount), amount("tolerance", w.Tolerance)
	if err == nil {
		d.Merchant, err = invoice.ParseAddress(w.MerchantAddress)
	}
	if err == nil && w.Status == apitypes.StatusDraft {
		err = errors.New("it is a draft, which cannot be paid")
	}
	if err == nil {
		err = d.Check(invoice.Unix(w.CreatedAt))
	}
	return d, transfer, tolerance, err
}
