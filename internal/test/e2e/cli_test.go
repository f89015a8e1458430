package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestCommandLine runs a merchant's day on the command line, through the API of a world.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	w, _ := startWorld(t, "--block-time", quick)
	info := w.info.Load()
	command := func(args ...string) string {
		t.Helper()
		c := launch(t, append(args, "--url", info.BaseURL)...)
		if code := c.exit(t, patience); code != 0 {
			t.Fatalf("%q: exit code %d", args, code)
		}
		return c.stdout.String()
	}
	read := func(into any, args ...string) {
		t.Helper()
		if err := json.Unmarshal([]byte(command(append(args, "--json")...)), into); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
	}
	wants := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%q is missing in\n%s", part, text)
			}
		}
	}

	wants(command("merchants", "create", "acme", "--name", "Acme", "--default-address", "local="+info.Merchant.Address), "default address  local="+info.Merchant.Address)
	wants(command("merchants", "update", "acme", "--statement", "Thank you", "--tolerance", "0.5%"), "Thank you", "0.5%")
	wants(command("merchants", "list"), "acme           database  Acme")

	var key apitypes.KeySecretResponse
	read(&key, "keys", "create", "--name", "till", "--merchant", "acme", "--expires", "12h")
	wants(command("keys", "list", "--merchant", "acme"), key.Key.ID, "till", "active")
	var second apitypes.KeySecretResponse
	read(&second, "keys", "rotate", key.Key.ID, "--overlap", "1h")
	wants(command("keys", "revoke", key.Key.ID), key.Key.ID+" is revoked")
	wants(command("keys", "list", "--merchant", "acme", "--all"), "revoked", second.Key.ID)

	var made apitypes.CreateInvoiceResponse
	read(&made, "invoices", "create", "--merchant", "acme", "--chain", "local", "--amount", "4.90", "--item", "Coffee=4.90", "--reference", "A-17", "--metadata", "table=7")
	wants(command("invoices", "list", "--merchant", "acme"), made.ID, "open", "4.90 USDC", "A-17")
	wants(command("invoices", "list", "--reference", "A-17"), made.ID)
	var draft apitypes.CreateInvoiceResponse
	read(&draft, "invoices", "create", "--draft", "--merchant", "acme", "--chain", "local", "--amount", "1")
	wants(command("invoices", "finalize", draft.ID), draft.ID+"  open", "/checkout/"+draft.ID)
	wants(command("invoices", "void", draft.ID), draft.ID+" is void.")
	wants(command("invoices", "show", made.ID), "Coffee: 4.90 USDC", "A-17")
	answer, err := w.http.PostForm(w.url(made.CheckoutURL+"/test-payment"), url.Values{})
	expect.OK(t, err)
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the test payment: %s %v", answer.Status, err)
	}
	wants(command("invoices", "watch", made.ID), "paid  paid 4.9")
	var payments apitypes.PaymentList
	read(&payments, "payments", "list", "--merchant", "acme")
	if len(payments.Payments) != 1 || payments.Payments[0].InvoiceID != made.ID {
		t.Fatalf("the payments are %+v", payments)
	}
	wants(command("payments", "show", payments.Payments[0].ID), made.ID, payments.Payments[0].TxHash)

	payment := payments.Payments[0].ID
	var prepared apitypes.RefundResponse
	read(&prepared, "refunds", "prepare", payment, "--amount", "1.50", "--reason", "one cup was broken")
	if prepared.Refund.Amount != "1500000" || prepared.Transaction == nil {
		t.Errorf("the refund is %+v", prepared)
	}
	safe := filepath.Join(t.TempDir(), "safe.json")
	wants(command("refunds", "show", prepared.Refund.ID, "--safe", safe), "1.50 USDC", prepared.Transaction.Data, prepared.Transaction.Link)
	if text, err := os.ReadFile(safe); err != nil || !json.Valid(text) {
		t.Errorf("the batch file: %s %v", text, err)
	}
	wants(command("refunds", "list", "--payment", payment), prepared.Refund.ID, "pending")
	wants(command("refunds", "cancel", prepared.Refund.ID), "canceled")
	wants(command("refunds", "prepare", payment, "--ask-payer"), "awaiting_address", "the payer's page")
}
