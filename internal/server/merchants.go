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

// WantsEvents reports whether the merchant's events are to be delivered. Those
// of a merchant that is not in the directory are: another replica may know it
// already, or this one soon, and what is not scheduled now never will be.
func (m Merchants) WantsEvents(merchantID string) bool {
	if e, ok := m.Endpoints[merchantID]; ok {
		return e.URL != ""
	}
	return !m.AcceptAll || m.Fallback.URL != ""
}

// Endpoint returns where the merchant's events go, if it wants them.
func (m Merchants) Endpoint(merchantID string) (deliver.Endpoint, bool) {
	e, ok := m.Endpoints[merchantID]
	if !ok && m.AcceptAll {
		e = m.Fallback
	}
	return e, e.URL != ""
}
