package chain

import (
	"bytes"
	"cmp"
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
	safeRefused  SafeState = "refused"  // a node answered with an error when asked for the Safe's next number
)

// SafeReport is the state of a hash, and the number of its transaction in the Safe unless that is unknown.
type SafeReport struct {
	State SafeState
	Nonce uint64
	Spent bool // the state is SafeUnknown, and a node reports that the Safe has used Nonce
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

// SafeTransactionHash returns the hash that owners of a Safe sign so that it makes a call. The call has no value, and
// repays no gas.
func SafeTransactionHash(chainID uint64, safe, to invoice.Address, data []byte, nonce uint64) invoice.Hash {
	return newSafeHasher(chainID, safe, to, data).hash(nonce)
}

// safeHasher hashes one call by a Safe with different numbers.
type safeHasher struct{ domain, call []byte }

func newSafeHasher(chainID uint64, safe, to invoice.Address, data []byte) safeHasher {
	domain := slices.Concat(safeDomainType, make([]byte, wordLen), common.LeftPadBytes(safe[:], wordLen))
	binary.BigEndian.PutUint64(domain[2*wordLen-8:], chainID)
	call := slices.Concat(safeTxType, common.LeftPadBytes(to[:], wordLen), make([]byte, wordLen), crypto.Keccak256(data), make([]byte, 7*wordLen))
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
	for _, data := range [][]byte{tagged, tagged[:len(tagged)-wordLen]} {
		h := newSafeHasher(chainID, r.From, r.Token, data)
		for nonce := next - min(next, safeNoncesBehind); nonce < next+safeNoncesAhead; nonce++ {
			if h.hash(nonce) == hash {
				return nonce, true
			}
		}
	}
	return 0, false
}

// SafeAnswers is what the nodes of a chain report about a hash.
type SafeAnswers struct {
	Nodes   int // of the chain, also those that were not asked
	Reports []SafeReport
	Failed  bool // a node did not answer
}

// Judge returns the state of a hash by all nodes. noticed reports whether the service would have recorded the execution
// as the refund. The hash is SafeUsed only if that is so, each node that was asked answered, no answer contradicts, and
// two nodes report it, or the only one of the chain.
func (a SafeAnswers) Judge(noticed bool) SafeReport {
	certain := []SafeState{SafeNone, safeUnproved, SafeUsed, SafeUnknown, SafeSettling, SafeWaiting}
	best, used := SafeReport{State: SafeNone}, 0
	for _, r := range a.Reports {
		if slices.Index(certain, r.State) > slices.Index(certain, best.State) {
			best = r
		}
		if r.State == SafeUsed {
			used++
		}
	}
	if best.State == safeUnproved || best.State == SafeUsed && (!noticed || !proven(used, a.Nodes, !a.Failed)) {
		best.State, best.Spent = SafeUnknown, true
	}
	return best
}

// SafeTransaction returns what all nodes of the chain report about a hash that was recorded for a refund and may be the
// hash of no transaction. It is zero if none was recorded. through is the last final block up to which the chain is read,
// zero without one; its hash is zero if it is not known. The error is ErrUnavailable.
func (i *Inspector) SafeTransaction(ctx context.Context, r invoice.RefundRecord, hash invoice.Hash, through invoice.Header) (SafeAnswers, error) {
	q := &safeQuestion{refund: r, hash: hash, through: through, found: make(map[uint64]safeNumber)}
	q.answers.Nodes = i.nodes(r.ChainKey)
	all, err := i.each(ctx, r.ChainKey, AccountTimeout, 1, func(ctx context.Context, s Source, node BatchCaller) error {
		return q.collect(q.askCode(ctx, s, node))
	})
	q.answers.Failed = !all
	if err != nil || !q.code || hash.IsZero() {
		return q.answers, err
	}
	ask := func(calls int) error {
		q.answers.Reports = nil
		all, err := i.each(ctx, r.ChainKey, AccountTimeout, calls, func(ctx context.Context, s Source, node BatchCaller) error {
			return q.collect(q.askNonce(ctx, s, node))
		})
		q.answers.Failed = q.answers.Failed || !all
		return err
	}
	if err = ask(2); err == nil && q.refused {
		q.again = true
		err = ask(3)
	}
	return q.answers, err
}

// safeQuestion asks the nodes of a chain about a hash.
type safeQuestion struct {
	refund  invoice.RefundRecord
	hash    invoice.Hash
	through invoice.Header

	again bool // the nodes are asked a second time, since one refused the call

	mu             sync.Mutex
	code, contract bool // a node has code of the sender, or code without a key
	refused        bool // a node refused the call
	found          map[uint64]safeNumber
	answers        SafeAnswers
}

// safeNumber is the number that a hash has in a Safe, if it has one.
type safeNumber struct {
	nonce uint64
	ok    bool
}

// collect adds a node's report.
func (q *safeQuestion) collect(report SafeReport, err error) error {
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answers.Reports = append(q.answers.Reports, report)
	return nil
}

// askCode asks a node for the sender's code. Without code, a Safe's hash is for a Safe that is not deployed yet.
func (q *safeQuestion) askCode(ctx context.Context, s Source, node BatchCaller) (SafeReport, error) {
	var code *hexutil.Bytes
	if err := callNode(ctx, node, &code, "eth_getCode", common.Address(q.refund.From), "latest"); err != nil {
		return SafeReport{}, err
	}
	if code == nil {
		return SafeReport{}, errors.New("a node answered eth_getCode with null")
	}
	if len(*code) == 0 {
		if n := q.number(s.Chain.ID, 0); n.ok {
			return SafeReport{State: SafeWaiting, Nonce: n.nonce}, nil
		}
		return SafeReport{State: SafeNone}, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.code = true
	if hasKey(*code) {
		return SafeReport{State: SafeNone}, nil
	}
	q.contract = true
	return SafeReport{State: SafeUnknown}, nil
}

// askNonce asks a node for the number of the Safe's next transaction, and for the one at the block through if the former
// is not enough. Nodes use any code and text if a contract refuses a call, and for failures of their own. So an error is
// the contract's answer only if the node then answers another call, and refuses this one again.
func (q *safeQuestion) askNonce(ctx context.Context, s Source, node BatchCaller) (SafeReport, error) {
	if q.again {
		if err := q.checkCalls(ctx, node); err != nil {
			return SafeReport{}, err
		}
	}
	call := map[string]any{"to": common.Address(q.refund.From), "data": safeNonceCall}
	var latest *hexutil.Bytes
	err := callNode(ctx, node, &latest, "eth_call", call, "latest")
	if err != nil && !IsErrorAnswer(err) {
		return SafeReport{}, err
	}
	if err != nil && !q.again {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.refused = true
		return SafeReport{State: safeRefused}, nil
	}
	next, isSafe := safeNext(err, latest)
	n := q.number(s.Chain.ID, next)
	switch {
	case !n.ok && !q.contract:
		return SafeReport{State: SafeNone}, nil
	case !n.ok || !isSafe:
		return SafeReport{State: SafeUnknown}, nil
	case next <= n.nonce:
		return SafeReport{State: SafeWaiting, Nonce: n.nonce}, nil
	case q.through.Number == 0:
		return SafeReport{State: SafeSettling, Nonce: n.nonce}, nil
	}
	return q.askFinal(ctx, node, call, n.nonce)
}

// askFinal asks a node whether the Safe has used a number in the block through.
func (q *safeQuestion) askFinal(ctx context.Context, node BatchCaller, call map[string]any, nonce uint64) (SafeReport, error) {
	at := any(hexutil.Uint64(q.through.Number))
	if !q.through.Hash.IsZero() { // so that a node on another fork refuses (EIP-1898)
		at = map[string]any{"blockHash": common.Hash(q.through.Hash), "requireCanonical": true}
	}
	var final *hexutil.Bytes
	err := callNode(ctx, node, &final, "eth_call", call, at)
	if err != nil && !IsErrorAnswer(err) {
		return SafeReport{}, err
	}
	switch next, ok := safeNext(err, final); {
	case !ok:
		return SafeReport{State: safeUnproved, Nonce: nonce}, nil
	case next > nonce:
		return SafeReport{State: SafeUsed, Nonce: nonce}, nil
	}
	return SafeReport{State: SafeSettling, Nonce: nonce}, nil
}

// number returns the number of the hash in the Safe. next is the number of the Safe's next transaction.
func (q *safeQuestion) number(chainID, next uint64) safeNumber {
	if q.hash.IsZero() {
		return safeNumber{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n, known := q.found[next]
	if !known {
		n.nonce, n.ok = safeNonce(chainID, q.refund, q.hash, next)
		q.found[next] = n
	}
	return n
}

// callNode makes one call. A batch of several fails as a whole if one call is refused.
func callNode(ctx context.Context, node BatchCaller, result any, method string, args ...any) error {
	batch := []rpc.BatchElem{{Method: method, Args: args, Result: result}}
	err := node.BatchCallContext(ctx, batch)
	return cmp.Or(err, batch[0].Error)
}

// checkCalls returns an error unless a node answers a call that no contract refuses: of the token's decimals, which were
// read before the node was used.
func (q *safeQuestion) checkCalls(ctx context.Context, node BatchCaller) error {
	var decimals *hexutil.Bytes
	call := map[string]any{"to": common.Address(q.refund.Token), "data": decimalsCall}
	err := callNode(ctx, node, &decimals, "eth_call", call, "latest")
	if err == nil && (decimals == nil || len(*decimals) != wordLen) {
		return errors.New("a node did not answer a call of the token's decimals")
	}
	return err
}

// safeNext returns the number of a Safe's next transaction, which nonce() answered; ok is false for any other answer.
func safeNext(err error, answer *hexutil.Bytes) (next uint64, ok bool) {
	if err != nil || answer == nil || len(*answer) != wordLen || !bytes.Equal((*answer)[:wordLen-5], make([]byte, wordLen-5)) {
		return 0, false
	}
	return binary.BigEndian.Uint64((*answer)[wordLen-8:]), true
}

// hasKey reports whether an account with some code has a key: without code, or with one that it delegates to (EIP-7702).
func hasKey(code []byte) bool { return len(code) == 0 || bytes.HasPrefix(code, types.DelegationPrefix) }
