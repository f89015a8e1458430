package certs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"github.com/quittance/quittance/internal/db"
)

const (
	// orderTime is how long a replica has for an order before another one may begin its own.
	orderTime = 2 * time.Minute
	// orderPoll is how often a replica looks for the certificate that another one orders.
	orderPoll = 500 * time.Millisecond
)

// errOrdered means that another replica orders the certificate.
var errOrdered = errors.New("another replica is requesting this certificate")

// orders is an autocert.Cache in which only one replica at a time orders a certificate, because ACME
// servers limit orders. The handshakes of others fail until it is in the cache.
type orders struct {
	conf ACMEConfig
	autocert.Cache
	owner string // names this replica
}

// newOrders returns the cache with a new owner.
func newOrders(cfg ACMEConfig) orders {
	return orders{conf: cfg, Cache: cfg.Cache, owner: rand.Text()}
}

// orders reports whether a name is the name of a certificate, with an ECDSA or an RSA key, and not of
// a challenge or an account.
func (o orders) orders(name string) bool {
	return slices.Contains(o.conf.Hosts, strings.TrimSuffix(name, "+rsa"))
}

// lease returns the lease on the order of a certificate.
func (o orders) lease(name string) db.WorkLease {
	return db.WorkLease{Name: "acme:" + name, Holder: o.owner}
}

// Get implements autocert.Cache. autocert orders a certificate that is missing.
func (o orders) Get(ctx context.Context, name string) ([]byte, error) {
	if !o.orders(name) {
		return o.Cache.Get(ctx, name)
	}
	data, err := o.Cache.Get(ctx, name)
	if !errors.Is(err, autocert.ErrCacheMiss) {
		return data, err
	}
	now := o.conf.Now()
	mine, err := o.conf.Orders.AcquireWorkLease(ctx, o.lease(name), now, now.Add(orderTime))
	switch {
	case err != nil:
		return nil, fmt.Errorf("claim the order of a certificate: %w", err)
	case !mine:
		return nil, errOrdered // autocert holds a lock of all handshakes, so it must not wait here
	}
	return o.getClaimed(ctx, name)
}

// getClaimed returns a certificate that another replica has ordered since the last look, or
// autocert.ErrCacheMiss.
func (o orders) getClaimed(ctx context.Context, name string) ([]byte, error) {
	data, err := o.Cache.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return data, o.conf.Orders.ReleaseWorkLease(ctx, o.lease(name))
}

// Put implements autocert.Cache.
func (o orders) Put(ctx context.Context, name string, data []byte) error {
	if err := o.Cache.Put(ctx, name, data); err != nil || !o.orders(name) {
		return err
	}
	return o.conf.Orders.ReleaseWorkLease(ctx, o.lease(name))
}
