package ledger_test

import (
	"errors"
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
	r.holders = []invoice.Invoice{w.create(amount(9_000_000_000)), w.create(amount(8_000_000_000)), w.create(amount(7_000_000_000))}
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

// occupyLanes lets a create in each lane wait for another session.
func (r *rivalry) occupyLanes(other session) (blocked *[2]invoice.Invoice, done []<-chan struct{}) {
	r.t.Helper()
	blocked = new([2]invoice.Invoice)
	for i := range blocked {
		req := r.request()
		r.take(other, req, i)
		done = append(done, r.requestLater(req, &blocked[i]))
		r.awaitLocked(i+1, "transactionid", done[i])
	}
	return blocked, done
}

// awaitCreates waits until n creates wait for a lane, which another create occupies until it is done.
func (r *rivalry) awaitCreates(n int, done <-chan struct{}) {
	r.t.Helper()
	for r.CreatesWaiting() < n {
		select {
		case <-done:
			r.t.Fatal("the first creates did not wait")
		default:
			runtime.Gosched()
		}
	}
}

// checkStored checks that an invoice is stored as it was created, with one event.
func (r *rivalry) checkStored(inv invoice.Invoice) {
	r.t.Helper()
	if diff := cmp.Diff(inv, r.invoice(inv.ID), comparer); diff != "" {
		r.t.Errorf("created and stored differ:\n%s", diff)
	}
	if got := r.eventTypes(inv); len(got) != 1 {
		r.t.Errorf("its events are %q", got)
	}
}

// TestKeyUsedMeanwhile lets another process use the idempotency keys of creates that have looked them up.
func TestKeyUsedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRivalry(t)
	req := r.request()
	req.Key = "0"
	first, err := r.Create(t.Context(), req)
	r.must(err)
	for used := range 3 {
		req.Key = fmt.Sprint(used + 1)
		other := r.session()
		other.run("UPDATE idempotency_keys SET idem_key = $1 WHERE idem_key = $2", req.Key, fmt.Sprint(used))
		if inv := r.createDuring(req, other.Commit); inv.ID != first.ID {
			t.Errorf("a key that another process has used gives %s and not its invoice", inv.ID)
		}
	}
	var invoices int
	r.must(r.db.sql.QueryRowContext(t.Context(), "SELECT count(*) FROM invoices WHERE amount = $1", first.Amount.String()).Scan(&invoices))
	if invoices != 1 {
		t.Errorf("%d invoices exist, want 1", invoices)
	}
}

// TestDraftDeletedMeanwhile lets another process create and delete a draft with the idempotency key of a create that has
// looked it up.
func TestDraftDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRivalry(t)
	req, other := r.request(), r.session()
	req.Key = "k"
	r.take(other, req, 0)
	var err error
	created := make(chan struct{})
	go func() {
		defer close(created)
		_, err = r.Create(t.Context(), req)
	}()
	r.awaitLocked(1, "transactionid", created)
	same, s := req, r.service()
	same.Draft.Unissued = true
	draft, draftErr := s.Create(t.Context(), same)
	r.must(errors.Join(draftErr, s.DeleteDraft(t.Context(), r.own(), draft.ID), other.Rollback()))
	<-created
	if !errors.Is(err, ledger.ErrIdempotencyMismatch) {
		t.Errorf("a key that was used for a draft created an invoice: %v", err)
	}
}

// TestBatch creates invoices in one transaction. Two draw the same transfer amount and two have the
// same key. Another process may take the transfer amount of one meanwhile.
func TestBatch(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"undisturbed": false, "one transfer amount taken": true} {
		t.Run(name, func(t *testing.T) {
			r := newRivalry(t)
			other, rivals := r.session(), r.session()
			blocked, done := r.occupyLanes(other)
			twin, repeated, rival := r.request(), r.request(), r.request()
			repeated.Key = "k"
			if taken {
				r.take(rivals, rival, 2)
			}
			var made [5]invoice.Invoice
			for i, req := range []ledger.CreateRequest{twin, repeated, twin, repeated, rival} {
				done = append(done, r.requestLater(req, &made[i]))
			}
			r.awaitCreates(len(made), done[0])
			_, before := r.proxy.Statements()
			r.must(other.Rollback())
			if taken {
				r.awaitLocked(1, "transactionid", done[len(done)-1])
			}
			r.must(rivals.Commit())
			for _, d := range done {
				<-d
			}
			for _, inv := range append(made[:], blocked[:]...) {
				r.checkStored(inv)
			}
			if _, commits := r.proxy.Statements(); !taken && commits != before+3 {
				t.Errorf("%d commits, want 3", commits-before)
			}
			if made[0].TransferAmount == made[2].TransferAmount {
				t.Errorf("two invoices have the transfer amount %s", made[0].TransferAmount)
			}
			if made[1].ID != made[3].ID {
				t.Errorf("one key made %s and %s", made[1].ID, made[3].ID)
			}
			if got := number(made[4].TransferAmount) - number(made[4].Amount); (got == 1) == taken {
				t.Errorf("the suffix is %d; another process took 1: %v", got, taken)
			}
		})
	}
}

// TestBatchWithOneReference creates many invoices with one reference that must be unique, in one transaction. One gets
// it. The others do not cost a transaction each.
func TestBatchWithOneReference(t *testing.T) {
	t.Parallel()
	r := newRivalry(t)
	other := r.session()
	_, done := r.occupyLanes(other)
	const many = 64
	made := make(chan error, many)
	for range many {
		req := r.unique("R-1")
		go func() {
			_, err := r.Create(r.t.Context(), req)
			made <- err
		}()
	}
	r.awaitCreates(many, done[0])
	before, _ := r.proxy.Statements()
	r.must(other.Rollback())
	refused := 0
	for range many {
		if err := <-made; errors.As(err, new(*ledger.ReferenceTakenError)) {
			refused++
		} else {
			r.must(err)
		}
	}
	for _, d := range done {
		<-d
	}
	if refused != many-1 {
		t.Errorf("%d of %d creates were refused, want all but one", refused, many)
	}
	if after, _ := r.proxy.Statements(); after-before > 5*many {
		t.Errorf("%d statements for %d creates", after-before, many)
	}
}
