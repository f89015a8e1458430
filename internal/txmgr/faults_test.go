package txmgr

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
)

var errCut = errors.New("connection reset")

// cut makes calls of a method fail before they reach the node.
func (f *faults) cut(method string) {
	f.before = func(called string, _ []any) error {
		if called == method {
			return errCut
		}
		return nil
	}
}

func TestLostBroadcastIsRepeated(t *testing.T) {
	for name, injectFault := range map[string]func(*faults){
		"request lost": func(f *faults) { f.cut(sendRaw) },
		"answer lost": func(f *faults) {
			f.after = func(method string) error {
				if method == sendRaw {
					return errCut
				}
				return nil
			}
		},
		"request swallowed": func(f *faults) { // the node answers that it has the transaction, and drops it
			f.before = func(method string, _ []any) error {
				if method == sendRaw {
					return answer("already known")
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := onSQLite(t)
			writer := w.writer()
			w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
			injectFault(w.net)
			wanted := errCut
			switch name {
			case "answer lost":
				wanted = nil // the node has the transaction
			case "request swallowed":
				wanted = answer("already known")
			}
			if err := writer.tick(w.ctx); !errors.Is(err, wanted) {
				t.Fatal(err)
			}
			w.net.before, w.net.after = nil, nil
			w.clock.Add(rebroadcastAfter - 1)
			if err := writer.tick(w.ctx); !errors.Is(err, wanted) {
				t.Errorf("before it is repeated a round ends with %v, want what the broadcast did", err)
			}
			broadcasts := len(w.net.sent)
			w.clock.Add(1)
			w.tick(writer)
			if len(w.net.sent) != broadcasts+1 {
				t.Errorf("%d broadcasts after %s, want one more than %d", len(w.net.sent), rebroadcastAfter, broadcasts)
			}
			w.seal(1)
			w.tick(writer)
			if attempt := w.wantTxs(TxMined)[0].Attempts; len(attempt) != 1 {
				t.Errorf("%d attempts were signed, want 1", len(attempt))
			}
		})
	}
}

func TestRevertedTransactionIsSentInHalves(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(9)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.tick(writer)
	// The operator loses its role in the block with its transaction.
	deployer, operator := w.dev.Keys.Deployer, devchain.Address(w.dev.Keys.Operator)
	registry := contracts.NewInvoiceRegistry()
	role := crypto.Keccak256Hash([]byte("OPERATOR_ROLE"))
	revoke, err := w.dev.Sign(deployer, w.nonceOf(devchain.Address(deployer)), w.dev.Registry, registry.PackRevokeRole(role, operator))
	must(t, err)
	ours, err := decode(w.txs()[0].Attempts[0])
	must(t, err)
	must(t, w.dev.Fork(w.ctx, 0, []*types.Transaction{revoke, ours}))
	if err := writer.tick(w.ctx); !errors.Is(err, errRole) {
		t.Fatalf("a round without the role ends with %v", err)
	}
	w.wantTxs(TxFailed)
	w.wantDue(9)
	if writer.registry.batch != 4 {
		t.Errorf("next batch is %d, want 4, half of the 9 that were reverted", writer.registry.batch)
	}
	w.external(deployer, registry.PackGrantRole(role, operator))
	w.seal(1)
	w.clock.Add(blockerCheckEvery)
	for range 3 {
		w.tick(writer)
		w.seal(1)
	}
	w.tick(writer)
	w.wantStatus(statusOpen, ids...)
	w.wantTxs(TxFailed, TxMined, TxMined) // 4, and then the other 5
}

func TestOneBadCommitmentDoesNotHoldUpTheOthers(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(7)
	bad := ids[2]
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.net.before = func(method string, args []any) error {
		if method == "eth_estimateGas" {
			data := args[0].(map[string]any)["data"].(interface{ MarshalText() ([]byte, error) })
			text, err := data.MarshalText()
			if err == nil && strings.Contains(string(text), bad.String()[2:]) {
				return answer("execution reverted")
			}
		}
		return nil
	}
	refusals := 0
	for range 12 {
		var refused answer
		if err := writer.tick(w.ctx); errors.As(err, &refused) {
			refusals++
		} else {
			must(t, err)
		}
		w.seal(1)
	}
	w.wantStatus(statusNone, bad)
	w.wantStatus(statusOpen, append(append([]invoice.Hash{}, ids[:2]...), ids[3:]...)...)
	if refusals > 6 { // twice for each time that 7 can be halved
		t.Errorf("the bad commitment was tried %d times", refusals)
	}
	w.clock.Add(skipFor - 1)
	w.tick(writer)
	w.net.before = nil
	w.tick(writer)
	w.wantStatus(statusNone, bad)
	w.clock.Add(1)
	w.tick(writer)
	w.seal(1)
	w.wantStatus(statusOpen, ids...)
}

// answer is an error that a node returns.
type answer string

func (a answer) Error() string  { return string(a) }
func (a answer) ErrorCode() int { return -32000 }

// wantSameContents fails if transactions with one nonce that reached the node differ in content.
func (w *world) wantSameContents() {
	w.Helper()
	byNonce := make(map[uint64][]byte)
	for _, raw := range w.net.sent {
		tx := new(types.Transaction)
		must(w, tx.UnmarshalBinary(raw))
		if before, ok := byNonce[tx.Nonce()]; ok && !bytes.Equal(before, tx.Data()) {
			w.Fatalf("two different transactions with nonce %d were broadcast", tx.Nonce())
		}
		byNonce[tx.Nonce()] = tx.Data()
	}
}
