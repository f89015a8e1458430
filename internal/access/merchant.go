package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
)

// Errors of the use cases.
var (
	// ErrNotFound: there is no such merchant, or the principal may not see it.
	ErrNotFound = errors.New("there is no such merchant")
	// ErrExists: the merchant has been created.
	ErrExists = errors.New("the merchant exists")
	// ErrConfigured: the merchant is set in the configuration.
	ErrConfigured = errors.New("the merchant is set in the configuration")
	// ErrNotHeld: the merchant does not hold the address.
	ErrNotHeld = errors.New("the merchant does not hold the address")
	// ErrForbidden: the principal may not make the change.
	ErrForbidden = errors.New("only the operator may do this")
)

// DefaultDelay is the default of Config.Delay.
const DefaultDelay = 24 * time.Hour

// MerchantConfig is the configuration of a Manager. Store, Chains and Now are required.
type MerchantConfig struct {
	Store      *db.DB
	Configured map[string]MerchantSettings // by id
	// AcceptAll accepts every other id as a merchant, without a profile.
	AcceptAll bool
	Chains    []string      // keys of the configured chains
	Delay     time.Duration // of a change of a list of allowed addresses
	Now       func() time.Time
}

// MerchantManager creates, changes and finds merchants. It is safe for concurrent use.
type MerchantManager struct {
	conf  MerchantConfig
	cache merchantCache

	encoding sync.Mutex // held while an image is decoded and encoded
	logos    *limits.Buckets[string]
}

// NewMerchants returns a Manager. It panics without a Store or a clock. It sets the ids of the configured merchants.
func NewMerchants(c MerchantConfig) *MerchantManager {
	if c.Store == nil || c.Now == nil {
		panic("access: Config.Store and Config.Now are required")
	}
	c.Configured = maps.Clone(c.Configured)
	for id, settings := range c.Configured {
		settings.ID, settings.Configured = id, true
		c.Configured[id] = settings
	}
	uploads := limits.Limit{Name: "logos", Quota: LogosOfMerchant, Window: LogoWindow}
	return &MerchantManager{conf: c, logos: limits.NewBuckets[string](uploads, MaxCachedMerchants, c.Now)}
}

// now returns the time in whole seconds.
func (m *MerchantManager) now() time.Time { return m.conf.Now().UTC().Truncate(time.Second) }

// Get returns a merchant that the principal may see. The error is ErrNotFound.
func (m *MerchantManager) Get(ctx context.Context, by Principal, id string) (invoice.Merchant, error) {
	if !invoice.ValidMerchantID(id) || !by.Sees(id) {
		return invoice.Merchant{}, ErrNotFound
	}
	if c, ok := m.conf.Configured[id]; ok {
		return c.Merchant, nil
	}
	found, err := Merchant(ctx, m.conf.Store, id)
	if errors.Is(err, db.ErrNotFound) {
		err = ErrNotFound
	}
	return found.At(m.now()), err
}

// List returns up to limit merchants with ids greater than after, in the order of the ids. A
// merchant's principal sees only itself.
func (m *MerchantManager) List(ctx context.Context, by Principal, after string, limit int) ([]invoice.Merchant, error) {
	if !by.IsOperator() {
		if by.MerchantID <= after {
			return nil, nil
		}
		own, err := m.Get(ctx, by, by.MerchantID)
		if errors.Is(err, ErrNotFound) {
			return nil, nil
		}
		return []invoice.Merchant{own}, err
	}
	found, err := merchants(ctx, m.conf.Store, after, limit)
	if err != nil {
		return nil, err
	}
	all := make(map[string]invoice.Merchant)
	for _, row := range found {
		all[row.ID] = row.At(m.now())
	}
	for id, c := range m.conf.Configured {
		if id > after {
			all[id] = c.Merchant
		}
	}
	list := slices.SortedFunc(maps.Values(all), func(a, b invoice.Merchant) int { return strings.Compare(a.ID, b.ID) })
	return list[:min(len(list), limit)], nil
}

// Create creates a merchant with a change of an empty one. Errors are ErrForbidden,
// ErrConfigured, ErrExists, ErrLeft, ErrRetired and *invoice.FieldError.
func (m *MerchantManager) Create(ctx context.Context, by Principal, id string, c invoice.MerchantChange) (invoice.Merchant, error) {
	if !by.IsOperator() {
		return invoice.Merchant{}, ErrForbidden
	}
	if err := m.checkChains(c); err != nil {
		return invoice.Merchant{}, err
	}
	if _, ok := m.conf.Configured[id]; ok {
		return invoice.Merchant{}, ErrConfigured
	}
	now := m.now()
	created, err := invoice.Merchant{ID: id, CreatedAt: now}.Change(c, now, m.conf.Delay)
	if err != nil {
		return invoice.Merchant{}, err
	}
	err = m.conf.Store.Update(ctx, func(tx *db.Tx) error {
		if err := m.takeOver(ctx, tx, created); err != nil {
			return err
		}
		if err := InsertMerchant(ctx, tx, created); err != nil {
			return err
		}
		if _, err := m.grant(ctx, tx, holdings(id, c)); err != nil {
			return err
		}
		return AppendAudit(ctx, tx, m.entry(ctx, ActionMerchantCreate, id, nil, merchantForAudit(created)))
	})
	if errors.Is(err, db.ErrConflict) {
		err = ErrExists
	}
	m.cache.forget(id)
	return created, err
}

// Update changes a merchant. The operator may change everything; a merchant's principal what isOwners
// permits, with the delay of addresses, which it must hold or which are free. Errors are ErrNotFound,
// ErrForbidden, ErrConfigured, *invoice.FieldError and *ApprovalRequiredError.
func (m *MerchantManager) Update(ctx context.Context, by Principal, id string, c invoice.MerchantChange) (changed invoice.Merchant, err error) {
	if err := m.mayChange(by, id); err != nil {
		return changed, err
	}
	if !by.IsOperator() && !isOwners(c) {
		return changed, ErrForbidden
	}
	c.DelayDefaults = !by.IsOperator()
	if err := m.checkChains(c); err != nil {
		return changed, err
	}
	err = m.change(ctx, id, func(tx *db.Tx, was invoice.Merchant) (Action, error) {
		if changed, err = was.Change(c, m.now(), m.conf.Delay); err != nil {
			return "", err
		}
		granted, err := m.hold(ctx, tx, by, was, changed, c)
		if err != nil {
			return "", err
		}
		if err := m.wantApproval(ctx, tx, by, c, was, changed); err != nil {
			return "", err
		}
		if !granted && reflect.DeepEqual(merchantForAudit(was), merchantForAudit(changed)) {
			changed = was
			return "", nil
		}
		action := ActionMerchantUpdate
		switch {
		case dropsPending(was, changed):
			action = ActionPendingDrop
		case c.Allowed != nil:
			action = ActionAllowList
		}
		return action, updateMerchant(ctx, tx, changed)
	})
	return changed, err
}

// dropsPending reports whether a change only cancels pending addresses.
func dropsPending(was, is invoice.Merchant) bool {
	kept := was
	if is.Pending == nil {
		kept.Pending = nil
	}
	if is.PendingDefaults == nil {
		kept.PendingDefaults = nil
	}
	changes := func(from invoice.Merchant) bool {
		return !reflect.DeepEqual(merchantForAudit(from), merchantForAudit(is))
	}
	return changes(was) && !changes(kept)
}

// addressChange is a change of addresses as people see it who approve it.
type addressChange struct {
	DefaultAddresses map[string]string `json:"defaultAddresses"` // nil if they stay
	Allowed          []string          `json:"allowedAddresses"` // chain key, space, address; nil if they stay
	// What is in force. An approval does not count once another change was made.
	WasDefaults map[string]string `json:"wasDefaultAddresses"`
	WasAllowed  []string          `json:"wasAllowedAddresses"`
}

// wantApproval uses up the approval of a change of addresses, or returns an *ApprovalRequiredError. To keep what is in
// force and drop what is pending needs none.
func (m *MerchantManager) wantApproval(ctx context.Context, tx *db.Tx, by Principal, c invoice.MerchantChange, was, is invoice.Merchant) error {
	kept := was
	kept.PendingDefaults, kept.Pending = is.PendingDefaults, is.Pending
	drops := is.PendingDefaults == nil && is.Pending == nil && sameAddresses(kept, is)
	if drops || sameAddresses(was, is) {
		return nil
	}
	subject := addressChange{WasDefaults: auditedDefaults(was.DefaultAddresses), WasAllowed: sortedAddresses(was.Allowed)}
	if c.DefaultAddresses != nil {
		subject.DefaultAddresses = auditedDefaults(c.DefaultAddresses)
	}
	if c.Allowed != nil {
		subject.Allowed = sortedAddresses(c.Allowed)
	}
	used, err := WantApproval(ctx, tx, m.now(), GuardedAction{By: by, Kind: OfAddresses, Subject: subject})
	if err != nil {
		return err
	}
	return AppendAudit(ctx, tx, used...)
}

// sameAddresses reports whether two states of a merchant have the same addresses in force and pending.
func sameAddresses(was, is invoice.Merchant) bool {
	all := func(m invoice.Merchant) []any {
		return []any{m.DefaultAddresses, m.PendingDefaults, m.Allowed, m.Pending}
	}
	return reflect.DeepEqual(all(was), all(is))
}

// sortedAddresses returns the texts of addresses in order, each once.
func sortedAddresses(all []invoice.AllowedAddress) []string {
	texts := auditedAddresses(all)
	slices.Sort(texts)
	return slices.Compact(texts)
}

// isOwners reports whether a merchant may make a change itself: not of the rules by which its invoices
// are paid and its pages are reached.
func isOwners(c invoice.MerchantChange) bool {
	return c.Tolerance == nil && c.Collection == nil && c.ReturnHosts == nil && c.EmbedOrigins == nil && !c.Immediately
}

// mayChange returns an error unless the principal may make changes to the merchant.
func (m *MerchantManager) mayChange(by Principal, id string) error {
	if !invoice.ValidMerchantID(id) || !by.Sees(id) {
		return ErrNotFound
	}
	if _, ok := m.conf.Configured[id]; ok {
		return ErrConfigured
	}
	return nil
}

// change changes a merchant in one transaction with its audit entry. do returns the kind
// of the change, or "" for no change.
func (m *MerchantManager) change(ctx context.Context, id string, do func(tx *db.Tx, was invoice.Merchant) (Action, error)) error {
	err := m.conf.Store.Update(ctx, func(tx *db.Tx) error {
		was, err := lockMerchant(ctx, tx, id)
		if err != nil {
			return err
		}
		was = was.At(m.now())
		action, err := do(tx, was)
		if err != nil || action == "" {
			return err
		}
		is, err := Merchant(ctx, tx, id)
		if err != nil {
			return err
		}
		return AppendAudit(ctx, tx, m.entry(ctx, action, id, merchantForAudit(was), merchantForAudit(is)))
	})
	m.cache.forget(id)
	if errors.Is(err, db.ErrNotFound) {
		return ErrNotFound
	}
	return err
}

func (m *MerchantManager) entry(ctx context.Context, action Action, id string, before, after any) Entry {
	return NewEntry(ctx, m.now(), Change{MerchantID: id, Action: action, Object: id, Before: before, After: after})
}

// checkChains returns a *invoice.FieldError for an address on a chain that is not configured.
func (m *MerchantManager) checkChains(c invoice.MerchantChange) error {
	for key := range c.DefaultAddresses {
		if !slices.Contains(m.conf.Chains, key) {
			return &invoice.FieldError{Field: "defaultAddresses", Detail: fmt.Sprintf("names %.40q, which is not a chain of this service", key)}
		}
	}
	for i, a := range c.Allowed {
		if !slices.Contains(m.conf.Chains, a.ChainKey) {
			return &invoice.FieldError{Field: fmt.Sprintf("allowedAddresses[%d].chainKey", i), Detail: fmt.Sprintf("is %.40q, which is not a chain of this service", a.ChainKey)}
		}
	}
	return nil
}

// auditedMerchant is a merchant in the audit log.
type auditedMerchant struct {
	Name             string            `json:"name"`
	Color            string            `json:"color,omitempty"`
	SupportContact   string            `json:"supportContact,omitempty"`
	Statement        string            `json:"statement,omitempty"`
	Tolerance        string            `json:"tolerance,omitempty"`
	Collection       string            `json:"collection,omitempty"`
	DefaultAddresses map[string]string `json:"defaultAddresses,omitempty"`
	Allowed          []string          `json:"allowedAddresses,omitempty"`        // chain key, space, address
	Pending          []string          `json:"pendingAllowedAddresses,omitempty"` // chain key, space, address
	EffectiveAt      int64             `json:"effectiveAt,omitempty"`             // of the pending ones, Unix seconds
	PendingDefaults  map[string]string `json:"pendingDefaultAddresses,omitempty"`
	DefaultsAt       int64             `json:"defaultAddressesEffectiveAt,omitempty"` // of the pending ones, Unix seconds
	Logo             string            `json:"logo,omitempty"`                        // SHA-256
	ReturnHosts      []string          `json:"returnHosts,omitempty"`
	EmbedOrigins     []string          `json:"embedOrigins,omitempty"`
	Timezone         string            `json:"timezone,omitempty"`
	ReminderHours    []int             `json:"reminderHours,omitempty"`
}

func merchantForAudit(m invoice.Merchant) auditedMerchant {
	a := auditedMerchant{
		Name: m.Name, Color: m.Color, SupportContact: m.SupportContact, Statement: m.Statement, Tolerance: m.Tolerance.String(),
		Collection: string(m.Collection), DefaultAddresses: auditedDefaults(m.DefaultAddresses), Allowed: auditedAddresses(m.Allowed), ReturnHosts: m.ReturnHosts,
		EmbedOrigins: m.EmbedOrigins, Timezone: m.Timezone, ReminderHours: m.ReminderHours,
	}
	if m.PendingDefaults != nil {
		a.PendingDefaults, a.DefaultsAt = auditedDefaults(m.PendingDefaults.Addresses), m.PendingDefaults.EffectiveAt.Unix()
	}
	if m.Pending != nil {
		a.Pending, a.EffectiveAt = auditedAddresses(m.Pending.Allowed), m.Pending.EffectiveAt.Unix()
	}
	if m.Logo != nil {
		a.Logo = m.Logo.SHA256
	}
	return a
}

func auditedDefaults(all map[string]invoice.Address) map[string]string {
	texts := make(map[string]string, len(all))
	for key, address := range all {
		texts[key] = chain.Checksum(address)
	}
	return texts
}

func auditedAddresses(all []invoice.AllowedAddress) []string {
	texts := db.Each(all, func(a invoice.AllowedAddress) string { return a.ChainKey + " " + chain.Checksum(a.Address) })
	return texts
}
