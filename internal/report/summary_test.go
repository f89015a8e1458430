package report_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"
	_ "time/tzdata" // for machines without

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/store"
)

// days has payments and refunds by time.
type days struct {
	payments []store.SettledAmount
	refunds  []invoice.Refund
	reads    int // of pages
}

func within(f store.ReportFilter, at time.Time, id string) bool {
	behind := f.AfterID == "" || at.After(f.After) || at.Equal(f.After) && id > f.AfterID
	return behind && !at.Before(f.From) && at.Before(f.To)
}

func (d *days) SettledAmounts(_ context.Context, f store.ReportFilter) (page []store.SettledAmount, err error) {
	d.reads++
	for _, p := range d.payments {
		if within(f, p.ConfirmedAt, p.SeenID) && len(page) < f.Limit {
			page = append(page, p)
		}
	}
	return page, nil
}

func (d *days) ReportedRefunds(_ context.Context, f store.ReportFilter) (page []invoice.Refund, err error) {
	for _, r := range d.refunds {
		if within(f, r.ConfirmedAt, r.ID) && len(page) < f.Limit {
			page = append(page, r)
		}
	}
	return page, nil
}

func (d *days) CountSettled(_ context.Context, _ string, from, to time.Time) (payments, refunds int64, err error) {
	f := store.ReportFilter{From: from, To: to}
	for _, p := range d.payments {
		if within(f, p.ConfirmedAt, "") {
			payments++
		}
	}
	for _, r := range d.refunds {
		if within(f, r.ConfirmedAt, "") {
			refunds++
		}
	}
	return payments, refunds, nil
}

// sums adds up a period by day without a cache.
func (d *days) sums(r report.Request) map[string]string {
	type sum struct{ payments, refunds, gross, refunded uint64 }
	all := make(map[string]*sum)
	add := func(at time.Time, chainKey, currency string, change func(*sum)) {
		if at.Before(r.From) || !at.Before(r.To) {
			return
		}
		key := at.In(r.Location).Format(time.DateOnly) + " " + chainKey + " " + currency
		if all[key] == nil {
			all[key] = new(sum)
		}
		change(all[key])
	}
	for _, p := range d.payments {
		add(p.ConfirmedAt, p.ChainKey, p.Currency, func(s *sum) { s.payments++; s.gross += small(p.Amount) })
	}
	for _, p := range d.refunds {
		add(p.ConfirmedAt, p.ChainKey, p.Currency, func(s *sum) { s.refunds++; s.refunded += small(p.Amount) })
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

// TestSummaryIsExact asks for days at random times, in several time zones, while payments and
// refunds are added to today and, attributed late, to past days.
func TestSummaryIsExact(t *testing.T) {
	santiago, err := time.LoadLocation("America/Santiago") // where clocks skip midnight on 2026-09-06
	if err != nil {
		t.Fatal(err)
	}
	zones := []*time.Location{time.UTC, time.FixedZone("east", 5*3600+1800), time.FixedZone("west", -11*3600), santiago}
	rapid.Check(t, func(r *rapid.T) {
		d := &days{}
		summaries := report.NewSummaries(d)
		now := time.Date(2026, 9, rapid.IntRange(3, 6).Draw(r, "day"), 0, 0, 0, 0, time.UTC)
		for n := range rapid.IntRange(1, 60).Draw(r, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30_000).Draw(r, "later")) * time.Second)
			at := now.Add(-time.Duration(rapid.IntRange(0, 500_000).Draw(r, "ago")) * time.Second)
			id := fmt.Sprintf("%09d", n)
			key := rapid.SampledFrom([]string{"base", "arc"}).Draw(r, "chain")
			amount := invoice.NewAmount(rapid.Uint64Range(1, 9).Draw(r, "amount"))
			if rapid.IntRange(0, 3).Draw(r, "kind") == 0 {
				d.refunds = append(d.refunds, invoice.Refund{ID: id, ConfirmedAt: at, Transfer: invoice.Transfer{ChainKey: key, Currency: "USDC", Amount: amount}})
			} else {
				d.payments = append(d.payments, store.SettledAmount{SeenID: id, ConfirmedAt: at, ChainKey: key, Currency: "USDC", Amount: amount})
			}
			request := report.Request{
				From: now.Add(-time.Duration(rapid.IntRange(1, 400_000).Draw(r, "period")) * time.Second), To: now,
				Location: rapid.SampledFrom(zones).Draw(r, "zone"), Decimals: func(string, string) (int, bool) { return 6, true },
			}
			lines, err := summaries.Days(r.Context(), request)
			if err != nil {
				r.Fatal(err)
			}
			got := make(map[string]string)
			for _, l := range lines {
				got[l.Day+" "+l.ChainKey+" "+l.Currency] = fmt.Sprint(l.Payments, l.Refunds, &l.Gross, &l.Refunded, &l.Net)
			}
			if diff := cmp.Diff(d.sums(request), got); diff != "" {
				r.Fatalf("from %s to %s (-want +got):\n%s", request.From, request.To, diff)
			}
		}
	})
}

// TestSummaryKeepsPastDays reads past days once, until a payment is added to them.
func TestSummaryKeepsPastDays(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_790_000_000, 0).UTC()
	d := &days{payments: []store.SettledAmount{{SeenID: "1", ConfirmedAt: now.AddDate(0, 0, -3), Currency: "USDC", Amount: invoice.NewAmount(1)}}}
	summaries := report.NewSummaries(d)
	from := now.AddDate(0, 0, -9)
	for _, c := range []struct {
		change func()
		reads  int // past days and today
	}{
		{func() {}, 2},
		{func() { now = now.Add(time.Minute) }, 1},
		{func() {
			d.payments = append(d.payments, store.SettledAmount{SeenID: "0", ConfirmedAt: now.AddDate(0, 0, -5), Currency: "USDC", Amount: invoice.NewAmount(1)})
		}, 2},
		{func() {}, 1},
		{func() { now = now.AddDate(0, 0, 1) }, 2},
	} {
		c.change()
		d.reads = 0
		if _, err := summaries.Days(t.Context(), report.Request{From: from, To: now, Location: time.UTC, Decimals: func(string, string) (int, bool) { return 6, true }}); err != nil {
			t.Fatal(err)
		}
		if d.reads != c.reads {
			t.Errorf("%d pages were read, want %d", d.reads, c.reads)
		}
	}
}
