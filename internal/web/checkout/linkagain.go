package checkout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// linkAgain returns the path of the payment link where a payer can begin again after the invoice has
// expired. It is "" without such a link, and once money for the invoice has arrived.
func (c *Checkout) linkAgain(ctx context.Context, s pageInput, f frame) (string, error) {
	inTime, late := s.invoice.Arrived()
	if c.conf.Links == nil || s.invoice.Status != invoice.Expired || !inTime.IsZero() || !late.IsZero() {
		return "", nil
	}
	l, err := c.conf.Links.OfInvoice(ctx, s.invoice)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the payment link of %s: %w", s.invoice.ID, err)
	case l.Archived:
		return "", nil
	}
	path := "/pay/" + l.MerchantID + "/" + l.Slug
	if l.IsFree() {
		amount := s.major(s.invoice.Amount)
		if _, decimals, _ := strings.Cut(amount, "."); len(decimals) == len("000") {
			amount += "0" // in some languages three digits may be thousands
		}
		return path + f.query("amount", amount), nil
	}
	return path + f.query(), nil
}
