package invoice

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// An invoice may settle to an address if the merchant's list allows it (Merchant.Allows)
// and no other merchant holds it. A holding is claimed with a key of the merchant or
// granted by the operator, when a list changes (package access) and when an invoice is
// created (package ledger).

// MaxAllowedAddresses is the maximum length of a merchant's list of addresses.
const MaxAllowedAddresses = 50

// AllowedAddress is an address on the list of a merchant.
type AllowedAddress struct {
	ChainKey string
	Address  Address
}

// PendingAddresses replace Allowed at a time.
type PendingAddresses struct {
	Allowed     []AllowedAddress
	EffectiveAt time.Time
}

// PendingDefaults replace DefaultAddresses at a time.
type PendingDefaults struct {
	Addresses   map[string]Address // by chain key
	EffectiveAt time.Time
}

// changeDefaults returns the merchant with other default addresses. With c.DelayDefaults they wait for the delay if they
// replace or remove one. They also wait if they are on the list of allowed addresses, because a stolen key could have
// made the first list.
func (m Merchant) changeDefaults(c MerchantChange, now time.Time, delay time.Duration) Merchant {
	waits := false
	for key, was := range m.DefaultAddresses {
		waits = waits || c.DefaultAddresses[key] != was
	}
	switch {
	case !c.DelayDefaults, !waits:
		m.DefaultAddresses, m.PendingDefaults = maps.Clone(c.DefaultAddresses), nil
	case m.PendingDefaults != nil && maps.Equal(c.DefaultAddresses, m.PendingDefaults.Addresses): // a repeated request
	default:
		m.PendingDefaults = &PendingDefaults{Addresses: maps.Clone(c.DefaultAddresses), EffectiveAt: now.Add(delay)}
	}
	return m.At(now) // without a delay
}

// At returns the merchant as it is at a time: with its pending addresses in force if they are effective by then.
func (m Merchant) At(now time.Time) Merchant {
	if m.Pending != nil && !now.Before(m.Pending.EffectiveAt) {
		m.Allowed, m.Pending = m.Pending.Allowed, nil
	}
	if m.PendingDefaults != nil && !now.Before(m.PendingDefaults.EffectiveAt) {
		m.DefaultAddresses, m.PendingDefaults = m.PendingDefaults.Addresses, nil
	}
	return m
}

// Allows reports whether an invoice may settle to the address. Call it on the result of At.
func (m Merchant) Allows(chainKey string, a Address) bool {
	return len(m.Allowed) == 0 || slices.Contains(m.Allowed, AllowedAddress{chainKey, a})
}

// sortedAddresses returns the addresses in order, each once.
func sortedAddresses(all []AllowedAddress) []AllowedAddress {
	all = slices.SortedFunc(slices.Values(all), func(a, b AllowedAddress) int {
		return strings.Compare(a.ChainKey+" "+a.Address.String(), b.ChainKey+" "+b.Address.String())
	})
	return slices.Compact(all)
}

// checkAddresses returns a *FieldError if an address is zero or a default address is not on a list that is in force
// at the same time, so that the merchant could create no invoice with it.
func (m Merchant) checkAddresses() error {
	lists := [][]AllowedAddress{m.Allowed}
	if m.Pending != nil {
		lists = append(lists, m.Pending.Allowed)
	}
	for _, list := range lists {
		if len(list) > MaxAllowedAddresses {
			return fieldErrorf("allowedAddresses", "must be at most %d", MaxAllowedAddresses)
		}
		if slices.ContainsFunc(list, func(a AllowedAddress) bool { return a.Address.IsZero() }) {
			return fieldErrorf("allowedAddresses", "must not contain the zero address")
		}
	}
	if err := checkDefaults(m.DefaultAddresses, lists); err != nil || m.PendingDefaults == nil {
		return err
	}
	if m.Pending != nil && !m.PendingDefaults.EffectiveAt.Before(m.Pending.EffectiveAt) {
		lists = lists[1:] // the list in force is replaced first
	}
	return checkDefaults(m.PendingDefaults.Addresses, lists)
}

// checkDefaults is checkAddresses for default addresses that are in force at the same time as each list.
func checkDefaults(defaults map[string]Address, lists [][]AllowedAddress) error {
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		a := defaults[key]
		if a.IsZero() {
			return fieldErrorf("defaultAddresses", "must not contain the zero address")
		}
		for _, list := range lists {
			if !(Merchant{Allowed: list}).Allows(key, a) {
				return fieldErrorf("allowedAddresses", "must contain every default address, also the list that is pending; the default address on %s is missing", key)
			}
		}
	}
	return nil
}
