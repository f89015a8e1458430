package checkout

import (
	"context"
	"fmt"
	"net/http"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Limits of wallets' reports of sent transactions.
const (
	// ReportsOfInvoice bounds the reports per minute for one invoice.
	ReportsOfInvoice = 10
	// ReportsOfClient bounds the reports per minute of one client network.
	ReportsOfClient = 60
	// AllReports bounds the reports of all clients.
	AllReports = 600
)

// Reports stores wallets' reports of sent transactions. ledger.Tables implement it.
type Reports interface {
	// ReportTransaction stores a transaction that a wallet gave to the page of an invoice.
	ReportTransaction(ctx context.Context, invoiceID string, t ledger.ReportedTransaction) error
}

// sent takes the hash of the transaction that a wallet gave the page. Anyone can report any hash, so
// it is shown as reported, and no decision depends on it.
func (c *Checkout) sent(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	tx, err := invoice.ParseHash(r.PostForm.Get("tx"))
	if err != nil {
		return errBadForm
	}
	s, err := c.loadFor(r)
	if err != nil {
		return err
	}
	if s.invoice.Status == invoice.Drafted {
		return errNotFound
	}
	if err := c.reported.Take(r.Context(), s.invoice.MerchantID, s.invoice.ID); err != nil {
		return err
	}
	if err := c.conf.Reports.ReportTransaction(r.Context(), s.invoice.ID, ledger.ReportedTransaction{Hash: tx, At: c.conf.Now()}); err != nil {
		return fmt.Errorf("keep what a wallet sent for %s: %w", s.invoice.ID, err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
