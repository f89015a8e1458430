package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// Merchants are the configured merchants, by id. With AcceptAll, other merchants are accepted too, and
// their events are sent to the Fallback endpoint if it has a URL.
type Merchants struct {
	Configured map[string]access.MerchantSettings
	AcceptAll  bool
	Fallback   webhooks.Endpoint
}

// buildMerchants builds the manager of the merchants. It fails if a configured merchant is
// in the database too, because the rules there, such as its allowed addresses, would no
// longer be in force, or if its id may be of another company now.
func (s *Server) buildMerchants(ctx context.Context, chainKeys []string) error {
	for id := range s.cfg.Merchants.Configured {
		switch _, err := access.Merchant(ctx, s.store, id); {
		case err == nil:
			return fmt.Errorf("the merchant %s is in the database and in the configuration, whose rules would replace those in the database; remove it from the configuration", id)
		case !errors.Is(err, db.ErrNotFound):
			return err
		}
	}
	s.merchants = access.NewMerchants(access.MerchantConfig{
		Store: s.store, Configured: s.cfg.Merchants.Configured, AcceptAll: s.cfg.Merchants.AcceptAll,
		Chains: chainKeys, Delay: s.cfg.AllowListDelay, Now: s.cfg.Now,
	})
	_, err := s.merchants.CompareConfigured(ctx)
	return err
}

// recordMerchants records the configured merchants in the database, and warns of merchants that left
// the configuration. It names the next step to the operator of a service without a merchant.
func (s *Server) recordMerchants(ctx context.Context) error {
	left, err := s.merchants.RecordConfigured(ctx)
	if err != nil {
		return err
	}
	for _, l := range left {
		if l.Uses.Open+l.Uses.Waiting+l.Uses.Keys > 0 {
			s.cfg.Logger.Warn("a merchant is not in the configuration any more: its keys and payment links do not work, and events without an endpoint wait; "+
				"add it again, create it with quittance merchant create, or retire it with quittance merchant retire",
				"merchant", l.ID, "since", l.At, "open_invoices", l.Uses.Open, "waiting_events", l.Uses.Waiting, "keys", l.Uses.Keys)
		}
	}
	all, err := s.merchants.List(ctx, access.Open(), "", 1)
	if err != nil {
		return err
	}
	if len(all) == 0 && !s.cfg.Merchants.AcceptAll {
		s.cfg.Logger.Info("there is no merchant yet: quittance setup --config FILE prints a link to the page that sets up the service")
	}
	return s.merchants.HoldConfigured(ctx)
}

// directory implements ledger.Merchants.
type directory struct {
	Merchants
	endpoints *webhooks.Directory
	merchants *access.MerchantManager
}

// Find returns a merchant, and whether invoices may be created for it.
func (d directory) Find(ctx context.Context, id string) (invoice.Merchant, bool, error) {
	return d.merchants.Find(ctx, id)
}

// WantsEvents reports whether deliveries of the merchant's events are scheduled. Without AcceptAll
// they always are, even if this replica has no endpoint of the merchant: another replica may have one,
// and an event that is not scheduled when it is emitted is never delivered.
func (d directory) WantsEvents(ctx context.Context, q db.Querier, merchantID string) (bool, error) {
	if _, named := d.Configured[merchantID]; named || !d.AcceptAll || d.Fallback.URL != "" {
		return true, nil
	}
	reachable, err := d.endpoints.Reachable(ctx, q, []string{merchantID}) // in dev
	return reachable[merchantID], err
}
