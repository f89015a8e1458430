package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/checkout/locale"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/x402"
)

// pageData is the data of the page's template.
type pageData struct {
	view
	Version    string
	Left       int64 // seconds until the invoice expires, or 0
	LeftText   string
	Refresh    int  // seconds until the script polls
	Reload     int  // seconds until browsers without scripts reload; 0: never
	TestWallet bool // offer it
	Ask        *question
	Wallets    []walletLink
	X402       string // path where programs pay; empty if they cannot
	Frame      frame
}

// statusData is the JSON that the script polls to detect changes of the page.
type statusData struct {
	State   state  `json:"state"`
	Version string `json:"version"`
	Left    int64  `json:"left"`    // seconds until the invoice expires
	Refresh int    `json:"refresh"` // seconds until the next poll
}

// page answers with an invoice's page. Programs are answered as at x402Path.
func (c *Checkout) page(w http.ResponseWriter, r *http.Request) error {
	if c.x402 != nil {
		w.Header().Add("Vary", "Accept")
		w.Header().Add("Vary", x402.HeaderSignature)
		if isProgram(r) {
			c.x402.ServeHTTP(w, r)
			return nil
		}
	}
	data, err := c.currentPage(r)
	if err != nil {
		return err
	}
	data.Frame.setHeaders(w)
	return c.render(w, r, http.StatusOK, "page.html", data)
}

// x402Path is the path below which programs pay invoices.
const x402Path = "/x402/invoices/"

// isProgram reports whether a request for a page carries a payment of the x402 protocol, or
// accepts JSON and no page.
func isProgram(r *http.Request) bool {
	if r.Header.Get(x402.HeaderSignature) != "" {
		return true
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// status answers with the statusData of an invoice.
func (c *Checkout) status(w http.ResponseWriter, r *http.Request) error {
	data, err := c.currentPage(r)
	if err != nil {
		return err
	}
	body, err := json.Marshal(statusData{State: data.State, Version: data.Version, Left: data.Left, Refresh: data.Refresh})
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	c.send(w, r, http.StatusOK, "application/json", body)
	return nil
}

// payFromTestWallet pays the invoice from the test wallet if it is due, and redirects to
// its page.
func (c *Checkout) payFromTestWallet(w http.ResponseWriter, r *http.Request) error {
	s, err := c.load(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if s.state() == waiting {
		txHash, err := c.testWallet(r.Context(), s.invoice)
		if err != nil {
			return fmt.Errorf("%w: %w", errTestWallet, err)
		}
		c.logger.InfoContext(r.Context(), "test wallet paid", "invoice", s.invoice.ID, "tx", txHash)
	}
	http.Redirect(w, r, "/checkout/"+s.invoice.ID+keepLang(r, "?"), http.StatusSeeOther) //nolint:gosec // a stored id and a language
	return nil
}

// currentPage returns the data of the invoice's page.
func (c *Checkout) currentPage(r *http.Request) (pageData, error) {
	s, err := c.loadFor(r)
	if err != nil {
		return pageData{}, err
	}
	v := newView(s)
	version, err := newView(s.in(locale.English)).version() // the same in all languages
	if err != nil {
		return pageData{}, fmt.Errorf("encode the view: %w", err)
	}
	data := pageData{view: v, Version: version, Refresh: seconds(RefreshFinal), Frame: newFrame(r, s.profile)}
	if s.invoice.Status == invoice.Open || s.invoice.Status == invoice.Drafted {
		data.Refresh, data.Reload = seconds(RefreshOpen), seconds(RefreshPlain)
	}
	if v.State != draft {
		data.Ask = &question{InvoiceID: v.ID}
	}
	if v.Pay != nil {
		data.Left = int64(s.invoice.ExpiresAt.Sub(s.now)/time.Second) + 1 // the last second is included
		data.LeftText = timeLeft(s.text, data.Left)
		data.Wallets = walletLinks(c.publicURL, "/checkout/"+v.ID)
		data.TestWallet = c.testWallet != nil && v.State == waiting
		if c.x402 != nil && c.takesX402(s.invoice.ChainKey) {
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

// load reads the input of the page, in English. The error is errNotFound if there is no
// such invoice.
func (c *Checkout) load(ctx context.Context, id string) (pageInput, error) {
	if !strings.HasPrefix(id, invoice.PrefixInvoice) || len(id) > MaxID || strings.ContainsFunc(id, isNotIDChar) {
		return pageInput{}, errNotFound // not every text is valid in a database
	}
	inv, err := c.reader.Invoice(ctx, id)
	if err != nil {
		return pageInput{}, fmt.Errorf("read invoice %s: %w", id, err)
	}
	ch, ok := c.chains[inv.ChainKey]
	if !ok {
		return pageInput{}, fmt.Errorf("invoice %s is on chain %q, which is not configured; add it to the configuration again", id, inv.ChainKey)
	}
	token, ok := ch.TokenAt(inv.Token)
	if !ok {
		return pageInput{}, fmt.Errorf("invoice %s is in token %s, which chain %q is not configured with; add it again", id, inv.Token, ch.Key)
	}
	if inv.Sums.Stale {
		all, err := c.reader.PaymentsOfInvoices(ctx, []string{id})
		if err != nil {
			return pageInput{}, fmt.Errorf("read all payments of %s: %w", id, err)
		}
		inv = inv.Recount(payments(all))
	}
	rows, err := c.reader.NewestPayments(ctx, id, MaxPayments)
	if err != nil {
		return pageInput{}, fmt.Errorf("read payments of %s: %w", id, err)
	}
	cursor, err := c.reader.Cursor(ctx, ch.Key)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // 0 if the chain was never indexed
		return pageInput{}, fmt.Errorf("read cursor of %s: %w", ch.Key, err)
	}
	merchant, err := c.findMerchant(ctx, inv.MerchantID)
	if err != nil {
		return pageInput{}, err
	}
	return pageInput{text: locale.English, invoice: inv, profile: merchant, payments: payments(rows), chain: ch, token: token,
		indexed: cursor.Indexed.Number, final: cursor.Confirmed, halted: cursor.Halted != "", now: invoice.Unix(c.now().Unix())}, nil
}

func payments(rows []store.PaymentRow) []invoice.Payment {
	list := make([]invoice.Payment, len(rows))
	for i, row := range rows {
		list[i] = row.Payment
	}
	return list
}

// isNotIDChar reports whether the character does not occur in ids.
func isNotIDChar(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }

func seconds(d time.Duration) int { return int(d / time.Second) }
