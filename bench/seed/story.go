package seed

import (
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

const (
	// prices is the number of prices, which is a prime: prices[n] is a permutation, so that invoices with
	// the same price and suffix are prices*invoice.MaxSuffix apart.
	prices, priceStep = 20_011, 7919
	// cent is a hundredth of a unit of currency, in minor units.
	cent = 10_000
	// customers, baskets and payers are the numbers of different ones.
	customers, baskets, payers = 100_000, 100_000, 100_000
	// strays: one invoice in this many has an unattributed payment at its merchant's address.
	strays = 200
	// undecided is the part of the newest invoices with a surplus that is not refunded yet.
	undecided = 20
)

// fate is the outcome of an invoice.
type fate int

const (
	paid fate = iota
	overpaid
	duplicate
	underpaid
	late
	unpaid
	void
)

// fates are the shares of fates in hundredths, each with those before it.
var fates = []int{paid: 74, overpaid: 77, duplicate: 79, underpaid: 82, late: 84, unpaid: 96, void: 100}

// Transfers of an invoice: up to two payments, a refund and a stray.
const refundTransfer, strayTransfer, transfers = 2, 3, 4

// Delays from an invoice's creation.
const (
	payDelay    = 2 * time.Minute // and up to ten times as long
	secondDelay = time.Hour       // to the second payment of a duplicate
	lateDelay   = 30 * time.Hour  // to the payment of an expired one
	refundDelay = 48 * time.Hour
)

// story is the history of an invoice.
type story struct {
	*Maker
	n          int
	invoice    invoice.Invoice
	remainders []ledger.TransferAmount
	closedAt   time.Time
	payments   []ledger.PaymentRow
	refunds    []invoice.Refund
	events     []event
}

// Invoice returns the current state of an invoice.
func (m *Maker) Invoice(n int) invoice.Invoice { return m.story(n).invoice }

// Payments returns the payments that were made because of an invoice.
func (m *Maker) Payments(n int) []ledger.PaymentRow { return m.story(n).payments }

func (m *Maker) story(n int) *story {
	s := &story{Maker: m, n: n, invoice: m.created(n)}
	s.emit(invoice.EventCreated, s.invoice.ID, m.At(n), func() any { return apiconv.InvoiceData(s.invoice) })
	if s.invoice.ExpiresAt.Before(m.Until) {
		s.close()
	} else if m.below(fates[void], n, drawFate) < fates[paid] && n < m.Invoices-m.Open {
		s.pay(s.paidAfter(), s.invoice.TransferAmount, invoice.ByTransferAmount)
	}
	if m.below(strays, n, drawStray) == 0 {
		s.stray()
	}
	return s
}

// created returns an invoice as it is created.
func (m *Maker) created(n int) invoice.Invoice {
	at, owner := m.At(n).Truncate(time.Second), m.Owner(n)
	expires := at.Add(openFor)
	if n >= m.Invoices-m.Open {
		expires = m.Until.Add(time.Duration(1+m.below(30, n, drawExpiry)) * openFor)
	}
	price := uint64(cent * (100 + n*priceStep%prices))
	inv := invoice.Invoice{
		ID: m.id(invoice.PrefixInvoice, m.At(n), n, idInvoice), MerchantID: Merchant(owner), ChainKey: chain.Local, Currency: chain.USDC, Collection: invoice.Direct,
		Status: invoice.Open, CreatedAt: at, FromBlock: m.position(at, 0).BlockNumber,
		Terms:          invoice.Terms{Merchant: m.Address(owner), Token: invoice.Address{1}, Amount: invoice.NewAmount(price), ExpiresAt: expires},
		TransferAmount: invoice.NewAmount(price + uint64(1+n/prices%invoice.MaxSuffix)),
		Details: invoice.Details{
			Reference: fmt.Sprintf("order-%d", n), Metadata: map[string]string{"basket": fmt.Sprintf("b-%d", m.below(baskets, n, drawBasket))},
			Customer: invoice.Customer{ID: fmt.Sprintf("c-%d", m.below(customers, n, drawCustomer))},
		},
	}
	inv.CommitmentID = chain.CommitmentID(chain.LocalID, invoice.Address{}, inv.Terms, inv.ID)
	return inv
}

// paidAfter returns how long after its creation an invoice is paid.
func (s *story) paidAfter() time.Duration {
	return payDelay + time.Duration(s.below(int(9*payDelay/time.Second), s.n, drawDelay))*time.Second
}

// close gives an invoice its fate.
func (s *story) close() {
	amount, exact := s.invoice.Amount, s.invoice.TransferAmount
	drawn, f := s.below(fates[void], s.n, drawFate), paid
	for drawn >= fates[f] {
		f++
	}
	switch f {
	case paid:
		s.pay(s.paidAfter(), exact, invoice.ByTransferAmount)
	case overpaid:
		s.pay(s.paidAfter(), amount.Plus(invoice.NewAmount(50*cent)), invoice.ByCalldata)
		s.refund(invoice.NewAmount(50 * cent))
	case duplicate:
		s.pay(s.paidAfter(), exact, invoice.ByTransferAmount)
		s.pay(secondDelay, amount, invoice.ByCalldata)
		s.refund(amount)
	case underpaid:
		s.pay(s.paidAfter(), amount.Minus(invoice.NewAmount(50*cent)), invoice.ByCalldata)
		s.remainders = append(s.remainders, ledger.TransferAmount{Base: s.invoice.Missing(), Amount: s.invoice.Missing().Plus(exact.Minus(amount)), FromBlock: s.payments[0].BlockNumber, Remainder: true})
		s.expire()
	case late:
		s.expire()
		s.pay(lateDelay, amount, invoice.ByCalldata)
		s.refund(amount)
	case unpaid:
		s.expire()
	case void:
		s.void()
	}
	for i := range s.remainders {
		s.remainders[i].Invoice = s.invoice
	}
}

// closed records the time when the invoice was closed.
func (s *story) closed(at time.Time) {
	s.closedAt, s.invoice.ClosedBlock = at, s.position(at, 0).BlockNumber
}

func (s *story) expire() {
	at := s.invoice.ExpiresAt.Add(time.Second)
	if expired, ok := s.invoice.Expire(at); ok {
		s.invoice = expired
		s.closed(at)
		s.emit(invoice.EventExpired, s.invoice.ID, at, func() any { return apiconv.InvoiceData(s.invoice) })
	}
}

func (s *story) void() {
	at := s.At(s.n).Add(s.paidAfter())
	if voided, err := s.invoice.Cancel(s.position(at, 0).BlockNumber); err == nil {
		s.invoice, s.closedAt = voided, at
	}
}

// transfer returns a transfer that was mined some time after the invoice's creation.
func (s *story) transfer(after time.Duration, kind int, from, to invoice.Address, amount invoice.Amount) invoice.Transfer {
	at := s.At(s.n).Add(after).Truncate(time.Second)
	return invoice.Transfer{
		ChainKey: chain.Local, TxHash: s.hash(s.n*transfers+kind, hashTx), Position: s.position(at, transfers*s.n+kind),
		Token: s.invoice.Token, Currency: chain.USDC, From: from, To: to, Amount: amount,
	}
}

func (s *story) payer() invoice.Address {
	return address(s.hash(s.below(payers, s.n, drawPayer), hashPayer))
}

// payment returns the confirmed payment of a transfer.
func (s *story) payment(t invoice.Transfer, kind int) ledger.PaymentRow {
	return ledger.PaymentRow{SeenID: s.id("", t.BlockTime, s.n, idPayment+kind), Payment: invoice.Payment{
		ID:     invoice.TransferID(invoice.PrefixPayment, t.ChainKey, t.TxHash, t.Ordinal),
		Status: invoice.Confirmed, ObservedAt: t.BlockTime, ConfirmedAt: t.BlockTime, Transfer: t,
	}}
}

// pay adds a payment of the invoice, unless it is in the future.
func (s *story) pay(after time.Duration, amount invoice.Amount, by invoice.Method) {
	kind := len(s.payments)
	p := s.payment(s.transfer(after, kind, s.payer(), s.invoice.Merchant, amount), kind)
	if p.ObservedAt.After(s.Until) {
		return
	}
	p.InvoiceID, p.MerchantID, p.Method = s.invoice.ID, s.invoice.MerchantID, by
	if by == invoice.ByCalldata {
		p.Evidence.Calldata = s.invoice.CommitmentID
	}
	s.payments = append(s.payments, p)
	all := make([]invoice.Payment, len(s.payments))
	for i, row := range s.payments {
		all[i] = row.Payment
	}
	was := s.invoice.Status
	s.invoice = s.invoice.Recount(all)
	pending := p.Payment
	pending.Status, pending.ConfirmedAt = invoice.Pending, time.Time{}
	s.emit(invoice.EventReceived, p.ID, p.ObservedAt, func() any { return apiconv.PaymentData(pending) })
	if was == invoice.Open && s.invoice.Status == invoice.Paid {
		s.closed(p.ObservedAt)
		s.emit(invoice.EventPaid, s.invoice.ID, p.ObservedAt, func() any { return apiconv.PaidInvoiceData(s.invoice) })
	}
}

// refund adds a refund of the invoice's last payment, unless the decision is still open.
func (s *story) refund(amount invoice.Amount) {
	if len(s.payments) == 0 || s.n > s.Invoices-s.Invoices/undecided {
		return
	}
	p := s.payments[len(s.payments)-1]
	t := s.transfer(refundDelay, refundTransfer, p.To, p.From, amount)
	if t.BlockTime.After(s.Until) {
		return
	}
	r := invoice.Refund{
		Transfer: t, ID: invoice.TransferID(invoice.PrefixRefund, t.ChainKey, t.TxHash, t.Ordinal), PaymentID: p.ID, InvoiceID: p.InvoiceID, MerchantID: p.MerchantID,
		Status: invoice.Confirmed, ObservedAt: t.BlockTime, ConfirmedAt: t.BlockTime,
	}
	s.refunds, s.invoice = append(s.refunds, r), s.invoice.WithRefunds(r)
	s.emit(invoice.EventRefunded, r.ID, t.BlockTime, func() any { return apiconv.RefundData(r, p.Payment) })
}

// stray adds a payment at the merchant's address that names no invoice.
func (s *story) stray() {
	t := s.transfer(0, strayTransfer, s.payer(), s.invoice.Merchant, invoice.NewAmount(uint64(1+s.below(100*cent, s.n, drawBasket))))
	s.payments = append(s.payments, s.payment(t, strayTransfer))
}
