package settle

import (
	"context"
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// MaxClaims is how many claims are kept for one invoice. Whether another
// invoice is claimed for does not count: nobody can use up another's claims.
const MaxClaims = 10

// Errors of Claim.
var (
	// ErrNothingToClaim: the transaction made no payment that the invoice could
	// take and that no invoice has.
	ErrNothingToClaim = errors.New("the transaction made no payment that can be claimed")
	// ErrNotThePayer: the claim is signed by another account than the one that
	// paid.
	ErrNotThePayer = errors.New("the claim is not signed by the account that paid")
	// ErrTooManyClaims: the invoice has MaxClaims claims already.
	ErrTooManyClaims = errors.New("there are too many claims for the invoice")
)

// Claim is a payer's word that a transaction pays an invoice. Signature is that
// of chain.ClaimText by the account that paid, or empty.
type Claim struct {
	InvoiceID string
	TxHash    invoice.Hash
	Signature string
}

// ClaimResult says what became of a claim.
type ClaimResult string

// The results of a claim.
const (
	ClaimCounted ClaimResult = "counted" // the payment belongs to the invoice now, or did before
	ClaimKept    ClaimResult = "kept"    // the merchant decides
)

// Claim takes a payer's claim. A payment without an invoice, which was made
// after the claimed invoice and not sent back, is attributed at once when the
// account that paid has signed. Any other claim is kept for the merchant.
//
// Errors are store.ErrNotFound when there is no such invoice, ErrNothingToClaim,
// ErrNotThePayer, ErrTooManyClaims, and chain.ErrSignature.
func (s *Service) Claim(ctx context.Context, claim Claim) (result ClaimResult, err error) {
	inv, err := s.Store.Invoice(ctx, claim.InvoiceID)
	if err != nil {
		return "", err
	}
	var signer invoice.Address
	if claim.Signature != "" {
		text := chain.ClaimText(s.chains[inv.ChainKey].ID, inv, claim.TxHash)
		if signer, err = chain.PersonalSigner(text, claim.Signature); err != nil {
			return "", err
		}
	}
	err = s.update(ctx, func(tx *store.Tx, c *changes) error {
		if _, err := tx.LockCursor(ctx, inv.ChainKey); err != nil {
			return err
		}
		if inv, err = tx.Invoice(ctx, claim.InvoiceID); err != nil {
			return err
		}
		payments, err := tx.PaymentsOfTransaction(ctx, []string{inv.ChainKey}, claim.TxHash)
		if err != nil {
			return err
		}
		open, err := claimable(inv, payments, signer)
		if errors.Is(err, errCounted) {
			result = ClaimCounted
			return nil
		}
		if err != nil {
			return err
		}
		result, err = s.claim(ctx, tx, c, inv, open, claim)
		return err
	})
	return result, err
}

// errCounted: the invoice has the payment already.
var errCounted = errors.New("the payment belongs to the invoice")

// claimable returns those of a transaction's payments that the invoice could
// take and no invoice has; of a signed claim those of the signer.
func claimable(inv invoice.Invoice, payments []store.PaymentRow, signer invoice.Address) (open []store.PaymentRow, err error) {
	err = ErrNothingToClaim
	for _, p := range payments {
		switch {
		case p.InvoiceID == inv.ID:
			err = errCounted
		case p.Attributed() || p.Status == invoice.Orphaned || !inv.Takes(p.Transfer) || inv.Status == invoice.Drafted || inv.Status == invoice.Void:
		case !signer.IsZero() && signer != p.From:
			err = ErrNotThePayer
		default:
			open = append(open, p)
		}
	}
	if len(open) > 0 {
		err = nil
	}
	return open, err
}

// claim attributes the payments, if the claim is signed and nothing speaks
// against it, or keeps the claim.
func (s *Service) claim(ctx context.Context, tx *store.Tx, c *changes, inv invoice.Invoice, open []store.PaymentRow, claim Claim) (ClaimResult, error) {
	result := ClaimCounted
	for _, p := range open {
		sure, err := s.settlesItself(ctx, tx, inv, p)
		if err != nil {
			return "", err
		}
		if claim.Signature == "" || !sure || len(open) > 1 { // of several, the signature does not say which is for this invoice
			result = ClaimKept
			if err := s.keepClaim(ctx, tx, inv, p, claim); err != nil {
				return "", err
			}
			continue
		}
		if inv, err = tx.Invoice(ctx, inv.ID); err != nil { // as the payment before left it
			return "", err
		}
		err = s.attributeBy(ctx, tx, c, invoice.ByClaim, &p, inv, HandAttribution{
			PaymentID: p.ID, InvoiceID: inv.ID, By: "payer " + chain.Checksum(p.From), Note: "signature " + claim.Signature,
		})
		if err != nil {
			return "", fmt.Errorf("attribute payment %s by a claim: %w", p.ID, err)
		}
	}
	return result, nil
}

// settlesItself reports whether a signed claim to the payment needs no decision
// of the merchant: the payment came after the invoice and not long after its
// time, nothing of it was sent back, and it is no refund itself. Otherwise the
// merchant may have dealt with it already, or got back what he had paid.
func (s *Service) settlesItself(ctx context.Context, tx *store.Tx, inv invoice.Invoice, p store.PaymentRow) (bool, error) {
	d := invoice.NearInvoice{Invoice: inv}.Differ(p.Transfer)
	if d.Early || d.LateBy > invoice.LateWindow {
		return false, nil
	}
	if back, err := isRefund(ctx, tx, p.Transfer); err != nil || back {
		return false, err
	}
	sent, err := tx.IsRefunded(ctx, p.ID)
	return !sent, err
}

// keepClaim keeps a claim for the merchant.
func (s *Service) keepClaim(ctx context.Context, tx *store.Tx, inv invoice.Invoice, p store.PaymentRow, claim Claim) error {
	kept, err := tx.ClaimsOfInvoice(ctx, inv.ID, MaxClaims)
	if err != nil {
		return err
	}
	known := false
	for _, k := range kept {
		known = known || k.PaymentID == p.ID
	}
	if !known && claim.Signature == "" && len(kept) >= MaxClaims { // a signature is the payer's: their number is that of the payments
		return ErrTooManyClaims
	}
	return tx.SaveClaim(ctx, store.Claim{
		ID: s.ids.New(invoice.PrefixClaim), PaymentID: p.ID, InvoiceID: inv.ID, MerchantID: inv.MerchantID,
		Signed: claim.Signature != "", At: s.Now().Unix(),
	})
}
