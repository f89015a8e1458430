package db_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// has reports whether the invoice is stored.
func has(t *testing.T, s *db.DB, id string) bool {
	t.Helper()
	_, err := ledger.NewReader(s).Invoice(t.Context(), id)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// add inserts an invoice of merchant m, which exists.
func add(ctx context.Context, tx *db.Tx, id string) error {
	_, err := ledger.InsertInvoices(ctx, tx, []invoice.Invoice{rowtest.Sample(id, "m")})
	return err
}

func TestUpdateIsUndoneByAnError(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_0", "m"))
		broken := errors.New("broken")
		err := s.Update(t.Context(), func(tx *db.Tx) error {
			if err := add(t.Context(), tx, "inv_1"); err != nil {
				return err
			}
			if got, err := ledger.NewReader(tx).Invoice(t.Context(), "inv_1"); err != nil || got.ID != "inv_1" {
				t.Errorf("a transaction does not see what it wrote: %v", err)
			}
			if _, err := ledger.NewReader(s).Invoice(t.Context(), "inv_1"); !errors.Is(err, db.ErrNotFound) {
				t.Errorf("others see what is not committed: %v", err)
			}
			return broken
		})
		expect.Error(t, broken, "Update gives")(err)
		if has(t, s, "inv_1") {
			t.Error("what was undone is there")
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return add(ctx, tx, "inv_1") })
		if !has(t, s, "inv_1") {
			t.Error("what was committed is not there")
		}
	})
}

func TestUpdateIsUndoneByAPanic(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_0", "m"))
		func() {
			defer func() {
				if got := recover(); got != "ouch" {
					t.Errorf("the caller recovers %v, want the function's panic", got)
				}
			}()
			err := s.Update(t.Context(), func(tx *db.Tx) error {
				if err := add(t.Context(), tx, "inv_1"); err != nil {
					return err
				}
				panic("ouch")
			})
			t.Errorf("Update returned %v", err)
		}()
		if has(t, s, "inv_1") {
			t.Error("what was undone is there")
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return add(ctx, tx, "inv_1") })
	})
}

// TestUpdatesAtOnce runs transactions from many goroutines. Every third fails, by its
// function or in the database, and some panic. The others must succeed.
func TestUpdatesAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_0", "m"))
		const workers, each = 64, 6
		broken := errors.New("broken")
		id := func(w, i int) string { return fmt.Sprintf("inv_%d_%d", w, i) }
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := range each {
					func() {
						defer func() {
							if got := recover(); (got != nil) != (i == 5) {
								t.Errorf("%s: recovered %v", id(w, i), got)
							}
						}()
						err := s.Update(t.Context(), func(tx *db.Tx) error {
							if err := add(t.Context(), tx, id(w, i)); err != nil {
								return err
							}
							switch i {
							case 1:
								return broken
							case 3:
								return add(t.Context(), tx, "inv_0") // exists already
							case 5:
								panic("ouch")
							}
							return nil
						})
						if (err != nil) != (i == 1 || i == 3) || (i == 1 && !errors.Is(err, broken)) {
							t.Errorf("%s: %v", id(w, i), err)
						}
					}()
				}
			})
		}
		wg.Wait()
		for w := range workers {
			for i := range each {
				if got, want := has(t, s, id(w, i)), i%2 == 0; got != want {
					t.Errorf("%s is there: %t, want %t", id(w, i), got, want)
				}
			}
		}
	})
}

// TestUpdatesOfOneTransaction runs several transactions in one of SQLite. If some fail, the others are still stored;
// they run again if a failed one had changed a row. If the database does not answer, all fail, and none waits again.
func TestUpdatesOfOneTransaction(t *testing.T) {
	t.Parallel()
	s := dbtest.Open(t, dbtest.SQLite(t))
	rowtest.Insert(t, s, rowtest.Sample("inv_0", "m"))
	broken := errors.New("broken")
	for _, test := range []struct {
		// do is the action of each of the transactions after an insert: n for nothing, e for an error, p for a panic, t
		// for a timeout, l for a timeout when it runs again, c for a failure of the commit. Without an insert, r
		// returns an error, q panics, and k inserts a row that exists. h is t, but hides its error.
		do      string
		runs    string // of each
		results string // s for stored, e for its own error, a for a database that is away
	}{
		{"nnn", "111", "sss"},
		{"enn", "211", "ess"},
		{"nen", "221", "ses"},
		{"nne", "222", "sse"},
		{"eee", "211", "eee"},
		{"npn", "221", "ses"},
		{"ntn", "110", "aaa"},
		{"etn", "210", "eaa"},
		{"nrn", "111", "ses"},
		{"rrr", "111", "eee"},
		{"rne", "222", "ese"},
		{"nrt", "111", "aaa"},
		{"lren", "2110", "aaaa"},
		{"ncn", "222", "ses"},
		{"nqn", "111", "ses"},
		{"nkn", "111", "ses"},
		{"nhn", "110", "aaa"},
	} {
		bound := time.Minute
		if strings.ContainsAny(test.do, "tlh") {
			bound = 300 * time.Millisecond
		}
		s.BoundTransactions(bound)
		runs := make([]byte, len(test.do))
		fns := make([]func(*db.Tx) error, len(test.do))
		id := func(i int) string { return fmt.Sprintf("inv_%s_%d", test.do, i) }
		for i := range fns {
			runs[i] = '0'
			fns[i] = func(tx *db.Tx) error {
				runs[i]++
				switch test.do[i] {
				case 'r':
					return broken
				case 'q':
					panic("ouch")
				case 'k':
					return add(t.Context(), tx, "inv_0")
				}
				if err := add(t.Context(), tx, id(i)); err != nil {
					return err
				}
				switch test.do[i] {
				case 'e':
					return broken
				case 'p':
					panic("ouch")
				case 'c':
					return tx.BreakCommit(t.Context())
				case 't':
					return tx.ReadForEver(t.Context())
				case 'h':
					_ = tx.WriteForEver(t.Context())
					return broken
				case 'l':
					if runs[i] == '2' {
						return tx.ReadForEver(t.Context())
					}
				}
				return nil
			}
		}
		errs := db.UpdateTogether(t.Context(), s, fns...)
		if string(runs) != test.runs {
			t.Errorf("%s: they ran %s times, want %s", test.do, runs, test.runs)
		}
		for i, err := range errs {
			result := byte('s')
			switch {
			case db.Unavailable(err):
				result = 'a'
			case err != nil:
				result = 'e'
			}
			if result != test.results[i] || has(t, s, id(i)) != (result == 's') {
				t.Errorf("%s: transaction %d gives %v, and its row is there: %t; want %c", test.do, i, err, has(t, s, id(i)), test.results[i])
			}
			if result == 'e' && strings.ContainsRune("er", rune(test.do[i])) && err != broken { //nolint:errorlint // it is returned unchanged
				t.Errorf("%s: transaction %d gives %v, want its own error", test.do, i, err)
			}
		}
	}
}

// TestUpdateAfterAnOpenTransaction leaves a SQLite transaction open, as when its rollback failed. The
// next transaction does not contain its writes.
func TestUpdateAfterAnOpenTransaction(t *testing.T) {
	t.Parallel()
	s := dbtest.Open(t, dbtest.SQLite(t))
	rowtest.Insert(t, s, rowtest.Sample("inv_0", "m"))
	rowtest.Must(t, s.LeaveTransactionOpen(t.Context()))
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return add(ctx, tx, "inv_1") })
	err := s.Update(t.Context(), func(tx *db.Tx) error {
		_, err := ledger.InsertInvoices(t.Context(), tx, []invoice.Invoice{rowtest.Sample("inv_2", "open")})
		return err
	})
	if !has(t, s, "inv_1") || err == nil {
		t.Errorf("the next transaction is committed: %t; an invoice of the merchant of the open one: %v", has(t, s, "inv_1"), err)
	}
}

func TestUpdateWithAContextThatEnded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_0", "m"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			err := s.Update(ctx, func(*db.Tx) error {
				t.Error("the function runs")
				return nil
			})
			expect.Error(t, context.Canceled, "Update gives")(err)
		}
		// If a context ends while the function runs, the whole transaction is committed or rolled back.
		ctx, cancel = context.WithCancel(t.Context())
		err := s.Update(ctx, func(tx *db.Tx) error {
			if err := add(ctx, tx, "inv_1"); err != nil {
				return err
			}
			cancel()
			return add(ctx, tx, "inv_2")
		})
		one, two := has(t, s, "inv_1"), has(t, s, "inv_2")
		if one != two || one != (err == nil) {
			t.Errorf("Update gives %v; the first is there: %t, the second: %t", err, one, two)
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return add(ctx, tx, "inv_3") })
	})
}

func TestClosedStore(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for name, url := range dbtest.MigratedDatabases() {
		s, err := db.Open(t.Context(), url(t))
		rowtest.Must(t, err)
		rowtest.Must(t, s.Ping(t.Context()))
		rowtest.Insert(t, s, rowtest.Sample("inv_0", "m"))
		rowtest.Must(t, s.Close())
		if err := s.Update(t.Context(), func(*db.Tx) error { return nil }); err == nil {
			t.Errorf("%s: a closed store takes work", name)
		}
		if _, err := ledger.NewReader(s).Invoice(t.Context(), "inv_0"); err == nil || errors.Is(err, db.ErrNotFound) {
			t.Errorf("%s: a closed store reads: %v", name, err)
		}
		if err := s.Ping(t.Context()); err == nil {
			t.Errorf("%s: a closed store answers", name)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: closing it again gives %v", name, err)
		}
	}
}

// TestCloseWaitsForWork closes the store while transactions run. Each is refused or stored.
func TestCloseWaitsForWork(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, u string) {
		s, err := db.Open(t.Context(), u)
		rowtest.Must(t, err)
		rowtest.Insert(t, s, rowtest.Sample("inv_x", "m"))
		const n = 30
		errs := make([]error, n)
		running := make(chan struct{}, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				errs[i] = s.Update(t.Context(), func(tx *db.Tx) error {
					running <- struct{}{}
					return add(t.Context(), tx, fmt.Sprint("inv_", i))
				})
			})
		}
		<-running
		rowtest.Must(t, s.Close())
		wg.Wait()
		again := dbtest.Open(t, u)
		for i, err := range errs {
			if got := has(t, again, fmt.Sprint("inv_", i)); got != (err == nil) {
				t.Errorf("Update %d gave %v, and the row is there: %t", i, err, got)
			}
		}
	})
}

// crashEnv names the database that the child process of TestExtraCrash fills.
const crashEnv = "QUITTANCE_STORE_TEST_CRASH"

// TestExtraCrash kills a process that creates invoices, and checks that each acknowledged invoice is stored.
func TestExtraCrash(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLite(t)
	kept := make(map[string]bool)
	for round := range 3 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashChild$")
		child.Env = append(os.Environ(), crashEnv+"="+url, fmt.Sprint("ROUND=", round))
		out, err := child.StdoutPipe()
		rowtest.Must(t, err)
		rowtest.Must(t, child.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if id, ok := strings.CutPrefix(lines.Text(), "kept "); ok {
				kept[id] = true
			}
			if n == 40 {
				rowtest.Must(t, child.Process.Kill())
			}
		}
		if err := child.Wait(); err == nil {
			t.Fatal("the child ended before it was killed")
		}
		if len(kept) < 40*(round+1) {
			t.Fatalf("round %d: only %d invoices were made", round, len(kept))
		}
		s, err := db.Open(t.Context(), url)
		rowtest.Must(t, err)
		for id := range kept {
			if !has(t, s, id) {
				t.Errorf("round %d: %s was kept, and is lost", round, id)
			}
		}
		found, _, err := ledger.NewReader(s).Invoices(t.Context(), ledger.InvoiceFilter{MerchantID: "m", Limit: 100_000})
		rowtest.Must(t, err)
		for _, inv := range found {
			if r, _, err := webhooks.NewReader(s).EventRecord(t.Context(), "evt_"+inv.ID); err != nil || r.Status != webhooks.Pending {
				t.Errorf("round %d: %s is there without its event: %v", round, inv.ID, err)
			}
		}
		rowtest.Must(t, s.Close())
	}
}

// TestCrashChild is the process that TestExtraCrash kills. Without crashEnv it has no effect.
func TestCrashChild(t *testing.T) {
	url := os.Getenv(crashEnv)
	if url == "" {
		return
	}
	s := dbtest.Open(t, url)
	insertMerchant(t, s)
	for worker := range 8 {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			for i := 0; ; i++ {
				id := fmt.Sprintf("inv_%s_%d_%d", os.Getenv("ROUND"), worker, i)
				rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
					if err := add(ctx, tx, id); err != nil {
						return err
					}
					return webhooks.InsertEvents(ctx, tx, []webhooks.Event{{
						ID: "evt_" + id, Type: "invoice.created", Subject: id, MerchantID: "m", InvoiceID: id, Body: []byte("{}"), DeliveryID: "dlv_" + id,
					}})
				})
				fmt.Println("kept", id)
			}
		})
	}
}

func insertMerchant(t testing.TB, s *db.DB) {
	t.Helper()
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		return access.InsertSettlementAddresses(ctx, tx, []access.SettlementAddress{{ChainKey: "base", Address: rowtest.Sample("", "m").Merchant, MerchantID: "m"}}, invoice.Unix(1))
	})
}
