package merchant

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// HoldConfigured grants the configured merchants the addresses on their lists.
func (m *Manager) HoldConfigured(ctx context.Context) error {
	var all []store.Holding
	for id, c := range m.conf.Configured {
		all = append(all, holdings(id, invoice.MerchantChange{Allowed: c.Allowed})...)
	}
	if len(all) == 0 {
		return nil
	}
	ctx = access.WithOrigin(ctx, access.Origin{Actor: access.ActorConfig})
	return m.conf.Store.Update(ctx, func(tx *store.Tx) error {
		_, err := m.grant(ctx, tx, all)
		return err
	})
}

// hold makes a merchant hold the addresses of a change. The operator grants them, and a
// merchant's principal claims them. granted is true if the operator granted a new one. The
// error is an *invoice.FieldError for an address that another merchant's holding prevents.
func (m *Manager) hold(ctx context.Context, tx *store.Tx, by access.Principal, id string, c invoice.MerchantChange) (granted bool, err error) {
	all := holdings(id, c)
	if by.IsOperator() {
		return m.grant(ctx, tx, all)
	}
	refused, err := tx.ClaimAddresses(ctx, all, m.now())
	if err != nil || len(refused) == 0 {
		return false, err
	}
	for i, a := range c.Allowed {
		if a.Address == refused[0].Address {
			return false, &invoice.FieldError{
				Field: fmt.Sprintf("allowedAddresses[%d].address", i), Detail: "cannot be used by this merchant; ask the operator to allow it",
			}
		}
	}
	return false, fmt.Errorf("the address %s of no list was refused", refused[0].Address)
}

// grant grants addresses, with an audit entry for each merchant that loses one.
func (m *Manager) grant(ctx context.Context, tx *store.Tx, all []store.Holding) (granted bool, err error) {
	missing, lost, err := tx.GrantAddresses(ctx, all, m.now())
	if err != nil {
		return false, err
	}
	entries := make([]access.Entry, len(lost))
	for i, l := range lost {
		entries[i] = access.NewAddressLost(ctx, m.now(), l.MerchantID, chain.Checksum(l.Address))
	}
	return len(missing) > 0, tx.AppendAudit(ctx, entries...)
}

// holdings returns those that a change of a merchant asks for.
func holdings(id string, c invoice.MerchantChange) (all []store.Holding) {
	for _, a := range c.Allowed {
		all = append(all, store.Holding{Address: a.Address, MerchantID: id})
	}
	for _, a := range c.DefaultAddresses {
		all = append(all, store.Holding{Address: a, MerchantID: id})
	}
	return all
}
