package ledger

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// holdingTime is how long a merchant that held an address is assumed to hold it. So frequent creates
	// need no additional statement, and a loss takes effect within that time.
	holdingTime = time.Second
	// MaxHoldings bounds the holdings that a holdingCache holds.
	MaxHoldings = 100_000
)

// holdings are the holdings that the transaction of creates has verified.
type holdings struct {
	found   []heldAs
	at      time.Time
	refused map[*createCall]bool // calls with an address that another merchant holds
}

// errNotHeld: the merchant may not have its invoice paid to the address. It does not reveal whose
// address it is.
var errNotHeld = &invoice.FieldError{
	Field: "merchantAddress", Detail: "cannot be used by this merchant; ask the operator to allow it",
}

// sendHoldings looks up the holdings of creates that were not found recently. settled reports, after
// the transaction was flushed, whether hold is unnecessary.
func (s *Service) sendHoldings(ctx context.Context, tx *db.Tx, calls []*createCall) (h holdings, settled func() bool, err error) {
	h.at = s.conf.Schedule()
	for _, c := range s.holdings.stale(calls, h.at) {
		h.found = append(h.found, c.Value.heldAs())
	}
	claims, grants := h.divided()
	settled, err = access.SendHoldings(ctx, tx, claims, grants)
	return h, settled, err
}

// divided returns the holdings that merchants claim, and those that the operator grants.
func (h *holdings) divided() (claims, grants []access.Holding) {
	for _, held := range h.found {
		if held.claim {
			claims = append(claims, held.Holding)
		} else {
			grants = append(grants, held.Holding)
		}
	}
	return claims, grants
}

// hold makes the merchants of creates hold their settlement addresses: the operator's creates grant
// them, a merchant's own creates claim them. A merchant cannot hold a deposit address, because money
// at it belongs to its invoice. Creates in repeated have no effect.
func (s *Service) hold(ctx context.Context, tx *db.Tx, out *outbox, calls []*createCall, repeated map[string]bool) (h holdings, err error) {
	h.at = s.conf.Schedule()
	origins := make(map[invoice.Address]access.Origin)
	stale := s.holdings.stale(calls, h.at)
	if len(stale) == 0 {
		return h, nil
	}
	deposits, err := depositsAmong(ctx, tx, stale)
	if err != nil {
		return h, err
	}
	for _, c := range s.holdings.stale(without(calls, repeated), h.at) {
		if deposits[c.Value.inv.Merchant] {
			continue
		}
		h.found = append(h.found, c.Value.heldAs())
		if !c.Value.byMerchant {
			origins[c.Value.inv.Merchant] = c.Value.origin
		}
	}
	claims, grants := h.divided()
	_, lost, err := access.GrantAddresses(ctx, tx, grants, h.at)
	if err != nil {
		return h, err
	}
	for _, l := range lost {
		by := access.WithOrigin(ctx, origins[l.Address])
		out.audit = append(out.audit, access.NewAddressLost(by, h.at, l.MerchantID, chain.Checksum(l.Address)))
	}
	denied, err := access.ClaimAddresses(ctx, tx, claims, h.at)
	if err != nil || len(denied)+len(deposits) == 0 {
		return h, err
	}
	isDenied := func(c heldAs) bool { return deposits[c.Address] || c.claim && slices.Contains(denied, c.Holding) }
	h.found = slices.DeleteFunc(h.found, isDenied)
	h.refused = make(map[*createCall]bool)
	for _, c := range calls {
		h.refused[c] = isDenied(c.Value.heldAs())
	}
	return h, nil
}

// depositsAmong returns which settlement addresses of creates are deposit addresses.
func depositsAmong(ctx context.Context, tx *db.Tx, calls []*createCall) (map[invoice.Address]bool, error) {
	addresses := make([]invoice.Address, len(calls))
	for i, c := range calls {
		addresses[i] = c.Value.inv.Merchant
	}
	return NewReader(tx).AreDeposits(ctx, addresses)
}

// heldAs is a holding, and whether it was a claim of the merchant or a grant.
type heldAs struct {
	access.Holding
	claim bool
}

func (c *create) heldAs() heldAs {
	return heldAs{access.Holding{Address: c.inv.Merchant, MerchantID: c.inv.MerchantID}, c.byMerchant}
}

// holdingCache holds the holdings that were found in the database, with the time. It is
// safe for concurrent use.
type holdingCache struct {
	mu    sync.Mutex
	found map[heldAs]time.Time
}

func newHoldingCache() *holdingCache { return &holdingCache{found: make(map[heldAs]time.Time)} }

// stale returns a call for each holding that was not found within holdingTime.
func (h *holdingCache) stale(calls []*createCall, now time.Time) (stale []*createCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := make(map[heldAs]bool)
	for _, c := range calls {
		key := c.Value.heldAs()
		found, ok := h.found[key]
		if age := now.Sub(found); (!ok || age < 0 || age >= holdingTime) && !seen[key] {
			seen[key] = true
			stale = append(stale, c)
		}
	}
	return stale
}

// remember adds the holdings that a committed transaction found.
func (h *holdingCache) remember(found holdings) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.found) > MaxHoldings {
		clear(h.found)
	}
	for _, key := range found.found {
		h.found[key] = found.at
	}
}

// forget removes the holdings of the calls.
func (h *holdingCache) forget(calls []*createCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range calls {
		delete(h.found, c.Value.heldAs())
	}
}
