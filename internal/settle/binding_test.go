package settle_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store/storetest"
)

// onPostgres returns a world in a PostgreSQL database, where transactions run
// at the same time. The service chooses the suffix 1 first.
func onPostgres(t *testing.T) *world {
	t.Helper()
	u := storetest.Postgres(t)
	w := (&database{store: storetest.Open(t, u), sql: storetest.SQL(t, u)}).world(t)
	w.random = narrow{rand.New(rand.NewPCG(1, 0)), 0, 1}
	w.Service = w.service()
	return w
}

// session is a transaction of another process.
type session struct {
	*storetest.Tx
	w *world
}

func (w *world) session() session {
	w.t.Helper()
	tx, err := w.db.sql.BeginTx(w.t.Context(), nil)
	w.must(err)
	return session{tx, w}
}

// run runs a statement of the session.
func (s session) run(query string, args ...any) {
	s.w.t.Helper()
	if _, err := s.ExecContext(s.w.t.Context(), query, args...); err != nil {
		s.w.t.Errorf("%v\n%s", err, query)
	}
}

// tell holds back every transaction that tells an amount of the world's address.
func (s session) tell(a invoice.Amount) {
	s.w.t.Helper()
	s.run(`INSERT INTO told_amounts (invoice_id, base, amount, merchant_address, chain_key, token, from_block, expires_at, remainder, live)
		VALUES ('inv_other', '1', $1, $2, $3, $4, 0, 0, 0, 1)`, a.String(), s.w.address.String(), s.w.chainKey, usdc.String())
}

// awaitLocked returns once so many transactions of the database wait for a lock
// of a kind, or done is closed.
func (w *world) awaitLocked(n int, kind string, done <-chan struct{}) {
	w.t.Helper()
	for {
		var waiting int
		err := w.db.sql.QueryRowContext(w.t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = $1`, kind).Scan(&waiting)
		w.must(err)
		select {
		case <-done:
			return
		default:
		}
		if waiting >= n {
			return
		}
	}
}

// inBackground runs fn and returns a channel that is closed when it has ended.
func (w *world) inBackground(fn func(ctx context.Context) error) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := fn(w.t.Context()); err != nil {
			w.t.Error(err)
		}
	}()
	return done
}

// createLater creates an invoice in the background.
func (w *world) createLater(into *invoice.Invoice) <-chan struct{} {
	d := w.draft()
	return w.inBackground(func(ctx context.Context) (err error) {
		*into, err = w.Create(ctx, settle.CreateRequest{Draft: d})
		return err
	})
}

// TestCreateDuringARollback rolls the chain back while the creation of an
// invoice has read its height and is not committed: the invoice can be paid in
// the blocks that replace the old ones.
func TestCreateDuringARollback(t *testing.T) {
	t.Parallel()
	w := onPostgres(t)
	w.create(amount(9_000_000))
	w.mine(start + 1)
	w.mine(start + 2)
	other := w.session()
	other.tell(invoice.NewAmount(1_000_001))
	var inv invoice.Invoice
	created := w.createLater(&inv)
	w.awaitLocked(1, "transactionid", created)
	to := w.blocks[0].Header
	rolled := w.inBackground(func(ctx context.Context) error { return w.Rollback(ctx, w.chainKey, to) })
	w.awaitLocked(1, "advisory", rolled)
	w.must(other.Rollback())
	<-created
	<-rolled
	w.blocks, w.forks = w.blocks[:1], w.forks+1
	p := w.pay(inv.TransferAmount)
	w.mine(start+3, p)
	w.went(p, w.invoice(inv.ID), invoice.ByTransferAmount)
}

// TestCreateSurvivesADeadlock has the creation of an invoice and another
// transaction wait for each other: the database ends the creation, which is
// run again and succeeds, once.
func TestCreateSurvivesADeadlock(t *testing.T) {
	t.Parallel()
	w := onPostgres(t)
	other, gate := w.session(), w.session()
	other.run("SET LOCAL deadlock_timeout = '1h'") // so that it is the creation that ends
	other.tell(invoice.NewAmount(1_000_001))
	gate.run("SELECT pg_advisory_xact_lock(1651076708, hashtext($1))", w.chainKey)
	var inv invoice.Invoice
	created := w.createLater(&inv)
	w.awaitLocked(1, "advisory", created) // it has inserted its merchant by now
	inserted := w.inBackground(func(ctx context.Context) error {
		_, err := other.ExecContext(ctx, "INSERT INTO merchants VALUES ($1, 1)", w.merchant)
		return err
	})
	w.awaitLocked(1, "transactionid", inserted)
	w.must(gate.Rollback())
	<-inserted // the creation was undone, since it would not have let go of the merchant otherwise
	w.must(other.Rollback())
	<-created
	if got := w.invoice(inv.ID); got.TransferAmount != inv.TransferAmount {
		t.Errorf("%s is told, the answer was %s", got.TransferAmount, inv.TransferAmount)
	}
	if got := w.told(inv); len(got) != 1 {
		t.Errorf("its events are %q", got)
	}
	if got := w.intents(inv); len(got) != 1 {
		t.Errorf("its intents are %q", got)
	}
}
