package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// TestWhoseMoneyIsWhose plays sequences of creates, drafts, payments, expiries, voids and reorgs at
// one address. Some creators choose amounts that collide with others. These rules hold for each
// payment when it is first seen:
//
//   - A payment of a transfer amount that the checkout showed counts for that
//     invoice while it is payable and not covered, whatever others created since.
//   - A payment never counts for an invoice over another amount while an invoice that is
//     payable and not covered asks for its amount. If the amount of an invoice is the
//     transfer amount of another one that is payable and not covered, the invoice asks
//     only for its own transfer amount.
//   - A payment of the transfer amount of an invoice is never attributed to another
//     invoice by the other's amount, remainder or tolerance.
//   - A payment to the deposit address of an invoice counts for that invoice, whatever its
//     amount and evidence, and does not count if it is in another currency. No payment to the
//     settlement address counts for a deposit invoice because of its amount.
//   - A transfer out of a deposit address is a sweep, and neither a payment nor a refund,
//     also if an invoice asks for its amount.
//   - A transfer of a prepared refund is that refund and pays no invoice. This holds even if an
//     invoice asks for its amount at the recipient's address.
//
// A payment that is mined again keeps its invoice, or stays without one.
func TestWhoseMoneyIsWhose(t *testing.T) {
	t.Parallel()
	properties(t, *propertyCount, func(open func() *reader, r *rand.Rand) string {
		g := &game{reader: open(), Rand: r, shown: make(map[string][]invoice.Amount), meant: make(map[invoice.Hash]meant)}
		g.book.Restart(narrow{r, 0, 8})
		g.must(g.book.Start(g.head(), g.head().Number+1))
		for range 10 + r.IntN(25) {
			switch r.IntN(16) {
			case 0, 1, 2:
				g.create()
			case 3, 4, 5, 6, 7, 8:
				g.mine()
			case 9:
				g.line += g.IntN(len(g.blocks) - g.line)
				g.confirm(g.line)
			case 10:
				if n := len(g.blocks) - 1 - g.line; n > 0 {
					g.reorg(1 + g.IntN(n))
				}
			case 11:
				g.book.Restart(narrow{r, 0, 8})
			case 12:
				g.void()
			case 13:
				g.issue()
			case 14, 15:
				g.sendBack()
			}
		}
		return strings.Join(g.wrong, "; ")
	})
}

// game is a case of TestWhoseMoneyIsWhose.
type game struct {
	*reader
	*rand.Rand
	made   []string                    // invoices, by id
	shown  map[string][]invoice.Amount // transfer amounts that an invoice has had
	meant  map[invoice.Hash]meant      // the purposes of the transfers
	mined  []invoice.Transfer
	unsent []invoice.Transfer // of prepared refunds, for the next block
	line   int                // blocks up to this index are final
	wrong  []string
}

// meant is the invoice that a transfer is made for. The id is empty if no invoice had its amount as transfer amount.
type meant struct {
	invoiceID string
	seenAs    string // the invoice that it was attributed to when it was first seen
	seen      bool
	refund    string // id of the prepared refund that it sends; empty without one
}

// create makes an invoice, of a usual price or of an amount that collides.
func (g *game) create() {
	amounts := []uint64{1_000_000, 1_000_000, 2_000_000, 1_500_000, 999_996, 1_000_500}
	if len(g.made) > 0 {
		for range 4 { // an attacker reads the transfer amounts of others
			told := g.shown[pick(g.Rand, g.made...)]
			if len(told) > 0 {
				amounts = append(amounts, number(pick(g.Rand, told...))-pick(g.Rand, uint64(0), 0, 1, 2, 7))
			}
		}
	}
	d := g.draft()
	d.Amount = invoice.NewAmount(pick(g.Rand, amounts...))
	d.ExpiresAt = invoice.Unix(g.seconds.Load() + 20 + g.Int64N(100))
	d.Unissued = g.IntN(5) == 0
	if g.IntN(4) == 0 {
		d.Collection = invoice.Deposit
	}
	inv, err := g.book.Create(d)
	g.must(err)
	g.made = append(g.made, inv.ID)
	g.noteTransferAmounts(inv)
}

// issue finalizes an invoice, which may fail.
func (g *game) issue() {
	if len(g.made) == 0 {
		return
	}
	inv, err := g.book.Finalize(pick(g.Rand, g.made...))
	if field := (*invoice.FieldError)(nil); errors.Is(err, ledger.ErrVoid) || errors.As(err, &field) && field.Field == "expiresAt" {
		return
	}
	g.must(err)
	g.noteTransferAmounts(inv)
}

// sendBack prepares a refund of a final payment, which is sent in the next block. Another merchant
// may ask for the amount at the payer's own address.
func (g *game) sendBack() {
	for _, t := range g.mined {
		p := g.paymentOf(t)
		if p.Status != invoice.Confirmed || p.DepositOf != "" || g.IntN(2) == 0 {
			continue
		}
		r, err := g.book.Prepare(p.ID)
		if errors.Is(err, ledger.ErrRefundExceeds) {
			continue
		}
		g.must(err)
		if g.IntN(3) > 0 {
			g.must(g.book.Create(g.trap(r)))
		}
		back := g.send(r)
		if g.IntN(3) == 0 {
			back.Evidence = invoice.Evidence{} // as a Safe sends it
		}
		g.meant[back.TxHash] = meant{refund: r.ID}
		g.mined, g.unsent = append(g.mined, back), append(g.unsent, back)
		return
	}
}

// trap returns an invoice at the recipient of a refund that asks for the refund's amount.
func (g *game) trap(r invoice.RefundRecord) invoice.Draft {
	d := g.draft()
	d.Merchant, d.Amount = r.To, r.Amount
	if g.IntN(2) == 0 {
		d.Amount = r.Amount.Minus(invoice.NewAmount(1 + g.Uint64N(8))) // of which it may be the transfer amount
	}
	return d
}

// void makes an invoice void, unless it is paid, expired or covered.
func (g *game) void() {
	if len(g.made) == 0 {
		return
	}
	if err := g.book.Void(pick(g.Rand, g.made...)); !errors.Is(err, invoice.ErrFinal) && !errors.Is(err, invoice.ErrCovered) {
		g.must(err)
	}
}

// noteTransferAmounts records the transfer amounts that the checkout of an invoice shows now.
func (g *game) noteTransferAmounts(inv invoice.Invoice) {
	for _, a := range []invoice.Amount{inv.TransferAmount, inv.RemainingTransfer} {
		if !a.IsZero() {
			g.shown[inv.ID] = append(g.shown[inv.ID], a)
		}
	}
	if !inv.TransferAmount.IsZero() && inv.TransferAmount.IsRound() {
		g.wrong = append(g.wrong, fmt.Sprintf("the transfer amount %s is round", inv.TransferAmount))
	}
}

// mine adds a block, usually with transfers, and judges the result.
func (g *game) mine() {
	at := g.head().Time.Unix() + 1 + g.Int64N(20)
	g.seconds.Store(at)
	var transfers []invoice.Transfer
	for range g.IntN(4) {
		if t, ok := g.transfer(transfers); ok {
			transfers = append(transfers, t)
		}
	}
	transfers, g.unsent = append(transfers, g.unsent...), nil
	b := g.next(at, transfers...)
	g.observe(b)
	g.judge(b)
	for _, id := range g.made {
		g.noteTransferAmounts(g.book.Invoice(id))
	}
}

// transfer makes a transfer, or mines one again that a reorg dropped.
func (g *game) transfer(sameBlock []invoice.Transfer) (invoice.Transfer, bool) {
	on := make(map[invoice.Hash]bool)
	for _, t := range sameBlock {
		on[t.TxHash] = true
	}
	for _, b := range g.blocks {
		for _, t := range b.Transfers {
			on[t.TxHash] = true
		}
	}
	for _, t := range g.mined {
		if !on[t.TxHash] && g.IntN(2) == 0 {
			return t, true
		}
	}
	if len(g.made) == 0 {
		return invoice.Transfer{}, false
	}
	inv := g.book.Invoice(pick(g.Rand, g.made...))
	var t invoice.Transfer
	of := ""
	if !inv.DepositAddress.IsZero() {
		t = g.depositTransfer(inv)
		g.meant[t.TxHash] = meant{}
		g.mined = append(g.mined, t)
		return t, true
	}
	switch told := g.shown[inv.ID]; g.IntN(8) {
	case 0, 1, 2, 3:
		if len(told) == 0 {
			return t, false
		}
		t, of = g.pay(pick(g.Rand, told...)), inv.ID
	case 4, 5:
		t = g.pay(inv.Amount)
	case 6:
		t = tagged(g.pay(inv.Amount.Minus(invoice.NewAmount(100_000*uint64(1+g.IntN(9))))), invoice.Evidence{Calldata: inv.CommitmentID})
		if t.Amount.IsZero() {
			return t, false
		}
	case 7:
		if t = g.pay(inv.Remaining); t.Amount.IsZero() {
			return t, false
		}
	}
	g.meant[t.TxHash] = meant{invoiceID: of}
	g.mined = append(g.mined, t)
	return t, true
}

// depositTransfer makes a transfer to or from a deposit address, of an amount that another invoice may ask for.
func (g *game) depositTransfer(inv invoice.Invoice) invoice.Transfer {
	other := g.book.Invoice(pick(g.Rand, g.made...))
	amounts := []uint64{number(inv.Amount), number(other.Amount), 1 + g.Uint64N(3_000_000)}
	for _, told := range g.shown[other.ID] {
		amounts = append(amounts, number(told))
	}
	n := pick(g.Rand, amounts...)
	switch g.IntN(6) {
	case 0, 1:
		return g.sweep(inv, n)
	case 2:
		return inEUR(g.deposit(inv, n))
	case 3:
		return tagged(g.deposit(inv, n), invoice.Evidence{Calldata: other.CommitmentID})
	}
	return g.deposit(inv, n)
}

// judge checks that the transfers of a block have the right rows.
func (g *game) judge(b ledger.Block) {
	invoices := make(map[string]invoice.Invoice)
	var payments []invoice.Payment
	for _, id := range g.made {
		invoices[id] = g.book.Invoice(id)
		for _, row := range g.book.PaymentsOf(id) {
			payments = append(payments, row.Payment)
		}
	}
	deposits := make(map[invoice.Address]string)
	for _, inv := range invoices {
		if !inv.DepositAddress.IsZero() {
			deposits[inv.DepositAddress] = inv.ID
		}
	}
	for _, t := range b.Transfers {
		m := g.meant[t.TxHash]
		if m.refund != "" {
			g.judgeRefund(t, m)
			continue
		}
		if deposits[t.From] != "" {
			if s := g.sweepOf(t); s.InvoiceID != deposits[t.From] || g.paymentOf(t).ID != "" || g.refundOf(t).ID != "" {
				g.wrong = append(g.wrong, fmt.Sprintf("the sweep of %s from %s is stored as a sweep of %q", t.Amount, deposits[t.From], s.InvoiceID))
			}
			continue
		}
		p := g.paymentOf(t)
		if m.seen {
			if m.seenAs != p.InvoiceID {
				g.wrong = append(g.wrong, fmt.Sprintf("mined again, %s moved from %q to %q", t.Amount, m.seenAs, p.InvoiceID))
			}
			continue
		}
		m.seen, m.seenAs = true, p.InvoiceID
		g.meant[t.TxHash] = m
		if id := deposits[t.To]; id != "" {
			if counts := t.Token == usdc; counts != (p.InvoiceID == id && p.Method == invoice.ByDeposit) || p.DepositOf != id || !counts && p.Attributed() {
				g.wrong = append(g.wrong, fmt.Sprintf("%s %s to the deposit address of %s went to %q by %q", t.Amount, t.Currency, id, p.InvoiceID, p.Method))
			}
			continue
		}
		if invoices[p.InvoiceID].IsDeposit() && t.Evidence == (invoice.Evidence{}) {
			g.wrong = append(g.wrong, fmt.Sprintf("%s at the settlement address went to the deposit invoice %s by %q", t.Amount, p.InvoiceID, p.Method))
		}
		g.wrong = append(g.wrong, g.misplaced(t, p, m, invoices, payments)...)
	}
}

// judgeRefund checks that a transfer that sends a prepared refund is only that refund. Without a tag it may be another
// one with the same sender, recipient and amount.
func (g *game) judgeRefund(t invoice.Transfer, m meant) {
	sends := func(id string) bool {
		r := g.book.Record(id)
		return r.Sent() && r.Transfer.TxHash == t.TxHash && r.From == t.From && r.To == t.To && r.Amount == t.Amount
	}
	sent := sends(m.refund)
	if t.Evidence == (invoice.Evidence{}) {
		for _, other := range g.meant {
			sent = sent || other.refund != "" && sends(other.refund)
		}
	}
	if !sent {
		r := g.book.Record(m.refund)
		g.wrong = append(g.wrong, fmt.Sprintf("the refund %s of %s was sent and has the transfer %q", r.ID, r.Amount, r.Transfer.ID))
	}
	if p := g.paymentOf(t); p.Attributed() {
		g.wrong = append(g.wrong, fmt.Sprintf("the refund %s of %s pays the invoice %s by %q", m.refund, t.Amount, p.InvoiceID, p.Method))
	}
}

// misplaced describes what is wrong with the attribution of a new payment.
func (g *game) misplaced(t invoice.Transfer, p ledger.PaymentRow, m meant, invoices map[string]invoice.Invoice, payments []invoice.Payment) (wrong []string) {
	waits := func(inv invoice.Invoice) bool {
		covered, _ := invoice.NewHistory(inv, payments).DueAt(p.Position)
		return inv.PayableAt(p.Position) && !covered
	}
	if m.invoiceID != "" && m.invoiceID != p.InvoiceID && waits(invoices[m.invoiceID]) {
		wrong = append(wrong, fmt.Sprintf("%s was told for %s and went to %q by %q", t.Amount, m.invoiceID, p.InvoiceID, p.Method))
	}
	if m.invoiceID != "" && m.invoiceID != p.InvoiceID && p.Method.Inferred() {
		wrong = append(wrong, fmt.Sprintf("%s was told for %s and taken for one of %s by %q", t.Amount, m.invoiceID, p.InvoiceID, p.Method))
	}
	to, ok := invoices[p.InvoiceID]
	if !ok || !t.Evidence.Calldata.IsZero() || to.Amount == t.Amount {
		return wrong
	}
	toldFor := func(id string) bool {
		for _, a := range g.shown[id] {
			if a == t.Amount {
				return true
			}
		}
		return false
	}
	for _, asks := range invoices {
		if !asks.IsDeposit() && asks.Amount == t.Amount && waits(asks) && !(toldFor(to.ID) && waits(to)) {
			wrong = append(wrong, fmt.Sprintf("%s asks for %s, which went to %s over %s by %q", asks.ID, t.Amount, to.ID, to.Amount, p.Method))
		}
	}
	return wrong
}
