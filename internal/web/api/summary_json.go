package api

import (
	"cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
)

// Summary is a merchant's view of a period and of now.
type Summary struct {
	report.Request
	Days          []*report.Line
	Open, Expired InvoiceSums
	Chains        []ReadChain
}

// InvoiceSums are sums of invoices of one state.
type InvoiceSums struct {
	Sums      []*report.Sum
	Truncated bool // there are more invoices than were added
}

// ReadChain is how far a chain is read.
type ReadChain struct {
	Key    string
	Cursor ledger.Cursor
}

// Compare orders chains by their keys.
func (c ReadChain) Compare(other ReadChain) int { return cmp.Compare(c.Key, other.Key) }

// Convert converts the summary.
func (s Summary) Convert() apitypes.Summary {
	out := apitypes.Summary{
		MerchantID: s.MerchantID, From: s.From.Unix(), To: s.To.Unix(), Timezone: s.Location.String(),
		Days: make([]apitypes.SummaryLine, len(s.Days)), Open: s.Open.convert(), Expired: s.Expired.convert(), Chains: make([]apitypes.SummaryChain, len(s.Chains)),
	}
	for i, l := range s.Days {
		out.Days[i] = apitypes.SummaryLine{
			Day: l.Day, ChainKey: l.ChainKey, Currency: l.Currency, Decimals: decimals(l.Key), Payments: l.Payments, Gross: l.Gross.String(),
			Refunds: l.Refunds, Refunded: l.Refunded.String(), Net: l.Net.String(),
		}
	}
	for i, c := range s.Chains {
		out.Chains[i] = apitypes.SummaryChain{
			ChainKey: c.Key, BlockNumber: int64(c.Cursor.Indexed.Number), BlockTime: c.Cursor.Indexed.Time.Unix(),
			ConfirmedBlockNumber: int64(c.Cursor.Confirmed.Number), Halted: c.Cursor.Halted != "",
		}
	}
	return out
}

func (s InvoiceSums) convert() apitypes.InvoiceSums {
	out := apitypes.InvoiceSums{Sums: make([]apitypes.InvoiceSum, len(s.Sums)), Truncated: s.Truncated}
	for i, sum := range s.Sums {
		out.Sums[i] = apitypes.InvoiceSum{ChainKey: sum.ChainKey, Currency: sum.Currency, Decimals: decimals(sum.Key), Invoices: sum.Invoices, Amount: sum.Amount.String()}
	}
	return out
}

// decimals returns the decimals of a line, or nil if they are not known.
func decimals(k report.Key) *int {
	if k.Decimals < 0 {
		return nil
	}
	return &k.Decimals
}
