package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// MaxURL is the maximum length of an endpoint's URL, in bytes.
const MaxURL = 2048

// View is an endpoint without the values of its secrets.
type View struct {
	MerchantID string
	URL        string
	Configured bool                // set in the configuration
	ChangedAt  time.Time           // zero if configured
	Optional   []invoice.EventType // optional event types that it receives
	Secrets    []SecretRow         // secrets that sign, newest first; empty if configured
	Headers    []string            // names of its custom headers
	Breaker    Breaker
}

// View returns a merchant's endpoint. The error is ErrNone if the merchant has no endpoint.
func (d *Directory) View(ctx context.Context, merchantID string) (View, error) {
	v := View{MerchantID: merchantID}
	if !d.conf.Known(merchantID) {
		return v, ErrNone
	}
	rows, err := endpoints(ctx, d.conf.Store, []string{merchantID})
	if err != nil {
		return v, err
	}
	row, set := rows[merchantID]
	switch configured := d.conf.Configured[merchantID]; {
	case configured.WebhookURL != "":
		v.URL, v.Configured, v.Headers = configured.WebhookURL, true, namesOf(configured.WebhookHeaders)
	case set:
		if v, err = d.viewOf(row); err != nil {
			return v, err
		}
	case d.conf.Fallback.URL != "":
		v.URL, v.Configured, v.Headers = d.conf.Fallback.URL, true, namesOf(d.conf.Fallback.Headers)
	default:
		return v, ErrNone
	}
	v.Optional = d.OptionalEvents(merchantID, row.Optional)
	breakers, err := d.conf.Breakers(ctx, []string{merchantID})
	v.Breaker = breakers[merchantID]
	return v, err
}

// viewOf returns an endpoint that is not configured, without its breaker.
func (d *Directory) viewOf(row EndpointRow) (View, error) {
	headers, err := d.headers(row.Headers)
	if err != nil {
		return View{}, err
	}
	v := View{MerchantID: row.MerchantID, URL: row.URL, ChangedAt: row.ChangedAt, Headers: namesOf(headers), Breaker: NewBreaker}
	v.Optional = d.OptionalEvents(row.MerchantID, row.Optional)
	for _, r := range row.Secrets {
		if r.State != SecretRetiring || r.ValidUntil.After(d.conf.Now()) {
			v.Secrets = append(v.Secrets, r)
		}
	}
	return v, nil
}

// viewIn returns the endpoint that a transaction has set. A read after the commit could fail, and a new secret would be
// lost.
func (d *Directory) viewIn(ctx context.Context, tx *db.Tx, merchantID string) (View, error) {
	rows, err := endpoints(ctx, tx, []string{merchantID})
	if err != nil {
		return View{}, err
	}
	return d.viewOf(rows[merchantID])
}

// Settings are a merchant's settings of its endpoint.
type Settings struct {
	URL      string
	Optional []invoice.EventType // optional event types; nil keeps the current ones
	Headers  []HeaderChange      // all custom headers; nil keeps the current ones, at the same origin
}

// Put sets a merchant's endpoint. The first Put of a merchant generates a secret and returns it; later ones return "".
// Errors are ErrNone, ErrConfigured, ErrNoMasterKey, and *invoice.FieldError for the settings.
func (d *Directory) Put(ctx context.Context, merchantID string, set Settings) (v View, secret string, err error) {
	switch {
	case !d.conf.Known(merchantID):
		return v, "", ErrNone
	case d.conf.Configured[merchantID].WebhookURL != "":
		return v, "", ErrConfigured
	case d.conf.Keyring == nil:
		return v, "", ErrNoMasterKey
	}
	if err := d.checkURL(set.URL); err != nil {
		return v, "", &invoice.FieldError{Field: "url", Detail: err.Error()}
	}
	if err := checkOptional(set.Optional); err != nil {
		return v, "", err
	}
	secret, seal, err := d.newSecret(merchantID)
	if err != nil {
		return v, "", err
	}
	row := EndpointRow{MerchantID: merchantID, URL: set.URL, Optional: set.Optional, ChangedAt: d.conf.Now()}
	var first bool
	err = d.update(ctx, access.ActionEndpointUpdate, merchantID, func(tx *db.Tx) (err error) {
		before, err := endpoints(ctx, tx, []string{merchantID})
		if err != nil {
			return err
		}
		if first, err = PutEndpoint(ctx, tx, row, seal); err != nil {
			return err
		}
		if err := d.putHeaders(ctx, tx, merchantID, set.Headers, sameOrigin(before[merchantID].URL, set.URL)); err != nil {
			return err
		}
		v, err = d.viewIn(ctx, tx, merchantID)
		return err
	})
	if err != nil {
		return View{}, "", err
	}
	if d.conf.Changed != nil {
		d.conf.Changed()
	}
	if first {
		return v, secret, nil
	}
	v, err = d.View(ctx, merchantID)
	return v, "", err
}

// checkOptional returns a *invoice.FieldError unless all types are optional ones.
func checkOptional(types []invoice.EventType) error {
	for i, typ := range types {
		if !slices.Contains(invoice.OptionalEventTypes, typ) {
			return &invoice.FieldError{Field: fmt.Sprintf("optionalEvents[%d]", i), Detail: fmt.Sprintf("must be %s", invoice.EventUnattributed)}
		}
	}
	return nil
}

// newSecret generates a secret, and returns a function that seals it for a version.
func (d *Directory) newSecret(merchantID string) (string, Seal, error) {
	secret, err := access.NewSecret(d.conf.Rand)
	return secret, func(version int64) ([]byte, string, error) {
		s := d.conf.Keyring.Seal(merchantID, version, secret)
		return s.Data, s.KeyID, nil
	}, err
}

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
