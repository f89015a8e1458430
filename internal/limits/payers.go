package limits

import (
	"context"
	"net/netip"
)

// SiteWeight is how many times the share of one client network the networks of an IPv6 site may hold together.
const SiteWeight = 2

// Party is an account for a payer's requests: a merchant, an object such as an invoice, or a client
// network with all merchants or at one of them.
type Party struct {
	Merchant, Object string
	Network          netip.Prefix
}

// PartyOf returns the party of a merchant. "-" is not a merchant's name: it is the party of the operator's invoices.
func PartyOf(merchantID string) Party {
	if merchantID == "" {
		merchantID = "-"
	}
	return Party{Merchant: merchantID}
}

// Networks returns the claims of the networks of the context's client: its address or, over IPv6, its network and the
// site of that network. An address that many clients may share has no claim.
func Networks(ctx context.Context) []Claim[Party] {
	if IsSharedIn(ctx) {
		return nil
	}
	client := FromContext(ctx)
	claims := []Claim[Party]{{Client: Party{Network: Network(client)}, Weight: 1}}
	if client.Is6() {
		claims = append(claims, Claim[Party]{Client: Party{Network: Site(client)}, Weight: SiteWeight})
	}
	return claims
}

// AtMerchant returns the claims of a merchant, and of client networks at it, which divide the merchant's share.
func AtMerchant(merchantID string, networks []Claim[Party]) []Claim[Party] {
	merchant := PartyOf(merchantID)
	claims := []Claim[Party]{{Client: merchant, Weight: 1}}
	for _, n := range networks {
		at := merchant
		at.Network = n.Client.Network
		claims = append(claims, Claim[Party]{Client: at, Weight: n.Weight, Of: &merchant})
	}
	return claims
}

// Payer returns the claims of the context's client at a merchant.
func Payer(ctx context.Context, merchantID string) []Claim[Party] {
	networks := Networks(ctx)
	return append(networks, AtMerchant(merchantID, networks)...)
}
