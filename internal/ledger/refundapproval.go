package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// AskPayer is the recipient in a request of a refund for which the payer names the address.
const AskPayer = "ask_payer"

// paymentSubject is a refund or an attribution as people see it who approve it. With RefundID, it is the approval of the
// address that the payer has named for a prepared refund.
type paymentSubject struct {
	PaymentID string `json:"paymentId"`
	RefundID  string `json:"refundId,omitempty"`
	InvoiceID string `json:"invoiceId,omitempty"` // of an attribution
	ChainKey  string `json:"chainKey"`
	Currency  string `json:"currency"`
	Amount    string `json:"amount"`        // in minor units
	Sum       string `json:"sum,omitempty"` // of the payment's refunds, with this one
	To        string `json:"to,omitempty"`  // or AskPayer
	Reason    string `json:"reason,omitempty"`
}

// wantRefundApproval uses up the approval of a refund, or of its address if preparedID is not empty, or returns an
// *access.ApprovalRequiredError. sum is what the payment's refunds take with this one: a policy limits it, so that many
// small refunds need approvals like a large one. The chain's cursor must be locked.
func (s *Service) wantRefundApproval(ctx context.Context, tx *db.Tx, out *outbox, r invoice.RefundRecord, p PaymentRow, preparedID string, sum invoice.Amount) error {
	subject := paymentSubject{
		PaymentID: p.ID, RefundID: preparedID, ChainKey: r.ChainKey, Currency: p.Currency, Amount: r.Amount.String(), Sum: sum.String(), To: AskPayer, Reason: r.Reason,
	}
	if !r.To.IsZero() {
		subject.To = chain.Checksum(r.To)
	}
	return s.wantApproval(ctx, tx, out, access.OfRefund, subject, sum)
}

// wantAttributionApproval uses up the approval of an attribution by hand, or returns an *access.ApprovalRequiredError.
func (s *Service) wantAttributionApproval(ctx context.Context, tx *db.Tx, out *outbox, p PaymentRow, m ManualAttribution) error {
	subject := paymentSubject{PaymentID: p.ID, InvoiceID: m.InvoiceID, ChainKey: p.ChainKey, Currency: p.Currency, Amount: p.Amount.String(), Reason: m.Note}
	return s.wantApproval(ctx, tx, out, access.OfAttribution, subject, p.Amount)
}

func (s *Service) wantApproval(ctx context.Context, tx *db.Tx, out *outbox, kind access.ApprovalKind, subject paymentSubject, sum invoice.Amount) error {
	used, err := access.WantApproval(ctx, tx, s.conf.Now(), access.GuardedAction{By: access.FromContext(ctx), Kind: kind, Subject: subject, Amount: sum})
	out.audit = append(out.audit, used...)
	return err
}
