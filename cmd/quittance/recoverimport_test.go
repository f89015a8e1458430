package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestImportCopies counts the results of lines, and continues after refused ones.
func TestImportCopies(t *testing.T) {
	t.Parallel()
	line := func(n string) string {
		return `{"merchantAddress":"0x1","id":"inv_0000000000000000000000000` + n + `"}` + "\n"
	}
	apply := func(_ context.Context, c ledger.InvoiceCopy) (ledger.Imported, error) {
		done := ledger.Imported{Invoice: invoice.Invoice{ID: c.Invoice.ID}}
		switch c.Invoice.ID[len(c.Invoice.ID)-1] {
		case '1':
			done.Proof, done.Held = ledger.ProvedByChain, true
		case '2':
			done.Exists, done.Held = true, true
		case '3':
			return done, errors.New("a reason")
		}
		return done, nil
	}
	var refused, out strings.Builder
	sum, err := importCopies(t.Context(), &refused, strings.NewReader(line("1")+"\n"+line("2")+line("3")+"{}\n"+line("4")+`{"id":"evt_1","type":"invoice.paid","data":{"invoice":{"id":"inv_1"}}}`+"\n"+
		`{"id":"evt_2","type":"payment.received","data":{"payment":{}}}`), apply)
	expect.OK(t, err)
	if want := "line 4 inv_00000000000000000000000003 refused: a reason\nline 5 refused: it holds no invoice"; !strings.HasPrefix(refused.String(), want) {
		t.Errorf("got %s, want %s", &refused, want)
	}
	err = sum.print(environment{stdout: &out}, true)
	if want := `{"lines":7,"byChain":1,"bySignature":1,"existing":1,"held":["inv_00000000000000000000000001","inv_00000000000000000000000002"],"skipped":2,"refused":2}` + "\n"; out.String() != want || err == nil {
		t.Errorf("got %s, %v, want %s", &out, err, want)
	}
	if _, err := importCopies(t.Context(), &refused, strings.NewReader(strings.Repeat("x", ledger.MaxCopy+2)), apply); err == nil || !strings.Contains(err.Error(), "at most 1048576") {
		t.Errorf("a long line: %v", err)
	}
	if sum, err := importCopies(t.Context(), &refused, strings.NewReader(""), apply); err != nil || sum.print(environment{stdout: &out}, false) != nil {
		t.Errorf("no line: %+v, %v", sum, err)
	}
}
