package checkout

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"

	"github.com/quittance/quittance/internal/invoice"
)

// brand is what a merchant's profile adds to the page.
type brand struct {
	Color      string // #rrggbb, or empty
	Logo       *invoice.Logo
	Contact    string
	ContactURL template.URL
	Statement  string
}

// Style returns the style sheet of the merchant's color.
func (b brand) Style() inline { return brandStyle(b.Color) }

func newBrand(m invoice.Merchant) brand {
	b := brand{Color: m.Color, Logo: m.Logo, Contact: m.SupportContact, Statement: m.Statement}
	b.ContactURL = template.URL(invoice.ContactURL(m.SupportContact)) //nolint:gosec // https, mailto or tel
	return b
}

// refersToMerchant reports whether the texts of a state ask the payer to contact the merchant.
func (s pageInput) refersToMerchant(st state) bool {
	inTime, late := s.invoice.Arrived()
	arrived := inTime.Plus(late)
	switch st {
	case paid:
		return s.invoice.AmountRefunded.Less(s.invoice.Excess())
	case expired:
		return s.invoice.AmountRefunded.Less(arrived)
	case void:
		return arrived.IsZero() || s.invoice.AmountRefunded.Less(arrived)
	case waiting, partial, seen, unknown, checking, refunded, draft:
	}
	return false
}

// findMerchant returns the profile of a merchant, which is zero without one, and whether it may have invoices.
func (c *Checkout) findMerchant(ctx context.Context, id string) (m invoice.Merchant, known bool, err error) {
	if c.conf.Merchants == nil {
		return m, true, nil
	}
	if m, known, err = c.conf.Merchants.Find(ctx, id); err != nil {
		return m, false, fmt.Errorf("read merchant %s: %w", id, err)
	}
	return m, known, nil
}

// logo answers with the logo of the invoice's merchant. The page adds a hash of the logo to
// the address, so that browsers may cache it.
func (c *Checkout) logo(w http.ResponseWriter, r *http.Request) error {
	s, err := c.load(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.sendLogo(w, r, s.profile)
}

// sendLogo answers with a merchant's logo.
func (c *Checkout) sendLogo(w http.ResponseWriter, r *http.Request, m invoice.Merchant) error {
	if m.Logo == nil {
		return errNotFound
	}
	png, err := c.conf.Merchants.LogoPNG(r.Context(), m.ID)
	if err != nil {
		return fmt.Errorf("read the logo of %s: %w", m.ID, err)
	}
	w.Header().Set("Cache-Control", "public, max-age=86400")
	c.Write(w, r, http.StatusOK, "image/png", png)
	return nil
}

// back is the link to the merchant.
type back struct {
	Text string
	URL  string
	Host string
	Paid bool // the payer has done what the page asks for
}

// back returns the link of a state: to the return URL once a payment that covers the invoice was seen, and to the
// cancel URL otherwise. It is nil without a URL, and if its host is no longer in the merchant's list of return hosts.
func (s pageInput) back(st state) *back {
	d := s.invoice.Details
	link, text := back{URL: d.CancelURL}, "back.paid"
	switch st {
	case seen, paid:
		link.URL, link.Paid = d.ReturnURL, true
	case waiting, partial:
		text = "back.unpaid"
	case unknown, checking, refunded, expired, void, draft:
	}
	u, err := url.Parse(link.URL)
	if err != nil || link.URL == "" || s.profile.CheckReturnURLs(invoice.Details{ReturnURL: link.URL}) != nil {
		return nil
	}
	link.Text, link.Host = s.text.T(text, values{"Merchant": s.merchant()}), u.Host
	return &link
}
