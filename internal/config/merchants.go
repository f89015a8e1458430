package config

import (
	"fmt"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

func (r *resolver) merchant(path string, m merchantFile) Merchant {
	if !invoice.ValidMerchantID(m.ID) {
		r.fail(path+".id", "is %q; want 1 to %d characters of A-Z, a-z, 0-9, '_', '.' and '-'", m.ID, invoice.MaxMerchantID)
	}
	out := Merchant{ID: m.ID, WebhookURL: m.WebhookURL}
	switch secretless := m.WebhookSecretEnv == "" && m.WebhookSecretFile == ""; {
	case m.WebhookURL != "":
		if err := CheckWebhookURL(m.WebhookURL); err != nil {
			r.fail(path+".webhookUrl", "%w", err)
		}
		out.WebhookSecret = r.webhookSecret(path+".webhookSecret", m.WebhookSecretEnv, m.WebhookSecretFile)
	case !secretless:
		r.fail(path+".webhookUrl", "is missing, but the secret is there; leave out both when the URL is set through the API, which makes the secret")
	}
	for i, name := range m.OptionalEvents {
		if typ := invoice.EventType(name); slices.Contains(invoice.OptionalEventTypes, typ) {
			out.OptionalEvents = append(out.OptionalEvents, typ)
		} else {
			r.fail(fmt.Sprintf("%s.optionalEvents[%d]", path, i), "is %q; want %s", name, invoice.EventUnattributed)
		}
	}
	var err error
	if out.Tolerance, err = invoice.ParseTolerance(string(m.Tolerance)); err != nil {
		r.fail(path+".tolerance", "is %q; %w", m.Tolerance, err)
	}
	return out
}
