package main

import (
	"encoding/binary"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/checkout"
)

// TestVerifyDeposit verifies the deposit address of an invoice of a development world, and has a
// service give wrong answers about the same invoice.
func TestVerifyDeposit(t *testing.T) {
	t.Parallel()
	info := filepath.Join(t.TempDir(), "info.json")
	startDev(t, "--data", t.TempDir(), "--block-time", "50ms", "--info", info)
	world := readInfo(t, info)
	c := expect.Must(client.New(world.BaseURL))
	request := apitypes.CreateInvoiceRequest{
		MerchantID: world.Merchant.ID, MerchantAddress: world.Merchant.Address, Amount: "4900000", Currency: "USDC",
		ChainKey: "local", ExpiresAt: time.Now().Add(time.Hour).Unix(), Collection: apitypes.CollectionDeposit,
	}
	made, err := c.CreateInvoice(t.Context(), request)
	expect.OK(t, err)
	request.Collection = apitypes.CollectionDirect
	direct, err := c.CreateInvoice(t.Context(), request)
	expect.OK(t, err)
	want := contracts.DepositAddress(common.HexToAddress(world.Chain.DepositFactory), common.HexToAddress(world.Merchant.Address),
		common.HexToHash(made.OnChainInvoiceID)).Hex()
	page := world.BaseURL + made.CheckoutURL
	for _, args := range [][]string{
		{page}, {made.ID, "--url", world.BaseURL}, {page, "--rpc", world.Chain.RPCURL},
		{"--factory", world.Chain.DepositFactory, "--merchant", world.Merchant.Address, "--id", made.OnChainInvoiceID, "--rpc", world.Chain.RPCURL},
	} {
		code, got := answer(t, append([]string{"verify", "deposit", "--json"}, args...)...)
		if code != 0 || got["depositAddress"] != want || got["fault"] != nil {
			t.Errorf("%q: exit code %d: %v, want %s", args, code, got, want)
		}
	}
	known := func(factory string) []string {
		return []string{"--rpc", world.Chain.RPCURL, "--factory", factory, "--merchant", world.Merchant.Address, "--id", made.OnChainInvoiceID}
	}
	for fault, args := range map[string][]string{
		"has other code than this release deploys": known(world.Chain.Registry),
		"where its implementation of deposits":     known(forgeFactory(t, world)),
		"there is no contract":                     known(world.Merchant.Address),
		"the service says that the merchant's":     {page, "--merchant", world.Chain.Token},
		"has no deposit address":                   {world.BaseURL + direct.CheckoutURL},
		"the on-chain id of these terms is":        {page, "--id", "0x" + strings.Repeat("1", 64)},
	} {
		wantFault(t, fault, args...)
	}
	for fault, change := range map[string]func(*checkout.Terms){
		"the on-chain id of these terms is": func(t *checkout.Terms) { t.Amount = "1" },
		"serves chain id 1337, want 1":      func(t *checkout.Terms) { changeChain(t, 1) },
		"the terms of the service: token":   func(t *checkout.Terms) { t.Token = "" },
		"the service says that the invoice": func(t *checkout.Terms) { t.DepositAddress = world.Merchant.Address },
	} {
		lying := changedTerms(t, page, change)
		wantFault(t, fault, lying, "--rpc", world.Chain.RPCURL, "--merchant", world.Merchant.Address)
	}
}

// forgeFactory deploys the code of the deposit factory without its constructor, which would create the
// implementation, and returns the address. A forged constructor could create another one.
func forgeFactory(t *testing.T, world dev.Info) string {
	t.Helper()
	node, done, err := chain.Dial(world.Chain.RPCURL)
	expect.OK(t, err)
	defer done()
	code, err := node.CodeAt(t.Context(), common.HexToAddress(world.Chain.DepositFactory), nil)
	expect.OK(t, err)
	key := expect.Must(crypto.HexToECDSA(strings.TrimPrefix(world.Payer.PrivateKey, "0x")))
	returnsRest := binary.BigEndian.AppendUint16([]byte{0x61}, uint16(len(code)))           // PUSH2
	returnsRest = append(returnsRest, 0x80, 0x60, 0x0c, 0x60, 0x00, 0x39, 0x60, 0x00, 0xf3) // CODECOPY and RETURN
	opts := bind.NewKeyedTransactor(key, new(big.Int).SetUint64(world.Chain.ChainID))
	opts.Context = t.Context()
	address, tx, err := bind.DeployContract(opts, append(returnsRest, code...), node, nil)
	expect.OK(t, err)
	if receipt, err := bind.WaitMined(t.Context(), node, tx.Hash()); err != nil || receipt.Status != types.ReceiptStatusSuccessful {
		t.Fatalf("the forged factory was not deployed: %v", err)
	}
	return address.Hex()
}

// wantFault demands that verify deposit fails with an error that contains fault.
func wantFault(t *testing.T, fault string, args ...string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code := run(t.Context(), environment{stdout: &stdout, stderr: &stderr}, append([]string{"verify", "deposit"}, args...))
	if code != 1 || !strings.Contains(stderr.String(), fault) {
		t.Errorf("%q: exit code %d: %s%s; want the fault %q", args, code, &stdout, &stderr, fault)
	}
}

// changeChain moves an invoice to another chain, with the id that it has there.
func changeChain(terms *checkout.Terms, chainID uint64) {
	terms.ChainID, terms.DepositAddress = chainID, ""
	if id, err := terms.Commitment(); err == nil {
		terms.CommitmentID = id.String()
	}
}

// changedTerms serves the terms of a checkout page with a change, and returns the URL of its page.
func changedTerms(t *testing.T, page string, change func(*checkout.Terms)) string {
	t.Helper()
	terms, err := fetchTerms(t.Context(), environment{}, "", page)
	expect.OK(t, err)
	change(terms)
	text := expect.Must(json.Marshal(terms))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.Write(text) //nolint:errcheck // the client may hang up
	}))
	t.Cleanup(server.Close)
	return server.URL + "/checkout/" + terms.InvoiceID
}

// readInfo reads the output of quittance dev --info.
func readInfo(t *testing.T, path string) dev.Info {
	t.Helper()
	text := expect.Must(os.ReadFile(path))
	var info dev.Info
	expect.OK(t, json.Unmarshal(text, &info))
	return info
}
