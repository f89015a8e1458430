package chain

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
)

// Topics of a deposit factory's events.
var (
	sweptTopic       = crypto.Keccak256Hash([]byte("Swept(address,address,address,uint256)"))
	sweepFailedTopic = crypto.Keccak256Hash([]byte("SweepFailed(address,address)"))
)

// PackSweeps returns the calldata with which a deposit factory sweeps deposits.
func PackSweeps(sweeps []contracts.Sweep) []byte {
	return contracts.NewDepositFactory().PackSweep(sweeps)
}

// SweepEvent is an event of a deposit factory.
type SweepEvent struct {
	Deposit invoice.Address
	Token   invoice.Address // zero for the network's coin
	Amount  *big.Int        // zero for a failure
	Failed  bool
}

// SweepEvents returns the events of a deposit factory in a receipt. It skips other logs, and malformed ones.
func SweepEvents(factory invoice.Address, r *Receipt) []SweepEvent {
	var events []SweepEvent
	for _, l := range r.Logs {
		if l.Address != common.Address(factory) || len(l.Topics) < 3 {
			continue
		}
		e := SweepEvent{
			Deposit: invoice.Address(common.BytesToAddress(l.Topics[1][:])), Token: invoice.Address(common.BytesToAddress(l.Topics[2][:])),
			Amount: new(big.Int),
		}
		switch {
		case l.Topics[0] == sweptTopic && len(l.Topics) == 4 && len(l.Data) == 32:
			e.Amount.SetBytes(l.Data)
		case l.Topics[0] == sweepFailedTopic && len(l.Topics) == 3:
			e.Failed = true
		default:
			continue
		}
		events = append(events, e)
	}
	return events
}

// SweepTx is a transaction that sweeps deposits. Any account can send it.
type SweepTx struct {
	RPC     string            // URL of a node
	Key     *ecdsa.PrivateKey // of the account that pays for the gas
	ChainID uint64            // the node must serve this chain; 0 for any
	Factory invoice.Address
	Sweeps  []contracts.Sweep
}

// SentSweeps is the result of a transaction that sweeps deposits.
type SentSweeps struct {
	TxHash common.Hash
	Swept  int // number of deposits; the others were empty
}

// SendSweeps sends a transaction that sweeps deposits, and waits until it was mined. It fails if one of the deposits
// was not swept, even though the others were. If it fails after the transaction was sent, the error names the
// transaction.
func SendSweeps(ctx context.Context, t SweepTx) (SentSweeps, error) {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	client, done, err := Dial(t.RPC)
	if err != nil {
		return SentSweeps{}, fmt.Errorf("reach the node: %w", err)
	}
	defer done()
	id, err := client.ChainID(ctx)
	if err != nil {
		return SentSweeps{}, fmt.Errorf("ask the node for its chain id: %w", sanitize(err))
	}
	if t.ChainID != 0 && id.Cmp(new(big.Int).SetUint64(t.ChainID)) != 0 {
		return SentSweeps{}, fmt.Errorf("the node serves the chain with id %s, and the invoices are on %d", id, t.ChainID)
	}
	opts := bind.NewKeyedTransactor(t.Key, id)
	opts.Context = ctx
	to, data := common.Address(t.Factory), PackSweeps(t.Sweeps)
	gas, err := client.EstimateGas(ctx, ethereum.CallMsg{From: opts.From, To: &to, Data: data})
	opts.GasLimit = gas + gas/4 // an estimate is the least accepted gas: too little for many new merchants
	var tx *types.Transaction
	if err == nil {
		tx, err = bind.Transact(contracts.NewDepositFactory().Instance(client, to), opts, data)
	}
	if err != nil {
		if has, balanceErr := client.BalanceAt(ctx, opts.From, nil); balanceErr == nil && has.Sign() == 0 {
			return SentSweeps{}, fmt.Errorf("the account %s has no coin for the gas on chain %s", opts.From, id)
		}
		return SentSweeps{}, fmt.Errorf("from the account %s on chain %s: %w", opts.From, id, sanitize(err))
	}
	receipt, err := bind.WaitMined(ctx, client, tx.Hash())
	if err != nil {
		return SentSweeps{}, fmt.Errorf("wait for transaction %s: %w", tx.Hash(), sanitize(err))
	}
	if receipt.Status != types.ReceiptStatusSuccessful {
		return SentSweeps{}, fmt.Errorf("transaction %s was mined and failed", tx.Hash())
	}
	sent := SentSweeps{TxHash: tx.Hash()}
	for _, e := range SweepEvents(t.Factory, &Receipt{Logs: logsOf(receipt)}) {
		if e.Failed {
			return SentSweeps{}, fmt.Errorf("transaction %s did not sweep %s: the token or the merchant's address refused the transfer", tx.Hash(), Checksum(e.Deposit))
		}
		sent.Swept++
	}
	return sent, nil
}

// logsOf returns the logs of a receipt.
func logsOf(r *types.Receipt) Logs {
	logs := make(Logs, len(r.Logs))
	for i, l := range r.Logs {
		logs[i] = *l
	}
	return logs
}
