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
	// spread. With the last characters as well, minHead is enough.
	minPrefix, minHead = 10, 6
	// searchRows bounds the rows that each lookup of a search reads.
	searchRows = 200
	// searchAddresses bounds the addresses that a search finds by their beginning.
	searchAddresses = 10
	// searchTails bounds the invoices whose ids are compared with both ends of one.
	searchTails = 10_000
	addressLen  = 42
)

// name is what a search takes for an id, a hash or an address: all of it, its beginning, or both of its ends as pages
// show it. It is in lower case.
type name struct{ head, tail string }

// nameIn returns the name that a text may be, and whether it is one.
func nameIn(text string) (n name, ok bool) {
	text = strings.ToLower(strings.ReplaceAll(text, "...", "…"))
	n.head, n.tail, _ = strings.Cut(text, "…")
	return n, !strings.ContainsFunc(n.head+n.tail, func(c rune) bool { return c <= ' ' || c > '~' }) // other texts are not valid in a comparison
}

// isLong reports whether few identifiers that are evenly spread can have the name.
func (n name) isLong() bool {
	return len(n.head) >= minPrefix || len(n.head) >= minHead && n.tail != ""
}

// isHex reports whether the name is of a hash or an address.
func (n name) isHex() bool {
	digits, ok := strings.CutPrefix(n.head, "0x")
	return ok && strings.Trim(digits+n.tail, "0123456789abcdef") == ""
}

// find returns the ids that a query selects, of searchRows rows with the name in a column and another condition, if any.
func (n name) find(ctx context.Context, q db.Querier, query, column, where string) ([]string, error) {
	named := column + " >= $1 AND " + column + " < $2 AND substr(" + column + ", length(" + column + ") - length($3) + 1) = $3"
	if where != "" {
		named = where + " AND " + named
	}
	return db.QueryAll(ctx, q, scanOptionalID, query+" WHERE "+named+" LIMIT $4", n.head, n.head+db.LastID, n.tail, searchRows)
}

// paymentsOfChains and inChain select payments by their transaction. The index begins with the chain.
const (
	paymentsOfChains = " FROM chains CROSS JOIN payments"
	inChain          = "payments.chain_key = chains.chain_key"
)

// FindInvoices returns the newest invoices that a text names: by their id, on-chain id, a transaction that paid, refunded
// or recorded them, the account that paid, their settlement or deposit address, or the id of a payment, refund, claim or
// event, or by the beginning of those, or by both ends with … between; by the beginning of their reference; or by the
// beginning of each word of their description or e-mail address. It ignores spaces around the text, and its case, except
// for a reference. Unless merchantID is empty, it leaves out other merchants' invoices. The number of rows it reads is
// bounded.
func (q Reader) FindInvoices(ctx context.Context, text, merchantID string, limit int) ([]invoice.Invoice, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return nil, nil // an empty reference would match all
	}
	ids, err := invoicesOfReference(ctx, q, text, trimmed, merchantID)
	if err != nil {
		return nil, err
	}
	if n, ok := nameIn(trimmed); ok {
		named, err := namedInvoices(ctx, q, n, merchantID, limit)
		if err != nil {
			return nil, err
		}
		ids = append(ids, named...)
	}
	described, err := invoicesOfWords(ctx, q, trimmed, merchantID)
	if err != nil {
		return nil, err
	}
	ids = append(ids, described...)
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
	ids = slices.Compact(ids)
	return q.visible(ctx, ids, merchantID, limit)
}

// visible returns the first invoices of a list of ids that a merchant may see. The empty merchant is the operator.
func (q Reader) visible(ctx context.Context, ids []string, merchantID string, limit int) (found []invoice.Invoice, err error) {
	for chunk := range slices.Chunk(ids, searchRows) {
		all, err := InvoicesByID(ctx, q, chunk)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(all, func(a, b invoice.Invoice) int { return strings.Compare(b.ID, a.ID) })
		for _, inv := range all {
			if merchantID == "" || inv.MerchantID == merchantID {
				found = append(found, inv)
			}
		}
		if len(found) >= limit {
			break
		}
	}
	return found[:min(len(found), limit)], nil
}

// invoicesOfReference returns the ids of the newest invoices with a reference, with or without the spaces around it, and
// of the first with a reference that begins with it, in its case, in capitals or in small letters.
func invoicesOfReference(ctx context.Context, q Reader, text, trimmed, merchantID string) (ids []string, err error) {
	for _, reference := range slices.Compact([]string{text, trimmed}) { // a reference may have spaces around it
		page, _, err := q.Invoices(ctx, InvoiceFilter{MerchantID: merchantID, Reference: reference, Limit: searchRows})
		if err != nil {
			return nil, err
		}
		for _, inv := range page {
			ids = append(ids, inv.ID)
		}
	}
	index := "invoice_details_by_reference"
	where := db.Where{}
	if merchantID != "" {
		index = "invoice_details_by_merchant_reference"
		where.Equal("merchant_id", merchantID)
	}
	begins := []string{trimmed, strings.ToUpper(trimmed), strings.ToLower(trimmed)}
	slices.Sort(begins)
	for _, begin := range slices.Compact(begins) {
		w := db.Where{Conditions: slices.Clone(where.Conditions), Args: slices.Clone(where.Args)}
		w.Add("reference >= $%d", begin)
		w.Add("reference < $%d", afterPrefix(begin))
		found, err := db.QueryAll(ctx, q, db.ScanID, "SELECT invoice_id FROM invoice_details "+q.IndexedBy(index)+w.Text()+
			" AND reference IS NOT NULL ORDER BY reference LIMIT "+db.Parameter(w.Next()), append(w.Args, searchRows)...)
		if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
	}
	return ids, nil
}

// namedInvoices returns the ids of invoices with a name. They include other merchants' invoices.
func namedInvoices(ctx context.Context, q db.Querier, n name, merchantID string, limit int) ([]string, error) {
	prefix, _, _ := strings.Cut(n.head, "_")
	switch statement := namedBy[prefix]; {
	case prefix == "inv":
		w := db.Where{}
		w.Equal("merchant_id", merchantID)
		w.Add("id >= $%d", n.head)
		w.Add("id < $%d", n.head+db.LastID)
		if n.tail != "" {
			limit = searchTails
		}
		ids, err := db.QueryAll(ctx, q, db.ScanID, "SELECT id FROM invoices"+w.Text()+" ORDER BY id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, limit)...)
		return slices.DeleteFunc(ids, func(id string) bool { return !strings.HasSuffix(id, n.tail) }), err
	case statement != "" && n.isLong():
		return n.find(ctx, q, statement, "id", "")
	case !n.isHex() || !n.isLong():
		return nil, nil
	}
	ids, err := invoicesOfAddress(ctx, q, n, merchantID, limit)
	if err != nil || len(n.head) == addressLen {
		return ids, err
	}
	of, err := invoicesOfHash(ctx, q, n)
	return append(ids, of...), err
}

// namedBy are the queries that select the invoice of another object, by the prefix of the object's id.
var namedBy = map[string]string{
	"evt": "SELECT invoice_id FROM events",
	"clm": "SELECT invoice_id FROM claims",
	"ref": "SELECT invoice_id FROM refund_records",
	"pay": "SELECT invoice_id FROM payments",
}

// invoicesOfAddress returns the newest invoices that settle to an address with a name or were paid from it, and those
// that have it as deposit address.
func invoicesOfAddress(ctx context.Context, q db.Querier, n name, merchantID string, limit int) (ids []string, err error) {
	addresses, err := addressesNamed(ctx, q, n)
	for _, address := range addresses {
		deposits, err := db.QueryAll(ctx, q, db.ScanID, "SELECT invoice_id FROM deposits WHERE address = $1", address)
		if err != nil {
			return nil, err
		}
		ids = append(ids, deposits...)
		settling, _, err := NewReader(q).Invoices(ctx, InvoiceFilter{MerchantID: merchantID, To: address, Limit: limit})
		if err != nil {
			return nil, err
		}
		for _, inv := range settling {
			ids = append(ids, inv.ID)
		}
		paid, _, err := NewReader(q).Payments(ctx, PaymentFilter{MerchantID: merchantID, From: address, IncludePending: true, Limit: limit})
		if err != nil {
			return nil, err
		}
		for _, p := range paid {
			ids = append(ids, p.InvoiceID)
		}
	}
	return ids, err
}

// addressesNamed returns the addresses with a name that got or sent payments, at most searchAddresses.
func addressesNamed(ctx context.Context, q db.Querier, n name) (found []string, err error) {
	if len(n.head) == addressLen {
		return []string{n.head}, nil
	}
	for _, in := range []struct{ table, index, column string }{
		{"deposits", "", "address"}, {"invoices", "invoices_by_address", "merchant_address"}, {"payments", "payments_by_payer", "from_address"},
	} {
		all, err := distinct(ctx, q, in.table, in.index, in.column, nil, n.head, searchRows)
		if err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(all, func(address string) bool { return !strings.HasSuffix(address, n.tail) })...)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(len(found), searchAddresses)], nil
}

// FindPayments returns the newest payments that a text names as FindInvoices takes it: by their id, transaction or payer.
// They may be unconfirmed, or without an invoice.
func (q Reader) FindPayments(ctx context.Context, text, merchantID string, limit int) (found []PaymentRow, err error) {
	n, ok := nameIn(strings.TrimSpace(text))
	if !ok || !n.isLong() {
		return nil, nil
	}
	var ids []string
	switch {
	case strings.HasPrefix(n.head, invoice.PrefixPayment):
		ids, err = n.find(ctx, q, "SELECT id FROM payments", "id", "")
	case n.isHex():
		ids, err = paymentsOfHash(ctx, q, n, merchantID)
	}
	if err != nil {
		return nil, err
	}
	rows, err := PaymentsByID(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b PaymentRow) int { return strings.Compare(b.SeenID, a.SeenID) })
	for _, p := range rows {
		if len(found) == limit {
			break
		}
		if seen, err := sees(ctx, q, merchantID, p); err != nil {
			return nil, err
		} else if seen {
			found = append(found, p)
		}
	}
	return found, nil
}

// paymentsOfHash returns the ids of payments with a transaction, or the newest that a merchant has of payers, with a
// name. Of a payer, it finds those among the newest db.MaxExamined payments of all merchants.
func paymentsOfHash(ctx context.Context, q db.Querier, n name, merchantID string) ([]string, error) {
	ids, err := n.find(ctx, q, "SELECT id"+paymentsOfChains, "tx_hash", inChain)
	if err != nil {
		return nil, err
	}
	addresses, err := addressesNamed(ctx, q, n)
	for _, address := range addresses {
		of, _, err := NewReader(q).Payments(ctx, PaymentFilter{MerchantID: merchantID, From: address, IncludePending: true, IncludeUnattributed: true, Limit: searchRows})
		if err != nil {
			return nil, err
		}
		for _, p := range of {
			ids = append(ids, p.ID)
		}
	}
	return ids, err
}

// invoicesOfHash returns invoices with an on-chain id or a transaction that has a name.
func invoicesOfHash(ctx context.Context, q db.Querier, n name) (ids []string, err error) {
	half := ""
	if q.OnPostgres() {
		half = firstHalf + " BETWEEN rpad(substr($1, 3, 32), 32, '0')::uuid AND rpad(substr($1, 3, 32), 32, 'f')::uuid"
	}
	for _, in := range []struct{ query, column, where string }{
		{"SELECT id FROM invoices", "commitment_id", half},
		{"SELECT payments.invoice_id" + paymentsOfChains, "tx_hash", inChain},
		{"SELECT invoice_id FROM refund_records", "tx_hash", ""},
		{"SELECT intents.invoice_id FROM chain_tx_attempts CROSS JOIN intents", "tx_hash", "intents.tx_id = chain_tx_attempts.tx_id"},
	} {
		found, err := n.find(ctx, q, in.query, in.column, in.where)
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
