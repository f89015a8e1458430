package db_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestEveryStatementIsBounded checks that every statement runs through Exec, QueryAll or QueryRow, which bound its
// duration. Other packages have no other way.
func TestEveryStatementIsBounded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	rowtest.Must(t, err)
	for _, name := range files {
		if name == "db.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		rowtest.Must(t, err)
		if strings.Contains(string(text), ".run.") {
			t.Errorf("%s runs a statement itself; use Exec, QueryAll or QueryRow", name)
		}
	}
}

// TestDeadlineInATransaction runs endless statements in SQLite transactions that share a commit with others. Each is
// interrupted and its transaction is rolled back, even if the transaction's function continues.
func TestDeadlineInATransaction(t *testing.T) {
	t.Parallel()
	s := dbtest.Open(t, dbtest.SQLite(t))
	rowtest.Insert(t, s, rowtest.Sample("inv_0", "m"))
	s.BoundTransactions(200 * time.Millisecond)
	for name, endless := range map[string]func(*db.Tx, context.Context) error{"read": (*db.Tx).ReadForEver, "write": (*db.Tx).WriteForEver} {
		var group sync.WaitGroup
		group.Go(func() {
			err := s.Update(t.Context(), func(tx *db.Tx) error {
				if err := add(t.Context(), tx, "inv_before_"+name); err != nil {
					return err
				}
				if err := endless(tx, t.Context()); !errors.Is(err, db.ErrTimeout) {
					t.Errorf("%s: a statement that does not end gives %v", name, err)
				}
				if err := add(t.Context(), tx, "inv_after_"+name); !db.Unavailable(err) {
					t.Errorf("%s: the transaction goes on: %v", name, err)
				}
				return nil
			})
			if !errors.Is(err, db.ErrTimeout) || !db.Unavailable(err) {
				t.Errorf("%s: the transaction gives %v", name, err)
			}
		})
		errs := make(map[string]*error)
		for i := range 20 {
			id := fmt.Sprintf("inv_%s_%d", name, i)
			outcome := new(error)
			errs[id] = outcome
			group.Go(func() {
				*outcome = s.Update(t.Context(), func(tx *db.Tx) error { return add(t.Context(), tx, id) })
			})
		}
		group.Wait()
		for id, err := range errs {
			if got := has(t, s, id); got != (*err == nil) || *err != nil && !db.Unavailable(*err) {
				t.Errorf("%s gives %v, and is there: %t", id, *err, got)
			}
		}
		for _, id := range []string{"inv_before_", "inv_after_"} {
			if has(t, s, id+name) {
				t.Errorf("%s%s is there", id, name)
			}
		}
	}
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return add(ctx, tx, "inv_1") })
}
