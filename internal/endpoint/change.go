package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/store"
)

// MaxURL is the length of the longest URL of an endpoint, in bytes.
const MaxURL = 2048

// View is an endpoint as it may be shown: without its secrets.
type View struct {
	MerchantID string
	URL        string
	Configured bool                // it is set in the configuration
	ChangedAt  int64               // Unix seconds; 0 when it stands there
	Optional   []invoice.EventType // optional types of events that it is sent
	Secrets    []store.SecretRow   // the newest first, those that sign no longer left out; none when it stands there
	Breaker    delivery.Breaker
}

// View returns a merchant's endpoint. It is ErrNone when the merchant has none.
func (d *Directory) View(ctx context.Context, merchantID string) (View, error) {
	v := View{MerchantID: merchantID}
	if !d.Known(merchantID) {
		return v, ErrNone
	}
	rows, err := d.Store.Endpoints(ctx, []string{merchantID})
	if err != nil {
		return v, err
	}
	row, set := rows[merchantID]
	switch configured := d.Configured[merchantID].URL; {
	case configured != "":
		v.URL, v.Configured = configured, true
	case set:
		v.URL, v.ChangedAt = row.URL, row.ChangedAt
		for _, r := range row.Secrets {
			if r.State != store.SecretRetiring || r.ValidUntil > d.Now().Unix() {
				v.Secrets = append(v.Secrets, r)
			}
		}
	case d.Fallback.URL != "":
		v.URL, v.Configured = d.Fallback.URL, true
	default:
		return v, ErrNone
	}
	v.Optional = d.OptionalEvents(merchantID, row.Optional)
	breakers, err := d.Store.Breakers(ctx, []string{merchantID})
	v.Breaker = breakers[merchantID]
	return v, err
}

// Put sets a merchant's endpoint and the optional types of events that it is
// sent; nil keeps those that are set. The first time, it makes a secret and
// returns it, which it never does again. Errors are ErrNone, ErrConfigured,
// ErrNoMasterKey, and *invoice.FieldError for the URL and the types.
func (d *Directory) Put(ctx context.Context, merchantID, target string, optional []invoice.EventType) (v View, secret string, err error) {
	switch {
	case !d.Known(merchantID):
		return v, "", ErrNone
	case d.Configured[merchantID].URL != "":
		return v, "", ErrConfigured
	case d.Keyring == nil:
		return v, "", ErrNoMasterKey
	}
	if err := d.check(target); err != nil {
		return v, "", &invoice.FieldError{Field: "url", Detail: err.Error()}
	}
	if err := checkOptional(optional); err != nil {
		return v, "", err
	}
	secret, seal, err := d.newSecret(merchantID)
	if err != nil {
		return v, "", err
	}
	row := store.EndpointRow{MerchantID: merchantID, URL: target, Optional: optional, ChangedAt: d.Now().Unix()}
	first, err := d.Store.PutEndpoint(ctx, row, seal)
	if err != nil {
		return v, "", err
	}
	d.mu.Lock()
	d.owners[merchantID] = true
	d.mu.Unlock()
	if d.Changed != nil {
		d.Changed()
	}
	if !first {
		secret = ""
	}
	v, err = d.View(ctx, merchantID)
	return v, secret, err
}

// checkOptional refuses types of events that are not optional ones.
func checkOptional(types []invoice.EventType) error {
	for i, typ := range types {
		if !slices.Contains(invoice.OptionalEventTypes, typ) {
			return &invoice.FieldError{Field: fmt.Sprintf("optionalEvents[%d]", i), Detail: fmt.Sprintf("must be %s", invoice.EventUnattributed)}
		}
	}
	return nil
}

// check refuses a URL that no event can be posted to. What a name stands for is
// looked up when it is dialled.
func (d *Directory) check(target string) error {
	if len(target) > MaxURL {
		return fmt.Errorf("must be at most %d bytes long", MaxURL)
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return errors.New("must be a URL that begins with https://, without fragment")
	}
	if u.User != nil {
		return errors.New("must not hold an account; what is posted is signed")
	}
	a, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil //nolint:nilerr // it is a name
	}
	check := d.Guard.Check
	if u.Scheme == "http" {
		check = d.Guard.CheckPlain
	}
	if err := check(a); err != nil {
		return fmt.Errorf("cannot be used: %w", err)
	}
	return nil
}

// newSecret makes a secret, and returns what seals it for a version.
func (d *Directory) newSecret(merchantID string) (string, store.Seal, error) {
	secret, err := keyring.NewSecret(d.Rand)
	return secret, func(version int64) ([]byte, string, error) {
		s := d.Keyring.Seal(merchantID, version, secret)
		return s.Data, s.KeyID, nil
	}, err
}
