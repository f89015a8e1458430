package checkout

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/x402"
)

// pageData is the data of the page's template.
type pageData struct {
	view
	Version    string
	Left       int64 // seconds until the invoice expires, or 0
	LeftText   string
	WarnBelow  int64 // the page warns if fewer seconds are left
	Events     bool  // the page can have a stream of statuses
	Refresh    int64 // seconds until the script polls
	Reload     int64 // seconds until browsers without scripts reload; 0: never
	TestWallet bool  // offer it
	Ask        *question
	Wallets    []walletLink
	Codes      []qrChoice
	Again      string // path of the payment link where a new invoice is made; empty without
	AskNew     bool   // the merchant can be asked for another invoice
	X402       string // path where programs pay; empty if they cannot
	Frame      frame
}

// Soon reports whether the page warns that the time is almost up.
func (d pageData) Soon() bool { return d.Left <= d.WarnBelow }

// page answers with an invoice's page. Programs are answered as at x402Path.
func (c *Checkout) page(w http.ResponseWriter, r *http.Request) error {
	if c.conf.X402 != nil {
		w.Header().Add("Vary", "Accept")
		w.Header().Add("Vary", x402.HeaderSignature)
		if isProgram(r) {
			c.conf.X402.ServeHTTP(w, r)
			return nil
		}
	}
	data, err := c.currentPage(r)
	if err != nil {
		return err
	}
	if r.Method == http.MethodGet && data.State != draft {
		c.conf.Opened(data.ID)
	}
	data.Frame.setHeaders(w)
	return c.render(w, r, http.StatusOK, "page.html", data)
}

// x402Path is the path below which programs pay invoices.
const x402Path = "/x402/invoices/"

// isProgram reports whether a request for a page carries a payment of the x402 protocol, or accepts JSON and no page.
func isProgram(r *http.Request) bool {
	if r.Header.Get(x402.HeaderSignature) != "" {
		return true
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// payFromTestWallet pays the invoice from the test wallet if it is due, and redirects to its page.
func (c *Checkout) payFromTestWallet(w http.ResponseWriter, r *http.Request) error {
	s, err := c.load(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if s.state() == waiting {
		txHash, err := c.conf.TestWallet(r.Context(), s.invoice)
		if err != nil {
			return fmt.Errorf("%w: %w", errTestWallet, err)
		}
		c.conf.Logger.InfoContext(r.Context(), "test wallet paid", "invoice", s.invoice.ID, "tx", txHash)
	}
	return lead(w, r, "/checkout/"+s.invoice.ID+keepLang(r, "?"))
}

// currentPage returns the data of the invoice's page.
func (c *Checkout) currentPage(r *http.Request) (pageData, error) {
	s, err := c.loadFor(r)
	if err != nil {
		return pageData{}, err
	}
	v := newView(s)
	status, err := s.status()
	if err != nil {
		return pageData{}, err
	}
	data := pageData{view: v, Version: status.Version, Left: status.Left, Refresh: status.Refresh, WarnBelow: seconds(WarnBefore), Events: c.open != nil, Frame: newFrame(r, s.profile)}
	switch {
	case s.isFinal():
	case v.Pay != nil:
		data.Reload = seconds(RefreshPaying)
	default:
		data.Reload = seconds(RefreshPlain)
	}
	if v.State != draft {
		data.Ask = &question{InvoiceID: v.ID}
	}
	if data.Again, err = c.linkAgain(r.Context(), s, data.Frame); err != nil {
		return pageData{}, err
	}
	data.AskNew = data.Again == "" && v.State == expired && !v.Refers
	if v.Pay != nil {
		data.LeftText = timeLeft(s.text, data.Left)
		data.Wallets = walletLinks(c.conf.PublicURL, "/checkout/"+v.ID)
		data.Codes = v.Pay.codes(c.baseURL(r) + "/checkout/" + v.ID)
		data.TestWallet = c.conf.TestWallet != nil && v.State == waiting
		if c.conf.X402 != nil && c.conf.TakesX402(s.invoice.ChainKey) {
			data.X402 = x402Path + s.invoice.ID
		}
	}
	return data, nil
}

// loadFor reads the input of the page that a request names, in its language.
func (c *Checkout) loadFor(r *http.Request) (pageInput, error) {
	s, err := c.load(r.Context(), r.PathValue("id"))
	return s.in(locale.For(r)), err
}

// in returns the input with the texts of a language.
func (s pageInput) in(text *locale.Text) pageInput {
	s.text = text
	return s
}

// keepLang returns the parameter lang of a request's address after a separator, or "".
func keepLang(r *http.Request, separator string) string {
	if !r.URL.Query().Has("lang") {
		return ""
	}
	return separator + "lang=" + locale.For(r).Lang()
}

// isInvoiceID reports whether a text may be the id of an invoice.
func isInvoiceID(id string) bool {
	return strings.HasPrefix(id, invoice.PrefixInvoice) && len(id) <= MaxID && !strings.ContainsFunc(id, isNotIDChar)
}

// load reads the input of the page, in English. The error is errNotFound if there is no such invoice.
func (c *Checkout) load(ctx context.Context, id string) (pageInput, error) {
	if !isInvoiceID(id) {
		return pageInput{}, errNotFound // not every text is valid in a database
	}
	inv, err := c.conf.Reader.Invoice(ctx, id)
	if err != nil {
		return pageInput{}, fmt.Errorf("read invoice %s: %w", id, err)
	}
	ch, token, err := c.tokenAt("invoice "+id, inv.ChainKey, inv.Token)
	if err != nil {
		return pageInput{}, err
	}
	if inv.Sums.Stale {
		all, err := c.conf.Reader.PaymentsOfInvoices(ctx, []string{id})
		if err != nil {
			return pageInput{}, fmt.Errorf("read all payments of %s: %w", id, err)
		}
		inv = inv.Recount(payments(all))
	}
	s := pageInput{text: locale.English(), invoice: inv, chain: ch, token: token}
	if err := c.readPayments(ctx, &s); err != nil {
		return pageInput{}, err
	}
	if s.refunds, err = c.refundsOf(ctx, inv); err != nil {
		return pageInput{}, err
	}
	if s.waived, err = c.conf.Reader.IsWaived(ctx, inv); err != nil {
		return pageInput{}, fmt.Errorf("read the waiver of %s: %w", id, err)
	}
	if s.following, err = c.follow(ctx, ch.Key); err != nil {
		return pageInput{}, err
	}
	if s.profile, _, err = c.findMerchant(ctx, inv.MerchantID); err != nil {
		return pageInput{}, err
	}
	s.now = invoice.Unix(c.conf.Now().Unix())
	return s, nil
}

// tokenAt returns the chain with a key and its token with a contract, which an object has.
func (c *Checkout) tokenAt(object, chainKey string, contract invoice.Address) (chain.Chain, chain.Token, error) {
	ch, ok := c.chains[chainKey]
	if !ok {
		return ch, chain.Token{}, fmt.Errorf("%s is on chain %q, which is not configured; add it to the configuration again", object, chainKey)
	}
	token, ok := ch.TokenAt(contract)
	if !ok {
		return ch, token, fmt.Errorf("%s is in token %s, which chain %q is not configured with; add it again", object, contract, ch.Key)
	}
	return ch, token, nil
}

// readPayments reads the newest payments of the page's invoice, and while it is open those that may be meant for it.
func (c *Checkout) readPayments(ctx context.Context, s *pageInput) error {
	if s.invoice.Status == invoice.Open && !s.invoice.IsDeposit() {
		rows, err := c.conf.Reader.UnattributedTo(ctx, s.invoice, maxUnmatched)
		if err != nil {
			return fmt.Errorf("read unattributed payments near %s: %w", s.invoice.ID, err)
		}
		s.others = payments(rows)
	}
	if s.invoice.Sums.Payments > 0 {
		rows, err := c.conf.Reader.NewestPayments(ctx, s.invoice.ID, MaxPayments)
		if err != nil {
			return fmt.Errorf("read payments of %s: %w", s.invoice.ID, err)
		}
		s.payments, s.awaited = payments(rows), awaitedUntil(rows)
	}
	return nil
}

// refundsOf returns the newest confirmed refunds of an invoice's payments.
func (c *Checkout) refundsOf(ctx context.Context, inv invoice.Invoice) ([]invoice.RefundRecord, error) {
	if inv.AmountRefunded.IsZero() {
		return nil, nil
	}
	refunds, err := c.conf.Reader.RefundRecords(ctx, ledger.RefundFilter{InvoiceID: inv.ID, Status: invoice.RefundConfirmed, Limit: MaxRefunds})
	return refunds, db.During("read refunds of "+inv.ID, err)
}

func payments(rows []ledger.PaymentRow) []invoice.Payment {
	return db.Each(rows, func(row ledger.PaymentRow) invoice.Payment { return row.Payment })
}

// isNotIDChar reports whether the character does not occur in ids.
func isNotIDChar(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
