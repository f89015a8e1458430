package ledger

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// ClaimRow is a payer's statement that a payment without an invoice is for their invoice.
type ClaimRow struct {
	ID         string // in the order of the claims
	PaymentID  string
	InvoiceID  string
	MerchantID string // of the invoice
	Signed     bool   // the account that paid has signed the claim
	At         time.Time

	// AttributedTo is the invoice that the payment belongs to by now, or empty. It is read and not written.
	AttributedTo string
}

var claimTable = db.NewTable("claims", func(c *ClaimRow) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&c.ID)),
		db.Col("payment_id", db.Text(&c.PaymentID)),
		db.Col("invoice_id", db.Text(&c.InvoiceID)),
		db.Col("merchant_id", db.Text(&c.MerchantID)),
		db.Col("signed", db.Bool(&c.Signed)),
		db.Col("created_at", db.Seconds(&c.At)),
		db.Expr("payments.invoice_id", db.Text(&c.AttributedTo)),
	}
})

var selectClaims = "SELECT " + claimTable.Of("claims") + claimTables

// claimTables joins each claim with its payment. Every claim has a payment, but a left join makes the
// databases begin with the claims.
const claimTables = " FROM claims LEFT JOIN payments ON payments.id = claims.payment_id"

// SaveClaim inserts a claim, or marks an existing one as signed. The chain's cursor must be locked.
func SaveClaim(ctx context.Context, tx *db.Tx, c ClaimRow) error {
	err := claimTable.Insert(ctx, tx, `ON CONFLICT (payment_id, invoice_id) DO UPDATE SET
		signed = CASE WHEN excluded.signed = 1 THEN 1 ELSE claims.signed END`, c)
	if err != nil {
		return err
	}
	return RefreshItems(ctx, tx, c.PaymentID)
}

// OpenClaimsOfInvoice returns up to limit of the invoice's claims to payments that belong to no invoice.
func OpenClaimsOfInvoice(ctx context.Context, q db.Querier, invoiceID string, limit int) ([]ClaimRow, error) {
	return db.QueryAll(ctx, q, claimTable.Scan, selectClaims+" WHERE claims.invoice_id = $1 AND payments.invoice_id IS NULL LIMIT $2", invoiceID, limit)
}

// ClaimsOfPayments returns up to limit claims of each payment, by payment: signed ones first, then the oldest. Unless
// merchantID is empty, it leaves out claims for other merchants' invoices.
func (q Reader) ClaimsOfPayments(ctx context.Context, paymentIDs []string, merchantID string, limit int) (map[string][]ClaimRow, error) {
	found := make(map[string][]ClaimRow)
	claimed, err := whichClaimed(ctx, q, paymentIDs)
	if err != nil {
		return nil, err
	}
	for _, id := range claimed {
		if found[id], err = claimsOf(ctx, q, id, merchantID, limit); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// whichClaimed returns the ids of the payments that have claims.
func whichClaimed(ctx context.Context, q db.Querier, paymentIDs []string) ([]string, error) {
	rows := db.Each(paymentIDs, func(id string) []any { return []any{id} })
	found, err := q.WhichExist(ctx, []string{"payment"}, rows, "claims WHERE payment_id = payment")
	claimed := db.Each(found, func(n int) string { return paymentIDs[n] })
	return claimed, err
}

// claimsOf returns the claims of a payment as ClaimsOfPayments does.
func claimsOf(ctx context.Context, q db.Querier, paymentID, merchantID string, limit int) ([]ClaimRow, error) {
	w := db.Where{}
	w.Equal("claims.payment_id", paymentID)
	w.Equal("claims.merchant_id", merchantID)
	return db.QueryAll(ctx, q, claimTable.Scan, selectClaims+w.Text()+
		" ORDER BY claims.signed DESC, claims.id LIMIT "+db.Parameter(w.Next()), append(w.Args, limit)...)
}

// ClaimFilter selects claims. Empty fields match all.
type ClaimFilter struct {
	MerchantID string
	PaymentID  string
	Before     string // a claim's id; those listed were made before it
	Limit      int
}

// Claims lists claims, newest first.
func (q Reader) Claims(ctx context.Context, f ClaimFilter) ([]ClaimRow, error) {
	w := db.Where{}
	w.Equal("claims.merchant_id", f.MerchantID)
	w.Equal("claims.payment_id", f.PaymentID)
	w.Below("claims.id", f.Before)
	return db.QueryAll(ctx, q, claimTable.Scan, selectClaims+w.Text()+
		" ORDER BY claims.id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
}

// PaymentsToClaim returns up to limit payments of a transaction that a claim for the invoice can refer
// to: the invoice's first, then the signer's, then the largest.
func PaymentsToClaim(ctx context.Context, q db.Querier, inv invoice.Invoice, tx invoice.Hash, signer invoice.Address, limit int) ([]PaymentRow, error) {
	return db.QueryAll(ctx, q, paymentTable.Scan, paymentTable.Select()+`
		WHERE tx_hash = $1 AND chain_key = $2 AND to_address = $3 AND token = $4
		ORDER BY CASE WHEN invoice_id = $5 THEN 0 WHEN from_address = $6 THEN 1 ELSE 2 END, length(amount) DESC, amount DESC, ordinal LIMIT $7`,
		tx.String(), inv.ChainKey, inv.Merchant.String(), inv.Token.String(), inv.ID, signer.String(), limit)
}

// InvoiceClaims reports whether the invoice has a claim to the payment.
func (q Reader) InvoiceClaims(ctx context.Context, invoiceID, paymentID string) (bool, error) {
	found, err := q.WhichExist(ctx, []string{"payment", "invoice"}, [][]any{{paymentID, invoiceID}},
		"claims WHERE payment_id = payment AND invoice_id = invoice")
	return len(found) > 0, err
}
