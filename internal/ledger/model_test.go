package ledger_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestModel plays random histories: invoices, transfers that name them or not, of right and wrong amounts, refunds,
// reorgs of blocks that are not final, restarts, confirmations, and blocks that are read again. In the end everything
// is confirmed, and the stored rows must equal the state of a model that reads the final chain and knows no reorgs.
func TestModel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		rapid.Check(t, func(r *rapid.T) {
			m := &machine{world: d.world(t)}
			m.draw(r)
			r.Repeat(map[string]func(*rapid.T){
				"create":  m.create,
				"draft":   m.makeDraft,
				"issue":   m.issue,
				"void":    m.voidOne,
				"mine":    m.mine,
				"reorg":   m.reorg,
				"confirm": m.confirm,
				"rescan":  m.rescan,
				"fill":    m.fill,
				"lose":    m.losePayment,
				"return":  m.returnPayment,
				"restart": func(*rapid.T) { m.Service = m.service() },
				"": func(r *rapid.T) {
					m.checkSums(r)
					m.checkReport(r)
				},
			})
			m.world.mine(m.head().Time.Unix() + 1)
			m.final()
			m.fillAll(r)
			m.check(r)
			m.checkReport(r)
		})
	})
}

// TestModelWithALateStart plays histories while the service does not read. In the end the chain is
// started at its head, and the blocks below are filled in.
func TestModelWithALateStart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		rapid.Check(t, func(r *rapid.T) {
			m := &machine{world: d.world(t), late: true}
			m.chainKey += "-late"
			m.Service = m.service()
			m.draw(r)
			r.Repeat(map[string]func(*rapid.T){"create": m.create, "mine": m.mine})
			m.blocks = append(m.blocks, m.next(m.head().Time.Unix()+1))
			expect.OK(r, m.Start(t.Context(), m.chainKey, m.head(), 101))
			m.fillAll(r)
			m.check(r)
			m.checkRules(r)
			(&inboxMachine{machine: m}).checkInbox(r)
		})
	})
}

// checkRules checks the payments of a chain that was read from below. Each must have the invoice that
// the rules choose, one payment after the other, from all invoices.
func (m *machine) checkRules(r *rapid.T) {
	all := make([]invoice.Candidate, len(m.made))
	for i, inv := range m.made {
		all[i].Invoice = inv
	}
	var before []invoice.Payment
	for _, b := range m.blocks {
		for _, t := range b.Transfers {
			if t.From == m.address && m.isRefundOfInvoice(t) {
				return // whether its invoice was paid before that depends on when the blocks were read
			}
			if !m.isPayment(t) || len(m.made) == 0 {
				continue // an unknown address, or a sweep
			}
			for i := range all {
				all[i].Covered, all[i].Remainder = invoice.NewHistory(all[i].Invoice, before).DueAt(t.Position)
				all[i].HasTransferAmount = all[i].TransferAmount == t.Amount
			}
			want, ok := invoice.Attribute(t, all, false)
			got := m.payment(t)
			if got.InvoiceID != want.Invoice.ID || got.Method != want.Method || got.Attributed() != ok {
				r.Errorf("payment of %s in block %d went to %q by %q, want %q by %q",
					t.Amount, b.Number, got.InvoiceID, got.Method, want.Invoice.ID, want.Method)
			}
			got.Returned = invoice.Amount{} // by a refund above
			before = append(before, got.Payment)
		}
	}
}

// isRefundOfInvoice reports whether a transfer is stored as a refund of a payment with an invoice.
func (m *machine) isRefundOfInvoice(t invoice.Transfer) bool {
	refunds, err := ledger.RefundsByID(m.t.Context(), m.db.store, []string{invoice.TransferID(invoice.PrefixRefund, t.ChainKey, t.TxHash, t.Ordinal)})
	m.must(err)
	return len(refunds) > 0 && refunds[0].Attributed()
}

// machine is a world with random operations.
type machine struct {
	*world
	made      []invoice.Invoice // issued ones; void ones as Void returned them
	drafts    []invoice.Invoice
	transfers []invoice.Transfer      // all that were ever mined
	line      int                     // blocks up to this index are final
	lost      []invoice.Transfer      // payments that a reorg dropped, but not their refunds
	lessened  map[string]bool         // ids of payments that were mined again with less
	finality  map[invoice.Hash]uint64 // the newest final block when a block was mined, by its hash
	late      bool                    // the blocks are not read while they are mined
}

// draw decides whether the merchant takes a little less than the amount.
func (m *machine) draw(r *rapid.T) {
	if rapid.Bool().Draw(r, "lenient") {
		m.merchant = "lenient-" + m.merchant
	}
}

// create makes an invoice of one of few amounts, so that they collide, which expires within few blocks.
func (m *machine) create(r *rapid.T) { m.made = append(m.made, m.createOne(r, false)) }

func (m *machine) makeDraft(r *rapid.T) { m.drafts = append(m.drafts, m.createOne(r, true)) }

func (m *machine) createOne(r *rapid.T, unissued bool) invoice.Invoice {
	d := m.draft()
	d.Unissued = unissued
	d.Amount = invoice.NewAmount(rapid.SampledFrom([]uint64{1000, 2000, 3000}).Draw(r, "amount"))
	d.ExpiresAt = invoice.Unix(m.seconds.Load() + rapid.Int64Range(1, 60).Draw(r, "lifetime"))
	if rapid.IntRange(0, 2).Draw(r, "collection") == 0 {
		d.Collection = invoice.Deposit
	}
	inv, err := m.Create(m.t.Context(), ledger.CreateRequest{Draft: d})
	expect.OK(r, err)
	return inv
}

// issue finalizes a draft, or deletes it if it is too old for that.
func (m *machine) issue(r *rapid.T) {
	if len(m.drafts) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.drafts)-1).Draw(r, "draft")
	d := m.drafts[i]
	m.drafts = slices.Delete(m.drafts, i, i+1)
	inv, err := m.Finalize(m.t.Context(), m.own(), d.ID)
	if field := (*invoice.FieldError)(nil); errors.As(err, &field) && field.Field == "expiresAt" {
		expect.OK(r, m.DeleteDraft(m.t.Context(), m.own(), d.ID))
		return
	}
	expect.OK(r, err)
	m.made = append(m.made, inv)
}

// voidOne makes an invoice void, unless it is covered or final, or blocks are unread.
func (m *machine) voidOne(r *rapid.T) {
	if len(m.made) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.made)-1).Draw(r, "invoice")
	voided, err := m.Void(m.t.Context(), m.own(), m.made[i].ID)
	switch {
	case err == nil:
		m.made[i] = voided
	case !errors.Is(err, invoice.ErrFinal) && !errors.Is(err, invoice.ErrCovered) && !errors.Is(err, ledger.ErrUnread):
		r.Fatal(err)
	}
}

// mine adds blocks with transfers. Transfers that a reorg dropped may be mined again.
func (m *machine) mine(r *rapid.T) {
	var blocks []ledger.Block
	for range rapid.IntRange(1, 3).Draw(r, "blocks") {
		var transfers []invoice.Transfer
		for range rapid.IntRange(0, 3).Draw(r, "transfers") {
			transfers = append(transfers, m.transfer(r, transfers))
		}
		m.transfers = append(m.transfers, transfers...)
		at := m.head().Time.Unix() + rapid.Int64Range(0, 20).Draw(r, "seconds")
		m.seconds.Store(at)
		b := m.next(at, transfers...)
		m.blocks = append(m.blocks, b)
		blocks = append(blocks, b)
	}
	if m.late {
		return
	}
	expect.OK(r, m.Observe(m.t.Context(), m.chainKey, blocks))
}

// rescan opens or widens the gap.
func (m *machine) rescan(r *rapid.T) {
	from := rapid.Uint64Range(101, m.head().Number+1).Draw(r, "from")
	if _, err := m.Rescan(m.t.Context(), m.chainKey, from); (err != nil) != (from > m.head().Number) {
		r.Fatal(err)
	}
}

// fill reads some of the gap's blocks that are final.
func (m *machine) fill(r *rapid.T) {
	cur, err := m.Cursor(m.t.Context(), m.chainKey)
	expect.OK(r, err)
	if cur.Gap == nil || cur.Gap.Next > cur.Confirmed.Number {
		return
	}
	through := rapid.Uint64Range(cur.Gap.Next, min(cur.Gap.Last, cur.Confirmed.Number)).Draw(r, "through")
	var blocks []ledger.Block
	var end invoice.Header
	for _, b := range m.blocks {
		if b.Number == through {
			end = b.Header
		}
		// Blocks without transfers may be left out.
		if cur.Gap.Next <= b.Number && b.Number <= through && (len(b.Transfers) > 0 || rapid.Bool().Draw(r, "with empty")) {
			blocks = append(blocks, b)
		}
	}
	expect.OK(r, m.Fill(m.t.Context(), m.chainKey, cur.Gap.Next, blocks, end))
}

// fillAll closes the gap.
func (m *machine) fillAll(r *rapid.T) {
	for m.gap() != nil {
		m.fill(r)
	}
}

func (m *machine) transfer(r *rapid.T, sameBlock []invoice.Transfer) invoice.Transfer {
	onChain := sameBlock
	for _, b := range m.blocks {
		onChain = append(onChain, b.Transfers...)
	}
	left := slices.DeleteFunc(slices.Clone(m.transfers), func(t invoice.Transfer) bool {
		return slices.ContainsFunc(onChain, func(s invoice.Transfer) bool { return s.TxHash == t.TxHash })
	})
	if len(left) > 0 && rapid.Bool().Draw(r, "again") {
		return rapid.SampledFrom(left).Draw(r, "which")
	}
	if len(m.made) == 0 {
		return m.pay(invoice.NewAmount(7))
	}
	inv := rapid.SampledFrom(m.made).Draw(r, "for")
	if !inv.DepositAddress.IsZero() {
		return m.depositTransfer(r, inv)
	}
	amounts := []invoice.Amount{
		inv.TransferAmount, inv.TransferAmount, inv.Amount, invoice.NewAmount(600), invoice.NewAmount(5000),
		inv.Amount.Minus(invoice.NewAmount(7)), // within the tolerance of a lenient merchant
	}
	t := m.pay(rapid.SampledFrom(amounts).Draw(r, "transferred"))
	switch rapid.SampledFrom([]string{"plain", "plain", "registry", "authorization", "calldata", "back"}).Draw(r, "kind") {
	case "registry":
		t.Evidence.Registry = inv.CommitmentID
	case "authorization":
		t.Evidence.Authorization = inv.CommitmentID
	case "calldata":
		t.Evidence.Calldata = inv.CommitmentID
	case "back":
		t.From, t.To = t.To, t.From
	}
	return t
}

// depositTransfer makes a transfer of any amount to or from a deposit address, or one
// between its merchant and the payer.
func (m *machine) depositTransfer(r *rapid.T, inv invoice.Invoice) invoice.Transfer {
	n := rapid.SampledFrom([]uint64{number(inv.Amount), 40, 600, 1000, 1400, 2000, 5000}).Draw(r, "transferred")
	t := m.deposit(inv, n)
	switch rapid.SampledFrom([]string{"deposit", "deposit", "named", "other currency", "sweep", "sweep", "sweep of other currency", "settlement", "back"}).Draw(r, "kind") {
	case "named":
		t.Evidence.Calldata = rapid.SampledFrom(m.made).Draw(r, "named").CommitmentID
	case "other currency":
		t = inEUR(t)
	case "sweep":
		t = m.sweep(inv, n)
	case "sweep of other currency":
		t = inEUR(m.sweep(inv, n))
	case "settlement":
		t.To = m.address
		if rapid.Bool().Draw(r, "named") {
			t.Evidence.Registry = inv.CommitmentID
		}
	case "back":
		t = m.back(t.Amount)
	}
	return t
}

// depositOf returns the invoice with the deposit address, or a zero one.
func (m *machine) depositOf(a invoice.Address) (inv invoice.Invoice) {
	if i := slices.IndexFunc(m.made, func(inv invoice.Invoice) bool { return !inv.DepositAddress.IsZero() && inv.DepositAddress == a }); i >= 0 {
		inv = m.made[i]
	}
	return inv
}

// isPayment reports whether a transfer goes to an address of the merchant or of an invoice,
// and does not come from one of these.
func (m *machine) isPayment(t invoice.Transfer) bool {
	return m.depositOf(t.From).ID == "" && (t.To == m.address || m.depositOf(t.To).ID != "")
}

// checkDeposits checks that transfers from deposit addresses are stored only as sweeps, and that the
// balances of the addresses are the payments after their newest sweep.
func (m *machine) checkDeposits(r *rapid.T) {
	on := make(map[invoice.Hash]invoice.Position)
	held := map[invoice.Address]map[string]uint64{usdc: {}, eurc: {}}
	newest := make(map[string]invoice.Hash)
	for _, b := range m.blocks {
		for _, t := range b.Transfers {
			on[t.TxHash] = t.Position
			if inv := m.depositOf(t.From); inv.ID != "" {
				delete(held[t.Token], inv.ID)
				if t.Token == inv.Token {
					newest[inv.ID] = t.TxHash
				}
			} else if inv := m.depositOf(t.To); inv.ID != "" {
				held[t.Token][inv.ID] += number(t.Amount)
			}
		}
	}
	for _, inv := range m.made {
		expect.Equal(r, m.invoice(inv.ID).SweptTx, newest[inv.ID], "invoice %s was swept by", inv.ID)
	}
	for token, want := range held {
		if diff := gocmp.Diff(want, m.unswept(token)); diff != "" {
			r.Errorf("deposit addresses hold of %s (-chain +stored):\n%s", token, diff)
		}
	}
	for _, t := range m.transfers {
		inv := m.depositOf(t.From)
		if inv.ID == "" {
			continue
		}
		s, ok := m.swept(t)
		position, stands := on[t.TxHash]
		if stands != (s.Status == invoice.Confirmed) || stands && (!ok || s.Position != position || s.InvoiceID != inv.ID) {
			r.Errorf("sweep %s is %q at %+v of %s; on the chain: %t, at %+v", t.TxHash, s.Status, s.Position, s.InvoiceID, stands, position)
		}
		if m.isPaymentOrRefund(t) {
			r.Errorf("sweep %s is a payment or a refund", t.TxHash)
		}
	}
}

func (m *machine) reorg(r *rapid.T) {
	if n := len(m.blocks) - 1 - m.line; n > 0 {
		m.world.reorg(rapid.IntRange(1, n).Draw(r, "depth"))
	}
}

func (m *machine) confirm(r *rapid.T) {
	m.line = rapid.IntRange(m.line, len(m.blocks)-1).Draw(r, "line")
	expect.OK(r, m.Confirm(m.t.Context(), m.chainKey, m.blocks[m.line].Header))
}

// verdict is the state of an invoice according to the chain.
type verdict struct {
	Status         invoice.Status
	Exception      invoice.Exception
	Paid, Refunded uint64
	SettledTx      invoice.Hash
}

// wasDropped reports whether a reorg has dropped a refund of a payment of the invoice.
func (m *machine) wasDropped(inv invoice.Invoice) bool {
	refunds, err := ledger.RefundsOfInvoices(m.t.Context(), m.db.store, []string{inv.ID})
	m.must(err)
	return slices.ContainsFunc(refunds, func(r invoice.Refund) bool { return r.Status == invoice.Orphaned })
}

// checkReturned checks that the returned amounts of payments were refunded while their invoice was open.
func (m *machine) checkReturned(r *rapid.T, inv invoice.Invoice, payments []ledger.PaymentRow) {
	ids := make([]string, len(payments))
	for i, p := range payments {
		ids[i] = p.ID
	}
	refunds, err := ledger.RefundsOfPayments(m.t.Context(), m.db.store, ids)
	m.must(err)
	sums, all := make(map[string]invoice.Amount), make(map[string]invoice.Amount)
	for _, refund := range refunds {
		all[refund.PaymentID] = all[refund.PaymentID].Plus(refund.Amount)
		if refund.Status != invoice.Orphaned {
			sums[refund.PaymentID] = sums[refund.PaymentID].Plus(refund.Amount)
		}
	}
	for _, p := range payments {
		switch most := all[p.ID]; {
		case most.Less(p.Returned):
			r.Errorf("of payment %s %s was returned, and %s refunded", p.ID, p.Returned, most)
		case inv.Status == invoice.Open && !inv.IsLate(p.Position) && p.Returned.Less(sums[p.ID]):
			r.Errorf("of payment %s of the open invoice %s %s was refunded, and %s returned", p.ID, inv.ID, sums[p.ID], p.Returned)
		}
	}
}

// check compares the invoices, payments and events with the chain.
func (m *machine) check(r *rapid.T) {
	stored, attributed := m.storedPayments(r)
	refunded := m.refundedBy(r, stored)
	for _, inv := range m.made {
		want := judge(inv, attributed[inv.ID], m.head().Time)
		want.Refunded = refunded[inv.ID]
		now, err := ledger.NewReader(m.db.store).Invoice(m.t.Context(), inv.ID)
		expect.OK(r, err)
		if m.wasDropped(inv) {
			want.SettledTx = now.SettledTx // the planned refunds of earlier payments were not sent
		}
		m.checkReturned(r, now, attributed[inv.ID])
		got := verdict{now.Status, now.Exception, number(now.AmountPaid), number(now.AmountRefunded), now.SettledTx}
		if diff := gocmp.Diff(want, got); diff != "" {
			r.Errorf("invoice %s (-chain +stored):\n%s", inv.ID, diff)
		}
	}
	m.checkDeposits(r)
	m.checkEvents(r, stored)
}

// storedPayments checks that the payments are the transfers of the chain, at their positions, and confirmed; payments
// that reorgs dropped must be orphaned. It returns all payments with an invoice, and the chain's payments by invoice.
func (m *machine) storedPayments(r *rapid.T) ([]ledger.PaymentRow, map[string][]ledger.PaymentRow) {
	var stored []ledger.PaymentRow
	byInvoice := make(map[string][]ledger.PaymentRow)
	where := make(map[invoice.Hash]invoice.Position)
	for _, b := range m.blocks {
		for _, t := range b.Transfers {
			where[t.TxHash] = t.Position
		}
	}
	seen := make(map[invoice.Hash]bool)
	watched := len(m.made) > 0
	for _, t := range m.transfers {
		if !m.isPayment(t) || seen[t.TxHash] || !watched {
			continue
		}
		seen[t.TxHash] = true
		p, err := ledger.NewReader(m.db.store).Payment(m.t.Context(), invoice.TransferID(invoice.PrefixPayment, t.ChainKey, t.TxHash, t.Ordinal))
		position, stands := where[t.TxHash]
		if err != nil {
			if stands && position.BlockTime.After(m.made[0].CreatedAt) {
				r.Errorf("transfer %s is not recorded: %v", t.TxHash, err)
			}
			continue // mined before a merchant had the address
		}
		if stands && (p.Status != invoice.Confirmed || p.Position != position) {
			r.Errorf("payment %s is %s at %+v, want confirmed at %+v", p.ID, p.Status, p.Position, position)
		}
		if !stands && p.Status != invoice.Orphaned {
			r.Errorf("payment %s left the chain and is %s", p.ID, p.Status)
		}
		if p.Attributed() {
			stored = append(stored, p)
			if stands {
				byInvoice[p.InvoiceID] = append(byInvoice[p.InvoiceID], p)
			}
		}
	}
	m.checkEvidence(r, stored)
	return stored, byInvoice
}

// checkEvidence checks that payments that name an invoice have it, and that other payments have only
// an invoice with their amount.
func (m *machine) checkEvidence(r *rapid.T, stored []ledger.PaymentRow) {
	named := make(map[invoice.Hash]invoice.Hash)
	for _, t := range m.transfers {
		named[t.TxHash] = cmp.Or(t.Evidence.Registry, t.Evidence.Authorization, t.Evidence.Calldata)
	}
	for _, p := range stored {
		i := slices.IndexFunc(m.made, func(inv invoice.Invoice) bool { return inv.ID == p.InvoiceID })
		inv, name := m.made[i], named[p.TxHash]
		if at := m.depositOf(p.To); at.ID != "" {
			if inv.ID != at.ID || p.Method != invoice.ByDeposit || p.Currency != "USDC" || p.SettlesTo != m.address {
				r.Errorf("payment %s of %s to the deposit address of %s went to %s by %s", p.ID, p.Currency, at.ID, inv.ID, p.Method)
			}
			continue
		}
		if inv.IsDeposit() && name.IsZero() {
			r.Errorf("payment %s of %s to the settlement address went to %s by %s", p.ID, p.Amount, inv.ID, p.Method)
		}
		if !name.IsZero() && name != inv.CommitmentID {
			r.Errorf("payment %s names %s and went to %s", p.ID, name, inv.ID)
		}
		rest := p.Method == invoice.ByAmount && p.Amount.Less(inv.Amount) // the missing amount when it was mined
		if name.IsZero() && !rest && p.Amount != inv.Amount && p.Amount != inv.TransferAmount && (inv.Tolerance.IsZero() || p.Amount.Plus(inv.Tolerance).Less(inv.Amount)) {
			r.Errorf("payment %s of %s went to %s by %s", p.ID, p.Amount, inv.ID, p.Method)
		}
	}
}

// judge computes the state of an invoice from the transfers of the chain that are its own.
func judge(inv invoice.Invoice, payments []ledger.PaymentRow, chainTime time.Time) verdict {
	slices.SortFunc(payments, func(a, b ledger.PaymentRow) int { return a.Compare(b.Position) })
	v := verdict{Status: invoice.Open}
	if inv.Status == invoice.Void {
		v.Status = invoice.Void
	}
	amount, enough := number(inv.Amount), number(inv.Amount)-number(inv.Tolerance)
	var inTime, late, extra uint64
	for _, p := range payments {
		n := number(p.Amount)
		v.Paid += n
		switch {
		case inTime >= amount:
			extra += n
		case p.BlockTime.After(inv.ExpiresAt), v.Status == invoice.Void && p.BlockNumber > inv.ClosedBlock:
			late += n
		default:
			if inTime += number(p.Counted()); inTime >= enough && v.Status == invoice.Open {
				v.Status, v.SettledTx = invoice.Paid, p.TxHash
			}
		}
	}
	if v.Status == invoice.Open && chainTime.After(inv.ExpiresAt) {
		v.Status = invoice.Expired
	}
	switch {
	case v.Status == invoice.Paid && extra+late > 0:
		v.Exception = invoice.Duplicate
	case v.Status == invoice.Paid && inTime > amount+invoice.MaxSuffix:
		v.Exception = invoice.Overpaid
	case late > 0, v.Status == invoice.Void && (extra > 0 || inTime >= enough):
		v.Exception = invoice.Late
	case inTime > 0 && inTime < amount:
		v.Exception = invoice.Underpaid
	}
	return v
}

// checkEvents checks that each event was emitted once, and matches the state.
func (m *machine) checkEvents(r *rapid.T, stored []ledger.PaymentRow) {
	want := make(map[string]int)
	for _, inv := range m.made {
		want["invoice.created "+inv.ID] = 1
		switch now, err := ledger.NewReader(m.db.store).Invoice(m.t.Context(), inv.ID); {
		case err != nil:
			r.Fatal(err)
		case now.Status == invoice.Paid:
			want["invoice.paid "+inv.ID] = 1
		case now.Status == invoice.Expired:
			want["invoice.expired "+inv.ID] = 1
		}
		refunds, err := ledger.RefundsOfInvoices(m.t.Context(), m.db.store, []string{inv.ID})
		expect.OK(r, err)
		for _, refund := range refunds {
			if refund.Status == invoice.Confirmed {
				want["payment.refunded "+refund.ID] = 1
			}
		}
	}
	for _, p := range stored {
		want[fmt.Sprintf("payment.received %s/%s", p.ID, p.InvoiceID)] = 1
	}
	got := make(map[string]int)
	for _, e := range dbtest.Events(m.t, m.db.sql, m.merchant) {
		if want[string(e.Type)+" "+e.Subject] == 0 && m.isLessened(e.Subject) {
			continue // of the invoice that it overpaid
		}
		got[string(e.Type)+" "+e.Subject]++
		if !json.Valid(e.Body) || e.DeliveryID == "" {
			r.Errorf("event %s has the delivery %q and reads %s", e.ID, e.DeliveryID, e.Body)
		}
	}
	expect.NoDiff(r, gocmp.Diff(want, got), "events")
}
