package commit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

var errCut = errors.New("connection reset")

// cut has calls of a method fail before they reach the node.
func (f *faults) cut(method string) {
	f.before = func(called string, _ []any) error {
		if called == method {
			return errCut
		}
		return nil
	}
}

func TestLostBroadcastIsRepeated(t *testing.T) {
	for name, spoil := range map[string]func(*faults){
		"request lost": func(f *faults) { f.cut(sendRaw) },
		"answer lost": func(f *faults) {
			f.after = func(method string) error {
				if method == sendRaw {
					return errCut
				}
				return nil
			}
		},
		"request swallowed": func(f *faults) { // the node says yes, and drops it
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
			w.intend(invoice.IntentOpen, commitments(1)...)
			spoil(w.net)
			if err := writer.turn(w.ctx); err != nil && !errors.Is(err, errCut) {
				t.Fatal(err)
			}
			w.net.before, w.net.after = nil, nil
			w.pass(rebroadcastAfter - 1)
			w.turn(writer)
			broadcasts := len(w.net.sent)
			w.pass(1)
			w.turn(writer)
			if len(w.net.sent) != broadcasts+1 {
				t.Errorf("%d broadcasts after %s, want one more than %d", len(w.net.sent), rebroadcastAfter, broadcasts)
			}
			w.seal(1)
			w.turn(writer)
			if form := w.wantTxs(store.TxMined)[0].Attempts; len(form) != 1 {
				t.Errorf("%d forms were signed, want 1", len(form))
			}
		})
	}
}

func TestBroadcastThatIsNoLongerWantedIsNoError(t *testing.T) {
	for _, text := range []string{"nonce too low", "replacement transaction underpriced"} {
		w := onSQLite(t)
		writer := w.writer()
		w.intend(invoice.IntentOpen, commitments(1)...)
		w.net.before = func(method string, _ []any) error {
			if method == sendRaw {
				return answer(text)
			}
			return nil
		}
		w.turn(writer)
		w.wantTxs(store.TxSent)
	}
}

func TestWriterThatDiedAfterSavingIsContinued(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ids := commitments(1)
		w.intend(invoice.IntentOpen, ids...)
		w.net.cut(sendRaw)
		if err := w.writer().turn(w.ctx); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		w.net.before = nil
		w.pass(DefaultLeaseTTL)
		next := w.writer()
		w.turn(next)
		w.seal(1)
		w.turn(next)
		w.wantTxs(store.TxMined)
		w.wantStatus(statusOpen, ids...)
	})
}

func TestReorgBringsTheSameBytesBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		writer := w.writer()
		ids := commitments(2)
		w.intend(invoice.IntentOpen, ids...)
		w.turn(writer)
		w.seal(1)
		w.index()
		w.turn(writer)
		w.wantTxs(store.TxMined)
		must(t, w.dev.Fork(w.ctx, 1, nil, nil))
		w.dev.DropPending()
		w.wantStatus(statusNone, ids...)
		w.turn(writer) // before the indexer has seen the reorg
		w.index()
		w.turn(writer)
		w.wantTxs(store.TxSent)
		w.seal(1)
		w.turn(writer)
		w.seal(finality)
		w.index()
		w.wantAllDone()
		if got := len(w.wantTxs(store.TxMined)[0].Attempts); got != 1 {
			t.Errorf("%d forms were signed, want the first alone", got)
		}
		w.wantSameContents()
		w.wantStatus(statusOpen, ids...)
	})
}

func TestRevertedTransactionIsSentInHalves(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(9)
	w.intend(invoice.IntentOpen, ids...)
	w.turn(writer)
	// The operator loses its role in the block that carries its transaction.
	deployer, operator := w.dev.Keys.Deployer, devchain.Address(w.dev.Keys.Operator)
	registry := contracts.NewInvoiceRegistry()
	role := crypto.Keccak256Hash([]byte("OPERATOR_ROLE"))
	revoke, err := w.dev.Sign(deployer, w.nonceOf(devchain.Address(deployer)), w.dev.Registry, registry.PackRevokeRole(role, operator))
	must(t, err)
	ours, err := decode(w.txs()[0].Attempts[0])
	must(t, err)
	must(t, w.dev.Fork(w.ctx, 0, []*types.Transaction{revoke, ours}))
	if err := writer.turn(w.ctx); !refused(err) {
		t.Fatalf("a round without the role ends with %v", err)
	}
	w.wantTxs(store.TxFailed)
	w.wantDue(9)
	if writer.batch != 2 {
		t.Errorf("next batch is %d, want 2: half of the 4 that the estimate refused, half of the 9 that were reverted", writer.batch)
	}
	w.external(deployer, registry.PackGrantRole(role, operator))
	w.seal(1)
	for range 4 {
		w.turn(writer)
		w.seal(1)
	}
	w.turn(writer)
	w.wantStatus(statusOpen, ids...)
	w.wantTxs(store.TxFailed, store.TxMined, store.TxMined, store.TxMined) // 2, 4 and the last 3
}

func TestOneBadCommitmentDoesNotHoldUpTheOthers(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(7)
	bad := ids[2]
	w.intend(invoice.IntentOpen, ids...)
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
		if err := writer.turn(w.ctx); refused(err) {
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
	w.pass(asideFor - 1)
	w.turn(writer)
	w.net.before = nil
	w.turn(writer)
	w.wantStatus(statusNone, bad)
	w.pass(1)
	w.turn(writer)
	w.seal(1)
	w.wantStatus(statusOpen, ids...)
}

func TestNonceUsedByAnotherProgram(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		writer := w.writer()
		ids := commitments(2)
		w.intend(invoice.IntentOpen, ids...)
		w.net.cut(sendRaw)
		if err := writer.turn(w.ctx); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil)) // takes the nonce
		w.seal(1)
		w.net.before = nil
		w.turn(writer)
		w.pass(lostAfter - 1)
		w.turn(writer)
		w.wantTxs(store.TxSent)
		w.pass(1)
		w.turn(writer)
		w.wantTxs(store.TxFailed)
		w.turn(writer)
		w.seal(1)
		w.turn(writer)
		w.wantTxs(store.TxFailed, store.TxMined)
		w.wantStatus(statusOpen, ids...)
	})
}

func TestNonceThatAReorgFreedIsUsedUp(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(2)
	w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil)) // another program's, lost for good
	w.seal(1)
	w.intend(invoice.IntentOpen, ids...)
	w.turn(writer)
	w.seal(1)
	w.turn(writer)
	must(t, w.dev.Fork(w.ctx, 2, nil, nil, nil))
	w.dev.DropPending()
	w.turn(writer)
	w.seal(1)
	w.turn(writer)
	w.wantTxs(store.TxMined, store.TxMined)
	w.wantStatus(statusOpen, ids...)
	if got := w.nonce(); got != 2 {
		t.Errorf("operator's nonce is %d, want 2", got)
	}
}

func TestFailedTransactionThatAReorgFreedIsTakenUpAgain(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(2)
	w.intend(invoice.IntentOpen, ids...)
	w.net.cut(sendRaw)
	if err := writer.turn(w.ctx); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil)) // takes the nonce
	w.seal(1)
	w.net.before = nil
	w.turn(writer)
	w.pass(lostAfter)
	w.turn(writer)
	w.wantTxs(store.TxFailed)
	must(t, w.dev.Fork(w.ctx, 1, nil))
	w.dev.DropPending()
	w.turn(writer)
	w.wantTxs(store.TxSent) // its nonce must be used before any other
	w.seal(1)
	w.turn(writer)
	w.turn(writer)
	w.wantTxs(store.TxMined)
	w.wantStatus(statusOpen, ids...)
	w.seal(finality)
	w.index()
	w.turn(writer)
	w.wantAllDone()
}

func TestUnfundedOperatorResumesWhenFunded(t *testing.T) {
	w := onSQLite(t)
	poor, err := crypto.GenerateKey()
	must(t, err)
	registry := contracts.NewInvoiceRegistry()
	role := crypto.Keccak256Hash([]byte("OPERATOR_ROLE"))
	w.external(w.dev.Keys.Deployer, registry.PackGrantRole(role, devchain.Address(poor)))
	w.seal(1)
	var log bytes.Buffer
	writer := w.writer(func(c *Config) { c.Key, c.Logger = poor, slog.New(slog.NewTextHandler(&log, nil)) })
	ids := commitments(1)
	w.intend(invoice.IntentOpen, ids...)
	for range 3 {
		writer.report(writer.turn(w.ctx))
	}
	if s := writer.Status(); !strings.Contains(s.Err, errFunds.Error()) || !s.Since.Equal(w.Now()) {
		t.Errorf("status is %+v, want it to say that funds are missing", s)
	}
	w.wantDue(1)
	w.fund(devchain.Address(poor))
	writer.report(writer.turn(w.ctx))
	w.seal(1)
	w.wantStatus(statusOpen, ids...)
	if s := writer.Status(); s.Err != "" {
		t.Errorf("status still says %q", s.Err)
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 1 {
		t.Errorf("%d warnings were logged, want 1:\n%s", got, &log)
	}
}

func TestFundsLostAfterSaving(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(1)
	w.intend(invoice.IntentOpen, ids...)
	w.net.before = func(method string, _ []any) error {
		if method == sendRaw {
			return answer("insufficient funds for gas * price + value: balance 1, tx cost 2")
		}
		return nil
	}
	for range 3 {
		if err := writer.turn(w.ctx); err != nil && !errors.Is(err, errFunds) {
			t.Fatal(err)
		}
		w.sealEmpty(bumpBlocks)
		w.pass(bumpAfter)
	}
	if got := len(w.wantTxs(store.TxSent)[0].Attempts); got != 1 {
		t.Errorf("%d forms were signed for a sender without funds, want 1", got)
	}
	w.net.before = nil
	w.turn(writer)
	w.seal(1)
	w.turn(writer)
	w.wantTxs(store.TxMined)
	w.wantStatus(statusOpen, ids...)
}

func TestOperatorKeyIsChanged(t *testing.T) {
	w := onSQLite(t)
	ids := commitments(2)
	w.intend(invoice.IntentOpen, ids...)
	w.net.cut(sendRaw)
	if err := w.writer().turn(w.ctx); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	w.net.before = nil
	other, err := crypto.GenerateKey()
	must(t, err)
	role := crypto.Keccak256Hash([]byte("OPERATOR_ROLE"))
	w.external(w.dev.Keys.Deployer, contracts.NewInvoiceRegistry().PackGrantRole(role, devchain.Address(other)))
	w.seal(1)
	w.fund(devchain.Address(other))
	w.pass(DefaultLeaseTTL)
	writer := w.writer(func(c *Config) { c.Key = other })
	w.turn(writer)
	w.pass(lostAfter)
	w.turn(writer)
	w.turn(writer)
	w.seal(1)
	w.wantTxs(store.TxFailed)
	w.wantStatus(statusOpen, ids...)
}

// answer is an error that a node answers.
type answer string

func (a answer) Error() string  { return string(a) }
func (a answer) ErrorCode() int { return -32000 }

// wantSameContents demands that all that reached the node under one nonce says
// the same.
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

// fund gives an account one ether.
func (w *world) fund(to common.Address) {
	w.Helper()
	payer := w.dev.Keys.Payer
	account := devchain.Address(payer)
	tx, err := types.SignNewTx(payer, types.LatestSignerForChainID(w.dev.ChainID()), &types.DynamicFeeTx{
		ChainID: w.dev.ChainID(), Nonce: w.nonceOf(account), GasTipCap: big.NewInt(params.GWei),
		GasFeeCap: big.NewInt(10 * params.GWei), Gas: 21_000, To: &to, Value: big.NewInt(params.Ether),
	})
	must(w, err)
	must(w, w.dev.Client().SendTransaction(context.Background(), tx))
	w.seal(1)
}
