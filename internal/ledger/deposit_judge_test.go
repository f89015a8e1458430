package ledger_test

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// depositCounts counts the cases of TestDepositsKeepTheirMoney by what happened in them, and the faults.
type depositCounts struct {
	deposits, other, late, sweeps, refunds, direct, orphaned, restarts, kills atomic.Int64
	unpaid, misattributed, lost, astray                                       atomic.Int64
}

func (c *depositCounts) String() string {
	return fmt.Sprintf("%d transfers to deposit addresses, of them %d in another currency and %d late; %d sweeps, %d refunds, %d direct payments, "+
		"%d transfers left by reorgs; %d invoices not paid since money was refunded; %d restarts, %d killed transactions; attributed to another invoice %d, lost %d, swept elsewhere %d",
		c.deposits.Load(), c.other.Load(), c.late.Load(), c.sweeps.Load(), c.refunds.Load(), c.direct.Load(),
		c.orphaned.Load(), c.unpaid.Load(), c.restarts.Load(), c.kills.Load(), c.misattributed.Load(), c.lost.Load(), c.astray.Load())
}

// storedTransfer is the rows of a transfer; each is nil if it does not exist.
type storedTransfer struct {
	payment *invoice.Payment
	sweep   *invoice.Sweep
	refund  *invoice.Refund
}

// stored returns the stored rows of all transfers that were in any block.
func (d *depositGame) stored() map[transferKey]storedTransfer {
	var payments, sweeps, refunds []string
	for k := range d.mined {
		payments = append(payments, invoice.TransferID(invoice.PrefixPayment, d.chainKey, k.tx, k.ordinal))
		sweeps = append(sweeps, invoice.TransferID(invoice.PrefixSweep, d.chainKey, k.tx, k.ordinal))
		refunds = append(refunds, invoice.TransferID(invoice.PrefixRefund, d.chainKey, k.tx, k.ordinal))
	}
	ctx, store := d.t.Context(), d.db.store
	rows, err := ledger.PaymentsByID(ctx, store, payments)
	d.must(err)
	swept, err := ledger.SweepsByID(ctx, store, sweeps)
	d.must(err)
	refunded, err := ledger.RefundsByID(ctx, store, refunds)
	d.must(err)
	all := make(map[transferKey]storedTransfer)
	set := func(t invoice.Transfer, change func(*storedTransfer)) {
		s := all[keyOf(t)]
		change(&s)
		all[keyOf(t)] = s
	}
	for _, row := range rows {
		set(row.Transfer, func(s *storedTransfer) { s.payment = &row.Payment })
	}
	for _, row := range swept {
		set(row.Transfer, func(s *storedTransfer) { s.sweep = &row })
	}
	for _, row := range refunded {
		set(row.Transfer, func(s *storedTransfer) { s.refund = &row })
	}
	return all
}

// judge compares the stored rows with the chain, and returns the faults.
func (d *depositGame) judge(counts *depositCounts) string {
	counts.restarts.Add(int64(d.restarts))
	counts.kills.Add(int64(d.kills))
	d.withdrawDropped()
	if d.follow(); d.wrong != "" {
		return d.wrong
	}
	on, stored := d.canonical(), d.stored()
	books := newDepositLedger()
	for k := range d.mined {
		t, ok := on[k]
		if !ok || t.Amount.IsZero() {
			counts.orphaned.Add(1)
			if wrong := leftBehind(stored[k], nil); wrong != "" {
				return fmt.Sprintf("%s, and its transaction %s is in no block or moves nothing", wrong, k.tx)
			}
			continue
		}
		if wrong := d.misplaced(t, stored[k], counts); wrong != "" {
			return wrong
		}
		d.enter(books, t, stored[k])
	}
	return d.compare(books, counts)
}

// withdrawDropped ends the wait for refunds that reorgs dropped, like a person when no node has their transactions.
func (d *depositGame) withdrawDropped() {
	d.seconds.Add(int64(invoice.SubmissionPatience.Seconds()) + 1)
	dropped, err := ledger.NewReader(d.db.store).RefundRecords(d.t.Context(), ledger.RefundFilter{Status: invoice.RefundOrphaned, Limit: 1000})
	d.must(err)
	for _, r := range dropped {
		if r.IsAwaited() {
			d.must(d.withdraw(r.ID))
		}
	}
	d.withdrawn = true
}

// leftBehind describes a stored row of a transfer that is of another kind than the given one and not orphaned.
func leftBehind(s storedTransfer, but any) string {
	switch {
	case s.payment != nil && but != any(s.payment) && s.payment.Status != invoice.Orphaned:
		return fmt.Sprintf("the payment %s of %s is %s", s.payment.ID, s.payment.Amount, s.payment.Status)
	case s.sweep != nil && but != any(s.sweep) && s.sweep.Status != invoice.Orphaned:
		return fmt.Sprintf("the sweep %s of %s is %s", s.sweep.ID, s.sweep.Amount, s.sweep.Status)
	case s.refund != nil && but != any(s.refund) && s.refund.Status != invoice.Orphaned:
		return fmt.Sprintf("the refund %s of %s is %s", s.refund.ID, s.refund.Amount, s.refund.Status)
	}
	return ""
}

// misplaced describes what is wrong with the stored rows of a transfer of the chain.
func (d *depositGame) misplaced(t invoice.Transfer, s storedTransfer, counts *depositCounts) string {
	from, to := d.set.owner[t.From], d.set.owner[t.To]
	switch {
	case from != "":
		counts.sweeps.Add(1)
		if s.sweep == nil || s.sweep.Status != invoice.Confirmed || s.sweep.Transfer != t {
			counts.lost.Add(1)
			return fmt.Sprintf("the sweep of %s from the address of %s is stored as %+v", t.Amount, from, s.sweep)
		}
		if s.sweep.InvoiceID != from {
			counts.astray.Add(1)
			return fmt.Sprintf("the sweep of %s from the address of %s is of %s", t.Amount, from, s.sweep.InvoiceID)
		}
		return leftBehind(s, s.sweep)
	case to != "":
		return d.misplacedDeposit(t, to, s, counts)
	case t.From == payer:
		counts.direct.Add(1)
		return d.misplacedDirect(t, s, counts)
	}
	if s.refund != nil {
		counts.refunds.Add(1)
	}
	return leftBehind(s, s.refund)
}

// misplacedDeposit describes what is wrong with the stored rows of a transfer to the deposit address of an invoice.
func (d *depositGame) misplacedDeposit(t invoice.Transfer, to string, s storedTransfer, counts *depositCounts) string {
	inv := d.set.byID[to]
	counts.deposits.Add(1)
	want := to
	if t.Token != inv.Token {
		counts.other.Add(1)
		want = ""
	} else if t.BlockTime.After(inv.ExpiresAt) {
		counts.late.Add(1)
	}
	p := s.payment
	switch {
	case p == nil || p.Status != invoice.Confirmed || p.Transfer != t:
		counts.lost.Add(1)
		return fmt.Sprintf("%s %s to the address of %s is stored as %+v", t.Amount, t.Currency, to, p)
	case p.InvoiceID != want || p.DepositOf != to || p.SettlesTo != inv.Merchant:
		counts.misattributed.Add(1)
		return fmt.Sprintf("%s %s to the address of %s is of %q, and deposited for %q of %s", t.Amount, t.Currency, to, p.InvoiceID, p.DepositOf, p.SettlesTo)
	}
	return leftBehind(s, p)
}

// misplacedDirect describes what is wrong with the stored rows of a payment to a settlement address:
// only one that names a deposit invoice of the address counts for it.
func (d *depositGame) misplacedDirect(t invoice.Transfer, s storedTransfer, counts *depositCounts) string {
	p := s.payment
	if p == nil || p.Status != invoice.Confirmed || p.Transfer != t {
		counts.lost.Add(1)
		return fmt.Sprintf("%s to a settlement address is stored as %+v", t.Amount, p)
	}
	named := ""
	for _, inv := range d.set.deposits {
		if inv.CommitmentID == t.Evidence.Calldata && inv.Accepts(t) {
			named = inv.ID
		}
	}
	inv := d.set.byID[p.InvoiceID]
	if p.DepositOf != "" || !p.SettlesTo.IsZero() || named != "" && p.InvoiceID != named || named == "" && inv.IsDeposit() {
		counts.misattributed.Add(1)
		return fmt.Sprintf("%s to a settlement address, which names %q, is of %q and deposited for %q", t.Amount, named, p.InvoiceID, p.DepositOf)
	}
	return leftBehind(s, p)
}

// balanceKey identifies the balance of a deposit address in a token.
type balanceKey struct {
	invoiceID string
	token     invoice.Address
}

// depositLedger is the state of the invoices according to the chain.
type depositLedger struct {
	received     map[balanceKey][]invoice.Transfer
	emptied      map[balanceKey]invoice.Position // by the newest sweep
	paid, inTime map[string]uint64
	refunds      map[string][]invoice.Refund // by payment
	swept        map[string]invoice.Transfer
}

func newDepositLedger() *depositLedger {
	return &depositLedger{
		received: make(map[balanceKey][]invoice.Transfer), emptied: make(map[balanceKey]invoice.Position), paid: make(map[string]uint64), inTime: make(map[string]uint64),
		refunds: make(map[string][]invoice.Refund), swept: make(map[string]invoice.Transfer),
	}
}

// enter adds a transfer of the chain.
func (d *depositGame) enter(l *depositLedger, t invoice.Transfer, s storedTransfer) {
	n := number(t.Amount)
	if id := d.set.owner[t.From]; id != "" {
		if key := (balanceKey{id, t.Token}); l.emptied[key].Before(t.Position) {
			l.emptied[key] = t.Position
		}
		if newest, ok := l.swept[id]; t.Token == usdc && (!ok || newest.Before(t.Position)) {
			l.swept[id] = t
		}
		return
	}
	if id := d.set.owner[t.To]; id != "" {
		key := balanceKey{id, t.Token}
		l.received[key] = append(l.received[key], t)
	}
	if s.payment != nil && s.payment.Status == invoice.Confirmed && s.payment.Attributed() {
		id := s.payment.InvoiceID
		l.paid[id] += n
		if !t.BlockTime.After(d.set.byID[id].ExpiresAt) {
			l.inTime[id] += n
		}
	}
	if s.refund != nil && s.refund.Status == invoice.Confirmed {
		l.refunds[s.refund.PaymentID] = append(l.refunds[s.refund.PaymentID], *s.refund)
	}
}

// compare compares the sums and states of all invoices, and the balances and queued sweeps, with the ledger.
func (d *depositGame) compare(l *depositLedger, counts *depositCounts) string {
	ctx := d.t.Context()
	invoices, err := ledger.InvoicesWithoutLines(ctx, d.db.store, d.set.ids)
	d.must(err)
	if len(invoices) != len(d.set.ids) {
		return fmt.Sprintf("%d invoices are left of %d", len(invoices), len(d.set.ids))
	}
	for _, inv := range invoices {
		if got := number(inv.AmountPaid); got != l.paid[inv.ID] {
			counts.lost.Add(1)
			return fmt.Sprintf("%s got %d, want %d", inv.ID, got, l.paid[inv.ID])
		}
		if inv.SweptTx != l.swept[inv.ID].TxHash {
			counts.astray.Add(1)
			return fmt.Sprintf("%s was swept by %s, want %s", inv.ID, inv.SweptTx, l.swept[inv.ID].TxHash)
		}
		switch isEnough := l.inTime[inv.ID] >= number(inv.Amount); {
		case inv.Status == invoice.Paid && !isEnough:
			return fmt.Sprintf("%s over %s is %s with %d in time", inv.ID, inv.Amount, inv.Status, l.inTime[inv.ID])
		case isEnough && (inv.Status == invoice.Open || inv.Status == invoice.Expired):
			counts.unpaid.Add(1)
		}
	}
	if wrong := d.compareRefunds(l); wrong != "" {
		return wrong
	}
	return d.compareQueue(l, counts)
}

// compareRefunds looks for the payments of the refunds.
func (d *depositGame) compareRefunds(l *depositLedger) string {
	var ids []string
	for id := range l.refunds {
		ids = append(ids, id)
	}
	payments, err := ledger.PaymentsByID(d.t.Context(), d.db.store, ids)
	d.must(err)
	if len(payments) != len(ids) {
		return "a refund is of no payment"
	}
	for _, p := range payments {
		if wrong := d.misrefunded(p.Payment, l.refunds[p.ID]); wrong != "" {
			return wrong
		}
	}
	return ""
}

// misrefunded describes what is wrong with the refunds of a payment. Only refunds that were final when
// it was mined may exceed it, or go to others: it transferred other money before.
func (d *depositGame) misrefunded(p invoice.Payment, refunds []invoice.Refund) string {
	var sum, early uint64
	for _, r := range refunds {
		n := number(r.Amount)
		sum += n
		switch isEarly := r.BlockNumber <= d.finality[p.BlockHash]; {
		case isEarly:
			early += n
		case !d.isReverse(p.Transfer, r.Transfer):
			return fmt.Sprintf("the refund %s of %s goes from %s to %s, and its payment from %s to %s", r.ID, r.Amount, r.From, r.To, p.From, p.To)
		}
		if p.Status != invoice.Confirmed && !d.returns[returnOf(p.Transfer, r.Transfer)] {
			return fmt.Sprintf("the refund %s of %s was never above its %s payment %s", r.ID, r.Amount, p.Status, p.ID)
		}
	}
	if sum > max(number(p.Amount), early) {
		return fmt.Sprintf("of the %s payment %s of %s, %d was refunded, of that %d before it was mined", p.Status, p.ID, p.Amount, sum, early)
	}
	return ""
}

// compareQueue compares the balances of deposit addresses with the queued sweeps.
func (d *depositGame) compareQueue(l *depositLedger, counts *depositCounts) string {
	held := make(map[balanceKey]uint64)
	for key, received := range l.received {
		for _, t := range received {
			if l.emptied[key].Before(t.Position) {
				held[key] += number(t.Amount)
			}
		}
	}
	queue, err := ledger.QueuedSweeps(d.t.Context(), d.db.store, d.chainKey, "", len(l.received)+1)
	d.must(err)
	queued := make(map[balanceKey]uint64)
	for _, q := range queue {
		queued[balanceKey{q.InvoiceID, q.Token}] = number(q.Amount)
		if inv := d.set.byID[q.InvoiceID]; q.Merchant != inv.Merchant || q.Address != inv.DepositAddress || q.ByPolicy != (q.Token == usdc) {
			counts.astray.Add(1)
			return fmt.Sprintf("queued is %+v", q)
		}
	}
	for _, key := range slices.Concat(keysOf(queued), keysOf(held)) {
		if queued[key] != held[key] {
			counts.lost.Add(1)
			return fmt.Sprintf("%d of %s is queued for %s, want %d", queued[key], key.token, key.invoiceID, held[key])
		}
	}
	return ""
}

func keysOf(m map[balanceKey]uint64) (keys []balanceKey) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}
