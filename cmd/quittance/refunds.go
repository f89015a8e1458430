package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

func newRefunds(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "refunds COMMAND", Aliases: []string{"refund"}, GroupID: groupService,
		Short: "prepare, list, show, approve and cancel refunds",
		Long: `Prepares refunds, and shows what became of them. The service holds no key: it gives
the transaction, and the merchant's wallet signs it.`,
	}, newRefundsPrepare(env), newRefundsList(env), newRefundsShow(env), newRefundsApprove(env), newRefundsCancel(env))
}

// askPayer is the recipient of a refund that asks the payer for an address.
const askPayer = "ask_payer"

func newRefundsPrepare(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prepare PAYMENT",
		Short: "prepare the refund of a payment, or of a part of it",
		Long: `Reserves what is left of a payment, or --amount of it, and prints the transaction that
sends it back to the payer or to another address. With --ask-payer the payer enters the
address on a page, whose link is printed. An amount is in units, such as 4.90.`,
		Example: `  quittance refunds prepare pay_… --amount 1.50 --reason "one cup was broken"
  quittance refunds prepare pay_… --ask-payer`,
		Args: oneID("refunds prepare", "payment, pay_…"),
	}
	at := remoteFlags(cmd)
	var r apitypes.PrepareRefundRequest
	amount := cmd.Flags().String("amount", "", "`UNITS` to send back (default: what is left of the payment)")
	cmd.Flags().StringVar(&r.To, "to", "", "`ADDRESS` to send it to (default: the one that paid)")
	ask := cmd.Flags().Bool("ask-payer", false, "have the payer enter the address")
	cmd.MarkFlagsMutuallyExclusive("to", "ask-payer")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "`TEXT` for your own records")
	key := cmd.Flags().String("idempotency-key", "", "`KEY` that makes the command safe to repeat (default: a random one)")
	return refundCommand(env, cmd, at, "POST /api/payments/{id}/refunds", func(
		ctx context.Context, c *client.Client, ids []string,
	) (apitypes.RefundResponse, error) {
		if *ask {
			r.To = askPayer
		}
		return prepareRefund(ctx, c, ids[0], *amount, r, *key)
	})
}

func prepareRefund(ctx context.Context, c *client.Client, paymentID, amount string, r apitypes.PrepareRefundRequest, key string) (apitypes.RefundResponse, error) {
	if amount != "" {
		p, err := c.Payment(ctx, paymentID)
		if err != nil {
			return apitypes.RefundResponse{}, err
		}
		if r.Amount, err = minorUnits(amount, p.Currency); err != nil {
			return apitypes.RefundResponse{}, usageError{err}
		}
	}
	return c.PrepareRefund(ctx, paymentID, r, repeatable(key)...)
}

// safeFlag adds the flag --safe.
func safeFlag(cmd *cobra.Command) *string {
	safe := cmd.Flags().String("safe", "", "also write the transaction to a new `FILE` for the Transaction Builder of Safe")
	cobra.CheckErr(cmd.MarkFlagFilename("safe", "json"))
	return safe
}

// printRefund writes a refund with its transaction.
func (env environment) printRefund(r apitypes.RefundResponse) error {
	rows := [][2]string{
		{"id", r.Refund.ID}, {"payment", r.Refund.PaymentID}, {"invoice", r.Refund.InvoiceID}, {"status", string(r.Refund.Status)},
		{"amount", units(r.Refund.Amount, r.Refund.Currency)}, {"to", r.Refund.To}, {"reason", printable(r.Refund.Reason)},
		{"prepared", env.localTime(r.Refund.CreatedAt)}, {"expires", env.localTime(r.Refund.ExpiresAt)},
		{"confirmed", env.localTime(r.Refund.ConfirmedAt)}, {"by", r.Refund.TxHash}, {"the payer's page", r.ClaimURL},
	}
	for _, w := range r.Refund.Warnings {
		rows = append(rows, [2]string{"warning", printable(w.Text)})
	}
	if t := r.Transaction; t != nil {
		rows = append(rows, [2]string{"sign from", t.From}, [2]string{"chain", fmt.Sprintf("%s, id %d", t.ChainKey, t.ChainID)},
			[2]string{"to contract", t.To}, [2]string{"value", t.Value}, [2]string{"data", t.Data}, [2]string{"link", t.Link})
	}
	// Not cut, so that the transaction can be copied.
	return writeTable(env.stdout, func(table io.Writer) { printRows(table, rows) })
}

// writeSafe writes a transaction for Safe's Transaction Builder to a new file.
func writeSafe(path string, t *apitypes.RefundTransaction) error {
	if t == nil {
		return errors.New("--safe: the refund has no transaction now")
	}
	if err := writeNewFile(path, append(slices.Clone(t.Safe), '\n')); err != nil {
		return fmt.Errorf("--safe: %w", err)
	}
	return nil
}

// writeNewFile writes a file that does not exist yet. It leaves no file if it fails.
func writeNewFile(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// refundStatuses are the values of --status.
var refundStatuses = []string{
	string(apitypes.RefundPending), string(apitypes.RefundConfirmed), string(apitypes.RefundOrphaned), string(apitypes.RefundCanceled),
	string(apitypes.RefundExpired), string(apitypes.RefundAwaitingAddress), string(apitypes.RefundAwaitingApproval),
}

func newRefundsList(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "list refunds, newest first",
		Long:    "Lists refunds, newest first: those that were prepared, and others that were seen on chain.",
		Example: "  quittance refunds list --status pending",
		Args:    noArgs,
	}
	var f client.RefundFilter
	at := remoteFlags(cmd)
	cmd.Flags().StringVar(&f.MerchantID, "merchant", "", "only refunds of the merchant with this `ID`")
	cmd.Flags().StringVar(&f.PaymentID, "payment", "", "only refunds of the payment with this `ID`")
	cmd.Flags().StringVar(&f.InvoiceID, "invoice", "", "only refunds of the invoice with this `ID`")
	cmd.Flags().StringVar((*string)(&f.Status), "status", "", "only refunds with this `STATUS`: "+strings.Join(refundStatuses, ", "))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(refundStatuses, cobra.ShellCompDirectiveNoFileComp)))
	limit := limitFlag(cmd, "refunds")
	return callCommand(env, cmd, at, "GET /api/refunds", func(
		ctx context.Context, c *client.Client, _ []string,
	) (apitypes.RefundList, error) {
		f.PageSize = pageSize(*limit)
		all, err := firstOf(c.Refunds(ctx, f), *limit)
		return apitypes.RefundList{Refunds: all}, err
	}, func(l apitypes.RefundList) error {
		const header = "REFUND\tSTATUS\tAMOUNT\tPAYMENT\tCREATED\tTO\tTRANSACTION"
		return tableOf(env.cut(), "refunds", l.Refunds, header, func(r apitypes.RefundRecord) []any {
			return []any{
				r.ID, r.Status, units(r.Amount, r.Currency), r.PaymentID, env.localTime(r.CreatedAt), orDash(r.To), orDash(r.TxHash),
			}
		})
	})
}

// refundCommand completes a command that prints a refund, and writes its transaction with --safe.
func refundCommand(
	env environment, cmd *cobra.Command, at *remote, route string, call serviceCall[apitypes.RefundResponse],
) *cobra.Command {
	safe := safeFlag(cmd)
	return callCommand(env, cmd, at, route, func(
		ctx context.Context, c *client.Client, ids []string,
	) (apitypes.RefundResponse, error) {
		r, err := call(ctx, c, ids)
		if err == nil && *safe != "" {
			err = writeSafe(*safe, r.Transaction)
		}
		return r, err
	}, env.printRefund)
}

// oneRefundCommand completes a command about one refund.
func oneRefundCommand(
	env environment, cmd *cobra.Command, call func(c *client.Client, ctx context.Context, id string) (apitypes.RefundResponse, error),
) *cobra.Command {
	cmd.Args = oneID("refunds "+cmd.Name(), "refund, ref_…")
	return refundCommand(env, cmd, remoteFlags(cmd), "GET /api/refunds/{id}", func(
		ctx context.Context, c *client.Client, ids []string,
	) (apitypes.RefundResponse, error) {
		return call(c, ctx, ids[0])
	})
}

func newRefundsShow(env environment) *cobra.Command {
	return oneRefundCommand(env, &cobra.Command{
		Use: "show ID", Short: "show one refund, with the transaction to sign",
		Long: "Shows a refund and, while it can be sent, the transaction to sign.",
	}, func(c *client.Client, ctx context.Context, id string) (apitypes.RefundResponse, error) {
		return c.Refund(ctx, id, false)
	})
}

func newRefundsCancel(env environment) *cobra.Command {
	return oneRefundCommand(env, &cobra.Command{
		Use: "cancel ID", Short: "cancel a refund that was not sent",
		Long: "Cancels a prepared refund. Do not sign its transaction afterwards: it would be counted as a refund all the same.",
	}, (*client.Client).CancelRefund)
}

func newRefundsApprove(env environment) *cobra.Command {
	var r apitypes.ApproveRefundRequest
	cmd := oneRefundCommand(env, &cobra.Command{
		Use: "approve ID --to ADDRESS", Short: "approve the address that a payer entered without a signature",
		Long: `Approves the address that a payer entered without proving that the payment was theirs.
Name the address, as quittance refunds show prints it: another one is refused.`,
	}, func(c *client.Client, ctx context.Context, id string) (apitypes.RefundResponse, error) {
		return c.ApproveRefund(ctx, id, r)
	})
	cmd.Flags().StringVar(&r.To, "to", "", "the `ADDRESS` that is approved")
	cobra.CheckErr(cmd.MarkFlagRequired("to"))
	return cmd
}
