package webhooks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Errors of a merchant's endpoint.
var (
	// ErrNone: the merchant is unknown or has no endpoint.
	ErrNone = errors.New("the merchant has no endpoint")
	// ErrConfigured: the endpoint is set in the configuration.
	ErrConfigured = errors.New("the merchant's endpoint is set in the configuration")
	// ErrNoMasterKey: secrets cannot be sealed.
	ErrNoMasterKey = errors.New("no master key is configured to seal secrets")
	// ErrStaged: a secret is staged already.
	ErrStaged = errors.New("a secret is staged already")
	// ErrNotStaged: no secret is staged, or it has been dropped or replaced.
	ErrNotStaged = errors.New("no secret is staged")
)

// PingError means that an endpoint did not answer a test ping with 2xx.
type PingError struct {
	Answer string // why the ping failed
}

// Error returns the reason.
func (e *PingError) Error() string { return "the endpoint did not take the ping: " + e.Answer }

// RetirementPeriod is how long a replaced secret still signs events, in the header with several signatures.
const RetirementPeriod = 24 * time.Hour

// maxRetiring bounds the replaced secrets of an endpoint that still sign, because each event is signed by all.
const maxRetiring = 2

// DirectoryConfig is the configuration of a Directory. Only Fallback, Keyring and Changed are optional.
type DirectoryConfig struct {
	Store *db.DB
	// Breakers returns the breakers of merchants' endpoints, with times of this machine. nil: as they are stored.
	Breakers func(ctx context.Context, merchantIDs []string) (map[string]Breaker, error)
	// Configured are the merchants in the service's configuration, by id. A webhook URL there takes precedence over an
	// endpoint set through the API.
	Configured map[string]access.MerchantSettings
	// Fallback is the endpoint of merchants without another one. Without a URL there is no fallback.
	Fallback Endpoint
	// Known reports whether the merchant exists.
	Known   func(merchantID string) bool
	Keyring *access.Keyring // nil: no endpoint can be set
	Guard   *Guard
	// Ping posts to an endpoint in the same way as events are posted.
	Ping func(ctx context.Context, to Endpoint, id string, body []byte) Attempt
	// Changed, if set, is called after an endpoint was set.
	Changed func()
	Now     func() time.Time
	Rand    io.Reader
	Logger  *slog.Logger
}

// Directory holds the endpoints of all merchants.
type Directory struct {
	conf DirectoryConfig
	log  *logLimiter
}

// OpenDirectory returns a directory. It fails if the store has secrets that the keyring cannot open.
func OpenDirectory(ctx context.Context, c DirectoryConfig) (*Directory, error) {
	if c.Breakers == nil {
		c.Breakers = NewReader(c.Store).Breakers
	}
	keys, err := masterKeyIDs(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	for _, id := range keys {
		if c.Keyring == nil || !c.Keyring.Has(id) {
			return nil, fmt.Errorf("webhook secrets in the database are sealed under the master key with the id %s, which is not configured; name it under masterKeyFile, masterKeyEnv or oldMasterKeys, or, if it is lost, give every endpoint a new secret: quittance secrets replace --config FILE", id)
		}
	}
	return &Directory{c, newLogLimiter()}, nil
}

// OptionalEvents returns the optional event types that a merchant receives: the configured ones and, unless its
// endpoint is configured too, the ones set through the API.
func (d *Directory) OptionalEvents(merchantID string, set []invoice.EventType) []invoice.EventType {
	configured := d.conf.Configured[merchantID]
	all := slices.Clone(configured.OptionalEvents)
	if configured.WebhookURL == "" {
		all = append(all, set...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Endpoints returns the current endpoints of the merchants that have one.
func (d *Directory) Endpoints(ctx context.Context, merchantIDs []string) (map[string]Endpoint, error) {
	found := make(map[string]Endpoint, len(merchantIDs))
	var unconfigured []string
	for _, id := range merchantIDs {
		if m := d.conf.Configured[id]; m.WebhookURL != "" {
			found[id] = Endpoint{URL: m.WebhookURL, Secret: m.WebhookSecret, Headers: m.WebhookHeaders, Configured: true}
		} else {
			unconfigured = append(unconfigured, id)
		}
	}
	rows, err := endpoints(ctx, d.conf.Store, unconfigured)
	if err != nil {
		return nil, err
	}
	for _, id := range unconfigured {
		row, ok := rows[id]
		if !ok {
			if d.conf.Fallback.URL != "" {
				found[id] = d.conf.Fallback
			}
			continue
		}
		e, err := d.open(row)
		if err != nil { // this one must not delay the other merchants
			d.log.add(id, func(int) {
				d.conf.Logger.ErrorContext(ctx, "open webhook secret failed, the merchant's events wait", "merchant", id, "err", err)
			})
			continue
		}
		found[id] = e
	}
	return found, nil
}

// Reachable returns the merchants that have an endpoint, even if its secrets cannot be opened.
func (d *Directory) Reachable(ctx context.Context, q db.Querier, merchantIDs []string) (map[string]bool, error) {
	found := make(map[string]bool, len(merchantIDs))
	var unconfigured []string
	for _, id := range merchantIDs {
		if d.conf.Configured[id].WebhookURL != "" || d.conf.Fallback.URL != "" {
			found[id] = true
		} else {
			unconfigured = append(unconfigured, id)
		}
	}
	rows, err := endpoints(ctx, q, unconfigured)
	for id := range rows {
		found[id] = true
	}
	return found, err
}

// Fingerprint returns a hash of the merchants with configured endpoints. Processes with equal fingerprints have the
// same endpoints.
func (d *Directory) Fingerprint() string {
	h := sha256.New()
	for _, id := range slices.Sorted(maps.Keys(d.conf.Configured)) {
		if d.conf.Configured[id].WebhookURL != "" {
			fmt.Fprintf(h, "%q ", id)
		}
	}
	fmt.Fprintf(h, "%t", d.conf.Fallback.URL != "")
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// open returns the endpoint with the secrets that currently sign.
func (d *Directory) open(row EndpointRow) (Endpoint, error) {
	e := Endpoint{URL: row.URL}
	now := d.conf.Now()
	for _, r := range row.Secrets {
		if r.State == SecretRetiring && !r.ValidUntil.After(now) {
			continue
		}
		secret, err := d.secret(r)
		if err != nil {
			return e, err
		}
		if r.State == SecretActive {
			e.Secret = secret
		} else {
			e.Others = append(e.Others, secret)
		}
	}
	if e.Secret == "" {
		return e, errors.New("no secret is active")
	}
	var err error
	e.Headers, err = d.headers(row.Headers)
	return e, err
}

func (d *Directory) secret(r SecretRow) (string, error) {
	if d.conf.Keyring == nil {
		return "", ErrNoMasterKey
	}
	return open(d.conf.Keyring, r)
}

func open(k *access.Keyring, r SecretRow) (string, error) {
	secret, err := k.Open(r.MerchantID, r.Version, access.Sealed{KeyID: r.KeyID, Data: r.Sealed})
	if err != nil {
		return "", fmt.Errorf("webhook secret %d of %s: %w", r.Version, r.MerchantID, err)
	}
	return secret, nil
}
