// Package endpoint knows where the merchants' events go and what signs them:
// from the configuration, or set by the merchants through the API. The secrets
// of the latter are made here, told once, kept sealed, and replaced without a
// moment in which a receiver that knows either has to refuse an event.
package endpoint

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
	"sync"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/store"
)

// Errors of what is asked of a merchant's endpoint.
var (
	// ErrNone: there is no such merchant, or it has no endpoint.
	ErrNone = errors.New("the merchant has no endpoint")
	// ErrConfigured: the endpoint stands in the configuration, and is changed
	// there.
	ErrConfigured = errors.New("the merchant's endpoint stands in the configuration")
	// ErrNoMasterKey: no secret can be kept.
	ErrNoMasterKey = errors.New("there is no master key to seal secrets under")
	// ErrStaged: there is a staged secret already.
	ErrStaged = errors.New("a secret is staged already")
	// ErrNotStaged: there is no staged secret, or not any more.
	ErrNotStaged = errors.New("no secret is staged")
)

// PingError is that an endpoint did not take a test ping.
type PingError struct {
	Answer string // what it did instead
}

// Error says so.
func (e *PingError) Error() string { return "the endpoint did not take the ping: " + e.Answer }

// Retiring is how long a secret still signs after another took its place, in
// the header that can hold several signatures.
const Retiring = 24 * time.Hour

// Store keeps endpoints and their secrets. *store.Store is one.
type Store interface {
	Endpoints(ctx context.Context, merchantIDs []string) (map[string]store.EndpointRow, error)
	EndpointOwners(ctx context.Context) ([]string, error)
	PutEndpoint(ctx context.Context, e store.EndpointRow, seal store.Seal) (first bool, err error)
	StageSecret(ctx context.Context, merchantID string, now int64, seal store.Seal) (version int64, err error)
	PromoteSecret(ctx context.Context, staged store.SecretRow, url string, validUntil int64) error
	DropStagedSecret(ctx context.Context, merchantID string) error
	SealingKeys(ctx context.Context) ([]string, error)
	Breakers(ctx context.Context, merchantIDs []string) (map[string]delivery.Breaker, error)
}

// Config says what a directory is made of. All but Fallback, Optional and Keyring
// must be set.
type Config struct {
	Store Store
	// Configured are the endpoints that stand in the configuration, by
	// merchant. They go before those that are set through the API.
	Configured map[string]poster.Endpoint
	// Fallback is the endpoint of merchants that have no other. It has no URL
	// when there is none.
	Fallback poster.Endpoint
	// Optional are the optional types of events that the merchants ask for in the
	// configuration.
	Optional map[string][]invoice.EventType
	// Known reports whether there is such a merchant.
	Known   func(merchantID string) bool
	Keyring *keyring.Keyring // nil without a master key: then no endpoint can be set
	Guard   *poster.Guard
	// Ping posts to an endpoint as events are posted.
	Ping func(ctx context.Context, to poster.Endpoint, id string, body []byte) delivery.Attempt
	// Changed is called when an endpoint was set; nil for nothing.
	Changed func()
	Now     func() time.Time
	Rand    io.Reader
	Logger  *slog.Logger
}

// Directory knows the endpoints of all merchants.
type Directory struct {
	Config

	mu     sync.Mutex           // guards both maps
	owners map[string]bool      // merchants that have set an endpoint
	told   map[string]time.Time // when the log was told last that a merchant's secret cannot be read
}

// Open returns a directory. It is an error when there are secrets that the
// keyring cannot open.
func Open(ctx context.Context, c Config) (*Directory, error) {
	keys, err := c.Store.SealingKeys(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range keys {
		if c.Keyring == nil || !c.Keyring.Has(id) {
			return nil, fmt.Errorf("webhook secrets in the database are sealed under the master key with the id %s, which is not configured; name it under masterKeyFile, masterKeyEnv or oldMasterKeys", id)
		}
	}
	owners, err := c.Store.EndpointOwners(ctx)
	if err != nil {
		return nil, err
	}
	d := &Directory{Config: c, owners: make(map[string]bool), told: make(map[string]time.Time)}
	for _, id := range owners {
		d.owners[id] = true
	}
	return d, nil
}

// Owns reports whether this process knows that the merchant has set an
// endpoint. What other processes changed since it started, it does not.
func (d *Directory) Owns(merchantID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.owners[merchantID]
}

// OptionalEvents returns the optional types of events that a merchant is sent:
// those in the configuration and, unless the configuration has its endpoint
// too, those set with the endpoint through the API.
func (d *Directory) OptionalEvents(merchantID string, set []invoice.EventType) []invoice.EventType {
	all := slices.Clone(d.Optional[merchantID])
	if d.Configured[merchantID].URL == "" {
		all = append(all, set...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Endpoints returns those of the merchants that have an endpoint, with it as
// it is now.
func (d *Directory) Endpoints(ctx context.Context, merchantIDs []string) (map[string]poster.Endpoint, error) {
	found := make(map[string]poster.Endpoint, len(merchantIDs))
	var rest []string
	for _, id := range merchantIDs {
		if e := d.Configured[id]; e.URL != "" {
			found[id] = e
		} else {
			rest = append(rest, id)
		}
	}
	rows, err := d.Store.Endpoints(ctx, rest)
	if err != nil {
		return nil, err
	}
	for _, id := range rest {
		row, ok := rows[id]
		if !ok {
			if d.Fallback.URL != "" {
				found[id] = d.Fallback
			}
			continue
		}
		e, err := d.open(row)
		if err != nil { // others must not wait for it
			d.report(ctx, id, err)
			continue
		}
		found[id] = e
	}
	return found, nil
}

// report logs that a merchant's secret cannot be read, once a minute.
func (d *Directory) report(ctx context.Context, merchantID string, err error) {
	now := d.Now()
	d.mu.Lock()
	since := now.Sub(d.told[merchantID])
	due := since >= time.Minute || since < 0
	if due {
		d.told[merchantID] = now
	}
	d.mu.Unlock()
	if due {
		d.Logger.ErrorContext(ctx, "a merchant's webhook secret cannot be read, so its events wait", "merchant", merchantID, "err", err)
	}
}

// Reachable returns those of the merchants that have an endpoint, whether its
// secrets can be read or not.
func (d *Directory) Reachable(ctx context.Context, merchantIDs []string) (map[string]bool, error) {
	found := make(map[string]bool, len(merchantIDs))
	var rest []string
	for _, id := range merchantIDs {
		if d.Configured[id].URL != "" || d.Fallback.URL != "" {
			found[id] = true
		} else {
			rest = append(rest, id)
		}
	}
	rows, err := d.Store.Endpoints(ctx, rest)
	for id := range rows {
		found[id] = true
	}
	return found, err
}

// Fingerprint is a hash of the merchants whose endpoints are in the
// configuration. Two processes with the same know the same endpoints.
func (d *Directory) Fingerprint() string {
	h := sha256.New()
	for _, id := range slices.Sorted(maps.Keys(d.Configured)) {
		if d.Configured[id].URL != "" {
			fmt.Fprintf(h, "%q ", id)
		}
	}
	fmt.Fprintf(h, "%t", d.Fallback.URL != "")
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// open returns the endpoint with the secrets that sign now.
func (d *Directory) open(row store.EndpointRow) (poster.Endpoint, error) {
	e := poster.Endpoint{URL: row.URL}
	now := d.Now().Unix()
	for _, r := range row.Secrets {
		if r.State == store.SecretRetiring && r.ValidUntil <= now {
			continue
		}
		secret, err := d.secret(r)
		if err != nil {
			return e, err
		}
		if r.State == store.SecretActive {
			e.Secret = secret
		} else {
			e.Others = append(e.Others, secret)
		}
	}
	if e.Secret == "" {
		return e, errors.New("no secret is active")
	}
	return e, nil
}

func (d *Directory) secret(r store.SecretRow) (string, error) {
	if d.Keyring == nil {
		return "", ErrNoMasterKey
	}
	return open(d.Keyring, r)
}

func open(v *keyring.Keyring, r store.SecretRow) (string, error) {
	secret, err := v.Open(r.MerchantID, r.Version, keyring.Sealed{KeyID: r.KeyID, Data: r.Sealed})
	if err != nil {
		return "", fmt.Errorf("webhook secret %d of %s: %w", r.Version, r.MerchantID, err)
	}
	return secret, nil
}
