package admin

import (
	"context"
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

// WithMerchants calls a function with the manager of the merchants in a service's
// database, which it creates if it is missing. It is safe while the service runs.
func WithMerchants(ctx context.Context, c MerchantsConfig, do func(*access.MerchantManager) error) error {
	return withMerchants(ctx, c, func(_ *db.DB, m *access.MerchantManager) error { return do(m) })
}

// MerchantDifferences compares the configured merchants with the recorded ones.
func MerchantDifferences(ctx context.Context, c MerchantsConfig) (all []chain.ConfigChange, err error) {
	err = WithMerchants(ctx, c, func(m *access.MerchantManager) error {
		left, err := m.CompareConfigured(ctx)
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

func withMerchants(ctx context.Context, c MerchantsConfig, do func(*db.DB, *access.MerchantManager) error) (err error) {
	store, err := db.Open(ctx, c.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return do(store, access.NewMerchants(access.MerchantConfig{Store: store, Configured: c.Configured, Chains: c.Chains, Delay: c.Delay, Now: time.Now}))
}
