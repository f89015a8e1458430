package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/webhook"
)

// sendNotice posts a signed notice.
func (w *world) sendNotice(body string) answer {
	w.Helper()
	return w.do(http.MethodPost, "/api/webhooks/circle", body, "Content-Type", "application/json",
		webhook.HeaderProviderSignature, webhook.Sign(w.info.Load().Provider.WebhookSecret, time.Now(), []byte(body)))
}

// linked returns the payment that a stored notice is linked to; stored is false unless
// there is exactly one such notice.
func (w *world) linked(transferID string) (payment string, stored bool) {
	w.Helper()
	conn := dbtest.SQL(w, "sqlite:"+w.dir+"/quittance.db")
	var n int
	err := conn.QueryRowContext(w.Context(),
		"SELECT count(*), COALESCE(max(payment_id), '') FROM notices WHERE transfer_id = $1", transferID).Scan(&n, &payment)
	if err != nil {
		w.Fatal(err)
	}
	return payment, n == 1
}

// TestExtraNotices sends notices of transfers before and after these are mined, and of some
// that never are.
func TestExtraNotices(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w, _ := startWorld(t, "--block-time", quick, "--webhook-url", r.URL)
	r.setSecret(w.info.Load().Merchant.WebhookSecret)
	ctx := within(t, patience)
	made := w.create(w.draft("5000000"))

	for name, body := range map[string]string{
		"before the transfer":    w.notice("early", major(t, made.Invoice.TransferAmount), "USD", "LOCAL"),
		"again":                  w.notice("early", major(t, made.Invoice.TransferAmount), "USD", "LOCAL"),
		"of an unknown chain":    w.notice("elsewhere", "5.00", "USD", "DOGE"),
		"of an unknown coin":     w.notice("oddly", "5.00", "DOGE", "LOCAL"),
		"of another chain":       w.notice("base", "5.00", "USD", "BASE"),
		"of the invoice's sum":   w.notice("sum", "5", "USDC", "local"),
		"of money never to come": w.notice("never", "123456789.000001", "USD", "LOCAL"),
	} {
		got := decoded[map[string]any](t, w.sendNotice(body), http.StatusOK)
		if len(got) != 1 || got["ok"] != true {
			t.Errorf("a notice %s: %v", name, got)
		}
	}
	if inv, err := w.api().Invoice(ctx, made.ID); err != nil || inv.Status != apitypes.StatusOpen || inv.AmountPaid != "0" {
		t.Errorf("notices alone made of the invoice %+v, %v", inv, err)
	}
	tx := w.payer().mustTransfer(t, w.info.Load().Merchant.Address, made.Invoice.TransferAmount, nil)
	r.await(ctx, webhook.InvoicePaid, made.ID)
	decoded[map[string]any](t, w.sendNotice(w.notice("late", major(t, made.Invoice.TransferAmount), "USD", "LOCAL")), http.StatusOK)
	payment := ""
	for p, err := range w.api().Payments(ctx, client.PaymentFilter{}) {
		if err != nil || payment != "" || p.TxHash != tx.Hex() {
			t.Errorf("the payment %+v, %v", p, err)
		}
		payment = p.ID
	}
	for id, want := range map[string]string{
		"early": payment, "late": "", // one notice of a payment is linked
		"elsewhere": "", "oddly": "", "base": "", "sum": "", "never": "",
	} {
		if got, stored := w.linked(id); !stored || got != want {
			t.Errorf("the notice %q: stored once is %t, linked to %q; want %q", id, stored, got, want)
		}
	}
	r.clean()
}

// major formats minor units of USDC as a decimal number.
func major(tb testing.TB, minor string) string {
	tb.Helper()
	digits := units(tb, minor).String()
	return digits[:len(digits)-6] + "." + digits[len(digits)-6:]
}
