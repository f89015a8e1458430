package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraUnavailableUnderLoad stops the database under load. Unavailable must
// report true for the error of every interrupted statement.
func TestExtraUnavailableUnderLoad(t *testing.T) {
	t.Parallel()
	cluster, err := dbtest.StartCluster(t.Context(), dbtest.Options{Fsync: true})
	expect.OK(t, err)
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := dbtest.Open(t, cluster.DSN("postgres"))
	const workers, kills, worked, refused = 16, 3, 20, 4
	for range kills {
		var busy, group sync.WaitGroup
		busy.Add(workers)
		for i := range workers {
			group.Go(func() {
				failures := 0
				for turn := 0; failures < refused; turn++ {
					if turn == worked {
						busy.Done()
					}
					var err error
					if i%2 == 0 {
						_, err = ledger.NewReader(s).Invoice(t.Context(), "inv_0")
					} else {
						err = s.Update(t.Context(), func(tx *db.Tx) error {
							return access.InsertSettlementAddresses(t.Context(), tx, []access.SettlementAddress{{ChainKey: "dev", MerchantID: fmt.Sprint("mer_", i, turn)}}, invoice.Unix(1))
						})
					}
					switch {
					case err == nil, errors.Is(err, db.ErrNotFound):
					case db.Unavailable(err):
						failures++
					default:
						t.Errorf("a database that goes away gives %v, which does not count as unavailable", err)
						failures++
					}
				}
			})
		}
		busy.Wait()
		if err := cluster.Kill(t.Context()); err != nil {
			t.Error(err)
		}
		group.Wait()
		expect.OK(t, cluster.Restart(t.Context()))
	}
}

func TestUnavailableCodes(t *testing.T) {
	for code, want := range map[string]bool{
		"57P01": true, "57P03": true, "57014": true, "53300": true, "53100": true, "08006": true, "25006": true, "25P03": true, "40001": true, "58030": true,
		"23505": false, "42P01": false, "25P02": false, "XX001": false,
	} {
		if err := fmt.Errorf("read: %w", &pgconn.PgError{Code: code}); db.Unavailable(err) != want {
			t.Errorf("Unavailable(%v) = %v; want %v", err, !want, want)
		}
	}
	node := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED} // not an error of a database
	for _, err := range []error{nil, context.Canceled, errors.New("no"), node, io.ErrUnexpectedEOF} {
		if db.Unavailable(err) {
			t.Errorf("Unavailable(%v) holds", err)
		}
	}
}

// TestExtraDestroyedFile destroys the file of a SQLite database under an open store.
func TestExtraDestroyedFile(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{"empty": nil, "zeros": make([]byte, 1<<20), "text": bytes.Repeat([]byte("x"), 1<<20)} {
		url := dbtest.SQLite(t)
		s := dbtest.Open(t, url)
		expect.OK(t, os.WriteFile(strings.TrimPrefix(url, "sqlite:"), content, 0o600))
		if _, err := ledger.NewReader(s).Invoice(t.Context(), "inv_x"); !db.Unavailable(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
