package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// merchantAdmin manages the merchants of a service, in its database or through its API.
type merchantAdmin interface {
	create(ctx context.Context, id string, c invoice.MerchantChange) (apitypes.Merchant, error)
	update(ctx context.Context, id string, c invoice.MerchantChange) (apitypes.Merchant, error)
	setLogo(ctx context.Context, id string, image []byte) (apitypes.Merchant, error)
	dropLogo(ctx context.Context, id string) error
	release(ctx context.Context, id string, address invoice.Address) error
	get(ctx context.Context, id string) (apitypes.Merchant, error)
	list(ctx context.Context) ([]apitypes.Merchant, error)
	// endpoint returns the health of a merchant's webhook endpoint, with the last error. It is zero without an endpoint.
	endpoint(ctx context.Context, id string) (apitypes.Webhook, error)
}

// merchantAdmin returns the merchants of the service: with --config in its database, which
// works while the service is stopped, else through its API.
func (r *remote) merchantAdmin(env environment) (merchantAdmin, error) {
	if r.config != "" {
		cfg, err := loadConfig(r.config)
		return storedMerchants{merchantsConfig(cfg)}, err
	}
	c, err := r.client(env)
	return servedMerchants{c}, err
}

// merchantsConfig returns the part of the configuration that merchants need.
func merchantsConfig(cfg config.Config) admin.MerchantsConfig {
	out := admin.MerchantsConfig{Database: cfg.Database, Configured: cfg.Merchants, Delay: cfg.AllowListDelay}
	for _, c := range cfg.Chains {
		out.Chains = append(out.Chains, c.Key)
	}
	return out
}

// storedMerchants are the merchants in a database.
type storedMerchants struct{ cfg admin.MerchantsConfig }

// one returns the merchant that a function of the manager returns.
func (s storedMerchants) one(
	ctx context.Context, do func(context.Context, *access.MerchantManager) (invoice.Merchant, error),
) (m apitypes.Merchant, err error) {
	ctx = asCommand(ctx)
	err = admin.WithMerchants(ctx, s.cfg, func(manager *access.MerchantManager) error {
		found, err := do(ctx, manager)
		m = apiconv.Merchant(found)
		return err
	})
	return m, err
}

func (s storedMerchants) create(ctx context.Context, id string, c invoice.MerchantChange) (apitypes.Merchant, error) {
	return s.one(ctx, func(ctx context.Context, m *access.MerchantManager) (invoice.Merchant, error) {
		return m.Create(ctx, access.Open(), id, c)
	})
}

func (s storedMerchants) update(ctx context.Context, id string, c invoice.MerchantChange) (apitypes.Merchant, error) {
	return s.one(ctx, func(ctx context.Context, m *access.MerchantManager) (invoice.Merchant, error) {
		return m.Update(ctx, access.Open(), id, c)
	})
}

func (s storedMerchants) setLogo(ctx context.Context, id string, image []byte) (apitypes.Merchant, error) {
	return s.one(ctx, func(ctx context.Context, m *access.MerchantManager) (invoice.Merchant, error) {
		return m.SetLogo(ctx, access.Open(), id, image)
	})
}

func (s storedMerchants) dropLogo(ctx context.Context, id string) error {
	ctx = asCommand(ctx)
	return admin.WithMerchants(ctx, s.cfg, func(m *access.MerchantManager) error { return m.DropLogo(ctx, access.Open(), id) })
}

func (s storedMerchants) release(ctx context.Context, id string, address invoice.Address) error {
	ctx = asCommand(ctx)
	return admin.WithMerchants(ctx, s.cfg, func(m *access.MerchantManager) error { return m.Release(ctx, access.Open(), id, address) })
}

func (s storedMerchants) get(ctx context.Context, id string) (apitypes.Merchant, error) {
	return s.one(ctx, func(ctx context.Context, m *access.MerchantManager) (invoice.Merchant, error) {
		return m.Get(ctx, access.Open(), id)
	})
}

func (s storedMerchants) endpoint(ctx context.Context, id string) (apitypes.Webhook, error) {
	all, err := admin.Read(ctx, s.cfg.Database, func(store *db.DB) (map[string]webhooks.Breaker, error) {
		return webhooks.NewReader(store).Breakers(ctx, []string{id})
	})
	b := all[id]
	return apitypes.Webhook{
		Health: apitypes.WebhookHealth(b.Health()), FailingSince: invoice.UnixSeconds(b.Failing), LastError: b.Error, LastErrorAt: invoice.UnixSeconds(b.Failed),
	}, err
}

// maxListedMerchants bounds the merchants that are listed from a database.
const maxListedMerchants = 10_000

func (s storedMerchants) list(ctx context.Context) (all []apitypes.Merchant, err error) {
	err = admin.WithMerchants(ctx, s.cfg, func(m *access.MerchantManager) error {
		found, err := m.List(ctx, access.Open(), "", maxListedMerchants)
		all = make([]apitypes.Merchant, len(found))
		for i, m := range found {
			all[i] = apiconv.Merchant(m)
		}
		return err
	})
	return all, err
}

// servedMerchants are the merchants that a service's API shows.
type servedMerchants struct{ c *client.Client }

func (s servedMerchants) create(ctx context.Context, id string, c invoice.MerchantChange) (apitypes.Merchant, error) {
	members, err := json.Marshal(apiconv.MerchantUpdate(c))
	if err != nil {
		return apitypes.Merchant{}, err
	}
	var request apitypes.CreateMerchantRequest // it has the members of an update, and the id
	if err := json.Unmarshal(members, &request); err != nil {
		return apitypes.Merchant{}, err
	}
	request.ID = id
	return s.c.CreateMerchant(ctx, request)
}

func (s servedMerchants) update(ctx context.Context, id string, c invoice.MerchantChange) (apitypes.Merchant, error) {
	return s.c.UpdateMerchant(ctx, id, apiconv.MerchantUpdate(c))
}

func (s servedMerchants) setLogo(ctx context.Context, id string, image []byte) (apitypes.Merchant, error) {
	return s.c.SetMerchantLogo(ctx, id, image)
}

func (s servedMerchants) dropLogo(ctx context.Context, id string) error {
	return s.c.DeleteMerchantLogo(ctx, id)
}

func (s servedMerchants) release(ctx context.Context, id string, address invoice.Address) error {
	return s.c.ReleaseAddress(ctx, id, chain.Checksum(address))
}

func (s servedMerchants) get(ctx context.Context, id string) (apitypes.Merchant, error) {
	return s.c.Merchant(ctx, id)
}

func (s servedMerchants) list(ctx context.Context) ([]apitypes.Merchant, error) {
	return firstOf(s.c.Merchants(ctx, maxPageSize), 0)
}

func (s servedMerchants) endpoint(ctx context.Context, id string) (apitypes.Webhook, error) {
	w, err := s.c.Webhook(ctx, id)
	if problem := (*client.Error)(nil); errors.As(err, &problem) && problem.Code == apitypes.CodeNotFound {
		err = nil
	}
	return w, err
}
