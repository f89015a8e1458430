package ledger

import (
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// fittingRefunds are prepared refunds that a transfer without a tag may pay, in the order in which transfers pay them.
// A merchant can prepare many refunds, so a transfer reads only some of those that fit it, and is compared with few of
// them.
type fittingRefunds struct {
	records []invoice.RefundRecord
	next    int // transfers of this decision pay all records before it

	// In the block, transfers pay or name all records before first. checked is set if no transfer names that one.
	block   uint64
	first   int
	checked bool
}

// fittingKey is a key with the length of its list.
type fittingKey struct {
	PreparedKey
	limit int
}

// fittingFirst is the length of the first list. A longer list is read if one is too short.
const fittingFirst = 8

func (k fittingKey) longer() fittingKey { return fittingKey{k.PreparedKey, listGrowth * k.limit} }

// fittingFor returns the prepared refunds that fit a transfer and from which invoice.PreparedFor chooses the same one
// as from all: the first of which its transaction was submitted, and the first. It leaves out those that another
// transfer pays or names.
func (ch *Changes) fittingFor(e *entry) []invoice.RefundRecord {
	key := PreparedKey{From: e.From, To: e.To, Token: e.Token, Amount: e.Amount}
	own := key
	own.SubmittedTx = e.TxHash
	return slices.Concat(ch.firstFitting(own, e.BlockNumber), ch.firstFitting(key, e.BlockNumber))
}

// firstFitting returns the first prepared refund of a key that no transfer pays, and that no transfer of a block names.
func (ch *Changes) firstFitting(of PreparedKey, block uint64) []invoice.RefundRecord {
	key := fittingKey{of, ch.before.fittingFirst}
	for ch.before.fitting.has(key.longer()) {
		key = key.longer()
	}
	l, ok := ch.fitting[key]
	if !ok {
		l = &fittingRefunds{records: ch.before.fitting.get(key)}
		ch.fitting[key] = l
	}
	first, ok := l.free(block, func(i int) bool { return ch.current(l.records[i]).Sent() }, func(i int) bool { return ch.isNamedIn(block, l.records[i]) })
	switch {
	case ok:
		return l.records[first : first+1 : first+1]
	case len(l.records) == key.limit:
		ch.before.fitting.get(key.longer())
	}
	return nil
}

// free returns the first record that is neither paid nor named in a block. In a decision, records do not stop to be
// paid. So each record is asked about few times, however many transfers of the block fit it.
func (l *fittingRefunds) free(block uint64, isPaid, isNamed func(i int) bool) (i int, ok bool) {
	for l.next < len(l.records) && isPaid(l.next) {
		l.next++
	}
	if l.block != block || l.first < l.next {
		l.block, l.first, l.checked = block, l.next, false
	}
	for l.first < len(l.records) && (isPaid(l.first) || !l.checked && isNamed(l.first)) {
		l.first, l.checked = l.first+1, false
	}
	l.checked = l.first < len(l.records)
	return l.first, l.checked
}
