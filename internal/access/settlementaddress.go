package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// HoldConfigured grants the configured merchants the addresses on their lists.
func (m *MerchantManager) HoldConfigured(ctx context.Context) error {
	var all []Holding
	for id, c := range m.conf.Configured {
		all = append(all, holdings(id, invoice.MerchantChange{Allowed: c.Allowed})...)
	}
	if len(all) == 0 {
		return nil
	}
	ctx = WithOrigin(ctx, Origin{Actor: ActorConfig})
	return m.conf.Store.Update(ctx, func(tx *db.Tx) error {
		_, err := m.grant(ctx, tx, all)
		return err
	})
}

// hold makes a merchant hold the addresses of a change. The operator grants those that the merchant's lists did not
// name and, with lists that stay as they were, those that the merchant has lost. A merchant's principal claims all.
// granted is true if the operator granted a new one. The error is an *invoice.FieldError for an address that another
// merchant holds.
func (m *MerchantManager) hold(ctx context.Context, tx *db.Tx, by Principal, was, is invoice.Merchant, c invoice.MerchantChange) (granted bool, err error) {
	all := holdings(was.ID, c)
	if by.IsOperator() {
		if !sameAddresses(was, is) { // an edit sends whole lists, and must not give back what the operator gave to the owner
			all = slices.DeleteFunc(all, func(h Holding) bool { return lists(was, h.Address) })
		} else if all, err = lackingHoldings(ctx, tx, sortedHoldings(all), heldBy); err != nil { // a claim stays one
			return false, err
		}
		return m.grant(ctx, tx, all)
	}
	refused, err := m.claim(ctx, tx, all)
	if err != nil || len(refused) == 0 {
		return false, err
	}
	const detail = "cannot be used by this merchant; ask the operator to allow it"
	for i, a := range c.Allowed {
		if a.Address == refused[0].Address {
			return false, &invoice.FieldError{Field: fmt.Sprintf("allowedAddresses[%d].address", i), Detail: detail}
		}
	}
	return false, &invoice.FieldError{Field: "defaultAddresses", Detail: "has " + chain.Checksum(refused[0].Address) + ", which " + detail}
}

// HoldAddress makes a merchant hold a settlement address that a change in tx names. The operator grants it, and a
// merchant's principal claims it. held is false if another merchant's holding prevents a claim.
func (m *MerchantManager) HoldAddress(ctx context.Context, tx *db.Tx, by Principal, id string, address invoice.Address) (held bool, err error) {
	all := []Holding{{Address: address, MerchantID: id}}
	if by.IsOperator() {
		_, err := m.grant(ctx, tx, all)
		return err == nil, err
	}
	refused, err := m.claim(ctx, tx, all)
	return len(refused) == 0, err
}

// claim is ClaimAddresses, and makes grants to other merchants wait until tx ends. Otherwise a list or a payment link
// would name an address that its merchant lost before.
func (m *MerchantManager) claim(ctx context.Context, tx *db.Tx, all []Holding) (refused []Holding, err error) {
	refused, err = ClaimAddresses(ctx, tx, all, m.now())
	if err != nil || len(refused) > 0 {
		return refused, err
	}
	if err := lockHoldings(ctx, tx, all); err != nil {
		return nil, err
	}
	return ClaimAddresses(ctx, tx, all, m.now()) // one may have been lost before its lock
}

// grant grants addresses, with an audit entry for each merchant that loses one.
func (m *MerchantManager) grant(ctx context.Context, tx *db.Tx, all []Holding) (granted bool, err error) {
	missing, lost, err := GrantAddresses(ctx, tx, all, m.now())
	if err != nil {
		return false, err
	}
	entries := db.Each(lost, func(l Holding) Entry {
		return NewAddressLost(ctx, m.now(), l.MerchantID, chain.Checksum(l.Address))
	})
	return len(missing) > 0, AppendAudit(ctx, tx, entries...)
}

// holdings returns the holdings that a change of a merchant requests.
func holdings(id string, c invoice.MerchantChange) (all []Holding) {
	for _, a := range c.Allowed {
		all = append(all, Holding{Address: a.Address, MerchantID: id})
	}
	for _, a := range c.DefaultAddresses {
		all = append(all, Holding{Address: a, MerchantID: id})
	}
	return all
}

// Release takes an address from a merchant. The merchant's existing invoices keep it, and new ones
// cannot use it until the operator grants it again. Errors are ErrNotFound, ErrForbidden, ErrNotHeld,
// and *invoice.FieldError for the field address if the merchant's lists name it.
func (m *MerchantManager) Release(ctx context.Context, by Principal, id string, address invoice.Address) error {
	switch {
	case !invoice.ValidMerchantID(id) || !by.Sees(id):
		return ErrNotFound
	case !by.IsOperator():
		return ErrForbidden
	}
	err := m.conf.Store.Update(ctx, func(tx *db.Tx) error {
		settings, configured := m.conf.Configured[id]
		is := settings.Merchant
		if !configured {
			var err error
			if is, err = lockMerchant(ctx, tx, id); err != nil && !errors.Is(err, db.ErrNotFound) { // not every merchant has a profile
				return err
			}
		}
		if lists(is.At(m.now()), address) {
			return &invoice.FieldError{Field: "address", Detail: "is one of the merchant's allowed or default addresses; remove it there first"}
		}
		if err := ReleaseAddress(ctx, tx, Holding{Address: address, MerchantID: id}); err != nil {
			return err
		}
		return AppendAudit(ctx, tx, m.entry(ctx, ActionAddressRelease, id, map[string]string{"address": chain.Checksum(address)}, nil))
	})
	if errors.Is(err, db.ErrNotFound) {
		return ErrNotHeld
	}
	return err
}

// lists reports whether a list of the merchant names the address, including a pending list.
func lists(m invoice.Merchant, address invoice.Address) bool {
	all := m.Allowed
	if m.Pending != nil {
		all = slices.Concat(all, m.Pending.Allowed)
	}
	defaults := slices.Collect(maps.Values(m.DefaultAddresses))
	if m.PendingDefaults != nil {
		defaults = slices.AppendSeq(defaults, maps.Values(m.PendingDefaults.Addresses))
	}
	return slices.ContainsFunc(all, func(a invoice.AllowedAddress) bool { return a.Address == address }) || slices.Contains(defaults, address)
}
