package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

var (
	writerLease  = store.WorkLease{Name: "writer:base", Holder: "me"}
	sender       = invoice.Address{0xdd}
	testRegistry = invoice.Address{0x60}
	bigs         = cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })
)

// eachWriter runs a test on each database, with the lease of a writer and n due intents to
// open: int_0 of inv_0 and so on.
func eachWriter(t *testing.T, n int, test func(t *testing.T, s *store.Store, db *sql.DB)) {
	t.Helper()
	for name, url := range storetest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := url(t)
			s := storetest.Open(t, dsn)
			if ok, err := s.AcquireWorkLease(t.Context(), writerLease, atMS(1), atMS(2)); err != nil || !ok {
				t.Fatal(ok, err)
			}
			var intents []store.Intent
			for i := range n {
				inv := sample(fmt.Sprint("inv_", i), "m")
				insert(t, s, inv)
				intents = append(intents, intent(i, inv))
			}
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.InsertIntents(ctx, intents) })
			test(t, s, storetest.SQL(t, dsn))
		})
	}
}

func intent(i int, inv invoice.Invoice) store.Intent {
	return store.Intent{
		ID: fmt.Sprint("int_", i), ChainKey: inv.ChainKey, InvoiceID: inv.ID, CommitmentID: inv.CommitmentID,
		Registry: testRegistry, Kind: invoice.IntentOpen, CreatedAt: invoice.Unix(1000),
	}
}

func chainTx(id string, nonce uint64) store.ChainTx {
	return store.ChainTx{
		ID: id, ChainKey: "base", Sender: sender, Nonce: nonce, Kind: store.TxOpen, Destination: testRegistry, Status: store.TxSent,
		CreatedAt: atMS(7), Attempts: []store.TxAttempt{attempt(id, 1)},
	}
}

func attempt(id string, number int64) store.TxAttempt {
	var hash invoice.Hash
	copy(hash[:], id)
	hash[31] = byte(number)
	cap256 := new(big.Int).Lsh(big.NewInt(number), 240)
	return store.TxAttempt{TxHash: hash, Raw: []byte(id), FeeCap: cap256, TipCap: big.NewInt(number), CreatedAt: atMS(number)}
}

// wantIntents fails the test unless the intents, in order, have the given statuses. An
// asterisk marks an intent whose event was observed.
func wantIntents(t *testing.T, db *sql.DB, want ...string) {
	t.Helper()
	var got []string
	for i := range want {
		for _, in := range storetest.Intents(t, db, fmt.Sprint("inv_", i)) {
			if in.Seen != 0 {
				in.Status += "*"
			}
			got = append(got, in.Status)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("intents (-want +got):\n%s", diff)
	}
}

func wantDue(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	due, err := s.DueIntents(t.Context(), "base", testRegistry, "", 100)
	must(t, err)
	var got []string
	for _, in := range due {
		got = append(got, in.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("due intents (-want +got):\n%s", diff)
	}
}

func TestChainTxRoundTrip(t *testing.T) {
	eachWriter(t, 1, func(t *testing.T, s *store.Store, _ *sql.DB) {
		want := chainTx("ctx_1", 5)
		want.Nonce = 1<<63 - 1 // the highest value of the column
		must(t, s.SaveChainTx(t.Context(), writerLease, want, []string{"int_0"}))
		want.Reserved = 9
		want.Attempts = append(want.Attempts, attempt("ctx_1", 2))
		must(t, s.AddAttempt(t.Context(), writerLease, "ctx_1", 2, want.Attempts[1], 9))
		for name, read := range map[string]func() ([]store.ChainTx, error){
			"unsettled": func() ([]store.ChainTx, error) { return s.UnsettledTxs(t.Context(), "base") },
			"by nonce":  func() ([]store.ChainTx, error) { return s.ChainTxsFrom(t.Context(), "base", sender, want.Nonce) },
		} {
			got, err := read()
			must(t, err)
			if diff := cmp.Diff([]store.ChainTx{want}, got, bigs); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if err := s.AddAttempt(t.Context(), writerLease, "ctx_1", 2, attempt("ctx_1", 3), 9); err == nil {
			t.Error("two attempts have one number")
		}
	})
}

func TestDueIntentsPage(t *testing.T) {
	eachWriter(t, 4, func(t *testing.T, s *store.Store, _ *sql.DB) {
		page, err := s.DueIntents(t.Context(), "base", testRegistry, "int_0", 2)
		must(t, err)
		want := []store.Intent{intent(1, sample("inv_1", "m")), intent(2, sample("inv_2", "m"))}
		for i := range want {
			want[i].ExpiresAt = sample("inv_1", "m").ExpiresAt
		}
		if diff := cmp.Diff(want, page); diff != "" {
			t.Errorf("page (-want +got):\n%s", diff)
		}
		if none, err := s.DueIntents(t.Context(), "polygon", testRegistry, "", 2); err != nil || len(none) != 0 {
			t.Errorf("another chain has %v due, %v", none, err)
		}
		if n, other, err := s.DueCount(t.Context(), "base", testRegistry); err != nil || n != 4 || other != 0 {
			t.Errorf("%d are due, and %d elsewhere, want 4 and 0; %v", n, other, err)
		}
		if n, other, err := s.DueCount(t.Context(), "base", invoice.Address{1}); err != nil || n != 0 || other != 4 {
			t.Errorf("%d are due for another registry, and %d elsewhere, want 0 and 4; %v", n, other, err)
		}
	})
}

func TestIntentsFollowTheirTransaction(t *testing.T) {
	eachWriter(t, 4, func(t *testing.T, s *store.Store, db *sql.DB) {
		ctx := t.Context()
		must(t, s.SaveChainTx(ctx, writerLease, chainTx("ctx_1", 5), []string{"int_0", "int_1", "int_2"}))
		wantIntents(t, db, "sent", "sent", "sent", "due")
		wantDue(t, s, "int_3")
		see := func(i int, block uint64) {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.MarkIntentsObserved(ctx, "base", []store.IntentObservation{
					{Registry: testRegistry, CommitmentID: sample(fmt.Sprint("inv_", i), "m").CommitmentID, Kind: invoice.IntentOpen, Block: block},
				})
			})
		}
		see(0, 50)
		see(1, 60)
		see(3, 60) // another account opened it
		wantDue(t, s)
		must(t, s.SetTxStatus(ctx, writerLease, "ctx_1", store.TxMined, nil))
		unsettled(t, s, "ctx_1") // because of int_2
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.FinishIntents(ctx, "base", 50) })
		wantIntents(t, db, "done*", "sent*", "sent", "due*")
		must(t, s.ReleaseIntents(ctx, writerLease, "ctx_1"))
		wantIntents(t, db, "done*", "due*", "due", "due*")
		wantDue(t, s, "int_2")
		unsettled(t, s)
		must(t, s.SatisfyIntents(ctx, writerLease, []string{"int_0", "int_2"}))
		wantIntents(t, db, "done*", "due*", "done", "due*")
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.UnmarkIntentsObserved(ctx, "base", 50) })
		wantDue(t, s, "int_1", "int_3")
	})
}

// TestSettleIntents ends those that a transaction carries, and no others.
func TestSettleIntents(t *testing.T) {
	eachWriter(t, 3, func(t *testing.T, s *store.Store, db *sql.DB) {
		must(t, s.SaveChainTx(t.Context(), writerLease, chainTx("ctx_1", 5), []string{"int_0", "int_2"}))
		must(t, s.SettleIntents(t.Context(), writerLease, "ctx_1"))
		wantIntents(t, db, "done", "due", "done")
		wantDue(t, s, "int_1")
	})
}

func TestFailedTransactionFreesItsIntents(t *testing.T) {
	eachWriter(t, 3, func(t *testing.T, s *store.Store, db *sql.DB) {
		ctx := t.Context()
		must(t, s.SaveChainTx(ctx, writerLease, chainTx("ctx_1", 5), []string{"int_0"}))
		must(t, s.SaveChainTx(ctx, writerLease, chainTx("ctx_2", 6), []string{"int_1", "int_2"}))
		unsettled(t, s, "ctx_1", "ctx_2")
		must(t, s.SetTxStatus(ctx, writerLease, "ctx_2", store.TxFailed, nil))
		wantIntents(t, db, "sent", "due", "due")
		unsettled(t, s, "ctx_1")
		must(t, s.SaveChainTx(ctx, writerLease, chainTx("ctx_3", 7), []string{"int_1"}))
		must(t, s.SetTxStatus(ctx, writerLease, "ctx_2", store.TxFailed, nil)) // another transaction carries its intents
		wantIntents(t, db, "sent", "sent", "due")
	})
}

func unsettled(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	txs, err := s.UnsettledTxs(t.Context(), "base")
	must(t, err)
	var got []string
	for _, tx := range txs {
		got = append(got, tx.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unsettled transactions (-want +got):\n%s", diff)
	}
}

func TestSaveChainTxIsAllOrNothing(t *testing.T) {
	eachWriter(t, 3, func(t *testing.T, s *store.Store, db *sql.DB) {
		ctx := t.Context()
		must(t, s.SaveChainTx(ctx, writerLease, chainTx("ctx_1", 5), []string{"int_0"}))
		for name, try := range map[string]func() error{
			"a nonce twice": func() error { return s.SaveChainTx(ctx, writerLease, chainTx("ctx_2", 5), []string{"int_1"}) },
			"an intent twice": func() error {
				return s.SaveChainTx(ctx, writerLease, chainTx("ctx_2", 6), []string{"int_1", "int_0"})
			},
			"an intent that is none": func() error {
				return s.SaveChainTx(ctx, writerLease, chainTx("ctx_2", 6), []string{"int_1", "int_9"})
			},
		} {
			if err := try(); !errors.Is(err, store.ErrConflict) {
				t.Errorf("%s: error is %v, want ErrConflict", name, err)
			}
		}
		wantIntents(t, db, "sent", "due", "due")
		unsettled(t, s, "ctx_1")
	})
}

func TestWritesNeedTheLease(t *testing.T) {
	eachWriter(t, 2, func(t *testing.T, s *store.Store, db *sql.DB) {
		ctx := t.Context()
		must(t, s.SaveChainTx(ctx, writerLease, chainTx("ctx_1", 5), []string{"int_0"}))
		if ok, err := s.AcquireWorkLease(ctx, store.WorkLease{Name: writerLease.Name, Holder: "another"}, atMS(2), atMS(3)); err != nil || !ok {
			t.Fatal(ok, err)
		}
		for name, write := range map[string]func() error{
			"save":    func() error { return s.SaveChainTx(ctx, writerLease, chainTx("ctx_2", 6), []string{"int_1"}) },
			"attempt": func() error { return s.AddAttempt(ctx, writerLease, "ctx_1", 2, attempt("ctx_1", 2), 0) },
			"status":  func() error { return s.SetTxStatus(ctx, writerLease, "ctx_1", store.TxFailed, nil) },
			"release": func() error { return s.ReleaseIntents(ctx, writerLease, "ctx_1") },
			"settle":  func() error { return s.SettleIntents(ctx, writerLease, "ctx_1") },
			"satisfy": func() error { return s.SatisfyIntents(ctx, writerLease, []string{"int_1"}) },
		} {
			if err := write(); !errors.Is(err, store.ErrConflict) {
				t.Errorf("%s without the lease: error is %v, want ErrConflict", name, err)
			}
		}
		wantIntents(t, db, "sent", "due")
		if txs, err := s.UnsettledTxs(ctx, "base"); err != nil || len(txs) != 1 || len(txs[0].Attempts) != 1 {
			t.Errorf("transactions are %v, %v", txs, err)
		}
	})
}

// TestSpendingByTheSchedule judges spending by the schedule's clock and not by the machine's. The
// machine's clock was a day ahead, as after an outage that the schedule does not count, or behind.
func TestSpendingByTheSchedule(t *testing.T) {
	eachWriter(t, 1, func(t *testing.T, s *store.Store, _ *sql.DB) {
		const day = 24 * 60 * 60 * 1000
		now, scheduled := atMS(10*day), atMS(9*day)
		for i, tx := range []struct {
			age     int64 // of the transaction, in days by the schedule's clock
			machine int64 // ms that the machine's clock was ahead of the schedule's
			spent   bool
		}{
			{0, day, true}, {0, 9 * day, true}, {0, -day / 2, true}, // 1, 2, 4: now, by any clock
			{2, day, true}, {2, 9 * day, true}, // 8, 16: two days ago
			{0, -day / 2, false}, {2, 9 * day, false}, // 32, 64: failed, but a node may have it
		} {
			at := 9*day - tx.age*day
			row := chainTx(fmt.Sprint("ctx_", i), uint64(i))
			row.CreatedAt, row.Scheduled, row.Reserved = atMS(at+tx.machine), atMS(at), 1<<i
			must(t, s.SaveChainTx(t.Context(), writerLease, row, nil))
			var cost *store.TxCost
			if tx.spent {
				cost = &store.TxCost{Gwei: 1 << i, At: row.CreatedAt, Scheduled: row.Scheduled}
			}
			must(t, s.SetTxStatus(t.Context(), writerLease, row.ID, store.TxFailed, cost))
		}
		spent, reserved, err := s.Spending(t.Context(), "base", store.WindowBefore(now, scheduled, day*1_000_000), "")
		if err != nil || spent != 1+2+4 || reserved != 32 {
			t.Errorf("%d spent and %d reserved, %v", spent, reserved, err)
		}
	})
}

// TestSpending adds up what transactions did cost, and what those in flight may cost.
func TestSpending(t *testing.T) {
	eachWriter(t, 1, func(t *testing.T, s *store.Store, _ *sql.DB) {
		ctx := t.Context()
		want := func(spent, reserved int64, sinceMS int64, but string) {
			t.Helper()
			gotSpent, gotReserved, err := s.Spending(ctx, "base", store.Window{Since: atMS(sinceMS), Oldest: atMS(sinceMS)}, but)
			must(t, err)
			if gotSpent != spent || gotReserved != reserved {
				t.Errorf("since %d, without %q: %d spent and %d reserved, want %d and %d", sinceMS, but, gotSpent, gotReserved, spent, reserved)
			}
		}
		want(0, 0, 0, "")
		for i, tx := range []struct {
			status store.TxStatus
			made   int64
			spent  *store.TxCost
		}{
			{store.TxSent, 10, nil},                                   // 1: in flight, at any age
			{store.TxMined, 10, &store.TxCost{Gwei: 7, At: atMS(50)}}, // 2
			{store.TxMined, 60, &store.TxCost{Gwei: 8, At: atMS(70)}}, // 4
			{store.TxFailed, 10, nil},                                 // 8: failed before the period
			{store.TxFailed, 60, nil},                                 // 16: failed, but a node may have it
			{store.TxFailed, 60, &store.TxCost{At: atMS(60)}},         // 32: another transaction used its nonce
		} {
			row := chainTx(fmt.Sprint("ctx_", i), uint64(i))
			row.CreatedAt, row.Reserved = atMS(tx.made), 1<<i
			must(t, s.SaveChainTx(ctx, writerLease, row, nil))
			must(t, s.SetTxStatus(ctx, writerLease, row.ID, tx.status, tx.spent))
		}
		want(15, 1+8+16, 0, "")
		want(15, 1+16, 50, "")
		want(8, 1+16, 51, "")
		want(8, 16, 51, "ctx_0")
		want(0, 1, 71, "")
		must(t, s.SetTxStatus(ctx, writerLease, "ctx_2", store.TxSent, nil)) // a reorg
		want(7, 1+4+16, 50, "")
		if spent, reserved, err := s.Spending(ctx, "polygon", store.Window{}, ""); spent+reserved != 0 || err != nil {
			t.Errorf("another chain spent %d and reserved %d, %v", spent, reserved, err)
		}
	})
}

// TestAcceptedAttempt checks that the time of an attempt's first acceptance is kept.
func TestAcceptedAttempt(t *testing.T) {
	eachWriter(t, 1, func(t *testing.T, s *store.Store, _ *sql.DB) {
		want := chainTx("ctx_1", 5)
		must(t, s.SaveChainTx(t.Context(), writerLease, want, nil))
		for _, ms := range []int64{30, 40} {
			must(t, s.AcceptAttempt(t.Context(), writerLease, want.Attempts[0].TxHash, atMS(ms)))
		}
		want.Attempts[0].AcceptedAt = atMS(30)
		got, err := s.ChainTxsFrom(t.Context(), "base", sender, 0)
		must(t, err)
		if diff := cmp.Diff([]store.ChainTx{want}, got, bigs); diff != "" {
			t.Errorf("transactions (-want +got):\n%s", diff)
		}
	})
}
