package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/tracing"
)

// MaxClaims is how many claims to unattributed payments an invoice can have before unsigned ones are refused. The limit
// is per invoice, so that claims for one invoice cannot use up another's.
const MaxClaims = 10

// maxClaimPayments bounds the payments of a transaction that a claim examines.
const maxClaimPayments = 100

// Errors of Claim.
var (
	// ErrNothingToClaim: the transaction made no unattributed payment that the invoice accepts.
	ErrNothingToClaim = errors.New("the transaction made no payment that can be claimed")
	// ErrNotThePayer: the claim is signed by another account than the payer's.
	ErrNotThePayer = errors.New("the claim is not signed by the account that paid")
	// ErrTooManyClaims: the invoice has MaxClaims claims to unattributed payments already.
	ErrTooManyClaims = errors.New("there are too many claims for the invoice")
)

// Claim is a payer's statement that a transaction pays an invoice.
type Claim struct {
	InvoiceID string
	TxHash    invoice.Hash
	Signature string // of chain.ClaimText by the payer's account, or empty
}

// ClaimResult is the outcome of a claim.
type ClaimResult string

// The results of a claim.
const (
	ClaimCounted ClaimResult = "counted" // the payment belongs to the invoice
	ClaimKept    ClaimResult = "kept"    // stored; the merchant decides
)

// Claim processes a payer's claim. An unattributed payment that was made after the invoice and was not refunded is
// attributed at once if the payer's account has signed. Any other claim is stored for the merchant, also one to an
// undecided payment.
//
// Errors are db.ErrNotFound when there is no such invoice, ErrNothingToClaim,
// ErrNotThePayer, ErrTooManyClaims, and chain.ErrSignature.
func (s *Service) Claim(ctx context.Context, claim Claim) (result ClaimResult, err error) {
	ctx, end := tracing.Begin(ctx, "claim payment")
	defer end(&err)
	inv, err := NewReader(s.conf.Store).Invoice(ctx, claim.InvoiceID)
	if err != nil {
		return "", err
	}
	var signer invoice.Address
	if claim.Signature != "" {
		text := chain.ClaimText(s.byKey[inv.ChainKey].ID, inv, claim.TxHash)
		if signer, err = chain.PersonalSigner(text, claim.Signature); err != nil {
			return "", err
		}
	}
	chainKey := inv.ChainKey
	err = s.update(ctx, func(tx *db.Tx, out *outbox) error {
		if _, err := LockCursor(ctx, tx, chainKey); err != nil {
			return err
		}
		if inv, err = NewReader(tx).Invoice(ctx, claim.InvoiceID); err != nil {
			return err
		}
		payments, err := PaymentsToClaim(ctx, tx, inv, claim.TxHash, signer, maxClaimPayments)
		if err != nil {
			return err
		}
		open, err := claimable(inv, payments, signer)
		if errors.Is(err, errHasPayment) {
			result = ClaimCounted
			return nil
		}
		if err != nil {
			return err
		}
		result, err = s.resolveClaim(ctx, tx, out, inv, open, claim)
		return err
	})
	return result, err
}

// errHasPayment: the payment is attributed to the invoice already.
var errHasPayment = errors.New("the payment belongs to the invoice")

// claimable returns the payments of a transaction that the invoice accepts and that are unattributed.
// A signed claim can claim payments of the signer, an unsigned one payments that are not dust.
func claimable(inv invoice.Invoice, payments []PaymentRow, signer invoice.Address) (open []PaymentRow, err error) {
	err = ErrNothingToClaim
	for _, p := range payments {
		switch {
		case p.InvoiceID == inv.ID:
			err = errHasPayment
		case p.Attributed() || p.Status == invoice.Orphaned || p.Screening == invoice.ScreeningRejected || !inv.Accepts(p.Transfer) || inv.Status == invoice.Drafted || inv.Status == invoice.Void:
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

// resolveClaim attributes the payment if the claim is signed and conclusive, and stores the claim
// otherwise. A signature does not show which of several payments is for this invoice; the claim is
// then stored with the nearest in amount.
func (s *Service) resolveClaim(ctx context.Context, tx *db.Tx, out *outbox, inv invoice.Invoice, open []PaymentRow, claim Claim) (ClaimResult, error) {
	p := nearest(inv, open)
	if claim.Signature == "" || len(open) > 1 {
		return s.storeClaim(ctx, tx, inv, p, claim)
	}
	if conclusive, err := s.isConclusive(ctx, tx, inv, p); err != nil {
		return "", err
	} else if !conclusive {
		return s.storeClaim(ctx, tx, inv, p, claim)
	}
	err := s.attributeTo(ctx, tx, out, invoice.ByClaim, &p, inv, ManualAttribution{
		PaymentID: p.ID, InvoiceID: inv.ID, By: "payer " + chain.Checksum(p.From), Note: "signature " + claim.Signature,
	})
	if err != nil {
		return "", fmt.Errorf("attribute payment %s by a claim: %w", p.ID, err)
	}
	return ClaimCounted, nil
}

// nearest returns the payment with the smallest difference from the amounts that the invoice asks for,
// the first of several.
func nearest(inv invoice.Invoice, payments []PaymentRow) PaymentRow {
	near := invoice.NearInvoice{Invoice: inv, Asks: []invoice.Amount{inv.Remaining, inv.RemainingTransfer}}
	return slices.MinFunc(payments, func(a, b PaymentRow) int {
		return cmp.Or(near.Differ(a.Transfer).Distance().Cmp(near.Differ(b.Transfer).Distance()), cmp.Compare(a.Ordinal, b.Ordinal))
	})
}

// isConclusive reports whether a signed claim needs no decision of the merchant:
// the payment came after the invoice and within LateWindow after its expiry. It has no use, was not
// refunded in part, is no refund itself, is not undecided, and was not dismissed. Otherwise the
// merchant may have handled it already, or a rule may attribute it to another invoice.
func (s *Service) isConclusive(ctx context.Context, tx *db.Tx, inv invoice.Invoice, p PaymentRow) (bool, error) {
	d := invoice.NearInvoice{Invoice: inv}.Differ(p.Transfer)
	if d.Early || d.LateBy > invoice.LateWindow {
		return false, nil
	}
	if refund, err := isRefund(ctx, tx, p.Transfer); err != nil || refund {
		return false, err
	}
	if undecided, err := isUndecided(ctx, tx, p.ID); err != nil || undecided {
		return false, err
	}
	used, err := s.usesOf(ctx, tx, p)
	if err != nil || used.Decided || !used.Refunded.IsZero() || used.excludes(invoice.ActAttribute) {
		return false, err
	}
	refunded, err := MayBeRefunded(ctx, tx, p.Transfer)
	return !refunded, err
}

// storeClaim stores a claim for the merchant. It returns ErrTooManyClaims for an unsigned one if the invoice has
// MaxClaims open claims. Signed claims are not limited, because only the payer can make them.
func (s *Service) storeClaim(ctx context.Context, tx *db.Tx, inv invoice.Invoice, p PaymentRow, claim Claim) (ClaimResult, error) {
	signed := claim.Signature != ""
	known, err := NewReader(tx).InvoiceClaims(ctx, inv.ID, p.ID)
	if err != nil {
		return "", err
	}
	if !known && !signed {
		if claims, err := OpenClaimsOfInvoice(ctx, tx, inv.ID, MaxClaims); err != nil {
			return "", err
		} else if len(claims) >= MaxClaims {
			return "", ErrTooManyClaims
		}
	}
	return ClaimKept, SaveClaim(ctx, tx, ClaimRow{
		ID: s.ids.New(invoice.PrefixClaim), PaymentID: p.ID, InvoiceID: inv.ID, MerchantID: inv.MerchantID,
		Signed: signed, At: s.seconds(),
	})
}
