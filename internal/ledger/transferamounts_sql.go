package ledger

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// TransferAmount is an amount that payers of a direct invoice owe, with the suffix that identifies the
// invoice. It is a row of transfer_amounts.
type TransferAmount struct {
	Invoice   invoice.Invoice
	Base      invoice.Amount // the amount due: the invoice's amount, or a remainder of it
	Amount    invoice.Amount // Base with a suffix; zero if no amount is free
	FromBlock uint64         // the height up to which the chain is read; transfers above can mean it
	Remainder bool           // Base is a remainder
}

// wholeAmounts returns the rows of whole invoices. Drafts and deposit invoices have none.
func wholeAmounts(invoices []invoice.Invoice) (amounts []TransferAmount) {
	for _, inv := range invoices {
		if !inv.IsDeposit() && inv.Status != invoice.Drafted {
			amounts = append(amounts, TransferAmount{Invoice: inv, Base: inv.Amount, Amount: inv.TransferAmount, FromBlock: inv.FromBlock})
		}
	}
	return amounts
}

// transferAmountInsertion leaves out the transfer amount of an open invoice.
var transferAmountInsertion = db.Insertion{
	Table: "transfer_amounts",
	Columns: []string{"invoice_id", "base", "amount", "merchant_address", "chain_key", "token",
		"from_block BIGINT", "expires_at BIGINT", "remainder BIGINT", "live BIGINT", "closed_block BIGINT"},
	Conflict: "ON CONFLICT (amount, merchant_address, chain_key, token) WHERE live = 1 DO NOTHING",
}

// insertTransferAmounts records transfer amounts, one for each invoice, and returns the ids of the invoices for which
// it did. It skips a transfer amount that another open invoice has. It also records an amount without a suffix.
func insertTransferAmounts(ctx context.Context, tx *db.Tx, amounts []TransferAmount) (map[string]bool, error) {
	return tx.InsertReturningKeys(ctx, transferAmountInsertion, transferAmountRows(amounts))
}

// insertFreeAmounts is like insertTransferAmounts. But if another open invoice has a transfer amount, the transaction
// fails with an error for which db.Taken holds.
func insertFreeAmounts(ctx context.Context, tx *db.Tx, amounts []TransferAmount) error {
	insertion := transferAmountInsertion
	insertion.Conflict = ""
	return tx.Insert(ctx, insertion, transferAmountRows(amounts))
}

// InsertBareRemainders records remainders without a transfer amount.
func InsertBareRemainders(ctx context.Context, tx *db.Tx, remainders []TransferAmount) error {
	return tx.Insert(ctx, transferAmountInsertion, transferAmountRows(remainders))
}

// deleteBareRemainders deletes remainders without a transfer amount.
func deleteBareRemainders(ctx context.Context, tx *db.Tx, remainders []TransferAmount) error {
	for _, r := range remainders { // few, so a statement for each is enough
		_, err := tx.Exec(ctx, "DELETE FROM transfer_amounts WHERE invoice_id = $1 AND base = $2 AND remainder = 1 AND amount IS NULL",
			r.Invoice.ID, r.Base.String())
		if err != nil {
			return err
		}
	}
	return nil
}

func transferAmountRows(amounts []TransferAmount) [][]any {
	rows := make([][]any, len(amounts))
	for i, t := range amounts {
		inv := t.Invoice
		var closed any
		switch {
		case inv.Status == invoice.Open:
		case t.Remainder: // null if the same transaction closes the invoice later
			closed = db.OrNull(int64(inv.ClosedBlock))
		default:
			closed = int64(inv.ClosedBlock)
		}
		rows[i] = []any{inv.ID, t.Base.String(), db.OrNull(t.Amount), inv.Merchant.String(), inv.ChainKey, inv.Token.String(),
			int64(t.FromBlock), invoice.UnixSeconds(inv.ExpiresAt), db.Bit(t.Remainder), db.Bit(inv.Status == invoice.Open), closed}
	}
	return rows
}

// RemainderTransferAmounts returns the recorded transfer amounts of the remainders, by invoice and
// remainder; zero for a remainder without one.
func RemainderTransferAmounts(ctx context.Context, q db.Querier, remainders map[string][]invoice.Amount) (map[string]map[invoice.Amount]invoice.Amount, error) {
	type remainder struct {
		id   string
		base invoice.Amount
	}
	amounts := make(map[string]map[invoice.Amount]invoice.Amount, len(remainders))
	var wanted []remainder
	var rows [][]any
	for _, id := range slices.Sorted(maps.Keys(remainders)) {
		amounts[id] = make(map[invoice.Amount]invoice.Amount)
		for _, base := range remainders[id] {
			rows = append(rows, []any{int64(len(wanted)), id, base.String()})
			wanted = append(wanted, remainder{id, base})
		}
	}
	err := q.LookUpWanted([]string{"n BIGINT", "invoice", "due"}, rows, func(with string, args []any) error {
		return db.ForEach(ctx, q, func(row db.Scanner) error {
			var n int64
			var amount string
			if err := row.Scan(&n, db.Text(&amount)); err != nil || amount == "" {
				return err
			}
			parsed, err := invoice.ParseAmount(amount)
			amounts[wanted[n].id][wanted[n].base] = parsed
			return err
		}, with+`SELECT n, (SELECT coalesce(amount, '0') FROM transfer_amounts
			WHERE invoice_id = invoice AND base = due AND remainder = 1) FROM wanted`, args...)
	})
	return amounts, err
}

// isRare is the condition of the index invoices_rare.
const isRare = "(remaining IS NOT NULL OR sums_stale = 1 OR from_block = 0)"

// InvoicesLackingTransferAmounts returns the ids of open invoices of the chain that may lack a transfer
// amount for their remainder, in ascending order, above the given id: their sums are not known, or no
// transfer amount was free. Deposit invoices have no transfer amounts. The empty text keeps PostgreSQL
// from reading all invoices in the order of ids.
func InvoicesLackingTransferAmounts(ctx context.Context, q db.Querier, chainKey, after string, limit int) ([]string, error) {
	return db.QueryAll(ctx, q, db.ScanID, "SELECT id FROM invoices "+q.IndexedBy("invoices_rare")+"WHERE chain_key = $1 AND id || '' > $2 AND "+isRare+` AND status = 'open'
		AND (sums_stale = 1 OR remaining IS NOT NULL AND remaining_transfer IS NULL AND collection = 'direct') ORDER BY id || '' LIMIT $3`, chainKey, after, limit)
}

// LowerFromBlocks lowers from_block of the chain's invoices, and of their transfer amounts, because blocks above the
// height same may have been replaced, and the new ones can hold transfers to these invoices. An invoice that is closed
// by now needs it, too: a payer may still send the amount that was shown.
//
// The blocks from replaced on are surely others, unless replaced is 0. It is not known which of the blocks between were
// replaced. If one was not, its transfers to settlement addresses that were known when it was read are recorded, and
// are older than the invoices that are lowered; see isNewer. Transfers to later addresses can be older without a
// record, so the invoices of these can only be paid from replaced on. A transfer to a deposit address always means its
// invoice.
func LowerFromBlocks(ctx context.Context, tx *db.Tx, chainKey string, same, replaced uint64) error {
	if replaced > 0 {
		if err := access.LowerRecordedFrom(ctx, tx, chainKey, replaced-1); err != nil {
			return err
		}
	}
	const lowered = `(SELECT CASE WHEN min(s.from_block) > $2 THEN min(s.from_block) ELSE $2 END
		FROM settlement_addresses AS s WHERE s.chain_key = $1 AND s.address = merchant_address)`
	for _, update := range []string{
		"UPDATE invoices SET from_block = " + lowered + " WHERE from_block > " + lowered + ` AND id IN
			(SELECT invoice_id FROM transfer_amounts WHERE chain_key = $1 AND from_block > $2)`,
		"UPDATE transfer_amounts SET from_block = " + lowered + " WHERE chain_key = $1 AND from_block > $2 AND from_block > " + lowered,
		"UPDATE invoices SET from_block = $2 WHERE chain_key = $1 AND from_block > $2 AND status = 'open' AND collection <> 'direct'",
	} {
		if _, err := tx.Exec(ctx, update, chainKey, int64(same)); err != nil {
			return err
		}
	}
	return nil
}

// fromBlocksLock is the first key of PostgreSQL's advisory locks on from_block of a chain's new
// invoices. The second is a hash of the chain's key.
//
// A transaction that makes invoices payable takes it before it inserts a row. It then inserts rows in this order:
// holders of addresses, merchants, settlement addresses, transfer amounts, invoices, idempotency keys, references,
// intents, audit entries and events. So no two transactions wait for each other.
const fromBlocksLock = 0x62696e64

// newestKnown is the newest known block of a chain: the newest one read, or one that was rolled back and not replaced yet.
const newestKnown = "coalesce((SELECT max(number) FROM blocks WHERE blocks.chain_key = chains.chain_key), indexed_number)"

// sendHeightsForNewInvoices asks for the newest known block of each chain for invoices that this
// transaction inserts. heights has them after the next Flush. Until the transaction ends no other one lowers from_block of the
// chains' invoices, because LowerFromBlocks would not see the new ones. It fails like LockCursor in a
// process with an older configuration revision.
func sendHeightsForNewInvoices(ctx context.Context, tx *db.Tx, chainKeys []string) (heights map[string]uint64, err error) {
	for _, key := range slices.Sorted(slices.Values(chainKeys)) { // in one order, so that no two wait for each other
		if err := lockFromBlocksAs(ctx, tx, "pg_advisory_xact_lock_shared", key); err != nil {
			return nil, err
		}
	}
	// Separate statements: they see what was committed during the wait for the lock.
	if err := tx.SendRevisionCheck(ctx); err != nil {
		return nil, err
	}
	return sendChainColumn(ctx, tx, newestKnown, chainKeys, blockNumber)
}

// lockFromBlocks waits for transactions that insert invoices on the chain, and blocks others until
// this one ends. The cursor must be locked, and no row written yet, because the transactions waited
// for may themselves wait for written rows.
func lockFromBlocks(ctx context.Context, tx *db.Tx, chainKey string) error {
	return lockFromBlocksAs(ctx, tx, "pg_advisory_xact_lock", chainKey)
}

// lockFromBlocksAs takes an advisory lock. SQLite has one writer and needs no lock.
func lockFromBlocksAs(ctx context.Context, tx *db.Tx, lock, chainKey string) error {
	if !tx.OnPostgres() {
		return nil
	}
	return tx.Send(ctx, nil, "SELECT "+lock+"(CAST($1 AS INTEGER), hashtext($2))", fromBlocksLock, chainKey)
}

// IndexedHeights returns the newest indexed block of each chain. It skips chains that were never read.
func IndexedHeights(ctx context.Context, q db.Querier, chainKeys []string) (map[string]uint64, error) {
	return chainColumn(ctx, q, "indexed_number", chainKeys, blockNumber)
}

// sendFinalTimes asks for the time of the newest final block of each chain. After the next Flush times
// has them, without chains that were never read.
func sendFinalTimes(ctx context.Context, tx *db.Tx, chainKeys []string) (times map[string]time.Time, err error) {
	return sendChainColumn(ctx, tx, "confirmed_time", chainKeys, func(dst *time.Time) any { return db.Seconds(dst) })
}

// blockNumber returns the scan target of a column that holds a block number.
func blockNumber(dst *uint64) any { return dst }

// chainColumn returns the value of a column for each of the chains that were read. It scans the value
// into the result of target.
func chainColumn[T any](ctx context.Context, q db.Querier, expression string, chainKeys []string, target func(dst *T) any) (map[string]T, error) {
	values := make(map[string]T)
	_, err := db.QueryIn(chainKeys, func(chunk []any) ([]struct{}, error) {
		return db.QueryAll(ctx, q, func(row db.Scanner) (none struct{}, err error) {
			return none, scanChain(row, values, target)
		}, chainColumnText(expression, len(chunk)), chunk...)
	})
	return values, err
}

// sendChainColumn sends the query of chainColumn.
func sendChainColumn[T any](ctx context.Context, tx *db.Tx, expression string, chainKeys []string, target func(dst *T) any) (map[string]T, error) {
	values := make(map[string]T)
	err := db.InBatches(chainKeys, "", func(part []string) error {
		return tx.Send(ctx, func(row db.Scanner) error { return scanChain(row, values, target) }, chainColumnText(expression, len(part)), db.ToAny(part)...)
	})
	return values, err
}

func chainColumnText(expression string, chains int) string {
	return "SELECT chain_key, " + expression + " FROM chains WHERE chain_key IN " + db.ParameterList(0, chains)
}

func scanChain[T any](row db.Scanner, values map[string]T, target func(dst *T) any) error {
	var key string
	var value T
	err := row.Scan(&key, target(&value))
	values[key] = value
	return err
}
