package ledger

import (
	"context"
	"database/sql"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Cursor is the progress of a chain's indexer. The headers' parents are not stored.
type Cursor struct {
	Indexed   invoice.Header // the newest block that was read
	Confirmed invoice.Header // the newest block that is final
	Halted    string         // why the indexer stopped; empty while it runs
	Gap       *Gap           // nil when all older blocks are read
	// Revision counts how often data of a non-final block was reverted: by a rollback, or because a
	// transfer turned up in another block. While it stays the same, blocks are only added.
	Revision int64
	// Unread is the newest block in the gap that was never read before. It stays set until the payments
	// that wait for these blocks are decided, and is nil afterwards.
	Unread *uint64
	// UnreadTx is the newest block with an unread transaction that was not dismissed; 0 without one.
	// SaveCursor ignores it.
	UnreadTx uint64

	// configRevision is the configuration revision that a process must run to change the chain.
	configRevision int64
}

// Gap is a range of older blocks, Next to Last inclusive, that is read while the indexer follows the head.
type Gap struct {
	Next, Last uint64
	LastTime   time.Time // of block Last
}

// ReadAgain schedules the blocks from a number up to the newest one, and the gap, to be read again.
func (c *Cursor) ReadAgain(from uint64) {
	if c.Gap != nil {
		from = min(from, c.Gap.Next)
	}
	c.Gap = &Gap{Next: from, Last: c.Indexed.Number, LastTime: c.Indexed.Time}
}

// ReadThrough returns the last final block up to which all transfers are known, or zero if some wait to be decided. Its
// hash is zero if it is not known.
func (c *Cursor) ReadThrough() invoice.Header {
	switch {
	case c.Unread != nil || c.UnreadTx > 0:
		return invoice.Header{}
	case c.Gap != nil && c.Gap.Next <= c.Confirmed.Number:
		return invoice.Header{Number: max(c.Gap.Next, 1) - 1}
	}
	return c.Confirmed
}

// UpTo returns the part of the gap up to a block, or nil if that is empty.
func (g *Gap) UpTo(h invoice.Header) *Gap {
	switch {
	case g == nil || h.Number < g.Next:
		return nil
	case h.Number < g.Last:
		return &Gap{Next: g.Next, Last: h.Number, LastTime: h.Time}
	}
	return g
}

// After returns the part of the gap behind a block, or nil if that is empty.
func (g *Gap) After(through uint64) *Gap {
	if through >= g.Last {
		return nil
	}
	return &Gap{Next: through + 1, Last: g.Last, LastTime: g.LastTime}
}

func scanCursor(row db.Scanner) (Cursor, error) {
	var c Cursor
	var next, last, unread sql.NullInt64
	var lastTime time.Time
	err := row.Scan(&c.Indexed.Number, db.Hash(&c.Indexed.Hash), db.Seconds(&c.Indexed.Time),
		&c.Confirmed.Number, db.Hash(&c.Confirmed.Hash), db.Seconds(&c.Confirmed.Time), &c.Halted, &next, &last, db.Seconds(&lastTime), &c.Revision, &unread, &c.UnreadTx, &c.configRevision)
	if next.Valid {
		c.Gap = &Gap{Next: uint64(next.Int64), Last: uint64(last.Int64), LastTime: lastTime}
	}
	c.Unread = block(unread)
	return c, err
}

// columns returns the values of gap_next, gap_last and gap_last_time.
func (g *Gap) columns() []any {
	if g == nil {
		return []any{nil, nil, nil}
	}
	return []any{int64(g.Next), int64(g.Last), invoice.UnixSeconds(g.LastTime)}
}

const cursorQuery = `SELECT indexed_number, indexed_hash, indexed_time, confirmed_number, confirmed_hash, confirmed_time,
	halted, gap_next, gap_last, gap_last_time, revision, unread_last,
	coalesce((SELECT max(block_number) FROM unread_transactions AS u WHERE u.chain_key = chains.chain_key AND dismissed_at IS NULL), 0), config_revision
	FROM chains WHERE chain_key = $1`

// Cursor returns a chain's cursor, or ErrNotFound if the chain was never read.
func (q Reader) Cursor(ctx context.Context, chainKey string) (Cursor, error) {
	return db.QueryRow(ctx, q, scanCursor, cursorQuery, chainKey)
}

// LockCursor returns a chain's cursor and locks it until the transaction ends. The indexer writes only
// while it holds this lock. LockCursor fails with a *chain.StaleError in a process with an older
// configuration revision than others run.
func LockCursor(ctx context.Context, tx *db.Tx, chainKey string) (Cursor, error) {
	c, err := db.QueryRow(ctx, tx, scanCursor, cursorQuery+tx.ForUpdate(), chainKey)
	if err == nil {
		err = tx.CheckRevision(c.configRevision)
	}
	return c, err
}

// InsertChain records a new chain that is read from the block after the header, with a gap of unread blocks below, or
// nil. It reports false if the chain exists.
func InsertChain(ctx context.Context, tx *db.Tx, chainKey string, at invoice.Header, gap *Gap) (bool, error) {
	n, err := tx.Exec(ctx, `INSERT INTO chains (chain_key, indexed_number, indexed_hash, indexed_time,
		confirmed_number, confirmed_hash, confirmed_time, gap_next, gap_last, gap_last_time, unread_last, config_revision)
		VALUES ($1, $2, $3, $4, $2, $3, $4, $5, $6, $7, $6, $8) ON CONFLICT DO NOTHING`,
		append(append([]any{chainKey, int64(at.Number), at.Hash.String(), invoice.UnixSeconds(at.Time)}, gap.columns()...), tx.Revision)...)
	return n == 1, err
}

// SaveCursor updates a chain's cursor.
func SaveCursor(ctx context.Context, tx *db.Tx, chainKey string, c Cursor) error {
	return tx.Send(ctx, nil, `UPDATE chains SET indexed_number = $2, indexed_hash = $3, indexed_time = $4,
		confirmed_number = $5, confirmed_hash = $6, confirmed_time = $7, halted = $8,
		gap_next = $9, gap_last = $10, gap_last_time = $11, revision = $12, unread_last = $13 WHERE chain_key = $1`,
		append(append([]any{chainKey, int64(c.Indexed.Number), c.Indexed.Hash.String(), invoice.UnixSeconds(c.Indexed.Time),
			int64(c.Confirmed.Number), c.Confirmed.Hash.String(), invoice.UnixSeconds(c.Confirmed.Time), c.Halted}, c.Gap.columns()...), c.Revision, blockColumn(c.Unread))...)
}

// Headers returns the stored headers from one number to another, inclusive, in ascending order. Headers above the
// newest block that was read belong to rolled-back blocks that were not replaced yet.
func Headers(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]invoice.Header, error) {
	return db.QueryAll(ctx, q, db.Fields(func(h *invoice.Header) []any {
		return []any{&h.Number, db.Hash(&h.Hash), db.Hash(&h.Parent), db.Seconds(&h.Time)}
	}), `SELECT number, hash, parent_hash, block_time FROM blocks
		WHERE chain_key = $1 AND number BETWEEN $2 AND $3 ORDER BY number`, chainKey, int64(from), int64(to))
}

// insertHeaders stores headers of blocks that were read. A header of a block that was rolled back and is read again gets
// the time that was read now.
func insertHeaders(ctx context.Context, tx *db.Tx, chainKey string, headers []invoice.Header) error {
	rows := db.Each(headers, func(h invoice.Header) []any {
		return []any{chainKey, int64(h.Number), h.Hash.String(), h.Parent.String(), invoice.UnixSeconds(h.Time)}
	})
	return tx.Insert(ctx, db.Insertion{Table: "blocks", Columns: []string{"chain_key", "number BIGINT", "hash", "parent_hash", "block_time BIGINT"},
		Conflict: "ON CONFLICT (chain_key, number) DO UPDATE SET block_time = excluded.block_time WHERE blocks.hash = excluded.hash"}, rows)
}

// DeleteHeaders deletes the headers from one number to another, inclusive.
func DeleteHeaders(ctx context.Context, tx *db.Tx, chainKey string, from, to uint64) error {
	return tx.Send(ctx, nil, "DELETE FROM blocks WHERE chain_key = $1 AND number BETWEEN $2 AND $3", chainKey, int64(from), int64(to))
}

// AuditPart is a part of a chain's final blocks.
type AuditPart string

// Parts of a chain's blocks.
const (
	AuditNew   AuditPart = "new"   // as they become final
	AuditOlder AuditPart = "older" // of a back-fill
)

// ChainAudit is the progress of the second reading of a part of a chain's final blocks.
type ChainAudit struct {
	Part    AuditPart
	Next    uint64  // first block that is not audited
	Last    *uint64 // nil for the newest final one
	Counted AuditCounts
}

// AuditCounts are numbers of blocks, by how they were audited.
type AuditCounts struct{ Header, Receipts, Node, Unverified uint64 }

// chainAudits returns the audits of a chain.
func chainAudits(ctx context.Context, q db.Querier, chainKey string) ([]ChainAudit, error) {
	return db.QueryAll(ctx, q, db.Fields(func(a *ChainAudit) []any {
		return []any{&a.Part, &a.Next, &a.Last, &a.Counted.Header, &a.Counted.Receipts, &a.Counted.Node, &a.Counted.Unverified}
	}), "SELECT part, next_block, last_block, by_header, by_receipts, by_node, unverified FROM chain_audits WHERE chain_key = $1 ORDER BY part", chainKey)
}

// beginAudit starts the audit of a chain's blocks at a number, unless it has started already.
func beginAudit(ctx context.Context, tx *db.Tx, chainKey string, next uint64) error {
	return tx.Send(ctx, nil, `INSERT INTO chain_audits (chain_key, part, next_block) VALUES ($1, 'new', $2) ON CONFLICT DO NOTHING`,
		chainKey, int64(next))
}

// auditOlder schedules an audit of a range of older blocks, together with the rest of an earlier range.
func auditOlder(ctx context.Context, tx *db.Tx, chainKey string, first, last uint64) error {
	return tx.Send(ctx, nil, `INSERT INTO chain_audits (chain_key, part, next_block, last_block) VALUES ($1, 'older', $2, $3)
		ON CONFLICT (chain_key, part) DO UPDATE SET
		next_block = CASE WHEN chain_audits.next_block > chain_audits.last_block OR excluded.next_block < chain_audits.next_block
			THEN excluded.next_block ELSE chain_audits.next_block END,
		last_block = CASE WHEN chain_audits.next_block > chain_audits.last_block OR excluded.last_block > chain_audits.last_block
			THEN excluded.last_block ELSE chain_audits.last_block END`, chainKey, int64(first), int64(last))
}

// advanceAudit records that blocks from one on were audited, and the first that is not. It has no
// effect if another process has advanced the audit.
func advanceAudit(ctx context.Context, tx *db.Tx, chainKey string, from ChainAudit, next uint64, more AuditCounts) error {
	return tx.Send(ctx, nil, `UPDATE chain_audits SET next_block = $4, by_header = by_header + $5, by_receipts = by_receipts + $6,
		by_node = by_node + $7, unverified = unverified + $8 WHERE chain_key = $1 AND part = $2 AND next_block = $3`,
		chainKey, string(from.Part), int64(from.Next), int64(next), int64(more.Header), int64(more.Receipts), int64(more.Node), int64(more.Unverified))
}

// recordedTransactions returns the transactions of a chain with a recorded payment, refund or sweep
// that is not orphaned, or a possible refund that is undecided.
func recordedTransactions(ctx context.Context, q db.Querier, chainKey string, hashes []invoice.Hash) (map[invoice.Hash]bool, error) {
	recorded := map[invoice.Hash]bool{}
	for _, hash := range hashes {
		found, err := db.QueryRow(ctx, q, db.ScanSeq, `SELECT (SELECT count(*) FROM payments WHERE chain_key = $1 AND tx_hash = $2 AND status <> 'orphaned')
			+ (SELECT count(*) FROM refunds WHERE chain_key = $1 AND tx_hash = $2 AND status <> 'orphaned')
			+ (SELECT count(*) FROM undecided_refunds WHERE chain_key = $1 AND tx_hash = $2)
			+ (SELECT count(*) FROM sweeps WHERE chain_key = $1 AND tx_hash = $2 AND status <> 'orphaned')`, chainKey, hash.String())
		if err != nil {
			return nil, err
		}
		if found > 0 {
			recorded[hash] = true
		}
	}
	return recorded, nil
}

// Awaited reports what kinds of changes the service waits for on a chain.
type Awaited struct {
	// Any: there is an open invoice, a payment, refund or sweep that is not final, or a
	// transaction or authorization on its way.
	Any bool
	// Unconfirmed: a payment, refund or sweep is in a block that is not final.
	Unconfirmed bool
}

// readAwaited returns what the service waits for on a chain. It ignores prepared refunds, because most
// are never sent or are sent days later: the indexer finds their transfers at its slow pace.
func readAwaited(ctx context.Context, q db.Querier, chainKey string) (Awaited, error) {
	return db.QueryRow(ctx, q, func(row db.Scanner) (a Awaited, err error) {
		var unconfirmed, other int
		err = row.Scan(&unconfirmed, &other)
		return Awaited{Any: unconfirmed+other > 0, Unconfirmed: unconfirmed > 0}, err
	}, `SELECT CASE WHEN EXISTS (SELECT 1 FROM payments WHERE chain_key = $1 AND status = 'pending')
			OR EXISTS (SELECT 1 FROM refunds WHERE chain_key = $1 AND status = 'pending')
			OR EXISTS (SELECT 1 FROM sweeps WHERE chain_key = $1 AND status = 'pending') THEN 1 ELSE 0 END,
		CASE WHEN EXISTS (SELECT 1 FROM invoices WHERE chain_key = $1 AND status = 'open')
			OR EXISTS (SELECT 1 FROM chain_txs WHERE chain_key = $1 AND status = 'sent')
			OR EXISTS (SELECT 1 FROM intents WHERE chain_key = $1 AND status = 'sent' AND seen_block IS NULL)
			OR EXISTS (SELECT 1`+AuthorizationTables+` WHERE a.chain_key = $1 AND `+isPendingAuthorization+`)
			THEN 1 ELSE 0 END`, chainKey)
}
