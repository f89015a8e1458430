package ledger

import (
	"cmp"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/invoice"
)

// effects is what a decision writes besides the payments, refunds and invoices of its state.
type effects struct {
	moved bool // a pending payment was found in another block than before
	found bool // a payment of an invoice was not known, or was orphaned
	other bool // a payment without an invoice was not known

	reattributed []string           // payments that were stored before with another invoice
	minedAgain   []string           // payments that were orphaned
	authorized   map[string]string  // ids of the payments that authorizations made, or "", by authorization
	returned     []string           // payments of which another part was returned
	deferred     []invoice.Transfer // possible refunds above blocks that were never read
	outgoing     []*entry           // the transfers out of settlement addresses in a lost past

	restored  []invoice.RefundRecord // prepared refunds of which the records were lost
	proofs    []invoice.Refund       // refunds that prove that their sender is controlled by its holder
	waivers   []endedWaiver
	withdrawn []invoice.Submission // of transfers that come as no refund any more
	judged    []string             // objects that may be other items of the inbox, or have another use

	sweeps []invoice.Sweep

	events       []event
	closed       []invoice.Invoice // of which the commitment is to be closed
	unattributed []invoice.Payment // that no rule attributes
}

// event is an event that a decision emits.
type event struct {
	kind    invoice.EventType
	subject string
	invoice invoice.Invoice
	payment invoice.Payment
	refund  invoice.Refund
}

// data returns the data of the event.
func (e event) data() any {
	if e.kind == invoice.EventPaid {
		return apiconv.PaidInvoiceData(e.invoice)
	}
	if e.kind == invoice.EventRefunded {
		return apiconv.RefundData(e.refund, e.payment)
	}
	return apiconv.PaymentData(e.payment)
}

// endedWaiver is a decision that waived the rest of an invoice, and the refund that ended it.
type endedWaiver struct {
	waiver   invoice.Decision
	refundID string
}

func (e *effects) emit(of event) { e.events = append(e.events, of) }

// received announces an attributed payment. For one payment and invoice the event is stored once.
func (e *effects) received(p invoice.Payment, inv invoice.Invoice) {
	e.emit(event{kind: invoice.EventReceived, subject: p.ID + "/" + inv.ID, invoice: inv, payment: p})
}

// judge marks a changed refund, its record and, without an invoice, the payment that it refunds as possible items of the
// inbox.
func (e *effects) judge(r invoice.Refund) {
	e.judged = append(e.judged, cmp.Or(r.PreparedID, r.ID))
	if !r.Attributed() {
		e.judged = append(e.judged, r.PaymentID)
	}
}

// markRefund marks a refund to be written.
func (ch *Changes) markRefund(id string) {
	if !ch.isUnsaved[id] {
		ch.isUnsaved[id] = true
		ch.unsavedRefunds = append(ch.unsavedRefunds, id)
	}
}
