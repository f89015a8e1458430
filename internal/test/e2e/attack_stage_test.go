package e2e

import (
	"cmp"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/webhook"
)

// stage is quittance serve on a go-ethereum node. The test seals every block, so it knows
// what the service has indexed and what the result must be.
type stage struct {
	*world
	chain *devchain.Chain
	hook  *receiver
	child *child // the service

	payer, till *ecdsa.PrivateKey // the customer, who has tokens, and the merchant's settlement account
	attacker    *ecdsa.PrivateKey // has ether, and tokens once a test transfers some
	token       *contracts.TestUSDC
	config      string // path
	env         []string
	wantTypes   map[string][]string // expected event types, by invoice
}

// newStage starts the chain. serve starts the service.
func newStage(tb testing.TB) *stage {
	tb.Helper()
	c, err := devchain.Start(tb.Context(), devchain.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	s := &stage{
		world: newWorld(tb), chain: c, hook: newReceiver(tb), token: contracts.NewTestUSDC(),
		payer: c.Keys.Payer, till: c.Keys.Merchant, attacker: c.Keys.Deployer, wantTypes: make(map[string][]string),
	}
	s.http = withKey(s.http)
	s.hook.setSecret(shopSecret)
	s.env = []string{"ACME_SECRET=" + shopSecret, "OPERATOR_KEY=" + hexutil.Encode(crypto.FromECDSA(c.Keys.Operator))}
	return s
}

// serve starts the service with the test's USDC and more tokens, by currency.
func (s *stage) serve(more map[string]common.Address) {
	s.Helper()
	s.configure(more)
	s.restart()
}

// configure writes the configuration.
func (s *stage) configure(more map[string]common.Address) {
	s.Helper()
	tokens := []string{fmt.Sprintf(tokenEntry, "USDC", s.chain.Token)}
	for currency, token := range more {
		tokens = append(tokens, fmt.Sprintf(tokenEntry, currency, token))
	}
	dir := s.TempDir()
	s.config = filepath.Join(dir, "quittance.yaml")
	text := fmt.Sprintf(serveConfig, filepath.Join(dir, "pay.db"), s.hook.URL, devchain.ChainID,
		s.chain.WSURL()+", "+s.chain.RPCURL(), strings.Join(tokens, ", "), s.chain.Registry)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// restart starts the service, also after a kill.
func (s *stage) restart() {
	s.Helper()
	s.child = launchWith(s, s.env, "serve", "--config", s.config)
	s.info.Store(&dev.Info{
		BaseURL:  s.child.awaitURL(s),
		Merchant: dev.MerchantInfo{ID: "acme", Address: s.shop().Hex()},
		Chain: dev.ChainInfo{
			ChainKey: "testnet", ChainID: devchain.ChainID, RPCURL: s.chain.RPCURL(),
			Token: s.chain.Token.Hex(), Registry: s.chain.Registry.Hex(),
		},
	})
}

// deploy deploys a contract.
func (s *stage) deploy(code string, constructor ...byte) common.Address {
	s.Helper()
	hash, err := s.chain.Create(s.Context(), s.attacker, append(common.FromHex(code), constructor...))
	if err != nil {
		s.Fatal(err)
	}
	s.seal()
	return s.mined(hash, types.ReceiptStatusSuccessful).ContractAddress
}

// seal seals a block with the pending transactions.
func (s *stage) seal() {
	s.Helper()
	if err := s.chain.Seal(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// mined returns the receipt of a transaction, and fails the test unless it has the given status.
func (s *stage) mined(hash common.Hash, status uint64) *types.Receipt {
	s.Helper()
	receipt, err := s.chain.Mined(within(s, patience), hash)
	if err != nil {
		s.Fatal(err)
	}
	if receipt.Status != status {
		s.Fatalf("the transaction %s ended with status %d; want %d", hash, receipt.Status, status)
	}
	return receipt
}

// send sends a call, which the next block includes.
func (s *stage) send(from *ecdsa.PrivateKey, to common.Address, data []byte) common.Hash {
	s.Helper()
	hash, err := s.chain.SendWithGas(s.Context(), from, to, data, muchGas)
	if err != nil {
		s.Fatal(err)
	}
	return hash
}

// muchGas is enough for every call.
const muchGas = 3_000_000

// call seals a block with one call, which must succeed.
func (s *stage) call(from *ecdsa.PrivateKey, to common.Address, data []byte) common.Hash {
	s.Helper()
	hash := s.send(from, to, data)
	s.seal()
	s.mined(hash, types.ReceiptStatusSuccessful)
	return hash
}

// callReverts seals a block with one call, which must fail.
func (s *stage) callReverts(from *ecdsa.PrivateKey, to common.Address, data []byte) {
	s.Helper()
	hash := s.send(from, to, data)
	s.seal()
	s.mined(hash, types.ReceiptStatusFailed)
}

// pay transfers USDC; trailing is appended to the calldata.
func (s *stage) pay(from *ecdsa.PrivateKey, to common.Address, amount string, trailing ...byte) common.Hash {
	s.Helper()
	return s.call(from, s.chain.Token, append(s.token.PackTransfer(to, units(s, amount)), trailing...))
}

// approve approves a spender for any amount of an owner's USDC.
func (s *stage) approve(owner *ecdsa.PrivateKey, spender common.Address) {
	s.Helper()
	s.call(owner, s.chain.Token, s.token.PackApprove(spender, units(s, "1000000000000000")))
}

// invoice creates an invoice over an amount, payable to an address.
func (s *stage) invoice(amount string, to common.Address) apitypes.CreateInvoiceResponse {
	s.Helper()
	draft := s.draft(amount)
	draft.MerchantAddress = to.Hex()
	return s.ask(draft)
}

// ask creates an invoice, and expects its event.
func (s *stage) ask(draft apitypes.CreateInvoiceRequest) apitypes.CreateInvoiceResponse {
	s.Helper()
	made := s.create(draft)
	s.wantTypes[made.ID] = []string{webhook.InvoiceCreated}
	return made
}

// shop returns the merchant's settlement address.
func (s *stage) shop() common.Address { return devchain.Address(s.till) }

// customer returns the payer's address.
func (s *stage) customer() common.Address { return devchain.Address(s.payer) }

// id returns an invoice's commitment id.
func id(made apitypes.CreateInvoiceResponse) common.Hash {
	return common.HexToHash(made.OnChainInvoiceID)
}

// final seals blocks until all transactions are final, and waits until the service has
// indexed them.
func (s *stage) final() {
	s.Helper()
	for range finality {
		s.seal()
	}
	s.read()
}

// read waits until the service has indexed the chain, and confirmed the final blocks.
func (s *stage) read() {
	s.Helper()
	head, err := s.chain.Client().BlockNumber(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	var a answer
	if err := await(within(s, patience), func() bool {
		var h health
		a = s.do(http.MethodGet, "/readyz", "")
		if err := json.Unmarshal(a.body, &h); err != nil {
			s.Fatalf("/readyz: %v\n%s", err, a.body)
		}
		return len(h.Chains) == 1 && h.Chains[0].Backfill == nil && h.Chains[0].Indexed >= head && h.Chains[0].Confirmed+finality >= head
	}); err != nil {
		s.Fatalf("the service did not read up to block %d: %s", head, a.body)
	}
}

// listed is an expected payment.
type listed struct {
	tx       common.Hash
	from, to common.Address
	amount   string
	currency string
	invoice  string // empty for an unattributed payment
	status   apitypes.PaymentStatus
}

// payments returns all payments of the service in the order of their blocks.
func (s *stage) payments() []apitypes.Payment {
	s.Helper()
	var all []apitypes.Payment
	for p, err := range s.api().Payments(s.Context(), client.PaymentFilter{IncludePending: true, IncludeUnattributed: true, PageSize: 200}) {
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b apitypes.Payment) int { return cmp.Compare(a.BlockNumber, b.BlockNumber) })
	return all
}

// wantPayments compares all payments, in the order of their blocks.
func (s *stage) wantPayments(want ...listed) {
	s.Helper()
	if diff := gocmp.Diff(want, s.listed(), gocmp.AllowUnexported(listed{})); diff != "" {
		s.Errorf("payments (-want +got):\n%s", diff)
	}
}

func (s *stage) listed() (got []listed) {
	s.Helper()
	for _, p := range s.payments() {
		got = append(got, listed{
			common.HexToHash(p.TxHash), common.HexToAddress(p.From), common.HexToAddress(p.To), p.Amount, p.Currency, p.InvoiceID, p.Status,
		})
	}
	return got
}

// paid returns the expected final USDC payment of the customer to the shop.
func (s *stage) paid(tx common.Hash, amount string, to *apitypes.CreateInvoiceResponse) listed {
	p := listed{tx: tx, from: s.customer(), to: s.shop(), amount: amount, currency: "USDC", status: apitypes.PaymentConfirmed}
	if to != nil {
		p.invoice, p.to = to.ID, common.HexToAddress(to.Invoice.MerchantAddress)
	}
	return p
}

// invoiceState is the state of an invoice.
type invoiceState struct {
	status     apitypes.InvoiceStatus
	by         common.Hash // the transaction that paid it
	paid, back string
	exception  apitypes.InvoiceException
}

// untouched is the state of an unpaid invoice.
var untouched = invoiceState{status: apitypes.StatusOpen, paid: "0", back: "0"}

// want fails the test unless an invoice has the given state.
func (s *stage) want(made apitypes.CreateInvoiceResponse, want invoiceState) {
	s.Helper()
	inv, err := s.api().Invoice(s.Context(), made.ID)
	if err != nil {
		s.Fatal(err)
	}
	got := invoiceState{inv.Status, common.HexToHash(inv.SettledTxHash), inv.AmountPaid, inv.AmountRefunded, inv.Exception}
	if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(invoiceState{})); diff != "" {
		s.Errorf("the invoice %s (-want +got):\n%s", made.ID, diff)
	}
}

// expect adds events that the merchant must receive about an invoice.
func (s *stage) expect(made apitypes.CreateInvoiceResponse, types ...string) {
	s.wantTypes[made.ID] = append(s.wantTypes[made.ID], types...)
}

// wantEvents waits for the expected events, and fails the test if there are others. It creates an
// invoice first: after its event, no earlier event can still be missing.
func (s *stage) wantEvents() {
	s.Helper()
	s.ask(s.draft("987654321"))
	want := 0
	for _, types := range s.wantTypes {
		want += len(types)
	}
	_ = await(within(s, patience), func() bool { // missing events are reported below
		events, _ := s.hook.got()
		accepted := 0
		for _, e := range events {
			if e.accepted > 0 {
				accepted++
			}
		}
		return accepted >= want
	})
	s.hook.exactly(s.wantTypes)
}

// awaitStatus seals blocks until an invoice's commitment has a status in the registry.
func (s *stage) awaitStatus(made apitypes.CreateInvoiceResponse, want contracts.Status) {
	s.Helper()
	var got contracts.Status
	if err := await(within(s, patience), func() bool {
		s.seal()
		var err error
		if got, err = s.chain.StatusOf(s.Context(), id(made)); err != nil {
			s.Fatal(err)
		}
		return got == want
	}); err != nil {
		s.Fatalf("the commitment of %s is %s; want %s", made.ID, got, want)
	}
}

// contractTerms returns an invoice's terms in the registry's form.
func (s *stage) contractTerms(made apitypes.CreateInvoiceResponse) contracts.Terms {
	s.Helper()
	return chain.ContractTerms(s.terms(made.Invoice), made.ID)
}
