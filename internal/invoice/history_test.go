package invoice_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // for machines without

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
)

// TestHistory adds payments to a history and removes some, in any order. The result must equal a history of the
// remaining payments, and the sum of the payments before each position.
func TestHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		inv := openInvoice("a")
		inv.Amount, inv.Tolerance = invoice.NewAmount(1000), invoice.NewAmount(rapid.Uint64Range(0, 50).Draw(r, "tolerance"))
		h := invoice.NewHistory(inv, nil)
		var there []invoice.Payment
		for n := range rapid.IntRange(0, 12).Draw(r, "payments") {
			p := drawPayment(r, n)
			h.Add(p)
			there = append(there, p)
			if rapid.IntRange(0, 3).Draw(r, "remove") == 0 {
				i := rapid.IntRange(0, len(there)-1).Draw(r, "which")
				h.Remove(there[i])
				there = slices.Delete(there, i, i+1)
			}
		}
		at := invoice.Position{BlockNumber: rapid.Uint64Range(0, 9).Draw(r, "block"), LogIndex: rapid.IntRange(0, 12).Draw(r, "log")}
		fresh := invoice.NewHistory(inv, there)
		covered, remainder := h.DueAt(at)
		if c, rest := fresh.DueAt(at); c != covered || rest != remainder || h.Remainder() != fresh.Remainder() || !slices.Equal(h.Remainders(), fresh.Remainders()) {
			r.Errorf("changed one by one: covered %t, %s remains, %s in the end; made at once: %t, %s, %s",
				covered, remainder, h.Remainder(), c, rest, fresh.Remainder())
		}
		if rest := h.Remainder(); !rest.IsZero() && !slices.Contains(h.Remainders(), rest) {
			r.Errorf("%s remains, but the remainders were %s", rest, h.Remainders())
		}
		var before []invoice.Payment
		for _, p := range there {
			if p.Before(at) {
				before = append(before, p)
			}
		}
		if want := inv.Recount(before).Covered(); covered != want {
			r.Errorf("covered %t, want %t", covered, want)
		}
	})
}

// drawPayment draws a payment of the invoice "a" or of another one.
func drawPayment(r *rapid.T, n int) invoice.Payment {
	p := invoice.Payment{Transfer: transfer(rapid.SampledFrom([]uint64{3, 9, 100, 400, 600, 990, 1000}).Draw(r, "amount")), InvoiceID: "a"}
	p.BlockNumber, p.LogIndex = rapid.Uint64Range(1, 8).Draw(r, "block"), n
	p.BlockTime = invoice.Unix(rapid.SampledFrom([]int64{1500, 2000, 2001}).Draw(r, "time"))
	p.Status = rapid.SampledFrom([]invoice.PaymentStatus{invoice.Pending, invoice.Confirmed, invoice.Orphaned}).Draw(r, "status")
	if rapid.IntRange(0, 5).Draw(r, "of") == 0 {
		p.InvoiceID = "b"
	}
	return p
}

// TestUnix expects seconds from any peer to become a time that can be compared and written in RFC 3339.
func TestUnix(t *testing.T) {
	t.Parallel()
	const last = 253_402_300_799 // of the year 9999
	for seconds, want := range map[int64]int64{
		0: 0, 1: 1, 1_700_000_000: 1_700_000_000, last: last, last + 1: last, math.MaxInt64: last, -1: 0, math.MinInt64: 0,
	} {
		got := invoice.Unix(seconds)
		if got.Unix() != want || invoice.UnixSeconds(got) != want || got != time.Unix(want, 0).UTC() || got.IsZero() {
			t.Errorf("Unix(%d) = %s, want %d s", seconds, got, want)
		}
		if _, err := got.MarshalText(); err != nil {
			t.Errorf("%d: %v", seconds, err)
		}
	}
	if got := invoice.UnixSeconds(time.Time{}); got != 0 {
		t.Errorf("the zero time is %d s", got)
	}
}

// TestItemOfWithoutSentBack: once the payments after the amount was due are refunded, an invoice is the same item as
// before.
func TestItemOfWithoutSentBack(t *testing.T) {
	t.Parallel()
	n := invoice.NewAmount
	type payment struct {
		at, amount uint64
	}
	for name, test := range map[string]struct {
		payments []payment
		refunded uint64
		kind     invoice.ItemKind
		version  string
	}{
		"too little":                              {[]payment{{1, 600_000}}, 0, invoice.ItemUnderpaid, "expired 600000 0"},
		"and some came late":                      {[]payment{{1, 600_000}, {101, 70_000}}, 0, invoice.ItemLate, "expired 670000 0"},
		"of which a part was refunded":            {[]payment{{1, 600_000}, {101, 70_000}}, 69_999, invoice.ItemLate, "expired 670000 69999"},
		"all of which was refunded":               {[]payment{{1, 600_000}, {101, 70_000}}, 70_000, invoice.ItemUnderpaid, "expired 600000 0"},
		"and more was refunded":                   {[]payment{{1, 600_000}, {101, 70_000}}, 70_001, invoice.ItemUnderpaid, "expired 600000 1"},
		"and all was":                             {[]payment{{1, 600_000}, {101, 70_000}}, 670_000, "", ""},
		"and some came again":                     {[]payment{{1, 600_000}, {101, 70_000}, {102, 70_000}}, 70_000, invoice.ItemLate, "expired 740000 70000"},
		"nothing in time, and the rest refunded":  {[]payment{{101, 70_000}}, 70_000, "", ""},
		"too much":                                {[]payment{{1, 1_100_000}}, 0, invoice.ItemOverpaid, "paid 1100000 0"},
		"too much, and twice":                     {[]payment{{1, 1_100_000}, {2, 50_000}}, 0, invoice.ItemDuplicate, "paid 1150000 0"},
		"too much, and twice, which was refunded": {[]payment{{1, 1_100_000}, {2, 50_000}}, 50_000, invoice.ItemOverpaid, "paid 1100000 0"},
		"twice, which was refunded":               {[]payment{{1, 1_000_000}, {2, 50_000}}, 50_000, "", ""},
	} {
		inv := invoice.Invoice{ID: "inv", Status: invoice.Open, Terms: invoice.Terms{Amount: n(1_000_000), ExpiresAt: invoice.Unix(100)}}
		var all []invoice.Payment
		for _, p := range test.payments {
			all = append(all, invoice.Payment{Transfer: invoice.Transfer{
				Position: invoice.Position{BlockNumber: p.at, BlockTime: invoice.Unix(int64(p.at))}, Amount: n(p.amount),
			}, InvoiceID: "inv", Status: invoice.Confirmed})
		}
		inv = inv.Recount(all)
		if expired, ok := inv.Expire(invoice.Unix(101)); ok {
			inv = expired.Recount(all)
		}
		inv.AmountRefunded = n(test.refunded)
		if kind, version := invoice.ItemOf(inv); kind != test.kind || version != test.version {
			t.Errorf("%s: %q %q, want %q %q", name, kind, version, test.kind, test.version)
		}
	}
}

// TestItemOfReturned: a refund made while the invoice was open does not refund a late payment.
func TestItemOfReturned(t *testing.T) {
	t.Parallel()
	n := invoice.NewAmount
	inv := invoice.Invoice{
		ID: "inv", Status: invoice.Expired, Exception: invoice.Late, AmountPaid: n(670_000), AmountRefunded: n(100_000), Terms: invoice.Terms{Amount: n(1_000_000)},
		Sums: invoice.Sums{Tally: invoice.Tally{Due: n(600_000), Returned: n(100_000)}},
	}
	if kind, version := invoice.ItemOf(inv); kind != invoice.ItemLate || version != "expired 670000 100000" {
		t.Errorf("%q %q, though nothing of what came late was refunded", kind, version)
	}
	inv.AmountRefunded = n(170_000)
	if kind, version := invoice.ItemOf(inv); kind != invoice.ItemUnderpaid || version != "expired 600000 100000" {
		t.Errorf("%q %q, after it was refunded", kind, version)
	}
}

func TestTimezones(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"} {
		if err := invoice.CheckTimezone(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := (invoice.Merchant{Timezone: name}).Zone().String(); got != name {
			t.Errorf("the zone of %s is %s", name, got)
		}
	}
	for _, name := range []string{"Local", "local", "Berlin", "../etc/passwd", "Europe/Berlin ", strings.Repeat("a", invoice.MaxTimezone+1), "\x00"} {
		if err := invoice.CheckTimezone(name); err == nil {
			t.Errorf("%q is a time zone", name)
		}
	}
	if got := (invoice.Merchant{}).Zone().String(); got != "UTC" {
		t.Errorf("without a time zone: %s", got)
	}
}
