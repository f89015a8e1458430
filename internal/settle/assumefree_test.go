package settle_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// createDuring creates an invoice while another session has changed something that a create looks
// up, and not committed yet. The session ends by end.
func (w *world) createDuring(r settle.CreateRequest, end func() error) (inv invoice.Invoice) {
	w.t.Helper()
	created := w.inBackground(func(ctx context.Context) (err error) {
		inv, err = w.Create(ctx, r)
		return err
	})
	w.awaitLocked(1, "transactionid", created)
	w.must(end())
	<-created
	return inv
}

// TestTransferAmountTakenMeanwhile lets another process take the transfer amounts that creates
// have looked up to be free. The first create assumes that they are, and later ones ask.
func TestTransferAmountTakenMeanwhile(t *testing.T) {
	t.Parallel()
	w := onPostgres(t)
	holder := w.create(amount(9_000_000))
	for n := range uint64(3) {
		base := (n + 1) * 1_000_000
		for _, committed := range []bool{false, true} {
			other := w.session()
			other.run("UPDATE told_amounts SET amount = $1 WHERE invoice_id = $2", fmt.Sprint(base+1), holder.ID)
			end := other.Rollback
			if committed {
				end = other.Commit
			}
			d := w.draft()
			d.Amount = invoice.NewAmount(base)
			inv := w.createDuring(settle.CreateRequest{Draft: d}, end)
			if got := number(inv.TransferAmount); got <= base || (got == base+1) == committed {
				t.Errorf("the invoice over %d has the transfer amount %d; that of the other process was committed: %v", base, got, committed)
			}
			if diff := cmp.Diff(inv, w.invoice(inv.ID), comparer); diff != "" {
				t.Errorf("created and stored differ:\n%s", diff)
			}
			if got := w.eventTypes(inv); len(got) != 1 {
				t.Errorf("its events are %q", got)
			}
			base += 100_000_000
		}
	}
}

// TestKeyUsedMeanwhile lets another process use the idempotency key of a create that has looked
// it up.
func TestKeyUsedMeanwhile(t *testing.T) {
	t.Parallel()
	w := onPostgres(t)
	request := settle.CreateRequest{Draft: w.draft(), Scope: w.merchant, IdempotencyKey: "0"}
	first, err := w.Create(t.Context(), request)
	w.must(err)
	for n := range 3 {
		request.IdempotencyKey = fmt.Sprint(n + 1)
		other := w.session()
		other.run("UPDATE idempotency_keys SET idem_key = $1 WHERE idem_key = $2", request.IdempotencyKey, fmt.Sprint(n))
		if inv := w.createDuring(request, other.Commit); inv.ID != first.ID {
			t.Errorf("a key that another process has used gives %s and not its invoice", inv.ID)
		}
	}
	var invoices int
	w.must(w.db.sql.QueryRowContext(t.Context(), "SELECT count(*) FROM invoices").Scan(&invoices))
	if invoices != 1 {
		t.Errorf("%d invoices exist, want 1", invoices)
	}
}
