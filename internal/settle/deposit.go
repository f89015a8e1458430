package settle

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

// verifyFactory returns ErrUnverified for a deposit invoice if no node confirms the code of the
// chain's factory: money that is paid to an address of another contract may be lost. It must not be
// called in a transaction.
func (s *Service) verifyFactory(ctx context.Context, inv invoice.Invoice) error {
	if !inv.IsDeposit() || s.verify == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	if err := s.verify(ctx, inv.ChainKey); err != nil {
		return fmt.Errorf("%w %s: %w", ErrUnverified, inv.ChainKey, err)
	}
	return nil
}

// errDepositHeld: the deposit address of a draft's terms is a settlement address.
var errDepositHeld = &invoice.FieldError{
	Field: "collection", Detail: "cannot be deposit with these terms: an invoice names their deposit address as merchantAddress; change one of them",
}

// checkDepositAddress returns errDepositHeld if the deposit address of an invoice is a settlement
// address. The address of a draft can be computed before it is issued. The ids of other invoices
// cannot be known in advance.
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

// loadDeposits finds out which of the entries go to or come from a deposit address, and reads the
// invoices of the receiving ones.
func (b *transferBatch) loadDeposits(ctx context.Context, ends []invoice.Address) error {
	deposits, err := Deposits(ctx, b.tx, b.chain.key, ends)
	if err != nil || len(deposits) == 0 {
		return err
	}
	var ids []string
	for _, e := range b.entries {
		e.fromLost, e.toLost = IsLostDeposit(deposits[e.From]), IsLostDeposit(deposits[e.To])
		if e.fromLost {
			continue
		}
		if e.sweepOf = deposits[e.From]; e.sweepOf != "" {
			e.sweepID = b.tx.TransferID(invoice.PrefixSweep, e.Transfer)
			continue
		}
		if e.depositOf = deposits[e.To]; e.toLost {
			e.depositOf = ""
		} else if e.depositOf != "" {
			ids = append(ids, e.depositOf)
		}
	}
	return b.invoices.load(ctx, ids...)
}

// attributeDeposit sets the invoice of a payment to a deposit address and emits payment.received. A
// payment in another currency than the invoice's gets no invoice.
func (b *transferBatch) attributeDeposit(e *entry, p *invoice.Payment) error {
	inv := b.invoices.byID[e.depositOf]
	p.DepositOf, p.SettlesTo = inv.ID, inv.Merchant
	a, ok := invoice.Attribute(p.Transfer, []invoice.Candidate{{Invoice: inv}}, false)
	*p = p.WithAttribution(a)
	if !ok {
		b.out.unattributed = append(b.out.unattributed, *p)
		return nil
	}
	return b.service.emitReceived(b.out, *p, a.Invoice)
}

// leaveUnattributed leaves a payment without an invoice. Money at a deposit address is swept in any
// case.
func (b *transferBatch) leaveUnattributed(e *entry, p *invoice.Payment) {
	p.DepositOf, p.SettlesTo = "", invoice.Address{}
	if e.depositOf != "" {
		p.DepositOf, p.SettlesTo = e.depositOf, b.invoices.byID[e.depositOf].Merchant
	}
	*p = p.WithAttribution(invoice.Attribution{})
	b.out.unattributed = append(b.out.unattributed, *p)
}

// storeSweeps stores the transfers out of deposit addresses. A transfer that a reorg moved
// to another block is the same sweep, also if it comes from another address there.
func (b *transferBatch) storeSweeps(ctx context.Context) error {
	var ids []string
	for _, e := range b.entries {
		if e.sweepID != "" {
			ids = append(ids, e.sweepID)
		}
	}
	stored, err := SweepsByID(ctx, b.tx, ids)
	if err != nil {
		return err
	}
	known := make(map[string]invoice.Sweep, len(stored))
	for _, s := range stored {
		known[s.ID] = s
	}
	var unsaved []invoice.Sweep
	for _, e := range b.entries {
		s, ok := known[e.sweepID]
		if e.sweepID == "" || s.Status == invoice.Confirmed {
			continue
		}
		if !ok {
			s.ID, s.ObservedAt = e.sweepID, b.service.seconds()
		}
		b.moved = b.moved || s.Status == invoice.Pending && s.BlockHash != e.BlockHash
		s.Transfer, s.InvoiceID = e.Transfer, e.sweepOf
		s.Status, s.ConfirmedAt = b.status()
		unsaved = append(unsaved, s)
	}
	if b.chain.final {
		b.swept = unsaved
	}
	return SaveSweeps(ctx, b.tx, unsaved)
}
