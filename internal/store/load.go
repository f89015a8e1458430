package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
)

// ErrNotEmpty is returned by Load for a database that a service has used.
var ErrNotEmpty = errors.New("the database is not empty; name a fresh one")

// Rows are rows as a service would have written them about some invoices.
type Rows struct {
	Chains          []LoadedChain
	Addresses       []SettlementAddress // each is held by its merchant
	Since           time.Time           // since when the merchants and their addresses exist
	Invoices        []invoice.Invoice   // in their present state, with their details
	TransferAmounts []TransferAmount    // of remainders; those of invoices follow from Invoices
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

// LoadedEvent is an event with its number and what became of its delivery.
type LoadedEvent struct {
	Event
	Status   delivery.Status // empty for an event without a delivery
	Finished time.Time       // zero while it is pending
	Tried    int             // how many attempts were made
	Attempts []delivery.Attempt
}

// LoadProgress is how far Load has come in one of its steps.
type LoadProgress struct {
	Step LoadStep
	Done int
	Of   int // 0 while it is not known
}

// LoadStep is what Load does.
type LoadStep string

// The steps of Load, in their order. SQLite does not have the last.
const (
	LoadInvoices LoadStep = "write invoices"
	LoadIndexes  LoadStep = "create indexes and constraints"
	LoadAnalyze  LoadStep = "count rows for the planner"
)

// Load fills an empty database. It returns ErrNotEmpty if a service has used the database.
// On PostgreSQL one transaction writes all rows, so that a load that fails leaves nothing; on
// SQLite each Rows are a transaction, and a load that fails leaves a database without its indexes.
func (s *Store) Load(ctx context.Context, rows iter.Seq2[Rows, error], report func(LoadProgress)) error {
	if err := s.dialect.load(ctx, s, rows, report); err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	return nil
}

func (tx *Tx) insertTables(ctx context.Context, tables []tableRows) error {
	for _, t := range tables {
		if err := tx.insert(ctx, t.insertion, t.rows); err != nil {
			return err
		}
	}
	return nil
}

// usedTables have rows once a service has used the database.
var usedTables = []string{"merchants", "chains", "invoices", "events", "deliverers"}

// checkEmpty returns ErrNotEmpty if one of usedTables has a row.
func (q *queries) checkEmpty(ctx context.Context) error {
	for _, table := range usedTables {
		switch _, err := queryRow(ctx, q, scanCount, "SELECT 1 FROM "+table+" LIMIT 1"); {
		case err == nil:
			return fmt.Errorf("%w: it has %s", ErrNotEmpty, table)
		case !errors.Is(err, ErrNotFound):
			return err
		}
	}
	return nil
}

// tableRows are rows of a table.
type tableRows struct {
	insertion
	rows [][]any
}

// loadedTables are the tables of Rows.
var loadedTables = func() (names []string) {
	tables, _ := Rows{}.tables() // nothing can fail without rows
	for _, t := range tables {
		names = append(names, t.table)
	}
	return names
}()

// tables returns the rows by table. A row comes after those that it refers to.
func (r Rows) tables() ([]tableRows, error) {
	invoices, err := r.invoiceTables()
	return slices.Concat(r.foundations(), invoices, r.paymentTables(), r.eventTables()), err
}

// foundations returns the rows that others refer to.
func (r Rows) foundations() []tableRows {
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
	return []tableRows{
		{insertion{"chains", []string{"chain_key", "indexed_number", "indexed_hash", "indexed_time", "confirmed_number", "confirmed_hash", "confirmed_time"}, skip}, chains},
		{insertion{"merchants", []string{"id", "created_at"}, skip}, merchants},
		{insertion{"settlement_addresses", []string{"chain_key", "address", "merchant_id", "created_at"}, skip}, addresses},
		{insertion{"held_addresses", []string{"address", "sole_holder", "created_at"}, skip}, held},
	}
}

// invoiceTables returns the rows of invoices.
func (r Rows) invoiceTables() ([]tableRows, error) {
	var invoices, voided [][]any
	amounts := slices.Clone(r.TransferAmounts)
	for _, inv := range r.Invoices {
		first, err := invoiceValues(inv)
		if err != nil {
			return nil, err
		}
		item := itemValues(inv)[:1]                                                     // nothing was decided
		invoices = append(invoices, slices.Concat(first, updatedValues(inv)[1:], item)) // status is in both
		if !inv.TransferAmount.IsZero() {
			amounts = append(amounts, TransferAmount{Invoice: inv, Base: inv.Amount, Amount: inv.TransferAmount, FromBlock: inv.FromBlock})
		}
		if at, ok := r.Voided[inv.ID]; ok {
			voided = append(voided, []any{inv.ID, string(invoice.Void), invoice.UnixSeconds(at)})
		}
	}
	details, pairs, err := detailRows(r.Invoices)
	return []tableRows{
		{insertion{table: "invoices", columns: slices.Concat(insertedColumns, updatedColumns[1:], []string{"item"})}, invoices},
		{insertion{table: transferAmountInsertion.table, columns: transferAmountInsertion.columns}, transferAmountRows(amounts)},
		{detailInsertion, details}, {metadataInsertion, pairs},
		{insertion{table: "invoice_transitions", columns: []string{"invoice_id", "status", "at"}}, voided},
	}, err
}
