package devchain

import (
	"crypto/ecdsa"
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/google/go-cmp/cmp"
	"github.com/holiman/uint256"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/expect"
)

// pair is our chain and an anvil that executes the same transactions in the same blocks.
type pair struct {
	*testing.T
	c           *Chain
	ours, anvil *rpc.Client
	nonces      map[*ecdsa.PrivateKey]uint64
}

// newPair starts both chains. Anvil gets our accounts and the transactions of our first block.
func newPair(t *testing.T) *pair {
	t.Helper()
	at := time.Now().Add(time.Hour).Truncate(time.Second) // after the first block of anvil, which has the time of its start
	c := start(t, Config{Now: func() time.Time { return at }})
	node := anviltest.Start(t, anviltest.Options{ChainID: int(ChainID)})
	p := &pair{T: t, c: c, ours: dial(t, c.RPCURL()).Client(), anvil: dial(t, node.URL()).Client(), nonces: map[*ecdsa.PrivateKey]uint64{}}
	p.order("evm_setAutomine", false)
	p.order("evm_setBlockGasLimit", hexutil.Uint64(c.head().GasLimit))
	p.order("anvil_setCoinbase", c.head().Coinbase)
	for _, key := range c.Keys.all() {
		p.order("anvil_setBalance", Address(key), (*hexutil.Big)(new(big.Int).Mul(big.NewInt(accountEther), big.NewInt(params.Ether))))
	}
	first := c.node.blocks.GetBlockByNumber(1)
	p.order("anvil_setNextBlockBaseFeePerGas", (*hexutil.Big)(first.BaseFee())) // anvil computes the later ones
	for _, tx := range first.Transactions() {
		p.order("eth_sendRawTransaction", p.encode(tx))
	}
	p.mineAnvil(first.Time())
	p.nonces[c.Keys.Deployer] = uint64(first.Transactions().Len())
	return p
}

// order calls a method of anvil.
func (p *pair) order(method string, args ...any) {
	p.Helper()
	if err := p.anvil.CallContext(p.Context(), nil, method, args...); err != nil {
		p.Fatalf("anvil's %s: %v", method, err)
	}
}

func (p *pair) mineAnvil(timestamp uint64) {
	p.Helper()
	p.order("evm_setNextBlockTimestamp", timestamp)
	p.order("evm_mine")
}

// seal seals a block on both chains.
func (p *pair) seal() {
	p.Helper()
	at := p.c.head().Time + 2
	expect.OK(p, p.c.SealAt(p.Context(), time.Unix(int64(at), 0)))
	p.mineAnvil(at)
}

func (p *pair) encode(tx *types.Transaction) hexutil.Bytes {
	p.Helper()
	raw, err := tx.MarshalBinary()
	expect.OK(p, err)
	return raw
}

// sign signs a transaction with the next nonce of its sender.
func (p *pair) sign(from *ecdsa.PrivateKey, tx func(nonce uint64) types.TxData) *types.Transaction {
	p.Helper()
	signed := expect.Must(types.SignNewTx(from, types.LatestSignerForChainID(p.c.ChainID()), tx(p.nonces[from])))
	return signed
}

// send sends a transaction to both chains, which must accept it.
func (p *pair) send(from *ecdsa.PrivateKey, tx func(nonce uint64) types.TxData) {
	p.Helper()
	raw := p.encode(p.sign(from, tx))
	for _, client := range []*rpc.Client{p.ours, p.anvil} {
		if err := client.CallContext(p.Context(), nil, "eth_sendRawTransaction", raw); err != nil {
			p.Fatalf("eth_sendRawTransaction: %v", err)
		}
	}
	p.nonces[from]++
}

// call sends a call of a contract, with a tip in gwei. anvil orders transactions by their highest price, and geth by the
// tip, so the highest price grows with the tip.
func (p *pair) call(from *ecdsa.PrivateKey, to *common.Address, gas uint64, tip int64, data []byte) {
	p.Helper()
	p.send(from, func(nonce uint64) types.TxData {
		return &types.DynamicFeeTx{ChainID: p.c.ChainID(), Nonce: nonce, To: to, Gas: gas, Data: data,
			GasTipCap: big.NewInt(tip * params.GWei), GasFeeCap: big.NewInt((tip + 2) * params.GWei)}
	})
}

// ask calls a method of both chains.
func (p *pair) ask(method string, args ...any) (ours, anvil any, ourErr, anvilErr error) {
	p.Helper()
	ourErr = p.ours.CallContext(p.Context(), &ours, method, args...)
	anvilErr = p.anvil.CallContext(p.Context(), &anvil, method, args...)
	return ours, anvil, ourErr, anvilErr
}

// same fails the test unless both chains give the same answer, apart from the members except, and except for members
// that only our chain has.
func (p *pair) same(except []string, method string, args ...any) {
	p.Helper()
	ours, anvil, ourErr, anvilErr := p.ask(method, args...)
	if ourErr != nil || anvilErr != nil {
		p.Errorf("%s%v: the errors are %v and %v", method, args, ourErr, anvilErr)
		return
	}
	if diff := cmp.Diff(reduce(anvil, anvil, except), reduce(ours, anvil, except)); diff != "" {
		p.Errorf("%s%v: anvil's answer (-) and ours (+):\n%s", method, args, diff)
	}
}

// reduce returns an answer without the members except, and without those that the model lacks.
func reduce(answer, model any, except []string) any {
	switch answer := answer.(type) {
	case map[string]any:
		of, _ := model.(map[string]any)
		left := map[string]any{}
		for name, value := range answer {
			if modelValue, ok := of[name]; ok && !slices.Contains(except, name) {
				left[name] = reduce(value, modelValue, except)
			}
		}
		return left
	case []any:
		of, _ := model.([]any)
		left := make([]any, len(answer))
		for i, value := range answer {
			if i < len(of) {
				value = reduce(value, of[i], except)
			}
			left[i] = value
		}
		return left
	}
	return answer
}

// differs are the members that differ because the blocks before do: the hashes of blocks and of states, what the chains
// draw at random, and what they write into a block about themselves.
var differs = []string{"blockHash", "hash", "parentHash", "stateRoot", "mixHash", "extraData", "size", "parentBeaconBlockRoot", "withdrawals",
	"totalDifficulty"} // which the specification no longer has

// differsInTx and differsInReceipt are the members of transactions and receipts that differ. anvil has the price of blobs
// and the time, as a number, in every receipt; the specification does not.
var (
	differsInTx      = []string{"blockHash"}
	differsInReceipt = []string{"blockHash", "blobGasPrice", "blockTimestamp"}
)

// selfDestructing is a contract that stores a word when it is created, and that a call destroys.
var selfDestructing = common.FromHex("60016000556002600a60003960026000f3" + "33ff")

// history sends transactions of every type, successful and failing, to both chains, in several blocks.
func (p *pair) history() {
	p.Helper()
	keys, token := p.c.Keys, contracts.NewTestUSDC()
	merchant := Address(keys.Merchant)
	transfer := token.PackTransfer(merchant, big.NewInt(5))

	// Block 2: an ordinary transfer, one that runs out of gas, and one without enough tokens.
	p.call(keys.Payer, &p.c.Token, callGas, 3, append(transfer, "trailing"...))
	p.call(keys.Payer, &p.c.Token, 30_000, 3, transfer)
	p.call(keys.Merchant, &p.c.Token, callGas, 2, token.PackTransfer(merchant, big.NewInt(1e9)))
	p.seal()

	// Block 3: an invoice is opened and paid; an approval is given and taken back, which refunds gas.
	terms := contracts.Terms{Merchant: merchant, Token: p.c.Token, Amount: big.NewInt(7),
		ExpiresAt: p.c.head().Time + 3600, Salt: contracts.Salt("a")}
	registry := contracts.NewInvoiceRegistry()
	p.call(keys.Operator, &p.c.Registry, callGas, 4, registry.PackOpen([][32]byte{terms.ID(p.c.ChainID(), p.c.Registry)}))
	p.call(keys.Payer, &p.c.Token, callGas, 3, token.PackApprove(p.c.Registry, big.NewInt(14)))
	p.call(keys.Payer, &p.c.Registry, callGas, 3, registry.PackPay(terms))
	p.call(keys.Payer, &p.c.Registry, callGas, 3, registry.PackPay(terms)) // paid already
	p.call(keys.Payer, &p.c.Token, callGas, 3, token.PackApprove(p.c.Registry, common.Big0))
	p.seal()

	// Block 4: the older types of transactions, and the creation and destruction of a contract.
	p.send(keys.Operator, func(nonce uint64) types.TxData {
		return &types.LegacyTx{Nonce: nonce, To: &common.Address{19: 0x77}, Gas: callGas, GasPrice: big.NewInt(9 * params.GWei), Value: big.NewInt(12)}
	})
	p.send(keys.Payer, func(nonce uint64) types.TxData {
		return &types.AccessListTx{ChainID: p.c.ChainID(), Nonce: nonce, To: &p.c.Token, Gas: callGas,
			GasPrice: big.NewInt(8 * params.GWei), Data: transfer,
			AccessList: types.AccessList{{Address: p.c.Token, StorageKeys: []common.Hash{{31: 1}}}}}
	})
	p.call(keys.Merchant, nil, callGas, 5, selfDestructing)
	p.seal()
	p.seal() // an empty block

	// Block 6: an account delegates to the token, and a created contract is destroyed.
	delegation := expect.Must(types.SignSetCode(keys.Merchant, types.SetCodeAuthorization{
		ChainID: *uint256.MustFromBig(p.c.ChainID()), Address: p.c.Token, Nonce: p.nonces[keys.Merchant]}))
	p.send(keys.Payer, func(nonce uint64) types.TxData {
		return &types.SetCodeTx{ChainID: uint256.MustFromBig(p.c.ChainID()), Nonce: nonce, To: merchant, Gas: callGas,
			GasTipCap: uint256.NewInt(params.GWei), GasFeeCap: uint256.NewInt(3 * params.GWei), AuthList: []types.SetCodeAuthorization{delegation}}
	})
	created := p.created()
	p.call(keys.Operator, &created, callGas, 6, nil)
	p.seal()
}

// created returns the address of the contract in block 4.
func (p *pair) created() common.Address {
	p.Helper()
	receipts := p.c.node.blocks.GetReceiptsByHash(p.c.node.blocks.GetHeaderByNumber(4).Hash())
	for _, receipt := range receipts {
		if receipt.ContractAddress != (common.Address{}) {
			return receipt.ContractAddress
		}
	}
	p.Fatal("block 4 has created no contract")
	return common.Address{}
}

// TestExtraAnswersAsAnvil compares blocks, transactions, receipts, logs, states and fees with anvil, another implementation.
func TestExtraAnswersAsAnvil(t *testing.T) {
	p := newPair(t)
	p.history()
	accounts := []common.Address{Address(p.c.Keys.Payer), Address(p.c.Keys.Merchant), Address(p.c.Keys.Deployer), p.c.Token, {19: 0x77}}
	for number := range p.c.head().Number.Uint64() {
		tag := hexutil.EncodeUint64(number + 1)
		p.same(differs, "eth_getBlockByNumber", tag, false)
		p.same(differsInReceipt, "eth_getBlockReceipts", tag)
		p.same(differsInTx, "eth_getLogs", map[string]any{"fromBlock": tag, "toBlock": tag})
		for _, tx := range p.c.node.blocks.GetBlockByNumber(number + 1).Transactions() {
			p.same(differsInTx, "eth_getTransactionByHash", tx.Hash())
			p.same(differsInReceipt, "eth_getTransactionReceipt", tx.Hash())
		}
		for _, account := range accounts {
			p.same(nil, "eth_getBalance", account, tag)
			p.same(nil, "eth_getTransactionCount", account, tag)
			p.same(nil, "eth_getCode", account, tag)
			p.same(nil, "eth_getStorageAt", account, "0x0", tag)
		}
	}
	p.same(nil, "eth_feeHistory", "0x4", "latest", []float64{10, 50, 90})
	for _, method := range []string{"eth_chainId", "eth_blockNumber", "net_version", "net_listening", "eth_syncing"} {
		p.same(nil, method)
	}
	p.same(nil, "web3_sha3", "0x1234")
	p.same(nil, "eth_getTransactionByHash", common.Hash{1})
	p.same(nil, "eth_getTransactionReceipt", common.Hash{1})
	p.same(nil, "eth_getBlockByNumber", "0xffff", true)
	p.same(nil, "eth_getBlockByHash", common.Hash{1}, true)
}

// TestExtraFindsLogsAsAnvil compares the answers to queries of logs.
func TestExtraFindsLogsAsAnvil(t *testing.T) {
	p := newPair(t)
	p.history()
	transfer := crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
	payer := common.BytesToHash(Address(p.c.Keys.Payer).Bytes())
	for _, query := range []map[string]any{
		{},
		{"address": p.c.Token},
		{"address": []any{p.c.Token, p.c.Registry}},
		{"address": common.Address{1}},
		{"topics": []any{transfer}},
		{"topics": []any{nil, payer}},
		{"topics": []any{[]any{transfer, contracts.PaidTopic}, nil, nil}},
		{"topics": []any{[]any{contracts.OpenedTopic, contracts.PaidTopic}}, "address": p.c.Registry},
		{"topics": []any{transfer, nil, nil, payer}},
		{"topics": []any{}, "address": []any{}},
	} {
		query["fromBlock"], query["toBlock"] = "earliest", "latest"
		p.same(differsInTx, "eth_getLogs", query)
		query["fromBlock"] = "0x3"
		query["toBlock"] = "0x4"
		p.same(differsInTx, "eth_getLogs", query)
	}
	p.same(differsInTx, "eth_getLogs", map[string]any{"fromBlock": "0x3"})
	p.same(differsInTx, "eth_getLogs", map[string]any{})
}

// failure returns JSON-RPC's code and data of an error.
func failure(err error) (code int, data any) {
	var coded rpc.Error
	if errors.As(err, &coded) {
		code = coded.ErrorCode()
	}
	var withData rpc.DataError
	if errors.As(err, &withData) {
		data = withData.ErrorData()
	}
	return code, data
}

// TestExtraCallsAsAnvil compares calls and estimates, those that a contract refuses too.
func TestExtraCallsAsAnvil(t *testing.T) {
	p := newPair(t)
	p.history()
	keys, token := p.c.Keys, contracts.NewTestUSDC()
	payer, merchant := Address(keys.Payer), Address(keys.Merchant)
	for name, args := range map[string]map[string]any{
		"balance":           {"to": p.c.Token, "data": hexutil.Bytes(token.PackBalanceOf(merchant))},
		"transfer":          {"from": payer, "to": p.c.Token, "input": hexutil.Bytes(token.PackTransfer(merchant, big.NewInt(9)))},
		"transfer with fee": {"from": payer, "to": p.c.Token, "input": hexutil.Bytes(token.PackTransfer(merchant, big.NewInt(9))), "maxFeePerGas": "0x2540be400"},
		"too much":          {"from": merchant, "to": p.c.Token, "data": hexutil.Bytes(token.PackTransfer(payer, big.NewInt(1e9)))},
		"not the operator":  {"from": payer, "to": p.c.Registry, "data": hexutil.Bytes(contracts.NewInvoiceRegistry().PackOpen([][32]byte{{1}}))},
		"coins":             {"from": payer, "to": merchant, "value": "0x5"},
		"creation":          {"from": payer, "data": hexutil.Bytes(selfDestructing)},
		"no contract":       {"to": common.Address{1, 2, 3}, "data": "0x1234"},
	} {
		ours, anvil, ourErr, anvilErr := p.ask("eth_call", args, "latest")
		ourCode, ourData := failure(ourErr)
		anvilCode, anvilData := failure(anvilErr)
		if ours != anvil || ourCode != anvilCode || ourData != anvilData {
			t.Errorf("%s: eth_call answers %v, %v (%d, %v); anvil answers %v, %v (%d, %v)",
				name, ours, ourErr, ourCode, ourData, anvil, anvilErr, anvilCode, anvilData)
		}
		ours, anvil, ourErr, anvilErr = p.ask("eth_estimateGas", args)
		ourCode, ourData = failure(ourErr)
		anvilCode, anvilData = failure(anvilErr)
		if ourCode != anvilCode || ourData != anvilData {
			t.Errorf("%s: eth_estimateGas fails with %v (%d, %v); anvil's with %v (%d, %v)",
				name, ourErr, ourCode, ourData, anvilErr, anvilCode, anvilData)
		}
		if ourErr != nil || anvilErr != nil {
			continue
		}
		our, theirs := hexutil.MustDecodeUint64(ours.(string)), hexutil.MustDecodeUint64(anvil.(string))
		if least := theirs - theirs/50; our < least || our > theirs+theirs/50 {
			t.Errorf("%s: eth_estimateGas answers %d, anvil %d", name, our, theirs)
		}
	}
}

// TestExtraRefusesAsAnvil has both chains refuse what is wrong.
func TestExtraRefusesAsAnvil(t *testing.T) {
	p := newPair(t)
	p.history()
	pay := func(change func(tx *types.DynamicFeeTx)) any {
		return p.encode(p.sign(p.c.Keys.Operator, func(nonce uint64) types.TxData {
			tx := &types.DynamicFeeTx{ChainID: p.c.ChainID(), Nonce: nonce, To: &p.c.Token, Gas: callGas,
				GasTipCap: common.Big1, GasFeeCap: big.NewInt(20 * params.GWei)}
			change(tx)
			return tx
		}))
	}
	tooMuch := new(big.Int).Mul(big.NewInt(2*accountEther), big.NewInt(params.Ether))
	for name, order := range map[string][]any{
		"nonce used before": {"eth_sendRawTransaction", pay(func(tx *types.DynamicFeeTx) { tx.Nonce-- })},
		"more than it has":  {"eth_sendRawTransaction", pay(func(tx *types.DynamicFeeTx) { tx.Value = tooMuch })},
		"too little gas":    {"eth_sendRawTransaction", pay(func(tx *types.DynamicFeeTx) { tx.Gas = 20_000 })},
		"tip above the fee": {"eth_sendRawTransaction", pay(func(tx *types.DynamicFeeTx) { tx.GasTipCap = big.NewInt(21 * params.GWei) })},
		"no transaction":    {"eth_sendRawTransaction", "0x1234"},
		"unknown method":    {"eth_x"},
		"hash and range":    {"eth_getLogs", map[string]any{"blockHash": common.Hash{1}, "toBlock": "0x3"}},
		"unknown block":     {"eth_getLogs", map[string]any{"blockHash": common.Hash{1}}},
		"state of no block": {"eth_getBalance", p.c.Token, "0xffff"},
		"call at no block":  {"eth_call", map[string]any{"to": p.c.Token}, "0xffff"},
		"invalid address":   {"eth_getCode", "0x12", "latest"},
	} {
		ours, anvil, ourErr, anvilErr := p.ask(order[0].(string), order[1:]...)
		if ourErr == nil || anvilErr == nil {
			t.Errorf("%s: the answer is %v, %v; anvil's is %v, %v", name, ours, ourErr, anvil, anvilErr)
		}
	}
}
