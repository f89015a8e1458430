package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// Errors of imports.
var (
	// ErrCopyUnproved: neither the chain nor a signature proves a copy.
	ErrCopyUnproved = errors.New("its commitment is not on the chain, and no secret of the merchant's endpoint signed it; " +
		"run quittance recover first, or give the delivery with its header X-Service-Signature")
	// ErrNotOfMerchant: the commitment proves a copy, but not which merchant the invoice belongs to.
	ErrNotOfMerchant = errors.New("its commitment is on the chain, but that does not prove whose invoice it is: the merchant of the copy does not hold its merchantAddress; " +
		"give the delivery with its header X-Service-Signature, or name the address in the merchant's allowedAddresses or defaultAddresses in the configuration")
	// ErrCopyDiffers: the database has the invoice with other terms or details.
	ErrCopyDiffers = errors.New("the database has this invoice, and it differs; if two copies differ, keep the line that is right")
	// ErrNoRecovery: no recovery has read the invoice's chain.
	ErrNoRecovery = errors.New(`no recovery has read its chain; run "quittance recover" first`)
)

// Values of Imported.Proof.
const (
	ProvedByChain     = "chain"
	provedBySignature = "signature"
)

// Imported is the result of importing a copy.
type Imported struct {
	Invoice invoice.Invoice
	Exists  bool // it was in the database already
	// Proof is the proof of the copy: ProvedByChain, or a signature. It is empty for an invoice that exists.
	Proof string
	// Held is set if the invoice is open here, and was paid in its copy or closed on the chain. It does not expire.
	Held bool
}

// ImportInvoice creates the invoice of a merchant's copy that the database has lost, with the same id, commitment and
// deposit address. Either the chain must have its commitment, or one of the secrets must have signed the copy. Its
// payments since the backup are attributed by the usual rules once the chain is read again; payments that were recorded
// without an invoice wait for that. ImportInvoice may be repeated.
//
// An invoice that is void or expired in the copy becomes so here, also one that exists and is open.
// One that is paid in the copy stays open until its payments are attributed, and does not expire until
// then. If its commitment was closed before it expired, that counts as in noteRegistry.
//
// Errors are the errors of imports, *StatusDiffersError, *invoice.FieldError and others that describe
// what is wrong with the copy.
func (s *Service) ImportInvoice(ctx context.Context, c InvoiceCopy, secrets []string) (done Imported, err error) {
	inv, err := s.copiedInvoice(ctx, c)
	if err != nil {
		return done, err
	}
	from, err := RecoveredFrom(ctx, s.conf.Store)
	if err != nil {
		return done, err
	}
	err = s.update(ctx, func(tx *db.Tx, out *outbox) error {
		cur, err := LockCursor(ctx, tx, inv.ChainKey)
		if errors.Is(err, db.ErrNotFound) {
			return ErrNoRecovery
		}
		if err != nil {
			return err
		}
		done = Imported{Invoice: inv}
		first, recovered := from[inv.ChainKey]
		p := pastEnd{status: c.status(), recovered: recovered, backup: max(first, 1) - 1, cur: cur}
		switch existing, err := NewReader(tx).Invoice(ctx, inv.ID); {
		case err == nil && !sameInvoice(existing, inv):
			return ErrCopyDiffers
		case err == nil:
			done.Exists = true
			done.Invoice, err = s.endImported(ctx, tx, out, existing, p)
			return err
		case !errors.Is(err, db.ErrNotFound):
			return err
		}
		if !recovered {
			return ErrNoRecovery
		}
		if done.Invoice, done.Proof, p.lost, err = s.prove(ctx, tx, c, inv, secrets, first); err != nil {
			return err
		}
		done.Invoice = p.apply(done.Invoice)
		if err := s.insertImported(ctx, tx, out, done, p); err != nil {
			return err
		}
		return readForImport(ctx, tx, done.Invoice, cur, first)
	})
	done.Held = done.Invoice.EndedInLostPast()
	return done, err
}

// copiedInvoice returns the invoice of a copy, without the fields that depend on its registry.
func (s *Service) copiedInvoice(ctx context.Context, c InvoiceCopy) (inv invoice.Invoice, err error) {
	d, transfer, tolerance, err := c.draft()
	if err != nil {
		return inv, err
	}
	if _, known, err := s.conf.Merchants.Find(ctx, d.MerchantID); err != nil || !known {
		return inv, errors.Join(fmt.Errorf("its merchant %s is not one of this service; create it first", d.MerchantID), err)
	}
	network, ok := s.byKey[d.ChainKey]
	if !ok {
		return inv, fmt.Errorf("its chain %.80q is not one of this service", d.ChainKey)
	}
	token, ok := network.Token(d.Currency)
	if !ok {
		return inv, fmt.Errorf("its currency %.80q is not one of the chain %s", d.Currency, d.ChainKey)
	}
	inv = invoice.Invoice{
		Terms: invoice.Terms{Merchant: d.Merchant, Token: token.Address, Amount: d.Amount, ExpiresAt: d.ExpiresAt},
		ID:    c.Invoice.ID, MerchantID: d.MerchantID, Currency: d.Currency, ChainKey: d.ChainKey, Status: invoice.Open, LineItems: d.LineItems,
		CreatedAt: invoice.Unix(c.Invoice.CreatedAt), Collection: d.Collection, Tolerance: tolerance, TransferAmount: transfer, Details: d.Details,
	}
	if inv.Collection == "" {
		inv.Collection = invoice.Direct
	}
	return inv, nil
}

// sameInvoice reports whether two invoices with one id are the same, apart from members that payments change.
func sameInvoice(a, b invoice.Invoice) bool {
	return a.Terms.Merchant == b.Terms.Merchant && a.Amount == b.Amount && a.ExpiresAt.Equal(b.ExpiresAt) && a.MerchantID == b.MerchantID &&
		a.Currency == b.Currency && a.ChainKey == b.ChainKey && a.CreatedAt.Equal(b.CreatedAt) && a.Collection == b.Collection &&
		a.TransferAmount == b.TransferAmount && a.Tolerance == b.Tolerance && slices.Equal(a.LineItems, b.LineItems) && a.Details.Equal(b.Details)
}

// prove returns the invoice with its registry, commitment and deposit address, and the proof. A
// commitment on the chain does not name the merchant, so it proves only invoices at addresses of the
// merchant, unless the copy is signed. A signed copy commits to the registry that its own commitment
// or deposit address names, or else to the likeliest one. The blocks since the backup begin with the block from.
func (s *Service) prove(ctx context.Context, tx *db.Tx, c InvoiceCopy, inv invoice.Invoice, secrets []string, from uint64) (_ invoice.Invoice, proof string, on LostInvoice, err error) {
	network := s.byKey[inv.ChainKey]
	registries, err := Registries(ctx, tx, inv.ChainKey)
	if err != nil {
		return inv, "", on, err
	}
	var signed []invoice.Invoice
	for _, registry := range append([]invoice.Address{network.Registry, {}}, registries...) {
		try := inv
		try.Registry, try.CommitmentID = registry, chain.CommitmentID(network.ID, registry, inv.Terms, inv.ID)
		if try, err = withDepositAddress(try, network); err != nil {
			return inv, "", on, err
		}
		if !c.names(try) {
			continue
		}
		switch on, err := lostInvoice(ctx, tx, try.CommitmentID); {
		case err == nil:
			if of, err := s.isOfMerchant(ctx, tx, inv); err != nil || !of && !c.signedBy(secrets) {
				return inv, "", on, cmp.Or(err, ErrNotOfMerchant)
			}
			return try, ProvedByChain, on, nil
		case !errors.Is(err, db.ErrNotFound):
			return inv, "", on, err
		default:
			signed = append(signed, try)
		}
	}
	switch {
	case len(signed) == 0:
		return inv, "", on, errors.New("its terms do not give its onChainInvoiceId or its depositAddress; the copy was changed, or the chain's registry or factory was another one")
	case !c.signedBy(secrets):
		return inv, "", on, ErrCopyUnproved
	}
	inv, err = likeliest(ctx, tx, signed, from)
	return inv, provedBySignature, on, err
}

// likeliest returns the first invoice that a payment since the backup names, among the forms of one invoice with other
// registries; or else the first form.
func likeliest(ctx context.Context, tx *db.Tx, forms []invoice.Invoice, from uint64) (invoice.Invoice, error) {
	for _, form := range forms {
		if named, err := isNamed(ctx, tx, form, from); err != nil || named {
			return form, err
		}
	}
	return forms[0], nil
}

// isOfMerchant reports whether the merchant of an invoice holds its settlement address, or the configuration names it.
func (s *Service) isOfMerchant(ctx context.Context, tx *db.Tx, inv invoice.Invoice) (bool, error) {
	m, _, err := s.conf.Merchants.Find(ctx, inv.MerchantID)
	if err != nil {
		return false, err
	}
	named := m.DefaultAddresses[inv.ChainKey] == inv.Merchant || slices.Contains(m.Allowed, invoice.AllowedAddress{ChainKey: inv.ChainKey, Address: inv.Merchant})
	if m.Configured && named {
		return true, nil
	}
	return access.HoldsAll(ctx, tx, inv.MerchantID, []invoice.Address{inv.Merchant})
}

// names reports whether the copy's commitment and deposit address, if present, belong to an invoice.
func (c InvoiceCopy) names(inv invoice.Invoice) bool {
	return (c.Commitment == "" || strings.EqualFold(c.Commitment, inv.CommitmentID.String())) &&
		(c.Invoice.DepositAddress == "" || strings.EqualFold(c.Invoice.DepositAddress, chain.Checksum(inv.DepositAddress)))
}

// insertImported inserts an imported invoice with its events. It also inserts the intent to open or
// close its commitment, unless the chain shows that it is.
func (s *Service) insertImported(ctx context.Context, tx *db.Tx, out *outbox, done Imported, p pastEnd) error {
	inv := done.Invoice
	if err := checkDepositAddress(ctx, tx, inv); err != nil {
		return err
	}
	if err := s.holdOne(ctx, tx, out, inv, true); err != nil {
		return err
	}
	inserted, err := InsertInvoices(ctx, tx, []invoice.Invoice{inv})
	if err != nil {
		return err
	}
	if !inserted[inv.ID] {
		return fmt.Errorf("its transferAmount %s is that of an open invoice at the same address; close that one first", inv.TransferAmount)
	}
	if p.status == invoice.Open {
		taken, err := reserveReferences(ctx, tx, []invoice.Invoice{inv})
		if err != nil {
			return err
		}
		if taken[inv.ID] {
			return fmt.Errorf("its reference %q is to be unique, and another open invoice of the merchant has it", inv.Details.Reference)
		}
	}
	return s.followImport(ctx, tx, out, done, p)
}

// readForImport schedules the blocks since the backup to be read again, and makes payments to an
// imported invoice's addresses wait for them. The proof shows that the invoice is older than the
// payments, so they may pay it by their amount.
func readForImport(ctx context.Context, tx *db.Tx, inv invoice.Invoice, cur Cursor, from uint64) error {
	addresses := []invoice.Address{inv.Merchant, inv.DepositAddress}
	payments, err := unattributedTo(ctx, tx, inv.ChainKey, from, addresses)
	if err != nil {
		return err
	}
	last, err := webhooks.NewReader(tx).LastSeq(ctx)
	if err != nil {
		return err
	}
	// The transaction records one event, invoice.created, which gets the next number.
	if err := moveSeenAfter(ctx, tx, inv.ChainKey, from, addresses, last+1); err != nil {
		return err
	}
	if err := MarkUndecided(ctx, tx, payments); err != nil || from > cur.Indexed.Number {
		return err
	}
	cur.ReadAgain(from)
	cur.Unread = &cur.Gap.Last
	return SaveCursor(ctx, tx, inv.ChainKey, cur)
}
