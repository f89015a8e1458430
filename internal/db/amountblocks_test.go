package db_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestAmountLookupsReadFewBlocks checks how many blocks PostgreSQL reads for an amount that no open
// invoice of an address has, if the open invoices of a chain have few prices and one address.
func TestAmountLookupsReadFewBlocks(t *testing.T) {
	t.Parallel()
	const prices, most = 2, 100 // two of each index for 10 lookups
	url := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, url)
	rowtest.StartChain(t, s, "base")
	var all []invoice.Invoice
	for i := range 4000 {
		inv := rowtest.Sample(fmt.Sprintf("inv_%05d", i), "m")
		inv.Amount = invoice.NewAmount(uint64(1 + i%prices))
		inv.TransferAmount = invoice.NewAmount(uint64(100_000 + i))
		all = append(all, inv)
	}
	rowtest.Insert(t, s, all...)
	blocks := newBlockCheck(t, url)
	_, err := blocks.conn.Exec(t.Context(), "ANALYZE invoices, transfer_amounts")
	rowtest.Must(t, err)
	read := db.Recorded(s, blocks.record)
	key := ledger.AmountKey{ChainKey: "base", Merchant: all[0].Merchant, Token: all[0].Token, Amount: all[9].TransferAmount}
	_, err = ledger.InvoicesByAmount(t.Context(), read, []ledger.AmountLookup{{AmountKey: key, FirstBlock: 101, LastBlock: 101, FirstTime: invoice.Unix(1500)}}, 16)
	rowtest.Must(t, err)
	_, err = ledger.AmountUses(t.Context(), read, []ledger.AmountKey{key.With(invoice.NewAmount(200_000))}, func() time.Time { return invoice.Unix(1500) })
	rowtest.Must(t, err)
	blocks.check("an unused amount", most)
}

// TestOldTransferAmountsAreNotRead checks how many blocks PostgreSQL reads for an amount that very many closed invoices
// of an address had as transfer amount, one after the other. It must read only the blocks of the newest.
func TestOldTransferAmountsAreNotRead(t *testing.T) {
	t.Parallel()
	const told, most = 1000, 100
	url := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, url)
	rowtest.StartChain(t, s, "base")
	var all []invoice.Invoice
	for i := range told {
		for other := range uint64(20) { // in the index between the rows of the amount
			inv := rowtest.Sample(fmt.Sprintf("inv_%05d_%d", i, other), "m")
			inv.Amount, inv.TransferAmount = invoice.NewAmount(100), invoice.NewAmount(101+other)
			inv.Status, inv.FromBlock, inv.ClosedBlock = invoice.Expired, uint64(i), uint64(i)
			all = append(all, inv)
		}
	}
	rowtest.Insert(t, s, all...)
	blocks := newBlockCheck(t, url)
	_, err := blocks.conn.Exec(t.Context(), "ANALYZE invoices, transfer_amounts")
	rowtest.Must(t, err)
	read := db.Recorded(s, blocks.record)
	key := ledger.AmountKey{ChainKey: "base", Merchant: all[0].Merchant, Token: all[0].Token, Amount: all[0].TransferAmount}
	uses, err := ledger.AmountUses(t.Context(), read, []ledger.AmountKey{key}, func() time.Time { return invoice.Unix(0) })
	if err != nil || uses[key] != (ledger.AmountUse{Until: all[0].ExpiresAt}) {
		t.Errorf("the amount's use is %+v, %v", uses[key], err)
	}
	moved := rowtest.SamplePayment(1).Transfer
	moved.To, moved.Amount, moved.BlockNumber = key.Merchant, key.Amount, told
	of, err := ledger.InvoicesByTransferAmount(t.Context(), read, []invoice.Transfer{moved})
	if want := fmt.Sprintf("inv_%05d_0", told-1); err != nil || len(of) != 1 || of[0] != want {
		t.Errorf("the amount is of %v, %v; want %s", of, err, want)
	}
	blocks.check("an amount of many", most)
}
