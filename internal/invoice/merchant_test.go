package invoice_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

var (
	home, bank, thief = invoice.Address{1}, invoice.Address{2}, invoice.Address{3}
	monday            = time.Unix(1_764_000_000, 0).UTC()
)

func onBase(all ...invoice.Address) (list []invoice.AllowedAddress) {
	for _, a := range all {
		list = append(list, invoice.AllowedAddress{ChainKey: "base", Address: a})
	}
	return list
}

// TestAllowedAddresses changes a list of addresses, and checks it over time.
func TestAllowedAddresses(t *testing.T) {
	const delay = 24 * time.Hour
	m := invoice.Merchant{ID: "acme", Name: "Acme", DefaultAddresses: map[string]invoice.Address{"base": home}}
	change := func(c invoice.MerchantChange, at time.Time) {
		t.Helper()
		var err error
		if m, err = m.Change(c, at, delay); err != nil {
			t.Fatal(err)
		}
	}
	allows := func(when string, at time.Time, want ...invoice.Address) {
		t.Helper()
		for _, a := range []invoice.Address{home, bank, thief} {
			wanted := false
			for _, w := range want {
				wanted = wanted || a == w
			}
			if got := m.At(at).Allows("base", a); got != wanted {
				t.Errorf("%s: %s is allowed: %t", when, a, got)
			}
		}
	}
	allows("without a list", monday, home, bank, thief)
	change(invoice.MerchantChange{Allowed: onBase(bank, home, bank)}, monday)
	allows("the first list", monday, home, bank)
	if m.Allows("polygon", home) {
		t.Error("an address is allowed on another chain")
	}
	change(invoice.MerchantChange{Allowed: onBase(home, thief)}, monday)
	allows("pending", monday.Add(delay-time.Second), home, bank)
	allows("effective", monday.Add(delay), home, thief)
	change(invoice.MerchantChange{Allowed: onBase(thief, home)}, monday.Add(time.Hour))
	allows("pending and repeated", monday.Add(delay), home, thief)
	change(invoice.MerchantChange{Allowed: onBase(home, bank)}, monday.Add(time.Hour))
	if m.Pending != nil {
		t.Error("the list in force does not cancel the pending one")
	}
	allows("cancelled", monday.Add(2*delay), home, bank)
	change(invoice.MerchantChange{Allowed: onBase(home, thief)}, monday)
	change(invoice.MerchantChange{Allowed: onBase(home)}, monday.Add(delay-time.Second))
	allows("replaced before it was effective", monday.Add(delay), home, bank)
	allows("the last one", monday.Add(2*delay), home)
	change(invoice.MerchantChange{Allowed: onBase(home, bank), Immediately: true}, monday.Add(time.Hour))
	allows("at once", monday.Add(time.Hour), home, bank)
	change(invoice.MerchantChange{Allowed: onBase(home, bank, thief)}, monday)
	name := "Acme Ltd"
	change(invoice.MerchantChange{Name: &name}, monday.Add(delay))
	if diff := cmp.Diff(onBase(home, bank, thief), m.Allowed); diff != "" || m.Pending != nil {
		t.Errorf("a change after the pending list is effective: %+v, -want +got:\n%s", m.Pending, diff)
	}
}

// TestDefaultAddressesWait changes default addresses as an owner does, and checks them over time.
func TestDefaultAddressesWait(t *testing.T) {
	const delay = 24 * time.Hour
	m := invoice.Merchant{ID: "acme", Name: "Acme"}
	change := func(c invoice.MerchantChange, at time.Time) {
		t.Helper()
		c.DelayDefaults = true
		var err error
		if m, err = m.Change(c, at, delay); err != nil {
			t.Fatal(err)
		}
	}
	at := func(when string, at time.Time, want map[string]invoice.Address) {
		t.Helper()
		expect.NoDiff(t, cmp.Diff(want, m.At(at).DefaultAddresses), "%s", when)
	}
	type defaults = map[string]invoice.Address
	first, both, other := defaults{"base": home}, defaults{"base": home, "polygon": bank}, defaults{"base": bank}
	change(invoice.MerchantChange{DefaultAddresses: first}, monday)
	at("the first", monday, first)
	change(invoice.MerchantChange{DefaultAddresses: both}, monday)
	at("another chain", monday, both)
	change(invoice.MerchantChange{DefaultAddresses: first}, monday)
	at("removed", monday.Add(delay-time.Second), both)
	at("removed and effective", monday.Add(delay), first)
	change(invoice.MerchantChange{DefaultAddresses: first}, monday.Add(time.Hour))
	at("repeated", monday.Add(delay), first)
	change(invoice.MerchantChange{DefaultAddresses: both}, monday.Add(time.Hour))
	at("cancelled", monday.Add(2*delay), both)
	m.DefaultAddresses = first
	change(invoice.MerchantChange{Allowed: onBase(home, bank)}, monday) // the first list, as a thief would make it
	change(invoice.MerchantChange{DefaultAddresses: other}, monday)
	at("an address of the first list", monday.Add(delay-time.Second), first)
	if _, err := m.Change(invoice.MerchantChange{Allowed: onBase(home), Immediately: true}, monday, delay); err == nil {
		t.Error("a list lacks the default address that is pending")
	}
	change(invoice.MerchantChange{DefaultAddresses: first}, monday)
	change(invoice.MerchantChange{Allowed: onBase(home, thief)}, monday)
	change(invoice.MerchantChange{DefaultAddresses: defaults{"base": thief}}, monday.Add(time.Hour)) // the list is in force before
	if _, err := m.Change(invoice.MerchantChange{Allowed: onBase(home, thief, bank)}, monday.Add(2*time.Hour), delay); err == nil {
		t.Error("the default address is in force before the list")
	}
	at("list and default", monday.Add(delay+time.Hour), defaults{"base": thief})
}

func TestMerchantChangeErrors(t *testing.T) {
	text := func(s string) *string { return &s }
	start, err := invoice.Merchant{ID: "acme"}.Change(invoice.MerchantChange{
		Name: text("Acme"), DefaultAddresses: map[string]invoice.Address{"base": home}, Allowed: onBase(home, bank),
	}, monday, time.Hour)
	expect.OK(t, err)
	for name, c := range map[string]struct {
		change invoice.MerchantChange
		field  string
	}{
		"no name":                    {invoice.MerchantChange{Name: text("")}, "name"},
		"invisible name":             {invoice.MerchantChange{Name: text(" \u200b")}, "name"},
		"long name":                  {invoice.MerchantChange{Name: text(strings.Repeat("é", 201))}, "name"},
		"direction":                  {invoice.MerchantChange{Name: text("Acme \u202egnp.exe")}, "name"},
		"color":                      {invoice.MerchantChange{Color: text("red")}, "color"},
		"color with more":            {invoice.MerchantChange{Color: text("#112233;}")}, "color"},
		"contact":                    {invoice.MerchantChange{SupportContact: text("javascript:alert(1)")}, "supportContact"},
		"plain contact":              {invoice.MerchantChange{SupportContact: text("http://acme.example")}, "supportContact"},
		"contact with a name":        {invoice.MerchantChange{SupportContact: text("Acme <help@acme.example>")}, "supportContact"},
		"statement":                  {invoice.MerchantChange{Statement: text("a\tb")}, "statement"},
		"empty list":                 {invoice.MerchantChange{Allowed: []invoice.AllowedAddress{}}, "allowedAddresses"},
		"empty list at once":         {invoice.MerchantChange{Allowed: []invoice.AllowedAddress{}, Immediately: true}, "allowedAddresses"},
		"without the default":        {invoice.MerchantChange{Allowed: onBase(bank)}, "allowedAddresses"},
		"default on another chain":   {invoice.MerchantChange{Allowed: []invoice.AllowedAddress{{ChainKey: "polygon", Address: home}}}, "allowedAddresses"},
		"zero":                       {invoice.MerchantChange{Allowed: onBase(home, invoice.Address{})}, "allowedAddresses"},
		"too many":                   {invoice.MerchantChange{Allowed: many(51)}, "allowedAddresses"},
		"default that is not listed": {invoice.MerchantChange{DefaultAddresses: map[string]invoice.Address{"base": thief}}, "allowedAddresses"},
		"zero default":               {invoice.MerchantChange{DefaultAddresses: map[string]invoice.Address{"base": {}}}, "defaultAddresses"},
	} {
		_, err := start.Change(c.change, monday, time.Hour)
		field := (*invoice.FieldError)(nil)
		if !errors.As(err, &field) || field.Field != c.field {
			t.Errorf("%s: %v, want an error of %s", name, err, c.field)
		}
	}
	pending, err := start.Change(invoice.MerchantChange{Allowed: onBase(home, thief)}, monday, time.Hour)
	expect.OK(t, err)
	if _, err := pending.Change(invoice.MerchantChange{DefaultAddresses: map[string]invoice.Address{"base": thief}}, monday, time.Hour); err == nil {
		t.Error("a default address is one of the pending list alone")
	}
	if _, err := pending.Change(invoice.MerchantChange{DefaultAddresses: map[string]invoice.Address{"base": bank}}, monday, time.Hour); err == nil {
		t.Error("a default address is one that the pending list leaves out")
	}
	for _, contact := range []string{"", "help@acme.example", "https://acme.example/help?x=1", "+1 202 555 0100"} {
		if m, err := start.Change(invoice.MerchantChange{SupportContact: &contact, Color: text("#AABBCC")}, monday, time.Hour); err != nil || m.Color != "#aabbcc" {
			t.Errorf("%q: %v, color %s", contact, err, m.Color)
		}
	}
}

func many(n int) (list []invoice.AllowedAddress) {
	for i := range n {
		list = append(list, onBase(invoice.Address{1, byte(i)})...)
	}
	return append(list, onBase(home)...)
}

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
