package dev

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Name and contact that payers see of a development world's merchant.
const (
	merchantName    = "Demo merchant"
	merchantContact = "help@demo-merchant.example"
)

// prepareMerchant creates the world's merchant, which settles at an address, unless the database has it. It returns a
// key of the merchant with all scopes: the given one if it is accepted, else a new one, or "" if the merchant was
// retired.
func (c Config) prepareMerchant(ctx context.Context, now func() time.Time, address invoice.Address, key string) (_ string, err error) {
	store, err := db.Open(ctx, c.database())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	merchants := access.NewMerchants(access.MerchantConfig{Store: store, Chains: []string{ChainKey}, Now: now})
	name, contact, settlesAt := merchantName, merchantContact, map[string]invoice.Address{ChainKey: address}
	_, err = merchants.Create(ctx, access.Open(), MerchantID, invoice.MerchantChange{Name: &name, SupportContact: &contact, DefaultAddresses: settlesAt})
	switch {
	case errors.Is(err, access.ErrRetired):
		return "", nil
	case err != nil && !errors.Is(err, access.ErrExists):
		return "", fmt.Errorf("create %s: %w", MerchantID, err)
	}
	keys := access.NewAuthenticator(access.AuthenticatorConfig{Store: access.NewTables(store), Mode: access.Test, Now: now, Logger: c.Logger})
	if _, err = keys.Authenticate(ctx, key); err == nil {
		return key, nil
	} else if !access.IsRefusal(err) && !errors.Is(err, access.ErrMissing) {
		return "", err
	}
	manager := access.NewKeyManager(access.KeyManagerConfig{Store: store, Mode: access.Test, Known: merchants.Known, Now: now, Rand: c.Rand})
	_, made, err := manager.Create(ctx, access.Open(), access.KeyRequest{Name: "quittance dev", MerchantID: MerchantID, Scopes: access.Admin})
	if err != nil {
		return "", err
	}
	return made.Reveal(), nil
}
