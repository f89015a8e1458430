package checkout

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// Limits of the page on which a payer names the address of a refund.
const (
	// AddressesOfRefund bounds the addresses per minute that are sent for one refund.
	AddressesOfRefund = 10
	// AddressesOfClient bounds the addresses that one client network sends per minute.
	AddressesOfClient = 20
	// AllAddresses bounds the addresses per minute of all clients.
	AllAddresses = 300
	// maxTypedAddress bounds an address that a payer types, in bytes.
	maxTypedAddress = 100
)

// Refunds reads and changes the refunds that wait for an address from the payer.
type Refunds interface {
	// RefundByClaimToken returns the refund with the token of a page, or db.ErrNotFound. *db.DB implements it.
	RefundByClaimToken(ctx context.Context, token string) (invoice.RefundRecord, error)
	// NameRefundAddress and CheckRecipient are implemented by ledger.Service.
	NameRefundAddress(ctx context.Context, claim ledger.RefundClaim) (invoice.RefundRecord, error)
	CheckRecipient(ctx context.Context, r invoice.RefundRecord, to invoice.Address) error
	// Account is implemented by chain.Inspector.
	Account(ctx context.Context, chainKey string, account invoice.Address) invoice.AccountKind
}

// refundView is the content of the page.
type refundView struct {
	Path     string // of the page
	Merchant string
	Brand    brand
	Amount   string
	Currency string
	Money    string // Amount with the currency
	Network  string
	Reason   string
	Payer    string
	Headline string
	Text     []template.HTML
	Tx       *long // of the transfer; nil before it

	Asks    bool // the payer can name an address
	Typed   string
	Problem string // why Typed is no address, or the form was refused
	Confirm *refundConfirm
}

// refundConfirm is the step in which the payer confirms the address.
type refundConfirm struct {
	To        string
	Payer     string // account that must sign
	Text      string // to be signed
	Signature string // as submitted
	Problem   string // why the signature was refused
	CanAsk    bool   // the merchant can be asked to approve it
}

// Address returns the page's address, up to the parameter lang.
func (v refundView) Address() template.URL {
	to := v.Typed
	if v.Confirm != nil {
		to = v.Confirm.To
	}
	return template.URL(v.Path + "?" + url.Values{"to": {to}}.Encode() + "&") //nolint:gosec // a stored token, and escaped
}

// refundPage answers with the page of a refund. The parameter to is the address that the
// payer has typed, to be confirmed.
func (c *Checkout) refundPage(w http.ResponseWriter, r *http.Request) error {
	refund, v, err := c.loadRefund(r)
	if err != nil {
		return err
	}
	typed := r.URL.Query().Get("to")
	if typed == "" || !v.Asks {
		return c.render(w, r, http.StatusOK, "refund.html", v)
	}
	to, ok, err := c.recipient(w, r, refund, v, typed)
	if !ok {
		return err
	}
	v.Confirm = c.confirmation(refund, to)
	return c.render(w, r, http.StatusOK, "refund.html", v)
}

// nameAddress stores the address that a payer confirms, and redirects to the page.
func (c *Checkout) nameAddress(w http.ResponseWriter, r *http.Request) error {
	refund, v, err := c.loadRefund(r)
	if err != nil {
		return err
	}
	if err := c.named.Take(r.Context(), refund.MerchantID, refund.ID); err != nil {
		return err
	}
	to, ok, err := c.recipient(w, r, refund, v, r.PostForm.Get("to"))
	if !ok {
		return err
	}
	signature := compact(r.PostForm.Get("signature"))
	named, err := c.conf.Refunds.NameRefundAddress(r.Context(), ledger.RefundClaim{
		Token: r.PathValue("token"), To: to, Account: c.conf.Refunds.Account(chain.OnBehalfOf(r.Context(), refund.MerchantID), refund.ChainKey, to), Signature: signature,
	})
	unsigned, status := signatureProblem(err)
	switch {
	case unsigned != "":
		v.Confirm = c.confirmation(refund, to)
		v.Confirm.Problem, v.Confirm.Signature = unsigned.in(locale.For(r)), signature
		return c.render(w, r, status, "refund.html", v)
	case err != nil && !errors.Is(err, ledger.ErrRefundNotOpen): // the page shows the state
		return fmt.Errorf("name the address of refund %s: %w", refund.ID, err)
	case err == nil:
		c.conf.Logger.InfoContext(r.Context(), "refund address named", "refund", refund.ID, "to", chain.Checksum(to), "signed", signature != "", "status", named.Status)
	}
	return lead(w, r, v.Path+keepLang(r, "?"))
}

// loadRefund reads the refund of the request's token and the content of its page.
func (c *Checkout) loadRefund(r *http.Request) (refund invoice.RefundRecord, v refundView, err error) {
	token := validToken(r.PathValue("token"))
	if token == "" {
		return refund, v, errNotFound
	}
	if refund, err = c.conf.Refunds.RefundByClaimToken(r.Context(), token); err != nil {
		return refund, v, fmt.Errorf("read a refund by its token: %w", err)
	}
	ch, token20, err := c.tokenAt("refund "+refund.ID, refund.ChainKey, refund.Token)
	if err != nil {
		return refund, v, err
	}
	profile, _, err := c.findMerchant(r.Context(), refund.MerchantID)
	if err != nil {
		return refund, v, err
	}
	text := locale.For(r)
	v = refundView{
		Path: "/refunds/" + token, Merchant: pageInput{profile: profile, invoice: invoice.Invoice{MerchantID: refund.MerchantID}}.merchant(), Brand: newBrand(profile),
		Amount: refund.Amount.Major(token20.Decimals), Currency: refund.Currency, Network: networkName(text, ch.Key, ch.Name), Reason: refund.Reason,
		Payer: chain.Checksum(refund.Payer),
	}
	v.Money = v.Amount + "\u00a0" + v.Currency
	if v.Merchant == "" {
		v.Merchant = text.T("refund.merchant", nil)
	}
	open := refund.IsOpen(c.conf.RefundNow())
	v.Asks = open && refund.Status != invoice.RefundPending
	v.Headline, v.Text = refundWords(text, refund, open, v.Merchant)
	if refund.Sent() {
		v.Tx = &long{refund.Transfer.TxHash.String(), ch.TransactionURL(refund.Transfer.TxHash)}
	}
	return refund, v, nil
}

// refundWords returns the headline of a refund's state and the sentences below it.
func refundWords(text *locale.Text, r invoice.RefundRecord, open bool, merchant string) (headline string, sentences []template.HTML) {
	said := values{"Merchant": merchant, "Address": code(r.To)}
	say := func(headlineID, textID string) (string, []template.HTML) {
		return text.T(headlineID, said), []template.HTML{text.HTML(textID, said)}
	}
	switch {
	case r.Status == invoice.RefundConfirmed:
		said["Address"] = code(r.Transfer.To)
		return say("refund.sent.headline", "refund.sent.text")
	case r.Sent():
		return say("refund.coming.headline", "refund.coming.text")
	case r.Status == invoice.RefundCanceled:
		return say("refund.canceled.headline", "refund.canceled.text")
	case !open:
		return say("refund.expired.headline", "refund.expired.text")
	case r.Status == invoice.RefundPending:
		return say("refund.confirmed.headline", "refund.confirmed.text")
	case r.Status == invoice.RefundAwaitingApproval:
		return say("refund.approval.headline", "refund.approval.text")
	}
	return say("refund.where.headline", "refund.where.text")
}

// code returns the element of an address in a sentence.
func code(a invoice.Address) template.HTML {
	return template.HTML("<code>" + chain.Checksum(a) + "</code>") //nolint:gosec // digits and letters
}

// confirmation returns the step in which the payer confirms an address.
func (c *Checkout) confirmation(r invoice.RefundRecord, to invoice.Address) *refundConfirm {
	return &refundConfirm{
		To: chain.Checksum(to), Payer: chain.Checksum(r.Payer), Text: chain.RefundClaimText(c.chains[r.ChainKey].ID, r, to), CanAsk: r.Status == invoice.RefundAwaitingAddress,
	}
}

// recipient returns the address that a payer types. If ok is false, it has answered with the page and why the address
// cannot be taken, or returns an error.
func (c *Checkout) recipient(w http.ResponseWriter, r *http.Request, refund invoice.RefundRecord, v refundView, typed string) (to invoice.Address, ok bool, err error) {
	wrong := problem("problem.noAddress")
	if to, err = chain.ParseAddress(compact(typed)); err == nil {
		wrong, err = "problem.lostThere", c.conf.Refunds.CheckRecipient(r.Context(), refund, to)
		if !errors.As(err, new(*invoice.FieldError)) {
			return to, err == nil, err
		}
	}
	v.Typed, v.Problem = shortened(typed), wrong.in(locale.For(r))
	return to, false, c.render(w, r, http.StatusBadRequest, "refund.html", v)
}

// signatureProblem returns a text about a signature or a claim that the payer can correct, else "".
func signatureProblem(err error) (wrong problem, status int) {
	switch {
	case errors.Is(err, chain.ErrSignature):
		return "problem.signature", http.StatusBadRequest
	case errors.Is(err, ledger.ErrNotThePayer):
		return "problem.otherSigner", http.StatusForbidden
	case errors.Is(err, ledger.ErrTooManyClaims):
		return "problem.tooManyClaims", http.StatusConflict
	}
	return "", 0
}

// shortened returns what a payer typed, cut to maxTypedAddress.
func shortened(typed string) string {
	return strings.ToValidUTF8(typed[:min(len(typed), maxTypedAddress)], "")
}
