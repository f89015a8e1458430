package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
)

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
