package ledger_test

import (
	"fmt"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// depositStates are the states of the invoices of a case of TestDepositsKeepTheirMoney.
type depositStates struct {
	voided    map[string]bool
	ended     map[string]invoice.Status // invoices that were seen paid or expired, and stay so
	dropped   map[string]int64          // when a reorg dropped refunds, in Unix seconds
	withdrawn bool                      // dropped refunds are not awaited any more
	wrong     string                    // the first invoice in a wrong state
}

func newDepositStates() depositStates {
	return depositStates{
		voided: make(map[string]bool), ended: make(map[string]invoice.Status), dropped: make(map[string]int64),
	}
}

// follow requires each invoice to be in the state that follows from its final payments, less their
// refunds so far. It has to look at the invoices after each transaction that may change them, because
// a refund after an invoice was paid leaves it paid.
func (d *depositGame) follow() {
	if d.wrong != "" {
		return
	}
	least, most := d.counting(d.stored())
	invoices, err := ledger.InvoicesWithoutLines(d.t.Context(), d.db.store, d.set.ids)
	d.must(err)
	inGap := d.gap() != nil
	for _, inv := range invoices {
		may := d.states(d.set.byID[inv.ID], least[inv.ID], most[inv.ID], inGap)
		if !slices.Contains(may, inv.Status) {
			d.wrong = fmt.Sprintf("%s over %s is %s, and %d to %d count for it: want %v",
				inv.ID, inv.Amount, inv.Status, least[inv.ID], most[inv.ID], may)
			return
		}
		if inv.Status == invoice.Paid || inv.Status == invoice.Expired {
			d.ended[inv.ID] = inv.Status
		}
	}
}

// states returns the states that an invoice may be in, if an amount between two bounds counts for it.
// It does not expire while blocks have to be read again.
func (d *depositGame) states(inv invoice.Invoice, least, most uint64, inGap bool) (may []invoice.Status) {
	switch ended := d.ended[inv.ID]; {
	case d.voided[inv.ID]:
		return []invoice.Status{invoice.Void}
	case ended != "":
		return []invoice.Status{ended}
	case least >= number(inv.Amount):
		return []invoice.Status{invoice.Paid}
	case most >= number(inv.Amount):
		may = append(may, invoice.Paid)
	}
	past := d.blocks[d.line].Time.After(inv.ExpiresAt)
	if past {
		may = append(may, invoice.Expired)
	}
	if !past || inGap {
		may = append(may, invoice.Open)
	}
	return may
}

// counting returns the amounts that count for each invoice: its confirmed payments in time, less their refunds. The two
// bounds differ by refunds that a reorg dropped and that may or may not be expected to be mined again.
func (d *depositGame) counting(stored map[transferKey]storedTransfer) (least, most map[string]uint64) {
	sure, possible := d.refunded(stored)
	least, most = make(map[string]uint64), make(map[string]uint64)
	for _, s := range stored {
		p := s.payment
		if p == nil || p.Status != invoice.Confirmed || !p.Attributed() ||
			p.BlockTime.After(d.set.byID[p.InvoiceID].ExpiresAt) {
			continue
		}
		n := number(p.Amount)
		least[p.InvoiceID] += n - min(n, possible[p.ID])
		most[p.InvoiceID] += n - min(n, sure[p.ID])
	}
	return least, most
}

// refunded returns the refunded amounts of each payment, certain and possible. A refund that a reorg
// dropped is certain for invoice.SubmissionPatience, unless its transaction was mined again as
// something else, and possible as long as a person may wait for it.
func (d *depositGame) refunded(stored map[transferKey]storedTransfer) (sure, possible map[string]uint64) {
	mined := make(map[invoice.Hash]bool)
	for k := range d.canonical() {
		mined[k.tx] = true
	}
	sure, possible = make(map[string]uint64), make(map[string]uint64)
	now := d.seconds.Load()
	for k, s := range stored {
		r := s.refund
		if r == nil {
			continue
		}
		n := number(r.Amount)
		if r.Status != invoice.Orphaned {
			delete(d.dropped, r.ID)
			sure[r.PaymentID] += n
			possible[r.PaymentID] += n
			continue
		}
		if _, ok := d.dropped[r.ID]; !ok {
			d.dropped[r.ID] = now
		}
		if d.withdrawn {
			continue
		}
		possible[r.PaymentID] += n
		if !mined[k.tx] && now-d.dropped[r.ID] < int64(invoice.SubmissionPatience.Seconds()) {
			sure[r.PaymentID] += n
		}
	}
	return sure, possible
}
