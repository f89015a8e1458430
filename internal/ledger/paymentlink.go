package ledger

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Errors of the use cases.
var (
	// ErrSlugTaken: another link of the merchant that is not archived has the slug.
	ErrSlugTaken = errors.New("another link of the merchant has the slug")
	// ErrArchived: the link is archived.
	ErrArchived = errors.New("the link is archived")
)

// Holders decides who may receive payments at an address. *access.MerchantManager implements it.
type Holders interface {
	HoldAddress(ctx context.Context, tx *db.Tx, by access.Principal, merchantID string, address invoice.Address) (held bool, err error)
}

// PaymentLinkConfig is the configuration of a Manager. All fields but Rand are required.
type PaymentLinkConfig struct {
	Store   *db.DB
	Ledger  *Service
	Holders Holders
	Now     func() time.Time
	Rand    io.Reader // nil is crypto/rand
}

// PaymentLinkManager creates, changes and finds payment links, and makes their invoices. It is safe for concurrent use.
type PaymentLinkManager struct {
	conf PaymentLinkConfig
	ids  *invoice.IDs
}

// NewPaymentLinks returns a Manager. It panics if a required field is missing.
func NewPaymentLinks(c PaymentLinkConfig) *PaymentLinkManager {
	if c.Store == nil || c.Ledger == nil || c.Holders == nil || c.Now == nil {
		panic("ledger: Config.Store, Ledger, Holders and Now are required")
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	return &PaymentLinkManager{conf: c, ids: invoice.NewIDs(c.Now, c.Rand)}
}

// now returns the time in whole seconds.
func (m *PaymentLinkManager) now() time.Time { return invoice.Unix(m.conf.Now().Unix()) }

// PaymentLinkRequest asks for a payment link. Without a Slug it gets a random one, and without a Lifetime the default.
type PaymentLinkRequest struct {
	Once
	MerchantID string
	Slug       string
	Terms      invoice.PaymentLinkTerms
}

// Create creates a payment link. With a key that was used before, it returns the link of the first request in its
// current state. Errors are ErrSlugTaken, ErrIdempotencyMismatch and *invoice.FieldError.
func (m *PaymentLinkManager) Create(ctx context.Context, by access.Principal, r PaymentLinkRequest) (l invoice.PaymentLink, err error) {
	hash, err := hashRequest(r)
	if err != nil {
		return l, err
	}
	if first, err := m.replay(ctx, r, hash); !errors.Is(err, db.ErrNotFound) {
		return first, err
	}
	now := m.now()
	l = invoice.PaymentLink{
		ID: m.ids.New(invoice.PrefixPaymentLink), MerchantID: r.MerchantID, Slug: r.Slug, PaymentLinkTerms: r.Terms, CreatedAt: now, ChangedAt: now,
	}
	if l.Slug == "" {
		if l.Slug, err = m.newSlug(); err != nil {
			return l, err
		}
	}
	if l.Lifetime == 0 {
		l.Lifetime = invoice.DefaultLinkLifetime
	}
	if err := m.check(ctx, l); err != nil {
		return l, err
	}
	err = m.conf.Store.Update(ctx, func(tx *db.Tx) error {
		if err := m.hold(ctx, tx, by, l); err != nil {
			return err
		}
		if err := insertPaymentLink(ctx, tx, l, r.Scope, r.Key, hash); err != nil {
			return err
		}
		return access.AppendAudit(ctx, tx, m.entry(ctx, access.ActionLinkCreate, l, nil, audited(l)))
	})
	if errors.Is(err, db.ErrConflict) {
		// Another request with the same key may have been first.
		if first, err := m.replay(ctx, r, hash); !errors.Is(err, db.ErrNotFound) {
			return first, err
		}
		return l, ErrSlugTaken
	}
	return l, err
}

// replay returns the link of the first request with the key, or db.ErrNotFound.
func (m *PaymentLinkManager) replay(ctx context.Context, r PaymentLinkRequest, hash invoice.Hash) (invoice.PaymentLink, error) {
	if r.Key == "" {
		return invoice.PaymentLink{}, db.ErrNotFound
	}
	first, used, err := PaymentLinkByKey(ctx, m.conf.Store, r.Scope, r.Key)
	if err == nil && used != hash {
		err = ErrIdempotencyMismatch
	}
	if err == nil {
		r.Mark(true)
	}
	return first, err
}

// newSlug returns 50 random bits as text.
func (m *PaymentLinkManager) newSlug() (string, error) {
	var random [7]byte
	if _, err := io.ReadFull(m.conf.Rand, random[:]); err != nil {
		return "", fmt.Errorf("random slug: %w", err)
	}
	const characters = 10
	return invoice.Text(random[:])[:characters], nil
}

// check returns an *invoice.FieldError if a link breaks a rule, or cannot make invoices.
func (m *PaymentLinkManager) check(ctx context.Context, l invoice.PaymentLink) error {
	if err := l.Check(); err != nil {
		return err
	}
	d := l.Draft(l.Sample(), "")
	d.ExpiresAt = m.now().Add(l.Lifetime)
	return m.conf.Ledger.CheckDraft(ctx, d)
}

// hold makes the merchant hold the link's settlement address, if it names one.
func (m *PaymentLinkManager) hold(ctx context.Context, tx *db.Tx, by access.Principal, l invoice.PaymentLink) error {
	if l.Merchant.IsZero() {
		return nil
	}
	held, err := m.conf.Holders.HoldAddress(ctx, tx, by, l.MerchantID, l.Merchant)
	if err == nil && !held {
		err = &invoice.FieldError{Field: "merchantAddress", Detail: "cannot be used by this merchant; ask the operator to allow it"}
	}
	return err
}

// holdNew is hold for a change. An address that stays is not held again: the operator would grant what the merchant
// claimed.
func (m *PaymentLinkManager) holdNew(ctx context.Context, tx *db.Tx, by access.Principal, was, is invoice.PaymentLink) error {
	if is.Merchant == was.Merchant {
		return nil
	}
	return m.hold(ctx, tx, by, is)
}

// Update changes a link that the principal sees. Archiving cannot be undone. Errors are
// db.ErrNotFound, ErrArchived and *invoice.FieldError.
func (m *PaymentLinkManager) Update(ctx context.Context, by access.Principal, id string, c invoice.PaymentLinkChange) (changed invoice.PaymentLink, err error) {
	if _, err := m.Get(ctx, by, id); err != nil {
		return changed, err
	}
	err = m.conf.Store.Update(ctx, func(tx *db.Tx) error {
		was, err := lockPaymentLink(ctx, tx, id)
		if err != nil {
			return err
		}
		changed = was
		changed.PaymentLinkTerms, changed.Archived = was.PaymentLinkTerms.Change(c), was.Archived || c.Archived
		if changed == was {
			return nil
		}
		if was.Archived {
			return ErrArchived
		}
		action := access.ActionLinkArchive
		if !changed.Archived { // an archived link makes no invoices
			action = access.ActionLinkUpdate
			if err := m.check(ctx, changed); err != nil {
				return err
			}
			if err := m.holdNew(ctx, tx, by, was, changed); err != nil {
				return err
			}
		} else if err := changed.Check(); err != nil {
			return err
		}
		changed.ChangedAt = m.now()
		if err := updatePaymentLink(ctx, tx, changed); err != nil {
			return err
		}
		return access.AppendAudit(ctx, tx, m.entry(ctx, action, changed, audited(was), audited(changed)))
	})
	return changed, err
}

// Get returns a link that the principal sees, or db.ErrNotFound.
func (m *PaymentLinkManager) Get(ctx context.Context, by access.Principal, id string) (invoice.PaymentLink, error) {
	l, err := PaymentLink(ctx, m.conf.Store, id)
	if err == nil && !by.Sees(l.MerchantID) {
		return invoice.PaymentLink{}, db.ErrNotFound
	}
	return l, err
}

// List returns the matching links, newest first.
func (m *PaymentLinkManager) List(ctx context.Context, f PaymentLinkFilter) ([]invoice.PaymentLink, error) {
	return PaymentLinks(ctx, m.conf.Store, f)
}

func (m *PaymentLinkManager) entry(ctx context.Context, action access.Action, l invoice.PaymentLink, before, after any) access.Entry {
	return access.NewEntry(ctx, m.now(), access.Change{MerchantID: l.MerchantID, Action: action, Object: l.ID, Before: before, After: after})
}

// auditedLink is a payment link in the audit log.
type auditedLink struct {
	Slug            string `json:"slug"`
	Title           string `json:"title"`
	Description     string `json:"description,omitempty"`
	Amount          string `json:"amount,omitempty"`
	Minimum         string `json:"minAmount,omitempty"`
	Maximum         string `json:"maxAmount,omitempty"`
	Currency        string `json:"currency"`
	ChainKey        string `json:"chainKey"`
	Merchant        string `json:"merchantAddress,omitempty"`
	LineItem        string `json:"lineItem,omitempty"`
	ReferencePrefix string `json:"referencePrefix,omitempty"`
	Collection      string `json:"collection,omitempty"`
	ReturnURL       string `json:"returnUrl,omitempty"`
	CancelURL       string `json:"cancelUrl,omitempty"`
	Lifetime        int64  `json:"expiresIn"`
	Archived        bool   `json:"archived,omitempty"`
}

// audited returns a link for the audit log, with URLs without their queries.
func audited(l invoice.PaymentLink) auditedLink {
	a := fields(l)
	a.ReturnURL, a.CancelURL = access.WithoutQuery(a.ReturnURL), access.WithoutQuery(a.CancelURL)
	return a
}

func fields(l invoice.PaymentLink) auditedLink {
	a := auditedLink{
		Slug: l.Slug, Title: l.Title, Description: l.Description, Amount: amountText(l.Amount), Minimum: amountText(l.Minimum), Maximum: amountText(l.Maximum),
		Currency: l.Currency, ChainKey: l.ChainKey, LineItem: l.LineItem, ReferencePrefix: l.ReferencePrefix, Collection: string(l.Collection),
		ReturnURL: l.ReturnURL, CancelURL: l.CancelURL, Lifetime: int64(l.Lifetime / time.Second), Archived: l.Archived,
	}
	if !l.Merchant.IsZero() {
		a.Merchant = chain.Checksum(l.Merchant)
	}
	return a
}

// amountText returns an amount in minor units, or "" for 0.
func amountText(a invoice.Amount) string {
	if a.IsZero() {
		return ""
	}
	return a.String()
}

// hashRequest returns a hash of the request's fields, which does not depend on how its JSON was written.
func hashRequest(r PaymentLinkRequest) (invoice.Hash, error) {
	text, err := json.Marshal([]any{r.MerchantID, fields(invoice.PaymentLink{Slug: r.Slug, PaymentLinkTerms: r.Terms})})
	if err != nil {
		return invoice.Hash{}, fmt.Errorf("hash the request: %w", err)
	}
	return sha256.Sum256(text), nil
}

// ErrAmount is the error of an amount that the link does not take.
var ErrAmount = errors.New("the link does not take the amount")

// UnusableError is the error of a link with invoices that break a current rule, for example because
// the merchant's list of allowed addresses was changed.
type UnusableError struct {
	ID     string // of the link
	Reason *invoice.FieldError
}

// Error names the link and the rule.
func (e *UnusableError) Error() string { return "payment link " + e.ID + ": " + e.Reason.Error() }

// Find returns the merchant's link with the slug, or the newest one if all are archived, or db.ErrNotFound.
func (m *PaymentLinkManager) Find(ctx context.Context, merchantID, slug string) (invoice.PaymentLink, error) {
	if !invoice.ValidMerchantID(merchantID) || !invoice.ValidSlug(slug) {
		return invoice.PaymentLink{}, db.ErrNotFound // not every text is valid in a database
	}
	return PaymentLinkBySlug(ctx, m.conf.Store, merchantID, slug)
}

// OfInvoice returns the link from which an invoice was made, or db.ErrNotFound.
func (m *PaymentLinkManager) OfInvoice(ctx context.Context, inv invoice.Invoice) (invoice.PaymentLink, error) {
	id := inv.Details.Metadata[invoice.MetadataPaymentLink]
	if id == "" {
		return invoice.PaymentLink{}, db.ErrNotFound
	}
	l, err := PaymentLink(ctx, m.conf.Store, id)
	if err == nil && l.MerchantID != inv.MerchantID { // a merchant writes metadata
		err = db.ErrNotFound
	}
	return l, err
}

// Pay returns an invoice of a link for an amount, which is the link's amount unless the payer enters
// it. visit names an opening of the link's page: with the same visit and amount, Pay returns the same
// invoice for IdempotencyWindow, unless the link was changed. Errors are ErrAmount, ErrArchived,
// *UnusableError, ErrIdempotencyInProgress and internal errors.
func (m *PaymentLinkManager) Pay(ctx context.Context, l invoice.PaymentLink, amount invoice.Amount, visit string) (invoice.Invoice, error) {
	switch {
	case l.Archived:
		return invoice.Invoice{}, ErrArchived
	case !l.IsFree() && amount != l.Amount, !l.Takes(amount):
		return invoice.Invoice{}, ErrAmount
	}
	name := sha256.Sum256(fmt.Appendf(nil, "%q %s %+v", visit, amount, l.PaymentLinkTerms))
	const serial = 10 // characters
	inv, err := m.conf.Ledger.Create(ctx, CreateRequest{
		Draft: l.Draft(amount, invoice.Text(name[:])[:serial]), Lifetime: l.Lifetime,
		Once: Once{Key: invoice.Text(name[:]), Scope: "payment link " + l.ID}, ByMerchant: true,
	})
	if wrong := (*invoice.FieldError)(nil); errors.As(err, &wrong) {
		err = &UnusableError{ID: l.ID, Reason: wrong}
	}
	return inv, err
}
