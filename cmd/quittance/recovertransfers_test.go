package main

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestRecoverTransfers lists a transfer that may have refunded a payment, and marks it as checked.
func TestRecoverTransfers(t *testing.T) {
	folder := t.TempDir()
	store := dbtest.Open(t, "sqlite:"+folder+"/quittance.db")
	expect.OK(t, store.Update(t.Context(), func(tx *db.Tx) error {
		return ledger.InsertUnrecognizedTransfers(t.Context(), tx, []invoice.Transfer{{ChainKey: "base", TxHash: invoice.Hash{0x77}, Currency: "USDC", Amount: invoice.NewAmount(5)}})
	}))
	file := configure(t, "127.0.0.1:1", folder)
	for _, test := range []struct {
		checked []string
		code    int
		want    string
	}{
		{nil, 0, "base: 5 minor units of USDC from 0x0000000000000000000000000000000000000000 to 0x0000000000000000000000000000000000000000 in transaction 0x77"},
		{nil, 0, "may have refunded no known payment\n1 transfer to check.\n"},
		{[]string{"--checked", "ref_x"}, 1, "there is no unrecognized transfer ref_x"},
		{[]string{"--checked", "all"}, 0, "0 transfers to check.\n"},
	} {
		var stdout, stderr strings.Builder
		code := run(t.Context(), environment{stdout: &stdout, stderr: &stderr}, append([]string{"recover", "transfers", "--config", file}, test.checked...))
		if out := stdout.String() + stderr.String(); code != test.code || !strings.Contains(out, test.want) {
			t.Errorf("%v: exit code %d, %s; want %d, %s", test.checked, code, out, test.code, test.want)
		}
	}
}
