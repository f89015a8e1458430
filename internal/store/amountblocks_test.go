package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestAmountLookupsReadFewBlocks checks how many blocks PostgreSQL reads for an amount that no invoice has, where the open invoices of the chain
// have few prices and one address. By their number of prices, reading all of them seems as cheap as the index of amounts.
func TestAmountLookupsReadFewBlocks(t *testing.T) {
	t.Parallel()
	const prices, most = 2, 10
	url := storetest.MigratedPostgres(t)
	s := storetest.Open(t, url)
	startChain(t, s, "base")
	var all []invoice.Invoice
	for i := range 1500 {
		inv := sample(fmt.Sprintf("inv_%05d", i), "m")
		inv.Amount = invoice.NewAmount(uint64(1 + i%prices))
		inv.TransferAmount = invoice.NewAmount(uint64(100_000 + i))
		all = append(all, inv)
	}
	insert(t, s, all...)
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // nothing depends on it
	_, err = conn.Exec(t.Context(), store.SessionSettings+"; SET plan_cache_mode = force_generic_plan; ANALYZE invoices; ANALYZE told_amounts")
	must(t, err)
	var list []statement
	read := store.Recorded(s, func(query string, args []any) { list = append(list, statement{query: query, args: args}) })
	key := store.AmountKey{ChainKey: "base", Merchant: all[0].Merchant, Token: all[0].Token, Amount: all[9].TransferAmount}
	_, err = read.InvoicesByAmount(t.Context(), []store.AmountLookup{{AmountKey: key, FirstBlock: 101, LastBlock: 101, FirstTime: invoice.Unix(1500)}}, 16)
	must(t, err)
	_, err = read.AmountUses(t.Context(), []store.AmountKey{key.With(invoice.NewAmount(200_000))}, func() time.Time { return invoice.Unix(1500) })
	must(t, err)
	for _, l := range list {
		if n := blocksOf(t, conn, l); n > most {
			t.Errorf("%d blocks are read, want %d at most\n%s", n, most, l.query)
		}
	}
}
