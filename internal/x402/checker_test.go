package x402_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"errors"
	"io"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/x402"
)

// gaslessWorld is a chain with a token that can block accounts, and a checker of it.
type gaslessWorld struct {
	*devchain.Chain
	t       *testing.T
	network chain.Chain
	token   common.Address
	factory common.Address
	checker *x402.Checker
	now     time.Time
}

func newWorld(t *testing.T) *gaslessWorld {
	t.Helper()
	dev, err := devchain.Start(t.Context(), devchain.Config{})
	must(t, err)
	t.Cleanup(func() { must(t, dev.Close()) })
	w := &gaslessWorld{Chain: dev, t: t}
	deployer := devchain.Address(dev.Keys.Deployer)
	w.token = w.create(common.FromHex(hostile.BlockableUSDCMetaData.Bin), hostile.NewBlockableUSDC().PackConstructor(deployer))
	w.factory = w.create(common.FromHex(hostile.SmartAccountFactoryMetaData.Bin), nil)
	w.network, _ = chain.Lookup(chain.Local)
	w.network.ID = dev.ChainID().Uint64()
	w.network.AuthorizationRelay = invoice.Address(w.create(common.FromHex(contracts.AuthorizationRelayMetaData.Bin), nil))
	w.checker = w.newChecker(w.network)
	w.mint(devchain.Address(dev.Keys.Payer))
	return w
}

// newChecker returns a checker that calls some nodes, or by default the chain's node.
func (w *gaslessWorld) newChecker(network chain.Chain, some ...chain.BatchCaller) *x402.Checker {
	if len(some) == 0 {
		some = []chain.BatchCaller{w.Client().Client()}
	}
	return x402.NewChecker([]chain.Chain{network}, func(key string) chain.TransactionNode {
		if key != network.Key {
			return nil
		}
		return nodes(some)
	}, func() time.Time { return w.now })
}

// nodes are the nodes of a chain; the first one answers.
type nodes []chain.BatchCaller

func (n nodes) Nodes() int { return len(n) }

func (n nodes) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	err := n[0].BatchCallContext(ctx, batch)
	for _, elem := range batch {
		err = cmp.Or(err, elem.Error)
	}
	return err
}

func (n nodes) Each(ctx context.Context, _ int, ask func(context.Context, chain.BatchCaller) error) (all bool, err error) {
	for _, node := range n {
		if err = ask(ctx, nodes{node}); err != nil {
			return false, err
		}
	}
	return true, nil
}

// dishonest is a node that gives a token another name, and carries out no transfer.
type dishonest struct {
	chain.BatchCaller
	w *gaslessWorld
}

func (l dishonest) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	err := l.BatchCaller.BatchCallContext(ctx, batch)
	switch answer := *batch[0].Result.(*hexutil.Bytes); {
	case len(batch) == 3:
		name := contracts.TestUSDCDomain(l.w.ChainID(), l.w.token)
		name.Name = "USD Coin."
		answer[63] = byte(len(name.Name))
		copy(answer[64:], name.Name)
		separator := name.Separator()
		*batch[2].Result.(*hexutil.Bytes) = separator[:]
	case len(answer) >= 32*14:
		clear(answer[32*8 : 32*9])
	}
	return err
}

// TestOneNodeDecidesNothing has a node lie about the domain of a token and about an authorization.
func TestOneNodeDecidesNothing(t *testing.T) {
	w := newWorld(t)
	good := w.authorization(devchain.Address(w.Keys.Payer))
	good.Signature = w.sign(good, w.Keys.Payer, w.token)
	honest := chain.BatchCaller(w.Client().Client())
	byzantine := dishonest{honest, w}
	domain := func(c *x402.Checker) (x402.Domain, error) {
		return c.Domain(t.Context(), chain.Local, invoice.Address(w.token))
	}
	judgment := func(c *x402.Checker) string {
		_, err := c.CheckAuthorization(t.Context(), chain.Local, invoice.Address(w.token), good)
		switch {
		case errors.Is(err, x402.ErrUnavailable):
			return "undecided"
		case err != nil:
			return "refused"
		}
		return "accepted"
	}
	right := x402.Domain{Name: "USD Coin", Version: "2"}
	for name, test := range map[string]struct {
		nodes    []chain.BatchCaller
		domain   x402.Domain // zero if they disagree
		judgment string
	}{
		"two nodes":   {[]chain.BatchCaller{byzantine, honest}, x402.Domain{}, "undecided"},
		"three nodes": {[]chain.BatchCaller{byzantine, honest, honest}, right, "accepted"},
		"two false":   {[]chain.BatchCaller{byzantine, byzantine, honest}, x402.Domain{Name: "USD Coin.", Version: "2"}, "refused"},
	} {
		c := w.newChecker(w.network, test.nodes...)
		got, err := domain(c)
		if got != test.domain || (err == nil) != (got != x402.Domain{}) || err != nil && !errors.Is(err, x402.ErrUnavailable) {
			t.Errorf("%s: the domain is %+v, %v", name, got, err)
		}
		expect.Equal(t, judgment(c), test.judgment, "%s: the authorization is", name)
	}
	some := []chain.BatchCaller{byzantine}
	c := w.newChecker(w.network, some...)
	if got, err := domain(c); err != nil || got == right {
		t.Errorf("by the false node the domain is %+v, %v", got, err)
	}
	some[0] = honest
	w.now = w.now.Add(x402.DomainsLast)
	if got, err := domain(c); err != nil || got != right {
		t.Errorf("afterwards the domain is %+v, %v", got, err)
	}
	two := []chain.BatchCaller{honest, honest}
	c = w.newChecker(w.network, two...)
	for _, second := range []chain.BatchCaller{honest, byzantine, noNode{}} {
		two[1] = second
		if got, err := domain(c); err != nil || got != right {
			t.Errorf("with %T as the second node the domain is %+v, %v", second, got, err)
		}
		w.now = w.now.Add(x402.DomainsLast)
	}
	two[0] = noNode{}
	if got, err := domain(c); err != nil || got != right {
		t.Errorf("without a node the domain is %+v, %v", got, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	expect.OK(t, err)
}

// create deploys a contract.
func (w *gaslessWorld) create(code, arguments []byte) common.Address {
	w.t.Helper()
	hash, err := w.Create(w.t.Context(), w.Keys.Deployer, append(code, arguments...))
	must(w.t, err)
	must(w.t, w.Seal(w.t.Context()))
	receipt, err := w.Mined(w.t.Context(), hash)
	must(w.t, err)
	return receipt.ContractAddress
}

// send makes a key call the token.
func (w *gaslessWorld) send(key *ecdsa.PrivateKey, to common.Address, data []byte) {
	w.t.Helper()
	hash, err := w.Send(w.t.Context(), key, to, data)
	must(w.t, err)
	must(w.t, w.Seal(w.t.Context()))
	receipt, err := w.Mined(w.t.Context(), hash)
	must(w.t, err)
	if receipt.Status != 1 {
		w.t.Fatalf("transaction %s failed", hash)
	}
}

// mint gives an account 100 units.
func (w *gaslessWorld) mint(to common.Address) {
	w.t.Helper()
	w.send(w.Keys.Deployer, w.token, contracts.NewTestUSDC().PackMint(to, big.NewInt(100)))
}

// authorization returns an unsigned authorization of an account, over 100 units.
func (w *gaslessWorld) authorization(from common.Address) invoice.Authorization {
	w.t.Helper()
	head, err := w.Client().HeaderByNumber(w.t.Context(), nil)
	must(w.t, err)
	return invoice.Authorization{
		From: invoice.Address(from), To: invoice.Address(devchain.Address(w.Keys.Merchant)), Value: invoice.NewAmount(100),
		ValidAfter: invoice.Unix(0), ValidBefore: invoice.Unix(int64(head.Time) + 600), Nonce: invoice.Hash{1, 2, 3},
	}
}

// sign signs an authorization with a key, under the domain of a token.
func (w *gaslessWorld) sign(a invoice.Authorization, key *ecdsa.PrivateKey, token common.Address) []byte {
	w.t.Helper()
	value := a.Value.Bytes()
	sig, err := contracts.Authorization{
		From: common.Address(a.From), To: common.Address(a.To), Value: new(big.Int).SetBytes(value[:]),
		ValidAfter: big.NewInt(a.ValidAfter.Unix()), ValidBefore: big.NewInt(a.ValidBefore.Unix()), Nonce: common.Hash(a.Nonce),
	}.Sign(contracts.TestUSDCDomain(w.ChainID(), token), key)
	must(w.t, err)
	return sig.Bytes()
}

func (w *gaslessWorld) check(a invoice.Authorization) error {
	w.t.Helper()
	found, err := w.checker.CheckAuthorization(w.t.Context(), chain.Local, invoice.Address(w.token), a)
	if err == nil && (found.Gas < 30_000 || found.Gas > chain.MaxDeployGas || found.Time.IsZero()) {
		w.t.Errorf("found %+v", found)
	}
	return err
}

// wantRefused requires a reason, or no error for an empty one.
func wantRefused(t *testing.T, err error, want invoice.Refusal) {
	t.Helper()
	var refusal *invoice.RefusalError
	if want == "" && err == nil {
		return
	}
	if !errors.As(err, &refusal) || refusal.Reason != want || refusal.Detail == "" {
		t.Errorf("refused with %v, want %q", err, want)
	}
}

// smartAccount returns the account of a key that the factory deploys, and the call that deploys it.
func (w *gaslessWorld) smartAccount(signer *ecdsa.PrivateKey) (account common.Address, deploy []byte) {
	w.t.Helper()
	abi := hostile.NewSmartAccountFactory()
	address := devchain.Address(signer)
	code := append(common.FromHex(hostile.SmartAccountMetaData.Bin), hostile.NewSmartAccount().PackConstructor(address)...)
	return crypto.CreateAddress2(w.factory, [32]byte{}, crypto.Keccak256(code)), abi.PackDeploy(address)
}

// noNode is a caller that reaches no node.
type noNode struct{}

func (noNode) BatchCallContext(context.Context, []rpc.BatchElem) error { return io.ErrUnexpectedEOF }

func TestCheckOfAKey(t *testing.T) {
	w := newWorld(t)
	payer := w.Keys.Payer
	good := w.authorization(devchain.Address(payer))
	good.Signature = w.sign(good, payer, w.token)
	other := good
	other.Signature = w.sign(good, w.Keys.Merchant, w.token)
	foreign := good
	foreign.Signature = w.sign(good, payer, w.Token)
	changed := good
	changed.Nonce = invoice.Hash{9}
	high := good
	high.Signature = highS(good.Signature)
	poor := w.authorization(devchain.Address(w.Keys.Operator))
	poor.Signature = w.sign(poor, w.Keys.Operator, w.token)
	for name, test := range map[string]struct {
		a    invoice.Authorization
		want invoice.Refusal
	}{
		"right": {good, ""}, "another key's": {other, invoice.RefusedSignature}, "for another token": {foreign, invoice.RefusedSignature},
		"of another nonce": {changed, invoice.RefusedSignature}, "too little": {poor, invoice.RefusedBalance}, "high s": {high, invoice.RefusedReverts},
		"empty": {func() invoice.Authorization { a := good; a.Signature = []byte{}; return a }(), invoice.RefusedSignature},
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, w.check(test.a), test.want) })
	}
	_, err := w.checker.CheckAuthorization(t.Context(), chain.Local, invoice.Address(w.Registry), good)
	wantRefused(t, err, invoice.RefusedDomain)
	_, err = w.checker.CheckAuthorization(t.Context(), "none", invoice.Address(w.token), good)
	wantRefused(t, err, invoice.RefusedGaslessOff)
	away := w.newChecker(w.network, noNode{})
	if _, err := away.CheckAuthorization(t.Context(), chain.Local, invoice.Address(w.token), good); err == nil || errors.As(err, new(*invoice.RefusalError)) {
		t.Errorf("without a node: %v", err)
	}

	token := hostile.NewBlockableUSDC()
	merchant := devchain.Address(w.Keys.Merchant)
	for _, blocked := range []common.Address{devchain.Address(payer), merchant} {
		w.send(w.Keys.Deployer, w.token, token.PackSetBlocked(blocked, true))
		wantRefused(t, w.check(good), invoice.RefusedBlacklisted)
		w.send(w.Keys.Deployer, w.token, token.PackSetBlocked(blocked, false))
	}
	w.send(w.Keys.Deployer, w.token, token.PackSetPaused(true))
	wantRefused(t, w.check(good), invoice.RefusedPaused)
	w.send(w.Keys.Deployer, w.token, token.PackSetPaused(false))

	call, err := chain.AuthorizationCall(invoice.Address(w.token), good)
	must(t, err)
	w.send(w.Keys.Operator, w.token, contracts.PackTransferWithAuthorization(call))
	if found, err := w.checker.CheckAuthorization(t.Context(), chain.Local, invoice.Address(w.token), good); err != nil || !found.IsUsed || found.Gas == 0 {
		t.Errorf("with a used nonce it is %+v, %v", found, err)
	}
	unsigned := good
	unsigned.Signature = other.Signature
	wantRefused(t, w.check(unsigned), invoice.RefusedSignature)
	expired := good
	expired.Nonce, expired.ValidBefore = invoice.Hash{4}, invoice.Unix(5)
	expired.Signature = w.sign(expired, payer, w.token)
	w.mint(devchain.Address(payer))
	wantRefused(t, w.check(expired), invoice.RefusedReverts)
}

// highS returns the other signature of the same key and text, which tokens do not accept.
func highS(signature []byte) []byte {
	s := new(big.Int).SetBytes(signature[32:64])
	s.Sub(crypto.S256().Params().N, s)
	high := append([]byte{}, signature...)
	s.FillBytes(high[32:64])
	high[64] = 27 + 28 - high[64]
	return high
}

func TestCheckOfASmartAccount(t *testing.T) {
	w := newWorld(t)
	account, deploy := w.smartAccount(w.Keys.Payer)
	w.mint(account)
	a := w.authorization(account)
	own := append([]byte{0}, w.sign(a, w.Keys.Payer, w.token)...) // a byte before the owner's signature
	foreign := append([]byte{0}, w.sign(a, w.Keys.Merchant, w.token)...)
	wrap := func(signature []byte) []byte {
		wrapped, err := contracts.WrapSignature(w.factory, deploy, signature)
		must(t, err)
		return wrapped
	}
	with := func(signature []byte) invoice.Authorization {
		b := a
		b.Signature = signature
		return b
	}
	wantRefused(t, w.check(with(own)), invoice.RefusedSignature) // the account does not exist
	wantRefused(t, w.check(with(wrap(own))), "")
	wantRefused(t, w.check(with(wrap(foreign))), invoice.RefusedSignature)
	wantRefused(t, w.check(with(wrap(own)[32:])), invoice.RefusedSignature)
	bare := w.network
	bare.AuthorizationRelay = invoice.Address{}
	_, err := w.newChecker(bare).CheckAuthorization(t.Context(), chain.Local, invoice.Address(w.token), with(wrap(own)))
	wantRefused(t, err, invoice.RefusedNotDeployed)
	if code, err := w.Client().CodeAt(t.Context(), account, nil); err != nil || len(code) > 0 {
		t.Errorf("the check has deployed the account (%v)", err)
	}

	w.send(w.Keys.Operator, w.factory, deploy)
	wantRefused(t, w.check(with(own)), "")
	wantRefused(t, w.check(with(wrap(own))), "")
	wantRefused(t, w.check(with(foreign)), invoice.RefusedSignature)
}

func TestDomain(t *testing.T) {
	w := newWorld(t)
	domain, err := w.checker.Domain(t.Context(), chain.Local, invoice.Address(w.token))
	if err != nil || domain != (x402.Domain{Name: "USD Coin", Version: "2"}) {
		t.Errorf("the domain is %+v, %v", domain, err)
	}
	other := w.network
	other.ID++
	_, err = w.newChecker(other).Domain(t.Context(), chain.Local, invoice.Address(w.token))
	wantRefused(t, err, invoice.RefusedDomain)
	_, err = w.checker.Domain(t.Context(), chain.Local, invoice.Address(w.Registry))
	if err == nil {
		t.Error("the registry has a domain")
	}
}

// TestCheckOfGas has a payer's account burn gas, and name itself as its deployer although it exists already.
func TestCheckOfGas(t *testing.T) {
	w := newWorld(t)
	abi := hostile.NewGasBurner()
	account := w.create(common.FromHex(hostile.GasBurnerMetaData.Bin), nil)
	w.mint(account)
	a := w.authorization(account)
	a.Signature = []byte{1}
	wrapped := a
	var err error
	wrapped.Signature, err = contracts.WrapSignature(account, abi.PackDeploy(), a.Signature)
	must(t, err)
	wantRefused(t, w.check(a), "")
	w.send(w.Keys.Operator, account, abi.PackBurn(big.NewInt(2_700_000))) // of 3,000,000
	wantRefused(t, w.check(a), invoice.RefusedGas)
	wantRefused(t, w.check(wrapped), invoice.RefusedGas) // the higher limit is for accounts that are deployed
	w.send(w.Keys.Operator, account, abi.PackStop())
	wantRefused(t, w.check(wrapped), "")
	bare := w.network
	bare.AuthorizationRelay = invoice.Address{}
	_, err = w.newChecker(bare).CheckAuthorization(t.Context(), chain.Local, invoice.Address(w.token), wrapped)
	wantRefused(t, err, "") // the account is already deployed
}
