package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

// Secrets of a service, and the environment variables that hold them.
const (
	shopID         = "shop"
	shopSecret     = "whsec_of_the_shop"
	providerSecret = "psec_of_the_provider"
	providerEnv    = "E2E_PROVIDER_SECRET"
	operatorEnv    = "E2E_OPERATOR_KEY"
	deployerEnv    = "E2E_DEPLOYER_KEY"
)

// finality is the number of blocks after which a payment is final.
const finality = 2

// service is quittance serve with a database, anvil with the token and the registry, and a
// merchant who receives events. It has any number of replicas.
type service struct {
	testing.TB
	chain                     *anviltest.Anvil
	admin, till, payer, relay anviltest.Account // admin operates the registry, till is the merchant's
	token, registry           string
	merchant                  *receiver
	http                      *http.Client // checks every response against openapi.yaml
	config                    string       // path
	env                       []string
	patience                  time.Duration // bounds each wait
}

// replica is a run of quittance serve.
type replica struct {
	*child
	url string
}

// newService sets up a service on a database, and a chain with a block a second.
func newService(tb testing.TB, database string) *service {
	tb.Helper()
	a := anviltest.Start(tb, anviltest.Options{BlockTime: time.Second})
	s := &service{
		TB: tb, chain: a, admin: a.Accounts[0], till: a.Accounts[1], payer: a.Accounts[2], relay: a.Accounts[3],
		merchant: newReceiver(tb), patience: patience,
	}
	s.merchant.setSecret(shopSecret)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	tb.Cleanup(transport.CloseIdleConnections)
	s.http = withKey(&http.Client{Transport: apitest.Transport(tb, transport), Timeout: patience})

	s.token = deployToken(tb, a)
	a.Send(tb, s.admin, s.token, "mint(address,uint256)", s.payer.Address, "1000000000000")
	s.registry = s.deploy()
	s.configure(database)
	return s
}

// deployToken deploys a test USDC from the node's first account, and returns its address.
func deployToken(tb testing.TB, a *anviltest.Anvil) string {
	tb.Helper()
	code := append(common.FromHex(contracts.TestUSDCMetaData.Bin),
		contracts.NewTestUSDC().PackConstructor(common.HexToAddress(a.Accounts[0].Address))...)
	return a.Send(tb, a.Accounts[0], "--create", hexutil.Encode(code)).Contract
}

// deploy deploys the registry as an operator does.
func (s *service) deploy() string {
	s.Helper()
	c := launchWith(s, []string{deployerEnv + "=" + s.admin.Key}, "chain", "deploy", "--rpc", s.chain.URL(), "--key-env", deployerEnv,
		"--contracts", "registry")
	if code := c.exit(s, patience); code != 0 {
		s.Fatalf("chain deploy ended with %d: %s", code, c.stderr.String())
	}
	registry := strings.Trim(strings.TrimPrefix(c.stdout.String(), "registry: "), "\"\n")
	if registry != common.HexToAddress(registry).Hex() {
		s.Fatalf("chain deploy printed %q; want an address", registry)
	}
	return registry
}

// configure writes the configuration.
func (s *service) configure(database string) {
	s.Helper()
	dir := s.TempDir()
	secret := filepath.Join(dir, "secret")
	s.config = filepath.Join(dir, "quittance.yaml")
	s.env = append(s.env, providerEnv+"="+providerSecret, operatorEnv+"="+s.admin.Key)
	text := fmt.Sprintf(`
listen: 127.0.0.1:0
database: %s
merchants:
  - id: %s
    webhookUrl: %s/events
    webhookSecretFile: %s
webhooks: {allow: [127.0.0.1]}
`+keySetting+`
providers:
  - name: circle
    secretEnv: %s
    chains: {ANVIL: anvil}
    currencies: {USD: USDC}
chains:
  - chainKey: anvil
    idleInterval: 1s
    chainId: %d
    rpc: [http://%s]
    finality: %d
    tokens: [{currency: USDC, address: %s, decimals: 6}]
    registry: %s
    operatorKeyEnv: %s
`, database, shopID, s.merchant.URL, secret, providerEnv,
		anviltest.ChainID, s.chain.Endpoint, finality, s.token, s.registry, operatorEnv)
	expect.OK(s, errors.Join(os.WriteFile(secret, []byte(shopSecret+"\n"), 0o600), os.WriteFile(s.config, []byte(text), 0o600)))
}

// start runs a replica and waits until it is healthy.
func (s *service) start() *replica {
	s.Helper()
	return s.startProgram(program, s.config)
}

// startProgram is start with another version of the program, and its configuration.
func (s *service) startProgram(path, config string) *replica {
	s.Helper()
	r := &replica{child: launchProgram(s, path, s.env, "serve", "--config", config)}
	r.url = r.awaitURL(s)
	s.awaitHealth(r, func(h health) bool { return h.Ready })
	return r
}

// health is the response of /readyz.
type health struct {
	status   int
	Ready    bool   `json:"ready"`
	Database string `json:"database"`
	Chains   []struct {
		ChainKey  string `json:"chainKey"`
		Ready     bool   `json:"ready"`
		Indexed   uint64 `json:"indexed"`
		Confirmed uint64 `json:"confirmed"`
		Error     string `json:"error"`
		Writer    string `json:"writer"`
		Backfill  any    `json:"backfill"` // nil unless older blocks are read
	} `json:"chains"`
}

// awaitHealth waits until a replica's health meets a condition.
func (s *service) awaitHealth(r *replica, ok func(health) bool) health {
	s.Helper()
	var h health
	var text string
	err := await(within(s, s.patience), func() bool {
		h.status, text = s.get(r, "/readyz")
		h.Chains = nil
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			s.Fatalf("/readyz answered %d: %v\n%s", h.status, err, text)
		}
		if h.Ready != (h.status == http.StatusOK) {
			s.Fatalf("/readyz answered %d and %s", h.status, text)
		}
		return ok(h)
	})
	if err != nil {
		s.Fatalf("the service's health stays %s", text)
	}
	return h
}

// get returns the status and the body of a path.
func (s *service) get(r *replica, path string) (status int, text string) {
	s.Helper()
	return s.do(r, http.MethodGet, path, "")
}

// do sends a request with a JSON body and returns the response. header has names and values in turn.
func (s *service) do(r *replica, method, path, body string, header ...string) (status int, text string) {
	s.Helper()
	request := expect.Must(http.NewRequestWithContext(s.Context(), method, r.url+path, strings.NewReader(body)))
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := s.http.Do(request)
	expect.OK(s, err)
	raw, err := io.ReadAll(answer.Body)
	expect.OK(s, errors.Join(err, answer.Body.Close()))
	return answer.StatusCode, string(raw)
}

// api returns a client of a replica.
func (s *service) api(r *replica) *client.Client {
	s.Helper()
	c := expect.Must(client.New(r.url, client.WithHTTPClient(s.http), client.WithRetries(0)))
	return c
}

// draft returns a request for an invoice on the chain anvil.
func (s *service) draft(amount int) apitypes.CreateInvoiceRequest {
	return apitypes.CreateInvoiceRequest{
		MerchantID: shopID, MerchantAddress: s.till.Address, Amount: strconv.Itoa(amount),
		Currency: "USDC", ChainKey: "anvil", ExpiresAt: s.chainTime() + 7200,
	}
}

// create creates an invoice over an amount.
func (s *service) create(r *replica, amount int) apitypes.CreateInvoiceResponse {
	s.Helper()
	made, err := s.api(r).CreateInvoice(s.Context(), s.draft(amount))
	expect.OK(s, err)
	return made
}

// invoice returns the current state of an invoice.
func (s *service) invoice(r *replica, id string) apitypes.Invoice {
	s.Helper()
	inv, err := s.api(r).Invoice(s.Context(), id)
	expect.OK(s, err)
	return inv
}

// chainTime returns the newest block's time in Unix seconds, or now, whichever is later.
func (s *service) chainTime() int64 {
	s.Helper()
	at := expect.Must(strconv.ParseInt(s.chain.Cast(s, "block", "latest", "--field", "timestamp"), 10, 64))
	return max(at, time.Now().Unix())
}

// transfer moves tokens by a plain transfer, and returns its transaction.
func (s *service) transfer(from anviltest.Account, to, amount string, flags ...string) string {
	s.Helper()
	return s.chain.Send(s, from, append([]string{s.token, "transfer(address,uint256)", to, amount}, flags...)...).TxHash
}

// payments returns all payments of a replica, including unconfirmed ones.
func (s *service) payments(r *replica) []apitypes.Payment {
	s.Helper()
	var all []apitypes.Payment
	for p, err := range s.api(r).Payments(s.Context(), client.PaymentFilter{IncludePending: true}) {
		expect.OK(s, err)
		all = append(all, p)
	}
	return all
}

// awaitPayment waits until an invoice's payment by a transaction has a status.
func (s *service) awaitPayment(r *replica, invoiceID, tx string, status apitypes.PaymentStatus) {
	s.Helper()
	var all []apitypes.Payment
	if err := await(within(s, s.patience), func() bool {
		all = s.payments(r)
		for _, p := range all {
			if p.InvoiceID == invoiceID && p.TxHash == tx && p.Status == status {
				return true
			}
		}
		return false
	}); err != nil {
		s.Fatalf("the payment of invoice %s by %s did not become %s: %+v", invoiceID, tx, status, all)
	}
}

// statusOf returns a commitment's status in the registry.
func (s *service) statusOf(id string) contracts.Status {
	s.Helper()
	node, err := ethclient.DialContext(s.Context(), "http://"+s.chain.Endpoint)
	expect.OK(s, err)
	defer node.Close()
	status, err := contracts.ReadStatus(s.Context(), node, common.HexToAddress(s.registry), common.HexToHash(id))
	expect.OK(s, err)
	return status
}

// awaitCommitment waits until a commitment has a status in the registry.
func (s *service) awaitCommitment(id string, want contracts.Status) {
	s.Helper()
	var is contracts.Status
	if err := await(within(s, s.patience), func() bool {
		is = s.statusOf(id)
		return is == want
	}); err != nil {
		s.Fatalf("the commitment %s is %s; want %s", id, is, want)
	}
}

// awaitEvent waits until the merchant has an event about an invoice.
func (s *service) awaitEvent(typ, invoiceID string) event {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), s.patience)
	defer cancel()
	return s.merchant.await(ctx, typ, invoiceID)
}

// awaitEvents waits until the merchant has events of the types about each invoice.
func (s *service) awaitEvents(want map[string][]string) {
	s.Helper()
	for id, types := range want {
		for _, typ := range types {
			s.awaitEvent(typ, id)
		}
	}
}

// expectEventsOnce fails the test unless the merchant has received exactly these events of each invoice, in any order.
func (s *service) expectEventsOnce(want map[string][]string) {
	s.Helper()
	s.merchant.exactly(want)
}

// TestExtraAnvil runs quittance serve on PostgreSQL and anvil. Invoices are paid by cast in
// every way, so the node and the wallet share no code with the service.
func TestExtraAnvil(t *testing.T) {
	t.Parallel()
	s := newService(t, dbtest.Postgres(t))
	r := s.start()

	// The expected events of each invoice, and its status in the registry.
	wantTypes := make(map[string][]string)
	registered := make(map[string]contracts.Status)
	settled := []string{webhook.InvoiceCreated, webhook.PaymentReceived, webhook.InvoicePaid}
	var paid []apitypes.Invoice
	var txs []string
	for i, pay := range []func(apitypes.CreateInvoiceResponse) string{
		s.payTransferAmount, s.payBareAmount, s.payTagged, s.payRegistry, s.payAuthorized,
	} {
		made := s.create(r, (i+1)*1_000_000)
		s.sendNotice(r, made)
		paid, txs = append(paid, made.Invoice), append(txs, pay(made))
		wantTypes[made.ID], registered[made.OnChainInvoiceID] = settled, contracts.StatusClosed
		if i == 3 {
			registered[made.OnChainInvoiceID] = contracts.StatusPaid
		}
	}
	for i, made := range paid {
		s.awaitPayment(r, made.ID, txs[i], apitypes.PaymentConfirmed)
		if inv := s.invoice(r, made.ID); inv.Status != apitypes.StatusPaid || inv.SettledTxHash != txs[i] || inv.Exception != "" {
			t.Errorf("after transaction %s the invoice is %+v", txs[i], inv)
		}
	}

	// The last one is refunded in two parts, neither of which is the amount of another invoice.
	back := paid[len(paid)-1]
	wantTypes[back.ID] = append(wantTypes[back.ID][:3:3], webhook.PaymentRefunded, webhook.PaymentRefunded)
	s.transfer(s.till, s.payer.Address, "1500000")
	s.transfer(s.till, s.payer.Address, "3500000")

	// One invoice is not paid, and expires by the chain's time, which is advanced.
	request := s.draft(9_000_000)
	request.ExpiresAt = s.chainTime() + 600
	unpaid, err := s.api(r).CreateInvoice(t.Context(), request)
	expect.OK(t, err)
	wantTypes[unpaid.ID] = []string{webhook.InvoiceCreated, webhook.InvoiceExpired}
	registered[unpaid.OnChainInvoiceID] = contracts.StatusClosed
	s.awaitCommitment(unpaid.OnChainInvoiceID, contracts.StatusOpen)
	if inv := s.invoice(r, unpaid.ID); inv.Status != apitypes.StatusOpen {
		t.Errorf("before its time the unpaid invoice is %s", inv.Status)
	}
	s.chain.Cast(t, "rpc", "evm_increaseTime", "601")
	s.awaitEvent(webhook.InvoiceExpired, unpaid.ID)

	s.awaitEvents(wantTypes)
	for id, status := range registered {
		s.awaitCommitment(id, status)
	}
	if err := await(within(t, patience), func() bool { return s.invoice(r, back.ID).AmountRefunded == back.Amount }); err != nil {
		t.Errorf("the refunded invoice is %+v", s.invoice(r, back.ID))
	}
	if code := r.stop(t, syscall.SIGTERM, patience); code != 0 {
		t.Errorf("the service ended with %d", code)
	}
	s.expectEventsOnce(wantTypes)
}

// sendNotice sends a valid transfer notice, which settles no invoice, and a forged one.
func (s *service) sendNotice(r *replica, made apitypes.CreateInvoiceResponse) {
	s.Helper()
	notice := fmt.Sprintf(`{"type":"transfers.created","data":{"id":"transfer of %s","amount":{"amount":"%s.00","currency":"USD"},
		"destination":{"type":"blockchain","address":"%s","chain":"ANVIL"}}}`, made.ID, strings.TrimSuffix(made.Invoice.Amount, "000000"), s.till.Address)
	for secret, want := range map[string]int{providerSecret: http.StatusOK, shopSecret: http.StatusUnauthorized} {
		signature := webhook.Sign(secret, time.Now(), []byte(notice))
		if status, text := s.do(r, http.MethodPost, "/api/webhooks/circle", notice, webhook.HeaderProviderSignature, signature); status != want {
			s.Errorf("a notice signed with %s was answered %d: %s", secret, status, text)
		}
	}
	if inv := s.invoice(r, made.ID); inv.Status != apitypes.StatusOpen {
		s.Errorf("a notice alone made the invoice %s", inv.Status)
	}
}

// payTransferAmount pays the transfer amount, as from any wallet or exchange.
func (s *service) payTransferAmount(made apitypes.CreateInvoiceResponse) string {
	if made.Invoice.TransferAmount == made.Invoice.Amount {
		s.Errorf("the transfer amount %s does not tell the invoice from others", made.Invoice.TransferAmount)
	}
	return s.transfer(s.payer, s.till.Address, made.Invoice.TransferAmount)
}

// payBareAmount pays the amount without the suffix.
func (s *service) payBareAmount(made apitypes.CreateInvoiceResponse) string {
	return s.transfer(s.payer, s.till.Address, made.Invoice.Amount)
}

// payTagged pays with the commitment's id behind the calldata.
func (s *service) payTagged(made apitypes.CreateInvoiceResponse) string {
	data := s.chain.Cast(s, "calldata", "transfer(address,uint256)", s.till.Address, made.Invoice.Amount)
	return s.chain.Send(s, s.payer, s.token, data+strings.TrimPrefix(made.OnChainInvoiceID, "0x")).TxHash
}

// payRegistry pays through the registry.
func (s *service) payRegistry(made apitypes.CreateInvoiceResponse) string {
	s.chain.Send(s, s.payer, s.token, "approve(address,uint256)", s.registry, made.Invoice.Amount)
	return s.payTerms(made)
}

// payTerms pays through the registry, with terms built only from the invoice. The payer must have
// approved the registry.
func (s *service) payTerms(made apitypes.CreateInvoiceResponse) string {
	const terms = "(address,address,uint256,uint64,bytes32)"
	inv := made.Invoice
	tuple := fmt.Sprintf("(%s,%s,%s,%d,%s)", inv.MerchantAddress, s.token, inv.Amount, inv.ExpiresAt, s.chain.Cast(s, "keccak", inv.ID))
	if id := s.chain.Cast(s, "call", s.registry, "idOf("+terms+")(bytes32)", tuple); id != made.OnChainInvoiceID {
		s.Errorf("the registry computes the id %s; the service said %s", id, made.OnChainInvoiceID)
	}
	return s.chain.Send(s, s.payer, s.registry, "pay("+terms+")", tuple).TxHash
}

// payAuthorized pays by an EIP-3009 authorization that the payer signs and another account submits.
func (s *service) payAuthorized(made apitypes.CreateInvoiceResponse) string {
	inv, before := made.Invoice, s.chainTime()+3600
	typed := fmt.Sprintf(`{
		"types": {
			"EIP712Domain": [{"name":"name","type":"string"},{"name":"version","type":"string"},
				{"name":"chainId","type":"uint256"},{"name":"verifyingContract","type":"address"}],
			"TransferWithAuthorization": [{"name":"from","type":"address"},{"name":"to","type":"address"},
				{"name":"value","type":"uint256"},{"name":"validAfter","type":"uint256"},
				{"name":"validBefore","type":"uint256"},{"name":"nonce","type":"bytes32"}]
		},
		"primaryType": "TransferWithAuthorization",
		"domain": {"name":"USD Coin","version":"2","chainId":%d,"verifyingContract":"%s"},
		"message": {"from":"%s","to":"%s","value":"%s","validAfter":"0","validBefore":"%d","nonce":"%s"}
	}`, anviltest.ChainID, s.token, s.payer.Address, s.till.Address, inv.Amount, before, made.OnChainInvoiceID)
	signature := s.chain.Cast(s, "wallet", "sign", "--private-key", s.payer.Key, "--data", typed)
	return s.chain.Send(s, s.relay, s.token,
		"transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)",
		s.payer.Address, s.till.Address, inv.Amount, "0", fmt.Sprint(before), made.OnChainInvoiceID, signature).TxHash
}
