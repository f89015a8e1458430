package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/quittance/quittance/internal/db"
)

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
