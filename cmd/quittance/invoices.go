package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/clock"
)

func newInvoices(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "invoices COMMAND", Aliases: []string{"invoice"}, GroupID: groupService,
		Short: "list, show, create, finalize, send, void and watch invoices",
		Long:  "Lists, shows, creates, finalizes, sends, voids and watches invoices of a service.",
	}, newInvoicesList(env), newInvoicesShow(env), newInvoicesCreate(env), newInvoicesFinalize(env), newInvoicesSend(env), newInvoicesVoid(env), newInvoicesWatch(env))
}

// oneID returns the check of arguments that are one id.
func oneID(command, of string) cobra.PositionalArgs {
	return oneArg(command + " needs the id of one " + of)
}

// limitFlag adds the flag --limit of a list.
func limitFlag(cmd *cobra.Command, things string) *uint {
	return cmd.Flags().Uint("limit", 50, "list at most `N` "+things+"; 0 for all")
}

// maxPageSize is the largest page that the service gives.
const maxPageSize = 200

// pageSize returns the size of the pages of a list with --limit.
func pageSize(limit uint) int { return int(min(limit, maxPageSize)) }

// invoiceStatuses are the values of --status.
var invoiceStatuses = []string{
	string(apitypes.StatusDraft), string(apitypes.StatusOpen), string(apitypes.StatusPaid), string(apitypes.StatusExpired), string(apitypes.StatusVoid),
}

func newInvoicesList(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "list invoices, newest first",
		Long:    "Lists invoices, newest first.",
		Example: "  quittance invoices list --status open --merchant shop",
		Args:    noArgs,
	}
	var f client.InvoiceFilter
	at := remoteFlags(cmd)
	cmd.Flags().StringVar(&f.MerchantID, "merchant", "", "only invoices of the merchant with this `ID`")
	cmd.Flags().StringVar((*string)(&f.Status), "status", "", "only invoices with this `STATUS`: "+strings.Join(invoiceStatuses, ", "))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(invoiceStatuses, cobra.ShellCompDirectiveNoFileComp)))
	cmd.Flags().StringVar(&f.Reference, "reference", "", "only invoices with this order number, `TEXT`")
	limit := limitFlag(cmd, "invoices")
	return callCommand(env, cmd, at, "GET /api/invoices", func(
		ctx context.Context, c *client.Client, _ []string,
	) (apitypes.InvoiceList, error) {
		f.PageSize = pageSize(*limit)
		all, err := firstOf(c.Invoices(ctx, f), *limit)
		return apitypes.InvoiceList{Invoices: all}, err
	}, func(l apitypes.InvoiceList) error {
		const header = "INVOICE\tSTATUS\tAMOUNT\tPAID\tMERCHANT\tREFERENCE\tCREATED\tEXCEPTION"
		return tableOf(env.cut(), "invoices", l.Invoices, header, func(i apitypes.Invoice) []any {
			return []any{
				i.ID, i.Status, units(i.Amount, i.Currency), units(i.AmountPaid, i.Currency),
				i.MerchantID, orDash(printable(i.Reference)), env.localTime(i.CreatedAt), orDash(string(i.Exception)),
			}
		})
	})
}

func newInvoicesShow(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "show one invoice",
		Long:  "Shows the state of an invoice.",
		Args:  oneID("invoices show", "invoice, inv_…"),
	}
	return callCommand(env, cmd, remoteFlags(cmd), "GET /api/invoices/{id}", func(
		ctx context.Context, c *client.Client, ids []string,
	) (apitypes.InvoiceResponse, error) {
		i, err := c.Invoice(ctx, ids[0])
		return apitypes.InvoiceResponse{Invoice: i}, err
	}, env.printInvoice)
}

func (env environment) printInvoice(r apitypes.InvoiceResponse) error {
	i := r.Invoice
	return env.writeTable(func(table io.Writer) {
		printRows(table, [][2]string{
			{"id", i.ID}, {"status", string(i.Status)}, {"exception", string(i.Exception)}, {"amount", units(i.Amount, i.Currency)},
			{"amount to transfer", units(i.TransferAmount, i.Currency)}, {"paid", units(i.AmountPaid, i.Currency)},
			{"more than was due", units(i.AmountExcess, i.Currency)}, {"refunded", units(i.AmountRefunded, i.Currency)}, {"chain", i.ChainKey}, {"to", i.MerchantAddress}, {"merchant", i.MerchantID},
			{"reference", printable(i.Reference)}, {"description", printable(i.Description)}, {"created", env.localTime(i.CreatedAt)},
			{"expires", env.localTime(i.ExpiresAt)}, {"settled", env.localTime(i.SettledAt)}, {"settled by", i.SettledTxHash},
		})
		for _, item := range i.LineItems {
			fmt.Fprintf(table, "item\t%s: %s\n", printable(item.Label), units(item.Amount, i.Currency))
		}
	})
}

// createFlags are the flags of invoices create.
type createFlags struct {
	request        apitypes.CreateInvoiceRequest
	amount         string
	items          []string
	expiresIn      time.Duration
	idempotencyKey string
}

func newInvoicesCreate(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create --amount UNITS --chain KEY",
		Short: "create an invoice",
		Long: `Creates an invoice, and prints its id and the page where it is paid. An amount is in
units of the currency, such as 4.90. With --idempotency-key the command can be
repeated: it then shows the first invoice again.`,
		Example: "  quittance invoices create --merchant shop --amount 4.90 --chain base --item \"Coffee=4.90\"",
		Args:    noArgs,
	}
	var f createFlags
	at := remoteFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.amount, "amount", "", "amount owed, in `UNITS` such as 4.90")
	flags.StringVar(&f.request.ChainKey, "chain", "", "`KEY` of the chain it is paid on")
	flags.StringVar(&f.request.Currency, "currency", "USDC", "`CODE` of the currency")
	flags.StringVar(&f.request.MerchantID, "merchant", "", "`ID` of the merchant; not needed with a merchant's key")
	flags.StringVar(&f.request.MerchantAddress, "to", "", "settlement `ADDRESS`; not needed if the merchant has a default one")
	flags.StringArrayVar(&f.items, "item", nil, "a line item, `LABEL=UNITS`; may be repeated")
	flags.DurationVar(&f.expiresIn, "expires-in", time.Hour, "`TIME` in which it can be paid")
	flags.StringVar(&f.request.Reference, "reference", "", "your order number, `TEXT`")
	flags.StringVar(&f.request.Description, "description", "", "`TEXT` for the payer")
	flags.StringToStringVar((*map[string]string)(&f.request.Metadata), "metadata", nil, "your own data, `NAME=VALUE`; may be repeated")
	flags.BoolVar(&f.request.Draft, "draft", false, "create a draft, which nothing can pay until it is finalized")
	flags.StringVar(&f.idempotencyKey, "idempotency-key", "", "`KEY` that makes the command safe to repeat (default: a random one)")
	cobra.CheckErr(cmd.MarkFlagRequired("amount"))
	cobra.CheckErr(cmd.MarkFlagRequired("chain"))
	return callCommand(env, cmd, at, "POST /api/invoices", func(
		ctx context.Context, c *client.Client, _ []string,
	) (apitypes.CreateInvoiceResponse, error) {
		return createInvoice(ctx, c, f)
	}, env.printMade)
}

// printMade writes an invoice that was created or finalized, and its page.
func (env environment) printMade(made apitypes.CreateInvoiceResponse) error {
	_, err := fmt.Fprintf(env.stdout, "%s  %s  %s\n%s\n", made.ID, made.Invoice.Status, units(made.Invoice.Amount, made.Invoice.Currency), made.CheckoutPage)
	return err
}

func createInvoice(
	ctx context.Context, c *client.Client, f createFlags,
) (made apitypes.CreateInvoiceResponse, err error) {
	r := f.request
	if r.Amount, err = minorUnits(f.amount, r.Currency); err != nil {
		return made, usageError{err}
	}
	for _, text := range f.items {
		label, amount, ok := strings.Cut(text, "=")
		if !ok {
			return made, usageError{fmt.Errorf("--item %q; want LABEL=UNITS, such as Coffee=4.90", text)}
		}
		item := apitypes.LineItem{Label: label}
		if item.Amount, err = minorUnits(amount, r.Currency); err != nil {
			return made, usageError{err}
		}
		r.LineItems = append(r.LineItems, item)
	}
	r.ExpiresAt = time.Now().Add(f.expiresIn).Unix()
	return c.CreateInvoice(ctx, r, repeatable(f.idempotencyKey)...)
}

func newInvoicesFinalize(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "finalize ID",
		Short: "open a draft, so that it can be paid",
		Long:  "Opens a draft, and prints the page where it is paid. An invoice that is open already stays as it is.",
		Args:  oneID("invoices finalize", "invoice, inv_…"),
	}
	return callCommand(env, cmd, remoteFlags(cmd), "POST /api/invoices/{id}/finalize", func(
		ctx context.Context, c *client.Client, ids []string,
	) (apitypes.CreateInvoiceResponse, error) {
		return c.FinalizeInvoice(ctx, ids[0])
	}, env.printMade)
}

func newInvoicesSend(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "send ID",
		Short: "send an open invoice to the customer by e-mail",
		Long: `Sends an open invoice to the customer by e-mail, with a link to its page, and lists the
mails of the invoice.`,
		Example: "  quittance invoices send inv_… --email maria@example.com --language de --reminder-hours -24,72",
		Args:    oneID("invoices send", "invoice, inv_…"),
	}
	var r apitypes.SendInvoiceRequest
	cmd.Flags().StringVar(&r.Email, "email", "", "`ADDRESS`, which becomes the customer's; default is the customer's")
	cmd.Flags().StringVar(&r.Language, "language", "", "of the text: `TAG`, such as de")
	cmd.Flags().IntSliceVar(&r.ReminderHours, "reminder-hours", nil, "when to remind, in hours from the end of the time to pay; default is the merchant's: `HOURS`")
	at := remoteFlags(cmd)
	return callCommand(env, cmd, at, "GET /api/invoices/{id}/mails", func(
		ctx context.Context, c *client.Client, ids []string,
	) (apitypes.MailList, error) {
		if err := c.SendInvoice(ctx, ids[0], r); err != nil {
			return apitypes.MailList{}, err
		}
		mails, err := c.InvoiceMails(ctx, ids[0])
		return apitypes.MailList{Mails: mails}, err
	}, func(l apitypes.MailList) error {
		return tableOf(env.stdout, "mails", l.Mails, "KIND\tADDRESS\tLANGUAGE\tSTATE\tAT", func(m apitypes.Mail) []any {
			return []any{m.Kind, orDash(printable(m.Email)), m.Language, m.State, timeOfDay(cmp.Or(m.EndedAt, m.SendAt))}
		})
	})
}

func newInvoicesVoid(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "void ID",
		Short: "cancel a draft or an open invoice",
		Long: `Makes a draft or an open invoice void, for good. It is refused if a payment that covers
the invoice was seen before.`,
		Args: oneID("invoices void", "invoice, inv_…"),
	}
	return callCommand(env, cmd, remoteFlags(cmd), "GET /api/invoices/{id}", func(
		ctx context.Context, c *client.Client, ids []string,
	) (apitypes.InvoiceResponse, error) {
		i, err := c.VoidInvoice(ctx, ids[0])
		return apitypes.InvoiceResponse{Invoice: i}, err
	}, func(r apitypes.InvoiceResponse) error {
		_, err := fmt.Fprintf(env.stdout, "%s is %s.\n", r.Invoice.ID, r.Invoice.Status)
		return err
	})
}

// watchInterval is the pause between two reads of an invoice.
const watchInterval = time.Second

func newInvoicesWatch(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "follow an invoice until it is paid, expired or void",
		Long: `Prints a line for each change of an invoice, until it is paid, expired or void. It
exits with 0 if the invoice is paid, else with 1.`,
		Args: oneID("invoices watch", "invoice, inv_…"),
	}
	at := remoteFlags(cmd)
	asJSON := jsonFlag(cmd, "write the invoice as JSON at each change, a line each")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		return noService(watchInvoice(cmd.Context(), env, at, ids[0], *asJSON))
	}
	return cmd
}

func watchInvoice(ctx context.Context, env environment, at *remote, id string, asJSON bool) error {
	c, err := at.client(env)
	if err != nil {
		return err
	}
	for last := ""; ; {
		i, err := c.Invoice(ctx, id)
		if err != nil {
			return err
		}
		now := fmt.Sprintf("%s  paid %s of %s", i.Status, units(i.AmountPaid, i.Currency), units(i.Amount, i.Currency))
		if i.Exception != "" {
			now += "  " + string(i.Exception)
		}
		if now != last {
			if err := printChange(env, i, now, asJSON); err != nil {
				return err
			}
		}
		last = now
		switch i.Status {
		case apitypes.StatusPaid:
			return nil
		case apitypes.StatusExpired, apitypes.StatusVoid:
			return fmt.Errorf("the invoice is %s", i.Status)
		case apitypes.StatusDraft, apitypes.StatusOpen: // it can change
		}
		if !clock.Sleep(ctx, watchInterval, nil) {
			return errors.New("the invoice is not paid yet")
		}
	}
}

func printChange(env environment, i apitypes.Invoice, text string, asJSON bool) error {
	if asJSON {
		return env.writeJSON(apitypes.InvoiceResponse{Invoice: i})
	}
	_, err := fmt.Fprintf(env.stdout, "%s  %s\n", env.localTime(time.Now().Unix()), text)
	return err
}
