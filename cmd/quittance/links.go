package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

func newLinks(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "links COMMAND", Aliases: []string{"link"}, GroupID: groupService,
		Short: "create, list, show, change and archive payment links",
		Long: `Manages payment links: pages on which anybody makes an invoice of a merchant and pays it,
of a fixed amount or of one that the payer enters.`,
	}, newLinksCreate(env), newLinksList(env), newLinksShow(env), newLinksUpdate(env), newLinksArchive(env), newLinksQR(env))
}

// linkFlags are the flags that describe the invoices of a link.
type linkFlags struct {
	title, description, amount, least, most, currency, chain, address string
	lineItem, prefix, collection, returnURL, cancelURL                string
	expiresIn                                                         time.Duration
}

func addLinkFlags(cmd *cobra.Command) *linkFlags {
	f, flags := new(linkFlags), cmd.Flags()
	flags.StringVar(&f.title, "title", "", "what is paid for, the headline of the page: `TEXT`")
	flags.StringVar(&f.description, "description", "", "`TEXT` below the headline")
	flags.StringVar(&f.amount, "amount", "", "fixed amount in `UNITS`, such as 4.90 (default: the payer enters it)")
	flags.StringVar(&f.least, "min", "", "least amount that a payer may enter, in `UNITS`")
	flags.StringVar(&f.most, "max", "", "largest amount that a payer may enter, in `UNITS`")
	flags.StringVar(&f.currency, "currency", "USDC", "`CODE` of the currency")
	flags.StringVar(&f.chain, "chain", "", "`KEY` of the chain")
	flags.StringVar(&f.address, "to", "", "settlement `ADDRESS` (default: the merchant's default address on the chain)")
	flags.StringVar(&f.lineItem, "line-item", "", "label of the invoices' line item: `TEXT`")
	flags.StringVar(&f.prefix, "reference-prefix", "", "what the invoices' references begin with: `TEXT`")
	flags.StringVar(&f.collection, "collection", "", "direct or deposit: `HOW` (default: as the merchant's)")
	flags.StringVar(&f.returnURL, "return-url", "", "where the checkout page links to once an invoice is paid: `URL`")
	flags.StringVar(&f.cancelURL, "cancel-url", "", "where it links to before: `URL`")
	flags.DurationVar(&f.expiresIn, "expires-in", time.Hour, "how long an invoice can be paid: `TIME`")
	return f
}

// minor returns the amounts of the flags in minor units. Empty ones stay empty.
func (f *linkFlags) minor(currency string) (amount, least, most string, err error) {
	for _, a := range []struct {
		dst   *string
		units string
	}{{&amount, f.amount}, {&least, f.least}, {&most, f.most}} {
		if a.units == "" {
			continue
		}
		if *a.dst, err = minorUnits(a.units, currency); err != nil {
			return "", "", "", usageError{err}
		}
	}
	return amount, least, most, nil
}

func newLinksCreate(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create --title TEXT --chain KEY",
		Short: "create a payment link",
		Long:  "Creates a payment link, and prints it with its URL.",
		Example: `  quittance links create --merchant acme --chain base --title "An espresso" --amount 4.90 --slug espresso
  quittance links create --merchant acme --chain base --title "A donation" --min 1`,
		Args: noArgs,
	}
	at := remoteFlags(cmd)
	var r apitypes.CreatePaymentLinkRequest
	cmd.Flags().StringVar(&r.MerchantID, "merchant", "", "`ID` of the merchant (default: that of the key)")
	cmd.Flags().StringVar(&r.Slug, "slug", "", "last part of the page's path: `TEXT` (default: a random one)")
	f := addLinkFlags(cmd)
	key := cmd.Flags().String("idempotency-key", "", "`KEY` that makes the command safe to repeat (default: a random one)")
	cobra.CheckErr(cmd.MarkFlagRequired("title"))
	cobra.CheckErr(cmd.MarkFlagRequired("chain"))
	return callCommand(env, cmd, at, "POST /api/payment-links", func(
		ctx context.Context, c *client.Client, _ []string,
	) (l apitypes.PaymentLinkResponse, err error) {
		if r.Amount, r.MinAmount, r.MaxAmount, err = f.minor(f.currency); err != nil {
			return l, err
		}
		r.Title, r.Description, r.Currency, r.ChainKey, r.MerchantAddress, r.LineItem = f.title, f.description, f.currency, f.chain, f.address, f.lineItem
		r.ReferencePrefix, r.Collection, r.ReturnURL, r.CancelURL = f.prefix, apitypes.Collection(f.collection), f.returnURL, f.cancelURL
		r.ExpiresIn = int64(f.expiresIn / time.Second)
		l.Link, err = c.CreatePaymentLink(ctx, r, repeatable(*key)...)
		return l, err
	}, env.printLink)
}

func newLinksList(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "list payment links, newest first",
		Long:    "Lists payment links, newest first: those in use, and with --archived the others.",
		Example: "  quittance links list --merchant acme",
		Args:    noArgs,
	}
	var f client.PaymentLinkFilter
	at := remoteFlags(cmd)
	cmd.Flags().StringVar(&f.MerchantID, "merchant", "", "only links of the merchant with this `ID`")
	cmd.Flags().StringVar(&f.Slug, "slug", "", "only links with this slug, `TEXT`")
	archived := cmd.Flags().Bool("archived", false, "list archived links")
	limit := limitFlag(cmd, "links")
	return callCommand(env, cmd, at, "GET /api/payment-links", func(
		ctx context.Context, c *client.Client, _ []string,
	) (apitypes.PaymentLinkList, error) {
		f.Archived, f.PageSize = archived, pageSize(*limit)
		all, err := firstOf(c.PaymentLinks(ctx, f), *limit)
		return apitypes.PaymentLinkList{Links: all}, err
	}, func(all apitypes.PaymentLinkList) error {
		const header = "LINK\tMERCHANT\tSLUG\tAMOUNT\tCREATED\tTITLE"
		return tableOf(env.cut(), "links", all.Links, header, func(l apitypes.PaymentLink) []any {
			return []any{l.ID, l.MerchantID, l.Slug, linkAmount(l), env.localTime(l.CreatedAt), printable(l.Title)}
		})
	})
}

// linkAmount returns the amount of a link, or its bounds.
func linkAmount(l apitypes.PaymentLink) string {
	switch {
	case l.Amount != "":
		return units(l.Amount, l.Currency)
	case l.MinAmount != "" && l.MaxAmount != "":
		return units(l.MinAmount, l.Currency) + " to " + units(l.MaxAmount, l.Currency)
	case l.MinAmount != "":
		return units(l.MinAmount, l.Currency) + " or more"
	case l.MaxAmount != "":
		return "up to " + units(l.MaxAmount, l.Currency)
	}
	return "any"
}

// printLink writes a link.
func (env environment) printLink(r apitypes.PaymentLinkResponse) error {
	l, state := r.Link, "in use"
	if l.Archived {
		state = "archived"
	}
	// Not cut, so that the URL can be copied.
	return writeTable(env.stdout, func(table io.Writer) {
		printRows(table, [][2]string{
			{"id", l.ID}, {"url", l.URL}, {"state", state}, {"merchant", l.MerchantID}, {"title", printable(l.Title)}, {"description", printable(l.Description)},
			{"amount", linkAmount(l)}, {"chain", l.ChainKey}, {"to", l.MerchantAddress}, {"line item", printable(l.LineItem)},
			{"reference prefix", printable(l.ReferencePrefix)}, {"collection", string(l.Collection)}, {"return URL", l.ReturnURL}, {"cancel URL", l.CancelURL},
			{"expires in", (time.Duration(l.ExpiresIn) * time.Second).String()}, {"created", env.localTime(l.CreatedAt)},
		})
	})
}

// linkCommand returns a command about one link, which call returns.
func linkCommand(
	env environment, cmd *cobra.Command, call func(c *client.Client, ctx context.Context, id string) (apitypes.PaymentLink, error),
) *cobra.Command {
	cmd.Args = oneID("links "+cmd.Name(), "link, lnk_…")
	return callCommand(env, cmd, remoteFlags(cmd), "GET /api/payment-links/{id}", func(
		ctx context.Context, c *client.Client, ids []string,
	) (apitypes.PaymentLinkResponse, error) {
		l, err := call(c, ctx, ids[0])
		return apitypes.PaymentLinkResponse{Link: l}, err
	}, env.printLink)
}

func newLinksShow(env environment) *cobra.Command {
	return linkCommand(env, &cobra.Command{
		Use: "show ID", Short: "show one payment link", Long: "Shows a payment link with its URL.",
	}, (*client.Client).PaymentLink)
}

func newLinksArchive(env environment) *cobra.Command {
	return linkCommand(env, &cobra.Command{
		Use: "archive ID", Short: "archive a payment link",
		Long: "Archives a payment link: its page says that it is no longer in use. This cannot be taken back; another link may have its slug.",
	}, func(c *client.Client, ctx context.Context, id string) (apitypes.PaymentLink, error) {
		archived := true
		return c.UpdatePaymentLink(ctx, id, apitypes.UpdatePaymentLinkRequest{Archived: &archived})
	})
}
