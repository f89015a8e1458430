package server

import (
	"github.com/quittance/quittance/internal/endpoint"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/poster"
)

// Merchants are those that the configuration names. With AcceptAll, others are
// accepted too, and their events go to the Fallback endpoint unless it has no
// URL. Those of a merchant whose endpoint has no URL go where the merchant says
// through the API.
type Merchants struct {
	Endpoints map[string]poster.Endpoint
	// Tolerances are how much less than the amount the merchants accept; those
	// that are not in it accept nothing less.
	Tolerances map[string]invoice.Tolerance
	// Optional are the optional types of events that the configuration says the
	// merchants ask for.
	Optional  map[string][]invoice.EventType
	AcceptAll bool
	Fallback  poster.Endpoint
}

// Known reports whether invoices may be created for the merchant.
func (m Merchants) Known(merchantID string) bool {
	_, ok := m.Endpoints[merchantID]
	return ok || m.AcceptAll
}

// Tolerance is how much less than the amount of its invoices the merchant
// accepts.
func (m Merchants) Tolerance(merchantID string) invoice.Tolerance { return m.Tolerances[merchantID] }

// directory is what settle knows of merchants.
type directory struct {
	Merchants
	endpoints *endpoint.Directory
}

// WantsEvents reports whether the merchant's events are to be delivered. Where
// the configuration names all merchants they are, whether this replica knows
// an endpoint or not: another may, or this one soon, and what is not scheduled
// now never will be.
func (d directory) WantsEvents(merchantID string) bool {
	_, named := d.Endpoints[merchantID]
	return named || !d.AcceptAll || d.Fallback.URL != "" || d.endpoints.Owns(merchantID)
}
