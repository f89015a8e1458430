package main

import (
	"context"
	"fmt"
	"io"
	"math/big"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/invoice"
)

func newReport(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "report --from DAY --to DAY",
		GroupID: groupService,
		Short:   "add up the payments and refunds of a period",
		Long: `Adds up what was confirmed from --from on and before --to, and what the service paid for
transactions in that time, by chain and merchant. docs/reports.md defines the figures.`,
		Example: "  quittance report --from 2026-11-01 --to 2026-12-01 --by chain --merchant cafe",
		Args:    noArgs,
	}
	f := client.ReportFilter{GroupBy: apitypes.ReportByCurrency}
	at := remoteFlags(cmd)
	cmd.Flags().StringVar(&f.From, "from", "", "`DAY` such as 2026-11-01, or Unix seconds: the beginning of the period")
	cmd.Flags().StringVar(&f.To, "to", "", "`DAY` or Unix seconds: the end of the period, which is not part of it")
	cmd.Flags().StringVar((*string)(&f.GroupBy), "by", string(f.GroupBy), "`GROUP` that has a line: day, chain or currency")
	cmd.Flags().StringVar(&f.MerchantID, "merchant", "", "only the merchant with this `ID`")
	cmd.Flags().StringVar(&f.Timezone, "timezone", "", "`ZONE` of the days, such as Europe/Berlin (default UTC)")
	for _, name := range []string{"from", "to"} {
		cobra.CheckErr(cmd.MarkFlagRequired(name))
	}
	return callCommand(env, cmd, at, "GET /api/reports/settlement", func(
		ctx context.Context, c *client.Client, _ []string,
	) (apitypes.SettlementReportResponse, error) {
		made, err := c.SettlementReport(ctx, f)
		return apitypes.SettlementReportResponse{Report: made}, err
	}, env.printReport)
}

// printReport prints the lines of a report, and the fees.
func (env environment) printReport(r apitypes.SettlementReportResponse) error {
	made := r.Report
	if len(made.Lines) == 0 {
		if _, err := fmt.Fprintln(env.stdout, "Nothing was confirmed in this period."); err != nil {
			return err
		}
	} else if err := env.writeTable(func(table io.Writer) { printReportLines(table, made) }); err != nil {
		return err
	}
	if len(made.Fees) == 0 {
		return nil
	}
	fmt.Fprintln(env.stdout)
	return env.writeTable(func(table io.Writer) {
		fmt.Fprintln(table, "FEES ON\tKIND\tMERCHANT\tITEMS\tCOST")
		for _, f := range made.Fees {
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", printable(f.ChainKey), printable(string(f.Kind)), orDash(f.MerchantID), f.Items, inCoin(f.CostGwei))
		}
	})
}

func printReportLines(table io.Writer, made apitypes.SettlementReport) {
	group := map[apitypes.ReportGroup]string{apitypes.ReportByDay: "DAY\t", apitypes.ReportByChain: "CHAIN\t"}[made.GroupBy]
	fmt.Fprintln(table, group+"CURRENCY\tPAYMENTS\tGROSS\tSETTLED\tUNDERPAID\tSUFFIXES\tOVERPAID\tLATE\tDUPLICATE\tREFUNDED\tNET")
	for _, l := range made.Lines {
		sum := func(text string) string { return inUnits(text, l.Decimals) }
		first := l.Day + l.ChainKey
		if group != "" {
			first += "\t"
		}
		fmt.Fprintf(table, "%s%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", first, l.Currency, l.Payments, sum(l.Gross), sum(l.Settled), sum(l.Underpaid),
			sum(l.Suffixes), sum(l.Overpaid), sum(l.Late), sum(l.Duplicate), sum(l.Refunded), sum(l.Net))
	}
}

// coinDecimals are the decimals of billionths of a network's coin.
const coinDecimals = 9

// inCoin formats billionths of a network's coin in units of it.
func inCoin(gwei string) string {
	places := coinDecimals
	return inUnits(gwei, &places) + " coin"
}

// inUnits formats a sum in units with the given decimals, at least two of which are shown. It returns
// a sum unchanged if there are no decimals, or if it is not an integer.
func inUnits(sum string, decimals *int) string {
	n, ok := new(big.Int).SetString(sum, 10)
	if !ok || decimals == nil || *decimals < 0 || *decimals > 77 {
		return printable(sum)
	}
	return invoice.MajorSum(n.String(), *decimals)
}
