package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// withDepositAddress returns a deposit invoice with its address, which stays the same if another
// factory is configured. A draft has no address, because its terms can change. Other invoices are
// returned unchanged. It returns an *invoice.FieldError if the chain has no factory.
func withDepositAddress(inv invoice.Invoice, c chain.Chain) (invoice.Invoice, error) {
	if !inv.IsDeposit() {
		return inv, nil
	}
	if c.DepositFactory.IsZero() {
		return inv, &invoice.FieldError{Field: "collection", Detail: "cannot be deposit on the chain " + c.Key + ", which has no deposit factory"}
	}
	if inv.Status != invoice.Drafted {
		inv.DepositFactory = c.DepositFactory
		inv.DepositAddress = c.DepositAddress(inv.Merchant, inv.CommitmentID)
	}
	return inv, nil
}

// verifyTimeout bounds how long a create waits until a node confirms the deposit factory.
const verifyTimeout = 5 * time.Second

// verifyFactory returns ErrUnverified for a deposit invoice if no node confirms the code of the chain's factory: money
// that is paid to an address of another contract may be lost. It must not be called in a transaction.
func (s *Service) verifyFactory(ctx context.Context, inv invoice.Invoice) error {
	if !inv.IsDeposit() || s.conf.VerifyContracts == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	if err := s.conf.VerifyContracts(ctx, inv.ChainKey); err != nil {
		return fmt.Errorf("%w %s: %w", ErrUnverified, inv.ChainKey, err)
	}
	return nil
}

// errDepositHeld: the deposit address of a draft's terms is a settlement address.
var errDepositHeld = &invoice.FieldError{
	Field: "collection", Detail: "cannot be deposit with these terms: an invoice names their deposit address as merchantAddress; change one of them",
}

// checkDepositAddress returns errDepositHeld if the deposit address of an invoice is a settlement address. The address
// of a draft can be computed before it is issued. The ids of other invoices cannot be known in advance.
func checkDepositAddress(ctx context.Context, tx *db.Tx, inv invoice.Invoice) error {
	if inv.DepositAddress.IsZero() {
		return nil
	}
	taken, err := access.SettlementAddresses(ctx, tx, inv.ChainKey, []invoice.Address{inv.DepositAddress})
	if err == nil && taken[inv.DepositAddress] {
		err = errDepositHeld
	}
	return err
}

// attributeDeposit sets the invoice of a payment to a deposit address and announces it.
// A payment in another currency than the invoice's belongs to none.
func (ch *Changes) attributeDeposit(e *entry, p *invoice.Payment) {
	inv := ch.invoice(e.depositOf)
	a, ok := invoice.Attribute(p.Transfer, []invoice.Candidate{{Invoice: inv}}, false)
	if ch.undecided[p.ID] = ok && ch.needsEarlier(e, inv); ch.undecided[p.ID] {
		*p = p.WithAttribution(invoice.Attribution{}) // the balance of the address gets it when it is decided
		return
	}
	p.DepositOf, p.SettlesTo = inv.ID, inv.Merchant
	*p = p.WithAttribution(a)
	if !ok {
		ch.effects.unattributed = append(ch.effects.unattributed, *p)
		return
	}
	ch.effects.received(*p, a.Invoice)
}

// leaveUnattributed leaves a payment without an invoice. Money at a deposit address is swept all the same.
func (ch *Changes) leaveUnattributed(e *entry, p *invoice.Payment) {
	p.DepositOf, p.SettlesTo = "", invoice.Address{}
	if e.depositOf != "" {
		p.DepositOf, p.SettlesTo = e.depositOf, ch.invoice(e.depositOf).Merchant
	}
	*p = p.WithAttribution(invoice.Attribution{})
	ch.effects.unattributed = append(ch.effects.unattributed, *p)
}

// storeSweep stores a transfer out of a deposit address. A transfer that a reorg moved
// to another block is the same sweep, also if it comes from another address there.
func (ch *Changes) storeSweep(e *entry) {
	id := ch.before.transferID(invoice.PrefixSweep, e.Transfer)
	s := ch.before.sweeps.get(id)
	if s.Status == invoice.Confirmed {
		return
	}
	if s.ID == "" {
		s.ID, s.ObservedAt = id, ch.chain.now
	}
	ch.effects.moved = ch.effects.moved || s.Status == invoice.Pending && s.BlockHash != e.BlockHash
	s.Transfer, s.InvoiceID = e.Transfer, e.sweepOf
	s.Status, s.ConfirmedAt = ch.status(e.Position)
	ch.effects.sweeps = append(ch.effects.sweeps, s)
}

// auditedSweep is a request to sweep deposits in the audit log.
type auditedSweep struct {
	MerchantID string `json:"merchantId,omitempty"`
	InvoiceID  string `json:"invoiceId,omitempty"`
	Token      string `json:"token,omitempty"`
	Deposits   int64  `json:"deposits"`
}

// RequestSweeps has the transaction manager sweep the selected deposits regardless of the chain's
// policy, and returns how many they are. It leaves out deposits that a transaction is already
// sweeping. A token without recorded payments is swept only for the selected invoice.
func (s *Service) RequestSweeps(ctx context.Context, r SweepRequest) (n int64, err error) {
	err = s.update(ctx, func(tx *db.Tx, _ *outbox) error {
		if n, err = RequestSweeps(ctx, tx, r, s.seconds()); err != nil {
			return err
		}
		after := auditedSweep{MerchantID: r.MerchantID, InvoiceID: r.InvoiceID, Deposits: n}
		if r.Token != nil {
			after.Token = r.Token.String()
		}
		return access.AppendAudit(ctx, tx, access.NewEntry(ctx, s.conf.Now(), access.Change{
			Action: access.ActionDepositSweep, MerchantID: r.MerchantID, Object: r.ChainKey, After: after,
		}))
	})
	return n, err
}
