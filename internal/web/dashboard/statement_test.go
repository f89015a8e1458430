package dashboard_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/txmgr"
)

// TestStatement compares the statement of a month with the exports, to the minor unit.
func TestStatement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Finance)
	w.paid(nil)
	w.invoice("acme", member{"amount": "1000001"})
	void := w.invoice("acme", member{"amount": "2000000"})
	w.operator.api("POST", "/api/invoices/"+void.ID+"/void", nil, nil)
	draft := w.invoice("acme", member{"amount": "8000000", "draft": true})
	w.operator.api("POST", "/api/invoices/"+draft.ID+"/void", nil, nil) // it was never issued
	opened := w.invoice("acme", member{"amount": "3000000", "draft": true})
	w.operator.api("POST", "/api/invoices/"+opened.ID+"/finalize", nil, nil)
	w.invoice("acme", member{"amount": "7000000", "draft": true})
	w.payment("777") // of no invoice

	month := w.now().UTC().Format("2006-01")
	page := maria.get("/dashboard/statement").want(t, http.StatusOK, "acme", "not over", "Invoiced 10.90 USDC", "Canceled (void) 2.00 USDC",
		"Owed after 4.00 USDC", "Received (1)", "Month before")
	if !strings.Contains(page.body, `title="10.900001"`) {
		t.Error("the exact sum is no title")
	}
	if strings.Contains(page.words(), "Month after") {
		t.Error("the present month leads to a later one")
	}
	var answer apitypes.StatementResponse
	maria.api("GET", "/api/reports/statement?month="+month, nil, &answer)
	if len(answer.Statement.Lines) != 1 {
		t.Fatalf("the statement is %+v", answer.Statement)
	}
	l := answer.Statement.Lines[0]
	file := maria.get("/dashboard/payments.csv?show=counted")
	rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	expect.OK(t, err)
	var received big.Int
	for _, row := range rows[1:] {
		amount, _ := new(big.Int).SetString(row[7], 10)
		received.Add(&received, amount)
	}
	if l.Received != received.String() || l.Held != l.Received || l.Settled != "4900000" || l.Opening != "0" || l.HeldBefore != "0" || l.Canceled != "2000000" {
		t.Errorf("the export adds up to %s, the statement is %+v", &received, l)
	}
	table := maria.get("/dashboard/statement.csv?month=" + month)
	if rows, err := csv.NewReader(strings.NewReader(table.body)).ReadAll(); err != nil || len(rows) != 2 || rows[1][10] != l.Closing || rows[1][12] != l.Received {
		t.Errorf("the table is %s, %v", table.body, err)
	}
	maria.get("/dashboard/statement?month=2001-01").want(t, http.StatusOK, "1 Jan 2001 – 31 Jan 2001 (UTC)", "Nothing was found")
	for _, wrong := range []string{"2999-01", "2026-13", "x", "2026-1"} {
		maria.get("/dashboard/statement?month="+wrong).want(t, http.StatusBadRequest, "Month must")
	}
	w.operator.get("/dashboard/statement").want(t, http.StatusOK, "acme", "globex")
	w.operator.get("/dashboard/statement?merchantId=globex").want(t, http.StatusOK, "Nothing was found")
}

// TestStatementFees shows each merchant its share of a transaction for several.
func TestStatementFees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Finance)
	page := maria.get("/dashboard/statement").want(t, http.StatusOK)
	if strings.Contains(page.words(), "Network fees") {
		t.Error("there are fees before there was a transaction")
	}
	w.record(1_000_000_001, "acme", "globex", "globex")
	maria.get("/dashboard/statement").want(t, http.StatusOK, "recording invoices on chain (1) 0.333333 ETH")
	w.operator.get("/dashboard/statement?merchantId=globex").want(t, http.StatusOK, "recording invoices on chain (2) 0.666667 ETH")
	month := w.now().UTC().Format("2006-01")
	if table := maria.get("/dashboard/statement.csv?table=fees&month=" + month); !strings.Contains(table.body, ",commitment,acme,1,333333333,0.333333333,") || strings.Contains(table.body, "globex") {
		t.Errorf("the table is %q", table.body)
	}
}

// record makes a transaction that records an invoice of each of the merchants, at a cost in gwei.
func (w *world) record(cost int64, merchants ...string) {
	w.t.Helper()
	lease := db.WorkLease{Name: "writer:test", Holder: "test"}
	_, err := w.store.AcquireWorkLease(w.t.Context(), lease, w.now(), w.now())
	var intents []ledger.Intent
	var ids []string
	for i, merchant := range merchants {
		inv := w.invoice(merchant, nil)
		ids = append(ids, fmt.Sprint("int_", i))
		intents = append(intents, ledger.Intent{ID: ids[i], ChainKey: house, InvoiceID: inv.ID, CommitmentID: invoice.Hash{byte(i)}, Kind: invoice.IntentOpen, CreatedAt: w.now()})
	}
	tx := txmgr.ChainTx{ID: "ctx_1", ChainKey: house, Kind: txmgr.TxOpen, Status: txmgr.TxSent, CreatedAt: w.now()}
	err = errors.Join(err,
		w.store.Update(w.t.Context(), func(tx *db.Tx) error { return ledger.InsertIntents(w.t.Context(), tx, intents) }),
		txmgr.SaveChainTx(w.t.Context(), w.store, lease, tx, ids),
		txmgr.SetTxStatus(w.t.Context(), w.store, lease, tx.ID, txmgr.TxMined, &ledger.TxCost{Gwei: cost, At: w.now()}))
	expect.OK(w.t, err)
}
