package checkout

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"slices"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// MaxReceiptRows bounds the payments on a receipt, which lists the newest ones, and its refunds.
const MaxReceiptRows = 100

// receiptData is the content of a receipt. Amounts are in major units.
type receiptData struct {
	ID, Merchant           string
	Brand                  brand
	Reference, Description string
	Currency, Amount       string
	Lines                  []line
	State                  receiptState
	Headline               string
	Text                   []string
	Totals                 []fact
	IssuedAt, ExpiresAt    string
	PaidAt                 string // empty unless paid
	Now                    string
	Payments, Refunds      []movement
	More                   int // payments and refunds that are not listed
	Network                string
	ChainID                uint64
	Token, Address         string       // the token's contract, and the settlement address
	CommitmentID, Registry string       // Registry is empty without one
	CheckURL, TermsURL     string       // the QR code contains CheckURL
	Here                   template.URL // the receipt's address, up to the parameter lang
	Checked                string       // fits or differs, if the request came from a scanned code; else empty
	Mail                   *mailForm    // nil if mails are not sent
}

// movement is a final payment or refund.
type movement struct {
	Amount, TxHash, From, To string
	Block, Confirmations     uint64
	At                       string // of the block
	URL                      string // of the transaction in the block explorer; empty without a page there
	Late                     bool
}

// receipt answers with the receipt of an invoice. The parameter check is the on-chain id of a code that was scanned.
func (c *Checkout) receipt(w http.ResponseWriter, r *http.Request) error {
	s, refunds, err := c.loadReceipt(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	data := newReceipt(s.in(locale.For(r)), refunds, c.baseURL(r))
	if code := r.URL.Query().Get("check"); code != "" {
		data.Here = template.URL("?" + url.Values{"check": {code}}.Encode() + "&") //nolint:gosec // escaped
		if data.Checked = "differs"; code == data.CommitmentID {
			data.Checked = "fits"
		}
	}
	if c.conf.Mails != nil {
		data.Mail = &mailForm{Sent: r.URL.Query().Get("mail") == "sent"}
	}
	return c.render(w, r, http.StatusOK, "receipt.html", data)
}

// loadReceipt reads the input of a receipt. The error is errNoReceipt while no payment of the invoice is final.
func (c *Checkout) loadReceipt(ctx context.Context, id string) (s pageInput, refunds []invoice.RefundRecord, err error) {
	if s, err = c.load(ctx, id); err != nil {
		return s, nil, err
	}
	if !s.hasReceipt() {
		return s, nil, errNoReceipt
	}
	rows, err := c.conf.Reader.NewestPayments(ctx, s.invoice.ID, MaxReceiptRows)
	if err == nil {
		refunds, err = c.conf.Reader.RefundRecords(ctx, ledger.RefundFilter{InvoiceID: s.invoice.ID, Status: invoice.RefundConfirmed, Limit: MaxReceiptRows})
	}
	s.payments = payments(rows)
	return s, refunds, db.During("read the receipt of "+s.invoice.ID, err)
}

// hasReceipt reports whether a payment of the invoice is final. Negligible dust does not count.
func (s pageInput) hasReceipt() bool {
	return s.invoice.Status == invoice.Paid || s.invoice.Exception != ""
}

// newReceipt returns the content of a receipt. It is a pure function.
func newReceipt(s pageInput, refunds []invoice.RefundRecord, baseURL string) receiptData {
	inv, path := s.invoice, baseURL+"/checkout/"+s.invoice.ID
	data := receiptData{
		ID: inv.ID, Merchant: s.merchant(), Brand: newBrand(s.profile), Reference: inv.Details.Reference, Description: inv.Details.Description,
		Currency: inv.Currency, Amount: s.written(inv.Amount),
		IssuedAt: s.text.Clock(inv.CreatedAt), ExpiresAt: s.text.Clock(inv.ExpiresAt), Now: s.text.Clock(s.now),
		Network: s.network(), ChainID: s.chain.ID, Token: chain.Checksum(inv.Token), Address: chain.Checksum(inv.Merchant),
		CommitmentID: inv.CommitmentID.String(), Registry: optional(inv.Registry),
		CheckURL: path + "/receipt?check=" + inv.CommitmentID.String(), TermsURL: path + "/terms", Here: "?",
	}
	if !inv.SettledAt.IsZero() {
		data.PaidAt = s.text.Clock(inv.SettledAt)
	}
	data.Lines = s.writtenLines()
	for _, p := range slices.Backward(s.payments) { // in the order of the chain
		if p.Status == invoice.Confirmed {
			data.Payments = append(data.Payments, s.movement(p.Transfer, inv.IsLate(p.Position)))
		}
	}
	for _, refund := range slices.Backward(refunds) {
		data.Refunds = append(data.Refunds, s.movement(refund.Transfer.Transfer, false))
	}
	data.More = max(0, int(inv.Sums.Payments)-len(s.payments))
	data.State, data.Headline, data.Text = s.receiptWords()
	data.Totals = s.receiptTotals()
	return data
}

// written returns an amount with its currency, as the language writes it: a receipt may be a mail, where no script does that.
func (s pageInput) written(a invoice.Amount) string {
	return s.text.Number(s.major(a)) + "\u00a0" + s.invoice.Currency
}

// writtenLines returns the line items as written writes amounts.
func (s pageInput) writtenLines() []line {
	return db.Each(s.invoice.LineItems, func(item invoice.LineItem) line { return line{item.Label, s.text.Number(s.major(item.Amount))} })
}

func (s pageInput) movement(t invoice.Transfer, late bool) movement {
	m := movement{
		Amount: s.written(t.Amount), TxHash: t.TxHash.String(), From: chain.Checksum(t.From), To: chain.Checksum(t.To),
		Block: t.BlockNumber, At: s.text.Clock(t.BlockTime), URL: s.chain.TransactionURL(t.TxHash), Late: late,
	}
	if s.following.indexed.Number >= t.BlockNumber {
		m.Confirmations = s.following.indexed.Number - t.BlockNumber + 1
	}
	return m
}

// baseURL returns the URL of the service without a trailing slash: the configured one, or the one of
// the request, after its host was checked.
func (c *Checkout) baseURL(r *http.Request) string {
	return cmp.Or(c.conf.PublicURL, limits.BaseURL(r))
}

// receiptState is the state of the invoice that a receipt shows at the top.
type receiptState string

// The states of a receipt.
const (
	receiptPaid     receiptState = "paid"
	receiptAccepted receiptState = "accepted" // within the tolerance, or by a person
	receiptPart     receiptState = "part"
	receiptLate     receiptState = "late"
	receiptVoid     receiptState = "void"
	receiptRefunded receiptState = "refunded" // all of it
)

// receiptHeadlines are the ids of the texts of the states.
var receiptHeadlines = map[receiptState]string{
	receiptPaid: "receipt.state.paid", receiptAccepted: "receipt.state.accepted", receiptPart: "receipt.state.part",
	receiptLate: "receipt.state.late", receiptVoid: "receipt.state.void", receiptRefunded: "receipt.state.refunded",
}

// receiptState returns the state of the invoice's receipt. Only final payments count.
func (s pageInput) receiptState() receiptState {
	inv := s.invoice
	switch {
	case !inv.AmountRefunded.IsZero() && !inv.AmountRefunded.Less(inv.AmountPaid):
		return receiptRefunded
	case s.waived, inv.Status == invoice.Paid && inv.Exception == invoice.Underpaid:
		return receiptAccepted
	case inv.Status == invoice.Paid:
		return receiptPaid
	case inv.Status == invoice.Void:
		return receiptVoid
	case inv.Sums.Tally.Due.IsZero():
		return receiptLate
	}
	return receiptPart
}

// receiptWords returns the state of a receipt, its headline, and the sentences below it.
func (s pageInput) receiptWords() (state receiptState, headline string, sentences []string) {
	inv, state := s.invoice, s.receiptState()
	say := func(id string, v values) { sentences = append(sentences, s.text.T(id, v)) }
	s.statusWords(say)
	if !inv.AmountRefunded.IsZero() {
		say("status.refunded", values{"Amount": s.written(inv.AmountRefunded)})
	}
	for _, p := range s.payments {
		if p.IsUnconfirmed() {
			say("receipt.text.pending", nil)
			break
		}
	}
	return state, s.text.T(receiptHeadlines[state], nil), sentences
}

// statusWords describes what the status of an invoice means for its money.
func (s pageInput) statusWords(say func(id string, v values)) {
	inv := s.invoice
	inTime := inv.Sums.Tally.Counted()
	late := inv.AmountPaid.Minus(inv.Sums.Tally.Due)
	ended := s.text.Clock(inv.ExpiresAt)
	if s.waived {
		say("receipt.text.accepted", values{"Merchant": s.merchant(), "Missing": s.written(inv.Amount.Minus(inTime))})
		return
	}
	switch inv.Status {
	case invoice.Paid:
		s.surplusWords(say)
	case invoice.Open:
		if !inv.Covered() { // by payments that are not final
			say("receipt.text.open", values{"Missing": s.written(inv.Missing())})
		}
	case invoice.Expired:
		if !inTime.IsZero() {
			say("status.expired.part.text", values{"Arrived": s.written(inTime), "Amount": s.written(inv.Amount), "Time": ended})
		}
		if !late.IsZero() {
			say("status.late", values{"Amount": s.written(late), "Time": ended})
		}
		if excess := inv.Excess(); !excess.IsZero() {
			say("receipt.text.over", values{"Surplus": s.written(excess)})
		}
	case invoice.Void, invoice.Drafted: // the headline says it; a draft has no receipt
	}
}

// surplusWords describes how the received sum differs from the amount of a paid invoice.
func (s pageInput) surplusWords(say func(id string, v values)) {
	inv := s.invoice
	kept := inv.Kept()
	switch surplus := inv.Surplus(); {
	case kept.Less(inv.Amount):
		say("receipt.text.accepted", values{"Merchant": s.merchant(), "Missing": s.written(inv.Amount.Minus(kept))})
	case !surplus.IsZero():
		say("receipt.text.over", values{"Surplus": s.written(surplus)})
	case inv.Amount.Less(kept):
		say("receipt.text.tag", values{"Extra": s.written(kept.Minus(inv.Amount))})
	}
}

// receiptTotals returns the sums of a receipt.
func (s pageInput) receiptTotals() []fact {
	inv := s.invoice
	totals := []fact{
		{Name: s.text.T("receipt.amount", nil), Value: s.written(inv.Amount)},
		{Name: s.text.T("receipt.received", nil), Value: s.written(inv.AmountPaid)},
	}
	if !inv.AmountRefunded.IsZero() {
		totals = append(totals,
			fact{Name: s.text.T("receipt.state.refunded", nil), Value: s.written(inv.AmountRefunded)},
			fact{Name: s.text.T("receipt.net", nil), Value: s.written(inv.AmountPaid.Minus(inv.AmountRefunded))},
		)
	}
	return totals
}
