package admin_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// archived is a database with an archived audit log.
type archived struct {
	t       *testing.T
	url     string
	db      *db.DB
	keys    *access.Keyring
	folder  string
	files   []string
	written int
}

// write appends n entries of the given age.
func (a *archived) write(n int, old time.Duration) {
	a.t.Helper()
	for range n {
		a.written++
		e := access.Entry{
			At: time.Now().Add(-old).UTC().Truncate(time.Second), Origin: access.Origin{Actor: "cli:maria"}, Action: access.ActionChainRescan,
			Object: "base", After: fmt.Sprintf(`{"n":%d,"text":"naïve <&> \u2028"}`, a.written),
		}
		expect.OK(a.t, a.db.Update(a.t.Context(), func(tx *db.Tx) error { return access.AppendAudit(a.t.Context(), tx, e) }))
	}
}

// archive archives entries older than 48 hours, and returns how many.
func (a *archived) archive() int64 {
	a.t.Helper()
	file := filepath.Join(a.folder, fmt.Sprint(len(a.files), ".jsonl"))
	made, n, err := admin.ArchiveAudit(a.t.Context(), a.url, a.keys, time.Now().Add(-48*time.Hour), file)
	if err != nil || made.Head.Seq == 0 {
		a.t.Fatalf("%+v, %v", made, err)
	}
	a.files = append(a.files, file)
	return n
}

func (a *archived) verify(k *access.Keyring, files []string, heads ...access.Head) (access.Head, error) {
	return admin.VerifyAudit(a.t.Context(), a.url, k, files, heads...)
}

// eachArchived runs a test on both databases.
func eachArchived(t *testing.T, test func(t *testing.T, a *archived)) {
	t.Helper()
	for name, fresh := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			url := fresh(t)
			test(t, &archived{t: t, url: url, db: dbtest.Open(t, url), keys: access.NewKeyring(keyringtest.Key(t)), folder: t.TempDir()})
		})
	}
}

// TestArchiveAudit archives a log twice, and verifies the rest with and without the archives.
func TestArchiveAudit(t *testing.T) {
	eachArchived(t, func(t *testing.T, a *archived) {
		a.write(5, 72*time.Hour)
		early, err := a.verify(nil, nil)
		expect.OK(t, err)
		a.write(2, time.Hour)
		if _, _, err := admin.ArchiveAudit(t.Context(), a.url, a.keys, time.Now().Add(-time.Hour), filepath.Join(a.folder, "x")); !errors.Is(err, admin.ErrArchiveAge) {
			t.Errorf("new entries: %v", err)
		}
		if n := a.archive(); n != 5 {
			t.Errorf("%d entries were archived, want 5", n)
		}
		nothing := filepath.Join(a.folder, "nothing")
		if _, _, err := admin.ArchiveAudit(t.Context(), a.url, a.keys, time.Now().Add(-48*time.Hour), nothing); !errors.Is(err, admin.ErrNothingToArchive) {
			t.Errorf("once more: %v", err)
		}
		if _, err := os.Stat(nothing); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("an empty archive is left behind: %v", err)
		}
		left, err := access.NewReader(a.db).AuditEntries(t.Context(), access.AuditFilter{Limit: 100})
		if err != nil || len(left) != 3 || left[0].Action != access.ActionAuditArchive || left[2].Seq != 6 {
			t.Errorf("%+v are left, %v", left, err)
		}
		a.write(3, 72*time.Hour) // an hour later than the remaining ones, by another clock
		if _, err := a.verify(nil, nil); !errors.Is(err, access.ErrUnsigned) {
			t.Errorf("without a master key: %v", err)
		}
		if _, err := a.verify(access.NewKeyring(keyringtest.Key(t)), nil); !errors.Is(err, access.ErrNoKey) {
			t.Errorf("with another master key: %v", err)
		}
		head, err := a.verify(a.keys, nil)
		if err != nil || head.Seq != 11 {
			t.Errorf("verified up to %s, %v", head, err)
		}
		if again, err := a.verify(a.keys, a.files, early); err != nil || again != head {
			t.Errorf("with the archive it is verified up to %s, %v; want %s", again, err, head)
		}
		if _, err := a.verify(a.keys, nil, access.Head{Seq: 3, Hash: early.Hash}); !errors.As(err, new(*access.ArchivedError)) {
			t.Errorf("a head that is archived: %v", err)
		}
		fault := (*access.FaultError)(nil)
		if _, err := a.verify(a.keys, nil, access.Head{Seq: 5, Hash: head.Hash}); !errors.As(err, &fault) || fault.Damage != access.Rewritten {
			t.Errorf("another head of the checkpoint: %v", err)
		}
	})
}

// TestArchiveWithFutureDate checks that entries written while a clock was ahead do not keep the old ones after them.
func TestArchiveWithFutureDate(t *testing.T) {
	eachArchived(t, func(t *testing.T, a *archived) {
		a.write(3, 72*time.Hour)
		a.write(20, -400*24*time.Hour)
		a.write(2, 72*time.Hour)
		a.write(21, time.Hour)
		a.write(1, 72*time.Hour) // after too many younger ones
		if n := a.archive(); n != 25 {
			t.Errorf("%d entries were archived, want 25", n)
		}
		if _, err := a.verify(a.keys, a.files); err != nil {
			t.Error(err)
		}
	})
}

// TestArchiveWithPastDate checks that an entry written while a clock was far behind does not take
// entries of the last 24 hours into the archive. It takes older ones.
func TestArchiveWithPastDate(t *testing.T) {
	eachArchived(t, func(t *testing.T, a *archived) {
		a.write(3, 72*time.Hour)
		a.write(1, 25*time.Hour)
		a.write(1, 72*time.Hour)
		a.write(1, 23*time.Hour)
		a.write(1, 72*time.Hour)
		if n := a.archive(); n != 5 {
			t.Errorf("%d entries were archived, want 5", n)
		}
		if _, err := a.verify(a.keys, a.files); err != nil {
			t.Error(err)
		}
	})
}

// TestCheckpointsOfALostKey signs a checkpoint of a lost key again, but refuses one that was changed.
func TestCheckpointsOfALostKey(t *testing.T) {
	eachArchived(t, func(t *testing.T, a *archived) {
		a.write(3, 72*time.Hour)
		a.archive()
		newer := access.NewKeyring(keyringtest.Key(t))
		if _, err := a.verify(newer, nil); !errors.Is(err, access.ErrNoKey) {
			t.Errorf("before: %v", err)
		}
		for want := 1; want >= 0; want-- {
			if lost, unverified, err := admin.LostSecrets(t.Context(), a.url, newer); err != nil || len(lost) != 0 || unverified != want {
				t.Errorf("found %+v, %d unverified, %v; want %d", lost, unverified, err, want)
			}
			if all, unverified, err := admin.ReplaceSecrets(t.Context(), a.url, newer, func([]webhooks.Replaced) error { return nil }); err != nil || len(all) != 0 || unverified != want {
				t.Errorf("replaced %+v, signed %d unverified, %v; want %d", all, unverified, err, want)
			}
		}
		if _, err := a.verify(newer, a.files); err != nil {
			t.Errorf("after: %v", err)
		}
	})
}

// TestDamagedArchive changes an archive, its checkpoint, and the entries that were not archived.
func TestDamagedArchive(t *testing.T) {
	eachArchived(t, func(t *testing.T, a *archived) {
		a.write(5, 72*time.Hour)
		a.write(2, time.Hour)
		a.archive()
		text := expect.Must(os.ReadFile(a.files[0]))
		fault := (*access.FaultError)(nil)
		for name, changed := range map[string]string{
			"a field": strings.Replace(string(text), "maria", "marie", 1), "a line": string(text[strings.IndexByte(string(text), '\n')+1:]),
		} {
			file := filepath.Join(a.folder, "changed")
			expect.OK(t, os.WriteFile(file, []byte(changed), 0o600))
			if _, err := a.verify(a.keys, []string{file}); !errors.As(err, &fault) {
				t.Errorf("%s was changed: %v", name, err)
			}
		}
		if _, err := a.verify(a.keys, append(a.files, a.files...)); !errors.As(err, &fault) {
			t.Errorf("an archive is given twice: %v", err)
		}
		sql := dbtest.SQL(t, a.url)
		if _, err := sql.ExecContext(t.Context(), "DELETE FROM audit_entries WHERE seq = 6"); err == nil {
			t.Error("an entry that is not archived can be deleted")
		}
		for name, statement := range map[string]string{
			"moved on": "INSERT INTO audit_checkpoints SELECT 6, (SELECT hash FROM audit_entries WHERE seq = 6), at, archive, public_key, signature FROM audit_checkpoints",
			"changed":  "UPDATE audit_checkpoints SET hash = (SELECT hash FROM audit_entries WHERE seq = 6)",
		} {
			expect.Success(t)(sql.ExecContext(t.Context(), statement))
			if _, err := a.verify(a.keys, nil); !errors.Is(err, access.ErrBroken) {
				t.Errorf("the checkpoint was %s: %v", name, err)
			}
			expect.Success(t)(sql.ExecContext(t.Context(), "DELETE FROM audit_checkpoints WHERE seq = 6"))
		}
	})
}

// TestResealSignsCheckpoints signs a checkpoint under a new master key.
func TestResealSignsCheckpoints(t *testing.T) {
	eachArchived(t, func(t *testing.T, a *archived) {
		old, newer := keyringtest.Key(t), keyringtest.Key(t)
		a.keys = access.NewKeyring(old)
		a.write(2, 72*time.Hour)
		a.archive()
		a.write(1, 72*time.Hour)
		other := filepath.Join(a.folder, "other")
		if _, _, err := admin.ArchiveAudit(t.Context(), a.url, access.NewKeyring(newer), time.Now().Add(-48*time.Hour), other); !errors.Is(err, access.ErrNoKey) {
			t.Errorf("an archive under another key: %v", err)
		}
		for range 2 {
			expect.Success(t)(admin.Reseal(t.Context(), a.url, access.NewKeyring(newer, old)))
		}
		if _, err := a.verify(access.NewKeyring(newer), a.files); err != nil {
			t.Errorf("under the new key: %v", err)
		}
		if _, err := a.verify(access.NewKeyring(old), a.files); !errors.Is(err, access.ErrNoKey) {
			t.Errorf("under the old key: %v", err)
		}
	})
}
