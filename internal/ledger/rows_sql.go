package ledger

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// Rows are rows as a service would have written them about some invoices.
type Rows struct {
	Chains          []LoadedChain
	Addresses       []access.SettlementAddress // each is held by its merchant
	Since           time.Time                  // since when the merchants and their addresses exist
	Invoices        []invoice.Invoice          // in their current state, with their details
	TransferAmounts []TransferAmount           // of remainders; the amounts of invoices follow from Invoices
	Voided          map[string]time.Time
	Payments        []PaymentRow
	Refunds         []invoice.Refund // of Payments of the same Rows
	Events          []LoadedEvent
}

// LoadedChain is a chain that was read up to a block.
type LoadedChain struct {
	ChainKey string
	Head     invoice.Header
}

// LoadedEvent is an event with its number and the outcome of its delivery.
type LoadedEvent struct {
	webhooks.Event
	Status   webhooks.Status // empty for an event without a delivery
	Finished time.Time       // zero while it is pending
	Tried    int             // how many attempts were made
	Attempts []webhooks.Attempt
}

// LoadInvoices fills an empty database with rows, as Load does.
func LoadInvoices(ctx context.Context, s *db.DB, rows iter.Seq2[Rows, error], report func(db.LoadProgress)) error {
	var names []string
	for _, t := range (Rows{}).tables() {
		names = append(names, t.Table)
	}
	return s.Load(ctx, names, func(yield func(db.Loaded, error) bool) {
		for r, err := range rows {
			loaded := db.Loaded{Count: len(r.Invoices)}
			if err == nil {
				loaded.Tables = r.tables()
			}
			if !yield(loaded, err) {
				return
			}
		}
	}, report)
}

// tables returns the rows by table, in the order of their foreign keys.
func (r Rows) tables() []db.TableRows {
	return slices.Concat(r.foundations(), r.invoiceTables(), r.paymentTables(), r.eventTables())
}

// foundations returns the rows that others refer to.
func (r Rows) foundations() []db.TableRows {
	var chains, merchants, addresses, held [][]any
	for _, c := range r.Chains {
		h := c.Head
		chains = append(chains, []any{c.ChainKey, int64(h.Number), h.Hash.String(), invoice.UnixSeconds(h.Time), int64(h.Number), h.Hash.String(), invoice.UnixSeconds(h.Time)})
	}
	since := invoice.UnixSeconds(r.Since)
	for _, a := range r.Addresses {
		merchants = append(merchants, []any{a.MerchantID, since})
		addresses = append(addresses, []any{a.ChainKey, a.Address.String(), a.MerchantID, since})
		held = append(held, []any{a.Address.String(), a.MerchantID, since})
	}
	const skip = "ON CONFLICT DO NOTHING"
	return []db.TableRows{
		{Insertion: db.Insertion{Table: "chains", Columns: []string{"chain_key", "indexed_number", "indexed_hash", "indexed_time", "confirmed_number", "confirmed_hash", "confirmed_time"}, Conflict: skip}, Rows: chains},
		{Insertion: db.Insertion{Table: "merchants", Columns: []string{"id", "created_at"}, Conflict: skip}, Rows: merchants},
		{Insertion: db.Insertion{Table: "settlement_addresses", Columns: []string{"chain_key", "address", "merchant_id", "created_at"}, Conflict: skip}, Rows: addresses},
		{Insertion: db.Insertion{Table: "held_addresses", Columns: []string{"address", "sole_holder", "created_at"}, Conflict: skip}, Rows: held},
	}
}

var loadedTable = invoiceTable.Without("swept_tx")

// invoiceTables returns the rows of invoices.
func (r Rows) invoiceTables() []db.TableRows {
	var invoices, voided [][]any
	amounts := slices.Concat(r.TransferAmounts, wholeAmounts(r.Invoices))
	for _, inv := range r.Invoices {
		item, _ := invoice.ItemOf(inv) // there is no decision
		invoices = append(invoices, loadedTable.Values(inv, string(item)))
		if at, ok := r.Voided[inv.ID]; ok {
			voided = append(voided, []any{inv.ID, string(invoice.Void), invoice.UnixSeconds(at)})
		}
	}
	details, pairs := detailRows(r.Invoices)
	return []db.TableRows{
		{Insertion: loadedTable.Insertion("", "item"), Rows: invoices},
		{Insertion: db.Insertion{Table: transferAmountInsertion.Table, Columns: transferAmountInsertion.Columns}, Rows: transferAmountRows(amounts)},
		{Insertion: detailTable.Insertion(""), Rows: details}, {Insertion: metadataInsertion, Rows: pairs}, {Insertion: wordInsertion, Rows: wordRows(r.Invoices)},
		{Insertion: db.Insertion{Table: "invoice_transitions", Columns: []string{"invoice_id", "status", "at"}}, Rows: voided},
	}
}
