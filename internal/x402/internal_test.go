package x402

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestWaiting has payers wait for a block: for one invoice, from one address, at one merchant, and everywhere. A payer
// without a waiting request can wait until there is no room at all.
func TestWaiting(t *testing.T) {
	t.Parallel()
	w := limits.NewShares[limits.Party]("x402_waiting", MaxWaiting)
	from := func(address string) context.Context {
		return limits.NewContext(t.Context(), netip.MustParseAddr(address))
	}
	n := 0
	// fill starts requests that wait for new invoices of a merchant, as many as allowed, and returns their number.
	fill := func(ctx context.Context, merchant string) (taken int) {
		for ; ; taken++ {
			n++
			if w.Take(1, waitingFor(ctx, ledger.Authorization{InvoiceID: fmt.Sprint("inv_", n), MerchantID: merchant})...) != nil {
				return taken
			}
		}
	}
	one := waitingFor(from("203.0.113.1"), ledger.Authorization{InvoiceID: "inv_one", MerchantID: "acme"})
	for range MaxWaitingForInvoice {
		expect.OK(t, w.Take(1, one...))
	}
	if err := w.Take(1, one...); err == nil {
		t.Error("more wait for one invoice than may")
	}
	total := MaxWaitingForInvoice + fill(from("203.0.113.1"), "acme")
	expect.Equal(t, total, MaxWaiting/4, "one client waits … times at one merchant:")
	for i := range 200 {
		total += fill(from(fmt.Sprint("198.51.100.", i)), "acme")
	}
	expect.Equal(t, total, MaxWaiting/2, "the payers of one merchant wait … times:")
	for i := range 200 {
		total += fill(from(fmt.Sprint("192.0.2.", i)), fmt.Sprint("merchant", i))
	}
	expect.Equal(t, total, MaxWaiting, "all together wait … times:")
	w.Give(1, one...)
	if err := w.Take(1, waitingFor(from("192.0.2.250"), ledger.Authorization{InvoiceID: "inv_x", MerchantID: "new"})...); err != nil {
		t.Errorf("what was left is not free again: %v", err)
	}
}

// TestResource expects a distinct reference for each URL.
func TestResource(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, url := range []string{
		"", "https://shop.example/a", "https://shop.example/ a", "https://shop.example/\x00", "https://shop.example/\x01", "\x00",
		"https://shop.example/" + strings.Repeat("a", 300), "https://shop.example/" + strings.Repeat("a", 301), strings.Repeat("ü", 1000), "\xff",
	} {
		got := purchase{Request: Request{Payment: Payment{Resource: url}}}.resource()
		if err := invoice.CheckLabel("reference", got); err != nil {
			t.Errorf("%.40q is %q, which is no reference: %v", url, got, err)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%.40q and %.40q are both %q", url, other, got)
		}
		seen[got] = url
	}
}
