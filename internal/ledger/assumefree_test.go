package ledger_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// rivalry is a world in which creates choose suffix 1 first, and their round trips are counted.
type rivalry struct {
	*world
	proxy   *dbtest.Proxy
	holders []invoice.Invoice // their transfer amounts are changed by another process
	base    uint64            // the amount of the next invoice
}

func newRivalry(t *testing.T) *rivalry {
	t.Helper()
	w, proxy := proxied(t)
	w.chooseSuffixOne()
	r := &rivalry{world: w, proxy: proxy}
	r.holders = []invoice.Invoice{w.create(amount(9_000_000_000)), w.create(amount(8_000_000_000))}
	return r
}

// request returns a request for a new amount.
func (r *rivalry) request() ledger.CreateRequest {
	r.base += 1_000_000
	d := r.draft()
	d.Amount = invoice.NewAmount(r.base)
	return ledger.CreateRequest{Once: ledger.Once{Scope: r.merchant}, Draft: d}
}

// take gives the transfer amount that a request will choose to a holder. It is committed later.
func (r *rivalry) take(other session, req ledger.CreateRequest, holder int) {
	r.t.Helper()
	other.run("UPDATE transfer_amounts SET amount = $1 WHERE invoice_id = $2", fmt.Sprint(number(req.Draft.Amount)+1), r.holders[holder].ID)
}

// createDuring creates an invoice that waits for another session. end ends that session.
func (r *rivalry) createDuring(req ledger.CreateRequest, end func() error) (inv invoice.Invoice) {
	r.t.Helper()
	created := r.requestLater(req, &inv)
	r.awaitLocked(1, "transactionid", created)
	r.must(end())
	<-created
	return inv
}

// turns returns how many round trips a create takes.
func (r *rivalry) turns() int64 {
	r.t.Helper()
	before := r.proxy.Turns()
	_, err := r.Create(r.t.Context(), r.request())
	r.must(err)
	return r.proxy.Turns() - before
}

// asking creates invoices until one takes two round trips, and returns how many took more.
func (r *rivalry) asking() (creates int) {
	r.t.Helper()
	for creates < 100 && r.turns() > 2 {
		creates++
	}
	return creates
}

// checkAsking checks that as many creates ask as after a collision. The last of them prepares the
// statements that failed, and on a slow machine, some more may check whether their connection is
// alive.
func (r *rivalry) checkAsking(after string) {
	r.t.Helper()
	const want = 16 + 1
	if n := r.asking(); n < want || n > want+2 {
		r.t.Errorf("%d creates asked after %s, want %d", n, after, want)
	}
}

// TestTransferAmountTakenMeanwhile lets another process take transfer amounts after creates have
// looked them up as free. The first create assumes that they are still free. The next ones ask the
// database, until no amount was taken for a while.
func TestTransferAmountTakenMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRivalry(t)
	collide := func(committed bool) {
		t.Helper()
		req, other := r.request(), r.session()
		r.take(other, req, 0)
		end := other.Rollback
		if committed {
			end = other.Commit
		}
		inv := r.createDuring(req, end)
		if got := number(inv.TransferAmount); got <= r.base || (got == r.base+1) == committed {
			t.Errorf("the invoice over %d has the transfer amount %d; that of the other process was committed: %v", r.base, got, committed)
		}
		if diff := cmp.Diff(inv, r.invoice(inv.ID), comparer); diff != "" {
			t.Errorf("created and stored differ:\n%s", diff)
		}
		if got := r.eventTypes(inv); len(got) != 1 {
			t.Errorf("its events are %q", got)
		}
	}
	r.asking() // the first ones prepare statements
	collide(false)
	if n := r.asking(); n > 1 { // it may check whether its connection is alive
		t.Errorf("%d creates asked after one whose transfer amount was not taken", n)
	}
	collide(true)
	r.checkAsking("one whose transfer amount was taken")
	collide(true)
	for range 10 {
		r.turns()
	}
	collide(true) // asks
	r.checkAsking("another one that asked")
}

// TestKeyUsedMeanwhile lets another process use the idempotency keys of creates that have looked
// them up.
func TestKeyUsedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRivalry(t)
	req := r.request()
	req.Key = "0"
	first, err := r.Create(t.Context(), req)
	r.must(err)
	r.asking() // the first ones prepare statements
	used := 0
	collide := func() {
		t.Helper()
		used++
		req.Key = fmt.Sprint(used)
		other := r.session()
		other.run("UPDATE idempotency_keys SET idem_key = $1 WHERE idem_key = $2", req.Key, fmt.Sprint(used-1))
		if inv := r.createDuring(req, other.Commit); inv.ID != first.ID {
			t.Errorf("a key that another process has used gives %s and not its invoice", inv.ID)
		}
	}
	collide()
	r.checkAsking("one whose key was used")
	collide()
	for range 10 {
		r.turns()
	}
	collide() // asks
	r.checkAsking("another one that asked")
	var invoices int
	r.must(r.db.sql.QueryRowContext(t.Context(), "SELECT count(*) FROM invoices WHERE amount = $1", first.Amount.String()).Scan(&invoices))
	if invoices != 1 {
		t.Errorf("%d invoices exist, want 1", invoices)
	}
}

// TestOneTransferAmountTwiceInABatch creates two invoices in one transaction that choose the same
// transfer amount. That must not make later batches ask.
func TestOneTransferAmountTwiceInABatch(t *testing.T) {
	t.Parallel()
	r := newRivalry(t)
	for range 20 {
		r.turns()
	}
	other := r.session()
	var held, twins [2]invoice.Invoice
	var done []<-chan struct{}
	for i := range held { // both occupy a lane of creates
		req := r.request()
		r.take(other, req, i)
		done = append(done, r.requestLater(req, &held[i]))
		r.awaitLocked(i+1, "transactionid", done[i])
	}
	req := r.request()
	for i := range twins {
		done = append(done, r.requestLater(req, &twins[i]))
	}
	for r.CreatesWaiting() < len(twins) {
		select {
		case <-done[2]:
			t.Fatal("one was created while the lanes were occupied")
		case <-done[3]:
			t.Fatal("one was created while the lanes were occupied")
		default:
			runtime.Gosched()
		}
	}
	r.must(other.Rollback())
	for _, d := range done {
		<-d
	}
	if twins[0].TransferAmount == twins[1].TransferAmount {
		t.Errorf("both have the transfer amount %s", twins[0].TransferAmount)
	}
	if n := min(r.turns(), r.turns(), r.turns()); n > 2 { // one may check whether its connection is alive
		t.Errorf("the next creates took %d round trips, want at most 2", n)
	}
}
