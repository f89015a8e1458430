package facilitator

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/x402"
)

// TestWaiting fills the slots of one invoice, and all of them.
func TestWaiting(t *testing.T) {
	t.Parallel()
	w := waiting{byInvoice: make(map[string]int)}
	var leave []func()
	enter := func(invoiceID string, want bool) {
		t.Helper()
		left, ok := w.enter(invoiceID)
		if ok != want {
			t.Errorf("a request for %q waits: %v, want %v", invoiceID, ok, want)
		}
		if ok {
			leave = append(leave, left)
		}
	}
	for range MaxWaitingForInvoice {
		enter("inv_1", true)
	}
	enter("inv_1", false)
	for n := range MaxWaiting - MaxWaitingForInvoice {
		enter("inv_x"+strings.Repeat("x", n), true)
	}
	enter("inv_2", false)
	leave[0]()
	leave[0] = leave[len(leave)-1]
	leave = leave[:len(leave)-1]
	enter("inv_1", true)
	for _, left := range leave {
		left()
	}
	if w.total != 0 || len(w.byInvoice) != 0 {
		t.Errorf("afterwards %d wait: %v", w.total, w.byInvoice)
	}
}

// TestResource expects that each URL has a reference of its own.
func TestResource(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, url := range []string{
		"", "https://shop.example/a", "https://shop.example/ a", "https://shop.example/\x00", "https://shop.example/\x01", "\x00",
		"https://shop.example/" + strings.Repeat("a", 300), "https://shop.example/" + strings.Repeat("a", 301), strings.Repeat("ü", 1000), "\xff",
	} {
		got := purchase{Request: x402.Request{Payment: x402.Payment{Resource: url}}}.resource()
		if err := invoice.CheckLabel("reference", got); err != nil {
			t.Errorf("%.40q is %q, which is no reference: %v", url, got, err)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%.40q and %.40q are both %q", url, other, got)
		}
		seen[got] = url
	}
}
