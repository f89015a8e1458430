package ledger_test

import (
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// prepareMany prepares n refunds of some units to one account that has paid nothing.
func (w *world) prepareMany(n int, units uint64) (all []invoice.RefundRecord) {
	w.t.Helper()
	var p ledger.PaymentRow
	for i := range n {
		if i%invoice.MaxPreparedRefunds == 0 {
			p = w.paid(1_000)
		}
		all = append(all, w.mustPrepare(p, units, to(invoice.Address{7})))
	}
	return all
}

// costOfPending returns how many kilobytes each of 200 transfers to an account allocates while n refunds to it are
// pending.
func (w *world) costOfPending(n int) uint64 {
	w.t.Helper()
	w.prepareMany(n, 2)
	transfers := make([]invoice.Transfer, 200)
	for i := range transfers {
		transfers[i] = w.back(invoice.NewAmount(1))
		transfers[i].To = invoice.Address{7}
	}
	return allocated(func() { w.mine(w.head().Time.Unix()+1, transfers...) }) / uint64(len(transfers))
}

// TestCostOfPendingRefunds prepares refunds to one account. A transfer of another amount must not read them.
func TestCostOfPendingRefunds(t *testing.T) {
	d := alone(t)
	few, many := d.world(t).costOfPending(100), d.world(t).costOfPending(2_000)
	t.Logf("each of 200 transfers allocates %d kB with 100 pending refunds, %d kB with 2000", few, many)
	if 2*many > 3*max(few, 1) {
		t.Errorf("a transfer allocates %d kB while 2000 refunds to its recipient are pending, %d kB while 100 are", many, few)
	}
}

// TestManyEqualRefunds submits more equal refunds than the first list has. A submitted transaction pays its own refund,
// and each other transfer pays one that no other transfer pays, the submitted ones first.
func TestManyEqualRefunds(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		all := w.prepareMany(203, 2)
		hash := func(i int) (h invoice.Hash) {
			binary.BigEndian.PutUint32(h[:], uint32(i)+1)
			return h
		}
		submitted := all[2:]
		for i, r := range submitted {
			s, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
			w.must(err)
			_, err = w.RecordTransaction(w.as("maria"), r.ID, s.ID, w.merchant, hash(i), invoice.Hash{})
			w.must(err)
		}
		untagged := func() invoice.Transfer {
			transfer := w.back(invoice.NewAmount(2))
			transfer.To = invoice.Address{7}
			return transfer
		}
		last := len(submitted) - 1
		own := untagged()
		own.TxHash = hash(last)
		w.mine(w.head().Time.Unix()+1, own)
		expect.Equal(t, w.refund(submitted[last].ID).Transfer.TxHash, own.TxHash, "the submitted refund is paid by")

		others := make([]invoice.Transfer, len(all)) // one more than are left
		for i := range others {
			others[i] = untagged()
		}
		w.mine(w.head().Time.Unix()+1, others...)
		for i, r := range append(submitted[:last:last], all[:2]...) {
			if got := w.refund(r.ID); got.Transfer.TxHash != others[i].TxHash {
				t.Fatalf("refund %d is paid by %s, want %s", i, got.Transfer.TxHash, others[i].TxHash)
			}
		}
		w.reorg(1)
		w.mine(w.head().Time.Unix()+2, others...)
		w.final()
		for i, r := range all {
			expect.Equal(t, w.refund(r.ID).Status, invoice.RefundConfirmed, "refund %d is", i)
		}
	})
}

// equalRefunds is how many pending refunds to one account, of one amount, TestFittingRefundsReadFewRows stores. A half
// has a submitted transaction. Ten settlement addresses send them.
const equalRefunds = 4_000

// TestFittingRefundsReadFewRows looks up the pending refunds that fit transfers of many settlement addresses to one
// account. A transfer must read only some of those that its own address sends, and no refund is sorted.
func TestFittingRefundsReadFewRows(t *testing.T) {
	t.Parallel()
	insert := `INSERT INTO refund_records (id, list_id, payment_id, merchant_id, chain_key, status, created_at, tag, amount, sender, recipient, token,
		account, many_invoices, expires_at, submitted_tx) WITH RECURSIVE many (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM many WHERE i < ` + strconv.Itoa(equalRefunds) + `)
		SELECT 'ref_x' || i, 'x' || (100000 + i), payment_id, merchant_id, chain_key, 'pending', 1, substr(tag, 1, 60) || (100000 + i), '7',
			substr(sender, 1, 40) || (10 + i % 10), sender, token, 'unknown', 0, 2, CASE WHEN i % 4 < 2 THEN tag END
		FROM refund_records CROSS JOIN many WHERE id = 'ref_prepared'`
	var keys []ledger.PreparedKey
	fill := func(t *testing.T, s *db.DB, conn *dbtest.DB) {
		t.Helper()
		r, _ := savePrepared(t, s)
		expect.Success(t)(conn.ExecContext(t.Context(), insert))
		expect.Success(t)(conn.ExecContext(t.Context(), "ANALYZE refund_records"))
		for i := range 10 {
			key := ledger.PreparedKey{From: r.From, To: r.From, Token: r.Token, Amount: invoice.NewAmount(7)}
			key.From[19] = byte(0x10 + i)
			own := key
			own.SubmittedTx = r.Tag
			keys = append(keys, key, own)
		}
	}
	look := func(t *testing.T, s *db.DB) (statements []rowtest.Statement) {
		t.Helper()
		read := db.Recorded(s, func(query string, args []any) {
			if strings.Contains(query, "string_agg") {
				statements = append(statements, rowtest.Statement{Query: query, Args: args})
			}
		})
		found, err := ledger.PreparedFitting(t.Context(), read, "base", keys[len(keys)-20:], 8)
		rowtest.Must(t, err)
		for _, key := range keys[len(keys)-20:] {
			expect.Equal(t, len(found[key]), 8, "refunds of %+v", key)
		}
		return statements
	}
	t.Run("sqlite", func(t *testing.T) {
		url := dbtest.SQLite(t)
		s, conn := dbtest.Open(t, url), dbtest.SQL(t, url)
		fill(t, s, conn)
		for _, statement := range look(t, s) {
			plan := strings.Join(rowtest.Explain(t, conn, "EXPLAIN QUERY PLAN "+db.SQLiteText(statement.Query), statement.Args, 4), "\n")
			if strings.Contains(plan, "TEMP B-TREE") || !strings.Contains(plan, "recipient=? AND amount=? AND sender=? AND token=? AND chain_key=?") {
				t.Errorf("%s\n%s", plan, statement.Query)
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		url := dbtest.MigratedPostgres(t)
		s, conn := dbtest.Open(t, url), dbtest.SQL(t, url)
		fill(t, s, conn)
		rows := regexp.MustCompile(`actual rows=([0-9]+)\S* loops=([0-9]+)`)
		for _, statement := range look(t, s) {
			plan := rowtest.Explain(t, conn, "EXPLAIN (ANALYZE, TIMING OFF) "+statement.Query, statement.Args, 1)
			for _, step := range plan {
				if found := rows.FindStringSubmatch(step); found != nil {
					n, _ := strconv.Atoi(found[1])
					loops, _ := strconv.Atoi(found[2])
					if n*loops > 10*8 || strings.Contains(step, "Sort") {
						t.Errorf("%s\n%s", strings.Join(plan, "\n"), statement.Query)
						break
					}
				}
			}
		}
	})
}
