package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
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

// StatusDiffersError is the error of a copy with a final status that the invoice can no longer have here.
type StatusDiffersError struct{ Copied, Stored invoice.Status }

// Error describes how they differ and who decides.
func (e *StatusDiffersError) Error() string {
	return fmt.Sprintf("its status is %s in the copy and %s in the database, and both are final; compare its payments with the merchant, and refund what is too much", e.Copied, e.Stored)
}

// pastEnd is how an imported invoice ended in the lost past, as its copy and the chain show it.
type pastEnd struct {
	status    invoice.Status // in the copy
	lost      LostInvoice    // its commitment on the chain; zero without it
	recovered bool           // a recovery has read the chain
	backup    uint64         // the newest block that the backup had read
	cur       Cursor
}

// Ended reports whether the invoice has a final status in the copy.
func (c InvoiceCopy) Ended() bool { return c.status() != invoice.Open }

// status returns the status in the copy if it is final, and otherwise open.
func (c InvoiceCopy) status() invoice.Status {
	switch s := invoice.Status(c.Invoice.Status); s {
	case invoice.Paid, invoice.Expired, invoice.Void:
		return s
	case invoice.Open, invoice.Drafted:
	}
	return invoice.Open
}

// apply returns the imported form of an invoice that the database lacks. For a void invoice, no
// payment since the backup is in time: it is unknown which arrived before it became void, and one with
// its amount may be for another invoice.
func (p pastEnd) apply(inv invoice.Invoice) invoice.Invoice {
	inv.FromBlock = p.backup
	if endsInLostPast(inv, p.lost) {
		inv.ClosedBlock = p.lost.ClosedBlock
	}
	switch p.status {
	case invoice.Void:
		inv.Status, inv.ClosedBlock = invoice.Void, cmp.Or(inv.ClosedBlock, p.backup)
	case invoice.Paid:
		inv.ClosedBlock = cmp.Or(inv.ClosedBlock, p.cur.Indexed.Number)
	case invoice.Expired:
		if expired, ok := inv.Expire(p.cur.Confirmed.Time); ok {
			inv = expired
			inv.ClosedBlock = p.cur.Indexed.Number
		}
	case invoice.Open, invoice.Drafted:
	}
	return inv
}

// followImport emits the events of an imported invoice that the merchant has had, with their former
// ids, and enqueues the intents for its commitment.
func (s *Service) followImport(ctx context.Context, tx *db.Tx, out *outbox, done Imported, p pastEnd) error {
	inv := done.Invoice
	created := inv
	created.Status = invoice.Open
	if err := s.emitOnlyCreated(out, created); err != nil {
		return err
	}
	switch {
	case inv.CloseIntent(false) && p.lost.ClosedBlock == 0:
		s.enqueueIntent(out, invoice.IntentClose, inv)
	case inv.Status == invoice.Open && done.Proof != ProvedByChain:
		s.enqueueIntent(out, invoice.IntentOpen, inv)
	case p.status == invoice.Open && inv.EndedInLostPast():
		return markClosed(ctx, tx, p.lost.CommitmentID, true)
	}
	switch inv.Status {
	case invoice.Expired:
		return s.emit(out, invoice.EventExpired, inv.ID, inv, apiconv.InvoiceData(inv))
	case invoice.Void:
		return InsertInvoiceTransition(ctx, tx, inv.ID, InvoiceTransition{Status: invoice.Void, At: s.conf.Now()})
	case invoice.Open, invoice.Drafted, invoice.Paid:
	}
	return nil
}

// endImported applies the final status of a copy to an invoice that exists. An open one expires and is paid as usual.
func (s *Service) endImported(ctx context.Context, tx *db.Tx, out *outbox, inv invoice.Invoice, p pastEnd) (invoice.Invoice, error) {
	switch {
	case p.status == invoice.Open, p.status == inv.Status:
		return inv, nil
	case inv.Status != invoice.Open:
		return inv, &StatusDiffersError{p.status, inv.Status}
	case p.status == invoice.Expired:
		return inv, nil
	case !p.recovered:
		return inv, ErrNoRecovery
	}
	block := p.cur.Indexed.Number
	if p.status == invoice.Void {
		block = p.backup
	}
	if err := markEndedInLostPast(ctx, tx, inv.ID, block); err != nil {
		return inv, err
	}
	if err := markClosed(ctx, tx, inv.CommitmentID, false); err != nil {
		return inv, err
	}
	ch, err := s.load(ctx, tx, inv.ChainKey, inv.ID)
	if err != nil {
		return inv, err
	}
	if p.status == invoice.Void {
		voided, err := ch.invoice(inv.ID).Cancel(block)
		if err != nil {
			return inv, err
		}
		ch.putInvoice(voided)
		s.enqueueIntent(out, invoice.IntentClose, voided)
		if err := s.recordVoid(ctx, tx, out, inv, voided); err != nil {
			return inv, err
		}
	}
	return ch.invoice(inv.ID), UpdateInvoices(ctx, tx, ch.changedInvoices())
}
