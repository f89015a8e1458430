package store

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

const (
	// CandidateLimit bounds the invoices that one rule of attribution considers
	// for one transfer. More than one is ambiguous already; the rest leaves
	// room for those that are covered.
	CandidateLimit = 100
	// NearLimit bounds the invoices above a transfer's amount whose tolerance
	// is checked.
	NearLimit = 500
)

// Candidates are the invoices that a transfer could be meant for, before earlier
// payments are taken into account.
type Candidates struct {
	Invoices []invoice.Candidate
	// Truncated is set when CandidateLimit or more invoices have the transfer's
	// amount as theirs or as a remainder. Some may be missing in Invoices.
	Truncated bool
}

// add returns the candidate of an invoice, which it adds if it is missing.
func (c *Candidates) add(inv invoice.Invoice) *invoice.Candidate {
	for i, known := range c.Invoices {
		if known.ID == inv.ID {
			return &c.Invoices[i]
		}
	}
	c.Invoices = append(c.Invoices, invoice.Candidate{Invoice: inv})
	return &c.Invoices[len(c.Invoices)-1]
}

// CandidateInvoices returns, for each of a chain's transfers, the invoices that
// it could be meant for: those that its evidence names, the one to which its
// amount was last assigned as a transfer amount before the transfer's block,
// and those of its receiver that have its amount as theirs or as a remainder,
// or tolerate it. It includes invoices that are closed by now.
func (q *queries) CandidateInvoices(ctx context.Context, chainKey string, transfers []invoice.Transfer) ([]Candidates, error) {
	found := make([]Candidates, len(transfers))
	if err := q.addNamed(ctx, transfers, found); err != nil {
		return nil, err
	}
	if err := q.addByTransferAmount(ctx, transfers, found); err != nil {
		return nil, err
	}
	if err := q.addByAmount(ctx, transfers, found); err != nil {
		return nil, err
	}
	return found, q.addTolerant(ctx, chainKey, transfers, found)
}

// addNamed adds the invoices that the transfers' evidence names.
func (q *queries) addNamed(ctx context.Context, transfers []invoice.Transfer, found []Candidates) error {
	named := make(map[invoice.Hash][]int)
	var ids []string
	for n, t := range transfers {
		for _, id := range []invoice.Hash{t.Evidence.Registry, t.Evidence.Authorization, t.Evidence.Calldata} {
			if !id.IsZero() {
				if named[id] == nil {
					ids = append(ids, id.String())
				}
				named[id] = append(named[id], n)
			}
		}
	}
	invoices, err := queryIn(ids, func(chunk []any) ([]invoice.Invoice, error) {
		return queryAll(ctx, q, scanInvoice, "SELECT "+invoiceColumns+" FROM invoices WHERE commitment_id IN "+parameterList(0, len(chunk)), chunk...)
	})
	for _, inv := range invoices {
		for _, n := range named[inv.CommitmentID] {
			found[n].add(inv)
		}
	}
	return err
}

// wantedTransfers returns the transfers as rows of wantedColumns.
func wantedTransfers(transfers []invoice.Transfer) [][]any {
	rows := make([][]any, len(transfers))
	for n, t := range transfers {
		rows[n] = []any{int64(n), t.ChainKey, t.To.String(), t.Token.String(), t.Amount.String(), t.BlockTime, int64(t.BlockNumber)}
	}
	return rows
}

var (
	wantedColumns = []string{"n BIGINT", "chain", "receiver", "coin", "moved", "mined BIGINT", "block BIGINT"}
	wantedNothing = []any{int64(-1), "", "", "", "", int64(0), int64(0)}
)

// addByTransferAmount adds the invoices to which the transfers' amounts were last assigned
// before their blocks.
func (q *queries) addByTransferAmount(ctx context.Context, transfers []invoice.Transfer, found []Candidates) error {
	numbers := make(map[string][]int64)
	var ids []string
	err := inBatches(wantedTransfers(transfers), wantedNothing, func(part [][]any) error {
		text, args := withWanted(wantedColumns, part)
		_, err := queryAll(ctx, q, func(row scanner) (struct{}, error) {
			var n int64
			var id string
			err := row.Scan(&n, nullText(&id))
			if id != "" {
				if numbers[id] == nil {
					ids = append(ids, id)
				}
				numbers[id] = append(numbers[id], n)
			}
			return struct{}{}, err
		}, text+"SELECT n, (SELECT told.invoice_id "+transferAmountsOfWanted+"AND told.from_block < wanted.block "+newestTransferAmount+") FROM wanted", args...)
		return err
	})
	if err != nil {
		return err
	}
	invoices, err := q.InvoicesByID(ctx, ids)
	for _, inv := range invoices {
		for _, n := range numbers[inv.ID] {
			found[n].add(inv).HasTransferAmount = true
		}
	}
	return err
}

// joinLimit bounds the invoices that one query finds for several transfers.
const joinLimit = 4 * maxBatch

// byAmounts are the rules by which the amount of a transfer names invoices.
// Invoices that were closed below the transfer's block are covered or expired
// there; indexes leave them out, since their number only grows.
var byAmounts = []rule{
	{index: "invoices_open_by_amount", is: "invoices.amount = moved AND invoices.status = 'open'"},
	{index: "invoices_closed_by_amount", is: "invoices.amount = moved AND invoices.status <> 'open' AND invoices.closed_block >= block"},
	{index: remainderIndex, is: remainderOf + "told.closed_block IS NULL"},
	{index: remainderIndex, is: remainderOf + "told.closed_block >= block"},
}

// rule says which invoices a transfer in the table wanted names.
type rule struct {
	index string // that finds the invoices or, if it is remainderIndex, their remainders
	is    string // the conditions
}

const remainderIndex = "told_amounts_by_remainder"

const (
	payable = `invoices.chain_key = wanted.chain AND invoices.token = coin AND invoices.from_block < block
		AND invoices.expires_at >= mined AND invoices.merchant_address = receiver AND `
	remainderOf = `told.remainder = 1 AND told.base = moved AND told.merchant_address = receiver
		AND told.chain_key = wanted.chain AND told.token = coin AND `
)

// addByAmount adds the invoices that have the transfers' amounts as theirs or
// as a remainder. It looks up several transfers at once, or one by one if they
// find too many invoices.
func (q *queries) addByAmount(ctx context.Context, transfers []invoice.Transfer, found []Candidates) error {
	return inBatches(wantedTransfers(transfers), wantedNothing, func(part [][]any) error {
		all, err := q.matches(ctx, part, joinLimit, byAmounts...)
		if err != nil {
			return err
		}
		if len(all) < joinLimit {
			addMatches(all, found)
			return nil
		}
		all = nil
		for _, row := range part {
			for _, rule := range byAmounts {
				some, err := q.matches(ctx, [][]any{row}, CandidateLimit, rule)
				if err != nil {
					return err
				}
				all = append(all, some...)
			}
		}
		addMatches(all, found)
		return nil
	})
}

// addMatches adds the matches, and marks transfers with CandidateLimit or more
// as crowded. The mark must not depend on which transfers are looked up
// together, nor on how many of the invoices were closed since.
func addMatches(all []match, found []Candidates) {
	matches := make(map[int64]int)
	for _, m := range all {
		found[m.n].add(m.Invoice)
		matches[m.n]++
	}
	for n, count := range matches {
		found[n].Truncated = count >= CandidateLimit
	}
}

// match is an invoice that one of the wanted transfers could be meant for.
type match struct {
	n int64 // the transfer's number
	invoice.Invoice
}

// matches returns the invoices that the wanted transfers name by one of the
// rules, up to a limit.
func (q *queries) matches(ctx context.Context, wanted [][]any, limit int, rules ...rule) ([]match, error) {
	text, args := withWanted(wantedColumns, wanted)
	for i, r := range rules {
		if i > 0 {
			text += " UNION ALL "
		}
		text += "SELECT n, " + invoiceColumns + " FROM " + q.lookup(r)
	}
	return queryAll(ctx, q, func(row scanner) (m match, err error) {
		m.Invoice, err = scanInvoice(prefixedRow{row, []any{&m.n}})
		return m, err
	}, text+" LIMIT "+strconv.Itoa(limit), args...)
}

// lookup returns the FROM clause that joins the wanted transfers with the
// invoices of a rule, one transfer at a time. On SQLite, CROSS JOIN fixes the
// order and INDEXED BY the index, because statistics of many equal rows would
// favour other indexes (TestStatementsUseIndexes). On PostgreSQL, LIMIT keeps
// the planner from reading all invoices for all transfers.
func (q *queries) lookup(r rule) string {
	byRemainder := r.index == remainderIndex
	switch {
	case !q.postgres && byRemainder:
		return "(SELECT n, invoices.* FROM wanted CROSS JOIN told_amounts AS told INDEXED BY " + r.index +
			" CROSS JOIN invoices WHERE invoices.id = told.invoice_id AND " + payable + r.is + ")"
	case !q.postgres:
		return "wanted CROSS JOIN invoices INDEXED BY " + r.index + " WHERE " + payable + r.is
	}
	from := "invoices"
	if byRemainder {
		from = "told_amounts AS told CROSS JOIN LATERAL (SELECT * FROM invoices WHERE id = told.invoice_id LIMIT 1) AS invoices"
	}
	return "wanted CROSS JOIN LATERAL (SELECT invoices.* FROM " + from + " WHERE " + payable + r.is + " LIMIT " + strconv.Itoa(joinLimit) + ") AS invoices"
}

// addTolerant adds the invoices that accept a transfer though it is less than
// their amount. It skips transfers that are meant for another invoice.
func (q *queries) addTolerant(ctx context.Context, chainKey string, transfers []invoice.Transfer, found []Candidates) error {
	tolerant, err := q.tolerantAddresses(ctx, chainKey, transfers)
	if err != nil {
		return err
	}
	for n, t := range transfers {
		if !tolerant[t.To] || slices.ContainsFunc(found[n].Invoices, func(c invoice.Candidate) bool { return c.MatchedBy(t) }) {
			continue
		}
		near, err := q.tolerantInvoices(ctx, t)
		if err != nil {
			return err
		}
		for _, inv := range near {
			found[n].add(inv)
		}
	}
	return nil
}

// Conditions of invoices with a tolerance, open and closed. Each has an index.
const (
	tolerantOpen = "tolerance <> '0' AND status = 'open'"
	tolerantWas  = "tolerance <> '0' AND status <> 'open'"
)

// tolerantAddresses returns which of the transfers' receivers have an invoice
// with a tolerance.
func (q *queries) tolerantAddresses(ctx context.Context, chainKey string, transfers []invoice.Transfer) (map[invoice.Address]bool, error) {
	tolerant := make(map[invoice.Address]bool)
	var receivers []invoice.Address
	var rows [][]any
	for _, t := range transfers {
		if _, known := tolerant[t.To]; !known {
			tolerant[t.To] = false
			receivers, rows = append(receivers, t.To), append(rows, []any{chainKey, t.To.String()})
		}
	}
	for _, which := range []string{tolerantOpen, tolerantWas} {
		found, err := q.whichExist(ctx, []string{"chain", "receiver"}, rows,
			"invoices WHERE merchant_address = receiver AND chain_key = chain AND "+which)
		if err != nil {
			return nil, err
		}
		for _, n := range found {
			tolerant[receivers[n]] = true
		}
	}
	return tolerant, nil
}

// tolerantInvoices returns the invoices of the transfer's receiver that were
// payable in its block and tolerate its amount. It returns none if there are
// more than NearLimit, because telling them apart is not tried.
func (q *queries) tolerantInvoices(ctx context.Context, t invoice.Transfer) ([]invoice.Invoice, error) {
	low, high := t.Amount.Plus(invoice.NewAmount(1)), t.Amount.Plus(t.Amount) // a tolerance is at most half of the amount
	var near []invoice.Invoice
	for digits := len(low.String()); digits <= len(high.String()); digits++ {
		// Numbers of the same length compare like their texts.
		from, to := "1"+strings.Repeat("0", digits-1), strings.Repeat("9", digits)
		if digits == len(low.String()) {
			from = low.String()
		}
		if digits == len(high.String()) {
			to = high.String()
		}
		for _, which := range []string{tolerantOpen, tolerantWas + " AND closed_block >= $7"} {
			found, err := queryAll(ctx, q, scanInvoice, "SELECT "+invoiceColumns+` FROM invoices
				WHERE merchant_address = $1 AND chain_key = $2 AND token = $3 AND from_block < $7
					AND length(amount) = $4 AND amount BETWEEN $5 AND $6 AND `+which+" LIMIT $8",
				t.To.String(), t.ChainKey, t.Token.String(), digits, from, to, int64(t.BlockNumber), NearLimit+1)
			if err != nil {
				return nil, err
			}
			near = append(near, found...)
		}
	}
	if len(near) > NearLimit {
		return nil, nil
	}
	return slices.DeleteFunc(near, func(inv invoice.Invoice) bool { return !inv.Tolerates(t.Amount) }), nil
}
