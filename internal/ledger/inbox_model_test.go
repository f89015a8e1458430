package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// inboxMachine is a machine in which people also claim, attribute, refund and decide.
type inboxMachine struct {
	*machine
	decisions []invoice.Decision
	prepared  []string // ids of refunds
}

// TestInboxModel plays random histories of the chain, and of people who decide. After each step, the
// inbox that is read by indexes must equal the one computed from all stored rows, and the sums of
// invoices the ones of their payments and refunds.
func TestInboxModel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		rapid.Check(t, func(r *rapid.T) {
			m := &inboxMachine{machine: &machine{world: d.world(t)}}
			m.draw(r)
			r.Repeat(map[string]func(*rapid.T){
				"create": m.create, "void": m.voidOne, "mine": m.mine, "mine more": m.mine, "reorg": m.reorg, "confirm": m.confirm,
				"rescan": m.rescan, "fill": m.fill,
				"claim": m.claimOne, "attribute": m.attributeOne, "decide": m.decideOne, "decide more": m.decideOne, "undo": m.undoOne,
				"lose": m.losePayment, "return": m.returnPayment,
				"prepare": m.prepareOne, "name": m.nameOne, "change": m.changeOne, "wait": m.wait,
				"": func(r *rapid.T) {
					m.checkInbox(r)
					m.checkSums(r)
				},
			})
		})
	})
}

// ids returns the possible ids of the machine's transfers as payments or as refunds.
func (m *inboxMachine) ids(prefix string) []string {
	var ids []string
	for _, t := range m.transfers {
		if id := invoice.TransferID(prefix, t.ChainKey, t.TxHash, t.Ordinal); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// inOrder sorts rows by their ids.
func inOrder[T any](ids []string, found []T, id func(T) string) []T {
	slices.SortFunc(found, func(a, b T) int { return slices.Index(ids, id(a)) - slices.Index(ids, id(b)) })
	return found
}

// payments returns the stored payments of the machine's transfers.
func (m *inboxMachine) payments() []ledger.PaymentRow {
	ids := m.ids(invoice.PrefixPayment)
	found, err := ledger.PaymentsByID(m.t.Context(), m.db.store, ids)
	m.must(err)
	return inOrder(ids, found, func(p ledger.PaymentRow) string { return p.ID })
}

// some returns one of the values, if there are any.
func some[T any](r *rapid.T, label string, values []T) (v T, ok bool) {
	if len(values) == 0 {
		return v, false
	}
	return rapid.SampledFrom(values).Draw(r, label), true
}

// wantOneOf fails the test for an error that an act must not return.
func wantOneOf(r *rapid.T, err error, allowed ...error) {
	field, decided, attributed, used := (*invoice.FieldError)(nil), (*ledger.DecidedError)(nil), (*ledger.AttributedError)(nil), (*ledger.UsedError)(nil)
	submitted := (*ledger.SubmittedError)(nil)
	known := errors.As(err, &submitted) || errors.As(err, &field) || errors.As(err, &decided) || errors.As(err, &attributed) || errors.As(err, &used)
	if err != nil && !known && !slices.ContainsFunc(allowed, func(target error) bool { return errors.Is(err, target) }) {
		r.Fatal(err)
	}
}

func (m *inboxMachine) claimOne(r *rapid.T) {
	p, paid := some(r, "claimed", m.payments())
	inv, made := some(r, "claimed for", m.made)
	if paid && made {
		_, err := m.claimFor(inv, p, nil)
		wantOneOf(r, err, db.ErrNotFound, ledger.ErrTooManyClaims, ledger.ErrNothingToClaim)
	}
}

func (m *inboxMachine) attributeOne(r *rapid.T) {
	p, paid := some(r, "attributed", m.payments())
	inv, made := some(r, "attributed to", m.made)
	if paid && made && rapid.IntRange(0, 3).Draw(r, "rarely") == 0 {
		_, err := m.attribute(p, inv)
		wantOneOf(r, err, ledger.ErrOrphaned, ledger.ErrUndecided, ledger.ErrIsRefund)
	}
}

// decideOne dismisses an item of the merchant's or the operator's inbox, or attributes its payment.
func (m *inboxMachine) decideOne(r *rapid.T) {
	by := rapid.SampledFrom([]string{m.merchant, ""}).Draw(r, "by")
	item, ok := some(r, "item", m.listed(r, by))
	if !ok {
		return
	}
	req := m.dismissal(item)
	if inv, made := some(r, "attributed to", m.made); made && item.Payment.ID != "" && rapid.Bool().Draw(r, "attribute") {
		req = m.attribution(item, inv)
	}
	req.MerchantID = by
	d, err := m.Decide(open(m.t), req)
	if wantOneOf(r, err, ledger.ErrItemChanged, ledger.ErrOrphaned, ledger.ErrUndecided, ledger.ErrIsRefund); err == nil {
		m.decisions = append(m.decisions, d)
	}
}

func (m *inboxMachine) undoOne(r *rapid.T) {
	if d, ok := some(r, "undone", m.decisions); ok {
		_, err := m.UndoDecision(m.t.Context(), d.ID, "")
		wantOneOf(r, err)
	}
}

// refundRecords returns the records of refunds: those prepared, and the transfers back.
func (m *inboxMachine) refundRecords() []invoice.RefundRecord {
	ids := append(slices.Clone(m.prepared), m.ids(invoice.PrefixRefund)...)
	found, err := ledger.RefundRecordsByID(m.t.Context(), m.db.store, ids)
	m.must(err)
	return inOrder(ids, found, func(r invoice.RefundRecord) string { return r.ID })
}

func (m *inboxMachine) prepareOne(r *rapid.T) {
	if p, ok := some(r, "refunded", m.payments()); ok {
		refund, err := m.prepare(p, rapid.Uint64Range(0, 100).Draw(r, "amount"), askPayer)
		wantOneOf(r, err, ledger.ErrOrphaned, ledger.ErrPaymentPending, ledger.ErrUndecided, ledger.ErrRefundExceeds, ledger.ErrTooManyRefunds)
		if err == nil {
			m.prepared = append(m.prepared, refund.ID)
		}
	}
}

// nameOne makes a payer name an address.
func (m *inboxMachine) nameOne(r *rapid.T) {
	if id, ok := some(r, "named", m.prepared); ok {
		to := invoice.Address{0xcc, rapid.Byte().Draw(r, "recipient")}
		_, err := m.NameRefundAddress(m.t.Context(), ledger.RefundClaim{Token: m.ClaimToken(m.refund(id)), To: to, Account: invoice.AccountWithKey})
		wantOneOf(r, err, ledger.ErrRefundNotOpen)
	}
}

// changeOne approves, cancels or sends a refund.
func (m *inboxMachine) changeOne(r *rapid.T) {
	id, ok := some(r, "changed", m.prepared)
	if !ok {
		return
	}
	refund, err := m.refund(id), error(nil)
	switch rapid.SampledFrom([]string{"approve", "cancel", "send"}).Draw(r, "change") {
	case "approve":
		_, err = m.ApproveRefund(open(m.t), id, "", refund.To)
	case "cancel":
		_, err = m.CancelRefund(m.t.Context(), id, "")
	case "send":
		if !refund.To.IsZero() && !refund.Sent() {
			t := m.send(refund)
			m.transfers = append(m.transfers, t)
			b := m.next(m.head().Time.Unix()+1, t)
			m.blocks = append(m.blocks, b)
			err = m.Observe(m.t.Context(), m.chainKey, []ledger.Block{b})
		}
	}
	wantOneOf(r, err, ledger.ErrRefundNotOpen)
}

// wait lets time pass, to the second in which a refund expires, or close to it.
func (m *inboxMachine) wait(r *rapid.T) {
	if id, ok := some(r, "expiring", m.prepared); ok && rapid.Bool().Draw(r, "long") {
		m.seconds.Store(max(m.seconds.Load(), m.refund(id).ExpiresAt.Unix()+rapid.Int64Range(-1, 1).Draw(r, "about")))
	}
	if rapid.Bool().Draw(r, "expire") {
		m.must(m.ExpireRefunds(m.t.Context()))
	}
	if rapid.Bool().Draw(r, "a minute") {
		m.seconds.Add(60)
		m.must(m.ApplyAttributions(m.t.Context()))
	}
}

// listed returns the inbox of a merchant or the operator, without items of other tests.
func (m *inboxMachine) listed(r *rapid.T, merchantID string) []ledger.InboxItem {
	items, next, err := m.Inbox(m.t.Context(), ledger.InboxFilter{MerchantID: merchantID, Limit: 100_000})
	if err != nil || next != "" {
		r.Fatal(next, err)
	}
	return slices.DeleteFunc(items, func(i ledger.InboxItem) bool {
		return i.Payment.ChainKey+i.Invoice.ChainKey+i.Refund.ChainKey != m.chainKey
	})
}

// shown is the part of an item that the checks compare.
type shown struct {
	ID      string
	Kind    invoice.ItemKind
	Version string
}

// stored is the rows from which the machine's inboxes are computed.
type stored struct {
	invoices []invoice.Invoice
	payments []ledger.PaymentRow
	refunds  []invoice.RefundRecord
	refunded map[string]invoice.Amount     // by payment, in blocks
	holders  map[string][]string           // merchants of unattributed payments
	decided  map[string][]invoice.Decision // in force, by object
}

func (m *inboxMachine) readAll() stored {
	all := stored{payments: m.payments(), refunds: m.refundRecords(), decided: make(map[string][]invoice.Decision)}
	var invoices, payments, objects []string
	for _, inv := range m.made {
		invoices = append(invoices, inv.ID)
	}
	for _, p := range all.payments {
		payments = append(payments, p.ID)
	}
	for _, r := range all.refunds {
		objects = append(objects, r.ID)
	}
	objects = append(append(objects, invoices...), payments...)
	var err error
	all.invoices, err = ledger.InvoicesByID(m.t.Context(), m.db.store, invoices)
	m.must(err)
	refunds, err := ledger.RefundsOfPayments(m.t.Context(), m.db.store, payments)
	m.must(err)
	all.refunded = make(map[string]invoice.Amount)
	for _, back := range refunds {
		if back.Status != invoice.Orphaned {
			all.refunded[back.PaymentID] = all.refunded[back.PaymentID].Plus(back.Amount)
		}
	}
	all.holders, err = ledger.MerchantsOfUnattributed(m.t.Context(), m.db.store, payments)
	m.must(err)
	decided, err := ledger.DecisionsInForce(m.t.Context(), m.db.store, objects)
	m.must(err)
	for _, d := range decided {
		all.decided[d.ObjectID] = append(all.decided[d.ObjectID], d)
	}
	return all
}

// checkInbox compares the inboxes with the inboxes computed from all rows.
func (m *inboxMachine) checkInbox(r *rapid.T) {
	all := m.readAll()
	m.checkUses(r, all.payments)
	for _, merchant := range []string{m.merchant, ""} {
		var got []shown
		for _, item := range m.listed(r, merchant) {
			got = append(got, shown{item.ObjectID(), item.Kind, item.Version})
		}
		want := m.examine(all, merchant)
		for _, items := range [][]shown{want, got} {
			slices.SortFunc(items, func(a, b shown) int { return strings.Compare(a.ID, b.ID) })
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			r.Fatalf("the inbox of %q (-computed +by index):\n%s", merchant, diff)
		}
		if n := m.entries(all, merchant); n != len(want) {
			r.Fatalf("the indexes have %d items of %q, want %d", n, merchant, len(want))
		}
		counts := make(map[invoice.ItemKind]int)
		for _, item := range want {
			counts[item.Kind]++
		}
		found, err := m.InboxCounts(m.t.Context(), merchant)
		m.must(err)
		for _, c := range found {
			if merchant != "" && (c.Count != min(counts[c.Kind], ledger.MaxInboxCount) || c.More) {
				r.Fatalf("%d of %q are counted as %+v", counts[c.Kind], merchant, c)
			}
		}
	}
}

// checkUses compares the stored uses of payments with the uses computed from all stored facts. A refund
// that has expired by the clock is stored as expired later.
func (m *inboxMachine) checkUses(r *rapid.T, payments []ledger.PaymentRow) {
	uses, err := ledger.PaymentUses(m.t.Context(), m.db.store, payments)
	m.must(err)
	for _, p := range payments {
		facts := uses[p.ID].UseFacts
		if want, _ := invoice.ChangeUse(facts, invoice.ActNone); p.Use != want {
			r.Fatalf("the payment %s is %q, and %q by %+v", p.ID, p.Use, want, facts)
		}
	}
}

// entries returns how many of the machine's objects the indexes name.
func (m *inboxMachine) entries(all stored, merchant string) (n int) {
	var keys []string
	for _, inv := range all.invoices {
		keys = append(keys, inv.ID)
	}
	for _, p := range all.payments {
		keys = append(keys, p.SeenID)
	}
	for _, r := range all.refunds {
		keys = append(keys, r.ID)
	}
	found, err := ledger.InboxEntries(m.t.Context(), m.db.store, ledger.InboxFilter{MerchantID: merchant, Limit: 100_000}, at(m.seconds.Load()))
	m.must(err)
	for _, e := range found {
		if slices.Contains(keys, e.Key) {
			n++
		}
	}
	return n
}

// examine computes an inbox from all stored rows.
func (m *inboxMachine) examine(all stored, merchant string) (found []shown) {
	add := func(id string, kind invoice.ItemKind, version string) {
		about := func(d invoice.Decision) bool {
			return d.Kind == kind && d.Version == version && (merchant == "" || d.MerchantID == "" || d.MerchantID == merchant)
		}
		if kind != "" && !slices.ContainsFunc(all.decided[id], about) {
			found = append(found, shown{id, kind, version})
		}
	}
	for _, inv := range all.invoices {
		kind, version := invoice.ItemOf(inv)
		add(inv.ID, kind, version)
	}
	var payments []string
	for _, p := range all.payments {
		payments = append(payments, p.ID)
	}
	claims, err := ledger.NewReader(m.db.store).ClaimsOfPayments(m.t.Context(), payments, merchant, 10)
	m.must(err)
	for _, p := range all.payments {
		if merchant == "" || slices.Contains(all.holders[p.ID], merchant) {
			kind, version := invoice.ItemOfPayment(p.Payment, all.refunded[p.ID], len(claims[p.ID]))
			add(p.ID, kind, version)
		}
	}
	for _, refund := range all.refunds {
		kind, version := invoice.ItemOfRefund(refund, at(m.seconds.Load()))
		if merchant == "" || refund.MerchantID == merchant {
			add(refund.ID, kind, version)
		}
	}
	return found
}
