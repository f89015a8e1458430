package access

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/quittance/quittance/internal/db"
)

const checkpointColumns = "seq, hash, at, archive, public_key, signature"

// hexColumn returns a column of bytes in hex.
func hexColumn(dst *[]byte) sql.Scanner { return db.Parsed(dst, hex.DecodeString) }

func scanCheckpoint(row db.Scanner) (c Checkpoint, err error) {
	var archive, public []byte
	err = row.Scan(&c.Head.Seq, db.Parsed(&c.Head.Hash, ParseEntryHash), db.Seconds(&c.At), hexColumn(&archive),
		hexColumn(&public), hexColumn(&c.Signature))
	copy(c.Archive[:], archive)
	c.PublicKey = public
	return c, err
}

// AuditCheckpoints returns the checkpoints of the audit log, the oldest first.
func AuditCheckpoints(ctx context.Context, q db.Querier) ([]Checkpoint, error) {
	all, err := db.QueryAll(ctx, q, scanCheckpoint, "SELECT "+checkpointColumns+" FROM audit_checkpoints ORDER BY seq")
	if err != nil {
		return nil, fmt.Errorf("list the checkpoints of the audit log: %w", err)
	}
	return all, nil
}

// AuditPage returns up to limit entries of the audit log with numbers above after, in their order.
func AuditPage(ctx context.Context, q db.Querier, after int64, limit int) ([]Entry, error) {
	return db.QueryAll(ctx, q, scanAuditEntry, "SELECT "+auditColumns+" FROM audit_entries WHERE seq > $1 ORDER BY seq LIMIT $2", after, limit)
}

// InsertAuditCheckpoint stores a checkpoint. From then on the entries up to it may be deleted.
func InsertAuditCheckpoint(ctx context.Context, tx *db.Tx, c Checkpoint) error {
	return tx.Insert(ctx, db.Insertion{Table: "audit_checkpoints", Columns: strings.Split(checkpointColumns, ", ")}, [][]any{{
		c.Head.Seq, c.Head.Hash.String(), c.At.Unix(), hex.EncodeToString(c.Archive[:]), hex.EncodeToString(c.PublicKey), hex.EncodeToString(c.Signature),
	}})
}

// SignAuditCheckpoint stores another signature of a checkpoint.
func SignAuditCheckpoint(ctx context.Context, tx *db.Tx, c Checkpoint) error {
	_, err := tx.Exec(ctx, "UPDATE audit_checkpoints SET public_key = $2, signature = $3 WHERE seq = $1",
		c.Head.Seq, hex.EncodeToString(c.PublicKey), hex.EncodeToString(c.Signature))
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
