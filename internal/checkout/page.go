package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// pageData is what the page's template is filled with.
type pageData struct {
	view
	Version    string
	Left       int64 // seconds until the time is up, 0 when it is or does not matter
	LeftText   string
	Refresh    int  // seconds until the script asks again
	Reload     int  // the same for browsers without scripts; 0 for never
	TestWallet bool // offer to pay with it
	Ask        *question
}

// statusData is the JSON by which the script learns whether the page has
// changed.
type statusData struct {
	State   state  `json:"state"`
	Version string `json:"version"`
	Left    int64  `json:"left"`    // seconds until the time is up
	Refresh int    `json:"refresh"` // seconds until to ask again
}

// page answers with an invoice's page.
func (c *Checkout) page(w http.ResponseWriter, r *http.Request) error {
	data, err := c.look(r)
	if err != nil {
		return err
	}
	return c.render(w, r, http.StatusOK, "page.html", data)
}

// status answers with whether an invoice's page has changed.
func (c *Checkout) status(w http.ResponseWriter, r *http.Request) error {
	data, err := c.look(r)
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

// payFromTestWallet pays the invoice, if it still waits for money, and leads
// back to its page, which tells what comes of it.
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
	http.Redirect(w, r, "/checkout/"+s.invoice.ID, http.StatusSeeOther)
	return nil
}

// look returns the page of the request's invoice as it is now.
func (c *Checkout) look(r *http.Request) (pageData, error) {
	s, err := c.load(r.Context(), r.PathValue("id"))
	if err != nil {
		return pageData{}, err
	}
	v := newView(s)
	version, err := v.version()
	if err != nil {
		return pageData{}, fmt.Errorf("encode the view: %w", err)
	}
	data := pageData{view: v, Version: version, Refresh: seconds(RefreshFinal)}
	if s.invoice.Status == invoice.Open || s.invoice.Status == invoice.Drafted {
		data.Refresh, data.Reload = seconds(RefreshOpen), seconds(RefreshPlain)
	}
	if v.State != draft {
		data.Ask = &question{InvoiceID: v.ID}
	}
	if v.Pay != nil {
		data.Left = s.invoice.ExpiresAt - s.now + 1 // the last second counts
		data.LeftText = timeLeft(data.Left)
		data.TestWallet = c.testWallet != nil && v.State == waiting
	}
	return data, nil
}

// load reads all that the page is made from. It returns errNotFound for an id
// that no invoice has.
func (c *Checkout) load(ctx context.Context, id string) (subject, error) {
	if !strings.HasPrefix(id, invoice.PrefixInvoice) || len(id) > MaxID || strings.ContainsFunc(id, notInID) {
		return subject{}, errNotFound // a database may even refuse to look for it
	}
	inv, err := c.reader.Invoice(ctx, id)
	if err != nil {
		return subject{}, fmt.Errorf("read invoice %s: %w", id, err)
	}
	ch, ok := c.chains[inv.ChainKey]
	if !ok {
		return subject{}, fmt.Errorf("invoice %s is on chain %q, which is not configured; add it to the configuration again", id, inv.ChainKey)
	}
	token, ok := ch.TokenAt(inv.Token)
	if !ok {
		return subject{}, fmt.Errorf("invoice %s is in token %s, which chain %q is not configured with; add it again", id, inv.Token, ch.Key)
	}
	if inv.Sums.Stale {
		all, err := c.reader.PaymentsOfInvoices(ctx, []string{id})
		if err != nil {
			return subject{}, fmt.Errorf("read all payments of %s: %w", id, err)
		}
		inv = inv.Recount(payments(all))
	}
	rows, err := c.reader.NewestPayments(ctx, id, MaxPayments)
	if err != nil {
		return subject{}, fmt.Errorf("read payments of %s: %w", id, err)
	}
	cursor, err := c.reader.Cursor(ctx, ch.Key)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // a chain that was never read is at 0
		return subject{}, fmt.Errorf("read cursor of %s: %w", ch.Key, err)
	}
	return subject{invoice: inv, payments: payments(rows), chain: ch, token: token,
		indexed: cursor.Indexed.Number, halted: cursor.Halted != "", now: c.now().Unix()}, nil
}

func payments(rows []store.PaymentRow) []invoice.Payment {
	list := make([]invoice.Payment, len(rows))
	for i, row := range rows {
		list[i] = row.Payment
	}
	return list
}

// notInID reports whether no id holds the character.
func notInID(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }

func seconds(d time.Duration) int { return int(d / time.Second) }
