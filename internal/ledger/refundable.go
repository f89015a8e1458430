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

// refundableOf are the accounts of payments that a transfer can refund and, if it names an invoice, the invoice.
type refundableOf struct {
	Pair
	invoiceID string
}

// listsOf returns the keys of the lists that hold a payment.
func listsOf(p invoice.Payment) []refundableOf {
	all := refundableOf{Pair: Pair{Payer: p.From, Receiver: p.RefundedFrom()}}
	if !p.Attributed() {
		return []refundableOf{all}
	}
	return []refundableOf{all, {all.Pair, p.InvoiceID}}
}

// setLeft sets what is left of a payment after a refund of it changed.
func (ch *Changes) setLeft(paymentID string) {
	if len(ch.refundable) == 0 {
		return
	}
	if p, ok := ch.payment(paymentID); ok {
		for _, of := range listsOf(p.Payment) {
			ch.refundable[of].setLeft(p.Payment, ch.left(p.Payment, invoice.Refund{}))
		}
	}
}

// notRefundable takes a payment out of the lists that it is in.
func (ch *Changes) notRefundable(p invoice.Payment) {
	for _, of := range listsOf(p) {
		if i, ok := ch.refundable[of].find(p); ok {
			ch.refundable[of] = slices.Delete(ch.refundable[of], i, i+1)
		}
	}
}

// addRefundable adds a payment to the lists that were collected.
func (ch *Changes) addRefundable(p invoice.Payment) {
	for _, of := range listsOf(p) {
		if list, ok := ch.refundable[of]; ok {
			ch.refundable[of] = list.with(p, ch.left(p, invoice.Refund{}))
		}
	}
}

// refundablePayments returns the newest payments that a transfer between two accounts can refund. They are collected
// once, and then kept up to date. A payment that is a refund itself is not refunded. Only transfers between two
// settlement addresses can be both.
func (ch *Changes) refundablePayments(e *entry) refundable {
	pair := e.refundPair()
	of := refundableOf{Pair: pair}
	if list, ok := ch.refundable[of]; ok {
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
	ch.refundable[of] = ch.listed(ids)
	return ch.refundable[of]
}

// listed returns payments with what is left of them.
func (ch *Changes) listed(ids []string) (list refundable) {
	for _, id := range ids {
		if p, ok := ch.payment(id); ok {
			list = append(list, invoice.Refundable{Payment: &p.Payment, Left: ch.left(p.Payment, invoice.Refund{})})
		}
	}
	slices.SortFunc(list, func(a, b invoice.Refundable) int { return cmp.Or(b.Compare(a.Position), cmp.Compare(b.ID, a.ID)) })
	return slices.CompactFunc(list, func(a, b invoice.Refundable) bool { return a.ID == b.ID })
}

// taggedPayments returns the invoice of the sender that the transfer's calldata names, or an empty id, and the payments
// of the invoice that the transfer can refund: the ones among the refundable payments, or else among the newest of the
// invoice. They are collected once, and then kept up to date.
func (ch *Changes) taggedPayments(e *entry, payments refundable) (id string, tagged refundable) {
	if e.Evidence.Calldata.IsZero() {
		return "", nil
	}
	inv := ch.invoice(ch.before.named.get(e.Evidence.Calldata))
	if inv.ID == "" || inv.ChainKey != e.ChainKey || inv.Merchant != e.From {
		return "", nil
	}
	of := refundableOf{e.refundPair(), inv.ID}
	tagged, ok := ch.refundable[of]
	if ok || ch.before.lacking {
		return inv.ID, tagged
	}
	for _, p := range payments {
		if p.InvoiceID == inv.ID {
			tagged = append(tagged, p)
		}
	}
	if len(tagged) == 0 {
		var ids []string
		for _, id := range ch.before.newest.get(inv.ID) {
			if p, known := ch.payment(id); known && p.InvoiceID == inv.ID && p.From == e.To && p.RefundedFrom() == e.From {
				ids = append(ids, id)
			}
		}
		tagged = ch.listed(ids)
	}
	ch.refundable[of] = tagged
	return inv.ID, tagged
}
