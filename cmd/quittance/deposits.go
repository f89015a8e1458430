package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// maxListedDeposits bounds the deposits that deposits list prints.
const maxListedDeposits = 10_000

// coinToken names the network's coin.
const coinToken = "coin"

func newDeposits(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "deposits COMMAND", Aliases: []string{"deposit"}, GroupID: groupService,
		Short: "list deposits that are to be swept, and sweep them",
		Long: `Sends what is at deposit addresses to the merchants. An operator has the service do so;
anybody else, such as a merchant whose operator is gone, makes the call himself.`,
	}, newDepositsList(env), newDepositsSweep(env), newDepositsCall(env))
}

// queuedDeposit is a deposit in the JSON of deposits list.
type queuedDeposit struct {
	InvoiceID   string `json:"invoiceId"`
	MerchantID  string `json:"merchantId"`
	ChainKey    string `json:"chainKey"`
	Address     string `json:"depositAddress"`
	Token       string `json:"token"`
	Currency    string `json:"currency,omitempty"` // absent if the token is not configured
	Amount      string `json:"amount"`             // minor units; 0 if no payment of the token is recorded
	Since       int64  `json:"since"`              // Unix seconds
	State       string `json:"state"`              // queued, requested, in_flight or failing
	RetryAt     int64  `json:"retryAt,omitempty"`  // Unix seconds: when a failing sweep is retried
	Failures    int    `json:"failures,omitempty"`
	Settlement  string `json:"merchantAddress"`
	Commitment  string `json:"onChainInvoiceId"`
	FactoryAddr string `json:"depositFactory"`
}

func newDepositsList(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list --config FILE",
		Short: "list the deposits that are to be swept",
		Long: fmt.Sprintf(`Lists the deposit addresses that hold confirmed payments, from the service's database,
up to %d of a chain. A deposit leaves the list when its sweep is final.`, maxListedDeposits),
		Args: noArgs,
	}
	o := operatedFlags(cmd)
	merchant := cmd.Flags().String("merchant", "", "only those of the merchant with this `ID`")
	asJSON := jsonFlag(cmd, "write JSON: deposits; truncated if there are more")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.load(); err != nil {
			return err
		}
		queued, err := admin.Read(cmd.Context(), o.Database, func(store *db.DB) ([]ledger.QueuedSweep, error) {
			return ledger.QueuedSweeps(cmd.Context(), store, o.chain.Key, *merchant, maxListedDeposits+1)
		})
		if err != nil {
			return err
		}
		truncated := len(queued) > maxListedDeposits
		queued = queued[:min(len(queued), maxListedDeposits)]
		deposits := make([]queuedDeposit, len(queued))
		for i, s := range queued {
			deposits[i] = depositOf(o.chain, s)
		}
		if *asJSON {
			return env.writeJSON(struct {
				Deposits  []queuedDeposit `json:"deposits"`
				Truncated bool            `json:"truncated,omitempty"`
			}{deposits, truncated})
		}
		if err := env.printDeposits(o.chain, queued, deposits); err != nil || !truncated {
			return err
		}
		_, err = fmt.Fprintf(env.stdout, "There are more; these are the first %d.\n", maxListedDeposits)
		return err
	}
	return cmd
}

func depositOf(c chain.Chain, s ledger.QueuedSweep) queuedDeposit {
	d := queuedDeposit{
		InvoiceID: s.InvoiceID, MerchantID: s.MerchantID, ChainKey: s.ChainKey, Address: chain.Checksum(s.Address), Token: chain.Checksum(s.Token),
		Amount: s.Amount.String(), Since: s.QueuedAt.Unix(), State: "queued", Failures: s.Failures,
		Settlement: chain.Checksum(s.Merchant), Commitment: s.CommitmentID.String(), FactoryAddr: chain.Checksum(s.Factory),
	}
	if t, ok := c.TokenAt(s.Token); ok {
		d.Currency = t.Currency
	}
	switch {
	case s.TxID != "":
		d.State = "in_flight"
	case !s.RetryAt.IsZero():
		d.State, d.RetryAt = "failing", s.RetryAt.Unix()
	case !s.RequestedAt.IsZero():
		d.State = "requested"
	}
	return d
}

// printDeposits prints deposits as a table.
func (env environment) printDeposits(c chain.Chain, queued []ledger.QueuedSweep, deposits []queuedDeposit) error {
	if len(deposits) == 0 {
		_, err := fmt.Fprintf(env.stdout, "No deposit on %s is to be swept.\n", c.Key)
		return err
	}
	return env.writeTable(func(table io.Writer) {
		fmt.Fprintln(table, "INVOICE\tMERCHANT\tADDRESS\tAMOUNT\tSINCE\tSTATE")
		for i, d := range deposits {
			amount := "unknown"
			if t, ok := c.TokenAt(queued[i].Token); ok && !queued[i].Amount.IsZero() {
				amount = queued[i].Amount.Major(t.Decimals) + " " + t.Currency
			}
			state := strings.ReplaceAll(d.State, "_", " ")
			if d.RetryAt != 0 {
				state += ", again at " + env.localTime(d.RetryAt)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", d.InvoiceID, d.MerchantID, d.Address, amount, env.localTime(d.Since), state)
		}
	})
}

func newDepositsSweep(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sweep --config FILE",
		Short: "have the service sweep deposits now",
		Long: `Has the service sweep the deposits of a chain now, whatever the chain's policy says: all
that hold a confirmed payment, or those of --merchant or --invoice. A running service
begins within seconds. Its limits of spending apply.

Without --token the tokens of the invoices are swept. Another token that was paid, and
the network's coin, are swept only by naming them with --token; with --invoice also if
the service has recorded nothing of it.`,
		Example: `  quittance deposits sweep --config quittance.yaml --merchant cafe
  quittance deposits sweep --config quittance.yaml --invoice inv_… --token coin`,
		Args: noArgs,
	}
	o := operatedFlags(cmd)
	var r ledger.SweepRequest
	cmd.Flags().StringVar(&r.MerchantID, "merchant", "", "only those of the merchant with this `ID`")
	cmd.Flags().StringVar(&r.InvoiceID, "invoice", "", "only that of the invoice with this `ID`")
	token := cmd.Flags().String("token", "", "a currency, the `ADDR` of a token, or \"coin\" (default: the tokens of the invoices)")
	asJSON := jsonFlag(cmd, "write JSON: chainKey, and deposits, how many are swept")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.load(); err != nil {
			return err
		}
		if !o.sends {
			return fmt.Errorf("chain %s has no operator key, so the service cannot send sweeps: set operatorKeyFile or operatorKeyEnv of the chain, or make the call yourself with quittance deposits call", o.chain.Key)
		}
		var err error
		if r.Token, err = tokenFlag(o.chain, *token); err != nil {
			return usageError{err}
		}
		r.ChainKey = o.chain.Key
		n, err := admin.InLedger(cmd.Context(), o.Config, func(l *ledger.Service) (int64, error) {
			return l.RequestSweeps(asCommand(cmd.Context()), r)
		})
		if err != nil {
			return err
		}
		if *asJSON {
			return env.writeJSON(struct {
				ChainKey string `json:"chainKey"`
				Deposits int64  `json:"deposits"`
			}{r.ChainKey, n})
		}
		if n == 0 {
			_, err = fmt.Fprintf(env.stdout, "No deposit on %s is to be swept.\n", r.ChainKey)
			return err
		}
		_, err = fmt.Fprintf(env.stdout, `The service sweeps %s on %s. Watch it with

  quittance deposits list --config %s --chain %s
`, count(int(n), "deposit"), r.ChainKey, *o.path, r.ChainKey)
		return err
	}
	return cmd
}

// tokenFlag returns the token that a flag names, or nil for an empty one.
func tokenFlag(c chain.Chain, name string) (*invoice.Address, error) {
	if name == "" {
		return nil, nil
	}
	if name == coinToken {
		return new(invoice.Address), nil
	}
	if t, ok := c.Token(name); ok {
		return &t.Address, nil
	}
	a, err := chain.ParseAddress(name)
	if err != nil {
		return nil, fmt.Errorf("--token is %q; want a currency of the chain, the address of a token, or \"coin\"", name)
	}
	return &a, nil
}

// errNoDeposit means that no deposit was named.
var errNoDeposit = errors.New("want invoices, or --factory, --merchant and --id")

// depositTerms returns the terms from which the deposits' addresses derive: of invoices, or from
// flags.
func depositTerms(ctx context.Context, env environment, service string, f depositFlags, invoices []string) (all []depositReport, tokens []invoice.Address, chainID uint64, err error) {
	if len(invoices) == 0 {
		var r depositReport
		if f.factory == "" && f.merchant == "" && f.id == "" {
			return nil, nil, 0, usageError{errNoDeposit}
		}
		if err := r.parse(f); err != nil {
			return nil, nil, 0, err
		}
		return []depositReport{r}, make([]invoice.Address, 1), 0, nil
	}
	for _, id := range invoices {
		terms, err := fetchTerms(ctx, env, service, id)
		if err != nil {
			return nil, nil, 0, err
		}
		r := depositReport{terms: terms}
		if err := r.parse(f); err != nil {
			return nil, nil, 0, err
		}
		token, err := chain.ParseAddress(terms.Token)
		if err != nil {
			return nil, nil, 0, err
		}
		if len(all) > 0 && (r.factory != all[0].factory || terms.ChainID != chainID) {
			return nil, nil, 0, usageError{fmt.Errorf("%s is on another chain or has another factory than the invoices before it; sweep it by a call of its own", id)}
		}
		all, tokens, chainID = append(all, r), append(tokens, token), terms.ChainID
	}
	return all, tokens, chainID, nil
}
