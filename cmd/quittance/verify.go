package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout"
)

// maxTerms bounds the terms of an invoice that are read, in bytes.
const maxTerms = 64 << 10

func newVerify(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "verify COMMAND", GroupID: groupService,
		Short: "compute again what the service says",
		Long:  "Computes again what a service says, without trusting it.",
	}, newVerifyDeposit(env))
}

// depositFlags are the flags of verify deposit.
type depositFlags struct{ factory, merchant, id, rpc string }

func newVerifyDeposit(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deposit {INVOICE | --factory ADDR --merchant ADDR --id HASH} [--rpc URL]",
		Short: "compute a deposit address, and check its code",
		Long: `Computes the deposit address of an invoice from the factory, the merchant's
settlement address and the invoice's on-chain id. With an invoice, given by the URL of
its checkout page or by its id, the terms are read from the service, and the on-chain
id is computed from them. What is known from elsewhere can be given, too, and is
compared.

With --rpc it also asks a node of the chain whether the factory and what it deploys
have the code of this release. Then what is paid to the address can go to the merchant
alone. It fails if anything differs.`,
		Example: `  quittance verify deposit https://pay.example.com/checkout/inv_… --rpc https://your-node.example
  quittance verify deposit --factory 0x… --merchant 0x… --id 0x…`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("unexpected argument %q", args[1])
			}
			return nil
		},
	}
	var f depositFlags
	url := cmd.Flags().String("url", "", "`URL` of the service, if the invoice is given by its id (default: that of quittance login, else "+defaultURL+")")
	cmd.Flags().StringVar(&f.factory, "factory", "", "the deposit factory, `ADDR`")
	cmd.Flags().StringVar(&f.merchant, "merchant", "", "the merchant's settlement address, `ADDR`")
	cmd.Flags().StringVar(&f.id, "id", "", "the invoice's on-chain id, `HASH`")
	cmd.Flags().StringVar(&f.rpc, "rpc", "", "`URL` of a node of the chain, with which the code is checked")
	asJSON := jsonFlag(cmd, "write JSON: depositAddress and what it was computed from; with --rpc also chainId and deployed; fault if anything differs")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		report, err := depositReport{}, error(nil)
		if len(args) == 1 {
			report.terms, err = fetchTerms(cmd.Context(), env, *url, args[0])
		}
		if err == nil {
			err = report.parse(f)
		}
		if err != nil {
			return err
		}
		return runVerifyDeposit(cmd.Context(), env, report, f.rpc, *asJSON)
	}
	return cmd
}

// depositReport is the result of verify deposit.
type depositReport struct {
	terms *checkout.Terms // nil without an invoice

	factory, merchant invoice.Address
	id                invoice.Hash
	state             *chain.DepositState // nil without a node
}

// parse takes the flags, and the service's answer if a flag is missing.
func (r *depositReport) parse(f depositFlags) error {
	if r.terms != nil {
		f.factory = cmp.Or(f.factory, r.terms.DepositFactory)
		f.merchant = cmp.Or(f.merchant, r.terms.MerchantAddress)
		f.id = cmp.Or(f.id, r.terms.CommitmentID)
		if f.factory == "" {
			return fmt.Errorf("invoice %s has no deposit address: it is paid at the settlement address", printable(r.terms.InvoiceID))
		}
	}
	if f.rpc != "" {
		if err := config.CheckNodeURL(f.rpc); err != nil {
			return usageError{fmt.Errorf("--rpc %w", err)}
		}
	}
	for _, flag := range []struct {
		name, text string
		into       *invoice.Address
	}{{"--factory", f.factory, &r.factory}, {"--merchant", f.merchant, &r.merchant}} {
		if flag.text == "" {
			return usageError{fmt.Errorf("%s is missing; give an invoice, or --factory, --merchant and --id", flag.name)}
		}
		var err error
		if *flag.into, err = chain.ParseAddress(flag.text); err != nil {
			return usageError{fmt.Errorf("%s %w", flag.name, err)}
		}
	}
	var err error
	if r.id, err = invoice.ParseHash(f.id); err != nil {
		return usageError{fmt.Errorf("--id %w", err)}
	}
	return nil
}

// fetchTerms reads the terms of an invoice, given by the URL of its page or by its id.
func fetchTerms(ctx context.Context, env environment, service, of string) (*checkout.Terms, error) {
	page := of
	if !strings.Contains(of, "://") {
		saved, err := readProfile(env.profile)
		if err != nil {
			return nil, err
		}
		page = strings.TrimSuffix(cmp.Or(service, saved.URL, defaultURL), "/") + "/checkout/" + of
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(page, "/")+"/terms", nil)
	if err != nil {
		return nil, usageError{fmt.Errorf("%q is neither the URL of a checkout page nor an invoice, inv_…", of)}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, noService(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s; want the terms of an invoice", request.URL, response.Status)
	}
	terms := new(checkout.Terms)
	if err := json.NewDecoder(io.LimitReader(response.Body, maxTerms)).Decode(terms); err != nil {
		return nil, fmt.Errorf("read the terms at %s: %w", request.URL, err)
	}
	return terms, nil
}

func runVerifyDeposit(ctx context.Context, env environment, r depositReport, rpc string, asJSON bool) error {
	fault := r.compare()
	if fault == nil && rpc != "" {
		var chainID uint64
		if r.terms != nil {
			chainID = r.terms.ChainID
		}
		state, err := chain.InspectDeposit(ctx, rpc, chainID, r.factory, r.merchant, r.id)
		if err != nil && !errors.Is(err, chain.ErrMismatch) {
			return err
		}
		if fault = err; err == nil {
			r.state = &state
		}
	}
	if asJSON {
		return errors.Join(env.writeJSON(r.json(fault)), fault)
	}
	if fault != nil {
		return fault
	}
	return r.print(env)
}

// compare returns an error if the hash of the service's terms is not the on-chain id, or if the
// invoice is paid elsewhere.
func (r *depositReport) compare() error {
	if r.terms == nil {
		return nil
	}
	if said := r.terms.MerchantAddress; !strings.EqualFold(said, r.merchant.String()) {
		return fmt.Errorf("the service says that the merchant's address is %s, not %s", printable(said), chain.Checksum(r.merchant))
	}
	id, err := r.terms.Commitment()
	if err != nil {
		return fmt.Errorf("the terms of the service: %w", err)
	}
	if id != r.id {
		return fmt.Errorf("the on-chain id of these terms is %s, not %s", id, r.id)
	}
	if said, want := r.terms.DepositAddress, chain.Checksum(r.address()); said != "" && !strings.EqualFold(said, want) {
		return fmt.Errorf("the service says that the invoice is paid at %s; its deposit address is %s", printable(said), want)
	}
	return nil
}

func (r *depositReport) address() invoice.Address {
	return chain.Chain{DepositFactory: r.factory}.DepositAddress(r.merchant, r.id)
}

func (r *depositReport) json(fault error) any {
	out := struct {
		DepositAddress string `json:"depositAddress"`
		Factory        string `json:"factory"`
		Merchant       string `json:"merchantAddress"`
		ID             string `json:"onChainInvoiceId"`
		InvoiceID      string `json:"invoiceId,omitempty"`
		ChainID        uint64 `json:"chainId,omitempty"`
		Deployed       *bool  `json:"deployed,omitempty"`
		Fault          string `json:"fault,omitempty"`
	}{
		DepositAddress: chain.Checksum(r.address()), Factory: chain.Checksum(r.factory), Merchant: chain.Checksum(r.merchant), ID: r.id.String(),
	}
	if r.terms != nil {
		out.InvoiceID, out.ChainID = r.terms.InvoiceID, r.terms.ChainID
	}
	if r.state != nil {
		out.ChainID, out.Deployed = r.state.ChainID, &r.state.Deployed
	}
	if fault != nil {
		out.Fault = fault.Error()
	}
	return out
}

func (r *depositReport) print(env environment) error {
	code := "not checked; name a node of the chain with --rpc"
	if r.state != nil {
		code = "that of this release: what is paid there can go to the merchant alone"
		if !r.state.Deployed {
			code += "; not deployed yet, which a sweep does"
		}
	}
	rows := [][2]string{
		{"deposit address", chain.Checksum(r.address())}, {"factory", chain.Checksum(r.factory)},
		{"merchant", chain.Checksum(r.merchant)}, {"on-chain id", r.id.String()}, {"code", code},
	}
	if r.terms != nil {
		rows = append(rows, [2]string{"invoice", printable(r.terms.InvoiceID)})
	}
	return env.writeTable(func(table io.Writer) { printRows(table, rows) })
}
