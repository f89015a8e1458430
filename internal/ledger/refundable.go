package ledger

import (
	"cmp"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// refundable is the payments that a transfer can refund, in descending order of their positions. A transfer is compared
// with up to 2*pairLimit of them, so what is left of each is kept.
type refundable []invoice.Refundable

// find returns the index of a payment, or where it would be.
func (l refundable) find(p invoice.Payment) (i int, ok bool) {
	return slices.BinarySearchFunc(l, &p, func(r invoice.Refundable, p *invoice.Payment) int {
		return cmp.Or(p.Compare(r.Position), cmp.Compare(p.ID, r.ID))
	})
}

// with returns the list with a payment.
func (l refundable) with(p invoice.Payment, left invoice.Amount) refundable {
	i, known := l.find(p)
	if known {
		l[i] = invoice.Refundable{Payment: &p, Left: left}
		return l
	}
	return slices.Insert(l, i, invoice.Refundable{Payment: &p, Left: left})
}

// setLeft sets what is left of a payment, if it is in the list.
func (l refundable) setLeft(p invoice.Payment, left invoice.Amount) {
	if i, ok := l.find(p); ok {
		l[i].Left = left
	}
}

// left returns how much of a payment is not refunded, except in r.
func (ch *Changes) left(p invoice.Payment, r invoice.Refund) invoice.Amount {
	return p.Amount.Minus(ch.refundedWithout(p.ID, r))
}

// setLeft sets what is left of a payment after a refund of it changed.
func (ch *Changes) setLeft(paymentID string) {
	if len(ch.refundable) == 0 {
		return
	}
	if p, ok := ch.payment(paymentID); ok {
		ch.refundable[Pair{Payer: p.From, Receiver: p.RefundedFrom()}].setLeft(p.Payment, ch.left(p.Payment, invoice.Refund{}))
	}
}

// notRefundable takes a payment out of the list that it is in.
func (ch *Changes) notRefundable(p invoice.Payment) {
	pair := Pair{Payer: p.From, Receiver: p.RefundedFrom()}
	if i, ok := ch.refundable[pair].find(p); ok {
		ch.refundable[pair] = slices.Delete(ch.refundable[pair], i, i+1)
	}
}

// refundablePayments returns the newest payments that a transfer between two accounts can refund. They are collected
// once, and then kept up to date. A payment that is a refund itself is not refunded. Only transfers between two
// settlement addresses can be both.
func (ch *Changes) refundablePayments(e *entry) refundable {
	pair := e.refundPair()
	if list, ok := ch.refundable[pair]; ok {
		return list
	}
	var ids []string
	for _, id := range slices.Concat(ch.before.between.get(pair), ch.ofPair[pair]) {
		p, ok := ch.payment(id)
		if ok && e.paymentID != "" {
			r, _ := ch.refund(ch.before.transferID(invoice.PrefixRefund, p.Transfer))
			ok = !isActive(r)
		}
		if ok {
			ids = append(ids, id)
		}
	}
	ch.refundable[pair] = ch.listed(ids, invoice.Refund{})
	return ch.refundable[pair]
}

// listed returns payments with what is left of them, except in r.
func (ch *Changes) listed(ids []string, r invoice.Refund) (list refundable) {
	for _, id := range ids {
		if p, ok := ch.payment(id); ok {
			list = append(list, invoice.Refundable{Payment: &p.Payment, Left: ch.left(p.Payment, r)})
		}
	}
	slices.SortFunc(list, func(a, b invoice.Refundable) int { return cmp.Or(b.Compare(a.Position), cmp.Compare(b.ID, a.ID)) })
	return slices.CompactFunc(list, func(a, b invoice.Refundable) bool { return a.ID == b.ID })
}

// taggedPayments returns the invoice of the sender that the transfer's calldata
// names, or an empty id, and payments of which some may be the invoice's: the refundable ones, or
// else the newest stored, with what is left of them except in r.
func (ch *Changes) taggedPayments(t invoice.Transfer, payments refundable, r invoice.Refund) (id string, tagged refundable) {
	if t.Evidence.Calldata.IsZero() {
		return "", nil
	}
	inv := ch.invoice(ch.before.named.get(t.Evidence.Calldata))
	if inv.ID == "" || inv.ChainKey != t.ChainKey || inv.Merchant != t.From {
		return "", nil
	}
	if slices.ContainsFunc(payments, func(p invoice.Refundable) bool { return p.InvoiceID == inv.ID }) || ch.before.lacking {
		return inv.ID, payments
	}
	return inv.ID, ch.listed(ch.before.newest.get(inv.ID), r)
}
