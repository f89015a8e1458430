package admin

import (
	"context"
	"errors"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/merchant"
	"github.com/quittance/quittance/internal/store"
)

// MerchantsConfig is the part of a service's configuration that its merchants need.
type MerchantsConfig struct {
	Database   string                      // as store.Open takes it
	Configured map[string]invoice.Merchant // by id
	Chains     []string                    // keys of the configured chains
	Delay      time.Duration               // of a change of a list of allowed addresses
}

// WithMerchants calls a function with the manager of the merchants in a service's
// database, which it creates if it is missing. It is safe while the service runs.
func WithMerchants(ctx context.Context, c MerchantsConfig, do func(*merchant.Manager) error) error {
	return withMerchants(ctx, c, func(_ *store.Store, m *merchant.Manager) error { return do(m) })
}

func withMerchants(ctx context.Context, c MerchantsConfig, do func(*store.Store, *merchant.Manager) error) (err error) {
	db, err := store.Open(ctx, c.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(db, merchant.New(merchant.Config{Store: db, Configured: c.Configured, Chains: c.Chains, Delay: c.Delay, Now: time.Now}))
}
