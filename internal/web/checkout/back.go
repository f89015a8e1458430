package checkout

import (
	"net/url"

	"github.com/quittance/quittance/internal/invoice"
)

// back is the link to the merchant.
type back struct {
	Text string
	URL  string
	Host string
	Paid bool // the payer has done what the page asks for
}

// back returns the link of a state: to the return URL once a payment that covers the invoice was seen,
// and to the cancel URL otherwise. It is nil without a URL, and if its host is no longer in the
// merchant's list of return hosts.
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
