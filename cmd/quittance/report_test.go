package main

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
)

func TestInUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sum      string
		decimals int
		want     string
	}{
		{"0", 6, "0.00"}, {"1", 6, "0.000001"}, {"4900000", 6, "4.90"}, {"-4900001", 6, "-4.900001"}, {"12", 0, "12"}, {"12", 1, "1.2"},
		{"123456789012345678901234567890", 18, "123456789012.34567890123456789"}, {"12", -1, "12"}, {"x", 6, "x"},
	} {
		if got := inUnits(c.sum, &c.decimals); got != c.want {
			t.Errorf("%s with %d decimals is %s, want %s", c.sum, c.decimals, got, c.want)
		}
	}
	if got := inUnits("12", nil); got != "12" {
		t.Errorf("without decimals it is %s", got)
	}
}

func TestPrintReport(t *testing.T) {
	t.Parallel()
	six := 6
	line := apitypes.ReportLine{ChainKey: "base", Currency: "USDC", Decimals: &six, Payments: 2, Gross: "4900856", Settled: "4900000", Underpaid: "0", Suffixes: "856", Overpaid: "0",
		Late: "0", Duplicate: "0", Refunded: "900000", Net: "4000856"}
	for name, c := range map[string]struct {
		made apitypes.SettlementReport
		want string
	}{
		"nothing": {apitypes.SettlementReport{}, "Nothing was confirmed in this period.\n"},
		"by chain": {apitypes.SettlementReport{GroupBy: apitypes.ReportByChain, Lines: []apitypes.ReportLine{line}, Fees: []apitypes.TransactionFee{
			{ChainKey: "base", Kind: apitypes.FeeCommitment, CostGwei: "7"}, {ChainKey: "base", Kind: apitypes.FeeSweep, MerchantID: "cafe", Items: 61, CostGwei: "41873000"},
		}}, `CHAIN  CURRENCY  PAYMENTS  GROSS     SETTLED  UNDERPAID  SUFFIXES  OVERPAID  LATE  DUPLICATE  REFUNDED  NET
base   USDC      2         4.900856  4.90     0.00       0.000856  0.00      0.00  0.00       0.90      4.000856

FEES ON  KIND        MERCHANT  ITEMS  COST
base     commitment  -         0      0.000000007 coin
base     sweep       cafe      61     0.041873 coin
`},
	} {
		var out strings.Builder
		if err := printReport(environment{stdout: &out}, c.made); err != nil || out.String() != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, &out, c.want)
		}
	}
}
