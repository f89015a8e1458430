package api

import (
	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/report"
)

// SettlementReport converts a report.
func SettlementReport(r report.Request, made report.Report) apitypes.SettlementReport {
	return apitypes.SettlementReport{
		MerchantID: r.MerchantID, From: r.From.Unix(), To: r.To.Unix(), Timezone: r.Location.String(), GroupBy: apitypes.ReportGroup(r.GroupBy),
		Lines: settlementLines(made.Lines), Totals: settlementLines(made.Totals), Fees: transactionFees(made.Fees),
	}
}

func transactionFees(lines []*report.FeeLine) []apitypes.TransactionFee {
	out := make([]apitypes.TransactionFee, len(lines))
	for i, l := range lines {
		out[i] = apitypes.TransactionFee{ChainKey: l.ChainKey, Kind: apitypes.FeeKind(l.Kind), MerchantID: l.MerchantID, Items: l.Items, CostGwei: l.Gwei.String()}
	}
	return out
}

func settlementLines(lines []*report.Line) []apitypes.ReportLine {
	out := make([]apitypes.ReportLine, len(lines))
	for i, l := range lines {
		out[i] = apitypes.ReportLine{
			Day: l.Day, ChainKey: l.ChainKey, Currency: l.Currency, Decimals: decimals(l.Key),
			Payments: l.Payments, Gross: l.Gross.String(), Settled: l.Settled.String(), Underpaid: l.Underpaid.String(), Suffixes: l.Suffixes.String(),
			Overpaid: l.Overpaid.String(), Late: l.Late.String(), Duplicate: l.Duplicate.String(),
			Refunds: l.Refunds, Refunded: l.Refunded.String(), Net: l.Net.String(),
		}
	}
	return out
}
