package chain

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
)

// SafeState is the state of a hash that a contract's owners may sign.
type SafeState string

// The states of such a hash. A Safe executes its transactions in the order of their numbers. It uses a number once, and
// not by an execution that fails: that is reverted, and can be repeated.
const (
	SafeNone     SafeState = "none"     // the account is no contract
	SafeUnknown  SafeState = "unknown"  // the account is a contract, and what the hash signs is not known
	SafeWaiting  SafeState = "waiting"  // the Safe can still execute it
	SafeSettling SafeState = "settling" // the Safe has used its number, in a block that is not final or not read
	SafeUsed     SafeState = "used"     // the Safe has used its number, in a block that is final and read
	safeUnproved SafeState = "unproved" // the Safe has used its number, and the node lacks the state of final blocks
)

// SafeReport is the state of a hash, and the number of its transaction in the Safe unless that is unknown.
type SafeReport struct {
	State SafeState
	Nonce uint64
}

// MayBeTransaction reports whether the hash may be the hash of a transaction on the chain.
func (r SafeReport) MayBeTransaction() bool { return r.State == SafeNone || r.State == SafeUnknown }

// Numbers of a Safe's transactions that are compared with a hash.
const (
	safeNoncesBehind = 4096 // used since the hash was signed
	safeNoncesAhead  = 1024 // that wait for signatures
)

// Hashes of EIP-712 types in a Safe since version 1.3.0.
var (
	safeDomainType = crypto.Keccak256([]byte("EIP712Domain(uint256 chainId,address verifyingContract)"))
	safeTxType     = crypto.Keccak256([]byte("SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas," +
		"uint256 baseGas,uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)"))
	safeNonceCall = hexutil.Bytes(crypto.Keccak256([]byte("nonce()"))[:4])
)

// word is a word of the EVM.
const word = 32

// SafeTransactionHash returns the hash that owners of a Safe sign so that it makes a call. The call has no value, and
// repays no gas.
func SafeTransactionHash(chainID uint64, safe, to invoice.Address, data []byte, nonce uint64) invoice.Hash {
	return newSafeHasher(chainID, safe, to, data).hash(nonce)
}

// safeHasher hashes one call by a Safe with different numbers.
type safeHasher struct{ domain, call []byte }

func newSafeHasher(chainID uint64, safe, to invoice.Address, data []byte) safeHasher {
	domain := slices.Concat(safeDomainType, make([]byte, word), common.LeftPadBytes(safe[:], word))
	binary.BigEndian.PutUint64(domain[2*word-8:], chainID)
	call := slices.Concat(safeTxType, common.LeftPadBytes(to[:], word), make([]byte, word), crypto.Keccak256(data), make([]byte, 7*word))
	return safeHasher{crypto.Keccak256(domain), call}
}

func (h safeHasher) hash(nonce uint64) invoice.Hash {
	binary.BigEndian.PutUint64(h.call[len(h.call)-8:], nonce)
	return invoice.Hash(crypto.Keccak256([]byte{0x19, 0x01}, h.domain, crypto.Keccak256(h.call)))
}

// safeNonce returns the number of the Safe's transaction that sends a refund and has a hash. next is the number of the
// Safe's next transaction.
func safeNonce(chainID uint64, r invoice.RefundRecord, hash invoice.Hash, next uint64) (nonce uint64, ok bool) {
	tagged := common.FromHex(TaggedTransfer(r.To, r.Amount, r.Tag))
	for _, data := range [][]byte{tagged, tagged[:len(tagged)-word]} {
		h := newSafeHasher(chainID, r.From, r.Token, data)
		for nonce := next - min(next, safeNoncesBehind); nonce < next+safeNoncesAhead; nonce++ {
			if h.hash(nonce) == hash {
				return nonce, true
			}
		}
	}
	return 0, false
}

// SafeTransaction returns the state of a hash that was recorded for a refund and may be the hash of no transaction, by all
// nodes of the chain. through is the last final block up to which the chain is read. The hash is SafeUsed only if no
// answer contradicts that. The error is ErrUnavailable.
func (i *Inspector) SafeTransaction(ctx context.Context, r invoice.RefundRecord, hash invoice.Hash, through uint64) (SafeReport, error) {
	certain := []SafeState{SafeNone, safeUnproved, SafeUsed, SafeUnknown, SafeSettling, SafeWaiting}
	best := SafeReport{State: SafeNone}
	var mu sync.Mutex
	err := i.each(ctx, r.ChainKey, AccountTimeout, callsOfSafe, func(ctx context.Context, s Source, node BatchCaller) error {
		report, err := s.safeTransaction(ctx, node, r, hash, through)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if slices.Index(certain, report.State) > slices.Index(certain, best.State) {
			best = report
		}
		return nil
	})
	if best.State == safeUnproved {
		best.State = SafeUnknown
	}
	return best, err
}

// callsOfSafe is how many calls Source.safeTransaction makes.
const callsOfSafe = 3

// safeTransaction is SafeTransaction by one node.
func (s Source) safeTransaction(ctx context.Context, node BatchCaller, r invoice.RefundRecord, hash invoice.Hash, through uint64) (SafeReport, error) {
	var code, latest, final *hexutil.Bytes
	from := common.Address(r.From)
	call := map[string]any{"to": from, "data": safeNonceCall}
	batch := []rpc.BatchElem{
		{Method: "eth_getCode", Args: []any{from, "latest"}, Result: &code},
		{Method: "eth_call", Args: []any{call, "latest"}, Result: &latest},
		{Method: "eth_call", Args: []any{call, hexutil.Uint64(through)}, Result: &final},
	}
	if err := node.BatchCallContext(ctx, batch); err != nil {
		return SafeReport{}, err
	}
	if batch[0].Error != nil {
		return SafeReport{}, batch[0].Error
	}
	if code == nil {
		return SafeReport{}, errors.New("a node answered eth_getCode with null")
	}
	if hasKey(*code) {
		return SafeReport{State: SafeNone}, nil
	}
	next, ok := safeNext(batch[1].Error, latest)
	if !ok {
		return SafeReport{State: SafeUnknown}, nil
	}
	nonce, ok := safeNonce(s.Chain.ID, r, hash, next)
	if !ok {
		return SafeReport{State: SafeUnknown}, nil
	}
	report := SafeReport{SafeWaiting, nonce}
	if next > nonce {
		report.State = SafeSettling
		switch next, ok := safeNext(batch[2].Error, final); {
		case !ok:
			report.State = safeUnproved
		case next > nonce:
			report.State = SafeUsed
		}
	}
	return report, nil
}

// safeNext returns the number of a Safe's next transaction, which nonce() answered; ok is false for any other answer.
func safeNext(err error, answer *hexutil.Bytes) (next uint64, ok bool) {
	if err != nil || answer == nil || len(*answer) != word || !bytes.Equal((*answer)[:word-5], make([]byte, word-5)) {
		return 0, false
	}
	return binary.BigEndian.Uint64((*answer)[word-8:]), true
}

// hasKey reports whether an account with some code has a key: without code, or with one that it delegates to (EIP-7702).
func hasKey(code []byte) bool { return len(code) == 0 || bytes.HasPrefix(code, types.DelegationPrefix) }
