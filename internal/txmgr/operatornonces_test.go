package txmgr_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/txmgr"
)

// operator is an account and the chain that it sends on, as the database sees them.
type operator struct {
	tb   rapid.TB
	s    *db.DB
	url  string
	name invoice.Address
}

// sends stores a transaction of the service.
func (o operator) sends(t *testing.T, nonce uint64) {
	t.Helper()
	hash := invoice.Hash{o.name[0], o.name[1], o.name[2], byte(nonce)}
	_, err := dbtest.SQL(t, o.url).ExecContext(t.Context(), "INSERT INTO chain_txs (id, chain_key, sender, nonce, kind, status, created_ms, reserved_gwei) "+
		"VALUES ($1, 'base', $2, $3, 'open', 'sent', 1, 0)", hash.String(), o.name.String(), int64(nonce))
	expect.OK(o.tb, err)
}

// notes compares a count with the database, and checks whether that is evidence.
func (o operator) notes(t *testing.T, used uint64, running, want bool) {
	t.Helper()
	allowed := uint64(0)
	if running {
		allowed = txmgr.AnyNonces
	}
	o.allows(t, used, allowed, want)
}

// allows is like notes, with a number of unknown nonces that are not evidence.
func (o operator) allows(t *testing.T, used, allowed uint64, want bool) {
	t.Helper()
	suspected, err := txmgr.NoteNonces(t.Context(), o.s, "base", o.name, used, used, allowed, time.Unix(1000, 0))
	if err != nil || suspected != want {
		o.tb.Fatalf("%d nonces of %s: evidence %v, %v; want %v", used, o.name, suspected, err, want)
	}
}

func (o operator) state(t *testing.T) db.Recovery {
	t.Helper()
	r, err := o.s.Recovery(t.Context())
	expect.OK(o.tb, err)
	return r
}

// end makes the state normal again, as the end of a recovery or of a false alarm does.
func (o operator) end(t *testing.T, recovered bool) {
	t.Helper()
	expect.OK(o.tb, o.s.Update(t.Context(), func(tx *db.Tx) error {
		if recovered {
			if err := txmgr.ForgetNonces(t.Context(), tx); err != nil {
				return err
			}
		}
		return tx.SetRecovery(t.Context(), db.Recovery{State: db.RecoveryNormal, Since: time.Unix(2000, 0)})
	}))
}

func eachOperator(t *testing.T, test func(t *testing.T, o operator)) {
	t.Helper()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		test(t, operator{t, dbtest.Open(t, url), url, invoice.Address{0xaa}})
	})
}

// TestNoncesAreEvidence uses nonces of an account that the database does not know.
func TestNoncesAreEvidence(t *testing.T) {
	eachOperator(t, func(t *testing.T, o operator) {
		t.Helper()
		o.notes(t, 5, false, false) // used before the first start
		o.notes(t, 5, false, false)
		o.notes(t, 3, false, false) // by a node that is behind
		o.sends(t, 5)
		o.notes(t, 5, false, false) // it waits in the pool
		o.notes(t, 6, false, false) // it is mined
		if r := o.state(t); r.State != db.RecoveryNormal {
			t.Fatalf("the state is %+v", r)
		}
		o.notes(t, 7, false, true)
		r := o.state(t)
		if r.State != db.RecoverySuspected || !strings.Contains(r.Reason, "has sent 7 transactions on base, and the database knows of 6") {
			t.Errorf("the state is %+v", r)
		}
		if text := r.Err().Error(); !strings.Contains(text, "--dismiss") || !strings.Contains(text, "another program or person sends with the key") {
			t.Errorf("the error is %s", text)
		}
		o.end(t, false)
		o.notes(t, 7, false, false)
		o.notes(t, 20, false, false) // a false alarm is dismissed for good
		o.end(t, true)
		o.notes(t, 30, false, false) // a recovery accepts what it finds
		o.notes(t, 31, true, false)  // used by another program while the service runs
		o.notes(t, 31, false, false)
		o.notes(t, 32, false, true)
	})
}

// TestDeploymentsAreNoEvidence uses as many nonces of an account as are allowed, and one more.
func TestDeploymentsAreNoEvidence(t *testing.T) {
	eachOperator(t, func(t *testing.T, o operator) {
		t.Helper()
		o.notes(t, 5, false, false)
		o.allows(t, 11, 6, false)
		o.notes(t, 11, false, false)
		o.allows(t, 18, 6, true)
	})
}

// TestFormerOperators replaces the key of an operator. Transactions that are sent by hand with the former key are no
// evidence when it returns. Its signatures are evidence until the service has run with the other key.
func TestFormerOperators(t *testing.T) {
	eachOperator(t, func(t *testing.T, o operator) {
		t.Helper()
		want := func(want ...invoice.Address) {
			t.Helper()
			for _, account := range []invoice.Address{o.name, {0xbb}} {
				var n int
				err := dbtest.SQL(t, o.url).QueryRowContext(t.Context(), "SELECT count(*) FROM operator_nonces WHERE account = $1", account.String()).Scan(&n)
				if err != nil || (n == 1) != slices.Contains(want, account) {
					t.Errorf("%s has %d rows, %v; want rows of %v", account, n, err, want)
				}
			}
		}
		next := o
		next.name = invoice.Address{0xbb}
		o.notes(t, 5, false, false)
		next.notes(t, 1, false, false)
		want(o.name, next.name)
		next.notes(t, 1, true, false)
		want(next.name)
		o.notes(t, 9, false, false)
		expect.OK(t, txmgr.ForgetOperators(t.Context(), o.s, "other"))
		want(o.name, next.name)
		o.notes(t, 10, false, true) // and dismissed
		o.end(t, false)
		expect.OK(t, txmgr.ForgetOperators(t.Context(), o.s, "base"))
		want(o.name)
		o.notes(t, 11, false, false)
	})
}

// TestSignedTransactionsAreEvidence signs a transaction of an account that changes a registry.
func TestSignedTransactionsAreEvidence(t *testing.T) {
	eachOperator(t, func(t *testing.T, o operator) {
		t.Helper()
		signed := func(nonce uint64, want bool) {
			t.Helper()
			suspected, err := txmgr.NoteSigned(t.Context(), o.s, "base", o.name, nonce, invoice.Hash{byte(nonce)}, time.Unix(1000, 0))
			if err != nil || suspected != want {
				t.Errorf("nonce %d: evidence %v, %v; want %v", nonce, suspected, err, want)
			}
		}
		signed(9, false) // of an account that was never compared
		o.notes(t, 5, false, false)
		signed(4, false) // of before the first start
		o.sends(t, 5)
		signed(5, false)
		signed(6, true)
		if r := o.state(t); r.State != db.RecoverySuspected || !strings.Contains(r.Reason, "nonce 6") {
			t.Errorf("the state is %+v", r)
		}
		o.end(t, false)
		signed(7, false)
		o.end(t, true)
		signed(8, false)
	})
}

// TestExclusiveKeyGivesNoFalseAlarm starts and stops replicas that send with a key that only they use, while nodes are
// behind and blocks are replaced. None of it is evidence, until the database loses a mined transaction.
func TestExclusiveKeyGivesNoFalseAlarm(t *testing.T) {
	t.Parallel()
	url := dbtest.Migrated(t)
	s := dbtest.Open(t, url)
	accounts := 0
	rapid.Check(t, func(r *rapid.T) {
		accounts++
		o := operator{r, s, url, invoice.Address{0xbb, byte(accounts >> 8), byte(accounts)}}
		before := rapid.Uint64Range(0, 3).Draw(r, "used before the first start")
		stored, mined := before, before // numbers of nonces
		o.notes(t, before, false, false)
		r.Repeat(map[string]func(*rapid.T){
			"send": func(r *rapid.T) {
				if mined < stored {
					r.Skip("one is in flight")
				}
				o.tb = r
				o.sends(t, stored)
				stored++
			},
			"mine":  func(*rapid.T) { mined = stored },
			"reorg": func(*rapid.T) { mined = max(before, stored-min(stored, 1)) },
			"start": func(r *rapid.T) {
				o.tb = r
				lag := rapid.Uint64Range(0, mined-before).Draw(r, "lag")
				o.notes(t, mined-lag, false, false)
			},
			"run": func(r *rapid.T) {
				o.tb = r
				o.notes(t, mined, true, false)
			},
		})
		o.tb = r
		lost := rapid.Uint64Range(0, stored-before).Draw(r, "lost")
		expect.Success(r)(dbtest.SQL(t, url).ExecContext(t.Context(), "DELETE FROM chain_txs WHERE sender = $1 AND nonce >= $2", o.name.String(), int64(stored-lost)))
		o.notes(t, mined, false, mined > stored-lost)
		o.end(t, false)
	})
}
