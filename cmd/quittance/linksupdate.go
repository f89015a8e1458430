package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"rsc.io/qr"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

func newLinksUpdate(env environment) *cobra.Command {
	var f *linkFlags
	var remove []string
	cmd := &cobra.Command{
		Use: "update ID", Short: "change a payment link",
		Long: "Changes a payment link for invoices that are made from then on. What no flag names stays as it is.",
		Example: `  quittance links update lnk_… --amount 5.20
  quittance links update lnk_… --remove amount --min 1`,
	}
	linkCommand(env, cmd, func(c *client.Client, ctx context.Context, id string) (apitypes.PaymentLink, error) {
		was, err := c.PaymentLink(ctx, id)
		if err != nil {
			return was, err
		}
		r, err := f.change(cmd, was.Currency)
		if err != nil {
			return was, err
		}
		return c.UpdatePaymentLink(ctx, id, r, remove...)
	})
	f = addLinkFlags(cmd)
	cmd.Flags().StringArrayVar(&remove, "remove", nil, "remove this `MEMBER`, such as description; may be repeated")
	return cmd
}

// change returns the change that the given flags make of a link in a currency.
func (f *linkFlags) change(cmd *cobra.Command, currency string) (r apitypes.UpdatePaymentLinkRequest, err error) {
	given := cmd.Flags().Changed
	if given("currency") {
		currency = f.currency
	}
	amount, least, most, err := f.minor(currency)
	if err != nil {
		return r, err
	}
	for name, m := range map[string]struct {
		dst  **string
		text *string
	}{
		"title": {&r.Title, &f.title}, "description": {&r.Description, &f.description}, "amount": {&r.Amount, &amount}, "min": {&r.MinAmount, &least},
		"max": {&r.MaxAmount, &most}, "currency": {&r.Currency, &f.currency}, "chain": {&r.ChainKey, &f.chain}, "to": {&r.MerchantAddress, &f.address},
		"line-item": {&r.LineItem, &f.lineItem}, "reference-prefix": {&r.ReferencePrefix, &f.prefix}, "collection": {&r.Collection, &f.collection},
		"return-url": {&r.ReturnURL, &f.returnURL}, "cancel-url": {&r.CancelURL, &f.cancelURL},
	} {
		if given(name) {
			*m.dst = m.text
		}
	}
	if given("expires-in") {
		seconds := int64(f.expiresIn / time.Second)
		r.ExpiresIn = &seconds
	}
	return r, nil
}

func newLinksQR(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "qr ID", Short: "print a QR code of a payment link",
		Long: "Prints a QR code of the URL of a payment link, or writes it as a PNG image. The service has it as SVG at the URL with /qr appended.",
		Args: oneID("links qr", "link, lnk_…"),
	}
	at := remoteFlags(cmd)
	file := cmd.Flags().String("png", "", "write a PNG image to a new `FILE`")
	cobra.CheckErr(cmd.MarkFlagFilename("png", "png"))
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		c, err := at.client(env)
		if err != nil {
			return err
		}
		l, err := c.PaymentLink(cmd.Context(), ids[0])
		if err != nil {
			return noService(err)
		}
		code, err := qr.Encode(l.URL, qr.M)
		if err != nil {
			return fmt.Errorf("make a QR code of %s: %w", l.URL, err)
		}
		if *file != "" {
			if err := writeNewFile(*file, code.PNG()); err != nil {
				return fmt.Errorf("--png: %w", err)
			}
			return nil
		}
		_, err = fmt.Fprint(env.stdout, drawQR(code), l.URL, "\n")
		return err
	}
	return cmd
}

// quietZone is the width of the white margin of a QR code, in modules (ISO/IEC 18004).
const quietZone = 4

// drawQR draws a QR code with half blocks, light on dark as terminals are.
func drawQR(code *qr.Code) string {
	white := func(x, y int) bool {
		return x >= -quietZone && y >= -quietZone && x < code.Size+quietZone && y < code.Size+quietZone && !code.Black(x, y)
	}
	var b strings.Builder
	for y := -quietZone; y < code.Size+quietZone; y += 2 {
		for x := -quietZone; x < code.Size+quietZone; x++ {
			b.WriteString(map[[2]bool]string{
				{true, true}: "█", {true, false}: "▀", {false, true}: "▄", {false, false}: " ",
			}[[2]bool{white(x, y), white(x, y+1)}])
		}
		b.WriteByte('\n')
	}
	return b.String()
}
