package ledger

import (
	"context"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// minPrefix is the least length of a prefix in a search for identifiers and hashes that are evenly
	// spread.
	minPrefix = 10
	// searchRows bounds the rows that each lookup of a search reads.
	searchRows          = 200
	addressLen, hashLen = 42, 66
)

// FindInvoices returns the newest invoices that a text names: by their id or the beginning of it,
// on-chain id, reference, a transaction that paid, refunded or recorded them, the account that paid,
// their settlement or deposit address, or the id of a payment, refund, claim or event. It ignores
// spaces around the text, and its case, except for a reference. Unless merchantID is empty, it leaves
// out other merchants' invoices. The number of rows it reads is bounded.
func (q Reader) FindInvoices(ctx context.Context, text, merchantID string, limit int) ([]invoice.Invoice, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return nil, nil // an empty reference would match all
	}
	var found []invoice.Invoice
	for _, reference := range slices.Compact([]string{text, trimmed}) { // a reference may have spaces around it
		page, _, err := q.Invoices(ctx, InvoiceFilter{MerchantID: merchantID, Reference: reference, Limit: limit})
		if err != nil {
			return nil, err
		}
		found = append(found, page...)
	}
	ids, err := namedInvoices(ctx, q, strings.ToLower(trimmed), merchantID, limit)
	if err != nil {
		return nil, err
	}
	named, err := InvoicesByID(ctx, q, ids)
	for _, inv := range named {
		if merchantID == "" || inv.MerchantID == merchantID {
			found = append(found, inv)
		}
	}
	slices.SortFunc(found, func(a, b invoice.Invoice) int { return strings.Compare(b.ID, a.ID) })
	found = slices.CompactFunc(found, func(a, b invoice.Invoice) bool { return a.ID == b.ID })
	return found[:min(len(found), limit)], err
}

// namedInvoices returns the ids of invoices that a text in lower case names by anything but their
// reference. They include other merchants' invoices.
func namedInvoices(ctx context.Context, q db.Querier, text, merchantID string, limit int) ([]string, error) {
	if strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, nil // not every text is valid in a comparison of identifiers
	}
	prefix, _, _ := strings.Cut(text, "_")
	switch statement := namedBy[prefix]; {
	case prefix == "inv":
		w := db.Where{}
		w.Equal("merchant_id", merchantID)
		w.Add("id >= $%d", text)
		w.Add("id < $%d", text+db.LastID)
		return db.QueryAll(ctx, q, db.ScanID, "SELECT id FROM invoices"+w.Text()+" ORDER BY id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, limit)...)
	case statement != "":
		return db.QueryAll(ctx, q, scanOptionalID, statement, text)
	case prefix == "pay" && len(text) >= minPrefix:
		return db.QueryAll(ctx, q, scanOptionalID, "SELECT invoice_id FROM payments WHERE id >= $1 AND id < $2 LIMIT $3", text, text+db.LastID, searchRows)
	case !strings.HasPrefix(text, "0x") || len(text) < minPrefix || strings.Trim(text[2:], "0123456789abcdef") != "":
		return nil, nil
	case len(text) == addressLen:
		return invoicesOfAddress(ctx, q, text, merchantID, limit)
	}
	ids, err := invoicesOfHash(ctx, q, text)
	if err == nil && len(text) == hashLen {
		var paid []PaymentRow
		paid, _, err = NewReader(q).Payments(ctx, PaymentFilter{MerchantID: merchantID, TxHash: text, IncludePending: true, Limit: limit})
		for _, p := range paid {
			ids = append(ids, p.InvoiceID)
		}
	}
	return ids, err
}

// namedBy are the statements that find the invoice of another object, by the prefix of the
// object's id.
var namedBy = map[string]string{
	"evt": "SELECT invoice_id FROM events WHERE id = $1",
	"clm": "SELECT invoice_id FROM claims WHERE id = $1",
	"ref": "SELECT invoice_id FROM refund_records WHERE id = $1",
}

// invoicesOfAddress returns the newest invoices that settle to an address or were paid from it, and
// the one that has it as deposit address.
func invoicesOfAddress(ctx context.Context, q db.Querier, address, merchantID string, limit int) (ids []string, err error) {
	ids, err = db.QueryAll(ctx, q, db.ScanID, "SELECT invoice_id FROM deposits WHERE address = $1", address)
	if err != nil {
		return nil, err
	}
	settling, _, err := NewReader(q).Invoices(ctx, InvoiceFilter{MerchantID: merchantID, To: address, Limit: limit})
	if err != nil {
		return nil, err
	}
	for _, inv := range settling {
		ids = append(ids, inv.ID)
	}
	paid, _, err := NewReader(q).Payments(ctx, PaymentFilter{MerchantID: merchantID, From: address, IncludePending: true, Limit: limit})
	for _, p := range paid {
		ids = append(ids, p.InvoiceID)
	}
	return ids, err
}

// invoicesOfHash returns invoices with an on-chain id or a transaction that has a hash or begins with
// it.
func invoicesOfHash(ctx context.Context, q db.Querier, hash string) (ids []string, err error) {
	named := "commitment_id >= $1 AND commitment_id < $2"
	if q.OnPostgres() {
		named = firstHalf + " BETWEEN rpad(substr($1, 3, 32), 32, '0')::uuid AND rpad(substr($1, 3, 32), 32, 'f')::uuid AND " + named
	}
	statements := []string{
		"SELECT id FROM invoices WHERE " + named + " LIMIT $3",
		"SELECT payments.invoice_id FROM chains CROSS JOIN payments WHERE payments.chain_key = chains.chain_key AND tx_hash >= $1 AND tx_hash < $2 LIMIT $3",
		"SELECT invoice_id FROM refund_records WHERE tx_hash >= $1 AND tx_hash < $2 LIMIT $3",
		`SELECT intents.invoice_id FROM chain_tx_attempts CROSS JOIN intents
			WHERE intents.tx_id = chain_tx_attempts.tx_id AND tx_hash >= $1 AND tx_hash < $2 LIMIT $3`,
	}
	for _, statement := range statements {
		found, err := db.QueryAll(ctx, q, scanOptionalID, statement, hash, hash+"g", searchRows)
		if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
	}
	return ids, nil
}

// scanOptionalID reads an id that may be NULL.
func scanOptionalID(row db.Scanner) (id string, err error) {
	err = row.Scan(db.Text(&id))
	return id, err
}
