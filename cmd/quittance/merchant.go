package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/invoice"
)

func newMerchant(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "merchant COMMAND", Aliases: []string{"merchants"}, GroupID: groupService,
		Short: "manage merchants",
		Long: `Manages merchants: with --config in the database that the configuration names, else
through a service. A running service notices a change within a second.`,
	}, newMerchantCreate(env), newMerchantList(env), newMerchantShow(env), newMerchantUpdate(env), newMerchantRelease(env), newMerchantStorage(env), newMerchantQuotas(env),
		newMerchantRetire(env), newMerchantResume(env))
}

// merchantCommand returns a command about the merchant with an id, the service that its
// flags choose, and its flag --json.
func merchantCommand(name, flags, short, long string) (cmd *cobra.Command, at *remote, asJSON *bool) {
	cmd = &cobra.Command{
		Use: name + " ID" + flags, Short: short, Long: long,
		Args: oneArg("merchant " + name + " needs the id of one merchant"),
	}
	at = adminFlags(cmd)
	return cmd, at, jsonFlag(cmd, "write JSON, as the service's GET /api/merchants/{id} does")
}

// merchantFlags are the flags that change a merchant.
type merchantFlags struct {
	name, color, contact, statement, tolerance, logo string
	collection, timezone                             string
	defaults, allowed                                []string // chain key, =, address
	returnHosts, embedOrigins                        []string
	reminderHours                                    []int
	now                                              bool
	noLogo, noDefaults, noReturnHosts, noEmbed       bool // of merchant update
	noReminders                                      bool
}

func addMerchantFlags(cmd *cobra.Command) *merchantFlags {
	f, flags := new(merchantFlags), cmd.Flags()
	flags.StringVar(&f.name, "name", "", "shown to payers: `TEXT`")
	flags.StringVar(&f.color, "color", "", "of the brand, such as #1a73e8: `COLOR`")
	flags.StringVar(&f.contact, "support-contact", "", "for payers, an e-mail address, https URL or phone number: `CONTACT`")
	flags.StringVar(&f.statement, "statement", "", "shown on the checkout page, such as the legal name and address, in up to 10 lines: `TEXT`")
	flags.StringVar(&f.tolerance, "tolerance", "", "how much less pays an invoice: minor units, or a share such as 0.5%: `AMOUNT`")
	flags.StringVar(&f.collection, "collection", "", "of invoices that are created without one: direct or deposit: `HOW`")
	flags.StringVar(&f.timezone, "timezone", "", "by which its days begin, such as Europe/Berlin: `NAME`")
	flags.StringArrayVar(&f.defaults, "default-address", nil, "settlement address of invoices that name none, as `CHAIN=ADDRESS`; may be repeated")
	flags.StringArrayVar(&f.allowed, "allow-address", nil, "the list of addresses that invoices may settle to, each as `CHAIN=ADDRESS`")
	flags.StringArrayVar(&f.returnHosts, "return-host", nil, "the list of hosts that the checkout page may link back to, each as `HOST`")
	flags.StringArrayVar(&f.embedOrigins, "embed-origin", nil, "the list of origins whose pages may show the checkout in a frame, each as `ORIGIN`")
	flags.IntSliceVar(&f.reminderHours, "reminder-hours", nil, "when sent invoices are reminded of, in hours from the end of the time to pay, such as -24,72: `HOURS`")
	flags.BoolVar(&f.now, "now", false, "apply the list of allowed addresses at once")
	flags.StringVar(&f.logo, "logo", "", "PNG, JPEG or GIF image in `FILE`")
	return f
}

// defaultAddresses returns the default address of each chain, or nil without one.
func (f *merchantFlags) defaultAddresses() (byChain map[string]invoice.Address, err error) {
	all, err := parseAddresses("default-address", f.defaults)
	for _, a := range all {
		if _, twice := byChain[a.ChainKey]; twice {
			return nil, usageError{fmt.Errorf("--default-address names %s twice; want one address for each chain", a.ChainKey)}
		}
		if byChain == nil {
			byChain = make(map[string]invoice.Address)
		}
		byChain[a.ChainKey] = a.Address
	}
	return byChain, err
}

// change returns the change that the given flags make.
func (f *merchantFlags) change(cmd *cobra.Command) (c invoice.MerchantChange, err error) {
	for name, dst := range map[string]struct {
		to   **string
		text *string
	}{"name": {&c.Name, &f.name}, "color": {&c.Color, &f.color}, "support-contact": {&c.SupportContact, &f.contact}, "statement": {&c.Statement, &f.statement},
		"timezone": {&c.Timezone, &f.timezone}} {
		if cmd.Flags().Changed(name) {
			*dst.to = dst.text
		}
	}
	if cmd.Flags().Changed("tolerance") {
		c.Tolerance = new(invoice.Tolerance)
		if f.tolerance != "" && f.tolerance != "0" {
			if *c.Tolerance, err = invoice.ParseTolerance(f.tolerance); err != nil {
				return c, usageError{fmt.Errorf("--tolerance %w", err)}
			}
		}
	}
	if cmd.Flags().Changed("collection") {
		c.Collection = new(invoice.Collection(f.collection))
	}
	if c.DefaultAddresses, err = f.defaultAddresses(); err != nil {
		return c, err
	}
	if f.noDefaults {
		c.DefaultAddresses = make(map[string]invoice.Address)
	}
	if c.ReturnHosts = f.returnHosts; f.noReturnHosts {
		c.ReturnHosts = make([]string, 0)
	}
	if c.EmbedOrigins = f.embedOrigins; f.noEmbed {
		c.EmbedOrigins = make([]string, 0)
	}
	if c.ReminderHours = f.reminderHours; f.noReminders {
		c.ReminderHours = make([]int, 0)
	}
	c.Allowed, err = parseAddresses("allow-address", f.allowed)
	c.Immediately = f.now
	return c, err
}

// parseAddresses parses the values of a flag, CHAIN=ADDRESS.
func parseAddresses(flag string, values []string) (all []invoice.AllowedAddress, err error) {
	for _, value := range values {
		key, text, ok := strings.Cut(value, "=")
		address, err := chain.ParseAddress(text)
		if !ok || err != nil {
			return nil, usageError{fmt.Errorf("--%s is %q; want CHAIN=ADDRESS: the address %w", flag, value, err)}
		}
		all = append(all, invoice.AllowedAddress{ChainKey: key, Address: address})
	}
	return all, nil
}

func newMerchantCreate(env environment) *cobra.Command {
	cmd, at, asJSON := merchantCommand("create", " --name TEXT", "create a merchant", "Creates a merchant, for which invoices can then be created.")
	cmd.Example = "  quittance merchant create acme --config quittance.yaml --name Acme --default-address base=0x…"
	f := addMerchantFlags(cmd)
	cobra.CheckErr(cmd.MarkFlagRequired("name"))
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		return f.run(cmd, env, at, ids[0], *asJSON, creation)
	}
	return cmd
}

func newMerchantUpdate(env environment) *cobra.Command {
	cmd, at, asJSON := merchantCommand("update", "", "change a merchant", `Changes a merchant. What no flag names stays as it is.

A new list of allowed addresses takes effect after the configured delay, 24 hours
by default, unless it is the first one or --now is given.`)
	cmd.Example = "  quittance merchant update acme --config quittance.yaml --allow-address base=0x… --allow-address base=0x…"
	f := addMerchantFlags(cmd)
	cmd.Flags().BoolVar(&f.noLogo, "no-logo", false, "remove the logo")
	cmd.Flags().BoolVar(&f.noDefaults, "no-default-addresses", false, "remove all default addresses")
	cmd.Flags().BoolVar(&f.noReturnHosts, "no-return-hosts", false, "remove the list of return hosts")
	cmd.Flags().BoolVar(&f.noEmbed, "no-embed-origins", false, "remove the list of origins that may show the checkout in a frame")
	cmd.Flags().BoolVar(&f.noReminders, "no-reminders", false, "remind of no invoices")
	cmd.MarkFlagsMutuallyExclusive("reminder-hours", "no-reminders")
	cmd.MarkFlagsMutuallyExclusive("return-host", "no-return-hosts")
	cmd.MarkFlagsMutuallyExclusive("embed-origin", "no-embed-origins")
	cmd.MarkFlagsMutuallyExclusive("logo", "no-logo")
	cmd.MarkFlagsMutuallyExclusive("default-address", "no-default-addresses")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		return f.run(cmd, env, at, ids[0], *asJSON, update)
	}
	return cmd
}

// run makes a change, stores or removes the logo if requested, and prints the merchant.
func (f *merchantFlags) run(cmd *cobra.Command, env environment, at *remote, id string, asJSON bool, change changeOfMerchant) error {
	c, err := f.change(cmd)
	if err != nil {
		return err
	}
	var logo []byte
	if f.logo != "" {
		if logo, err = config.ReadFile(f.logo); err != nil {
			return fmt.Errorf("read the logo: %w", err)
		}
	}
	changed, err := change.make(cmd.Context(), env, at, id, c, logo, f.noLogo)
	if err != nil {
		return noService(err)
	}
	return printMerchant(env, changed, asJSON)
}

func newMerchantShow(env environment) *cobra.Command {
	cmd, at, asJSON := merchantCommand("show", "", "show a merchant",
		"Shows a merchant, with the addresses that its invoices may settle to, and whether its\nwebhook endpoint works.")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		found, err := findMerchant(cmd.Context(), env, at, ids[0])
		if err != nil {
			return noService(err)
		}
		if *asJSON {
			return printMerchant(env, found, true)
		}
		endpoint, err := endpointOf(cmd.Context(), env, at, ids[0])
		if err != nil {
			return noService(err)
		}
		return printMerchant(env, found, false, endpointRows(endpoint)...)
	}
	return cmd
}

// endpointRows describes the health of a webhook endpoint.
func endpointRows(w apitypes.Webhook) (rows [][2]string) {
	health := healthWord(w.Health)
	if w.FailingSince > 0 {
		health = strings.TrimPrefix(health+", failing since "+timeOfDay(w.FailingSince), "failing, ")
	}
	rows = append(rows, [2]string{"webhook endpoint", health})
	if w.LastError != "" {
		rows = append(rows, [2]string{"last webhook error", timeOfDay(w.LastErrorAt) + ": " + printable(w.LastError)})
	}
	return rows
}

func newMerchantRelease(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "release ID ADDRESS", Short: "take a settlement address back from a merchant",
		Long: `Takes an address back from a merchant that holds it, on every chain. The merchant can
create no further invoices that settle to it, and no longer sees the address's
payments without an invoice. Its invoices that exist keep the address, and can
still be paid. To undo it, allow the address for the merchant again.`,
		Example: "  quittance merchant release acme 0x… --config quittance.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("merchant release needs the id of a merchant, and an address")
			}
			return nil
		},
	}
	at := adminFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		address, err := chain.ParseAddress(args[1])
		if err != nil {
			return usageError{fmt.Errorf("the address %q %w", args[1], err)}
		}
		if err := releaseAddress(cmd.Context(), env, at, args[0], address); err != nil {
			return noService(err)
		}
		_, err = fmt.Fprintf(env.stdout, "%s no longer holds %s. Its invoices that exist keep the address.\n", args[0], chain.Checksum(address))
		return err
	}
	return cmd
}

func newMerchantList(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list merchants",
		Long:  "Lists merchants in the order of their ids, those of the configuration too.",
		Args:  noArgs,
	}
	at := adminFlags(cmd)
	asJSON := jsonFlag(cmd, "write JSON, as the service's GET /api/merchants does")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		all, err := listMerchants(cmd.Context(), env, at)
		if err != nil {
			return noService(err)
		}
		if *asJSON {
			return env.writeJSON(apitypes.MerchantList{Merchants: all})
		}
		return printMerchants(env, all)
	}
	return cmd
}

func printMerchants(env environment, all []apitypes.Merchant) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(env.stdout, "There are no merchants.")
		return err
	}
	return writeTable(env.stdout, func(table io.Writer) {
		fmt.Fprintln(table, "ID\tSOURCE\tNAME\tALLOWED ADDRESSES")
		for _, m := range all {
			allowed := "any"
			if n := len(m.AllowedAddresses); n > 0 {
				allowed = fmt.Sprint(n)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.ID, m.Source, orDash(printable(m.Name)), allowed)
		}
	})
}

// printMerchant writes a merchant. As text, more rows follow.
func printMerchant(env environment, m apitypes.Merchant, asJSON bool, more ...[2]string) error {
	if asJSON {
		return env.writeJSON(apitypes.MerchantResponse{Merchant: m})
	}
	return writeTable(env.stdout, func(table io.Writer) {
		for _, row := range [][2]string{
			{"id", m.ID}, {"source", string(m.Source)}, {"name", printable(m.Name)}, {"color", m.Color}, {"support contact", printable(m.SupportContact)},
			{"statement", printable(m.Statement)}, {"tolerance", m.Tolerance}, {"collection", cmp.Or(string(m.Collection), string(invoice.Direct))},
			{"time zone", cmp.Or(m.Timezone, "UTC")},
		} {
			fmt.Fprintf(table, "%s\t%s\n", row[0], orDash(row[1]))
		}
		if m.Logo != nil {
			fmt.Fprintf(table, "logo\t%d × %d pixels\n", m.Logo.Width, m.Logo.Height)
		}
		printAddresses(table, m)
		for _, hours := range m.ReminderHours {
			fmt.Fprintf(table, "reminder\t%+d hours\n", hours)
		}
		for _, host := range m.ReturnHosts {
			fmt.Fprintf(table, "return host\t%s\n", host)
		}
		for _, origin := range m.EmbedOrigins {
			fmt.Fprintf(table, "embed origin\t%s\n", origin)
		}
		for _, row := range more {
			fmt.Fprintf(table, "%s\t%s\n", row[0], orDash(row[1]))
		}
	})
}

// printAddresses writes the addresses that a merchant's invoices may settle to, and those of a later time.
func printAddresses(table io.Writer, m apitypes.Merchant) {
	for _, key := range slices.Sorted(maps.Keys(m.DefaultAddresses)) {
		fmt.Fprintf(table, "default address\t%s=%s\n", key, m.DefaultAddresses[key])
	}
	if p := m.PendingDefaultAddresses; p != nil {
		for _, key := range slices.Sorted(maps.Keys(p.Addresses)) {
			fmt.Fprintf(table, "default from %s\t%s=%s\n", timeOfDay(p.EffectiveAt), key, p.Addresses[key])
		}
	}
	for _, a := range m.AllowedAddresses {
		fmt.Fprintf(table, "allowed address\t%s=%s\n", a.ChainKey, a.Address)
	}
	if p := m.PendingAllowedAddresses; p != nil {
		for _, a := range p.Addresses {
			fmt.Fprintf(table, "allowed from %s\t%s=%s\n", timeOfDay(p.EffectiveAt), a.ChainKey, a.Address)
		}
	}
}
