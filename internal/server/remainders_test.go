package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestRemaindersAreAssignedAtStart starts a service on the database of a version without sums, with an unreachable
// chain. The remainder of a partly paid invoice has its transfer amount at once.
func TestRemaindersAreAssignedAtStart(t *testing.T) {
	t.Parallel()
	database := dbtest.Migrated(t)
	now := time.Now().Unix()
	c, node := scripted(t, "house", 7)
	down := errors.New("the node is down")
	node.Intercept(func(context.Context, string) error { return down })
	inv := invoice.Invoice{
		Terms: invoice.Terms{Merchant: invoice.Address{0x11}, Token: testToken, Amount: invoice.NewAmount(1_000_000), ExpiresAt: invoice.Unix(now + 3600)},
		ID:    "inv_00000000000000000000000000", CommitmentID: invoice.Hash{1}, MerchantID: "m", Currency: "USDC", ChainKey: c.Key,
		Status: invoice.Open, CreatedAt: invoice.Unix(now - 60),
	}
	p := ledger.PaymentRow{SeenID: "1", Payment: invoice.Payment{
		ID: "pay_1", InvoiceID: inv.ID, MerchantID: "m", Method: invoice.ByCalldata, Status: invoice.Pending, ObservedAt: time.Unix(now, 0),
		Transfer: invoice.Transfer{
			ChainKey: c.Key, TxHash: invoice.Hash{2}, Token: testToken, Currency: "USDC", From: invoice.Address{0x22}, To: inv.Merchant,
			Amount: invoice.NewAmount(400_000), Position: invoice.Position{BlockNumber: 2, BlockHash: invoice.Hash{3}, BlockTime: invoice.Unix(now)},
		},
	}}
	store, err := db.Open(t.Context(), database)
	expect.OK(t, err)
	err = store.Update(t.Context(), func(tx *db.Tx) error {
		ctx := t.Context()
		_, inserted := ledger.InsertChain(ctx, tx, c.Key, invoice.Header{Number: 2, Hash: invoice.Hash{3}, Time: invoice.Unix(now)}, nil)
		settled := access.InsertSettlementAddresses(ctx, tx, []access.SettlementAddress{{ChainKey: c.Key, Address: inv.Merchant, MerchantID: "m"}}, invoice.Unix(now))
		_, created := ledger.InsertInvoices(ctx, tx, []invoice.Invoice{inv})
		return errors.Join(inserted, settled, created, ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p}))
	})
	expect.OK(t, errors.Join(err, store.Close()))
	if _, err := dbtest.SQL(t, database).ExecContext(t.Context(), "UPDATE invoices SET sums_stale = 1"); err != nil {
		t.Fatal(err)
	}
	base := startServer(t, Config{Chains: []Chain{c}, Database: database}).url
	a := ask(t, http.MethodGet, base+"/api/invoices/"+inv.ID, "")
	if !strings.Contains(a.body, `"amountRemaining":"600000"`) || !strings.Contains(a.body, `"remainingTransferAmount":"600`) {
		t.Errorf("answered %d %s", a.status, a.body)
	}
}
