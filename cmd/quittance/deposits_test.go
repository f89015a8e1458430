package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/internal/web/checkout"
)

// TestDepositsCallWithoutAService prints the call for given terms.
func TestDepositsCallWithoutAService(t *testing.T) {
	t.Parallel()
	const factory, merchant = "0x5FbDB2315678afecb367f032d93F642f64180aa3", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	id := "0x" + strings.Repeat("ab", 32)
	given := []string{"deposits", "call", "--factory", factory, "--merchant", merchant, "--id", id, "--chain-id", "8453", "--json"}
	execute := func(args ...string) (stdout, stderr string, code int) {
		var out, errs bytes.Buffer
		code = run(t.Context(), environment{stdout: &out, stderr: &errs}, args)
		return out.String(), errs.String(), code
	}
	out, errs, code := execute(append(slices.Clone(given), "--token", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")...)
	if code != 0 || !strings.Contains(out, `"to":"`+factory+`"`) || !strings.Contains(out, `"data":"0x`) || !strings.Contains(out, strings.Repeat("ab", 32)) ||
		!strings.Contains(out, strings.ToLower(merchant[2:])) || !strings.Contains(out, "833589fcd6edb6e08f4c7c32d4f71b54bda02913") || !strings.Contains(out, `"chainId":8453`) {
		t.Errorf("exit code %d:\n%s%s", code, out, errs)
	}
	for name, args := range map[string][]string{
		"no token":       given,
		"no terms":       {"deposits", "call"},
		"a token's name": append(slices.Clone(given), "--token", "USDC"),
		"no key":         append(slices.Clone(given), "--token", "coin", "--rpc", "http://127.0.0.1:1"),
		"not a hash":     {"deposits", "call", "--factory", factory, "--merchant", merchant, "--id", "0x1", "--token", "coin"},
	} {
		if out, _, code := execute(args...); code != 2 || out != "" {
			t.Errorf("%s: exit code %d, %s", name, code, out)
		}
	}
}

func TestTokenFlag(t *testing.T) {
	t.Parallel()
	base, _ := chain.Lookup("base")
	usdc, _ := base.Token(chain.USDC)
	for name, want := range map[string]invoice.Address{chain.USDC: usdc.Address, coinToken: {}, usdc.Address.String(): usdc.Address} {
		if got, err := tokenFlag(base, name); err != nil || *got != want {
			t.Errorf("%s is %v, %v; want %s", name, got, err, want)
		}
	}
	if got, err := tokenFlag(base, "DAI"); err == nil {
		t.Errorf("a currency that is not configured is %v", got)
	}
}

// depositWorld is a development world, and a node of its chain.
type depositWorld struct {
	t *testing.T
	dev.Info
	api  *client.Client
	node *ethclient.Client
}

func newDepositWorld(t *testing.T) *depositWorld {
	t.Helper()
	info := filepath.Join(t.TempDir(), "info.json")
	startDev(t, "--data", t.TempDir(), "--block-time", "50ms", "--info", info)
	w := &depositWorld{t: t, Info: readInfo(t, info)}
	var err error
	if w.api, err = client.New(w.BaseURL); err != nil {
		t.Fatal(err)
	}
	if w.node, err = ethclient.DialContext(t.Context(), w.Chain.RPCURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.node.Close)
	return w
}

// keyFile writes a key into a file.
func (w *depositWorld) keyFile(text string, mode os.FileMode) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "key.hex")
	expect.OK(w.t, os.WriteFile(path, []byte(text+"\n"), mode))
	return path
}

// payer returns the options of transactions from the payer's account.
func (w *depositWorld) payer() *bind.TransactOpts {
	w.t.Helper()
	key := expect.Must(crypto.HexToECDSA(strings.TrimPrefix(w.Payer.PrivateKey, "0x")))
	opts := bind.NewKeyedTransactor(key, new(big.Int).SetUint64(w.Chain.ChainID))
	opts.Context = w.t.Context()
	return opts
}

// send sends the network's coin, or calls a contract, from the payer's account.
func (w *depositWorld) send(to common.Address, coin *big.Int, data []byte) {
	w.t.Helper()
	opts := w.payer()
	opts.Value, opts.GasLimit = coin, 200_000
	tx, err := bind.Transact(bind.NewBoundContract(to, abi.ABI{}, w.node, w.node, w.node), opts, data)
	w.mined(tx, err)
}

// mined waits for a transaction that must succeed.
func (w *depositWorld) mined(tx *types.Transaction, err error) {
	w.t.Helper()
	expect.OK(w.t, err)
	if receipt, err := bind.WaitMined(w.t.Context(), w.node, tx.Hash()); err != nil || receipt.Status != types.ReceiptStatusSuccessful {
		w.t.Fatalf("%s: %v", tx.Hash(), err)
	}
}

// invoice creates an invoice with a deposit address.
func (w *depositWorld) invoice() apitypes.CreateInvoiceResponse {
	w.t.Helper()
	made, err := w.api.CreateInvoice(w.t.Context(), apitypes.CreateInvoiceRequest{
		MerchantID: w.Merchant.ID, MerchantAddress: w.Merchant.Address, Amount: "4900000", Currency: "USDC",
		ChainKey: "local", ExpiresAt: time.Now().Add(time.Hour).Unix(), Collection: apitypes.CollectionDeposit,
	})
	expect.OK(w.t, err)
	return made
}

// TestDepositsCallSends sweeps the network's coin and another token, which the service does not sweep,
// with a key that the service does not know.
func TestDepositsCallSends(t *testing.T) {
	t.Parallel()
	w := newDepositWorld(t)
	first, second := w.invoice(), w.invoice()
	at := common.HexToAddress(first.Invoice.DepositAddress)
	merchant := common.HexToAddress(w.Merchant.Address)
	key := w.keyFile(w.Payer.PrivateKey, 0o600)
	call := func(args ...string) (int, map[string]any) {
		t.Helper()
		return answer(t, append([]string{"deposits", "call", "--url", w.BaseURL, "--rpc", w.Chain.RPCURL, "--key-file", key, "--json"}, args...)...)
	}

	w.send(at, big.NewInt(7), nil)
	before, err := w.node.BalanceAt(t.Context(), merchant, nil)
	expect.OK(t, err)
	code, got := call(first.ID, second.ID, "--token", "coin")
	if code != 0 || got["swept"] != 1.0 || got["txHash"] == "" {
		t.Errorf("the coin: exit code %d: %v", code, got)
	}
	after, err := w.node.BalanceAt(t.Context(), merchant, nil)
	if err != nil || new(big.Int).Sub(after, before).Int64() != 7 {
		t.Errorf("the merchant has %s, before %s, %v", after, before, err)
	}
	if code, got := call(first.ID, "--token", "coin"); code != 0 || got["swept"] != 0.0 {
		t.Errorf("the coin again: exit code %d: %v", code, got)
	}
	if code, got := call(first.ID); code != 0 || got["swept"] != 0.0 {
		t.Errorf("an invoice that nobody paid: exit code %d: %v", code, got)
	}

	token := contracts.NewTestUSDC()
	other, tx, err := bind.DeployContract(w.payer(), common.FromHex(contracts.TestUSDCMetaData.Bin), w.node, token.PackConstructor(common.HexToAddress(w.Payer.Address)))
	w.mined(tx, err)
	w.send(other, nil, token.PackMint(at, big.NewInt(9)))
	if code, got := call(first.ID, "--token", other.Hex()); code != 0 || got["swept"] != 1.0 {
		t.Errorf("another token: exit code %d: %v", code, got)
	}
	text, err := w.node.CallContract(t.Context(), ethereum.CallMsg{To: &other, Data: token.PackBalanceOf(merchant)}, nil)
	if err != nil || new(big.Int).SetBytes(text).Int64() != 9 {
		t.Errorf("the merchant has %x of the other token, %v", text, err)
	}

	var stdout, stderr bytes.Buffer
	code = run(t.Context(), environment{stdout: &stdout, stderr: &stderr}, []string{"deposits", "call", first.ID, second.ID, "--url", w.BaseURL, "--rpc", w.Chain.RPCURL, "--key-file", key})
	if code != 0 || !strings.Contains(stdout.String(), "swept        nothing was there\n") {
		t.Errorf("in words: exit code %d:\n%s%s", code, &stdout, &stderr)
	}
	if got := sweptText(1, 2) + ", " + sweptText(2, 2); got != "1 of 2 deposits; nothing was at the others, 2 deposits" {
		t.Errorf("swept is said as %q", got)
	}
}

// TestDepositsCallRefuses uses keys that cannot be used, and keys of accounts that cannot pay.
func TestDepositsCallRefuses(t *testing.T) {
	t.Parallel()
	w := newDepositWorld(t)
	made := w.invoice()
	poor := expect.Must(crypto.GenerateKey())
	poorKey := hexutil.Encode(crypto.FromECDSA(poor))
	account := crypto.PubkeyToAddress(poor.PublicKey).Hex()
	for name, c := range map[string]struct {
		key  string
		rpc  string
		want []string
	}{
		"a missing file":         {key: filepath.Join(t.TempDir(), "none"), want: []string{"--key-file: ", "no such file"}},
		"readable by others":     {key: w.keyFile(w.Payer.PrivateKey, 0o640), want: []string{"--key-file: other users may use ", "mode 0640", "chmod 600"}},
		"not a key":              {key: w.keyFile("correct horse battery staple", 0o600), want: []string{"is not a private key; want 64 hex digits"}},
		"a part of a key":        {key: w.keyFile(w.Payer.PrivateKey[:60], 0o600), want: []string{"is not a private key; want 64 hex digits"}},
		"an account without gas": {key: w.keyFile(poorKey, 0o600), want: []string{"the account " + account, "has no coin for the gas"}},
		"another chain's node":   {key: w.keyFile(poorKey, 0o600), rpc: otherChain(t), want: []string{"the node serves the chain with id 1, and the invoices are on 1337"}},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), environment{stdout: &stdout, stderr: &stderr}, []string{
			"deposits", "call", made.ID, "--url", w.BaseURL, "--rpc", cmp.Or(c.rpc, w.Chain.RPCURL), "--key-file", c.key,
		})
		if code != 1 || stdout.Len() > 0 {
			t.Errorf("%s: exit code %d:\n%s", name, code, &stdout)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%s: %s; want %q", name, &stderr, want)
			}
		}
		for _, secret := range []string{w.Payer.PrivateKey[2:50], "battery", poorKey[2:]} {
			if strings.Contains(stderr.String(), secret) {
				t.Errorf("%s: the error shows the key: %s", name, &stderr)
			}
		}
	}
}

// otherChain serves a node of a chain with id 1.
func otherChain(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct{ ID json.RawMessage }
		expect.NoError(t, json.NewDecoder(r.Body).Decode(&call))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"0x1"}`, call.ID)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestDepositsInCall names as many invoices as a call takes, and one more.
func TestDepositsInCall(t *testing.T) {
	terms := checkout.Terms{
		ChainID: 8453, CommitmentID: "0x" + strings.Repeat("ab", 32), DepositFactory: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
		MerchantAddress: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", Token: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		expect.NoError(t, json.NewEncoder(w).Encode(terms))
	}))
	t.Cleanup(server.Close)
	args := append([]string{"deposits", "call", "--url", server.URL, "--json"}, slices.Repeat([]string{"inv_1"}, maxDepositsInCall)...)
	code, got := answer(t, args...)
	// A selector, the offset of the list, its length, and three words for each deposit.
	if data, _ := got["data"].(string); code != 0 || len(data) != 2+2*(4+2*32+maxDepositsInCall*3*32) {
		t.Errorf("exit code %d, %d characters of data", code, len(data))
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), environment{stdout: &stdout, stderr: &stderr}, append(args, "inv_1")); code != 2 || !strings.Contains(stderr.String(), "there are 151 invoices; want at most 150") {
		t.Errorf("one more: exit code %d: %s", code, &stderr)
	}
}

// TestDepositLimitsAreDocumented compares the row of the commands in the table of limits with the constants.
func TestDepositLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	text := expect.Must(os.ReadFile(testdeps.Repo("docs/operations.md")))
	want := fmt.Sprintf("| `quittance deposits` | `call` takes %d invoices; `list` shows %d deposits |", maxDepositsInCall, maxListedDeposits)
	if !strings.Contains(strings.ReplaceAll(string(text), ",", ""), want) {
		t.Errorf("docs/operations.md lacks %q", want)
	}
}

// TestDepositsListIsBounded lists as many deposits as a list has, and one more.
func TestDepositsListIsBounded(t *testing.T) {
	folder := t.TempDir()
	url := "sqlite:" + folder + "/quittance.db"
	s := dbtest.Open(t, url)
	conn := dbtest.SQL(t, url)
	queue := func(from, to int) {
		t.Helper()
		many := fmt.Sprintf("WITH RECURSIVE many (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM many WHERE i < %d)", from, to)
		for _, statement := range []string{
			`INSERT INTO deposits (chain_key, address, invoice_id, merchant_id) ` + many + ` SELECT 'base', printf('0x%040x', i), 'inv_' || i, 'a' FROM many`,
			`INSERT INTO queued_sweeps (id, chain_key, address, token, merchant_id, amount, by_policy, queued_at)
				SELECT 'base/' || address, 'base', address, '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', 'a', '5', 1, 1 FROM deposits WHERE address NOT IN (SELECT address FROM queued_sweeps)`,
		} {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%v\n%s", err, statement)
			}
		}
	}
	invoices := make([]invoice.Invoice, maxListedDeposits+1)
	for i := range invoices {
		invoices[i] = invoice.Invoice{
			ID: fmt.Sprint("inv_", i+1), CommitmentID: sha256.Sum256(fmt.Append(nil, i)), MerchantID: "a", ChainKey: "base", Currency: "USDC",
			Status: invoice.Open, CreatedAt: invoice.Unix(1), Collection: invoice.Direct,
			Terms: invoice.Terms{Merchant: invoice.Address{1}, Token: invoice.Address{2}, Amount: invoice.NewAmount(5), ExpiresAt: invoice.Unix(2)},
		}
	}
	err := s.Update(t.Context(), func(tx *db.Tx) error {
		if err := access.InsertSettlementAddresses(t.Context(), tx, []access.SettlementAddress{{ChainKey: "base", Address: invoice.Address{1}, MerchantID: "a"}}, invoice.Unix(1)); err != nil {
			return err
		}
		_, err := ledger.InsertInvoices(t.Context(), tx, invoices)
		return err
	})
	expect.OK(t, err)
	file := configure(t, "127.0.0.1:1", folder)
	for _, c := range []struct {
		from, to  int
		truncated any
		last      string
	}{
		{1, maxListedDeposits, nil, ""},
		{maxListedDeposits + 1, maxListedDeposits + 1, true, "\nThere are more; these are the first 10000.\n"},
	} {
		queue(c.from, c.to)
		code, got := answer(t, "deposits", "list", "--config", file, "--json")
		if all, _ := got["deposits"].([]any); code != 0 || len(all) != maxListedDeposits || got["truncated"] != c.truncated {
			t.Errorf("exit code %d: %d deposits, truncated %v", code, len(all), got["truncated"])
		}
		var stdout, stderr bytes.Buffer
		code = run(t.Context(), environment{stdout: &stdout, stderr: &stderr}, []string{"deposits", "list", "--config", file})
		if code != 0 || strings.Count(stdout.String(), "0.000005 USDC") != maxListedDeposits || !strings.HasSuffix(stdout.String(), c.last) || strings.Contains(stdout.String(), "There are more") != (c.last != "") {
			t.Errorf("exit code %d: %.300s … %s", code, stdout.String(), &stderr)
		}
	}
}

// TestDepositsSweep requests sweeps from the service, and lists the deposits to be swept.
func TestDepositsSweep(t *testing.T) {
	folder := t.TempDir()
	url := "sqlite:" + folder + "/quittance.db"
	s := dbtest.Open(t, url)
	deposited := func(n byte, merchant string) invoice.Invoice {
		return invoice.Invoice{
			ID: fmt.Sprint("inv_", n), CommitmentID: invoice.Hash{n}, MerchantID: merchant, ChainKey: "base", Currency: "USDC",
			Status: invoice.Open, CreatedAt: invoice.Unix(1), Collection: invoice.Deposit, DepositFactory: invoice.Address{0xfa}, DepositAddress: invoice.Address{0xda, n},
			Terms: invoice.Terms{Merchant: invoice.Address{1}, Token: chain.MustAddress("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"), Amount: invoice.NewAmount(4_900_000), ExpiresAt: invoice.Unix(2)},
		}
	}
	first, second := deposited(1, "a"), deposited(2, "b")
	paid := func(inv invoice.Invoice) invoice.Payment {
		p := invoice.Payment{DepositOf: inv.ID}
		p.Transfer = invoice.Transfer{ChainKey: "base", Token: inv.Token, Currency: "USDC", To: inv.DepositAddress, Amount: inv.Amount, Position: invoice.Position{BlockNumber: 5, BlockTime: invoice.Unix(5)}}
		return p
	}
	err := s.Update(t.Context(), func(tx *db.Tx) error {
		var settles []access.SettlementAddress
		for _, merchant := range []string{"a", "b"} {
			settles = append(settles, access.SettlementAddress{ChainKey: "base", Address: invoice.Address{1}, MerchantID: merchant})
		}
		if err := access.InsertSettlementAddresses(t.Context(), tx, settles, invoice.Unix(1)); err != nil {
			return err
		}
		if _, err := ledger.InsertInvoices(t.Context(), tx, []invoice.Invoice{first, second}); err != nil {
			return err
		}
		return ledger.AddToDeposits(t.Context(), tx, []invoice.Payment{paid(first), paid(second)}, nil)
	})
	expect.OK(t, err)
	file := configure(t, "127.0.0.1:1", folder)
	var refused bytes.Buffer
	if code := run(t.Context(), environment{stdout: &refused, stderr: &refused}, []string{"deposits", "sweep", "--config", file}); code != 1 || !strings.Contains(refused.String(), "chain base has no operator key") {
		t.Errorf("without an operator key: exit code %d: %s", code, &refused)
	}
	withKey(t, file)
	states := func() string {
		t.Helper()
		_, got := answer(t, "deposits", "list", "--config", file, "--json")
		var all []string
		for _, d := range got["deposits"].([]any) {
			row := d.(map[string]any)
			currency, _ := row["currency"].(string)
			all = append(all, fmt.Sprintf("%s %s %s %s", row["invoiceId"], row["amount"], currency, row["state"]))
		}
		return strings.Join(all, ", ")
	}
	if got := states(); got != "inv_1 4900000 USDC queued, inv_2 4900000 USDC queued" {
		t.Errorf("at first: %s", got)
	}
	for _, c := range []struct {
		args []string
		n    float64
		want string
	}{
		{[]string{"--merchant", "nobody"}, 0, "inv_1 4900000 USDC queued, inv_2 4900000 USDC queued"},
		{[]string{"--merchant", "b"}, 1, "inv_1 4900000 USDC queued, inv_2 4900000 USDC requested"},
		{[]string{"--invoice", first.ID, "--token", "coin"}, 1, "inv_1 0  requested, inv_1 4900000 USDC queued, inv_2 4900000 USDC requested"},
		{nil, 2, "inv_1 0  requested, inv_1 4900000 USDC requested, inv_2 4900000 USDC requested"},
		{[]string{"--token", "0x00000000000000000000000000000000000000aa"}, 0, "inv_1 0  requested, inv_1 4900000 USDC requested, inv_2 4900000 USDC requested"},
	} {
		code, got := answer(t, append([]string{"deposits", "sweep", "--config", file, "--json"}, c.args...)...)
		if code != 0 || got["deposits"] != c.n || got["chainKey"] != "base" {
			t.Errorf("%q: exit code %d: %v, want %v", c.args, code, got, c.n)
		}
		if got := states(); got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), environment{stdout: &stdout, stderr: &stderr}, []string{"deposits", "sweep", "--config", file, "--token", "DAI"}); code != 2 || !strings.Contains(stderr.String(), `--token is "DAI"`) {
		t.Errorf("an unknown token: exit code %d: %s", code, &stderr)
	}
	entries, err := access.NewReader(s).AuditEntries(t.Context(), access.AuditFilter{Action: "deposit.sweep", Limit: 10})
	if err != nil || len(entries) != 5 || !strings.HasPrefix(entries[0].Actor, "cli:") {
		t.Errorf("the audit log has %+v, %v", entries, err)
	}
}

// withKey adds a deposit factory and an operator key to the chain of a configuration.
func withKey(t *testing.T, file string) {
	t.Helper()
	t.Setenv("OPERATOR", strings.Repeat("1", 64))
	text := expect.Must(os.ReadFile(file))
	text = bytes.Replace(text, []byte(`"chainKey": "base",`), []byte(`"chainKey": "base", "depositFactory": "0x5FbDB2315678afecb367f032d93F642f64180aa3", "operatorKeyEnv": "OPERATOR",`), 1)
	expect.OK(t, os.WriteFile(file, text, 0o600))
}
