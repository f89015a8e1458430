package api

import (
	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/report"
)

// Statement converts the statement of a month.
func Statement(r report.Request, month string, made report.Statement) apitypes.Statement {
	out := apitypes.Statement{
		MerchantID: r.MerchantID, Month: month, From: r.From.Unix(), To: r.To.Unix(), Timezone: r.Location.String(),
		Lines: make([]apitypes.StatementLine, len(made.Lines)), Fees: transactionFees(made.Fees),
	}
	for i, l := range made.Lines {
		out.Lines[i] = apitypes.StatementLine{
			ChainKey: l.ChainKey, Currency: l.Currency, Decimals: decimals(l.Key),
			Opening: l.Opening.String(), Invoiced: l.Invoiced.String(), Settled: l.Settled.String(), Canceled: l.Canceled.String(),
			Expired: l.Expired.String(), Waived: l.Waived.String(), Closing: l.Closing.String(),
			HeldBefore: l.HeldBefore.String(), Received: l.Received.String(), Refunded: l.Refunded.String(), Held: l.Held.String(),
			Payments: l.Payments, Refunds: l.Refunds,
		}
	}
	return out
}
