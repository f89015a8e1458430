package store

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
)

const auditColumns = "seq, at, actor, client, request_id, merchant_id, action, object, before, after, prev_hash, hash"

func scanAuditEntry(row scanner) (access.Entry, error) {
	return scanEntry(row, access.ParseEntryHash)
}

// scanSuspectEntry is scanAuditEntry for an entry that may be damaged. It reads an
// invalid hash as zero.
func scanSuspectEntry(row scanner) (access.Entry, error) {
	return scanEntry(row, func(text string) (access.EntryHash, error) {
		hash, err := access.ParseEntryHash(text)
		if err != nil {
			hash = access.EntryHash{}
		}
		return hash, nil
	})
}

func scanEntry(row scanner, parseHash func(string) (access.EntryHash, error)) (e access.Entry, err error) {
	err = row.Scan(&e.Seq, seconds{&e.At}, &e.Actor, &e.Client, &e.RequestID, nullText(&e.MerchantID), &e.Action, &e.Object,
		&e.Before, &e.After, parsedColumn[access.EntryHash]{&e.Prev, parseHash}, parsedColumn[access.EntryHash]{&e.Hash, parseHash})
	return e, err
}

// AppendAudit appends entries to the audit log, in the transaction of the changes that
// they record. It assigns their numbers and hashes. It locks the head of the log until
// the transaction ends, so it should be the transaction's last statement.
//
// Entries that a merchant's key causes count against the merchant's quota. Beyond it, the error is an
// *ratelimit.ExceededError.
func (tx *Tx) AppendAudit(ctx context.Context, entries ...access.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	head, err := tx.readAuditHead(ctx, tx.forUpdate())
	if err != nil {
		return fmt.Errorf("append to the audit log: %w", err)
	}
	rows := make([][]any, len(entries))
	for i, e := range entries {
		e = e.Following(head)
		rows[i] = []any{e.Seq, e.At.Unix(), e.Actor, e.Client, e.RequestID, orNull(e.MerchantID), string(e.Action), e.Object,
			e.Before, e.After, e.Prev.String(), e.Hash.String()}
		if err := tx.insert(ctx, insertion{"audit_entries", strings.Split(auditColumns, ", "), ""}, rows[i:i+1]); err != nil {
			return err
		}
		head = access.Head{Seq: e.Seq, Hash: e.Hash}
		if _, err := tx.exec(ctx, "UPDATE audit_head SET seq = $1, hash = $2", head.Seq, head.Hash.String()); err != nil {
			return fmt.Errorf("append to the audit log: %w", err)
		}
	}
	return tx.countAudit(ctx, entries)
}

// AuditHead returns the head of the audit log.
func (q *queries) AuditHead(ctx context.Context) (access.Head, error) {
	return q.readAuditHead(ctx, "")
}

func (q *queries) readAuditHead(ctx context.Context, lock string) (access.Head, error) {
	return queryRow(ctx, q, func(row scanner) (h access.Head, err error) {
		err = row.Scan(&h.Seq, parsedColumn[access.EntryHash]{&h.Hash, access.ParseEntryHash})
		return h, err
	}, "SELECT seq, hash FROM audit_head"+lock)
}

// AuditFilter selects entries of the audit log. Empty fields match all.
type AuditFilter struct {
	MerchantID string
	Action     access.Action
	Since      time.Time
	Before     int64 // only entries with lower numbers, unless it is 0
	Limit      int
}

// AuditEntries returns the matching entries, newest first.
func (q *queries) AuditEntries(ctx context.Context, f AuditFilter) ([]access.Entry, error) {
	w := where{}
	w.equal("merchant_id", f.MerchantID)
	w.equal("action", string(f.Action))
	if !f.Since.IsZero() {
		w.add("at >= $%d", f.Since.Unix())
	}
	if f.Before != 0 {
		w.add("seq < $%d", f.Before)
	}
	entries, err := queryAll(ctx, q, scanAuditEntry,
		"SELECT "+auditColumns+" FROM audit_entries"+w.text()+" ORDER BY seq DESC LIMIT "+parameter(w.next()), append(w.args, f.Limit)...)
	if err != nil {
		return nil, fmt.Errorf("list the audit log: %w", err)
	}
	return entries, nil
}

// ChangeRow is what an entry of the audit log is about.
type ChangeRow struct {
	Seq        int64
	MerchantID string // empty if only the operator may read the entry
	Action     access.Action
	Object     string
}

// Changes returns what the entries with numbers above after are about, in their order. An
// entry becomes visible after all with lower numbers, so a reader in that order misses none.
func (q *queries) Changes(ctx context.Context, after int64, limit int) ([]ChangeRow, error) {
	changes, err := queryAll(ctx, q, func(row scanner) (c ChangeRow, err error) {
		err = row.Scan(&c.Seq, nullText(&c.MerchantID), &c.Action, &c.Object)
		return c, err
	}, "SELECT seq, merchant_id, action, object FROM audit_entries WHERE seq > $1 ORDER BY seq LIMIT $2", after, limit)
	if err != nil {
		return nil, fmt.Errorf("list changes: %w", err)
	}
	return changes, nil
}

// auditPage is how many entries VerifyAudit reads at a time.
const auditPage = 500

// AuditSources are the sources for the verification of an audit log, in addition to its entries. All
// are optional.
type AuditSources struct {
	Signer  access.Signer                  // verifies checkpoints
	Archive iter.Seq2[access.Entry, error] // all entries that were archived, from the first
	Heads   []access.Head                  // that were stored elsewhere
}

// VerifyAudit is VerifyAuditWith for a log that was never archived.
func (s *Store) VerifyAudit(ctx context.Context, heads ...access.Head) (access.Head, error) {
	return s.VerifyAuditWith(ctx, AuditSources{Heads: heads})
}

// VerifyAuditWith reads the whole audit log and returns its head. The error is an
// *access.FaultError if an entry was changed or removed, or is not one that the heads name. A log
// that was archived is verified from its newest checkpoint, or from the first archived entry if
// those are given.
func (s *Store) VerifyAuditWith(ctx context.Context, with AuditSources) (access.Head, error) {
	stored, err := s.AuditHead(ctx)
	if err != nil {
		return access.Head{}, fmt.Errorf("verify the audit log: %w", err)
	}
	v := access.NewVerifier(append(with.Heads, stored)...)
	if err := s.startAudit(ctx, v, with); err != nil {
		return access.Head{}, err
	}
	for after := int64(math.MinInt64); ; after = v.Head().Seq { // no entry precedes the first
		entries, err := queryAll(ctx, &s.queries, scanSuspectEntry, "SELECT "+auditColumns+
			" FROM audit_entries WHERE seq > $1 ORDER BY seq LIMIT $2", after, auditPage)
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
	if stored, err = s.AuditHead(ctx); err != nil {
		return v.Head(), fmt.Errorf("verify the audit log: %w", err)
	}
	return v.Head(), v.End(stored)
}

// startAudit verifies the checkpoints, and has the verification go on from the newest one.
func (s *Store) startAudit(ctx context.Context, v *access.Verifier, with AuditSources) error {
	checkpoints, err := s.AuditCheckpoints(ctx)
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
