package ledger

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// Changes is what a decision changes of a snapshot. Each step of the decision reads through it, and so sees the
// effects of the steps before. It is only in memory; Service.save writes it.
type Changes struct {
	invoiceSet
	chain  chainScope
	before *Snapshot
	tagged map[taggedIn][]invoice.Transfer // of the decision

	payments   map[string]PaymentRow      // that have changed, by id
	ofInvoice  map[string]map[string]bool // ids of these payments, by the invoices that they belong to or did
	ofPair     map[Pair][]string          // ids of these payments, by the accounts between which they were made
	unsaved    []string                   // ids of the payments to be written
	isUnsaved  map[string]bool            // ids of these and of unsavedRefunds
	refundable map[refundableOf]refundable
	fitting    map[fittingKey]*fittingRefunds
	undecided  map[string]bool // whether payments are undecided, where that may have changed
	receivers  map[invoice.Address]ReceiverState

	refunds        map[string]invoice.Refund  // that have changed, by id
	refundIDs      map[string]map[string]bool // ids in refunds that have, or had, a payment
	dropped        map[string]map[string]bool // of these, transfers that were not prepared and are orphaned
	restored       restoredRecords
	unsavedRefunds []string                 // ids of the refunds to be written
	paidBy         map[string]string        // ids of the refunds that pay records, where that has changed
	withdrawn      map[string]bool          // records of which the submission was withdrawn
	refundedSums   map[string]RefundedSum   // how much of payments was refunded, where that has changed
	proved         map[invoice.Address]bool // settlement addresses that refunds have proved
	waived         map[string]bool          // invoices of which a waiver was taken back

	// The confirmed payments and refunds that are counted, and the confirmed sweeps.
	confirmed []invoice.Payment
	counted   int // number of confirmed that are counted
	refunded  []invoice.Refund
	returning []string // ids of the payments of which more or less may be refunded than before

	open, ended map[string]bool // marked payments of open and of other invoices, see recountMarks
	refundBlock uint64          // the block of the newest refund; payments with refunds below it are recounted
	settled     map[string]bool // invoices for which settleBelow has run in refundBlock

	effects effects
}

func newChanges(before *Snapshot) *Changes {
	before.lacking = false
	ch := &Changes{
		chain: before.scope, before: before, tagged: make(map[taggedIn][]invoice.Transfer),
		payments:  make(map[string]PaymentRow),
		ofInvoice: make(map[string]map[string]bool), ofPair: make(map[Pair][]string),
		refundable: make(map[refundableOf]refundable), fitting: make(map[fittingKey]*fittingRefunds),
		isUnsaved: make(map[string]bool), undecided: make(map[string]bool),
		receivers: make(map[invoice.Address]ReceiverState),
		refunds:   make(map[string]invoice.Refund), refundIDs: make(map[string]map[string]bool), paidBy: make(map[string]string), withdrawn: make(map[string]bool),
		refundedSums: make(map[string]RefundedSum), proved: make(map[invoice.Address]bool),
		dropped: make(map[string]map[string]bool), waived: make(map[string]bool),
		open: make(map[string]bool), ended: make(map[string]bool), settled: make(map[string]bool),
		restored: restoredRecords{
			byTag: make(map[invoice.Hash]invoice.RefundRecord), ofPayment: make(map[string][]invoice.RefundRecord),
			ids: make(map[string]bool), stored: make(map[string]int),
		},
		effects: effects{authorized: make(map[string]string)},
	}
	ch.invoiceSet = newInvoiceSet()
	return ch
}

// payment returns a payment; ok is false without one.
func (ch *Changes) payment(id string) (p PaymentRow, ok bool) {
	if id == "" {
		return p, false
	}
	if p, ok := ch.payments[id]; ok {
		return p, true
	}
	p = ch.before.payments.get(id)
	return p, p.ID != ""
}

// setPayment replaces a payment.
func (ch *Changes) setPayment(p PaymentRow) {
	ch.payments[p.ID] = p
	if !p.Attributed() {
		return
	}
	if ch.ofInvoice[p.InvoiceID] == nil {
		ch.ofInvoice[p.InvoiceID] = make(map[string]bool)
	}
	ch.ofInvoice[p.InvoiceID][p.ID] = true
}

// keep replaces a payment without a change of its invoice's sums in time, and marks it to be written.
func (ch *Changes) keep(p PaymentRow) {
	if !ch.isUnsaved[p.ID] {
		ch.isUnsaved[p.ID] = true
		ch.unsaved = append(ch.unsaved, p.ID)
	}
	ch.setPayment(p)
}

// put replaces a payment and marks it to be written.
func (ch *Changes) put(was invoice.Payment, p PaymentRow) {
	ch.replace(was, p.Payment)
	if was.ID != "" && (was.InvoiceID != p.InvoiceID || was.RefundedFrom() != p.RefundedFrom() || was.Token != p.Token) {
		ch.effects.reattributed = append(ch.effects.reattributed, p.ID)
	}
	if was.Status == invoice.Orphaned && p.Status != invoice.Orphaned {
		ch.effects.minedAgain = append(ch.effects.minedAgain, p.ID)
	}
	ch.effects.found = ch.effects.found || p.Attributed() && (was.ID == "" || was.Status == invoice.Orphaned)
	ch.effects.other = ch.effects.other || !p.Attributed() && was.ID == ""
	ch.keep(p)
	pair := Pair{Payer: p.From, Receiver: p.RefundedFrom()}
	ch.ofPair[pair] = append(ch.ofPair[pair], p.ID)
	ch.notRefundable(was)
	ch.addRefundable(p.Payment)
}

// paymentsOf returns all payments of an invoice.
func (ch *Changes) paymentsOf(invoiceID string) []invoice.Payment {
	return ch.asChanged(ch.before.paymentsOf.get(invoiceID), invoiceID)
}

// asChanged returns payments of an invoice that were read, as they are now.
func (ch *Changes) asChanged(rows []PaymentRow, invoiceID string) []invoice.Payment {
	var payments []invoice.Payment
	for _, row := range rows {
		if _, changed := ch.payments[row.ID]; !changed {
			payments = append(payments, row.Payment)
		}
	}
	for id := range ch.ofInvoice[invoiceID] {
		if p := ch.payments[id]; p.InvoiceID == invoiceID {
			payments = append(payments, p.Payment)
		}
	}
	return payments
}

// isUndecided reports whether a payment is undecided.
func (ch *Changes) isUndecided(paymentID string) bool {
	if is, changed := ch.undecided[paymentID]; changed {
		return is
	}
	return ch.before.undecided.get(paymentID)
}

// refund returns a refund; ok is false without one.
func (ch *Changes) refund(id string) (r invoice.Refund, ok bool) {
	if id == "" {
		return r, false
	}
	if r, ok := ch.refunds[id]; ok {
		return r, true
	}
	r = ch.before.refunds.get(id)
	return r, r.ID != ""
}

// refundsOf returns the refunds of a payment, with the payment's invoice.
func (ch *Changes) refundsOf(paymentID string) []invoice.Refund {
	refunds := slices.DeleteFunc(slices.Clone(ch.before.refundsOf.get(paymentID)), func(r invoice.Refund) bool {
		_, changed := ch.refunds[r.ID]
		return changed
	})
	for _, id := range slices.Sorted(maps.Keys(ch.refundIDs[paymentID])) {
		if r := ch.refunds[id]; r.PaymentID == paymentID {
			refunds = append(refunds, r)
		}
	}
	if p, ok := ch.payments[paymentID]; ok {
		for i := range refunds {
			refunds[i].InvoiceID, refunds[i].MerchantID = p.InvoiceID, p.MerchantID
		}
	}
	return refunds
}

// confirmedRefunds returns the confirmed refunds of a payment.
func (ch *Changes) confirmedRefunds(paymentID string) []invoice.Refund {
	return slices.DeleteFunc(ch.refundsOf(paymentID), func(r invoice.Refund) bool { return r.Status != invoice.Confirmed })
}

// recordsOf returns the records of refunds that may reserve a part of a payment.
func (ch *Changes) recordsOf(paymentID string) []invoice.RefundRecord {
	var records []invoice.RefundRecord
	known := make(map[string]bool)
	for _, r := range slices.Concat(ch.before.recordsOf.get(paymentID), ch.restored.ofPayment[paymentID]) {
		if !known[r.ID] {
			known[r.ID] = true
			records = append(records, ch.current(r))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ch.dropped[paymentID])) {
		if r := ch.refunds[id]; r.PaymentID == paymentID && !known[r.ID] {
			record := invoice.RefundRecord{ID: r.ID, PaymentID: paymentID, Status: invoice.RefundOrphaned, Transfer: r}
			record.Left = invoice.MaxAmount
			if s, ok := invoice.InForceOf(ch.before.submissions.get(r.ID)); ok {
				record.SubmittedTx = s.TxHash
			}
			records = append(records, ch.current(record))
		}
	}
	return records
}

// current returns the record of a refund as it is now.
func (ch *Changes) current(r invoice.RefundRecord) invoice.RefundRecord {
	if is, changed := ch.refunds[r.Transfer.ID]; changed && cmp.Or(is.PreparedID, is.ID) != r.ID {
		r.Transfer, r.Status = invoice.Refund{}, r.Unsent()
	}
	if is, changed := ch.refunds[ch.paidBy[r.ID]]; changed && cmp.Or(is.PreparedID, is.ID) == r.ID {
		r.Transfer, r.Status = is, invoice.RefundStatus(is.Status)
		if is.Status == invoice.Orphaned {
			r.Status = r.Unsent()
		}
	}
	if ch.withdrawn[r.ID] {
		r.SubmittedTx = invoice.Hash{}
	}
	if sum, changed := ch.refundedSums[r.PaymentID]; changed {
		p, _ := ch.payment(r.PaymentID)
		r.Left = p.Amount.Minus(sum.All)
	}
	return r
}

// setRefund replaces a refund.
func (ch *Changes) setRefund(r invoice.Refund) {
	ch.keepRefund(r)
	ch.paidBy[cmp.Or(r.PreparedID, r.ID)] = r.ID
}

// keepRefund keeps the present state of a refund.
func (ch *Changes) keepRefund(r invoice.Refund) {
	if was := ch.refunds[r.ID]; was.PreparedID != "" && (was.PreparedID != r.PreparedID || !isActive(r)) {
		clear(ch.fitting) // another transfer may pay the prepared refund
	}
	ch.refunds[r.ID] = r
	if ch.refundIDs[r.PaymentID] == nil {
		ch.refundIDs[r.PaymentID] = make(map[string]bool)
	}
	ch.refundIDs[r.PaymentID][r.ID] = true
	delete(ch.dropped[r.PaymentID], r.ID)
	if r.PreparedID == "" && r.Status == invoice.Orphaned {
		if ch.dropped[r.PaymentID] == nil {
			ch.dropped[r.PaymentID] = make(map[string]bool)
		}
		ch.dropped[r.PaymentID][r.ID] = true
	}
}

// refundedSum returns how much of a payment was refunded.
func (ch *Changes) refundedSum(paymentID string) RefundedSum {
	if sum, changed := ch.refundedSums[paymentID]; changed {
		return sum
	}
	return ch.before.refundedSums.get(paymentID)
}

// refundedWithout returns how much of a payment was refunded in other refunds than r.
func (ch *Changes) refundedWithout(paymentID string, r invoice.Refund) invoice.Amount {
	sum := ch.refundedSum(paymentID)
	if r.PaymentID == paymentID {
		sum = sum.minus(r)
	}
	return sum.All
}

// replaceRefund updates the sums after a refund changed.
func (ch *Changes) replaceRefund(was, is invoice.Refund) {
	if isActive(was) {
		ch.refundedSums[was.PaymentID] = ch.refundedSum(was.PaymentID).minus(was)
	}
	if isActive(is) {
		ch.refundedSums[is.PaymentID] = ch.refundedSum(is.PaymentID).plus(is)
	}
	ch.setRefund(is)
	ch.setLeft(was.PaymentID)
	ch.setLeft(is.PaymentID)
}

// isActive reports whether a refund counts: it is not the zero Refund and not orphaned.
func isActive(r invoice.Refund) bool { return r.PaymentID != "" && r.Status != invoice.Orphaned }
