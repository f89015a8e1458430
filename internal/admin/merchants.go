package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
)

// MerchantsConfig is the part of a service's configuration that its merchants need.
type MerchantsConfig struct {
	Database   string                             // as db.Open takes it
	Configured map[string]access.MerchantSettings // by id
	Chains     []string                           // keys of the configured chains
	Delay      time.Duration                      // of a change of a list of allowed addresses
}

// MerchantDifferences compares the configured merchants with the recorded ones.
func MerchantDifferences(ctx context.Context, c MerchantsConfig) (all []chain.ConfigChange, err error) {
	err = WithManagers(ctx, c, func(m Managers) error {
		left, err := m.Merchants.CompareConfigured(ctx)
		var refused *access.RefusedError
		if errors.As(err, &refused) {
			for _, fault := range refused.Faults {
				all = append(all, chain.ConfigChange{Kind: chain.Dangerous, Text: fault.Error()})
			}
			return nil
		}
		for _, l := range left {
			all = append(all, chain.ConfigChange{Kind: chain.Harmless, Text: fmt.Sprintf(
				"merchant %s is not in the configuration any more: its keys and payment links do not work; it has %d open invoices, %d waiting events and %d keys",
				l.ID, l.Uses.Open, l.Uses.Waiting, l.Uses.Keys)})
		}
		return err
	})
	return all, err
}

// Managers change the merchants and the keys in a service's database.
type Managers struct {
	Merchants *access.MerchantManager
	Keys      *access.KeyManager
	Created   bool // the database was missing
}

// WithManagers calls a function with the managers of a service's database, which it creates if it is missing. It is safe
// while the service runs.
func WithManagers(ctx context.Context, c MerchantsConfig, do func(Managers) error) error {
	return withOpened(ctx, c.Database, db.Open, func(store *db.DB) error {
		m := access.NewMerchants(access.MerchantConfig{Store: store, Configured: c.Configured, Chains: c.Chains, Delay: c.Delay, Now: time.Now})
		keys := access.NewKeyManager(access.KeyManagerConfig{Store: store, Mode: access.Live, Known: m.Known, Now: time.Now, Rand: rand.Reader})
		return do(Managers{m, keys, store.Created()})
	})
}
