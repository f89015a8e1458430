package merchant

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/times"
)

// Errors of an id that another company may have used.
var (
	// ErrLeft: the configuration had the merchant, and there is no proof that this is the same company.
	ErrLeft = errors.New("the configuration had a merchant with this id, and no address shows that this is the same company; " +
		"if it is, run quittance merchant resume, else choose another id")
	// ErrRetired: the id must not be used again.
	ErrRetired = errors.New("the id was retired, and is not used again; choose another id")
)

// RefusedError names merchants of the configuration that may be different companies from the ones that
// had their ids.
type RefusedError struct{ Faults []error }

// Error joins the faults. Each of them explains what to do.
func (e *RefusedError) Error() string { return errors.Join(e.Faults...).Error() }

// Left is a merchant that the configuration no longer has.
type Left struct {
	ID   string
	At   time.Time // the first start without it, or this one
	Uses store.MerchantUses
}

// holders reads the recorded holders of merchant ids. *store.Store and *store.Tx implement it.
type holders interface {
	MerchantHolders(ctx context.Context) ([]store.MerchantHolder, error)
	MerchantsWithoutHolder(ctx context.Context) ([]string, error)
	Merchant(ctx context.Context, id string) (invoice.Merchant, error)
	MerchantUses(ctx context.Context, id string) (store.MerchantUses, error)
	HoldsAll(ctx context.Context, id string, addresses []invoice.Address) (bool, error)
}

// RecordConfigured compares the configured merchants, and their configured webhook URLs, with the
// recorded ones, and records them. It returns the merchants that left the configuration and are not in
// the database either. After a *RefusedError no merchant is recorded.
func (m *Manager) RecordConfigured(ctx context.Context, webhooks map[string]string) (left []Left, err error) {
	if m.conf.AcceptAll {
		return nil, nil
	}
	err = m.conf.Store.Update(ctx, func(tx *store.Tx) error {
		var changed []store.MerchantHolder
		if changed, left, err = m.compare(ctx, tx, webhooks); err != nil {
			return err
		}
		for _, h := range changed {
			if err := tx.PutMerchantHolder(ctx, h); err != nil {
				return fmt.Errorf("record the merchant %s: %w", h.MerchantID, err)
			}
		}
		return nil
	})
	return left, err
}

// CompareConfigured is RecordConfigured without recording.
func (m *Manager) CompareConfigured(ctx context.Context, webhooks map[string]string) (left []Left, err error) {
	if !m.conf.AcceptAll {
		_, left, err = m.compare(ctx, m.conf.Store, webhooks)
	}
	return left, err
}

// compare returns the holders that have changed, and the merchants that left the configuration.
func (m *Manager) compare(ctx context.Context, db holders, webhooks map[string]string) (changed []store.MerchantHolder, left []Left, err error) {
	known := make(map[string]store.MerchantHolder)
	all, err := db.MerchantHolders(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the merchants that the configuration had: %w", err)
	}
	for _, h := range all {
		known[h.MerchantID] = h
	}
	var refused []error
	for _, id := range slices.Sorted(maps.Keys(m.conf.Configured)) {
		was, found := known[id]
		is := store.MerchantHolder{MerchantID: id, Allowed: m.conf.Configured[id].Allowed, Webhook: fingerprint(hostOf(webhooks[id])), URL: fingerprint(webhooks[id]), Since: m.now()}
		if found {
			is.Since = was.Since
			fault, err := sameCompany(ctx, db, was, is)
			if err != nil {
				return nil, nil, err
			}
			if fault != nil {
				refused = append(refused, fault)
			}
		}
		if !found || !was.LeftAt.IsZero() || was.URL != is.URL || !slices.Equal(was.Allowed, is.Allowed) {
			changed = append(changed, is)
		}
		delete(known, id)
	}
	if len(refused) > 0 {
		return nil, nil, &RefusedError{refused}
	}
	gone, err := m.gone(ctx, db, known)
	for _, h := range gone {
		if h.LeftAt.IsZero() {
			h.LeftAt = m.now()
			changed = append(changed, h)
		}
		uses, err := db.MerchantUses(ctx, h.MerchantID)
		if err != nil {
			return nil, nil, err
		}
		left = append(left, Left{h.MerchantID, h.LeftAt, uses})
	}
	return changed, left, err
}

// gone returns the merchants, with and without a holder, that are neither in the configuration nor in
// the database nor retired.
func (m *Manager) gone(ctx context.Context, db holders, known map[string]store.MerchantHolder) (gone []store.MerchantHolder, err error) {
	others, err := db.MerchantsWithoutHolder(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the merchants without a profile: %w", err)
	}
	for _, id := range others {
		if _, ok := m.conf.Configured[id]; !ok {
			known[id] = store.MerchantHolder{MerchantID: id, Since: m.now()}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if !known[id].RetiredAt.IsZero() {
			continue
		}
		switch _, err := db.Merchant(ctx, id); {
		case errors.Is(err, store.ErrNotFound):
			gone = append(gone, known[id])
		case err != nil:
			return nil, err
		}
	}
	return gone, nil
}

// fingerprint returns the stored form of a text that may hold a secret.
func fingerprint(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// hostOf returns the host of a webhook URL, or "".
func hostOf(raw string) string {
	at, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return strings.ToLower(at.Host)
}

// sameCompany returns a fault if a configured merchant may be a different company from the one that
// had its id. A common address or the same host of the webhook URL is proof of the same company, and
// so is an unchanged entry. An entry that had neither may get both while it stays, but must return
// unchanged.
func sameCompany(ctx context.Context, db holders, was, is store.MerchantHolder) (fault, err error) {
	if !was.RetiredAt.IsZero() {
		return fmt.Errorf("the merchant id %s was retired on %s, and is not used again: choose another id for the merchant in the configuration",
			was.MerchantID, times.Format(was.RetiredAt, time.UTC, time.DateOnly)), nil
	}
	if haveCommonMark(was, is) {
		return nil, nil
	}
	if len(is.Allowed) > 0 {
		if held, err := db.HoldsAll(ctx, is.MerchantID, addressesOf(is.Allowed)); err != nil || held {
			return nil, err
		}
	}
	uses, err := db.MerchantUses(ctx, is.MerchantID)
	if err != nil || !uses.Any() {
		return nil, err
	}
	why := "has none of its former allowedAddresses, and no webhookUrl with the former host"
	if !was.LeftAt.IsZero() {
		why += fmt.Sprintf(", and was not in it on %s", times.Format(was.LeftAt, time.UTC, time.DateOnly))
	}
	return mayDiffer(is.MerchantID, why), nil
}

// haveCommonMark reports whether two entries of a merchant prove the same company.
func haveCommonMark(was, is store.MerchantHolder) bool {
	switch {
	case was.Webhook != "" && was.Webhook == is.Webhook:
		return true
	case len(was.Allowed) == 0 && was.Webhook == "": // it had no mark
		return was.LeftAt.IsZero() || len(is.Allowed) == 0 && is.Webhook == ""
	}
	return slices.ContainsFunc(is.Allowed, func(a invoice.AllowedAddress) bool { return slices.Contains(was.Allowed, a) })
}

// mayDiffer is the fault of an id that may belong to another company.
func mayDiffer(id, why string) error {
	return fmt.Errorf("the merchant %s of the configuration %s. If it is the same company, run `quittance merchant resume %s --config FILE`. "+
		"If it is another one, give it another id: with this one it would have the former company's keys, invoices, payment links and customers", id, why, id)
}

func addressesOf(all []invoice.AllowedAddress) (addresses []invoice.Address) {
	for _, a := range all {
		addresses = append(addresses, a.Address)
	}
	return addresses
}

// takeOver permits creating a merchant in the database that left the configuration. Errors are ErrLeft
// and ErrRetired.
func (m *Manager) takeOver(ctx context.Context, tx *store.Tx, created invoice.Merchant) error {
	was, err := tx.MerchantHolder(ctx, created.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	case !was.RetiredAt.IsZero():
		return ErrRetired
	}
	named := append(addressesOf(created.Allowed), slices.Collect(maps.Values(created.DefaultAddresses))...)
	same, err := tx.HoldsAll(ctx, created.ID, named)
	if err != nil {
		return err
	}
	uses, err := tx.MerchantUses(ctx, created.ID)
	switch {
	case err != nil:
		return err
	case uses.Any() && (!same || len(named) == 0):
		return ErrLeft
	}
	return tx.DeleteMerchantHolder(ctx, created.ID)
}

// Retire makes a merchant's id unusable: its keys and sessions end within a second, and it can no
// longer create invoices or sell by its payment links. Its existing invoices can be paid, and their
// events are still sent to its webhook endpoint. Errors are ErrNotFound, ErrForbidden, ErrConfigured
// and ErrRetired.
func (m *Manager) Retire(ctx context.Context, by access.Principal, id string) error {
	return m.decide(ctx, by, id, access.ActionMerchantRetire, func(tx *store.Tx, was store.MerchantHolder, known bool) error {
		if !was.RetiredAt.IsZero() {
			return ErrRetired
		}
		if !known {
			if _, err := tx.Merchant(ctx, id); err != nil {
				return err
			}
		}
		was.MerchantID, was.RetiredAt = id, m.now()
		was.Since = cmp.Or(was.Since, was.RetiredAt)
		return tx.PutMerchantHolder(ctx, was)
	})
}

// Resume lets an id that left the configuration, or was retired, be used again by the same company.
// Errors are ErrNotFound if the id may be used already, and ErrForbidden.
func (m *Manager) Resume(ctx context.Context, by access.Principal, id string) error {
	return m.decide(ctx, by, id, access.ActionMerchantResume, func(tx *store.Tx, _ store.MerchantHolder, _ bool) error {
		return tx.DeleteMerchantHolder(ctx, id)
	})
}

// decide makes a change of a holder in one transaction with its audit entry.
func (m *Manager) decide(
	ctx context.Context, by access.Principal, id string, action access.Action, do func(tx *store.Tx, was store.MerchantHolder, known bool) error,
) error {
	_, configured := m.conf.Configured[id]
	switch {
	case !invoice.ValidMerchantID(id):
		return ErrNotFound
	case !by.IsOperator():
		return ErrForbidden
	case configured && action == access.ActionMerchantRetire:
		return ErrConfigured
	}
	err := m.conf.Store.Update(ctx, func(tx *store.Tx) error {
		was, err := tx.MerchantHolder(ctx, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := do(tx, was, err == nil); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, m.entry(ctx, action, id, nil, nil))
	})
	m.cache.forget(id)
	if errors.Is(err, store.ErrNotFound) {
		err = ErrNotFound
	}
	return err
}
