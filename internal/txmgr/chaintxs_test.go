package txmgr_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/txmgr"
)

// wantIntents fails the test unless the intents, in order, have the given statuses. An asterisk marks
// an intent with an observed event.
func wantIntents(t *testing.T, conn *sql.DB, want ...string) {
	t.Helper()
	var got []string
	for i := range want {
		for _, in := range dbtest.Intents(t, conn, fmt.Sprint("inv_", i)) {
			if in.Seen != 0 {
				in.Status += "*"
			}
			got = append(got, in.Status)
		}
	}
	expect.NoDiff(t, cmp.Diff(want, got), "intents")
}

func wantDue(t *testing.T, s *db.DB, want ...string) {
	t.Helper()
	due, err := ledger.DueIntents(t.Context(), s, "base", rowtest.TestRegistry, "", 100)
	rowtest.Must(t, err)
	var got []string
	for _, in := range due {
		got = append(got, in.ID)
	}
	expect.NoDiff(t, cmp.Diff(want, got), "due intents")
}

func TestChainTxRoundTrip(t *testing.T) {
	rowtest.EachWriter(t, 1, func(t *testing.T, s *db.DB, _ *sql.DB) {
		want := rowtest.ChainTx("ctx_1", 5)
		want.Nonce = 1<<63 - 1 // the highest value of the column
		rowtest.Must(t, txmgr.SaveChainTx(t.Context(), s, rowtest.WriterLease, want, []string{"int_0"}))
		want.Reserved = 9
		want.Attempts = append(want.Attempts, rowtest.Attempt("ctx_1", 2))
		rowtest.Must(t, txmgr.AddAttempt(t.Context(), s, rowtest.WriterLease, "ctx_1", 2, want.Attempts[1], 9))
		for name, read := range map[string]func() ([]txmgr.ChainTx, error){
			"unsettled": func() ([]txmgr.ChainTx, error) { return txmgr.UnsettledTxs(t.Context(), s, "base") },
			"by nonce": func() ([]txmgr.ChainTx, error) {
				return txmgr.ChainTxsFrom(t.Context(), s, "base", rowtest.Sender, want.Nonce)
			},
		} {
			got, err := read()
			rowtest.Must(t, err)
			expect.NoDiff(t, cmp.Diff([]txmgr.ChainTx{want}, got, rowtest.Bigs), "%s", name)
		}
		if err := txmgr.AddAttempt(t.Context(), s, rowtest.WriterLease, "ctx_1", 2, rowtest.Attempt("ctx_1", 3), 9); err == nil {
			t.Error("two attempts have one number")
		}
	})
}

func TestDueIntentsPage(t *testing.T) {
	rowtest.EachWriter(t, 4, func(t *testing.T, s *db.DB, _ *sql.DB) {
		page, err := ledger.DueIntents(t.Context(), s, "base", rowtest.TestRegistry, "int_0", 2)
		rowtest.Must(t, err)
		want := []ledger.Intent{rowtest.Intent(1, rowtest.Sample("inv_1", "m")), rowtest.Intent(2, rowtest.Sample("inv_2", "m"))}
		for i := range want {
			want[i].ExpiresAt = rowtest.Sample("inv_1", "m").ExpiresAt
		}
		expect.NoDiff(t, cmp.Diff(want, page), "page")
		if none, err := ledger.DueIntents(t.Context(), s, "polygon", rowtest.TestRegistry, "", 2); err != nil || len(none) != 0 {
			t.Errorf("another chain has %v due, %v", none, err)
		}
		if n, other, err := ledger.DueCount(t.Context(), s, "base", rowtest.TestRegistry); err != nil || n != 4 || other != 0 {
			t.Errorf("%d are due, and %d elsewhere, want 4 and 0; %v", n, other, err)
		}
		if n, other, err := ledger.DueCount(t.Context(), s, "base", invoice.Address{1}); err != nil || n != 0 || other != 4 {
			t.Errorf("%d are due for another registry, and %d elsewhere, want 0 and 4; %v", n, other, err)
		}
	})
}

func TestIntentsFollowTheirTransaction(t *testing.T) {
	rowtest.EachWriter(t, 4, func(t *testing.T, s *db.DB, conn *sql.DB) {
		ctx := t.Context()
		rowtest.Must(t, txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, rowtest.ChainTx("ctx_1", 5), []string{"int_0", "int_1", "int_2"}))
		wantIntents(t, conn, "sent", "sent", "sent", "due")
		wantDue(t, s, "int_3")
		see := func(i int, block uint64) {
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
				return ledger.MarkIntentsObserved(ctx, tx, "base", []ledger.IntentObservation{
					{Registry: rowtest.TestRegistry, CommitmentID: rowtest.Sample(fmt.Sprint("inv_", i), "m").CommitmentID, Kind: invoice.IntentOpen, Block: block},
				})
			})
		}
		see(0, 50)
		see(1, 60)
		see(3, 60) // another account opened it
		wantDue(t, s)
		rowtest.Must(t, txmgr.SetTxStatus(ctx, s, rowtest.WriterLease, "ctx_1", txmgr.TxMined, nil))
		unsettled(t, s, "ctx_1") // because of int_2
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.FinishIntents(ctx, tx, "base", 50) })
		wantIntents(t, conn, "done*", "sent*", "sent", "due*")
		rowtest.Must(t, ledger.ReleaseIntents(ctx, s, rowtest.WriterLease, "ctx_1"))
		wantIntents(t, conn, "done*", "due*", "due", "due*")
		wantDue(t, s, "int_2")
		unsettled(t, s, "ctx_1") // because of its cost
		rowtest.Must(t, txmgr.SetTxStatus(ctx, s, rowtest.WriterLease, "ctx_1", txmgr.TxMined, &ledger.TxCost{Gwei: 1, At: rowtest.AtMS(1)}))
		unsettled(t, s)
		rowtest.Must(t, ledger.SatisfyIntents(ctx, s, rowtest.WriterLease, []string{"int_0", "int_2"}))
		wantIntents(t, conn, "done*", "due*", "done", "due*")
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.UnmarkIntentsObserved(ctx, tx, "base", 50) })
		wantDue(t, s, "int_1", "int_3")
	})
}

// TestSettleIntents settles only the intents that a transaction carries.
func TestSettleIntents(t *testing.T) {
	rowtest.EachWriter(t, 3, func(t *testing.T, s *db.DB, conn *sql.DB) {
		rowtest.Must(t, txmgr.SaveChainTx(t.Context(), s, rowtest.WriterLease, rowtest.ChainTx("ctx_1", 5), []string{"int_0", "int_2"}))
		rowtest.Must(t, ledger.SettleIntents(t.Context(), s, rowtest.WriterLease, "ctx_1"))
		wantIntents(t, conn, "done", "due", "done")
		wantDue(t, s, "int_1")
	})
}

func TestFailedTransactionFreesItsIntents(t *testing.T) {
	rowtest.EachWriter(t, 3, func(t *testing.T, s *db.DB, conn *sql.DB) {
		ctx := t.Context()
		rowtest.Must(t, txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, rowtest.ChainTx("ctx_1", 5), []string{"int_0"}))
		rowtest.Must(t, txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, rowtest.ChainTx("ctx_2", 6), []string{"int_1", "int_2"}))
		unsettled(t, s, "ctx_1", "ctx_2")
		rowtest.Must(t, txmgr.SetTxStatus(ctx, s, rowtest.WriterLease, "ctx_2", txmgr.TxFailed, nil))
		wantIntents(t, conn, "sent", "due", "due")
		unsettled(t, s, "ctx_1")
		rowtest.Must(t, txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, rowtest.ChainTx("ctx_3", 7), []string{"int_1"}))
		rowtest.Must(t, txmgr.SetTxStatus(ctx, s, rowtest.WriterLease, "ctx_2", txmgr.TxFailed, nil)) // another transaction carries its intents
		wantIntents(t, conn, "sent", "sent", "due")
	})
}

// TestUnknownCostIsWork lets the writer ask again for the cost of a mined transaction without items that wait.
func TestUnknownCostIsWork(t *testing.T) {
	rowtest.EachWriter(t, 0, func(t *testing.T, s *db.DB, _ *sql.DB) {
		rowtest.Must(t, txmgr.SaveChainTx(t.Context(), s, rowtest.WriterLease, rowtest.ChainTx("ctx_1", 5), nil))
		for _, cost := range []*ledger.TxCost{nil, {Gwei: 1, At: rowtest.AtMS(1)}} {
			rowtest.Must(t, txmgr.SetTxStatus(t.Context(), s, rowtest.WriterLease, "ctx_1", txmgr.TxMined, cost))
			if found, err := txmgr.HasWork(t.Context(), s, "base"); err != nil || found != (cost == nil) {
				t.Errorf("with the cost %+v there is work: %v, %v", cost, found, err)
			}
		}
	})
}

func unsettled(t *testing.T, s *db.DB, want ...string) {
	t.Helper()
	txs, err := txmgr.UnsettledTxs(t.Context(), s, "base")
	rowtest.Must(t, err)
	var got []string
	for _, tx := range txs {
		got = append(got, tx.ID)
	}
	expect.NoDiff(t, cmp.Diff(want, got), "unsettled transactions")
}

func TestSaveChainTxIsAllOrNothing(t *testing.T) {
	rowtest.EachWriter(t, 3, func(t *testing.T, s *db.DB, conn *sql.DB) {
		ctx := t.Context()
		rowtest.Must(t, txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, rowtest.ChainTx("ctx_1", 5), []string{"int_0"}))
		for name, try := range map[string]func() error{
			"a nonce twice": func() error {
				return txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, rowtest.ChainTx("ctx_2", 5), []string{"int_1"})
			},
			"an intent twice": func() error {
				return txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, rowtest.ChainTx("ctx_2", 6), []string{"int_1", "int_0"})
			},
			"an intent that is none": func() error {
				return txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, rowtest.ChainTx("ctx_2", 6), []string{"int_1", "int_9"})
			},
		} {
			expect.Error(t, db.ErrConflict, "%s: error is", name)(try())
		}
		wantIntents(t, conn, "sent", "due", "due")
		unsettled(t, s, "ctx_1")
	})
}

func TestWritesNeedTheLease(t *testing.T) {
	rowtest.EachWriter(t, 2, func(t *testing.T, s *db.DB, conn *sql.DB) {
		ctx := t.Context()
		rowtest.Must(t, txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, rowtest.ChainTx("ctx_1", 5), []string{"int_0"}))
		if ok, err := s.AcquireWorkLease(ctx, db.WorkLease{Name: rowtest.WriterLease.Name, Holder: "another"}, rowtest.AtMS(2), rowtest.AtMS(3)); err != nil || !ok {
			t.Fatal(ok, err)
		}
		for name, write := range map[string]func() error{
			"save": func() error {
				return txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, rowtest.ChainTx("ctx_2", 6), []string{"int_1"})
			},
			"attempt": func() error {
				return txmgr.AddAttempt(ctx, s, rowtest.WriterLease, "ctx_1", 2, rowtest.Attempt("ctx_1", 2), 0)
			},
			"status":  func() error { return txmgr.SetTxStatus(ctx, s, rowtest.WriterLease, "ctx_1", txmgr.TxFailed, nil) },
			"release": func() error { return ledger.ReleaseIntents(ctx, s, rowtest.WriterLease, "ctx_1") },
			"settle":  func() error { return ledger.SettleIntents(ctx, s, rowtest.WriterLease, "ctx_1") },
			"satisfy": func() error { return ledger.SatisfyIntents(ctx, s, rowtest.WriterLease, []string{"int_1"}) },
		} {
			expect.Error(t, db.ErrConflict, "%s without the lease: error is", name)(write())
		}
		wantIntents(t, conn, "sent", "due")
		if txs, err := txmgr.UnsettledTxs(ctx, s, "base"); err != nil || len(txs) != 1 || len(txs[0].Attempts) != 1 {
			t.Errorf("transactions are %v, %v", txs, err)
		}
	})
}

// TestSpendingByTheSchedule judges spending by the schedule's clock and not by the machine's. The
// machine's clock was a day ahead, as after an outage that the schedule does not count, or behind.
func TestSpendingByTheSchedule(t *testing.T) {
	rowtest.EachWriter(t, 1, func(t *testing.T, s *db.DB, _ *sql.DB) {
		const day = 24 * 60 * 60 * 1000
		now, scheduled := rowtest.AtMS(10*day), rowtest.AtMS(9*day)
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
			row := rowtest.ChainTx(fmt.Sprint("ctx_", i), uint64(i))
			row.CreatedAt, row.Scheduled, row.Reserved = rowtest.AtMS(at+tx.machine), rowtest.AtMS(at), 1<<i
			rowtest.Must(t, txmgr.SaveChainTx(t.Context(), s, rowtest.WriterLease, row, nil))
			var cost *ledger.TxCost
			if tx.spent {
				cost = &ledger.TxCost{Gwei: 1 << i, At: row.CreatedAt, Scheduled: row.Scheduled}
			}
			rowtest.Must(t, txmgr.SetTxStatus(t.Context(), s, rowtest.WriterLease, row.ID, txmgr.TxFailed, cost))
		}
		spent, reserved, err := txmgr.Spending(t.Context(), s, "base", ledger.WindowBefore(now, scheduled, day*1_000_000), "")
		if err != nil || spent != 1+2+4 || reserved != 32 {
			t.Errorf("%d spent and %d reserved, %v", spent, reserved, err)
		}
	})
}

// TestSpending adds up the costs of mined transactions and the possible costs of transactions in flight.
func TestSpending(t *testing.T) {
	rowtest.EachWriter(t, 1, func(t *testing.T, s *db.DB, _ *sql.DB) {
		ctx := t.Context()
		want := func(spent, reserved int64, sinceMS int64, but string) {
			t.Helper()
			gotSpent, gotReserved, err := txmgr.Spending(ctx, s, "base", ledger.Window{Since: rowtest.AtMS(sinceMS), Oldest: rowtest.AtMS(sinceMS)}, but)
			rowtest.Must(t, err)
			if gotSpent != spent || gotReserved != reserved {
				t.Errorf("since %d, without %q: %d spent and %d reserved, want %d and %d", sinceMS, but, gotSpent, gotReserved, spent, reserved)
			}
		}
		want(0, 0, 0, "")
		for i, tx := range []struct {
			status txmgr.TxStatus
			made   int64
			spent  *ledger.TxCost
		}{
			{txmgr.TxSent, 10, nil}, // 1: in flight, at any age
			{txmgr.TxMined, 10, &ledger.TxCost{Gwei: 7, At: rowtest.AtMS(50)}}, // 2
			{txmgr.TxMined, 60, &ledger.TxCost{Gwei: 8, At: rowtest.AtMS(70)}}, // 4
			{txmgr.TxFailed, 10, nil},                                  // 8: failed before the period
			{txmgr.TxFailed, 60, nil},                                  // 16: failed, but a node may have it
			{txmgr.TxFailed, 60, &ledger.TxCost{At: rowtest.AtMS(60)}}, // 32: another transaction used its nonce
		} {
			row := rowtest.ChainTx(fmt.Sprint("ctx_", i), uint64(i))
			row.CreatedAt, row.Reserved = rowtest.AtMS(tx.made), 1<<i
			rowtest.Must(t, txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, row, nil))
			rowtest.Must(t, txmgr.SetTxStatus(ctx, s, rowtest.WriterLease, row.ID, tx.status, tx.spent))
		}
		want(15, 1+8+16, 0, "")
		want(15, 1+16, 50, "")
		want(8, 1+16, 51, "")
		want(8, 16, 51, "ctx_0")
		want(0, 1, 71, "")
		rowtest.Must(t, txmgr.SetTxStatus(ctx, s, rowtest.WriterLease, "ctx_2", txmgr.TxSent, nil)) // a reorg
		want(7, 1+4+16, 50, "")
		rowtest.Must(t, txmgr.SetTxStatus(ctx, s, rowtest.WriterLease, "ctx_1", txmgr.TxFailed, nil)) // a reorg, and its nonce was used
		want(0, 1+2+4+8+16, 10, "")
		if spent, reserved, err := txmgr.Spending(ctx, s, "polygon", ledger.Window{}, ""); spent+reserved != 0 || err != nil {
			t.Errorf("another chain spent %d and reserved %d, %v", spent, reserved, err)
		}
	})
}

// TestAcceptedAttempt checks that the time of an attempt's first acceptance is kept.
func TestAcceptedAttempt(t *testing.T) {
	rowtest.EachWriter(t, 1, func(t *testing.T, s *db.DB, _ *sql.DB) {
		want := rowtest.ChainTx("ctx_1", 5)
		rowtest.Must(t, txmgr.SaveChainTx(t.Context(), s, rowtest.WriterLease, want, nil))
		for _, ms := range []int64{30, 40} {
			rowtest.Must(t, txmgr.AcceptAttempt(t.Context(), s, rowtest.WriterLease, want.Attempts[0].TxHash, rowtest.AtMS(ms)))
		}
		want.Attempts[0].AcceptedAt = rowtest.AtMS(30)
		got, err := txmgr.ChainTxsFrom(t.Context(), s, "base", rowtest.Sender, 0)
		rowtest.Must(t, err)
		expect.NoDiff(t, cmp.Diff([]txmgr.ChainTx{want}, got, rowtest.Bigs), "transactions")
	})
}
