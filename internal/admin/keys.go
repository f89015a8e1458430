package admin

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
)

// WithKeys calls a function with the manager of the keys in a service's database, which it
// creates if it is missing. It is safe while the service runs.
func WithKeys(ctx context.Context, c MerchantsConfig, do func(*access.KeyManager) error) error {
	return withMerchants(ctx, c, func(store *db.DB, m *access.MerchantManager) error {
		return do(access.NewKeyManager(access.KeyManagerConfig{Store: store, Mode: access.Live, Known: m.Known, Now: time.Now, Rand: rand.Reader}))
	})
}
