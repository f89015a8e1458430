package server

import "github.com/quittance/quittance/internal/deliver"

// Merchants is the directory of merchants. With AcceptAll, merchants that are
// not in it are accepted too and their events go to the Fallback endpoint. An
// endpoint without a URL takes no events.
type Merchants struct {
	Endpoints map[string]deliver.Endpoint
	AcceptAll bool
	Fallback  deliver.Endpoint
}

// Known reports whether invoices may be created for the merchant.
func (m Merchants) Known(merchantID string) bool {
	_, ok := m.Endpoints[merchantID]
	return ok || m.AcceptAll
}

// HasEndpoint reports whether the merchant wants events.
func (m Merchants) HasEndpoint(merchantID string) bool {
	_, ok := m.Endpoint(merchantID)
	return ok
}

// Endpoint returns where the merchant's events go, if it wants them.
func (m Merchants) Endpoint(merchantID string) (deliver.Endpoint, bool) {
	e, ok := m.Endpoints[merchantID]
	if !ok && m.AcceptAll {
		e = m.Fallback
	}
	return e, e.URL != ""
}
