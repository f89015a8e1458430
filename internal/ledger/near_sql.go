package ledger

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// nearAmounts is how many different amounts above a transfer's, and how many below it, are searched.
	nearAmounts = 3
	// nearLimit is how many invoices of each amount are returned, the newest ones.
	nearLimit = 10
)

// NearLookup is a search for the invoices that a transfer could be meant for.
type NearLookup struct {
	Transfer      invoice.Transfer
	CreatedBefore time.Time // of the invoices
}

// nearColumns are the first columns of a lookup in the table wanted.
var nearColumns = []string{"n BIGINT", "chain", "receiver", "coin", "moved"}

// values returns the values of nearColumns for the nth lookup.
func (l NearLookup) values(n int) []any {
	t := l.Transfer
	return []any{int64(n), t.ChainKey, t.To.String(), t.Token.String(), t.Amount.String()}
}

// firstNewer returns the first id of objects created at CreatedBefore.
func (l NearLookup) firstNewer() string {
	return invoice.FirstID(invoice.PrefixInvoice, l.CreatedBefore)
}

// NearInvoices returns, for each lookup, direct invoices of the transfer's receiver, chain and token
// for which the payer could have meant it though no rule attributes it, without their line items:
// unpaid ones with its amount or the next amounts above and below, partly paid ones, and closed ones
// with exactly its amount. Of equal amounts it takes the newest. The number of rows it reads for a
// lookup is bounded. Unless merchantID is empty, it leaves out other merchants' invoices.
func (q Reader) NearInvoices(ctx context.Context, lookups []NearLookup, merchantID string) ([][]invoice.NearInvoice, error) {
	ids := make([][]string, len(lookups))
	for _, find := range []func(context.Context, db.Querier, []NearLookup) ([][]string, error){unpaidNear, partlyPaidNear, closedNear} {
		found, err := find(ctx, q, lookups)
		if err != nil {
			return nil, err
		}
		for n := range found {
			ids[n] = append(ids[n], found[n]...)
		}
	}
	byID, err := invoicesByID(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	near := make([][]invoice.NearInvoice, len(lookups))
	for n, l := range lookups {
		taken := make(map[string]bool)
		for _, id := range ids[n] {
			inv, ok := byID[id]
			wanted := ok && !taken[id] && (merchantID == "" || inv.MerchantID == merchantID)
			if wanted && !inv.IsDeposit() && inv.ChainKey == l.Transfer.ChainKey && inv.Token == l.Transfer.Token {
				taken[id] = true
				near[n] = append(near[n], invoice.NearInvoice{
					Invoice: inv, Asks: []invoice.Amount{inv.Remaining, inv.RemainingTransfer},
					Covered: inv.Status == invoice.Paid || inv.Covered(),
				})
			}
		}
	}
	return near, nil
}

// invoicesByID returns the invoices of all lists, without their line items.
func invoicesByID(ctx context.Context, q db.Querier, lists [][]string) (map[string]invoice.Invoice, error) {
	byID := make(map[string]invoice.Invoice)
	var ids []string
	for _, list := range lists {
		for _, id := range list {
			if _, known := byID[id]; !known {
				byID[id] = invoice.Invoice{}
				ids = append(ids, id)
			}
		}
	}
	clear(byID)
	found, err := InvoicesWithoutLines(ctx, q, ids)
	for _, inv := range found {
		byID[inv.ID] = inv
	}
	return byID, err
}

// nearRows selects the unpaid invoices of an address with amounts of the same number of digits. It
// repeats the condition of the index invoices_near.
func nearRows(q db.Querier, digits string) string {
	return " FROM invoices " + q.IndexedBy("invoices_near") + "WHERE merchant_address = receiver AND chain_key = chain AND token = coin AND status IN ('open', 'expired') AND length(amount) = " +
		digits + " AND amount "
}

// unpaidNear returns the newest unpaid invoices of each of the amounts near the lookups'.
func unpaidNear(ctx context.Context, q db.Querier, lookups []NearLookup) ([][]string, error) {
	rows := make([][]any, len(lookups))
	for n, l := range lookups {
		rows[n] = l.values(n)
	}
	// Numbers of the same length compare like their texts. The next amount has the same number of digits,
	// or one more or less: all numbers sort below a letter, in every collation.
	above := fmt.Sprintf("coalesce((SELECT amount%s> found ORDER BY amount LIMIT 1), (SELECT amount%s> '' ORDER BY amount LIMIT 1))",
		nearRows(q, "length(found)"), nearRows(q, "length(found) + 1"))
	below := fmt.Sprintf("coalesce((SELECT amount%s< found ORDER BY amount DESC LIMIT 1), (SELECT amount%s< 'a' ORDER BY amount DESC LIMIT 1))",
		nearRows(q, "length(found)"), nearRows(q, "length(found) - 1"))
	first := "moved"
	if q.OnPostgres() { // it needs one collation in all rows: the column's
		first = "coalesce((SELECT amount FROM invoices WHERE FALSE), moved)"
	}
	walk := func(name, next string) string {
		return fmt.Sprintf(`SELECT found FROM (WITH RECURSIVE %[1]s (step, found) AS (
			SELECT 0, %[4]s UNION ALL SELECT step + 1, %[2]s FROM %[1]s WHERE step < %[3]d AND found IS NOT NULL
		) SELECT found FROM %[1]s WHERE step > 0) AS %[1]s_found WHERE found IS NOT NULL`, name, next, nearAmounts, first)
	}
	amounts, err := lookUp(ctx, q, nearColumns, rows, "SELECT string_agg(found, ' ') FROM ("+walk("listed_above", above)+" UNION ALL "+walk("listed_below", below)+") AS listed")
	if err != nil {
		return nil, err
	}
	var byAmount [][]any
	for n, l := range lookups {
		for _, amount := range append(strings.Fields(amounts[n]), l.Transfer.Amount.String()) {
			values := l.values(n)
			values[len(values)-1] = amount
			byAmount = append(byAmount, append(values, l.firstNewer()))
		}
	}
	return listInvoices(ctx, q, append(nearColumns, "newer"), byAmount, nearLimit,
		fmt.Sprintf("SELECT id FROM (SELECT id%s= moved AND id < newer ORDER BY id DESC LIMIT %d) AS listed", nearRows(q, "length(moved)"), nearLimit))
}

// partlyPaidNear returns the newest invoices with a remainder due.
func partlyPaidNear(ctx context.Context, q db.Querier, lookups []NearLookup) ([][]string, error) {
	rows := make([][]any, len(lookups))
	for n, l := range lookups {
		rows[n] = append(l.values(n), l.firstNewer())
	}
	return listInvoices(ctx, q, append(nearColumns, "newer"), rows, nearLimit, fmt.Sprintf(`SELECT id FROM (SELECT id FROM invoices `+q.IndexedBy("invoices_rare")+`
		WHERE merchant_address = receiver AND chain_key = chain AND token = coin AND remaining IS NOT NULL AND `+isRare+` AND id < newer
		ORDER BY id DESC LIMIT %d) AS listed`, nearLimit))
}

// closedNear returns the invoices with exactly the amount that were closed last.
func closedNear(ctx context.Context, q db.Querier, lookups []NearLookup) ([][]string, error) {
	rows := make([][]any, len(lookups))
	for n, l := range lookups {
		rows[n] = append(l.values(n), l.firstNewer())
	}
	return listInvoices(ctx, q, append(nearColumns, "newer"), rows, nearLimit, fmt.Sprintf(`SELECT invoice_id AS id FROM (SELECT invoice_id FROM transfer_amounts `+q.IndexedBy("transfer_amounts_by_base")+`
		WHERE base = moved AND merchant_address = receiver AND chain_key = chain AND token = coin AND closed_block IS NOT NULL AND remainder = 0 AND invoice_id < newer
		ORDER BY closed_block DESC LIMIT %d) AS listed`, nearLimit))
}

// UnattributedTo looks at the newest payments to the settlement address of an invoice, in blocks that were
// read after it was created, and returns those that no rule and no person has decided about.
func (q Reader) UnattributedTo(ctx context.Context, inv invoice.Invoice, limit int) ([]PaymentRow, error) {
	return q.unattributedAmong(ctx, q.IndexedBy("payments_unattributed_to")+`WHERE to_address = $1 AND chain_key = $2 AND block_number > $3
		AND invoice_id IS NULL ORDER BY block_number DESC LIMIT $4`, inv.Merchant.String(), inv.ChainKey, int64(inv.FromBlock), limit)
}

// NewestUnattributed returns the same of the payments of a chain that were read last.
func (q Reader) NewestUnattributed(ctx context.Context, chainKey string, limit int) ([]PaymentRow, error) {
	return q.unattributedAmong(ctx, q.IndexedBy("payments_unattributed_by_chain")+`WHERE chain_key = $1
		AND invoice_id IS NULL ORDER BY seen_id DESC LIMIT $2`, chainKey, limit)
}

func (q Reader) unattributedAmong(ctx context.Context, newest string, args ...any) ([]PaymentRow, error) {
	return db.QueryAll(ctx, q, paymentTable.Scan, paymentTable.Select()+
		" WHERE id IN (SELECT id FROM (SELECT id FROM payments "+newest+") AS newest) AND status <> 'orphaned' AND "+unattributed+isDecided, args...)
}

// unattributedTo returns the payments to addresses, in blocks from a number on, that have no invoice,
// that no person dismissed, and that do not wait for older blocks already. They may have been
// refunded, or dropped by a reorg and be mined again.
func unattributedTo(ctx context.Context, q db.Querier, chainKey string, from uint64, to []invoice.Address) (all []PaymentRow, err error) {
	for _, address := range to {
		found, err := db.QueryAll(ctx, q, paymentTable.Scan, paymentTable.Select()+" WHERE "+unattributedSince+isDecided, address.String(), chainKey, int64(from))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// unattributedOf returns up to limit payments in an invoice's token to its addresses, in blocks up to the one at which it
// ended, that unattributedTo returns and that are not orphaned.
func unattributedOf(ctx context.Context, q db.Querier, inv invoice.Invoice, limit int) ([]invoice.Payment, error) {
	deposit := cmp.Or(inv.DepositAddress, inv.Merchant)
	rows, err := db.QueryAll(ctx, q, paymentTable.Scan, paymentTable.Select()+" "+q.IndexedBy("payments_unattributed_to")+`
		WHERE to_address IN ($1, $2) AND chain_key = $3 AND block_number <= $4 AND token = $5 AND status <> 'orphaned' AND `+unattributed+isDecided+" LIMIT $6",
		inv.Merchant.String(), deposit.String(), inv.ChainKey, int64(inv.ClosedBlock), inv.Token.String(), limit)
	all := db.Each(rows, func(row PaymentRow) invoice.Payment { return row.Payment })
	return all, err
}

// isNamed reports whether the transaction of a payment without an invoice to the invoice's settlement address, in blocks
// from a number on, names the invoice's commitment.
func isNamed(ctx context.Context, q db.Querier, inv invoice.Invoice, from uint64) (bool, error) {
	ids, err := db.QueryAll(ctx, q, db.ScanID, `SELECT id FROM payments WHERE to_address = $1 AND chain_key = $2 AND block_number >= $3
		AND invoice_id IS NULL AND $4 IN (commitment_id, registry_id, authorization_id) LIMIT 1`,
		inv.Merchant.String(), inv.ChainKey, int64(from), inv.CommitmentID.String())
	return len(ids) > 0, err
}

const (
	// unattributed selects payments that have no invoice and that no person dismissed or rejected.
	unattributed = `invoice_id IS NULL AND coalesce(screening, '') <> 'rejected' AND coalesce(use, 'undecided') IN ('undecided', 'refunding', 'refunded')`
	// unattributedSince selects those to an address in blocks from a number on.
	unattributedSince = "to_address = $1 AND chain_key = $2 AND block_number >= $3 AND " + unattributed
	// isDecided leaves out those that wait for older blocks.
	isDecided = " AND NOT EXISTS (SELECT 1 FROM undecided_payments WHERE payment_id = payments.id)"
)

// moveSeenAfter makes payments without an invoice to addresses, in blocks from a number on, count as
// first seen after the event with a number.
func moveSeenAfter(ctx context.Context, tx *db.Tx, chainKey string, from uint64, to []invoice.Address, seq int64) error {
	for _, address := range to {
		if _, err := tx.Exec(ctx, "UPDATE payments SET seen_after = $4 WHERE "+unattributedSince, address.String(), chainKey, int64(from), seq); err != nil {
			return err
		}
	}
	return nil
}
