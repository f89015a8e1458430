package dashboard

import (
	"cmp"
	"net/url"

	"github.com/quittance/quittance/internal/access"
)

// MerchantName returns the name of the merchant that the page is about, or its id, or "". It is for templates.
func (v *visit) MerchantName() string { return cmp.Or(v.profile.Name, v.merchant) }

// MerchantLogo returns the address of the merchant's logo, or "". It is for templates.
func (v *visit) MerchantLogo() string {
	if v.profile.Logo == nil {
		return ""
	}
	return v.Link("/dashboard/settings/logo", "v", v.profile.Logo.Sha256)
}

// Name returns the name of the person or of the key, or "". It is for templates.
func (v *visit) Name() string { return v.principal.Name }

// Role returns the person's role, or "" for other scopes. It is for templates.
func (v *visit) Role() string { return v.principal.Scopes.Role() }

// homeOf returns the address of the first page about a merchant, or about all for "".
func homeOf(merchantID string) string {
	if merchantID == "" {
		return "/dashboard"
	}
	return "/dashboard?" + url.Values{"merchantId": {merchantID}}.Encode()
}

// choice is an entry of the menu in which a person switches merchants.
type choice struct {
	Name, Address string
	Here          bool
}

// Choices returns the menu in which a person switches merchants, or nil for a person who sees only one. It
// is for templates.
func (v *visit) Choices() (all []choice) {
	if v.session.MerchantID == "" { // it began as the operator, whom the page's membership may hide
		all = append(all, choice{v.text.T("nav.operator", nil), "/dashboard", v.merchant == ""})
		if v.IsOperator() && v.Can(access.EventsRead) {
			all = append(all, choice{v.text.T("merchants.title", nil), "/dashboard/operator/merchants", false})
		}
	}
	if len(v.others) < 2 {
		return all
	}
	for _, other := range v.others {
		if other.MerchantID != "" {
			name := cmp.Or(other.MerchantName, other.MerchantID)
			all = append(all, choice{name, homeOf(other.MerchantID), other.MerchantID == v.merchant})
		}
	}
	return all
}
