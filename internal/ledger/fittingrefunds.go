package ledger

import (
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// fittingRefunds are prepared refunds that a transfer without a tag may pay: submitted ones first, then the oldest. A
// merchant can prepare many refunds, so a transfer reads only those that fit it, and is compared with few of them.
type fittingRefunds struct {
	records []invoice.RefundRecord
	byID    map[string]int
	byTx    map[invoice.Hash][]int // of the submitted ones
	next    int                    // transfers of this decision pay all records before it
}

// fittingKey is a key with the length of its list.
type fittingKey struct {
	PreparedKey
	limit int
}

// fittingFirst is the length of the first list. A longer list is read if one is too short.
const fittingFirst = 200

func (k fittingKey) longer() fittingKey { return fittingKey{k.PreparedKey, listGrowth * k.limit} }

func newFittingRefunds(records []invoice.RefundRecord) *fittingRefunds {
	l := &fittingRefunds{records: records}
	if len(records) > 0 {
		l.byID, l.byTx = make(map[string]int, len(records)), make(map[invoice.Hash][]int)
	}
	for i := range records {
		r := &records[i]
		l.byID[r.ID] = i
		if !r.SubmittedTx.IsZero() {
			l.byTx[r.SubmittedTx] = append(l.byTx[r.SubmittedTx], i)
		}
	}
	return l
}

// fittingOf returns the list for a transfer, as long as it was read.
func (ch *Changes) fittingOf(e *entry) (*fittingRefunds, fittingKey) {
	key := fittingKey{PreparedKey{e.From, e.To, e.Token, e.Amount}, fittingFirst}
	for ch.before.fitting.has(key.longer()) {
		key = key.longer()
	}
	l, ok := ch.fitting[key]
	if !ok {
		l = newFittingRefunds(ch.before.fitting.get(key))
		ch.fitting[key] = l
	}
	return l, key
}

// fittingFor returns the prepared refunds that fit a transfer and from which invoice.PreparedFor chooses the same one as
// from all: the one that the transfer pays already, the first of which its transaction was submitted, and the first. It
// leaves out those that another transfer pays or names.
func (ch *Changes) fittingFor(e *entry) (all []invoice.RefundRecord) {
	l, key := ch.fittingOf(e)
	isFree := func(i int) bool {
		return ch.current(l.records[i]).Takes(e.refundID) && !ch.isNamedByAnother(e, l.records[i])
	}
	was, _ := ch.refund(e.refundID)
	if i, ok := l.byID[was.PreparedID]; ok {
		all = append(all, l.records[i])
	}
	submitted := l.byTx[e.TxHash]
	i := slices.IndexFunc(submitted, isFree)
	if i >= 0 {
		return append(all, l.records[submitted[i]])
	}
	for l.next < len(l.records) && ch.current(l.records[l.next]).Sent() {
		l.next++
	}
	first := l.next
	for first < len(l.records) && !isFree(first) {
		first++
	}
	if first < len(l.records) {
		all = append(all, l.records[first])
	}
	if n := len(l.records); n == key.limit && (first == n || !l.records[n-1].SubmittedTx.IsZero()) {
		ch.before.fitting.get(key.longer())
	}
	return all
}
