package ledger

import (
	"context"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// allConfirmations is the number up to which every confirmation of a payment is kept. Of higher
	// numbers only powers of two are kept.
	allConfirmations = 12
	// maxConfirmation bounds the numbers of confirmations that are kept.
	maxConfirmation = 1 << 13
)

// Confirmation is a block that confirmed a payment. The payment's own block is the first.
type Confirmation struct {
	Number uint64    // of blocks from the payment's to this one, both counted
	Time   time.Time // of the block
}

// keptConfirmations returns the numbers of the confirmations that are kept, up to a number.
func keptConfirmations(last uint64) (numbers []uint64) {
	for n := uint64(1); n <= min(last, maxConfirmation); n++ {
		if n > allConfirmations {
			n = 1 << bits.Len64(n-1)
		}
		if n <= last {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// confirmationsIn returns the confirmations of each of the payments in a chain's blocks up to indexed,
// as far as the headers are stored. Replaced blocks do not count.
func confirmationsIn(ctx context.Context, q db.Querier, chainKey string, payments []invoice.Payment, indexed uint64) (map[string][]Confirmation, error) {
	wanted := make(map[uint64]struct{})
	for _, p := range payments {
		for _, n := range keptConfirmations(indexed - min(indexed, p.BlockNumber-1)) {
			wanted[p.BlockNumber+n-1] = struct{}{}
		}
	}
	numbers := make([]int64, 0, len(wanted))
	for n := range wanted {
		numbers = append(numbers, int64(n))
	}
	headers, err := db.AllIn(ctx, q, db.Fields(func(h *invoice.Header) []any {
		return []any{&h.Number, db.Hash(&h.Hash), db.Seconds(&h.Time)}
	}), "SELECT number, hash, block_time FROM blocks WHERE chain_key = $1 AND number > 0 AND number IN ", numbers, chainKey)
	if err != nil {
		return nil, err
	}
	byNumber := make(map[uint64]invoice.Header, len(headers))
	for _, h := range headers {
		byNumber[h.Number] = h
	}
	all := make(map[string][]Confirmation, len(payments))
	for _, p := range payments {
		if own, ok := byNumber[p.BlockNumber]; !ok || own.Hash != p.BlockHash {
			continue
		}
		for _, n := range keptConfirmations(indexed - min(indexed, p.BlockNumber-1)) {
			if h, ok := byNumber[p.BlockNumber+n-1]; ok {
				all[p.ID] = append(all[p.ID], Confirmation{n, h.Time})
			}
		}
	}
	return all, nil
}

// recordConfirmations stores the times of the blocks up to indexed that confirmed payments of a chain.
// Payments in blocks that were read without headers have no such times.
func recordConfirmations(ctx context.Context, tx *db.Tx, chainKey string, payments []invoice.Payment, indexed uint64) error {
	all, err := confirmationsIn(ctx, tx, chainKey, payments, indexed)
	if err != nil {
		return fmt.Errorf("read the blocks that confirm payments: %w", err)
	}
	var rows [][]any
	for _, p := range payments {
		if times := all[p.ID]; len(times) > 0 {
			rows = append(rows, []any{p.ID, formatConfirmations(times)})
		}
	}
	return tx.Insert(ctx, db.Insertion{Table: "payment_confirmations", Columns: []string{"payment_id", "times"},
		Conflict: "ON CONFLICT (payment_id) DO UPDATE SET times = excluded.times"}, rows)
}

// formatConfirmations writes confirmations as parseConfirmations reads them.
func formatConfirmations(list []Confirmation) string {
	parts := db.Each(list, func(c Confirmation) string {
		return fmt.Sprintf("%d:%d", c.Number, invoice.UnixSeconds(c.Time))
	})
	return strings.Join(parts, " ")
}

// parseConfirmations reads the column times.
func parseConfirmations(times string) (list []Confirmation, err error) {
	for part := range strings.FieldsSeq(times) {
		var c Confirmation
		var at int64
		if _, err := fmt.Sscanf(part, "%d:%d", &c.Number, &at); err != nil {
			return nil, fmt.Errorf("confirmation %q: %w", part, err)
		}
		c.Time = invoice.Unix(at)
		list = append(list, c)
	}
	return list, nil
}

// addConfirmations adds the confirmations of an invoice's payments: for pending payments those so far,
// for confirmed payments those that were kept.
func addConfirmations(ctx context.Context, q db.Querier, chainKey string, payments []SeenPayment) error {
	var pending []invoice.Payment
	var confirmed []string
	for _, p := range payments {
		switch p.Status {
		case invoice.Pending:
			pending = append(pending, p.Payment)
		case invoice.Confirmed, invoice.Held:
			confirmed = append(confirmed, p.ID)
		case invoice.Orphaned:
		}
	}
	all, err := keptConfirmationsOf(ctx, q, confirmed)
	if err != nil {
		return err
	}
	if len(pending) > 0 {
		cursor, err := NewReader(q).Cursor(ctx, chainKey)
		if err != nil {
			return err
		}
		soFar, err := confirmationsIn(ctx, q, chainKey, pending, cursor.Indexed.Number)
		if err != nil {
			return err
		}
		for id, list := range soFar {
			all[id] = list
		}
	}
	for i, p := range payments {
		payments[i].Confirmations = all[p.ID]
	}
	return nil
}

// keptConfirmationsOf returns what recordConfirmations kept of the payments.
func keptConfirmationsOf(ctx context.Context, q db.Querier, paymentIDs []string) (map[string][]Confirmation, error) {
	type kept struct{ id, times string }
	rows, err := db.AllIn(ctx, q, db.Fields(func(k *kept) []any { return []any{&k.id, &k.times} }), "SELECT payment_id, times FROM payment_confirmations WHERE payment_id IN ", paymentIDs)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]Confirmation, len(rows))
	for _, k := range rows {
		if all[k.id], err = parseConfirmations(k.times); err != nil {
			return nil, fmt.Errorf("confirmations of %s: %w", k.id, err)
		}
	}
	return all, nil
}
