package report_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// shop is a merchant in a database. Its invoices are created, paid and closed as time passes.
type shop struct {
	books
	draw       *rapid.T
	merchantID string
	address    invoice.Address
	invoices   []string
	paid       map[string][]ledger.PaymentRow // by invoice
	times      []time.Time                    // when the last change happened, or the invoice ended
	n          int                            // of payments
}

// newShop returns a merchant without invoices.
func newShop(r *rapid.T, s *db.DB, number int) *shop {
	r.Helper()
	began := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	b := &shop{books: books{reporter: r, DB: s, now: began}, draw: r, merchantID: fmt.Sprint("shop", number), paid: make(map[string][]ledger.PaymentRow)}
	sum := sha256.Sum256([]byte(b.merchantID))
	copy(b.address[:], sum[:])
	b.write(func(ctx context.Context, tx *db.Tx) error {
		if err := access.InsertSettlementAddresses(ctx, tx, []access.SettlementAddress{{ChainKey: "base", Address: b.address, MerchantID: b.merchantID}}, began); err != nil {
			return err
		}
		_, _, err := access.GrantAddresses(ctx, tx, []access.Holding{{Address: b.address, MerchantID: b.merchantID}}, began)
		return err
	})
	return b
}

// create creates an invoice with a time to pay, or a draft.
func (b *shop) create(lifetime time.Duration, status invoice.Status) {
	b.Helper()
	id := invoice.NewIDs(func() time.Time { return b.now }, rand.Reader).New(invoice.PrefixInvoice)
	inv := invoice.Invoice{
		Terms: invoice.Terms{
			Merchant: b.address, Token: invoice.Address{0xcc}, ExpiresAt: b.now.Add(lifetime),
			Amount: invoice.NewAmount(rapid.Uint64Range(10, 40).Draw(b.draw, "amount")),
		},
		ID: id, CommitmentID: sha256.Sum256([]byte(id)), MerchantID: b.merchantID, Currency: "USDC", ChainKey: "base",
		Tolerance: invoice.NewAmount(rapid.Uint64Range(0, 2).Draw(b.draw, "tolerance")), Status: status, CreatedAt: b.now, Collection: invoice.Direct,
	}
	b.invoices, b.times = append(b.invoices, id), append(b.times, b.now, inv.ExpiresAt)
	b.write(func(ctx context.Context, tx *db.Tx) error {
		_, err := ledger.InsertInvoices(ctx, tx, []invoice.Invoice{inv})
		return err
	})
}

// issue opens a draft.
func (b *shop) issue(inv invoice.Invoice) {
	b.Helper()
	inv.Status, inv.ExpiresAt = invoice.Open, b.now.Add(time.Hour)
	b.write(func(ctx context.Context, tx *db.Tx) error {
		if err := ledger.UpdateDraft(ctx, tx, inv); err != nil {
			return err
		}
		return ledger.InsertInvoiceTransition(ctx, tx, inv.ID, ledger.InvoiceTransition{Status: invoice.Open, At: b.now})
	})
}

// pay adds a payment that was mined some time ago, possibly before the invoice was created. While the
// invoice is open, the chain is read to the first block.
func (b *shop) pay(inv invoice.Invoice) {
	b.Helper()
	b.n++
	p := ledger.PaymentRow{SeenID: fmt.Sprintf("%s_%06d", b.merchantID, b.n)}
	p.Transfer = transfer(b.n, "base", rapid.Uint64Range(1, 30).Draw(b.draw, "paid"))
	newest := uint64(2)
	if inv.Status == invoice.Open {
		newest = 1
	}
	p.BlockNumber, p.BlockTime = rapid.Uint64Range(1, newest).Draw(b.draw, "block"), b.now.Add(-b.duration("ago"))
	if rapid.Bool().Draw(b.draw, "at once") {
		p.BlockTime = inv.CreatedAt
	}
	b.times = append(b.times, b.now, p.BlockTime)
	p.TxHash = sha256.Sum256([]byte(p.SeenID))
	p.ID, p.Status, p.ObservedAt = "pay_"+p.SeenID, invoice.Pending, b.now
	p.InvoiceID, p.MerchantID, p.Method = inv.ID, b.merchantID, invoice.ByTransferAmount
	b.settle(inv, append(b.paid[inv.ID], p))
	if rapid.Bool().Draw(b.draw, "final") {
		inv, err := ledger.NewReader(b).Invoice(b.Context(), inv.ID)
		expect.OK(b, err)
		b.decide(inv)
	}
}

// decide confirms a pending payment of an invoice, or drops it in a reorg.
func (b *shop) decide(inv invoice.Invoice) {
	b.Helper()
	payments := slices.Clone(b.paid[inv.ID])
	for i := range payments {
		p := &payments[i]
		if p.Status == invoice.Pending {
			p.Status = rapid.SampledFrom([]invoice.PaymentStatus{invoice.Confirmed, invoice.Orphaned}).Draw(b.draw, "decided")
		}
		if p.Status == invoice.Confirmed && p.ConfirmedAt.IsZero() {
			p.ConfirmedAt = b.now
		}
	}
	b.settle(inv, payments)
}

// settle stores the payments of an invoice with their effects.
func (b *shop) settle(inv invoice.Invoice, payments []ledger.PaymentRow) {
	b.Helper()
	b.paid[inv.ID] = payments
	all := make([]invoice.Payment, len(payments))
	for i, p := range payments {
		all[i] = p.Payment
	}
	b.write(func(ctx context.Context, tx *db.Tx) error {
		if err := ledger.SavePayments(ctx, tx, payments); err != nil {
			return err
		}
		return ledger.UpdateInvoices(ctx, tx, []invoice.Invoice{inv.Recount(all)})
	})
}

// end makes an invoice expired if it can have expired by now, or else void.
func (b *shop) end(inv invoice.Invoice) {
	b.Helper()
	ended, expired := inv.Expire(b.now)
	if !expired {
		var err error
		if ended, err = inv.Cancel(1); err != nil || inv.Status == invoice.Void {
			return
		}
	}
	b.write(func(ctx context.Context, tx *db.Tx) error {
		if err := ledger.UpdateInvoices(ctx, tx, []invoice.Invoice{ended}); err != nil || expired {
			return err
		}
		return ledger.InsertInvoiceTransition(ctx, tx, inv.ID, ledger.InvoiceTransition{Status: invoice.Void, At: b.now})
	})
}

// duration draws a time that is usually short.
func (b *shop) duration(label string) time.Duration {
	hours := rapid.SampledFrom([]int{1, 24, 25, 47, 24 * 9, 24 * 70}).Draw(b.draw, label)
	return time.Duration(rapid.IntRange(1, hours*3600).Draw(b.draw, label+" exactly")) * time.Second
}

// near draws a time close to a change, or a day later.
func (b *shop) near(label string) time.Time {
	from := rapid.SampledFrom(b.times).Draw(b.draw, label)
	return from.Add(rapid.SampledFrom([]time.Duration{0, -time.Second, time.Second, report.UsualDelay}).Draw(b.draw, label+" after"))
}

// step lets something happen.
func (b *shop) step() {
	b.Helper()
	kind := rapid.IntRange(0, 7).Draw(b.draw, "kind")
	if len(b.invoices) == 0 || kind <= 1 {
		b.create(b.duration("lifetime"), rapid.SampledFrom([]invoice.Status{invoice.Open, invoice.Open, invoice.Drafted}).Draw(b.draw, "status"))
		return
	}
	inv, err := ledger.NewReader(b).Invoice(b.Context(), rapid.SampledFrom(b.invoices).Draw(b.draw, "invoice"))
	switch {
	case err != nil:
		b.Fatal(err)
	case inv.Status == invoice.Drafted && kind == 2:
		b.end(inv)
	case inv.Status == invoice.Drafted:
		b.issue(inv)
	case kind <= 4:
		b.pay(inv)
	case kind == 5:
		b.decide(inv)
	default:
		b.end(inv)
	}
}

// wholeStore reads all invoices for a statement, as if all were earlier ones, and no sums.
type wholeStore struct{ report.Reader }

func (s wholeStore) EarlierInvoices(ctx context.Context, f report.EarlierFilter, do func([]report.StatedInvoice) error) error {
	// An empty period, which ends before it begins.
	all := report.StatedFilter{MerchantID: f.MerchantID, From: time.Unix(1<<40, 0), To: time.Unix(0, 0), End: invoice.PrefixInvoice + "zz", Limit: f.Limit}
	for {
		page, err := s.Reader.StatedInvoices(ctx, all)
		if err != nil {
			return err
		}
		if err := do(page); err != nil || len(page) < all.Limit {
			return err
		}
		all.After = page[len(page)-1].ID
	}
}

func (s wholeStore) StatedInvoices(context.Context, report.StatedFilter) ([]report.StatedInvoice, error) {
	return nil, nil
}

func (s wholeStore) RollupsThrough(context.Context) (time.Time, error) { return time.Time{}, nil }

// want fails the test unless the statement of a period equals the one computed from all rows.
func (b *shop) want(from, to time.Time) {
	b.Helper()
	r := report.Request{MerchantID: b.merchantID, From: from, To: to, Location: time.UTC, Decimals: func(string, string) (int, bool) { return 6, true }}
	got, err := report.NewStatement(b.Context(), report.NewReader(b.DB), r)
	expect.OK(b, err)
	want, err := report.NewStatement(b.Context(), wholeStore{report.NewReader(b.DB)}, r)
	expect.OK(b, err)
	if diff := cmp.Diff(lines(want), lines(got)); diff != "" {
		b.Fatalf("from %s to %s (-want +got):\n%s", from, to, diff)
	}
}

// lines returns the lines of a statement as texts.
func lines(s report.Statement) (all []string) {
	for _, l := range s.Lines {
		all = append(all, fmt.Sprintln(l.Key, "opening", &l.Opening, "invoiced", &l.Invoiced, "settled", &l.Settled, "canceled", &l.Canceled, "expired", &l.Expired, "waived", &l.Waived,
			"closing", &l.Closing, "held before", &l.HeldBefore, "received", &l.Received, l.Payments, "refunded", &l.Refunded, l.Refunds, "held", &l.Held))
	}
	return all
}

// TestStatementReadsEnough compares statements of random periods with those that read all invoices,
// after each of random steps.
func TestStatementReadsEnough(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		newBooks(t, s, time.Time{})
		shops := 0
		rapid.Check(t, func(r *rapid.T) {
			shops++
			b := newShop(r, s, shops)
			rollups := b.rollups()
			for range rapid.IntRange(1, 15).Draw(r, "steps") {
				b.now = b.now.Add(b.duration("later"))
				b.step()
				if rapid.IntRange(0, 3).Draw(r, "add up") == 0 {
					b.advance(rollups)
				}
				for range 4 {
					from, to := b.near("from"), b.near("to")
					b.want(from, clock.Later(to, from.Add(time.Second)))
				}
			}
		})
	})
}

// countedStore counts the invoices that statements read.
type countedStore struct {
	report.Reader
	read atomic.Int64
}

func (s *countedStore) EarlierInvoices(ctx context.Context, f report.EarlierFilter, do func([]report.StatedInvoice) error) error {
	return s.Reader.EarlierInvoices(ctx, f, func(page []report.StatedInvoice) error {
		s.read.Add(int64(len(page)))
		return do(page)
	})
}

func (s *countedStore) StatedInvoices(ctx context.Context, f report.StatedFilter) ([]report.StatedInvoice, error) {
	page, err := s.Reader.StatedInvoices(ctx, f)
	s.read.Add(int64(len(page)))
	return page, err
}

// yearOfInvoices stores invoices of the merchant shop that were created in a year. The newest are open for a month, and
// three of four others are paid.
func yearOfInvoices(t *testing.T, s *db.DB, until time.Time, n, open int) {
	t.Helper()
	b, address := newBooks(t, s, until), invoice.Address{'s'}
	b.write(func(ctx context.Context, tx *db.Tx) error {
		if err := access.InsertSettlementAddresses(ctx, tx, []access.SettlementAddress{{ChainKey: "base", Address: address, MerchantID: "shop"}}, until); err != nil {
			return err
		}
		_, _, err := access.GrantAddresses(ctx, tx, []access.Holding{{Address: address, MerchantID: "shop"}}, until)
		return err
	})
	all, payments := make([]invoice.Invoice, n), make([]ledger.PaymentRow, 0, n)
	for i := range all {
		at := until.Add(-time.Duration(n-1-i) * (365 * 24 * time.Hour / time.Duration(n))).Truncate(time.Second)
		id := invoice.NewIDs(func() time.Time { return at }, rand.Reader).New(invoice.PrefixInvoice)
		inv := invoice.Invoice{
			Terms: invoice.Terms{Merchant: address, Token: invoice.Address{0xcc}, Amount: invoice.NewAmount(uint64(100 + i)), ExpiresAt: at.Add(24 * time.Hour)},
			ID:    id, CommitmentID: sha256.Sum256([]byte(id)), MerchantID: "shop", Currency: "USDC", ChainKey: "base",
			Status: invoice.Open, CreatedAt: at, Collection: invoice.Direct,
		}
		if i >= n-open {
			inv.ExpiresAt = at.Add(30 * 24 * time.Hour)
		}
		all[i] = inv
	}
	b.write(func(ctx context.Context, tx *db.Tx) error { _, err := ledger.InsertInvoices(ctx, tx, all); return err })
	for i, inv := range all[:n-open] {
		if i%4 == 0 {
			all[i], _ = inv.Expire(inv.ExpiresAt.Add(time.Second))
			continue
		}
		p := ledger.PaymentRow{SeenID: fmt.Sprintf("year_%06d", i), Payment: invoice.Payment{
			ID: fmt.Sprint("pay_year_", i), Status: invoice.Confirmed, InvoiceID: inv.ID, MerchantID: inv.MerchantID, Method: invoice.ByAmount,
			Transfer: transfer(1000+i, "base", uint64(100+i)), ObservedAt: inv.CreatedAt.Add(10 * time.Minute), ConfirmedAt: inv.CreatedAt.Add(11 * time.Minute),
		}}
		p.BlockTime = p.ObservedAt
		payments = append(payments, p)
		all[i] = inv.Recount([]invoice.Payment{p.Payment})
	}
	for part := range slices.Chunk(payments, 1000) {
		b.write(func(ctx context.Context, tx *db.Tx) error { return ledger.SavePayments(ctx, tx, part) })
	}
	for part := range slices.Chunk(all, 1000) {
		b.write(func(ctx context.Context, tx *db.Tx) error { return ledger.UpdateInvoices(ctx, tx, part) })
	}
}

// TestStatementReadsTheMonth makes statements of each month of a year. They equal the ones computed
// from all rows. They read only the invoices that were created in the month and the two days before
// it, and invoices that are open for long.
func TestStatementReadsTheMonth(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		until := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
		const perDay, open = 10, 20
		yearOfInvoices(t, s, until, 365*perDay, open)
		counted := &countedStore{Reader: report.NewReader(s)}
		r := report.Request{MerchantID: "shop", Location: time.UTC, Decimals: func(string, string) (int, bool) { return 6, true }}
		for month := range 13 {
			r.From = time.Date(2025, time.November, 1, 0, 0, 0, 0, time.UTC).AddDate(0, month, 0)
			r.To = r.From.AddDate(0, 1, 0)
			counted.read.Store(0)
			got, err := report.NewStatement(t.Context(), counted, r)
			expect.OK(t, err)
			if most := int64(34*perDay + open); counted.read.Load() > most {
				t.Errorf("%s: read %d invoices, want %d at most", r.From.Format("2006-01"), counted.read.Load(), most)
			}
			want, err := report.NewStatement(t.Context(), wholeStore{report.NewReader(s)}, r)
			expect.OK(t, err)
			if diff := cmp.Diff(lines(want), lines(got)); diff != "" || len(got.Lines) != 1 {
				t.Errorf("%s (-want +got):\n%s", r.From.Format("2006-01"), diff)
			}
		}
	})
}
