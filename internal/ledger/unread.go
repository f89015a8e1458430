package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of unread transactions.
const (
	// MaxUnread bounds the unread transactions of a chain that other sources than its blocks reported.
	MaxUnread = 1000
	// MaxUnreadable bounds the transactions of a chain that were set aside because no node returns
	// them. If there are more, the node is at fault, and the chain waits for it.
	MaxUnreadable = 100
	// MaxOversized bounds the ones with answers longer than maxAnswerMiB. Anyone can make them, for about
	// 34 million gas each, where the network allows such transactions.
	MaxOversized = 10_000
	// FirstUnreadRetry and LastUnreadRetry are the waits after the first attempt to read
	// one that failed, and after many; each is twice the one before.
	FirstUnreadRetry = 15 * time.Second
	LastUnreadRetry  = time.Hour
	// maxUnreadDetail bounds the text about an attempt that failed, in bytes.
	maxUnreadDetail = 500
)

// ErrTooManyUnreadable means that MaxUnreadable or MaxOversized transactions of the chain are set aside already.
var ErrTooManyUnreadable = errors.New("too many transactions are set aside that no node returns within maxAnswerMiB; quittance chain unread lists them")

// newUnread returns the rows of unread transactions that a block names.
func (s *Service) newUnread(named []UnreadTransaction) []UnreadTransaction {
	all := make([]UnreadTransaction, len(named))
	for i, u := range named {
		u.FoundAt = s.conf.Now()
		u.NextAt = s.conf.Now().Add(FirstUnreadRetry)
		u.Detail = shortened(u.Detail)
		all[i] = u
	}
	return all
}

// shortened cuts a text about a failure.
func shortened(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxUnreadDetail)], "")
}

// ReportUnread records a transaction that transfers a token to an address of ours although no transfer
// of it is recorded. Its block was read. It wakes the chain's indexer, which reads the block again. It
// has no effect if the block is still to be read, if the transaction is known to be unread, if a payer
// looked it up and a transfer of it is recorded, or while there are MaxUnread.
func (s *Service) ReportUnread(ctx context.Context, chainKey string, tx invoice.Hash, block uint64, reason UnreadReason) error {
	cur, err := NewReader(s.conf.Store).Cursor(ctx, chainKey)
	if errors.Is(err, db.ErrNotFound) || err == nil && !hasRead(cur, block) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := findUnreadTransaction(ctx, s.conf.Store, chainKey, tx); !errors.Is(err, db.ErrNotFound) {
		return err
	}
	if reason == UnreadLookup {
		// The rest of a transaction with a recorded transfer is compared with its receipt before it is final.
		if recorded, err := recordedTransactions(ctx, s.conf.Store, chainKey, []invoice.Hash{tx}); err != nil || recorded[tx] {
			return err
		}
	}
	counts, err := countUnread(ctx, s.conf.Store, chainKey)
	if err != nil || TotalUnread(counts) >= MaxUnread {
		return err
	}
	now := s.conf.Now()
	err = s.conf.Store.Update(ctx, func(t *db.Tx) error {
		return insertUnread(ctx, t, chainKey, []UnreadTransaction{{TxHash: tx, Block: block, Reason: reason, FoundAt: now, NextAt: now}})
	})
	if err == nil {
		s.conf.Signals.WakeIndexer(chainKey)
	}
	return err
}

// TotalUnread returns how many transactions of the counts of CountUnread count for MaxUnread: all except the oversized
// ones, which anyone can make.
func TotalUnread(counts map[UnreadReason]int) (n int) {
	for reason, c := range counts {
		if reason != UnreadOversized {
			n += c
		}
	}
	return n
}

// CanSkipTransaction fails with ErrTooManyUnreadable when no more transactions of the chain may
// be set aside for the reason, UnreadUnreadable or UnreadOversized.
func (s *Service) CanSkipTransaction(ctx context.Context, chainKey string, reason UnreadReason) error {
	most := MaxUnreadable
	if reason == UnreadOversized {
		most = MaxOversized
	}
	counts, err := countUnread(ctx, s.conf.Store, chainKey)
	if err == nil && counts[reason] >= most {
		err = fmt.Errorf("chain %s: %w", chainKey, ErrTooManyUnreadable)
	}
	return err
}

// DueUnread returns up to limit unread transactions of the chain that are due to be read; oversized ones only if wanted.
func (s *Service) DueUnread(ctx context.Context, chainKey string, limit int, oversized bool) ([]UnreadTransaction, error) {
	return dueUnread(ctx, s.conf.Store, chainKey, s.conf.Now(), limit, oversized)
}

// PostponeUnread records why a transaction could not be read. It is read again later.
func (s *Service) PostponeUnread(ctx context.Context, chainKey string, u UnreadTransaction, reason string) error {
	wait := FirstUnreadRetry
	for range u.Attempts {
		wait = min(2*wait, LastUnreadRetry)
	}
	u.Attempts++
	u.Detail, u.NextAt = shortened(reason), s.conf.Now().Add(wait)
	return s.conf.Store.Update(ctx, func(tx *db.Tx) error { return postponeUnread(ctx, tx, chainKey, u) })
}

// ForgetUnread deletes an unread transaction that is not on the chain. Invoices that waited for it expire with the next
// final block.
func (s *Service) ForgetUnread(ctx context.Context, chainKey string, tx invoice.Hash) error {
	return s.conf.Store.Update(ctx, func(t *db.Tx) error { return deleteUnread(ctx, t, chainKey, []invoice.Hash{tx}) })
}

// Supplement records the transfers of a block that was read before, and deletes the unread transactions that it
// settles. Recorded transfers stay as they are. Invoices that waited for these expire. If a payment is new, and not
// only looked up, the blocks with possible refunds of it are read again.
//
// The header of a block that was read between others may not be kept. Then above proves that the block
// belongs to the chain: a block that was read, above b and of the same chain. It returns
// ErrCursorMoved if the block is still to be read, if it is not final and is not the one that was read,
// or if it was read with another time. It returns ErrFinalityViolated if a final block has another hash.
func (s *Service) Supplement(ctx context.Context, chainKey string, b Block, above invoice.Header, settled ...invoice.Hash) error {
	_, err := s.updateAndExpire(ctx, chainKey, 0, func(tx *db.Tx, out *outbox, cur *Cursor) error {
		if err := checkWasRead(ctx, tx, chainKey, *cur, b.Header, above); err != nil {
			return err
		}
		final := b.Number <= cur.Confirmed.Number
		scope := s.scope(chainKey, *cur)
		scope.final = final
		stored, err := s.storeBlocks(ctx, tx, out, scope, []Block{b})
		if err != nil {
			return err
		}
		if err := readRefunds(ctx, tx, chainKey, cur, b.Number, stored, settled); err != nil {
			return err
		}
		if err := deleteUnread(ctx, tx, chainKey, settled); err != nil {
			return err
		}
		if !final {
			cur.Revision++ // earlier verifications lack it
		}
		return saveCursor(ctx, tx, chainKey, cur)
	})
	return err
}

// readRefunds schedules the blocks above a block to be read again if they may hold refunds of new payments there, unless
// payers looked up all of these payments. For a payment without an invoice it schedules only the blocks of a lost past:
// there a person may have found the payment's invoice.
func readRefunds(ctx context.Context, tx *db.Tx, chainKey string, cur *Cursor, block uint64, stored storedBlocks, settled []invoice.Hash) error {
	from := block + 1
	if !stored.found {
		past, err := lostPast(ctx, tx, chainKey)
		if err != nil || !stored.other || past.through == 0 {
			return err
		}
		if from = max(from, past.from); from > past.through {
			return nil
		}
	}
	if from > cur.Indexed.Number {
		return nil
	}
	lookedUp, err := onlyLookedUp(ctx, tx, chainKey, settled)
	if err == nil && !lookedUp {
		cur.ReadAgain(from)
	}
	return err
}

// checkWasRead returns Supplement's errors for a block that was not read, or differs from the one that
// was. It stores the header of a block that was read between others.
func checkWasRead(ctx context.Context, tx *db.Tx, chainKey string, cur Cursor, b, above invoice.Header) error {
	if !hasRead(cur, b.Number) {
		return ErrCursorMoved
	}
	kept, err := Headers(ctx, tx, chainKey, b.Number, b.Number)
	if err != nil {
		return err
	}
	final := b.Number <= cur.Confirmed.Number
	switch {
	case len(kept) == 1 && kept[0].Hash != b.Hash && final:
		return fmt.Errorf("block %d of %s: %w", b.Number, chainKey, ErrFinalityViolated)
	case len(kept) == 1 && !kept[0].SameBlock(b):
		return ErrCursorMoved
	case len(kept) == 0 && !final:
		return keepBetween(ctx, tx, chainKey, cur, b, above)
	}
	return nil
}

// onlyLookedUp reports whether payers looked up all of the transactions. Then no blocks are read again, since anybody can look
// up an old transaction, and invoices do not expire while blocks are read again.
func onlyLookedUp(ctx context.Context, tx *db.Tx, chainKey string, settled []invoice.Hash) (bool, error) {
	for _, hash := range settled {
		u, err := findUnreadTransaction(ctx, tx, chainKey, hash)
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			return false, err
		}
		if err == nil && u.Reason != UnreadLookup {
			return false, nil
		}
	}
	return true, nil
}

// keepBetween stores the header of a block that was read between others, unless above is not a read block above it.
func keepBetween(ctx context.Context, tx *db.Tx, chainKey string, cur Cursor, b, above invoice.Header) error {
	kept, err := Headers(ctx, tx, chainKey, above.Number, above.Number)
	if err != nil {
		return err
	}
	if above.Number <= b.Number || above.Number > cur.Indexed.Number || len(kept) != 1 || kept[0].Hash != above.Hash {
		return ErrCursorMoved
	}
	return insertHeaders(ctx, tx, chainKey, []invoice.Header{b})
}

// RetryUnread schedules an unread transaction to be read now, also if it was dismissed. It returns
// db.ErrNotFound if the transaction is not unread.
func (s *Service) RetryUnread(ctx context.Context, chainKey string, hash invoice.Hash) error {
	err := s.decideUnread(ctx, chainKey, hash, access.ActionUnreadRetry, retryUnread)
	if err == nil {
		s.conf.Signals.WakeIndexer(chainKey)
	}
	return err
}

// DismissUnread ends the attempts to read a transaction. Invoices that it could pay may
// expire then. It returns db.ErrNotFound without one.
func (s *Service) DismissUnread(ctx context.Context, chainKey string, hash invoice.Hash) error {
	return s.decideUnread(ctx, chainKey, hash, access.ActionUnreadDismiss, dismissUnread)
}

func (s *Service) decideUnread(
	ctx context.Context, chainKey string, hash invoice.Hash, action access.Action,
	change func(context.Context, *db.Tx, string, invoice.Hash, time.Time) error,
) error {
	return s.conf.Store.Update(ctx, func(tx *db.Tx) error {
		if err := change(ctx, tx, chainKey, hash, s.conf.Now()); err != nil {
			return err
		}
		return access.AppendAudit(ctx, tx, access.NewEntry(ctx, s.conf.Now(), access.Change{Action: action, Object: chainKey, After: auditedUnread{hash.String()}}))
	})
}

// auditedUnread is an unread transaction in the audit log.
type auditedUnread struct {
	TxHash string `json:"txHash"`
}

// hasRead reports whether a block was read, and is not to be read again.
func hasRead(cur Cursor, block uint64) bool {
	inGap := cur.Gap != nil && cur.Gap.Next <= block && block <= cur.Gap.Last
	return block <= cur.Indexed.Number && !inGap
}

// UnlinkedNotices returns when notices of transfers on a chain without a stored payment were received,
// in a range of time.
func (s *Service) UnlinkedNotices(ctx context.Context, chainKey string, from, before time.Time) ([]time.Time, error) {
	return unlinkedNotices(ctx, s.conf.Store, chainKey, from, before)
}

// CountUnread returns how many unread transactions of a chain wait to be read, by reason.
func (s *Service) CountUnread(ctx context.Context, chainKey string) (map[UnreadReason]int, error) {
	return countUnread(ctx, s.conf.Store, chainKey)
}

// UnreadTransactions returns the chain's unread transactions without the dismissed ones, in the order of their blocks.
func (s *Service) UnreadTransactions(ctx context.Context, chainKey string) ([]UnreadTransaction, error) {
	return unreadTransactions(ctx, s.conf.Store, chainKey, MaxUnread+MaxUnreadable+MaxOversized)
}
