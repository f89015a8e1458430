package report_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // for machines without

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// reporter is a *testing.T or a *rapid.T.
type reporter interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// books is a database with confirmed payments and refunds of two merchants, and the ones that a summary must count.
type books struct {
	reporter
	*db.DB
	now      time.Time
	log      bytes.Buffer
	payments []ledger.PaymentRow
	refunds  []invoice.Refund
}

// newBooks returns an empty database at a time, in which each merchant has an invoice.
func newBooks(t testing.TB, s *db.DB, now time.Time) *books {
	t.Helper()
	b := &books{reporter: t, DB: s, now: now}
	b.write(func(ctx context.Context, tx *db.Tx) error {
		for _, key := range []string{"base", "arc"} {
			if _, err := ledger.InsertChain(ctx, tx, key, invoice.Header{Number: 1, Time: invoice.Unix(1)}, nil); err != nil {
				return err
			}
		}
		var invoices []invoice.Invoice
		for _, m := range []string{"acme", "globex"} {
			address := invoice.Address{m[0]}
			if err := access.InsertSettlementAddresses(ctx, tx, []access.SettlementAddress{{ChainKey: "base", Address: address, MerchantID: m}}, invoice.Unix(900)); err != nil {
				return err
			}
			if _, _, err := access.GrantAddresses(ctx, tx, []access.Holding{{Address: address, MerchantID: m}}, invoice.Unix(900)); err != nil {
				return err
			}
			invoices = append(invoices, invoice.Invoice{
				Terms: invoice.Terms{Merchant: address, Token: invoice.Address{0xcc}, Amount: invoice.NewAmount(100), ExpiresAt: invoice.Unix(2000)},
				ID:    "inv_" + m, CommitmentID: sha256.Sum256([]byte(m)), MerchantID: m, Currency: "USDC", ChainKey: "base",
				Status: invoice.Open, CreatedAt: invoice.Unix(1000), Collection: invoice.Direct,
			})
		}
		_, err := ledger.InsertInvoices(ctx, tx, invoices)
		return err
	})
	return b
}

func (b *books) write(fn func(ctx context.Context, tx *db.Tx) error) {
	b.Helper()
	expect.OK(b, b.Update(b.Context(), func(tx *db.Tx) error { return fn(b.Context(), tx) }))
}

// transfer returns the n-th transfer of the books.
func transfer(n int, chainKey string, amount uint64) invoice.Transfer {
	return invoice.Transfer{
		Position: invoice.Position{BlockNumber: uint64(n), BlockHash: invoice.Hash{1, byte(n)}, BlockTime: invoice.Unix(1000), LogIndex: n},
		ChainKey: chainKey, TxHash: sha256.Sum256(fmt.Append(nil, n)), Token: invoice.Address{0xcc}, Currency: "USDC",
		From: invoice.Address{0xbb}, To: invoice.Address{0xaa}, Amount: invoice.NewAmount(amount),
	}
}

// pay adds a confirmed payment, without an invoice if the merchant is empty.
func (b *books) pay(at time.Time, merchantID, chainKey string, amount uint64) {
	b.Helper()
	p := b.pending(at, merchantID, chainKey, amount)
	b.write(func(ctx context.Context, tx *db.Tx) error {
		return ledger.ConfirmThrough(ctx, tx, chainKey, p.BlockNumber, at, false)
	})
}

// pending adds a payment that is to be confirmed at a time.
func (b *books) pending(at time.Time, merchantID, chainKey string, amount uint64) ledger.PaymentRow {
	b.Helper()
	n := len(b.payments) + len(b.refunds)
	p := ledger.PaymentRow{}
	p.Transfer, p.ID, p.SeenID, p.Status = transfer(n, chainKey, amount), fmt.Sprintf("pay_%d", n), fmt.Sprintf("seen_%06d", n), invoice.Pending
	p.ObservedAt = at
	b.payments = append(b.payments, p)
	b.write(func(ctx context.Context, tx *db.Tx) error {
		return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p})
	})
	i := len(b.payments) - 1
	if merchantID != "" {
		b.attribute(i, merchantID)
	}
	b.payments[i].Status, b.payments[i].ConfirmedAt = invoice.Confirmed, at
	return b.payments[i]
}

// attribute attributes a payment.
func (b *books) attribute(i int, merchantID string) {
	b.Helper()
	p := &b.payments[i]
	p.InvoiceID, p.MerchantID, p.Method = "inv_"+merchantID, merchantID, invoice.ByTransferAmount
	b.write(func(ctx context.Context, tx *db.Tx) error {
		return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{*p})
	})
}

// refund adds a confirmed refund of a payment.
func (b *books) refund(at time.Time, i int, amount uint64) {
	b.Helper()
	n := len(b.payments) + len(b.refunds)
	r := invoice.Refund{ID: fmt.Sprintf("ref_%d", n), PaymentID: b.payments[i].ID, Status: invoice.Confirmed, ObservedAt: at, ConfirmedAt: at, Transfer: transfer(n, b.payments[i].ChainKey, amount)}
	b.refunds = append(b.refunds, r)
	b.write(func(ctx context.Context, tx *db.Tx) error { return ledger.SaveRefunds(ctx, tx, r) })
}

// orphan makes a refund one that is not confirmed any more, because its transfer is a payment.
func (b *books) orphan(i int) {
	b.Helper()
	r := &b.refunds[i]
	r.Status, r.ConfirmedAt = invoice.Orphaned, time.Time{}
	b.write(func(ctx context.Context, tx *db.Tx) error { return ledger.SaveRefunds(ctx, tx, *r) })
}

// sums adds up a request without rollups.
func (b *books) sums(r report.Request) map[string]string {
	type sum struct{ payments, refunds, gross, refunded uint64 }
	all := make(map[string]*sum)
	add := func(at time.Time, p ledger.PaymentRow, change func(*sum)) {
		if p.MerchantID == "" || r.MerchantID != "" && r.MerchantID != p.MerchantID || at.Before(r.From) || !at.Before(r.To) {
			return
		}
		key := at.In(r.Location).Format(time.DateOnly) + " " + p.ChainKey
		if all[key] == nil {
			all[key] = new(sum)
		}
		change(all[key])
	}
	for _, p := range b.payments {
		add(p.ConfirmedAt, p, func(s *sum) { s.payments++; s.gross += small(p.Amount) })
	}
	for _, refund := range b.refunds {
		i := slices.IndexFunc(b.payments, func(p ledger.PaymentRow) bool { return p.ID == refund.PaymentID })
		add(refund.ConfirmedAt, b.payments[i], func(s *sum) { s.refunds++; s.refunded += small(refund.Amount) })
	}
	out := make(map[string]string)
	for key, s := range all {
		out[key] = fmt.Sprint(s.payments, s.refunds, s.gross, s.refunded, int64(s.gross)-int64(s.refunded))
	}
	return out
}

// small returns an amount that fits.
func small(a invoice.Amount) uint64 {
	n, _ := strconv.ParseUint(a.String(), 10, 64)
	return n
}

// want fails the test unless the days of a request are exact.
func (b *books) want(r report.Request) {
	b.Helper()
	r.Decimals = func(string, string) (int, bool) { return 6, true }
	lines, err := report.Days(b.Context(), report.NewReader(b.DB), r)
	expect.OK(b, err)
	got := make(map[string]string)
	for _, l := range lines {
		got[l.Day+" "+l.ChainKey] = fmt.Sprint(l.Payments, l.Refunds, &l.Gross, &l.Refunded, &l.Net)
	}
	if diff := cmp.Diff(b.sums(r), got); diff != "" {
		b.Fatalf("%q from %s to %s (-want +got):\n%s", r.MerchantID, r.From, r.To, diff)
	}
	b.wantTotal(r, lines)
}

// wantTotal fails the test unless the total of a request is what days add up to.
func (b *books) wantTotal(r report.Request, days []*report.Line) {
	b.Helper()
	sums := make(map[string]*report.Line)
	for _, l := range days {
		sum := sums[l.ChainKey]
		if sum == nil {
			sum = new(report.Line)
			sums[l.ChainKey] = sum
		}
		sum.Payments, sum.Refunds = sum.Payments+l.Payments, sum.Refunds+l.Refunds
		sum.Gross.Add(&sum.Gross, &l.Gross)
		sum.Net.Add(&sum.Net, &l.Net)
	}
	want, got := make(map[string]string), make(map[string]string)
	for chainKey, l := range sums {
		want[chainKey] = fmt.Sprint(l.Payments, l.Refunds, &l.Gross, &l.Net)
	}
	total, err := report.Total(b.Context(), report.NewReader(b.DB), r)
	expect.OK(b, err)
	for _, l := range total {
		got[l.Day+l.ChainKey] = fmt.Sprint(l.Payments, l.Refunds, &l.Gross, &l.Net)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Fatalf("%q from %s to %s in total (-want +got):\n%s", r.MerchantID, r.From, r.To, diff)
	}
}

// rollups returns a Rollups of the books.
func (b *books) rollups() *report.Rollups { return b.rollupsOf(b.DB) }

func (b *books) rollupsOf(s report.Updater) *report.Rollups {
	return report.NewRollups(s, func() time.Time { return b.now }, slog.New(slog.NewTextHandler(&b.log, nil)))
}

// advance adds up all complete periods.
func (b *books) advance(r *report.Rollups) {
	b.Helper()
	for more := true; more; {
		var err error
		if more, err = r.Advance(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSummaryIsExact asks for days at random times, in several time zones, while payments are
// confirmed, attributed late and refunded, refunds turn out to be payments, and while rollups are made.
func TestSummaryIsExact(t *testing.T) {
	t.Parallel()
	santiago, err := time.LoadLocation("America/Santiago") // clocks skip midnight on 2026-09-06 there
	expect.OK(t, err)
	zones := []*time.Location{time.UTC, time.FixedZone("east", 5*3600+1800), time.FixedZone("west", -11*3600), time.FixedZone("odd", 1234), santiago}
	b := newBooks(t, dbtest.Open(t, dbtest.Migrated(t)), time.Time{})
	year := 2026
	rapid.Check(t, func(r *rapid.T) {
		b.reporter = r
		b.now = time.Date(year, 9, rapid.IntRange(3, 6).Draw(r, "day"), 0, 0, 0, 0, time.UTC)
		year++ // earlier checks no longer look at it
		first, firstRefund, rollups := len(b.payments), len(b.refunds), b.rollups()
		for range rapid.IntRange(1, 20).Draw(r, "steps") {
			b.now = b.now.Add(time.Duration(rapid.IntRange(0, 30_000).Draw(r, "later")) * time.Second)
			behind := time.Duration(rapid.SampledFrom([]int{0, 0, 600, 3600}).Draw(r, "behind")) * time.Second // the clock of the replica that confirms
			amount, merchantID := rapid.Uint64Range(1, 9).Draw(r, "amount"), rapid.SampledFrom([]string{"acme", "globex", ""}).Draw(r, "merchant")
			last := len(b.payments) - 1
			switch kind := rapid.IntRange(0, 6).Draw(r, "kind"); {
			case kind == 0 && last >= first:
				b.refund(b.now.Add(-behind), rapid.IntRange(first, last).Draw(r, "refunded"), amount)
			case kind == 1 && last >= first && merchantID != "":
				if i := rapid.IntRange(first, last).Draw(r, "attributed"); b.payments[i].MerchantID == "" {
					b.attribute(i, merchantID)
				}
			case kind == 2:
				b.advance(rollups)
			case kind == 3 && len(b.refunds) > firstRefund:
				b.orphan(rapid.IntRange(firstRefund, len(b.refunds)-1).Draw(r, "orphaned"))
			default:
				b.pay(b.now.Add(-behind), merchantID, rapid.SampledFrom([]string{"base", "arc"}).Draw(r, "chain"), amount)
			}
			b.want(report.Request{
				MerchantID: merchantID, Location: rapid.SampledFrom(zones).Draw(r, "zone"),
				From: b.now.Add(-time.Duration(rapid.IntRange(1, 400_000).Draw(r, "period")) * time.Second), To: b.now.Add(time.Second),
			})
		}
		b.advance(rollups)
		b.advance(rollups) // which checks
		if b.log.Len() > 0 {
			r.Fatal(b.log.String())
		}
	})
}

// TestRollups adds up periods that are over, and again when a payment or refund is added to them.
func TestRollups(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		begin := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
		b := newBooks(t, s, begin.AddDate(0, 0, 2))
		rollups := b.rollups()
		request := report.Request{From: begin, Location: time.UTC}
		check := func(wantRead string) {
			t.Helper()
			for _, request.MerchantID = range []string{"", "acme", "globex"} {
				request.To = b.now
				b.want(request)
			}
			stale, err := report.NewReader(s).StaleRollups(t.Context(), begin, b.now, 10)
			expect.OK(t, err)
			through, err := ledger.NewReader(s).RollupsThrough(t.Context())
			expect.OK(t, err)
			if got := fmt.Sprintf("%d stale, through %s", len(stale), through.Format(time.DateTime)); got != wantRead {
				t.Errorf("%s; want %s", got, wantRead)
			}
		}
		b.pay(begin, "acme", "base", 5)
		b.pay(begin.Add(14*time.Minute), "globex", "base", 7)
		b.pay(begin.Add(time.Hour), "", "base", 11)
		b.refund(begin.Add(30*time.Hour), 2, 1)
		check("1 stale, through 1970-01-01 00:00:00")
		b.advance(rollups)
		check("0 stale, through 2026-09-02 23:45:00")
		b.attribute(2, "acme")
		check("2 stale, through 2026-09-02 23:45:00")
		b.advance(rollups)
		check("0 stale, through 2026-09-02 23:45:00")
		b.now = b.now.Add(25 * time.Minute)
		b.pay(b.now.Add(-time.Minute), "acme", "arc", 3)
		b.advance(rollups)
		check("0 stale, through 2026-09-03 00:15:00")
		b.orphan(0)
		check("1 stale, through 2026-09-03 00:15:00")
		b.advance(rollups)
		check("0 stale, through 2026-09-03 00:15:00")
		if b.log.Len() > 0 {
			t.Errorf("a check found differences: %s", b.log.String())
		}
	})
}

// undoing is a store that rolls back a transaction although its function succeeded.
type undoing struct {
	*db.DB
	next error // of the next transaction; nil commits it
}

func (s *undoing) Update(ctx context.Context, fn func(*db.Tx) error) error {
	next := s.next
	s.next = nil
	return s.DB.Update(ctx, func(tx *db.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return next
	})
}

// TestRollupsAreChecked finds and corrects rollups that differ from payments, after a correction was rolled back.
func TestRollupsAreChecked(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	b := newBooks(t, dbtest.Open(t, dbtest.Migrated(t)), begin.AddDate(0, 0, 2))
	undone := &undoing{DB: b.DB}
	rollups := b.rollupsOf(undone)
	b.pay(begin, "acme", "base", 5)
	b.advance(rollups)
	b.write(func(ctx context.Context, tx *db.Tx) error {
		wrong := []report.Rollup{{MerchantID: "acme", Start: begin, ChainKey: "base", Currency: "USDC", Payments: 1, Gross: "6", Refunded: "0"}}
		if err := report.ReplaceDays(ctx, tx, begin, begin.Add(report.Day), wrong); err != nil {
			return err
		}
		return report.ReplaceRollups(ctx, tx, begin, begin.Add(ledger.RollupPeriod), wrong)
	})
	undone.next = errors.New("rolled back")
	if _, err := rollups.Advance(t.Context()); err == nil || b.log.Len() > 0 {
		t.Errorf("a check that was rolled back: %v, and the log has %q", err, b.log.String())
	}
	b.now = b.now.Add(time.Hour)
	b.advance(rollups)
	b.advance(rollups) // it continues the checks from their position
	b.want(report.Request{MerchantID: "acme", From: begin, To: b.now, Location: time.UTC})
	if !strings.Contains(b.log.String(), "rollups differed from payments, corrected") {
		t.Errorf("the log has %q", b.log.String())
	}
}

// pagedQuerier calls a function before each page of overdue invoices, with its number.
type pagedQuerier struct {
	db.Querier
	before func(page int)
	pages  int
}

func (q *pagedQuerier) IndexedBy(index string) string {
	if index == "invoices_by_merchant_state" {
		q.pages++
		q.before(q.pages)
	}
	return q.Querier.IndexedBy(index)
}

// TestOverdueInvoiceThatMoves has an overdue invoice move from a later to an earlier state between two pages.
func TestOverdueInvoiceThatMoves(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		moved, other := rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "m")
		set := func(exception invoice.Exception) {
			moved.Exception = exception
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
				return ledger.UpdateInvoices(ctx, tx, []invoice.Invoice{moved})
			})
		}
		rowtest.Insert(t, s, moved, other)
		set(invoice.Underpaid)
		q := &pagedQuerier{Querier: s, before: func(page int) {
			if page == 2 {
				set("")
			}
		}}
		from := moved.ExpiresAt.Add(2*report.UsualDelay + time.Hour)
		filter := report.EarlierFilter{MerchantID: "m", From: from, To: from.AddDate(0, 1, 0), End: "inv_3", Limit: 1}
		var ids []string
		rowtest.Must(t, report.NewReader(q).EarlierInvoices(t.Context(), filter, func(page []report.StatedInvoice) error {
			for _, inv := range page {
				ids = append(ids, inv.ID)
			}
			return nil
		}))
		if slices.Sort(ids); !slices.Equal(ids, []string{"inv_1", "inv_2"}) {
			t.Errorf("the overdue invoices are %q, want both once", ids)
		}
	})
}

// TestRefundOfAHeldPayment refunds a payment before it is confirmed: it is quarantined, or a reorg dropped it. The refund
// counts once the payment does.
func TestRefundOfAHeldPayment(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	for name, confirm := range map[string]func(ctx context.Context, tx *db.Tx, p ledger.PaymentRow) error{
		"released": func(ctx context.Context, tx *db.Tx, p ledger.PaymentRow) error {
			return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p})
		},
		"mined again": func(ctx context.Context, tx *db.Tx, p ledger.PaymentRow) error {
			return ledger.ConfirmThrough(ctx, tx, p.ChainKey, p.BlockNumber, p.ConfirmedAt, false)
		},
	} {
		dbtest.Each(t, func(t *testing.T, s *db.DB) {
			b := newBooks(t, s, begin.Add(48*time.Hour))
			r := report.Request{MerchantID: "acme", From: begin, To: b.now, Location: time.UTC, Decimals: func(string, string) (int, bool) { return 6, true }}
			p := b.pending(begin.Add(30*time.Hour), "acme", "base", 5)
			b.refund(begin.Add(20*time.Hour), 0, 5)
			b.write(func(ctx context.Context, tx *db.Tx) error {
				return ledger.SaveRefundedSums(ctx, tx, map[string]ledger.RefundedSum{p.ID: {All: p.Amount, Final: p.Amount}})
			})
			for range 2 {
				lines, err := report.Days(t.Context(), report.NewReader(s), r)
				total, err2 := report.Total(t.Context(), report.NewReader(s), r)
				settlement, err3 := report.Settlement(t.Context(), report.NewReader(s), r)
				if err := errors.Join(err, err2, err3); err != nil || len(lines)+len(total)+len(settlement.Lines) != 0 {
					t.Errorf("%s: before: %v, %v, %v, %v", name, lines, total, settlement.Lines, err)
				}
				b.advance(b.rollups())
			}
			b.write(func(ctx context.Context, tx *db.Tx) error { return confirm(ctx, tx, p) })
			b.want(r)
			b.advance(b.rollups())
			b.want(r)
			if settlement, err := report.Settlement(t.Context(), report.NewReader(s), r); err != nil || len(settlement.Lines) != 1 || settlement.Lines[0].Refunds != 1 || settlement.Lines[0].Net.Sign() != 0 {
				t.Errorf("%s: %v, %v", name, settlement.Lines, err)
			}
			if b.log.Len() > 0 {
				t.Errorf("%s: a check found differences: %s", name, b.log.String())
			}
		})
	}
}

// TestInvoicedAmountsSince leaves out invoices that were created shortly before a time, which lists may read because of
// their ids.
func TestInvoicedAmountsSince(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		since := time.Date(2026, 9, 2, 0, 0, 0, 0, time.UTC)
		var all []invoice.Invoice
		for i, at := range []time.Time{since.Add(-30 * time.Second), since.Add(-time.Second), since, since.Add(time.Second)} {
			inv := rowtest.Sample(invoice.FirstID(invoice.PrefixInvoice, at), "m")
			inv.CreatedAt, inv.ExpiresAt, inv.Amount = at, at.Add(time.Hour), invoice.NewAmount(uint64(i+1))
			all = append(all, inv)
		}
		rowtest.Insert(t, s, all...)
		for _, merchant := range []string{"", "m"} {
			got, err := report.NewReader(s).InvoicedAmounts(t.Context(), merchant, invoice.Open, since, 10)
			expect.OK(t, err)
			if len(got) != 2 || small(got[0].Amount) != 4 || small(got[1].Amount) != 3 {
				t.Errorf("of %q: %+v", merchant, got)
			}
			if got, err := report.NewReader(s).InvoicedAmounts(t.Context(), merchant, invoice.Open, time.Unix(0, 0), 10); err != nil || len(got) != 4 {
				t.Errorf("of %q at all times: %+v, %v", merchant, got, err)
			}
		}
	})
}

// TestConfirmedWhileAddedUp adds up a period while a transaction that confirmed a payment in it is not committed.
func TestConfirmedWhileAddedUp(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, url)
	begin := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	b := newBooks(t, s, begin.Add(time.Hour))
	b.pay(begin, "", "base", 5)
	b.attribute(0, "acme")
	p := b.pending(begin.Add(time.Minute), "acme", "base", 7)
	added := make(chan error, 1)
	b.write(func(ctx context.Context, tx *db.Tx) error {
		if _, err := ledger.LockCursor(ctx, tx, "base"); err != nil {
			return err
		}
		if err := ledger.ConfirmThrough(ctx, tx, "base", p.BlockNumber, p.ConfirmedAt, false); err != nil {
			return err
		}
		if err := tx.Flush(ctx); err != nil {
			return err
		}
		go func() {
			_, err := b.rollups().Advance(ctx)
			added <- err
		}()
		awaitWaiting(t, dbtest.SQL(t, url), added)
		return nil
	})
	expect.OK(t, <-added)
	b.want(report.Request{MerchantID: "acme", From: begin, To: b.now, Location: time.UTC})
}

// TestCheckWaitsForNoChain checks sums while another transaction holds a chain's cursor for long.
func TestCheckWaitsForNoChain(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	begin := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	b := newBooks(t, dbtest.Open(t, url), begin.Add(time.Hour))
	b.pay(begin, "acme", "base", 5)
	rollups := b.rollups()
	b.advance(rollups)
	checked := make(chan error, 1)
	b.write(func(ctx context.Context, tx *db.Tx) error {
		if _, err := ledger.LockCursor(ctx, tx, "base"); err != nil {
			return err
		}
		go func() {
			_, err := rollups.Advance(ctx)
			checked <- err
		}()
		awaitWaiting(t, dbtest.SQL(t, url), checked)
		if len(checked) == 0 {
			t.Error("the check waits for the chain")
		}
		return nil
	})
	expect.OK(t, <-checked)
}

// awaitWaiting waits until a transaction of the database waits for a row, or done has a result, which it leaves there.
func awaitWaiting(t *testing.T, conn *dbtest.DB, done <-chan error) {
	t.Helper()
	for waiting := 0; waiting == 0 && len(done) == 0; {
		err := conn.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		expect.OK(t, err)
	}
}
