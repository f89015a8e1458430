package access

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

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Errors of an id that another company may have used.
var (
	// ErrLeft: the configuration had the merchant, and there is no proof that this is the same company.
	ErrLeft = errors.New("the configuration had a merchant with this id, and no address shows that this is the same company; " +
		"if it is, run quittance merchant resume, else choose another id")
	// ErrRetired: the id must not be used again.
	ErrRetired = errors.New("the id was retired, and is not used again; choose another id")
)

// RefusedError names merchants of the configuration that may be different companies from the ones that had their ids.
type RefusedError struct{ Faults []error }

// Error joins the faults. Each of them explains what to do.
func (e *RefusedError) Error() string { return errors.Join(e.Faults...).Error() }

// Left is a merchant that the configuration no longer has.
type Left struct {
	ID   string
	At   time.Time // the first start without it, or this one
	Uses MerchantUses
}

// RecordConfigured compares the configured merchants with the recorded ones, and records them. It returns the merchants
// that left the configuration and are not in the database either. After a *RefusedError no merchant is recorded.
func (m *MerchantManager) RecordConfigured(ctx context.Context) (left []Left, err error) {
	if m.conf.AcceptAll {
		return nil, nil
	}
	err = m.conf.Store.Update(ctx, func(tx *db.Tx) error {
		var changed []MerchantHolder
		if changed, left, err = m.compare(ctx, tx); err != nil {
			return err
		}
		for _, h := range changed {
			if err := PutMerchantHolder(ctx, tx, h); err != nil {
				return fmt.Errorf("record the merchant %s: %w", h.MerchantID, err)
			}
		}
		return nil
	})
	return left, err
}

// CompareConfigured is RecordConfigured without recording.
func (m *MerchantManager) CompareConfigured(ctx context.Context) (left []Left, err error) {
	if !m.conf.AcceptAll {
		_, left, err = m.compare(ctx, m.conf.Store)
	}
	return left, err
}

// compare returns the holders that have changed, and the merchants that left the configuration.
func (m *MerchantManager) compare(ctx context.Context, q db.Querier) (changed []MerchantHolder, left []Left, err error) {
	known := make(map[string]MerchantHolder)
	all, err := merchantHolders(ctx, q)
	if err != nil {
		return nil, nil, fmt.Errorf("read the merchants that the configuration had: %w", err)
	}
	for _, h := range all {
		known[h.MerchantID] = h
	}
	var refused []error
	for _, id := range slices.Sorted(maps.Keys(m.conf.Configured)) {
		was, found := known[id]
		c := m.conf.Configured[id]
		is := MerchantHolder{
			MerchantID: id, Allowed: c.Allowed, Webhook: fingerprint(hostOf(c.WebhookURL)), URL: fingerprint(c.WebhookURL), Since: m.now(),
		}
		if found {
			is.Since = was.Since
			fault, err := sameCompany(ctx, q, was, is)
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
	gone, err := m.gone(ctx, q, known)
	for _, h := range gone {
		if h.LeftAt.IsZero() {
			h.LeftAt = m.now()
			changed = append(changed, h)
		}
		uses, err := findMerchantUses(ctx, q, h.MerchantID)
		if err != nil {
			return nil, nil, err
		}
		left = append(left, Left{h.MerchantID, h.LeftAt, uses})
	}
	return changed, left, err
}

// gone returns the merchants, with and without a holder, that are neither in the configuration nor in
// the database nor retired.
func (m *MerchantManager) gone(ctx context.Context, q db.Querier, known map[string]MerchantHolder) (gone []MerchantHolder, err error) {
	others, err := merchantsWithoutHolder(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read the merchants without a profile: %w", err)
	}
	for _, id := range others {
		if _, ok := m.conf.Configured[id]; !ok {
			known[id] = MerchantHolder{MerchantID: id, Since: m.now()}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if !known[id].RetiredAt.IsZero() {
			continue
		}
		switch _, err := Merchant(ctx, q, id); {
		case errors.Is(err, db.ErrNotFound):
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
// so is an unchanged entry. After an absence, the host is no proof, but the same URL is: companies share hosts. An entry
// that had neither may get both while it stays, but must return unchanged.
func sameCompany(ctx context.Context, q db.Querier, was, is MerchantHolder) (fault, err error) {
	if !was.RetiredAt.IsZero() {
		return fmt.Errorf("the merchant id %s was retired on %s, and is not used again: choose another id for the merchant in the configuration",
			was.MerchantID, clock.Format(was.RetiredAt, time.UTC, time.DateOnly)), nil
	}
	if haveCommonMark(was, is) {
		return nil, nil
	}
	if len(is.Allowed) > 0 {
		if held, err := HoldsAll(ctx, q, is.MerchantID, addressesOf(is.Allowed)); err != nil || held {
			return nil, err
		}
	}
	uses, err := findMerchantUses(ctx, q, is.MerchantID)
	if err != nil || !uses.Any() {
		return nil, err
	}
	why := "has none of its former allowedAddresses, and no webhookUrl with the former host"
	if !was.LeftAt.IsZero() {
		why = fmt.Sprintf("has none of its former allowedAddresses, and not the former webhookUrl, and was not in it on %s", clock.Format(was.LeftAt, time.UTC, time.DateOnly))
	}
	return mayDiffer(is.MerchantID, why), nil
}

// haveCommonMark reports whether two entries of a merchant prove the same company.
func haveCommonMark(was, is MerchantHolder) bool {
	switch {
	case was.Webhook != "" && was.Webhook == is.Webhook && (was.LeftAt.IsZero() || was.URL == is.URL):
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

// takeOver permits creating a merchant in the database that left the configuration. Errors are ErrLeft and ErrRetired.
func (m *MerchantManager) takeOver(ctx context.Context, tx *db.Tx, created invoice.Merchant) error {
	was, err := FindMerchantHolder(ctx, tx, created.ID)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return nil
	case err != nil:
		return err
	case !was.RetiredAt.IsZero():
		return ErrRetired
	}
	named := append(addressesOf(created.Allowed), slices.Collect(maps.Values(created.DefaultAddresses))...)
	same, err := HoldsAll(ctx, tx, created.ID, named)
	if err != nil {
		return err
	}
	uses, err := findMerchantUses(ctx, tx, created.ID)
	switch {
	case err != nil:
		return err
	case uses.Any() && (!same || len(named) == 0):
		return ErrLeft
	}
	return deleteMerchantHolder(ctx, tx, created.ID)
}

// Retire makes a merchant's id unusable: its keys and sessions end within a second, and it can no longer create
// invoices or sell by its payment links. Its existing invoices can be paid, and their events are still sent to its
// webhook endpoint. Errors are ErrNotFound, ErrForbidden, ErrConfigured and ErrRetired.
func (m *MerchantManager) Retire(ctx context.Context, by Principal, id string) error {
	return m.decide(ctx, by, id, ActionMerchantRetire, func(tx *db.Tx, was MerchantHolder, known bool) error {
		if !was.RetiredAt.IsZero() {
			return ErrRetired
		}
		if !known {
			if _, err := Merchant(ctx, tx, id); err != nil {
				return err
			}
		}
		was.MerchantID, was.RetiredAt = id, m.now()
		was.Since = cmp.Or(was.Since, was.RetiredAt)
		return PutMerchantHolder(ctx, tx, was)
	})
}

// Resume lets an id that left the configuration, or was retired, be used again by the same company.
// Errors are ErrNotFound if the id may be used already, and ErrForbidden.
func (m *MerchantManager) Resume(ctx context.Context, by Principal, id string) error {
	return m.decide(ctx, by, id, ActionMerchantResume, func(tx *db.Tx, _ MerchantHolder, _ bool) error {
		return deleteMerchantHolder(ctx, tx, id)
	})
}

// decide makes a change of a holder in one transaction with its audit entry.
func (m *MerchantManager) decide(
	ctx context.Context, by Principal, id string, action Action, do func(tx *db.Tx, was MerchantHolder, known bool) error,
) error {
	_, configured := m.conf.Configured[id]
	switch {
	case !invoice.ValidMerchantID(id):
		return ErrNotFound
	case !by.IsOperator():
		return ErrForbidden
	case configured && action == ActionMerchantRetire:
		return ErrConfigured
	}
	err := m.conf.Store.Update(ctx, func(tx *db.Tx) error {
		was, err := FindMerchantHolder(ctx, tx, id)
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			return err
		}
		if err := do(tx, was, err == nil); err != nil {
			return err
		}
		return AppendAudit(ctx, tx, m.entry(ctx, action, id, nil, nil))
	})
	m.cache.forget(id)
	if errors.Is(err, db.ErrNotFound) {
		err = ErrNotFound
	}
	return err
}
