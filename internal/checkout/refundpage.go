package checkout

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
)

// Limits of the page on which a payer names the address of a refund.
const (
	// AddressesOfRefund bounds the addresses that are sent per minute for one refund.
	AddressesOfRefund = 10
	// AddressesOfClient bounds those of one client address.
	AddressesOfClient = 20
	// AllAddresses bounds those of all clients.
	AllAddresses = 300
	// maxTypedAddress bounds an address that a payer types, in bytes.
	maxTypedAddress = 100
)

// Refunds reads and changes the refunds whose payer names the address.
type Refunds interface {
	// RefundByClaimToken returns the refund whose page has the token, or
	// store.ErrNotFound. *store.Store implements it.
	RefundByClaimToken(ctx context.Context, token string) (invoice.RefundRecord, error)
	// NameRefundAddress and CheckRecipient are those of settle.Service.
	NameRefundAddress(ctx context.Context, claim settle.RefundClaim) (invoice.RefundRecord, error)
	CheckRecipient(r invoice.RefundRecord, to invoice.Address) error
	// Account is that of inspect.Inspector.
	Account(ctx context.Context, chainKey string, account invoice.Address) invoice.AccountKind
}

// refundView is the content of the page.
type refundView struct {
	Path     string // of the page
	Merchant string
	Color    string // #rrggbb, or empty
	Amount   string
	Currency string
	Network  string
	Reason   string
	Payer    string
	Headline string
	Text     []string
	TxHash   string // of the transfer

	Asks    bool // the payer can name an address
	Typed   string
	Problem string // why Typed is no address, or the form was refused
	Confirm *refundConfirm
	Contact string
	// ContactURL is the address of Contact.
	ContactURL template.URL
	Style      string // path of the style sheet of Color, or empty
}

// refundConfirm is the step in which the payer confirms the address.
type refundConfirm struct {
	To        string
	Text      string // to be signed
	Signature string // as submitted
	Problem   string // why the signature was refused
	CanAsk    bool   // the merchant can be asked to approve it
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
	to, err := c.parseRecipient(refund, typed)
	if err != nil {
		v.Typed, v.Problem = shortened(typed), recipientProblem(err)
		return c.render(w, r, http.StatusBadRequest, "refund.html", v)
	}
	v.Confirm = c.confirmation(refund, to)
	return c.render(w, r, http.StatusOK, "refund.html", v)
}

// nameAddress stores the address that a payer confirms, and redirects to the page.
func (c *Checkout) nameAddress(w http.ResponseWriter, r *http.Request) error {
	if c.sameOrigin.Check(r) != nil {
		return errCrossOrigin
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxClaimForm)
	if err := r.ParseForm(); err != nil {
		return errBadForm
	}
	refund, v, err := c.loadRefund(r)
	if err != nil {
		return err
	}
	uses := []use{{allClients, AllAddresses}, {refund.ID, AddressesOfRefund}}
	if key := client(r); key != "" {
		uses = append(uses, use{key, AddressesOfClient})
	}
	if !c.named.allow(c.now(), uses...) {
		return errTooOften
	}
	typed := r.PostForm.Get("to")
	to, err := c.parseRecipient(refund, typed)
	if err != nil {
		v.Typed, v.Problem = shortened(typed), recipientProblem(err)
		return c.render(w, r, http.StatusBadRequest, "refund.html", v)
	}
	signature := compact(r.PostForm.Get("signature"))
	named, err := c.refunds.NameRefundAddress(r.Context(), settle.RefundClaim{
		Token: refund.ClaimToken, To: to, Account: c.refunds.Account(r.Context(), refund.ChainKey, to), Signature: signature,
	})
	problem, status := signatureProblem(err)
	switch {
	case problem != "":
		v.Confirm = c.confirmation(refund, to)
		v.Confirm.Problem, v.Confirm.Signature = problem, signature
		return c.render(w, r, status, "refund.html", v)
	case err != nil && !errors.Is(err, settle.ErrRefundNotOpen): // the page shows the state
		return fmt.Errorf("name the address of refund %s: %w", refund.ID, err)
	case err == nil:
		c.logger.InfoContext(r.Context(), "refund address named", "refund", refund.ID, "to", chain.Checksum(to), "signed", signature != "", "status", named.Status)
	}
	http.Redirect(w, r, v.Path, http.StatusSeeOther)
	return nil
}

// loadRefund reads the refund of the request's token and the content of its page.
func (c *Checkout) loadRefund(r *http.Request) (refund invoice.RefundRecord, v refundView, err error) {
	token := r.PathValue("token")
	if len(token) > MaxID || strings.ContainsFunc(token, isNotIDChar) {
		return refund, v, errNoRefund // not every text is valid in a database
	}
	refund, err = c.refunds.RefundByClaimToken(r.Context(), token)
	if errors.Is(err, store.ErrNotFound) {
		return refund, v, errNoRefund
	}
	if err != nil {
		return refund, v, fmt.Errorf("read a refund by its token: %w", err)
	}
	ch, ok := c.chains[refund.ChainKey]
	if !ok {
		return refund, v, fmt.Errorf("refund %s is on chain %q, which is not configured; add it to the configuration again", refund.ID, refund.ChainKey)
	}
	token20, ok := ch.TokenAt(refund.Token)
	if !ok {
		return refund, v, fmt.Errorf("refund %s is in token %s, which chain %q is not configured with; add it again", refund.ID, refund.Token, ch.Key)
	}
	profile, err := c.findMerchant(r.Context(), refund.MerchantID)
	if err != nil {
		return refund, v, err
	}
	v = refundView{
		Path: "/refunds/" + refund.ClaimToken, Merchant: pageInput{profile: profile, invoice: invoice.Invoice{MerchantID: refund.MerchantID}}.merchant(), Color: profile.Color,
		Amount: refund.Amount.Major(token20.Decimals), Currency: refund.Currency, Network: networkName(ch.Key), Reason: refund.Reason,
		Payer: chain.Checksum(refund.Payer),
	}
	if v.Merchant == "" {
		v.Merchant = "the merchant"
	}
	b := newBrand(profile)
	v.Contact, v.ContactURL, v.Style = b.Contact, b.ContactURL, b.Style
	open := refund.IsOpen(c.now())
	v.Asks = open && refund.Status != invoice.RefundPending
	v.Headline, v.Text = refundWords(refund, open, v.Merchant)
	if refund.Sent() {
		v.TxHash = refund.Transfer.TxHash.String()
	}
	return refund, v, nil
}

// refundWords returns the headline of a refund's state and the sentences below it.
func refundWords(r invoice.RefundRecord, open bool, merchant string) (headline string, text []string) {
	to := chain.Checksum(r.To)
	switch {
	case r.Status == invoice.RefundConfirmed:
		return "Your refund was sent", []string{"It went to " + chain.Checksum(r.Transfer.To) + "."}
	case r.Sent():
		return "Your refund is on its way", []string{"The network has it. It is final once the network can no longer take it back."}
	case r.Status == invoice.RefundCanceled:
		return "This refund was canceled", []string{"Ask " + merchant + " if you expected it."}
	case !open:
		return "This link has expired", []string{"Ask " + merchant + " for another one."}
	case r.Status == invoice.RefundPending:
		return "Your address is confirmed", []string{"The refund goes to " + to + ". " + merchant + " sends it; this page shows it then."}
	case r.Status == invoice.RefundAwaitingApproval:
		return "Waiting for " + merchant, []string{"You entered " + to + ", and " + merchant + " decides whether the refund goes there. " +
			"Should the address be wrong, write to " + merchant + " at once."}
	}
	return "Where shall your refund go?", []string{"Enter an address of yours on this network. Do not enter the address of an exchange " +
		"unless it is one for deposits of this token on this network."}
}

// confirmation returns the step in which the payer confirms an address.
func (c *Checkout) confirmation(r invoice.RefundRecord, to invoice.Address) *refundConfirm {
	return &refundConfirm{
		To: chain.Checksum(to), Text: chain.RefundClaimText(c.chains[r.ChainKey].ID, r, to), CanAsk: r.Status == invoice.RefundAwaitingAddress,
	}
}

// parseRecipient parses the address that a payer types.
func (c *Checkout) parseRecipient(r invoice.RefundRecord, typed string) (invoice.Address, error) {
	to, err := chain.ParseAddress(compact(typed))
	if err != nil {
		return to, err
	}
	return to, c.refunds.CheckRecipient(r, to)
}

// recipientProblem returns a text about an address that cannot be taken.
func recipientProblem(err error) string {
	if field := (*invoice.FieldError)(nil); errors.As(err, &field) {
		return "Money that is sent to this address would be lost. Enter an address of your own."
	}
	return "This is not an address. It begins with 0x and has 40 digits and letters from a to f after that. Copy it, rather than typing it."
}

// signatureProblem returns a text about a signature that the payer can correct, else "".
func signatureProblem(err error) (problem string, status int) {
	switch {
	case errors.Is(err, chain.ErrSignature):
		return "This is not a signature. It begins with 0x and has 130 digits and letters after that.", http.StatusBadRequest
	case errors.Is(err, settle.ErrNotThePayer):
		return "This was signed by another account than the one that paid, or it signs another text.", http.StatusForbidden
	}
	return "", 0
}

// shortened returns what a payer typed, cut to maxTypedAddress.
func shortened(typed string) string {
	return strings.ToValidUTF8(typed[:min(len(typed), maxTypedAddress)], "")
}
