package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/cobra"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/invoice"
)

// maxDepositsInCall bounds the deposits of one call: its gas stays below the 16.7 million
// that a transaction may take.
const maxDepositsInCall = 150

// depositCall is a call of a deposit factory, in the JSON of deposits call.
type depositCall struct {
	To      string          `json:"to"`
	Data    string          `json:"data"`
	Value   string          `json:"value"`
	ChainID uint64          `json:"chainId,omitempty"`
	Safe    json.RawMessage `json:"safe,omitempty"`   // file for the Transaction Builder of Safe
	TxHash  string          `json:"txHash,omitempty"` // with --key-file
	Swept   *int            `json:"swept,omitempty"`  // with --key-file: how many of the deposits held a balance
}

// callFlags are the flags of deposits call.
type callFlags struct {
	deposit                   depositFlags
	url, token, safe, keyFile string
	chainID                   uint64
	asJSON                    bool
}

func newDepositsCall(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "call {INVOICE… | --factory ADDR --merchant ADDR --id HASH} [--rpc URL --key-file FILE]",
		Short: "print the call that sweeps deposits, or send it",
		Long: fmt.Sprintf(`Prints the call of the deposit factory that sends what is at deposit addresses to the
merchant. Anybody may make it, with any wallet; whoever does pays for the gas. The terms
are read from the service or, if that is gone, given with --factory, --merchant and --id.
Up to %d deposits of one chain are swept by a call.

With --rpc and --key-file the command signs the transaction with a key of your own, sends
it, and waits until it is mined.`, maxDepositsInCall),
		Example: `  quittance deposits call inv_… inv_… --safe sweep.json
  quittance deposits call --factory 0x… --merchant 0x… --id 0x… --token 0x… --rpc https://your-node.example --key-file key.hex`,
	}
	var f callFlags
	cmd.Flags().StringVar(&f.url, "url", "", "`URL` of the service, if invoices are given by their ids (default: that of quittance login, else "+defaultURL+")")
	cmd.Flags().StringVar(&f.deposit.factory, "factory", "", "the deposit factory, `ADDR`")
	cmd.Flags().StringVar(&f.deposit.merchant, "merchant", "", "the merchant's settlement address, `ADDR`")
	cmd.Flags().StringVar(&f.deposit.id, "id", "", "the invoice's on-chain id, `HASH`")
	cmd.Flags().StringVar(&f.token, "token", "", "`ADDR` of the token, or \"coin\" (default: that of the invoice)")
	cmd.Flags().Uint64Var(&f.chainID, "chain-id", 0, "`ID` of the chain, for --safe (default: the service's or the node's)")
	cmd.Flags().StringVar(&f.deposit.rpc, "rpc", "", "`URL` of a node of the chain, to which the transaction is sent")
	cmd.Flags().StringVar(&f.keyFile, "key-file", "", "`FILE` with the private key, 64 hex digits, of the account that pays for the gas")
	cobra.CheckErr(cmd.MarkFlagFilename("key-file"))
	cmd.MarkFlagsRequiredTogether("rpc", "key-file")
	safe := safeFlag(cmd)
	asJSON := jsonFlag(cmd, "write JSON: to, data, value, chainId and safe; txHash and swept with --key-file")
	cmd.RunE = func(cmd *cobra.Command, invoices []string) error {
		f.safe, f.asJSON = *safe, *asJSON
		return runDepositsCall(cmd.Context(), env, f, invoices)
	}
	return cmd
}

func runDepositsCall(ctx context.Context, env environment, f callFlags, invoices []string) error {
	if len(invoices) > maxDepositsInCall {
		return usageError{fmt.Errorf("there are %d invoices; want at most %d", len(invoices), maxDepositsInCall)}
	}
	deposits, tokens, chainID, err := depositTerms(ctx, env, f.url, f.deposit, invoices)
	if err != nil {
		return err
	}
	token, err := tokenFlag(chain.Chain{}, f.token)
	if err != nil {
		return usageError{err}
	}
	sweeps := make([]contracts.Sweep, len(deposits))
	for i, d := range deposits {
		if token != nil {
			tokens[i] = *token
		} else if d.terms == nil {
			return usageError{errors.New("--token is missing; want the address of the token, or \"coin\"")}
		}
		sweeps[i] = contracts.Sweep{Merchant: common.Address(d.merchant), Id: d.id, Token: common.Address(tokens[i])}
	}
	call, err := newDepositCall(deposits[0].factory, deposits[0].merchant, cmp.Or(f.chainID, chainID), chain.PackSweeps(sweeps))
	if err != nil {
		return err
	}
	if f.keyFile != "" {
		sent, err := sendSweep(ctx, f, deposits[0].factory, call.ChainID, sweeps)
		if err != nil {
			return err
		}
		call.TxHash, call.Swept = sent.TxHash.String(), &sent.Swept
	}
	return printDepositCall(env, f, call, len(sweeps))
}

func newDepositCall(factory, from invoice.Address, chainID uint64, data []byte) (c depositCall, err error) {
	c = depositCall{To: chain.Checksum(factory), Data: "0x" + hex.EncodeToString(data), Value: "0", ChainID: chainID}
	if chainID != 0 {
		c.Safe, err = chain.SafeBatch(chainID, time.Now(), "Sweep deposits", "Sends what is at deposit addresses to the merchant", from, factory, c.Data)
	}
	return c, err
}

// sendSweep signs, sends and awaits the transaction.
func sendSweep(ctx context.Context, f callFlags, factory invoice.Address, chainID uint64, sweeps []contracts.Sweep) (chain.SentSweeps, error) {
	if err := config.CheckNodeURL(f.deposit.rpc); err != nil {
		return chain.SentSweeps{}, usageError{fmt.Errorf("--rpc %w", err)}
	}
	key, err := readKeyFile(f.keyFile)
	if err != nil {
		return chain.SentSweeps{}, err
	}
	return chain.SendSweeps(ctx, chain.SweepTx{RPC: f.deposit.rpc, Key: key, ChainID: chainID, Factory: factory, Sweeps: sweeps})
}

// readKeyFile reads a private key from a file that no other user may read or write.
func readKeyFile(path string) (*ecdsa.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("--key-file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("--key-file: other users may use %s, which has mode %#o: run chmod 600 on it", path, mode)
	}
	text, err := config.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--key-file: %w", err)
	}
	key, err := config.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("--key-file: %s %w", path, err)
	}
	return key, nil
}

func printDepositCall(env environment, f callFlags, c depositCall, deposits int) error {
	if f.safe != "" {
		if c.Safe == nil {
			return usageError{errors.New("--safe needs the chain: give --chain-id")}
		}
		if err := writeNewFile(f.safe, append(bytes.Clone(c.Safe), '\n')); err != nil {
			return fmt.Errorf("--safe: %w", err)
		}
	}
	if f.asJSON {
		return env.writeJSON(c)
	}
	rows := [][2]string{{"to contract", c.To}, {"value", c.Value}, {"data", c.Data}, {"transaction", c.TxHash}}
	if c.Swept != nil {
		rows = append(rows, [2]string{"swept", sweptText(*c.Swept, deposits)})
	}
	if c.ChainID != 0 {
		rows = append([][2]string{{"chain id", fmt.Sprint(c.ChainID)}}, rows...)
	}
	// Not cut, so that the call can be copied.
	return writeTable(env.stdout, func(table io.Writer) { printRows(table, rows) })
}

// sweptText describes how many of the deposits of a call held a balance.
func sweptText(swept, deposits int) string {
	switch {
	case swept == 0:
		return "nothing was there"
	case swept < deposits:
		return fmt.Sprintf("%d of %d deposits; nothing was at the others", swept, deposits)
	}
	return count(swept, "deposit")
}
