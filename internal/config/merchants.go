package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
)

type merchantFile struct {
	ID                string              `yaml:"id"`
	WebhookURL        string              `yaml:"webhookUrl"`
	WebhookSecretEnv  string              `yaml:"webhookSecretEnv"`
	WebhookSecretFile string              `yaml:"webhookSecretFile"`
	WebhookHeaders    []webhookHeaderFile `yaml:"webhookHeaders"`
	Tolerance         scalar              `yaml:"tolerance"`
	Collection        string              `yaml:"collection"`
	OptionalEvents    []string            `yaml:"optionalEvents"`

	AllowedAddresses []allowedFile `yaml:"allowedAddresses"`
	ReturnHosts      []string      `yaml:"returnHosts"`
	EmbedOrigins     []string      `yaml:"embedOrigins"`
	Timezone         string        `yaml:"timezone"`
	ReminderHours    []int         `yaml:"reminderHours"`
}

func (r *resolver) merchant(path string, m *merchantFile, chains []chainFile) access.MerchantSettings {
	if !invoice.ValidMerchantID(m.ID) {
		r.fail(path+".id", "is %q; want 1 to %d characters of A-Z, a-z, 0-9, '_', '.' and '-'", m.ID, invoice.MaxMerchantID)
	}
	out := access.MerchantSettings{WebhookURL: m.WebhookURL, OptionalEvents: r.optionalEvents(path+".optionalEvents", m.OptionalEvents)}
	switch secretless := m.WebhookSecretEnv == "" && m.WebhookSecretFile == ""; {
	case m.WebhookURL != "":
		if err := CheckWebhookURL(m.WebhookURL); err != nil {
			r.fail(path+".webhookUrl", "%w", err)
		}
		out.WebhookSecret = r.webhookSecret(path+".webhookSecret", m.WebhookSecretEnv, m.WebhookSecretFile)
		out.WebhookHeaders = r.webhookHeaders(path+".webhookHeaders", m.WebhookHeaders)
	case len(m.WebhookHeaders) > 0:
		r.fail(path+".webhookUrl", "is missing, but there are webhookHeaders; leave them out when the URL is set through the API")
	case !secretless:
		r.fail(path+".webhookUrl", "is missing, but the secret is there; leave out both when the URL is set through the API, which makes the secret")
	}
	out.ReturnHosts, out.EmbedOrigins, out.Timezone = m.ReturnHosts, m.EmbedOrigins, m.Timezone
	out.ReminderHours = slices.Sorted(slices.Values(m.ReminderHours))
	for _, err := range []error{
		invoice.CheckReturnHosts(m.ReturnHosts), invoice.CheckEmbedOrigins(m.EmbedOrigins), invoice.CheckTimezone(m.Timezone), invoice.CheckReminderHours(m.ReminderHours),
	} {
		if wrong := (*invoice.FieldError)(nil); errors.As(err, &wrong) {
			r.fail(path+"."+wrong.Field, "%s", wrong.Detail)
		}
	}
	var err error
	if out.Tolerance, err = invoice.ParseTolerance(string(m.Tolerance)); err != nil {
		r.fail(path+".tolerance", "is %q; %w", m.Tolerance, err)
	}
	if out.Collection = invoice.Collection(cmp.Or(m.Collection, string(invoice.Direct))); invoice.CheckCollection(out.Collection) != nil {
		r.fail(path+".collection", "is %q; want direct or deposit", m.Collection)
	}
	m.Tolerance, m.Collection, m.Timezone = cmp.Or(m.Tolerance, "0"), string(out.Collection), cmp.Or(m.Timezone, "UTC")
	out.Allowed = r.allowed(path+".allowedAddresses", m.AllowedAddresses, chains)
	return out
}

// optionalEvents reads the optional event types that a merchant receives.
func (r *resolver) optionalEvents(path string, names []string) (all []invoice.EventType) {
	for i, name := range names {
		if typ := invoice.EventType(name); slices.Contains(invoice.OptionalEventTypes, typ) {
			all = append(all, typ)
		} else {
			r.fail(fmt.Sprintf("%s[%d]", path, i), "is %q; want %s", name, invoice.EventUnattributed)
		}
	}
	return all
}

// allowed reads the addresses that a merchant's invoices may settle to.
func (r *resolver) allowed(path string, files []allowedFile, chains []chainFile) (all []invoice.AllowedAddress) {
	switch n := len(files); {
	case files == nil:
		return nil
	case n < 1 || n > invoice.MaxAllowedAddresses:
		r.fail(path, "has %d; want 1 to %d addresses; without the list every address is allowed", n, invoice.MaxAllowedAddresses)
	}
	for i, f := range files {
		at := fmt.Sprintf("%s[%d]", path, i)
		if !slices.ContainsFunc(chains, func(c chainFile) bool { return c.ChainKey == f.ChainKey }) {
			r.fail(at+".chainKey", "is %q, which is not among the chains", f.ChainKey)
		}
		wrong := len(r.errs)
		a := invoice.AllowedAddress{ChainKey: f.ChainKey, Address: r.address(at+".address", f.Address)}
		switch {
		case slices.Contains(all, a):
			r.fail(at, "is given twice")
		case a.Address.IsZero() && len(r.errs) == wrong:
			r.fail(at+".address", "must not be the zero address")
		}
		all = append(all, a)
	}
	return all
}
