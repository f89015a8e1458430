package main

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

func newPayments(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "payments COMMAND", Aliases: []string{"payment"}, GroupID: groupService,
		Short: "list, show and attribute payments",
		Long:  "Lists and shows payments that a service found on its chains, and attributes them to invoices.",
	}, newPaymentsList(env), newPaymentsShow(env), newPaymentsAttribute(env))
}

// firstOf returns the first elements of a list, at most limit, or all if limit is 0.
func firstOf[E any](list iter.Seq2[E, error], limit uint) ([]E, error) {
	all := []E{}
	for e, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
		if uint(len(all)) == limit {
			break
		}
	}
	return all, nil
}

func newPaymentsList(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "list payments, newest first",
		Long:    "Lists payments, last observed first: confirmed ones that are attributed to invoices, and others on request.",
		Example: "  quittance payments list --unattributed",
		Args:    noArgs,
	}
	var f client.PaymentFilter
	at := remoteFlags(cmd)
	cmd.Flags().StringVar(&f.MerchantID, "merchant", "", "only payments to the merchant with this `ID`")
	cmd.Flags().StringVar(&f.ChainKey, "chain", "", "only payments on the chain with this `KEY`")
	cmd.Flags().BoolVar(&f.IncludePending, "pending", false, "also those that are not final yet, or no longer on the chain")
	cmd.Flags().BoolVar(&f.IncludeUnattributed, "unattributed", false, "also those that are attributed to no invoice")
	limit := limitFlag(cmd, "payments")
	return callCommand(env, cmd, at, "GET /api/payments", func(
		ctx context.Context, c *client.Client, _ []string,
	) (apitypes.PaymentList, error) {
		f.PageSize = pageSize(*limit)
		all, err := firstOf(c.Payments(ctx, f), *limit)
		return apitypes.PaymentList{Payments: all}, err
	}, func(l apitypes.PaymentList) error {
		const header = "PAYMENT\tAMOUNT\tINVOICE\tSTATUS\tCONFIRMED\tCHAIN\tTRANSACTION"
		return tableOf(env.cut(), "payments", l.Payments, header, func(p apitypes.Payment) []any {
			return []any{
				p.ID, units(p.Amount, p.Currency), orDash(p.InvoiceID), orDash(string(p.Status)), env.localTime(p.ConfirmedAt),
				p.ChainKey, p.TxHash,
			}
		})
	})
}

func newPaymentsShow(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "show one payment",
		Long:  "Shows a payment, and the invoices that it may be for if it is attributed to none.",
		Args:  oneID("payments show", "payment, pay_…"),
	}
	return callCommand(env, cmd, remoteFlags(cmd), "GET /api/payments/{id}", func(
		ctx context.Context, c *client.Client, ids []string,
	) (apitypes.PaymentResponse, error) {
		p, err := c.Payment(ctx, ids[0])
		return apitypes.PaymentResponse{Payment: p}, err
	}, env.printPayment)
}

func (env environment) printPayment(r apitypes.PaymentResponse) error {
	p := r.Payment
	return env.writeTable(func(table io.Writer) {
		printRows(table, [][2]string{
			{"id", p.ID}, {"invoice", p.InvoiceID}, {"amount", units(p.Amount, p.Currency)}, {"status", string(p.Status)},
			{"from", p.From}, {"to", p.To}, {"chain", p.ChainKey}, {"block", fmt.Sprint(p.BlockNumber)}, {"transaction", p.TxHash},
			{"confirmed", env.localTime(p.ConfirmedAt)}, {"refunded", units(p.AmountRefunded, p.Currency)},
		})
		for _, c := range p.Candidates {
			fmt.Fprintf(table, "may be for\t%s, %s, %s, merchant %s\n", c.InvoiceID, c.Status, units(c.Amount, p.Currency), c.MerchantID)
		}
	})
}

func newPaymentsAttribute(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "attribute ID --invoice ID --by NAME",
		Short:   "say which invoice an unattributed payment is for",
		Long:    "Attributes a payment that is attributed to no invoice. It cannot be undone; who did it is recorded.",
		Example: "  quittance payments attribute pay_… --invoice inv_… --by maria --note \"the payer wrote to us\"",
		Args:    oneID("payments attribute", "payment, pay_…"),
	}
	var r apitypes.AttributePaymentRequest
	at := remoteFlags(cmd)
	cmd.Flags().StringVar(&r.InvoiceID, "invoice", "", "the `ID` of the invoice")
	cmd.Flags().StringVar(&r.By, "by", "", "who decides it, `NAME`")
	cmd.Flags().StringVar(&r.Note, "note", "", "why, `TEXT`")
	cobra.CheckErr(cmd.MarkFlagRequired("invoice"))
	cobra.CheckErr(cmd.MarkFlagRequired("by"))
	return callCommand(env, cmd, at, "GET /api/payments/{id}", func(
		ctx context.Context, c *client.Client, ids []string,
	) (apitypes.PaymentResponse, error) {
		p, err := c.AttributePayment(ctx, ids[0], r)
		return apitypes.PaymentResponse{Payment: p}, err
	}, env.printPayment)
}
