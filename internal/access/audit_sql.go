package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/quittance/quittance/internal/db"
)

var auditTable = auditTableWith(ParseEntryHash)

// suspectTable is auditTable for entries that may be damaged. It reads an invalid hash as zero.
var suspectTable = auditTableWith(func(text string) (EntryHash, error) {
	hash, err := ParseEntryHash(text)
	if err != nil {
		hash = EntryHash{}
	}
	return hash, nil
})

func auditTableWith(parseHash func(string) (EntryHash, error)) db.Table[Entry] {
	return db.NewTable("audit_entries", func(e *Entry) []db.Column {
		return []db.Column{
			db.Col("seq", db.Int(&e.Seq)),
			db.Col("at", db.Seconds(&e.At)),
			db.Col("actor", db.Text(&e.Actor)),
			db.Col("client", db.Text(&e.Client)),
			db.Col("request_id", db.Text(&e.RequestID)),
			db.Col("merchant_id", db.Null(db.Text(&e.MerchantID))),
			db.Col("action", db.Text(&e.Action)),
			db.Col("object", db.Text(&e.Object)),
			db.Col("before", db.Text(&e.Before)),
			db.Col("after", db.Text(&e.After)),
			db.Col("prev_hash", db.Code(&e.Prev, parseHash, EntryHash.String)),
			db.Col("hash", db.Code(&e.Hash, parseHash, EntryHash.String)),
		}
	})
}

// AppendAudit appends entries to the audit log, in the transaction of the changes that
// they record. It assigns their numbers and hashes. It locks the head of the log until
// the transaction ends, so it should be the transaction's last statement.
//
// Entries that a merchant's key causes count against the merchant's quota. Beyond it, the error is an
// *limits.ExceededError.
func AppendAudit(ctx context.Context, tx *db.Tx, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	head, err := readAuditHead(ctx, tx, tx.ForUpdate())
	if err != nil {
		return fmt.Errorf("append to the audit log: %w", err)
	}
	for _, e := range entries {
		e = e.Following(head)
		if err := auditTable.Insert(ctx, tx, "", e); err != nil {
			return err
		}
		head = Head{Seq: e.Seq, Hash: e.Hash}
		if _, err := tx.Exec(ctx, "UPDATE audit_head SET seq = $1, hash = $2", head.Seq, head.Hash.String()); err != nil {
			return fmt.Errorf("append to the audit log: %w", err)
		}
	}
	return countAudit(ctx, tx, entries)
}

// AuditHead returns the head of the audit log.
func (q Reader) AuditHead(ctx context.Context) (Head, error) { return readAuditHead(ctx, q, "") }

func readAuditHead(ctx context.Context, q db.Querier, lock string) (Head, error) {
	return db.QueryRow(ctx, q, db.Fields(func(h *Head) []any {
		return []any{&h.Seq, db.Parsed(&h.Hash, ParseEntryHash)}
	}), "SELECT seq, hash FROM audit_head"+lock)
}

// LastAudited returns the time of the newest entry that neither a command nor a start of the service made, or zero without
// one. These are also made while a restored database waits for its recovery.
func LastAudited(ctx context.Context, q db.Querier) (time.Time, error) {
	at, err := db.QueryRow(ctx, q, db.ScanTime, "SELECT at FROM audit_entries WHERE actor NOT LIKE $1 AND actor <> $2 ORDER BY seq DESC LIMIT 1", ActorCommand+"%", ActorConfig)
	return at, db.IgnoreNotFound(err)
}

// AuditFilter selects entries of the audit log. Empty fields match all.
type AuditFilter struct {
	MerchantID string
	Action     Action
	Since      time.Time
	Before     int64 // only entries with lower numbers, unless it is 0
	Limit      int
}

// AuditEntries returns the matching entries, newest first.
func (q Reader) AuditEntries(ctx context.Context, f AuditFilter) ([]Entry, error) {
	w := db.Where{}
	w.Equal("merchant_id", f.MerchantID)
	w.Equal("action", string(f.Action))
	if !f.Since.IsZero() {
		w.Add("at >= $%d", f.Since.Unix())
	}
	if f.Before != 0 {
		w.Add("seq < $%d", f.Before)
	}
	entries, err := db.QueryAll(ctx, q, auditTable.Scan,
		auditTable.Select()+w.Text()+" ORDER BY seq DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
	return entries, db.During("list the audit log", err)
}

// ChangeRow is what an entry of the audit log is about.
type ChangeRow struct {
	Seq        int64
	MerchantID string // empty if only the operator may read the entry
	Action     Action
	Object     string
}

// Changes returns the objects of the entries with numbers above after, in their order. An entry
// becomes visible after all entries with lower numbers, so a reader in that order misses no entry.
func (q Reader) Changes(ctx context.Context, after int64, limit int) ([]ChangeRow, error) {
	changes, err := db.QueryAll(ctx, q, db.Fields(func(c *ChangeRow) []any {
		return []any{&c.Seq, db.Text(&c.MerchantID), &c.Action, &c.Object}
	}), "SELECT seq, merchant_id, action, object FROM audit_entries WHERE seq > $1 ORDER BY seq LIMIT $2", after, limit)
	return changes, db.During("list changes", err)
}

// auditPage is how many entries VerifyAudit reads at a time.
const auditPage = 500

// AuditSources are the sources for the verification of an audit log, in addition to its entries. All are optional.
type AuditSources struct {
	Signer  *Keyring                // verifies checkpoints
	Archive iter.Seq2[Entry, error] // all entries that were archived, from the first
	Heads   []Head                  // that were stored elsewhere
}

// VerifyAudit reads the whole audit log and returns its head. It returns an *FaultError if
// an entry was changed, removed or added. It verifies an archived log from its newest checkpoint, or
// from the first archived entry if the caller passes the archived entries.
func VerifyAudit(ctx context.Context, s *db.DB, with AuditSources) (Head, error) {
	stored, err := NewReader(s).AuditHead(ctx)
	if err != nil {
		return Head{}, fmt.Errorf("verify the audit log: %w", err)
	}
	v := NewVerifier(append(with.Heads, stored)...)
	if err := startAudit(ctx, s, v, with); err != nil {
		return Head{}, err
	}
	for after := int64(math.MinInt64); ; after = v.Head().Seq { // no entry precedes the first
		entries, err := db.QueryAll(ctx, s, suspectTable.Scan, suspectTable.Select()+
			" WHERE seq > $1 ORDER BY seq LIMIT $2", after, auditPage)
		if err != nil {
			return v.Head(), fmt.Errorf("verify the audit log: %w", err)
		}
		for _, e := range entries {
			if err := v.Next(e); err != nil {
				return v.Head(), err
			}
		}
		if len(entries) < auditPage {
			break
		}
	}
	if stored, err = NewReader(s).AuditHead(ctx); err != nil {
		return v.Head(), fmt.Errorf("verify the audit log: %w", err)
	}
	return v.Head(), v.End(stored)
}

// startAudit verifies the checkpoints, and makes the verification continue from the newest one.
func startAudit(ctx context.Context, s *db.DB, v *Verifier, with AuditSources) error {
	checkpoints, err := AuditCheckpoints(ctx, s)
	if err != nil {
		return err
	}
	for _, c := range checkpoints {
		if err := c.Verify(with.Signer); err != nil {
			return err
		}
	}
	if with.Archive != nil {
		for e, err := range with.Archive {
			if err == nil {
				err = v.Next(e)
			}
			if err != nil {
				return err
			}
		}
	}
	if len(checkpoints) == 0 {
		return nil
	}
	switch newest := checkpoints[len(checkpoints)-1].Head; {
	case with.Archive == nil:
		return v.StartAt(newest)
	case v.Head() != newest:
		return fmt.Errorf("the archive ends at %s, and the checkpoint of the audit log is %s", v.Head(), newest)
	}
	return nil
}

var checkpointTable = db.NewTable("audit_checkpoints", func(c *Checkpoint) []db.Column {
	return []db.Column{
		db.Col("seq", db.Int(&c.Head.Seq)),
		db.Col("hash", db.Code(&c.Head.Hash, ParseEntryHash, EntryHash.String)),
		db.Col("at", db.Seconds(&c.At)),
		db.Col("archive", db.Code(&c.Archive, parseArchiveHash, archiveHashText)),
		db.Col("public_key", db.Hex(&c.PublicKey)),
		db.Col("signature", db.Hex(&c.Signature)),
	}
})

func archiveHashText(h [sha256.Size]byte) string { return hex.EncodeToString(h[:]) }

func parseArchiveHash(text string) (h [sha256.Size]byte, err error) {
	hash, err := ParseEntryHash(text)
	return hash, err
}

// AuditCheckpoints returns the checkpoints of the audit log, the oldest first.
func AuditCheckpoints(ctx context.Context, q db.Querier) ([]Checkpoint, error) {
	all, err := db.QueryAll(ctx, q, checkpointTable.Scan, checkpointTable.Select()+" ORDER BY seq")
	return all, db.During("list the checkpoints of the audit log", err)
}

// AuditPage returns up to limit entries of the audit log with numbers above after, in their order.
func AuditPage(ctx context.Context, q db.Querier, after int64, limit int) ([]Entry, error) {
	return db.QueryAll(ctx, q, auditTable.Scan, auditTable.Select()+" WHERE seq > $1 ORDER BY seq LIMIT $2", after, limit)
}

// InsertAuditCheckpoint stores a checkpoint. From then on the entries up to it may be deleted.
func InsertAuditCheckpoint(ctx context.Context, tx *db.Tx, c Checkpoint) error {
	return checkpointTable.Insert(ctx, tx, "", c)
}

// SignAuditCheckpoint stores another signature of a checkpoint.
func SignAuditCheckpoint(ctx context.Context, tx *db.Tx, c Checkpoint) error {
	_, err := checkpointTable.Only("public_key", "signature").Update(ctx, tx, c, "seq = $1", c.Head.Seq)
	return err
}

// DeleteArchivedAudit deletes up to limit entries that are archived, and returns how many.
func DeleteArchivedAudit(ctx context.Context, s *db.DB, limit int) (n int64, err error) {
	err = s.Update(ctx, func(tx *db.Tx) error {
		n, err = tx.Exec(ctx, `DELETE FROM audit_entries WHERE seq IN (SELECT seq FROM audit_entries
			WHERE seq <= (SELECT coalesce(max(seq), 0) FROM audit_checkpoints) ORDER BY seq LIMIT $1)`, limit)
		return err
	})
	return n, err
}
