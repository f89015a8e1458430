package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// money is the state of two invoices, and of two payments that each cover any of them.
type money struct {
	invoices [2]due
	payments [2]use
}

// due is the state of an invoice.
type due struct {
	id      string
	status  invoice.Status
	covered bool // by a payment that is not final
}

// use is what a final payment is used for.
type use struct {
	invoice        string // to which it was attributed
	refund         string // that is prepared
	submission, by string // in force, of the refund; and who made it
}

func (u use) name() invoice.PaymentUse {
	switch {
	case u.refund != "":
		return invoice.UseRefunding
	case u.invoice != "":
		return invoice.UseCounted
	}
	return invoice.UseUndecided
}

// attribute returns the state after payment p is attributed to invoice i.
func (m money) attribute(p, i int) money {
	m.payments[p].invoice = m.invoices[i].id
	if m.invoices[i].status == invoice.Open {
		m.invoices[i].status = invoice.Paid
	}
	return m
}

// TestPaymentsAreLinearizable attributes payments by hand, and prepares, cancels, submits and withdraws their refunds,
// while the invoices are voided and paid on the chain. A payment has one use, and one person sends a refund.
func TestPaymentsAreLinearizable(t *testing.T) {
	linearizable(t, 6, func(w *world, seed uint64) (money, func(*rand.Rand, int, *process) []observation[money]) {
		p := &players{world: w}
		var m money
		for i := range m.invoices {
			p.invoices[i] = w.create(func(d *invoice.Draft) { d.ExpiresAt = at(start + 100*day) })
			m.invoices[i] = due{id: p.invoices[i].ID, status: invoice.Open}
		}
		for i := range m.payments {
			p.payments[i] = w.unattributedPayment(w.head().Time.Unix(), invoice.NewAmount(50_000_000+2*seed+uint64(i)))
		}
		w.final()
		return m, func(r *rand.Rand, client int, at *process) []observation[money] {
			text, explain := p.call(r, client, at)
			return []observation[money]{{0, text, explain}}
		}
	})
}

// players are the clients that use two invoices and two payments.
type players struct {
	*world
	invoices            [2]invoice.Invoice
	payments            [2]ledger.PaymentRow
	refunds, submission seen // by the payment, and by the refund
}

type step = func(money) (after money, possible bool)

// call makes a random call. The first client is the indexer of the chain as well.
func (p *players) call(r *rand.Rand, client int, at *process) (text string, explain step) {
	i, n, by := r.IntN(2), r.IntN(2), fmt.Sprint("client", client)
	refund := p.refunds.pick(r, p.payments[n].ID)
	submitted := p.submission.pick(r, refund)
	switch drawn := r.IntN(8); {
	case client == 0 && drawn < 2:
		return p.chain(i, drawn == 0)
	case drawn < 2:
		return p.attribute(i, n, at)
	case drawn == 2:
		return p.void(i, at)
	case drawn == 3:
		return p.look(i, n, at)
	case refund == "" || drawn == 4:
		return p.prepareRefund(n, at)
	case drawn == 5:
		return p.cancel(n, refund, at)
	case submitted == "" || drawn == 6:
		return p.submit(n, refund, by, at)
	}
	return p.withdraw(n, refund, submitted, by, at)
}

// chain mines a payment of an invoice, or makes all blocks final.
func (p *players) chain(i int, final bool) (string, step) {
	if final {
		p.final()
		return "final", func(m money) (money, bool) {
			for i, inv := range m.invoices {
				if inv.status == invoice.Open && inv.covered {
					m.invoices[i].status = invoice.Paid
				}
				m.invoices[i].covered = false
			}
			return m, true
		}
	}
	p.mine(p.head().Time.Unix(), tagged(p.pay(p.invoices[i].TransferAmount), invoice.Evidence{Calldata: p.invoices[i].CommitmentID}))
	return fmt.Sprint("pay invoice ", i), func(m money) (money, bool) {
		m.invoices[i].covered = true
		return m, true
	}
}

func (p *players) attribute(i, n int, at *process) (string, step) {
	got, err := at.AttributeManually(open(p.t), ledger.ManualAttribution{
		PaymentID: p.payments[n].ID, InvoiceID: p.invoices[i].ID, By: "maria", MerchantID: p.merchant,
	})
	return fmt.Sprintf("attribute payment %d to invoice %d: %v", n, i, err), func(m money) (money, bool) {
		var attributed *ledger.AttributedError
		var used *ledger.UsedError
		is := m.payments[n]
		switch {
		case err == nil && is.invoice == "":
			return m.attribute(n, i), is.refund == "" && got.InvoiceID == p.invoices[i].ID
		case err == nil:
			return m, is.invoice == p.invoices[i].ID
		case errors.As(err, &attributed):
			return m, is.invoice == attributed.InvoiceID && is.invoice != p.invoices[i].ID
		case errors.As(err, &used):
			return m, is.invoice == "" && is.name() == used.Use && is.refund == used.RefundID
		}
		return m, false
	}
}

func (p *players) void(i int, at *process) (string, step) {
	got, err := at.Void(p.t.Context(), p.own(), p.invoices[i].ID)
	return fmt.Sprintf("void invoice %d: %s, %v", i, got.Status, err), func(m money) (money, bool) {
		is := m.invoices[i]
		switch {
		case is.status == invoice.Paid:
			return m, errors.Is(err, invoice.ErrFinal)
		case is.status == invoice.Open && is.covered:
			return m, errors.Is(err, invoice.ErrCovered)
		}
		m.invoices[i].status = invoice.Void
		return m, err == nil && got.Status == invoice.Void
	}
}

// look reads an invoice or a payment.
func (p *players) look(i, n int, at *process) (string, step) {
	read := ledger.NewReader(at.store)
	if n == 0 {
		got, err := read.Invoice(p.t.Context(), p.invoices[i].ID)
		return fmt.Sprintf("invoice %d is %s, %v", i, got.Status, err), func(m money) (money, bool) {
			return m, err == nil && got.Status == m.invoices[i].status
		}
	}
	got, err := read.Payment(p.t.Context(), p.payments[i].ID)
	return fmt.Sprintf("payment %d is of %q and %s, %v", i, got.InvoiceID, got.Use, err), func(m money) (money, bool) {
		return m, err == nil && got.InvoiceID == m.payments[i].invoice && got.Use == m.payments[i].name()
	}
}

// prepareRefund prepares a refund of what is left of a payment, which is nothing or all of it.
func (p *players) prepareRefund(n int, at *process) (string, step) {
	got, err := at.PrepareRefund(open(p.t), ledger.RefundRequest{PaymentID: p.payments[n].ID, MerchantID: p.merchant, Account: invoice.AccountWithKey})
	if err == nil {
		p.refunds.add(p.payments[n].ID, got.ID)
	}
	return fmt.Sprintf("refund payment %d: %s, %v", n, got.ID, err), func(m money) (money, bool) {
		if m.payments[n].refund != "" {
			return m, errors.Is(err, ledger.ErrRefundExceeds)
		}
		m.payments[n].refund = got.ID
		return m, err == nil
	}
}

func (p *players) cancel(n int, refund string, at *process) (string, step) {
	_, err := at.CancelRefund(p.t.Context(), refund, p.merchant)
	return fmt.Sprintf("cancel %s of payment %d: %v", refund, n, err), func(m money) (money, bool) {
		switch is := m.payments[n]; {
		case is.refund != refund: // canceled before
			return m, err == nil
		case is.submission != "":
			return m, isSubmittedBy(err, is.by)
		}
		m.payments[n].refund = ""
		return m, err == nil
	}
}

// submit begins to send a refund. A client repeats its own submission with its key.
func (p *players) submit(n int, refund, by string, at *process) (string, step) {
	got, err := at.SubmitRefund(p.as(by), refund, p.merchant, invoice.Hash{}, ledger.Once{Key: by, Scope: p.merchant})
	if err == nil {
		p.submission.add(refund, got.ID)
	}
	return fmt.Sprintf("submit %s of payment %d: %s, %v", refund, n, got.ID, err), func(m money) (money, bool) {
		switch is := m.payments[n]; {
		case is.refund != refund:
			return m, errors.Is(err, ledger.ErrRefundNotOpen)
		case is.submission == "":
			m.payments[n].submission, m.payments[n].by = got.ID, by
			return m, err == nil
		case is.by == by:
			return m, err == nil && got.ID == is.submission
		default:
			return m, isSubmittedBy(err, is.by)
		}
	}
}

// withdraw withdraws a submission, which only the client that made it can do at once.
func (p *players) withdraw(n int, refund, submitted, by string, at *process) (string, step) {
	_, err := at.WithdrawSubmission(p.as(by), ledger.Withdrawal{RefundID: refund, SubmissionID: submitted, MerchantID: p.merchant})
	return fmt.Sprintf("withdraw %s of payment %d: %v", submitted, n, err), func(m money) (money, bool) {
		switch is := m.payments[n]; {
		case is.submission != submitted: // withdrawn before
			return m, err == nil
		case is.by != by:
			return m, isSubmittedBy(err, is.by)
		}
		m.payments[n].submission, m.payments[n].by = "", ""
		return m, err == nil
	}
}

func isSubmittedBy(err error, by string) bool {
	var submitted *ledger.SubmittedError
	return errors.As(err, &submitted) && submitted.By == by
}
