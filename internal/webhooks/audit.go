package webhooks

import (
	"context"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// update changes a merchant's endpoint in one transaction with its audit entry.
func (d *Directory) update(ctx context.Context, action access.Action, merchantID string, change func(tx *db.Tx) error) error {
	return d.conf.Store.Update(ctx, func(tx *db.Tx) error {
		if err := lockEndpoint(ctx, tx, merchantID); err != nil {
			return err
		}
		before, err := d.auditView(ctx, tx, merchantID)
		if err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		after, err := d.auditView(ctx, tx, merchantID)
		if err != nil {
			return err
		}
		return access.AppendAudit(ctx, tx, access.NewEntry(ctx, d.conf.Now(), access.Change{
			MerchantID: merchantID, Action: action, Object: merchantID, Before: before, After: after,
		}))
	})
}

// auditedEndpoint is an endpoint in the audit log, without the values of its secrets.
type auditedEndpoint struct {
	URL            string              `json:"url"` // without the query, which may hold a secret
	OptionalEvents []invoice.EventType `json:"optionalEvents,omitempty"`
	Secrets        []auditedSecret     `json:"secrets"`           // newest first
	Headers        []string            `json:"headers,omitempty"` // the names of its headers
}

type auditedSecret struct {
	Version int64       `json:"version"`
	State   SecretState `json:"state"`
}

// auditView returns a merchant's endpoint for the audit log, or nil if the merchant has no endpoint.
func (d *Directory) auditView(ctx context.Context, tx *db.Tx, merchantID string) (any, error) {
	rows, err := endpoints(ctx, tx, []string{merchantID})
	row, ok := rows[merchantID]
	if err != nil || !ok {
		return nil, err
	}
	v := auditedEndpoint{URL: access.WithoutQuery(row.URL), OptionalEvents: row.Optional, Secrets: make([]auditedSecret, len(row.Secrets))}
	for i, s := range row.Secrets {
		v.Secrets[i] = auditedSecret{Version: s.Version, State: s.State}
	}
	headers, err := d.headers(row.Headers)
	if err != nil { // an endpoint that cannot be read can still be replaced
		headers = []access.WebhookHeader{{Name: "(unreadable)"}}
	}
	if len(headers) > 0 {
		v.Headers = namesOf(headers)
	}
	return v, nil
}
