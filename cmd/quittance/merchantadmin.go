package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

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

// changeOfMerchant is a change that is made in the database or through the API.
type changeOfMerchant struct {
	stored func(*access.MerchantManager, context.Context, access.Principal, string, invoice.MerchantChange) (invoice.Merchant, error)
	served func(context.Context, *client.Client, string, invoice.MerchantChange) (apitypes.Merchant, error)
}

var (
	creation = changeOfMerchant{(*access.MerchantManager).Create, createServed}
	update   = changeOfMerchant{(*access.MerchantManager).Update, func(ctx context.Context, c *client.Client, id string, m invoice.MerchantChange) (apitypes.Merchant, error) {
		return c.UpdateMerchant(ctx, id, apiconv.MerchantUpdate(m))
	}}
)

func createServed(ctx context.Context, c *client.Client, id string, m invoice.MerchantChange) (apitypes.Merchant, error) {
	members, err := json.Marshal(apiconv.MerchantUpdate(m))
	if err != nil {
		return apitypes.Merchant{}, err
	}
	var request apitypes.CreateMerchantRequest // it has the members of an update, and the id
	if err := json.Unmarshal(members, &request); err != nil {
		return apitypes.Merchant{}, err
	}
	request.ID = id
	return c.CreateMerchant(ctx, request)
}

// make makes the change, and stores the logo unless it is nil, or removes it.
func (change changeOfMerchant) make(
	ctx context.Context, env environment, at *remote, id string, m invoice.MerchantChange, logo []byte, noLogo bool,
) (apitypes.Merchant, error) {
	changed, err := manage(ctx, env, at, func(ctx context.Context, managers admin.Managers) (apitypes.Merchant, error) {
		by := managers.Merchants
		changed, err := change.stored(by, ctx, access.Open(), id, m)
		if err == nil && logo != nil {
			changed, err = by.SetLogo(ctx, access.Open(), id, logo)
		}
		if err == nil && noLogo {
			err = by.DropLogo(ctx, access.Open(), id)
		}
		return apiconv.Merchant(changed), err
	}, func(ctx context.Context, c *client.Client) (apitypes.Merchant, error) {
		changed, err := change.served(ctx, c, id, m)
		if err == nil && logo != nil {
			changed, err = c.SetMerchantLogo(ctx, id, logo)
		}
		if err == nil && noLogo {
			err = c.DeleteMerchantLogo(ctx, id)
		}
		return changed, err
	})
	if noLogo {
		changed.Logo = nil
	}
	return changed, err
}

// findMerchant returns a merchant.
func findMerchant(ctx context.Context, env environment, at *remote, id string) (apitypes.Merchant, error) {
	return manage(ctx, env, at, func(ctx context.Context, m admin.Managers) (apitypes.Merchant, error) {
		found, err := m.Merchants.Get(ctx, access.Open(), id)
		return apiconv.Merchant(found), err
	}, func(ctx context.Context, c *client.Client) (apitypes.Merchant, error) { return c.Merchant(ctx, id) })
}

// endpointOf returns the health of a merchant's webhook endpoint, with the last error. It is zero without an endpoint.
func endpointOf(ctx context.Context, env environment, at *remote, id string) (apitypes.Webhook, error) {
	if at.config == "" {
		c, err := at.client(env)
		if err != nil {
			return apitypes.Webhook{}, err
		}
		w, err := c.Webhook(ctx, id)
		if problem := (*client.Error)(nil); errors.As(err, &problem) && problem.Code == apitypes.CodeNotFound {
			err = nil
		}
		return w, err
	}
	cfg, err := loadConfig(at.config)
	if err != nil {
		return apitypes.Webhook{}, err
	}
	all, err := admin.Read(ctx, cfg.Database, func(store *db.DB) (map[string]webhooks.Breaker, error) {
		return webhooks.NewReader(store).Breakers(ctx, []string{id})
	})
	b := all[id]
	return apitypes.Webhook{
		Health: apitypes.WebhookHealth(b.Health(time.Now())), FailingSince: invoice.UnixSeconds(b.Failing), LastError: b.Error, LastErrorAt: invoice.UnixSeconds(b.Failed),
	}, err
}

// maxListedMerchants bounds the merchants that are listed from a database.
const maxListedMerchants = 10_000

// listMerchants lists the merchants.
func listMerchants(ctx context.Context, env environment, at *remote) ([]apitypes.Merchant, error) {
	return manage(ctx, env, at, func(ctx context.Context, m admin.Managers) ([]apitypes.Merchant, error) {
		found, err := m.Merchants.List(ctx, access.Open(), "", maxListedMerchants)
		all := make([]apitypes.Merchant, len(found))
		for i, m := range found {
			all[i] = apiconv.Merchant(m)
		}
		return all, err
	}, func(ctx context.Context, c *client.Client) ([]apitypes.Merchant, error) {
		return firstOf(c.Merchants(ctx, maxPageSize), 0)
	})
}

// releaseAddress takes an address back from a merchant.
func releaseAddress(ctx context.Context, env environment, at *remote, id string, address invoice.Address) error {
	_, err := manage(ctx, env, at, func(ctx context.Context, m admin.Managers) (struct{}, error) {
		return struct{}{}, m.Merchants.Release(ctx, access.Open(), id, address)
	}, func(ctx context.Context, c *client.Client) (struct{}, error) {
		return struct{}{}, c.ReleaseAddress(ctx, id, chain.Checksum(address))
	})
	return err
}

// merchantsConfig returns the part of the configuration that merchants need.
func merchantsConfig(cfg config.Config) admin.MerchantsConfig {
	out := admin.MerchantsConfig{Database: cfg.Database, Configured: cfg.Merchants, Delay: cfg.AllowListDelay}
	for _, c := range cfg.Chains {
		out.Chains = append(out.Chains, c.Key)
	}
	return out
}
