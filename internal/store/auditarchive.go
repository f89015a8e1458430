package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/quittance/quittance/internal/access"
)

const checkpointColumns = "seq, hash, at, archive, public_key, signature"

// hexColumn returns a column of bytes in hex.
func hexColumn(dst *[]byte) parsedColumn[[]byte] { return parsedColumn[[]byte]{dst, hex.DecodeString} }

func scanCheckpoint(row scanner) (c access.Checkpoint, err error) {
	var archive, public []byte
	err = row.Scan(&c.Head.Seq, parsedColumn[access.EntryHash]{&c.Head.Hash, access.ParseEntryHash}, seconds{&c.At}, hexColumn(&archive),
		hexColumn(&public), hexColumn(&c.Signature))
	copy(c.Archive[:], archive)
	c.PublicKey = public
	return c, err
}

// AuditCheckpoints returns the checkpoints of the audit log, the oldest first.
func (q *queries) AuditCheckpoints(ctx context.Context) ([]access.Checkpoint, error) {
	all, err := queryAll(ctx, q, scanCheckpoint, "SELECT "+checkpointColumns+" FROM audit_checkpoints ORDER BY seq")
	if err != nil {
		return nil, fmt.Errorf("list the checkpoints of the audit log: %w", err)
	}
	return all, nil
}

// AuditPage returns up to limit entries of the audit log with numbers above after, in their order.
func (q *queries) AuditPage(ctx context.Context, after int64, limit int) ([]access.Entry, error) {
	return queryAll(ctx, q, scanAuditEntry, "SELECT "+auditColumns+" FROM audit_entries WHERE seq > $1 ORDER BY seq LIMIT $2", after, limit)
}

// InsertAuditCheckpoint stores a checkpoint. From then on the entries up to it may be deleted.
func (tx *Tx) InsertAuditCheckpoint(ctx context.Context, c access.Checkpoint) error {
	return tx.insert(ctx, insertion{table: "audit_checkpoints", columns: strings.Split(checkpointColumns, ", ")}, [][]any{{
		c.Head.Seq, c.Head.Hash.String(), c.At.Unix(), hex.EncodeToString(c.Archive[:]), hex.EncodeToString(c.PublicKey), hex.EncodeToString(c.Signature),
	}})
}

// SignAuditCheckpoint stores another signature of a checkpoint.
func (tx *Tx) SignAuditCheckpoint(ctx context.Context, c access.Checkpoint) error {
	_, err := tx.exec(ctx, "UPDATE audit_checkpoints SET public_key = $2, signature = $3 WHERE seq = $1",
		c.Head.Seq, hex.EncodeToString(c.PublicKey), hex.EncodeToString(c.Signature))
	return err
}

// DeleteArchivedAudit deletes up to limit entries that are archived, and returns how many.
func (s *Store) DeleteArchivedAudit(ctx context.Context, limit int) (n int64, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		n, err = tx.exec(ctx, `DELETE FROM audit_entries WHERE seq IN (SELECT seq FROM audit_entries
			WHERE seq <= (SELECT coalesce(max(seq), 0) FROM audit_checkpoints) ORDER BY seq LIMIT $1)`, limit)
		return err
	})
	return n, err
}
