package invoice_test

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

func TestContactURL(t *testing.T) {
	t.Parallel()
	for contact, want := range map[string]string{
		"":                                "",
		"help@acme.example":               "mailto:help@acme.example",
		"a?cc=b&bcc=c%0a@acme.example":    "mailto:a%3Fcc=b&bcc=c%250a@acme.example",
		"https://acme.example/help?x=1&y": "https://acme.example/help?x=1&y",
		"+12025550":                       "tel:+12025550",
		"+1 202 555 0100":                 "tel:+12025550100",
		"+44 (20) 7946-0958":              "tel:+442079460958",
		"+49.30/123456":                   "tel:+4930123456",
		"+123456789012345":                "tel:+123456789012345",
		"+1234567890123456":               "", // 16 digits
		"+123456":                         "", // 6 digits
		"+0123456789":                     "",
		"202 555 0100":                    "",
		"+1 202 555 0100;ext=7":           "",
		"+1   202 555 0100":               "",
		"http://acme.example":             "",
		"https://user@acme.example":       "",
		"https://":                        "",
		"javascript:alert(1)":             "",
		"tel:+12025550100":                "",
		"mailto:help@acme.example":        "",
		"Acme <help@acme.example>":        "",
		"help@acme.example\r\nBcc: x@y.z": "",
	} {
		if got := invoice.ContactURL(contact); got != want {
			t.Errorf("%q leads to %q, want %q", contact, got, want)
		}
	}
	longest := strings.Repeat("a", 64) + "@" + strings.Repeat("a.", (invoice.MaxSupportContact-65-2)/2) + "io"
	longest += strings.Repeat("o", invoice.MaxSupportContact-len(longest))
	if invoice.ContactURL(longest) == "" || invoice.ContactURL(longest+"o") != "" {
		t.Errorf("the limit is not %d bytes", invoice.MaxSupportContact)
	}
}

func TestStatementHasSeveralLines(t *testing.T) {
	t.Parallel()
	change := func(statement string) (invoice.Merchant, error) {
		return invoice.Merchant{ID: "acme", Name: "Acme"}.Change(invoice.MerchantChange{Statement: &statement}, monday, 0)
	}
	m, err := change("Acme Ltd\r\n1 Main St\nVAT GB 123")
	if err != nil || m.Statement != "Acme Ltd\n1 Main St\nVAT GB 123" {
		t.Errorf("%q, %v", m.Statement, err)
	}
	lines := func(n int) string { return strings.TrimSuffix(strings.Repeat("a\n", n), "\n") }
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{lines(10), true}, // as the documents name the limit
		{lines(11), false},
		{strings.Repeat("é", invoice.MaxStatement), true},
		{strings.Repeat("é", invoice.MaxStatement+1), false},
		{"a\rb", false}, {"a\tb", false}, {"a\u202eb", false},
	} {
		if _, err := change(c.text); (err == nil) != c.ok {
			t.Errorf("a statement of %d bytes: %v", len(c.text), err)
		}
	}
}
