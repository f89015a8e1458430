package access

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// cacheTime is how long a read merchant is used. So a change by another process takes effect within that time.
	cacheTime = time.Second
	// MaxCachedMerchants bounds the merchants in the cache. A profile may have 30 KB.
	MaxCachedMerchants = 2000
)

// Find returns a merchant, and whether invoices may be created for it. The result may be cacheTime old.
func (m *MerchantManager) Find(ctx context.Context, id string) (_ invoice.Merchant, known bool, err error) {
	if c, ok := m.conf.Configured[id]; ok {
		return c.Merchant, true, nil
	}
	if !invoice.ValidMerchantID(id) {
		return invoice.Merchant{}, false, nil
	}
	now := m.now()
	found, ok := m.cache.get(id, now)
	if !ok {
		if found, err = m.read(ctx, id, now); err != nil {
			return invoice.Merchant{}, false, err
		}
		m.cache.put(id, found)
	}
	if !found.exists {
		return invoice.Merchant{ID: id, LoopbackReturns: m.conf.AcceptAll}, m.conf.AcceptAll && !found.retired, nil
	}
	is := found.merchant.At(now)
	is.LoopbackReturns = m.conf.AcceptAll
	return is, !found.retired, nil
}

// read reads a merchant, and whether its id was retired.
func (m *MerchantManager) read(ctx context.Context, id string, now time.Time) (found cached, err error) {
	found.readAt = now
	found.merchant, err = Merchant(ctx, m.conf.Store, id)
	if found.exists = err == nil; err != nil && !errors.Is(err, db.ErrNotFound) {
		return found, err
	}
	switch h, err := FindMerchantHolder(ctx, m.conf.Store, id); {
	case err == nil:
		found.retired = !h.RetiredAt.IsZero()
	case !errors.Is(err, db.ErrNotFound):
		return found, err
	}
	return found, nil
}

// Known reports whether a merchant exists and was not retired. It is true if that cannot be read: the
// caller's next read or write then fails with an error that explains it.
func (m *MerchantManager) Known(id string) bool {
	_, known, err := m.Find(context.Background(), id)
	return known || err != nil
}

// cached is a merchant in the cache.
type cached struct {
	merchant invoice.Merchant
	exists   bool
	retired  bool // its id is retired
	readAt   time.Time
}

// merchantCache holds merchants by id.
type merchantCache struct {
	mu  sync.Mutex
	all map[string]cached
}

// get returns a merchant that was read within cacheTime.
func (c *merchantCache) get(id string, now time.Time) (cached, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.all[id]
	age := now.Sub(found.readAt)
	return found, ok && age >= 0 && age < cacheTime
}

func (c *merchantCache) put(id string, found cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= MaxCachedMerchants {
		c.all = make(map[string]cached)
	}
	c.all[id] = found
}

func (c *merchantCache) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, id)
}

// MerchantSettings are all settings of a merchant in the service's configuration.
type MerchantSettings struct {
	invoice.Merchant
	WebhookURL     string              // http or https; empty if the endpoint is set through the API
	WebhookSecret  string              // empty without a URL
	WebhookHeaders []WebhookHeader     // sent with each event; empty without a URL
	OptionalEvents []invoice.EventType // delivered in addition to the five of the interface
}

// WebhookHeader is a custom header that is sent to an endpoint with each event. Its value may be a secret.
type WebhookHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
