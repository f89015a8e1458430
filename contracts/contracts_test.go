package contracts_test

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/contracts/internal/bindgen"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/test/expect"
)

// world is a separate chain for each test, with the registry and the test token.
type world struct {
	testing.TB
	*devchain.Chain
	registry                  *contracts.InvoiceRegistry
	factory                   *contracts.DepositFactory
	deposit                   *contracts.Deposit
	relay                     *contracts.AuthorizationRelay
	token                     *contracts.TestUSDC
	merchant, payer, operator common.Address
	salts                     *int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return startWorld(t, devchain.Config{})
}

// newFixedWorld returns a world with the same keys, addresses and times in every run.
func newFixedWorld(t testing.TB) *world {
	t.Helper()
	return startWorld(t, devchain.Config{
		Now:  func() time.Time { return time.Unix(1_764_000_000, 0) },
		Rand: rand.NewChaCha8([32]byte{}),
	})
}

func startWorld(t testing.TB, conf devchain.Config) *world {
	t.Helper()
	chain, err := devchain.Start(t.Context(), conf)
	expect.OK(t, err)
	t.Cleanup(func() { expect.NoError(t, chain.Close()) })
	return &world{
		TB: t, Chain: chain,
		registry: contracts.NewInvoiceRegistry(), token: contracts.NewTestUSDC(),
		factory: contracts.NewDepositFactory(), deposit: contracts.NewDeposit(), relay: contracts.NewAuthorizationRelay(),
		merchant: devchain.Address(chain.Keys.Merchant),
		payer:    devchain.Address(chain.Keys.Payer),
		operator: devchain.Address(chain.Keys.Operator),
		salts:    new(int),
	}
}

// in returns the same world for a subtest, which can then fail separately.
func (w *world) in(t *testing.T) *world {
	t.Helper()
	copied := *w
	copied.TB = t
	return &copied
}

// terms returns unique terms of 1,000 minor units and an hour.
func (w *world) terms() contracts.Terms {
	*w.salts++
	return contracts.Terms{
		Merchant: w.merchant, Token: w.Token, Amount: big.NewInt(1000),
		ExpiresAt: w.now() + 3600, Salt: contracts.Salt(fmt.Sprint("inv_", *w.salts)),
	}
}

func (w *world) id(t contracts.Terms) common.Hash { return t.ID(w.ChainID(), w.Registry) }

// now is the head's time.
func (w *world) now() uint64 {
	w.Helper()
	header, err := w.Client().HeaderByNumber(w.Context(), nil)
	w.must(err)
	return header.Time
}

func (w *world) must(err error) {
	w.Helper()
	expect.OK(w, err)
}

// transact sends a call, seals it and returns its receipt, whether it succeeded or failed.
func (w *world) transact(from *ecdsa.PrivateKey, to common.Address, data []byte) *types.Receipt {
	w.Helper()
	hash, err := w.Send(w.Context(), from, to, data)
	w.must(err)
	w.must(w.Seal(w.Context()))
	receipt, err := w.Mined(w.Context(), hash)
	w.must(err)
	return receipt
}

// transactWithGas is transact with another gas limit.
func (w *world) transactWithGas(from *ecdsa.PrivateKey, to common.Address, data []byte, gas uint64) *types.Receipt {
	w.Helper()
	hash, err := w.SendWithGas(w.Context(), from, to, data, gas)
	w.must(err)
	w.must(w.Seal(w.Context()))
	receipt, err := w.Mined(w.Context(), hash)
	w.must(err)
	return receipt
}

// do is transact for a call that must succeed.
func (w *world) do(from *ecdsa.PrivateKey, to common.Address, data []byte) *types.Receipt {
	w.Helper()
	receipt := w.transact(from, to, data)
	if receipt.Status != types.ReceiptStatusSuccessful {
		w.Fatalf("call reverted: %v", w.revert(from, to, data))
	}
	return receipt
}

// refused requires that a call reverts with the custom error, and that sending it changes no invoice's status.
func (w *world) refused(from *ecdsa.PrivateKey, to common.Address, data []byte, want abi.Error) {
	w.Helper()
	got := w.revert(from, to, data)
	if len(got) < 4 || [4]byte(got[:4]) != [4]byte(want.ID[:4]) {
		w.Fatalf("call reverted with %#x, want %s", got, want.Sig)
	}
	if receipt := w.transact(from, to, data); receipt.Status != types.ReceiptStatusFailed || len(receipt.Logs) != 0 {
		w.Fatalf("sent, the call had status %d and %d logs, want failure", receipt.Status, len(receipt.Logs))
	}
}

// revert asks the node for the result of a call and returns the revert data.
func (w *world) revert(from *ecdsa.PrivateKey, to common.Address, data []byte) []byte {
	w.Helper()
	_, err := w.Client().CallContract(w.Context(),
		ethereum.CallMsg{From: devchain.Address(from), To: &to, Data: data}, nil)
	var detailed rpc.DataError
	if !errors.As(err, &detailed) {
		w.Fatalf("call ended with %v, want a revert with data", err)
	}
	text, ok := detailed.ErrorData().(string)
	if !ok {
		w.Fatalf("revert data is %v, want hex", detailed.ErrorData())
	}
	return hexutil.MustDecode(text)
}

func (w *world) registryError(name string) abi.Error { return w.registry.GetABI().Errors[name] }
func (w *world) tokenError(name string) abi.Error    { return w.token.GetABI().Errors[name] }

func (w *world) call(to common.Address, data []byte) []byte {
	w.Helper()
	answer, err := w.Client().CallContract(w.Context(), ethereum.CallMsg{To: &to, Data: data}, nil)
	w.must(err)
	return answer
}

// wantStatus requires the stored status of an invoice.
func (w *world) wantStatus(id common.Hash, want contracts.Status) {
	w.Helper()
	got, err := w.registry.UnpackStatusOf(w.call(w.Registry, w.registry.PackStatusOf(id)))
	w.must(err)
	if contracts.StoredStatus(got) != want {
		w.Errorf("%s is stored, want %s", contracts.StoredStatus(got), want)
	}
}

// wantRead requires an invoice's status by the registry's storage and logs.
func (w *world) wantRead(id common.Hash, want contracts.Status) {
	w.Helper()
	if got, err := w.StatusOf(w.Context(), id); err != nil || got != want {
		w.Errorf("status is %s (%v), want %s", got, err, want)
	}
}

func (w *world) wantBalance(of common.Address, want int64) {
	w.Helper()
	got, err := w.Balance(w.Context(), of)
	w.must(err)
	if got.Cmp(big.NewInt(want)) != 0 {
		w.Errorf("%s has %s minor units, want %d", of, got, want)
	}
}

// wantPaid requires that a receipt ends with a Transfer and, directly after it, the Paid event of the terms.
func (w *world) wantPaid(receipt *types.Receipt, t contracts.Terms, payer common.Address) {
	w.Helper()
	if len(receipt.Logs) < 2 {
		w.Fatalf("payment left %d logs, want Transfer and Paid", len(receipt.Logs))
	}
	last := receipt.Logs[len(receipt.Logs)-2:]
	if last[0].Address != t.Token || last[0].Topics[0] != w.token.GetABI().Events["Transfer"].ID {
		w.Errorf("log before the last is %+v, want the token's Transfer", last[0])
	}
	paid, err := contracts.ParsePaid(*last[1])
	w.must(err)
	if last[1].Address != w.Registry || paid.ID != w.id(t) || paid.Payer != payer || paid.Merchant != t.Merchant ||
		paid.Token != t.Token || paid.Amount.Cmp(t.Amount) != 0 {
		w.Errorf("last log is %+v, want the payment of %+v by %s", paid, t, payer)
	}
	w.wantStatus(w.id(t), contracts.StatusPaid)
}

// approve gives the registry an allowance of the payer's tokens.
func (w *world) approve(amount int64) {
	w.Helper()
	w.do(w.Keys.Payer, w.Token, w.token.PackApprove(w.Registry, big.NewInt(amount)))
}

// at seals the pool's transactions in a block with exactly this time.
func (w *world) at(unix uint64) {
	w.Helper()
	w.must(w.SealAt(w.Context(), time.Unix(int64(unix), 0)))
}

// deploy deploys a contract from its artifact, and returns its address and its ABI.
func (w *world) deploy(name string, holder common.Address) (common.Address, abi.ABI) {
	w.Helper()
	artifact, err := bindgen.Read("artifacts", name)
	w.must(err)
	var parsed abi.ABI
	w.must(parsed.UnmarshalJSON(artifact.ABI))
	code := common.FromHex(artifact.Bytecode)
	if len(parsed.Constructor.Inputs) > 0 {
		arguments, err := parsed.Pack("", holder)
		w.must(err)
		code = append(code, arguments...)
	}
	hash, err := w.Create(w.Context(), w.Keys.Deployer, code)
	w.must(err)
	w.must(w.Seal(w.Context()))
	receipt, err := w.Mined(w.Context(), hash)
	w.must(err)
	if receipt.Status != types.ReceiptStatusSuccessful {
		w.Fatalf("%s was not deployed", filepath.Base(artifact.Source))
	}
	return receipt.ContractAddress, parsed
}

func pack(w *world, parsed abi.ABI, method string, arguments ...any) []byte {
	w.Helper()
	data, err := parsed.Pack(method, arguments...)
	w.must(err)
	return data
}

func TestIDIsTheContracts(t *testing.T) {
	w := newWorld(t)
	bytesOf := func(r *rapid.T, n int, label string) []byte { return rapid.SliceOfN(rapid.Byte(), n, n).Draw(r, label) }
	rapid.Check(t, func(r *rapid.T) {
		terms := contracts.Terms{
			Merchant:  common.BytesToAddress(bytesOf(r, 20, "merchant")),
			Token:     common.BytesToAddress(bytesOf(r, 20, "token")),
			Amount:    new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(r, "amount")),
			ExpiresAt: rapid.Uint64().Draw(r, "expiresAt"),
			Salt:      [32]byte(bytesOf(r, 32, "salt")),
		}
		want := common.BytesToHash(w.call(w.Registry, w.registry.PackIdOf(terms)))
		if got := w.id(terms); got != want {
			r.Fatalf("id is %s, the contract says %s", got, want)
		}
	})
}

func TestIDDependsOnChainAndRegistry(t *testing.T) {
	terms := contracts.Terms{Amount: big.NewInt(1)}
	id := terms.ID(big.NewInt(1), common.Address{1})
	if id == terms.ID(big.NewInt(2), common.Address{1}) {
		t.Error("the id is the same on another chain")
	}
	if id == terms.ID(big.NewInt(1), common.Address{2}) {
		t.Error("the id is the same in another registry")
	}
}

func TestSalt(t *testing.T) {
	if got, want := contracts.Salt("inv_1"), crypto.Keccak256Hash([]byte("inv_1")); got != want {
		t.Errorf("salt is %s, want %s", got, want)
	}
}

func TestDeployRegistry(t *testing.T) {
	w := newWorld(t)
	opts := w.deployerOpts()
	address, tx, err := contracts.DeployRegistry(opts, w.Client(), w.merchant, w.payer)
	w.must(err)
	w.wantDeployed(tx)
	if receipt, err := w.Mined(w.Context(), tx.Hash()); err != nil || receipt.ContractAddress != address {
		t.Fatalf("registry is at %s (%v), want %s", receipt.ContractAddress, err, address)
	}
	ids := [][32]byte{w.terms().ID(w.ChainID(), address)}
	w.refused(w.Keys.Operator, address, w.registry.PackOpen(ids), w.registryError("AccessControlUnauthorizedAccount"))
	w.do(w.Keys.Payer, address, w.registry.PackOpen(ids))
}

func (w *world) deployerOpts() *bind.TransactOpts {
	opts := bind.NewKeyedTransactor(w.Keys.Merchant, w.ChainID())
	opts.Context = w.Context()
	return opts
}

func (w *world) wantDeployed(tx *types.Transaction) {
	w.Helper()
	w.must(w.Seal(w.Context()))
	receipt, err := w.Mined(w.Context(), tx.Hash())
	w.must(err)
	if receipt.Status != types.ReceiptStatusSuccessful {
		w.Fatal("the deployment failed")
	}
}

// TestDeployOnce deploys the contracts without an owner where they exist already, as on each development chain, and on
// a network without a Create2Deployer.
func TestDeployOnce(t *testing.T) {
	w := newWorld(t)
	usual := contracts.Create2Deployer
	t.Cleanup(func() { contracts.Create2Deployer = usual })
	for _, d := range []struct {
		name   string
		deploy func(*bind.TransactOpts, bind.ContractBackend) (common.Address, *types.Transaction, error)
		there  common.Address
		hash   common.Hash
	}{
		{"deposit factory", contracts.DeployDepositFactory, w.DepositFactory, contracts.DepositFactoryCodeHash},
		{"authorization relay", contracts.DeployAuthorizationRelay, w.AuthorizationRelay, contracts.AuthorizationRelayCodeHash},
	} {
		contracts.Create2Deployer = usual
		if address, tx, err := d.deploy(w.deployerOpts(), w.Client()); err != nil || tx != nil || address != d.there {
			t.Errorf("%s: deploying it again gave %s, %v, %v; want %s and no transaction", d.name, address, tx, err, d.there)
		}
		contracts.Create2Deployer = w.payer
		address, tx, err := d.deploy(w.deployerOpts(), w.Client())
		w.must(err)
		w.wantDeployed(tx)
		if got := crypto.Keccak256Hash(w.code(address)); got != d.hash || address == d.there {
			t.Errorf("%s: the code at %s has the hash %s, want %s at another address", d.name, address, got, d.hash)
		}
	}
}

// TestDeployThroughTheDeployer deploys with a Create2Deployer that has not deployed yet.
func TestDeployThroughTheDeployer(t *testing.T) {
	w := newWorld(t)
	usual := contracts.Create2Deployer
	t.Cleanup(func() { contracts.Create2Deployer = usual })
	push := []byte{0x60, byte(len(params.DeterministicFactoryCode)), 0x80, 0x60, 0x0b, 0x60, 0x00, 0x39, 0x60, 0x00, 0xf3}
	hash, err := w.Create(w.Context(), w.Keys.Deployer, append(push, params.DeterministicFactoryCode...))
	w.must(err)
	w.must(w.Seal(w.Context()))
	receipt, err := w.Mined(w.Context(), hash)
	w.must(err)
	contracts.Create2Deployer = receipt.ContractAddress
	first, tx, err := contracts.DeployDepositFactory(w.deployerOpts(), w.Client())
	w.must(err)
	w.wantDeployed(tx)
	if got := crypto.Keccak256Hash(w.code(first)); got != contracts.DepositFactoryCodeHash {
		t.Errorf("the code at %s has the hash %s", first, got)
	}
	second, tx, err := contracts.DeployDepositFactory(w.deployerOpts(), w.Client())
	if err != nil || tx != nil || second != first {
		t.Errorf("the second deployment gave %s, %v, %v; want %s and no transaction", second, tx, err, first)
	}
}

func TestTopicsAreTheContracts(t *testing.T) {
	events := contracts.NewInvoiceRegistry().GetABI()
	for name, topic := range map[string]common.Hash{
		"Paid": contracts.PaidTopic, "Opened": contracts.OpenedTopic, "Closed": contracts.ClosedTopic,
	} {
		if events.Events[name].ID != topic {
			t.Errorf("%s: topic is %s, the ABI says %s", name, topic, events.Events[name].ID)
		}
	}
	if id := contracts.NewDepositFactory().GetABI().Events["Swept"].ID; id != contracts.SweptTopic {
		t.Errorf("Swept: topic is %s, the ABI says %s", contracts.SweptTopic, id)
	}
}

// paidLog returns a valid Paid log, which tests then damage.
func paidLog() types.Log {
	word := func(n int64) []byte { return common.BigToHash(big.NewInt(n)).Bytes() }
	return types.Log{
		Topics: []common.Hash{contracts.PaidTopic, {1}, common.BigToHash(big.NewInt(2)), common.BigToHash(big.NewInt(3))},
		Data:   append(word(4), word(5)...),
	}
}

func TestParseSwept(t *testing.T) {
	word := func(n int64) common.Hash { return common.BigToHash(big.NewInt(n)) }
	log := func() types.Log {
		return types.Log{Topics: []common.Hash{contracts.SweptTopic, word(2), word(3), word(4)}, Data: word(5).Bytes()}
	}
	address := func(n int64) common.Address { return common.BigToAddress(big.NewInt(n)) }
	if got, err := contracts.ParseSwept(log()); err != nil || got != (contracts.Swept{Deposit: address(2), Token: address(3), Merchant: address(4)}) {
		t.Errorf("parsed %+v, %v", got, err)
	}
	for name, spoil := range map[string]func(*types.Log){
		"no topics":      func(l *types.Log) { l.Topics = nil },
		"topic missing":  func(l *types.Log) { l.Topics = l.Topics[:3] },
		"another event":  func(l *types.Log) { l.Topics[0] = contracts.PaidTopic },
		"no data":        func(l *types.Log) { l.Data = nil },
		"data too long":  func(l *types.Log) { l.Data = append(l.Data, 0) },
		"deposit dirty":  func(l *types.Log) { l.Topics[1][0] = 1 },
		"token dirty":    func(l *types.Log) { l.Topics[2][11] = 1 },
		"merchant dirty": func(l *types.Log) { l.Topics[3][0] = 1 },
	} {
		spoiled := log()
		spoil(&spoiled)
		if got, err := contracts.ParseSwept(spoiled); err == nil {
			t.Errorf("%s: parsed as %+v", name, got)
		}
	}
}

func TestParsePaid(t *testing.T) {
	paid, err := contracts.ParsePaid(paidLog())
	expect.OK(t, err)
	address := func(n int64) common.Address { return common.BigToAddress(big.NewInt(n)) }
	if paid.ID != (common.Hash{1}) || paid.Payer != address(2) || paid.Merchant != address(3) ||
		paid.Token != address(4) || paid.Amount.Int64() != 5 {
		t.Errorf("parsed %+v", paid)
	}
	for name, spoil := range map[string]func(*types.Log){
		"no topics":      func(l *types.Log) { l.Topics = nil },
		"topic missing":  func(l *types.Log) { l.Topics = l.Topics[:3] },
		"another event":  func(l *types.Log) { l.Topics[0] = contracts.ClosedTopic },
		"no data":        func(l *types.Log) { l.Data = nil },
		"data too short": func(l *types.Log) { l.Data = l.Data[:63] },
		"data too long":  func(l *types.Log) { l.Data = append(l.Data, 0) },
		"payer dirty":    func(l *types.Log) { l.Topics[2][0] = 1 },
		"merchant dirty": func(l *types.Log) { l.Topics[3][11] = 1 },
		"token dirty":    func(l *types.Log) { l.Data[11] = 1 },
	} {
		log := paidLog()
		spoil(&log)
		if got, err := contracts.ParsePaid(log); err == nil {
			t.Errorf("%s: parsed as %+v", name, got)
		}
	}
}

func TestParseOpenedAndClosed(t *testing.T) {
	for _, test := range []struct {
		name         string
		parse        func(types.Log) (common.Hash, error)
		topic, other common.Hash
	}{
		{"opened", contracts.ParseOpened, contracts.OpenedTopic, contracts.ClosedTopic},
		{"closed", contracts.ParseClosed, contracts.ClosedTopic, contracts.OpenedTopic},
	} {
		id := common.Hash{7}
		if got, err := test.parse(types.Log{Topics: []common.Hash{test.topic, id}}); err != nil || got != id {
			t.Errorf("%s: parsed %s, %v; want %s", test.name, got, err, id)
		}
		for name, log := range map[string]types.Log{
			"another event": {Topics: []common.Hash{test.other, id}},
			"no id":         {Topics: []common.Hash{test.topic}},
			"a third topic": {Topics: []common.Hash{test.topic, id, id}},
			"data":          {Topics: []common.Hash{test.topic, id}, Data: []byte{0}},
		} {
			if got, err := test.parse(log); err == nil {
				t.Errorf("%s with %s: parsed as %s", test.name, name, got)
			}
		}
	}
}
