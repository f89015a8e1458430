package ledger_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// refunding is a world with one payment that is refunded at random.
type refunding struct {
	*world
	payment   ledger.PaymentRow
	prepared  []string               // ids
	forgotten []invoice.RefundRecord // that the database has lost, and that may be sent
	mined     []invoice.Transfer     // that may be mined again after a reorg
	finalized int                    // number of blocks that are final
}

// TestRefundModel plays random histories of prepared refunds, cancellations, submissions, transfers with and without
// tag, reorgs, restarts, expiries and lost records. Refunds on the chain never exceed the payment, and prepared ones
// fit when they are prepared. Refunds that can be sent fit even if all refunds in flight are mined, and the list agrees
// with the transfers and with the sums of payment and invoice.
func TestRefundModel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		rapid.Check(t, func(r *rapid.T) {
			m := &refunding{world: d.world(t)}
			m.payment = m.paid(1000)
			m.finalized = len(m.blocks)
			r.Repeat(map[string]func(*rapid.T){
				"prepare": m.prepareSome, "cancel": m.cancelSome, "withdraw": m.withdrawSome, "submit": m.submitSome, "send": m.sendSome, "reorg": m.reorgSome, "forget": m.forgetSome,
				"confirm": func(*rapid.T) {
					m.world.final()
					m.finalized = len(m.blocks)
				},
				"expire": func(r *rapid.T) {
					m.seconds.Add(rapid.Int64Range(0, int64(invoice.RefundLifetime/time.Second)).Draw(r, "seconds"))
					m.must(m.ExpireRefunds(t.Context()))
				},
				"restart": func(*rapid.T) { m.Service = m.service() },
				"":        m.checkRefunds,
			})
			m.world.mine(m.head().Time.Unix() + 1)
			m.world.final()
			m.checkRefunds(r)
			sum := invoice.Amount{}
			refunds, err := ledger.RefundsOfPayments(t.Context(), d.store, []string{m.payment.ID})
			m.must(err)
			for _, refund := range refunds {
				if refund.Status == invoice.Confirmed {
					sum = sum.Plus(refund.Amount)
				}
			}
			if got := m.invoice(m.payment.InvoiceID).AmountRefunded; got != sum {
				r.Errorf("the invoice has %s refunded, its transfers add up to %s", got, sum)
			}
		})
	})
}

func (m *refunding) prepareSome(r *rapid.T) {
	n := rapid.Uint64Range(0, 600).Draw(r, "amount")
	refund, err := m.prepare(m.payment, n, to(rapid.SampledFrom([]invoice.Address{{}, {0xee}}).Draw(r, "to")))
	left := 1000 - min(1000, m.onChain(r)+m.reserved())
	if err == nil {
		m.prepared = append(m.prepared, refund.ID)
		if got := m.onChain(r) + m.reserved(); got > 1000 {
			r.Errorf("%d of 1000 are refunded or prepared", got)
		}
		return
	}
	if fits := n <= left && left > 0; !errors.Is(err, ledger.ErrRefundExceeds) || fits {
		r.Errorf("%d of %d: %v", n, left, err)
	}
}

// onChain returns how much of the payment is refunded on the chain.
func (m *refunding) onChain(r *rapid.T) (sum uint64) {
	refunds, err := ledger.RefundsOfPayments(m.t.Context(), m.db.store, []string{m.payment.ID})
	m.must(err)
	var final uint64
	for _, refund := range refunds {
		if refund.Status != invoice.Orphaned {
			sum += number(refund.Amount)
		}
		if refund.Status == invoice.Confirmed {
			final += number(refund.Amount)
		}
	}
	sums, err := ledger.RefundedSums(m.t.Context(), m.db.store, []string{m.payment.ID})
	m.must(err)
	if is := sums[m.payment.ID]; number(is.All) != sum || number(is.Final) != final {
		r.Errorf("the payment has %+v refunded, its transfers add up to %d, of which %d are final", is, sum, final)
	}
	return sum
}

// reserved returns how much prepared refunds reserve.
func (m *refunding) reserved() uint64 {
	prepared, err := ledger.ReservingRefunds(m.t.Context(), m.db.store, []string{m.payment.ID})
	m.must(err)
	return number(invoice.ReservedOf(prepared))
}

func (m *refunding) cancelSome(r *rapid.T) {
	if len(m.prepared) == 0 {
		return
	}
	id := rapid.SampledFrom(m.prepared).Draw(r, "canceled")
	_, err := m.CancelRefund(m.t.Context(), id, "")
	var submitted *ledger.SubmittedError
	if sent := !m.refund(id).SubmittedTx.IsZero(); err != nil && !errors.Is(err, ledger.ErrRefundNotOpen) && !(sent && errors.As(err, &submitted)) {
		r.Fatal(err)
	}
}

// submitSome submits a refund with a transaction, or records one of a former submission.
func (m *refunding) submitSome(r *rapid.T) {
	if len(m.prepared) == 0 {
		return
	}
	id := rapid.SampledFrom(m.prepared).Draw(r, "submitted")
	hash := invoice.Hash{0xff, rapid.Byte().Draw(r, "hash")}
	all, err := ledger.NewReader(m.db.store).Submissions(m.t.Context(), id)
	m.must(err)
	if len(all) > 0 && rapid.Bool().Draw(r, "former") {
		former := rapid.SampledFrom(all).Draw(r, "submission")
		_, err = m.RecordTransaction(m.as("maria"), id, former.ID, "", hash, former.TxHash)
	} else {
		_, err = m.SubmitRefund(m.as("maria"), id, "", hash, ledger.Once{})
	}
	var submitted *ledger.SubmittedError
	if err != nil && !errors.Is(err, ledger.ErrRefundNotOpen) && !errors.Is(err, ledger.ErrTooManySubmissions) && !errors.As(err, &submitted) {
		r.Fatal(err)
	}
}

// withdrawSome withdraws the submission of a refund, unless it sent the refund.
func (m *refunding) withdrawSome(r *rapid.T) {
	if len(m.prepared) == 0 {
		return
	}
	id := rapid.SampledFrom(m.prepared).Draw(r, "withdrawn")
	m.seconds.Add(int64(invoice.SubmissionPatience / time.Second))
	if is := m.refund(id); !is.SubmittedTx.IsZero() {
		var submitted *ledger.SubmittedError
		if err, sent := m.withdraw(id), is.Sent() && is.Transfer.TxHash == is.SubmittedTx; errors.As(err, &submitted) != sent {
			r.Errorf("the submission of a refund that it sent %t is withdrawn: %v", sent, err)
		}
	}
}

// sendSome mines a block with transfers of prepared refunds, unchanged or changed, or with one that a reorg dropped.
func (m *refunding) sendSome(r *rapid.T) {
	var transfers []invoice.Transfer
	for range rapid.IntRange(0, 2).Draw(r, "transfers") {
		t := m.back(invoice.NewAmount(rapid.Uint64Range(1, 700).Draw(r, "by hand")))
		if len(m.prepared) > 0 && rapid.Bool().Draw(r, "prepared") {
			t = m.send(m.refund(rapid.SampledFrom(m.prepared).Draw(r, "refund")))
			if len(m.forgotten) > 0 && rapid.Bool().Draw(r, "forgotten") {
				t = m.send(rapid.SampledFrom(m.forgotten).Draw(r, "lost"))
			}
			switch rapid.IntRange(0, 4).Draw(r, "change") {
			case 0:
				t.Evidence = invoice.Evidence{}
			case 1:
				t.Amount = invoice.NewAmount(rapid.Uint64Range(1, 1100).Draw(r, "other amount"))
			case 2:
				t.To = invoice.Address{0xdd}
			}
		}
		transfers, m.mined = append(transfers, t), append(m.mined, t)
	}
	if len(m.mined) > 0 && rapid.Bool().Draw(r, "again") {
		t := rapid.SampledFrom(m.mined).Draw(r, "which")
		if !m.holds(t, transfers) {
			transfers = append(transfers, t)
		}
	}
	m.mine(m.head().Time.Unix()+1, transfers...)
}

// forgetSome loses a prepared refund that was in no block, like a restored backup.
func (m *refunding) forgetSome(r *rapid.T) {
	if len(m.prepared) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.prepared)-1).Draw(r, "forgotten")
	if lost := m.refund(m.prepared[i]); lost.Transfer.ID == "" {
		m.forget(lost)
		m.prepared, m.forgotten = slices.Delete(m.prepared, i, i+1), append(m.forgotten, lost)
	}
}

// holds reports whether a transfer is on the chain or among others.
func (m *refunding) holds(t invoice.Transfer, others []invoice.Transfer) bool {
	for _, b := range m.blocks {
		others = append(others, b.Transfers...)
	}
	for _, o := range others {
		if o.TxHash == t.TxHash {
			return true
		}
	}
	return false
}

func (m *refunding) reorgSome(r *rapid.T) {
	if n := len(m.blocks) - m.finalized; n > 0 {
		m.reorg(rapid.IntRange(1, n).Draw(r, "depth"))
	}
}

// checkRefunds compares the list with the transfers.
func (m *refunding) checkRefunds(r *rapid.T) {
	if got := m.onChain(r); got > 1000 {
		r.Errorf("%d of 1000 are refunded", got)
	}
	list, err := ledger.NewReader(m.db.store).RefundRecords(m.t.Context(), ledger.RefundFilter{PaymentID: m.payment.ID, Limit: 1000})
	m.must(err)
	m.checkSendable(r, list)
	shown := make(map[string]bool) // ids of the transfers
	for _, rec := range list {
		shown[rec.Transfer.ID] = true
		want := map[invoice.PaymentStatus]invoice.RefundStatus{
			invoice.Pending: invoice.RefundPending, invoice.Confirmed: invoice.RefundConfirmed, invoice.Orphaned: invoice.RefundOrphaned,
		}[rec.Transfer.Status]
		if (rec.Sent() || !rec.Prepared()) && rec.Status != want {
			r.Errorf("refund %s is %s, its transfer %s", rec.ID, rec.Status, rec.Transfer.Status)
		}
		if rec.Prepared() && !rec.Sent() && (rec.Status == invoice.RefundConfirmed || (rec.Status == invoice.RefundCanceled) == rec.CanceledAt.IsZero()) {
			r.Errorf("refund %s is %s without a transfer, canceled at %s", rec.ID, rec.Status, rec.CanceledAt)
		}
	}
	refunds, err := ledger.RefundsOfPayments(m.t.Context(), m.db.store, []string{m.payment.ID})
	m.must(err)
	for _, refund := range refunds {
		if refund.Status != invoice.Orphaned && !shown[refund.ID] {
			r.Errorf("the transfer %s is not in the list", refund.ID)
		}
	}
}

// checkSendable adds up the refunded amounts, the amounts that others may send or have sent, and the
// amounts that can then be sent.
func (m *refunding) checkSendable(r *rapid.T, list []invoice.RefundRecord) {
	onChain := m.onChain(r)
	for _, rec := range list {
		if !rec.CanBeSent(at(m.seconds.Load())) {
			continue
		}
		sum := onChain + number(rec.Amount)
		for _, other := range list {
			if other.ID != rec.ID && !other.Sent() && !other.SubmittedTx.IsZero() {
				sum += number(other.Reserved())
			}
		}
		if sum > 1000 {
			r.Errorf("%s can be sent, and with what is refunded or may be mined that is %d of 1000", rec.ID, sum)
		}
	}
}
