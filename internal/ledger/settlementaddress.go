package ledger

import (
	"context"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// hold records the settlement addresses of creates and makes their merchants hold them: the operator's creates grant
// them, a merchant's own creates claim them. denied are the creates with an address that another merchant holds. A
// merchant cannot hold a deposit address, because money at it belongs to its invoice.
func (s *Service) hold(ctx context.Context, tx *db.Tx, out *outbox, calls []*createCall) (denied map[*createCall]bool, err error) {
	at := s.conf.Schedule()
	deposits, err := depositsAmong(ctx, tx, calls)
	if err != nil {
		return nil, err
	}
	var claims, grants []access.Holding
	origins := make(map[invoice.Address]access.Origin)
	for _, c := range calls {
		switch h := c.Value.holding(); {
		case deposits[h.Address]:
		case c.Value.byMerchant:
			claims = append(claims, h)
		default:
			grants = append(grants, h)
			origins[h.Address] = c.Value.origin
		}
	}
	_, lost, err := access.GrantAddresses(ctx, tx, grants, at)
	if err != nil {
		return nil, err
	}
	for _, l := range lost {
		by := access.WithOrigin(ctx, origins[l.Address])
		out.audit = append(out.audit, access.NewAddressLost(by, at, l.MerchantID, chain.Checksum(l.Address)))
	}
	refused, err := access.ClaimAddresses(ctx, tx, claims, at)
	if err != nil {
		return nil, err
	}
	denied = make(map[*createCall]bool)
	var settlements []access.SettlementAddress
	var chains []string
	for _, c := range calls {
		h := c.Value.holding()
		if deposits[h.Address] || c.Value.byMerchant && slices.Contains(refused, h) {
			denied[c] = true
		} else {
			settlements, chains = append(settlements, c.Value.settlement()), append(chains, c.Value.inv.ChainKey)
		}
	}
	known, err := chainColumn(ctx, tx, newestKnown, chains, blockNumber)
	if err != nil {
		return nil, err
	}
	for i := range settlements {
		settlements[i].FromBlock = known[settlements[i].ChainKey]
	}
	return denied, access.InsertSettlementAddresses(ctx, tx, settlements, s.conf.Now())
}

// errNotHeld: the merchant may not have its invoice paid to the address. It does not reveal whose address it is.
var errNotHeld = &invoice.FieldError{
	Field: "merchantAddress", Detail: "cannot be used by this merchant; ask the operator to allow it",
}

// holdOne is hold for one invoice. It returns errNotHeld if another merchant holds the address.
func (s *Service) holdOne(ctx context.Context, tx *db.Tx, out *outbox, inv invoice.Invoice, byMerchant bool) error {
	call := &createCall{Value: &create{inv: inv, byMerchant: byMerchant, origin: access.OriginFrom(ctx)}}
	denied, err := s.hold(ctx, tx, out, []*createCall{call})
	if err == nil && denied[call] {
		err = errNotHeld
	}
	return err
}

// sendSettled asks whether hold would change nothing and deny nothing, as usual. settled answers after the next Flush.
func sendSettled(ctx context.Context, tx *db.Tx, calls []*createCall) (settled func() bool, err error) {
	claims, grants := make(map[access.SettlementAddress]bool), make(map[access.SettlementAddress]bool)
	for _, c := range calls {
		if c.Value.byMerchant {
			claims[c.Value.settlement()] = true
		} else {
			grants[c.Value.settlement()] = true
		}
	}
	return access.SendSettled(ctx, tx, slices.Collect(maps.Keys(claims)), slices.Collect(maps.Keys(grants)))
}

// depositsAmong returns which settlement addresses of creates are deposit addresses.
func depositsAmong(ctx context.Context, tx *db.Tx, calls []*createCall) (map[invoice.Address]bool, error) {
	addresses := db.Each(calls, func(c *createCall) invoice.Address { return c.Value.inv.Merchant })
	return NewReader(tx).AreDeposits(ctx, addresses)
}

func (c *create) holding() access.Holding {
	return access.Holding{Address: c.inv.Merchant, MerchantID: c.inv.MerchantID}
}

func (c *create) settlement() access.SettlementAddress {
	return access.SettlementAddress{ChainKey: c.inv.ChainKey, Address: c.inv.Merchant, MerchantID: c.inv.MerchantID}
}

// Registries returns all registries of a chain that were ever configured: payers can still pay through them.
func (s *Service) Registries(ctx context.Context, chainKey string) ([]invoice.Address, error) {
	return Registries(ctx, s.conf.Store, chainKey)
}

// RecordRegistries records the configured registries. It must be called before
// invoices are created and blocks are read.
func (s *Service) RecordRegistries(ctx context.Context) error {
	ctx = access.WithOrigin(ctx, access.Origin{Actor: access.ActorConfig})
	return s.conf.Store.Update(ctx, func(tx *db.Tx) error {
		var entries []access.Entry
		for _, c := range s.conf.Chains {
			if c.Registry.IsZero() {
				continue
			}
			added, err := insertRegistry(ctx, tx, c.Key, c.Registry, s.conf.Now())
			if err != nil {
				return err
			}
			if added {
				entries = append(entries, access.NewEntry(ctx, s.conf.Now(), access.Change{
					Action: access.ActionRegistryAdd, Object: c.Key, After: auditedRegistry{chain.Checksum(c.Registry)},
				}))
			}
		}
		return access.AppendAudit(ctx, tx, entries...)
	})
}

// auditedRegistry is a registry in the audit log.
type auditedRegistry struct {
	Registry string `json:"registry"` // address
}
