package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestCreatesWhileTheDatabaseIsHeld blocks creates from another session: on PostgreSQL by the lock of events, on SQLite
// as the file's only writer. Each of many creates ends in time. One that waited too long for its transaction was not
// created, and the same key creates one invoice, whatever the result of the first try.
func TestCreatesWhileTheDatabaseIsHeld(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		const creates, timeout = 500, 10 * time.Second // a request's
		w := d.world(t)
		w.create() // it prepares the statements, and claims the address
		repeat := ledger.CreateRequest{Once: ledger.Once{Key: "made-before", Scope: w.merchant}, Draft: w.draft()}
		made, err := w.Create(t.Context(), repeat)
		w.must(err)
		release := d.hold(t)
		requests, errs := make([]ledger.CreateRequest, creates), make([]error, creates)
		began := time.Now()
		var group sync.WaitGroup
		for i := range creates {
			d := w.draft()
			d.Amount = invoice.NewAmount(uint64(2_000_000 + 1000*i))
			requests[i] = ledger.CreateRequest{Once: ledger.Once{Scope: w.merchant}, Draft: d}
			if i%2 == 0 {
				requests[i].Key = fmt.Sprint("order-", i)
			}
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				_, errs[i] = w.Create(ctx, requests[i])
			})
		}
		group.Go(func() {
			clock.Sleep(t.Context(), time.Second, nil) // until the transactions have taken the creates that they hold
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			if inv, err := w.Create(ctx, repeat); err != nil || inv.ID != made.ID {
				t.Errorf("a repeat got %q, %v; want %q", inv.ID, err, made.ID)
			}
		})
		group.Wait()
		if took := time.Since(began); took > timeout+5*time.Second {
			t.Errorf("the creates took %v", took)
		}
		release()
		again := time.Now()
		w.create() // behind the transaction in progress
		if took := time.Since(again); took > ledger.CreateWait {
			t.Errorf("a create took %v once the database was free", took)
		}
		withdrawn := 0
		for i, err := range errs {
			n := d.invoicesOf(t, w, requests[i])
			switch {
			case errors.Is(err, ledger.ErrCreatesWait):
				withdrawn++
				if n != 0 {
					t.Errorf("create %d was refused, and made %d invoices", i, n)
				}
			case err == nil && n != 1, n > 1:
				t.Errorf("create %d made %d invoices and returned %v", i, n, err)
			case err != nil && !db.Unavailable(err) && !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("create %d: %v, want an error that asks to try again", i, err)
			}
		}
		if withdrawn < creates/2 {
			t.Errorf("%d of %d creates were refused before their transaction, want most", withdrawn, creates)
		}
		for i := 0; i < creates; i += 2 {
			group.Go(func() {
				if _, err := w.Create(t.Context(), requests[i]); err != nil {
					t.Errorf("create %d with its key again: %v", i, err)
				} else if n := d.invoicesOf(t, w, requests[i]); n != 1 {
					t.Errorf("create %d with its key again: %d invoices, want 1", i, n)
				}
			})
		}
		group.Wait()
	})
}

// TestGiveWay checks that low-priority work waits until no create waits, for its time at most.
func TestGiveWay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		w := d.world(t)
		w.create()
		w.GiveWay(t.Context(), time.Hour) // until the transaction is over
		if w.GiveWay(t.Context(), time.Hour) {
			t.Error("it gave way, and no create waited")
		}
		release := d.hold(t)
		made := make(chan error, 1)
		go func() {
			_, err := w.Create(t.Context(), ledger.CreateRequest{Once: ledger.Once{Scope: w.merchant}, Draft: w.draft()})
			made <- err
		}()
		const most = 10 * time.Millisecond
		var waited time.Duration
		for tries := 0; waited == 0; tries++ {
			if began := time.Now(); w.GiveWay(t.Context(), most) {
				waited = time.Since(began)
			} else if clock.Sleep(t.Context(), time.Millisecond, nil); tries == 5000 {
				t.Fatal("no create waits while the database is held")
			}
		}
		if waited < most {
			t.Errorf("it gave way for %v, and a create still waited; want %v", waited, most)
		}
		gave := make(chan bool, 1)
		go func() { gave <- w.GiveWay(t.Context(), time.Hour) }()
		release()
		if err := <-made; err != nil {
			t.Errorf("create: %v", err)
		}
		<-gave
	})
}

// hold blocks creates from a separate session, until release is called.
func (d *database) hold(t *testing.T) (release func()) {
	t.Helper()
	statement := "UPDATE chains SET halted = halted"
	if strings.HasSuffix(t.Name(), "postgres") {
		statement = "SELECT pg_advisory_xact_lock(1903520116)" // the lock of events
	}
	session, err := d.sql.Conn(t.Context())
	if err == nil {
		_, err = session.ExecContext(t.Context(), "BEGIN")
	}
	if err == nil {
		_, err = session.ExecContext(t.Context(), statement)
	}
	expect.OK(t, err)
	return func() {
		if _, err := session.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		expect.NoError(t, session.Close())
	}
}

// invoicesOf counts the invoices of a create with a unique amount.
func (d *database) invoicesOf(t *testing.T, w *world, r ledger.CreateRequest) (n int) {
	t.Helper()
	query := fmt.Sprintf("SELECT count(*) FROM invoices WHERE merchant_id = '%s' AND amount = '%s'", w.merchant, r.Draft.Amount)
	expect.OK(t, d.sql.QueryRowContext(t.Context(), query).Scan(&n))
	return n
}
