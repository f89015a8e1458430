package apiconv

import (
	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Merchant converts the current state of a merchant.
func Merchant(m invoice.Merchant) apitypes.Merchant {
	out := apitypes.Merchant{
		ID: m.ID, Source: apitypes.MerchantDatabase, Name: m.Name, Color: m.Color, SupportContact: m.SupportContact, Statement: m.Statement, Timezone: m.Timezone,
		Tolerance: m.Tolerance.String(), AllowedAddresses: allowedAddresses(m.Allowed), DefaultAddresses: defaultAddresses(m.DefaultAddresses),
		ReturnHosts: m.ReturnHosts, EmbedOrigins: m.EmbedOrigins, ReminderHours: m.ReminderHours,
	}
	if m.Collection == invoice.Deposit {
		out.Collection = apitypes.CollectionDeposit
	}
	if m.Configured {
		out.Source = apitypes.MerchantConfig
	} else {
		out.CreatedAt, out.ChangedAt = m.CreatedAt.Unix(), m.ChangedAt.Unix()
	}
	if m.PendingDefaults != nil {
		out.PendingDefaultAddresses = &apitypes.PendingDefaultAddresses{
			Addresses: defaultAddresses(m.PendingDefaults.Addresses), EffectiveAt: m.PendingDefaults.EffectiveAt.Unix(),
		}
	}
	if m.Pending != nil {
		out.PendingAllowedAddresses = &apitypes.PendingAddresses{
			Addresses: allowedAddresses(m.Pending.Allowed), EffectiveAt: m.Pending.EffectiveAt.Unix(),
		}
	}
	if m.Logo != nil {
		out.Logo = &apitypes.Logo{Sha256: m.Logo.SHA256, Width: m.Logo.Width, Height: m.Logo.Height}
	}
	return out
}

// MerchantUpdate converts a change of a merchant.
func MerchantUpdate(c invoice.MerchantChange) apitypes.UpdateMerchantRequest {
	r := apitypes.UpdateMerchantRequest{
		Name: c.Name, Color: c.Color, SupportContact: c.SupportContact, Statement: c.Statement,
		Immediately: c.Immediately, ReturnHosts: c.ReturnHosts, EmbedOrigins: c.EmbedOrigins, Timezone: c.Timezone,
		ReminderHours: c.ReminderHours,
	}
	if c.Tolerance != nil {
		text := c.Tolerance.String()
		r.Tolerance = &text
	}
	if c.Collection != nil {
		collection := apitypes.Collection(*c.Collection)
		r.Collection = &collection
	}
	if c.DefaultAddresses != nil {
		r.DefaultAddresses = defaultAddresses(c.DefaultAddresses)
	}
	if c.Allowed != nil {
		r.AllowedAddresses = allowedAddresses(c.Allowed)
	}
	return r
}

func defaultAddresses(all map[string]invoice.Address) map[string]apitypes.Address {
	out := make(map[string]apitypes.Address, len(all))
	for key, a := range all {
		out[key] = chain.Checksum(a)
	}
	return out
}

func allowedAddresses(all []invoice.AllowedAddress) []apitypes.AllowedAddress {
	out := make([]apitypes.AllowedAddress, len(all))
	for i, a := range all {
		out[i] = apitypes.AllowedAddress{ChainKey: a.ChainKey, Address: chain.Checksum(a.Address)}
	}
	return out
}
