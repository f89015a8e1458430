package browsertest

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/test/expect"
)

// RPCError is a wallet's error.
type RPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Error returns the message.
func (e *RPCError) Error() string { return e.Message }

// Errors of wallets.
var (
	ErrRejected     = &RPCError{4001, "User rejected the request."}
	ErrDisconnected = &RPCError{4900, "The provider is disconnected from all chains."}
	ErrPending      = &RPCError{-32002, "Request already pending."}
	errUnsupported  = &RPCError{4200, "The method is not supported."}
)

// Call is a request to a wallet.
type Call struct {
	Method string
	Params []json.RawMessage
}

// Wallet is a wallet of a page, backed by a chain. Its payer confirms everything.
type Wallet struct {
	Name string
	RDNS string // empty: it announces itself without one
	Icon string
	// Injected makes it window.ethereum. It does not announce itself then.
	Injected bool

	mu      sync.Mutex
	keys    []*ecdsa.PrivateKey // accounts, the chosen one first
	chainID uint64
	chain   *devchain.Chain
	node    *rpc.Client // of the chain, for the page's reads
	calls   []Call
	account *ContractAccount
	// answer, if set, answers requests instead; handled is false for requests that it leaves to the wallet.
	answer func(Call) (result any, handled bool, err error)
}

// ContractAccount is a contract account of a wallet's key.
type ContractAccount struct {
	Address common.Address
	// Sign returns the account's signature from the key's signature.
	Sign func(signature []byte) []byte
	// Execute returns the calldata with which the account makes a call, or nil if it makes none.
	Execute func(to common.Address, data []byte) []byte
}

// NewWallet returns a wallet of keys on a world's chain. It announces itself.
func NewWallet(t testing.TB, w *World, name string, keys ...*ecdsa.PrivateKey) *Wallet {
	t.Helper()
	node, err := rpc.DialContext(t.Context(), w.Info.Chain.RPCURL)
	expect.OK(t, err)
	t.Cleanup(node.Close)
	const icon = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'><path fill='%23e76f51' d='M0 0h1v1H0z'/></svg>"
	return &Wallet{Name: name, RDNS: "example." + name, Icon: icon, keys: keys, chainID: w.Info.Chain.ChainID, chain: w.Node, node: node}
}

// SetAccount makes the wallet use a contract account of its key.
func (w *Wallet) SetAccount(a *ContractAccount) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.account = a
}

// SetKeys sets the accounts. The chosen one is first.
func (w *Wallet) SetKeys(keys ...*ecdsa.PrivateKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys = keys
}

// Rotate chooses the wallet's next account.
func (w *Wallet) Rotate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys = append(w.keys[1:], w.keys[0])
}

// SetChainID sets the chain id that the wallet reports.
func (w *Wallet) SetChainID(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chainID = id
}

// Answer makes a function answer requests; handled is false for requests that it leaves to the wallet. nil ends that.
func (w *Wallet) Answer(answer func(Call) (result any, handled bool, err error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// Refuse makes the wallet answer a method with an error.
func (w *Wallet) Refuse(method string, err error) {
	w.Answer(func(c Call) (any, bool, error) { return nil, c.Method == method, err })
}

// Calls returns the requests of some methods so far.
func (w *Wallet) Calls(methods ...string) (made []Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if slices.Contains(methods, c.Method) {
			made = append(made, c)
		}
	}
	return made
}

// Address returns the address of the chosen account.
func (w *Wallet) Address() common.Address {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.account != nil {
		return w.account.Address
	}
	return crypto.PubkeyToAddress(w.keys[0].PublicKey)
}

func (w *Wallet) key() *ecdsa.PrivateKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keys[0]
}

// request answers a request of the page.
func (w *Wallet) request(ctx context.Context, c Call) (any, error) {
	w.mu.Lock()
	w.calls = append(w.calls, c)
	answer := w.answer
	w.mu.Unlock()
	if answer != nil {
		if result, handled, err := answer(c); handled {
			return result, err
		}
	}
	return w.Perform(ctx, c)
}

// Perform carries out a request.
func (w *Wallet) Perform(ctx context.Context, c Call) (any, error) {
	switch c.Method {
	case "eth_requestAccounts", "eth_accounts":
		return []string{w.Address().Hex()}, nil
	case "eth_chainId":
		w.mu.Lock()
		defer w.mu.Unlock()
		return hexutil.EncodeUint64(w.chainID), nil
	case "wallet_switchEthereumChain", "wallet_addEthereumChain":
		return nil, w.switchChain(c)
	case "personal_sign":
		return w.signText(c)
	case "eth_signTypedData_v4":
		return w.signTyped(c)
	case "eth_sendTransaction":
		return w.sendTransaction(ctx, c)
	case "wallet_getCapabilities", "wallet_sendCalls", "wallet_getCallsStatus":
		return w.batch(ctx, c)
	}
	params := make([]any, len(c.Params))
	for i, p := range c.Params {
		params[i] = p
	}
	var result json.RawMessage
	err := w.node.CallContext(ctx, &result, c.Method, params...)
	var known rpc.Error
	if errors.As(err, &known) {
		err = &RPCError{known.ErrorCode(), known.Error()}
	}
	return result, err
}

func (w *Wallet) switchChain(c Call) error {
	var to struct{ ChainID hexutil.Uint64 }
	if err := param(c, 0, &to); err != nil {
		return err
	}
	w.SetChainID(uint64(to.ChainID))
	return nil
}

func (w *Wallet) signText(c Call) (any, error) {
	var text hexutil.Bytes
	if err := param(c, 0, &text); err != nil {
		return nil, err
	}
	return w.sign(accounts.TextHash(text))
}

func (w *Wallet) signTyped(c Call) (any, error) {
	var encoded string
	var typed apitypes.TypedData
	if err := param(c, 1, &encoded); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(encoded), &typed); err != nil {
		return nil, err
	}
	digest, _, err := apitypes.TypedDataAndHash(typed)
	if err != nil {
		return nil, err
	}
	return w.sign(digest)
}

// sign returns the account's signature of a digest.
func (w *Wallet) sign(digest []byte) (hexutil.Bytes, error) {
	signature, err := crypto.Sign(digest, w.key())
	if err != nil {
		return nil, err
	}
	signature[crypto.RecoveryIDOffset] += 27
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.account != nil {
		signature = w.account.Sign(signature)
	}
	return signature, nil
}

func (w *Wallet) sendTransaction(ctx context.Context, c Call) (any, error) {
	var tx struct {
		To    common.Address
		Data  hexutil.Bytes
		Nonce *hexutil.Uint64
	}
	if err := param(c, 0, &tx); err != nil {
		return nil, err
	}
	if tx.Nonce == nil {
		return w.Send(ctx, tx.To, tx.Data)
	}
	signed, err := w.chain.Sign(w.key(), uint64(*tx.Nonce), tx.To, tx.Data)
	if err != nil {
		return nil, err
	}
	return signed.Hash(), w.chain.SendSigned(ctx, signed)
}

// Send sends a transaction of the wallet's key. It goes to the pool without an RPC call, which returns before the
// account's next nonce counts it.
func (w *Wallet) Send(ctx context.Context, to common.Address, data []byte) (common.Hash, error) {
	return w.chain.Send(ctx, w.key(), to, data)
}

// batch answers the methods of EIP-5792 with the wallet's contract account. Its id of calls
// is the hash of the last transaction.
func (w *Wallet) batch(ctx context.Context, c Call) (any, error) {
	w.mu.Lock()
	account, chainID := w.account, w.chainID
	w.mu.Unlock()
	if account == nil || account.Execute == nil {
		return nil, errUnsupported
	}
	switch c.Method {
	case "wallet_getCapabilities":
		return map[string]any{hexutil.EncodeUint64(chainID): map[string]any{"atomic": map[string]string{"status": "supported"}}}, nil
	case "wallet_sendCalls":
		var batch struct {
			Calls []struct {
				To   common.Address
				Data hexutil.Bytes
			}
		}
		if err := param(c, 0, &batch); err != nil {
			return nil, err
		}
		var last common.Hash
		for _, call := range batch.Calls {
			var err error
			if last, err = w.Send(ctx, account.Address, account.Execute(call.To, call.Data)); err != nil {
				return nil, err
			}
		}
		return map[string]string{"id": last.Hex()}, nil
	}
	var id common.Hash
	if err := param(c, 0, &id); err != nil {
		return nil, err
	}
	receipt, err := ethclient.NewClient(w.node).TransactionReceipt(ctx, id)
	if errors.Is(err, ethereum.NotFound) {
		return map[string]any{"status": 100}, nil
	}
	if err != nil {
		return nil, err
	}
	status := 200
	if receipt.Status != types.ReceiptStatusSuccessful {
		status = 500
	}
	return map[string]any{"status": status, "receipts": []map[string]string{{"transactionHash": id.Hex()}}}, nil
}

// param decodes a parameter of a request.
func param(c Call, i int, into any) error {
	if i >= len(c.Params) {
		return &RPCError{-32602, fmt.Sprintf("%s has %d parameters", c.Method, len(c.Params))}
	}
	return json.Unmarshal(c.Params[i], into)
}
