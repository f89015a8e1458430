package settle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// MaxClaims is how many claims are kept for one invoice whose payments have no
// invoice yet. Whether another invoice is claimed for does not count: nobody can
// use up another's claims.
const MaxClaims = 10

// claimLooked is how many of a transaction's payments a claim looks at.
const claimLooked = 100

// Errors of Claim.
var (
	// ErrNothingToClaim: the transaction made no payment that the invoice could
	// take and that no invoice has.
	ErrNothingToClaim = errors.New("the transaction made no payment that can be claimed")
	// ErrNotThePayer: the claim is signed by another account than the one that
	// paid.
	ErrNotThePayer = errors.New("the claim is not signed by the account that paid")
	// ErrTooManyClaims: the invoice has MaxClaims claims already, of payments
	// without an invoice.
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
// account that paid has signed. Any other claim is kept for the merchant, also
// one to a payment that waits for older blocks to be read.
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
	err = s.update(ctx, func(tx *store.Tx, out *outbox) error {
		if _, err := tx.LockCursor(ctx, inv.ChainKey); err != nil {
			return err
		}
		if inv, err = tx.Invoice(ctx, claim.InvoiceID); err != nil {
			return err
		}
		payments, err := tx.PaymentsToClaim(ctx, inv, claim.TxHash, signer, claimLooked)
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
		result, err = s.claim(ctx, tx, out, inv, open, claim)
		return err
	})
	return result, err
}

// errCounted: the invoice has the payment already.
var errCounted = errors.New("the payment belongs to the invoice")

// claimable returns those of a transaction's payments that the invoice could
// take and no invoice has; of a signed claim those of the signer, of another
// those that are no trifle.
func claimable(inv invoice.Invoice, payments []store.PaymentRow, signer invoice.Address) (open []store.PaymentRow, err error) {
	err = ErrNothingToClaim
	for _, p := range payments {
		switch {
		case p.InvoiceID == inv.ID:
			err = errCounted
		case p.Attributed() || p.Status == invoice.Orphaned || !inv.Accepts(p.Transfer) || inv.Status == invoice.Drafted || inv.Status == invoice.Void:
		case !signer.IsZero() && signer != p.From:
			err = ErrNotThePayer
		case signer.IsZero() && p.Amount.Less(inv.DustLimit()):
		default:
			open = append(open, p)
		}
	}
	if len(open) > 0 {
		err = nil
	}
	return open, err
}

// claim attributes the payment, if the claim is signed and nothing speaks
// against it, or keeps the claim. A signature does not say which of several
// payments is for this invoice: the claim is kept to the one that is nearest to
// what the invoice asks for.
func (s *Service) claim(ctx context.Context, tx *store.Tx, out *outbox, inv invoice.Invoice, open []store.PaymentRow, claim Claim) (ClaimResult, error) {
	p := nearest(inv, open)
	if claim.Signature == "" || len(open) > 1 {
		return s.keepClaim(ctx, tx, inv, p, claim)
	}
	if sure, err := s.settlesItself(ctx, tx, inv, p); err != nil {
		return "", err
	} else if !sure {
		return s.keepClaim(ctx, tx, inv, p, claim)
	}
	err := s.attributeBy(ctx, tx, out, invoice.ByClaim, &p, inv, ManualAttribution{
		PaymentID: p.ID, InvoiceID: inv.ID, By: "payer " + chain.Checksum(p.From), Note: "signature " + claim.Signature,
	})
	if err != nil {
		return "", fmt.Errorf("attribute payment %s by a claim: %w", p.ID, err)
	}
	return ClaimCounted, nil
}

// nearest returns the payment whose amount differs least from what the invoice
// asks for, the first of several.
func nearest(inv invoice.Invoice, payments []store.PaymentRow) store.PaymentRow {
	asks := invoice.NearInvoice{Invoice: inv, Asks: []invoice.Amount{inv.Remaining, inv.RemainingTransfer}}
	return slices.MinFunc(payments, func(a, b store.PaymentRow) int {
		return cmp.Or(asks.Differ(a.Transfer).Distance().Cmp(asks.Differ(b.Transfer).Distance()), cmp.Compare(a.Ordinal, b.Ordinal))
	})
}

// settlesItself reports whether a signed claim to the payment needs no decision
// of the merchant: the payment came after the invoice and not long after its
// time, nothing of it was sent back, it is no refund itself, and the rules have
// decided about it. Otherwise the merchant may have dealt with it already, or
// got back what he had paid, or a rule may give the payment to another invoice.
func (s *Service) settlesItself(ctx context.Context, tx *store.Tx, inv invoice.Invoice, p store.PaymentRow) (bool, error) {
	d := invoice.NearInvoice{Invoice: inv}.Differ(p.Transfer)
	if d.Early || d.LateBy > invoice.LateWindow {
		return false, nil
	}
	if back, err := isRefund(ctx, tx, p.Transfer); err != nil || back {
		return false, err
	}
	if waits, err := isUndecided(ctx, tx, p.ID); err != nil || waits {
		return false, err
	}
	if sent, err := tx.IsRefunded(ctx, p.ID); err != nil || sent {
		return false, err
	}
	sent, err := tx.MayBeRefunded(ctx, p.Transfer)
	return !sent, err
}

// keepClaim keeps a claim to the payment for the merchant. It returns
// ErrTooManyClaims for an unsigned one, if the invoice has MaxClaims claims
// already that are not decided. How many claims are signed is up to the payer
// alone.
func (s *Service) keepClaim(ctx context.Context, tx *store.Tx, inv invoice.Invoice, p store.PaymentRow, claim Claim) (ClaimResult, error) {
	signed := claim.Signature != ""
	known, err := tx.InvoiceClaims(ctx, inv.ID, p.ID)
	if err != nil {
		return "", err
	}
	if !known && !signed {
		if claims, err := tx.OpenClaimsOfInvoice(ctx, inv.ID, MaxClaims); err != nil {
			return "", err
		} else if len(claims) >= MaxClaims {
			return "", ErrTooManyClaims
		}
	}
	return ClaimKept, tx.SaveClaim(ctx, store.Claim{
		ID: s.ids.New(invoice.PrefixClaim), PaymentID: p.ID, InvoiceID: inv.ID, MerchantID: inv.MerchantID,
		Signed: signed, At: s.Now().Unix(),
	})
}
