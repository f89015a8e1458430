package txmgr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// account returns the address of a contract account of a key, the call of its factory that deploys it, and a signer.
// The signatures name a deployer and a call, unless the deployer is zero. The account has 7 tokens.
func (w *world) account(deployer common.Address, call []byte) (factory, account common.Address, deploy []byte, sign func(contracts.Authorization) []byte) {
	w.Helper()
	owner, err := crypto.GenerateKey()
	must(w, err)
	factory = w.create(common.FromHex(hostile.SmartAccountFactoryMetaData.Bin))
	code := append(common.FromHex(hostile.SmartAccountMetaData.Bin), hostile.NewSmartAccount().PackConstructor(devchain.Address(owner))...)
	account = crypto.CreateAddress2(factory, [32]byte{}, crypto.Keccak256(code))
	deploy = hostile.NewSmartAccountFactory().PackDeploy(devchain.Address(owner))
	w.giveTokens(account, 7)
	return factory, account, deploy, func(a contracts.Authorization) []byte {
		to, data := deployer, call
		if to == (common.Address{}) {
			to, data = factory, deploy
		}
		wrapped, err := contracts.WrapSignature(to, data, append([]byte{0}, w.signed(a, owner)...))
		must(w, err)
		return wrapped
	}
}

// burner deploys a GasBurner, which accepts any signature for its 7 tokens, and returns a function that turns its
// burning on.
func (w *world) burner() (common.Address, func()) {
	w.Helper()
	at := w.create(common.FromHex(hostile.GasBurnerMetaData.Bin))
	w.giveTokens(at, 7)
	return at, func() { w.send(at, hostile.NewGasBurner().PackBurn(big.NewInt(6_000_000))) }
}

// send sends a call that is mined in the next block.
func (w *world) send(to common.Address, data []byte) {
	w.Helper()
	_, err := w.dev.Send(w.ctx, w.dev.Keys.Deployer, to, data)
	must(w, err)
	w.seal(1)
}

// gasOf returns the gas that the mined attempt of a transaction used.
func (w *world) gasOf(t ChainTx) uint64 {
	w.Helper()
	for _, a := range t.Attempts {
		if r, err := w.client.TransactionReceipt(w.ctx, common.Hash(a.TxHash)); err == nil {
			return r.GasUsed
		}
	}
	w.Fatalf("transaction %s is not mined", t.ID)
	return 0
}

// TestAccountWasDeployedMeanwhile has the account of an authorization deployed after the payer signed: before the
// writer sends the authorization, or in the block that carries it. Its factory burns all gas when it collides, and no
// other transfer suffers.
func TestAccountWasDeployedMeanwhile(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		parallelOnSQLite(t, func(t *testing.T, w *world) {
			writer := w.writer(w.gasless)
			factory, account, deploy, sign := w.account(common.Address{}, nil)
			a := w.accept(account, sign)
			w.send(factory, deploy)
			w.wantPaidWithin(writer, chain.MaxAuthorizationGas, a)
			expect.Equal(t, w.txs()[0].Destination, a.Token, "the transaction is to")
		})
	})
	t.Run("in the same block", func(t *testing.T) {
		parallelOnSQLite(t, func(t *testing.T, w *world) {
			writer := w.writer(w.gasless)
			factory, account, deploy, sign := w.account(common.Address{}, nil)
			a := w.accept(account, sign)
			w.tick(writer)
			ours, err := decode(w.txs()[0].Attempts[0])
			must(t, err)
			deployer := w.dev.Keys.Deployer
			first, err := w.dev.Sign(deployer, w.nonceOf(devchain.Address(deployer)), factory, deploy)
			must(t, err)
			must(t, w.dev.Fork(w.ctx, 0, []*types.Transaction{first, ours}))
			w.wantPaidWithin(writer, chain.MaxAuthorizationGas, a)
		})
	})
}

// wantPaidWithin makes the writer send authorizations and, in the end, an intent. The authorizations' transaction must
// not use more than this much gas.
func (w *world) wantPaidWithin(writer *Writer, most uint64, all ...ledger.Authorization) {
	w.Helper()
	w.tick(writer)
	w.seal(1)
	w.tick(writer)
	w.settled(writer)
	w.wantStates(ledger.AuthorizationPaid, all...)
	if used := w.gasOf(w.txs()[0]); used > most {
		w.Errorf("the authorizations' transaction used %d gas, want at most %d", used, most)
	}
	w.wantWriting(writer)
}

// wantWriting requires that the writer opens a commitment.
func (w *world) wantWriting(writer *Writer) {
	w.Helper()
	id := commitments(1)
	w.enqueueIntents(invoice.IntentOpen, id...)
	for range 4 {
		writer.report(writer.tick(w.ctx))
		w.seal(1)
	}
	w.wantStatus(statusOpen, id...)
}

// TestDeployerBurnsGas has authorizations name a deployer that burns gas. If the account exists, the authorization is
// paid without the deployer; if not, only this authorization is refused.
func TestDeployerBurnsGas(t *testing.T) {
	parallelOnSQLite(t, func(_ *testing.T, w *world) {
		writer := w.writer(w.gasless)
		burner, ignite := w.burner()
		ignite()
		deploys := hostile.NewGasBurner().PackDeploy()
		factory, account, deploy, sign := w.account(burner, deploys)
		w.send(factory, deploy)
		_, missing, _, signMissing := w.account(burner, deploys)
		paid, refused, other := w.accept(account, sign), w.accept(missing, signMissing), w.acceptOf(w.payer(7))
		w.wantPaidWithin(writer, 2*chain.MaxAuthorizationGas, paid, other)
		w.wantStates(ledger.AuthorizationRefused, refused)
	})
}

// TestAccountBurnsGasLater has an account start to burn gas after its authorization was accepted. If it does so before
// the authorization is sent, only this one is refused. If it does so later, the transaction costs no more than the
// stated limit, in a batch of one or among others.
func TestAccountBurnsGasLater(t *testing.T) {
	parallelOnSQLite(t, func(t *testing.T, w *world) {
		writer := w.writer(w.gasless)
		sign := func(contracts.Authorization) []byte { return []byte{1} }
		account, ignite := w.burner()
		burning, other := w.accept(account, sign), w.acceptOf(w.payer(7))
		ignite()
		w.wantPaidWithin(writer, chain.MaxAuthorizationGas, other)
		w.wantStates(ledger.AuthorizationRefused, burning)
		expect.Equal(t, w.stored(burning).Reason, invoice.RefusedGas, "the burning account is refused for")

		for _, others := range []int{0, 3} {
			account, _ := w.burner()
			burning := w.accept(account, sign)
			var all []ledger.Authorization
			for range others {
				all = append(all, w.acceptOf(w.payer(7)))
			}
			w.tick(writer)
			sent := w.txs()[len(w.txs())-1]
			ours, err := decode(sent.Attempts[0])
			must(t, err)
			deployer := w.dev.Keys.Deployer
			first, err := w.dev.Sign(deployer, w.nonceOf(devchain.Address(deployer)), account, hostile.NewGasBurner().PackBurn(new(big.Int)))
			must(t, err)
			must(t, w.dev.Fork(w.ctx, 0, []*types.Transaction{first, ours}))
			w.tick(writer)
			used := w.gasOf(sent)
			if most := uint64(chain.MaxAuthorizationGas * (1 + others)); used > most {
				t.Errorf("with %d others it used %d gas, want at most %d", others, used, most)
			}
			t.Logf("with %d others it used %d gas", others, used)
			w.settled(writer)
			w.wantStates(ledger.AuthorizationPaid, all...)
			w.wantStates(ledger.AuthorizationAccepted, burning)
			w.wantWriting(writer)
		}
	})
}

// TestTooMuchGasRefusesOneItem has nodes estimate 20,000,000 gas for each transaction with one particular item, for
// each kind of work. The others are carried out.
func TestTooMuchGasRefusesOneItem(t *testing.T) {
	for name, test := range map[string]struct {
		// begin makes three items, and returns what the calldata of the first contains.
		begin func(*world) []byte
		want  func(*testing.T, *world)
	}{
		"open": {func(w *world) []byte {
			ids := commitments(3)
			w.enqueueIntents(invoice.IntentOpen, ids...)
			return ids[0][:]
		}, func(_ *testing.T, w *world) { w.wantDue(1) }},
		"close": {func(w *world) []byte {
			ids := commitments(3)
			w.enqueueIntents(invoice.IntentClose, ids...)
			return ids[0][:]
		}, func(_ *testing.T, w *world) { w.wantDue(1) }},
		"sweep": {func(w *world) []byte {
			deposits := w.deposit("m", 5, 7, 11)
			inv, err := ledger.NewReader(w.store).Invoice(w.ctx, w.deposits.invoices[deposits[0]])
			must(w, err)
			return inv.CommitmentID[:]
		}, func(_ *testing.T, w *world) { w.wantBalance(w.settlementOf("m"), 18) }},
		"authorization": {func(w *world) []byte {
			bad := w.acceptOf(w.payer(7))
			w.acceptOf(w.payer(7))
			w.acceptOf(w.payer(7))
			return bad.Nonce[:]
		}, func(_ *testing.T, w *world) { w.wantMerchantHas(14) }},
		"deployment": {func(w *world) []byte {
			_, account, deploy, sign := w.account(common.Address{}, nil)
			w.accept(account, sign)
			w.acceptOf(w.payer(7))
			w.acceptOf(w.payer(7))
			return deploy
		}, func(_ *testing.T, w *world) { w.wantMerchantHas(14) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := onSQLite(t)
			bad := test.begin(w)
			node := &byzantine{Client: w.net, method: "eth_estimateGas", times: -1, mutate: func(answer any, args []any) bool {
				data, _ := args[0].(map[string]any)["data"].(hexutil.Bytes)
				own := args[0].(map[string]any)["to"] == crypto.PubkeyToAddress(w.operator.PublicKey)
				return !own && bytes.Contains(data, bad) && value(`"0x1312d00"`)(answer, args)
			}}
			writer := w.writer(w.gasless, w.sweeping(atOnce), func(c *Config) { c.Client = node })
			for range 12 {
				writer.report(writer.tick(w.ctx))
				w.seal(1)
				w.index()
			}
			test.want(t, w)
			w.wantWriting(writer)
			for _, tx := range w.txs() {
				if raw := tx.Attempts[0].Raw; bytes.Contains(raw, bad) {
					t.Errorf("transaction %s carries the item", tx.ID)
				}
			}
		})
	}
}

// TestRefusedTransactionIsReplaced begins with a stored transaction of each kind of work with a gas limit above the
// network's cap, as an earlier version signed it. A writer that sends no authorizations uses its nonce for a
// transaction that does nothing, carries its items out, and continues.
func TestRefusedTransactionIsReplaced(t *testing.T) {
	for name, begin := range map[string]func(*world) int{
		"open":          func(w *world) int { w.enqueueIntents(invoice.IntentOpen, commitments(3)...); return 1 },
		"close":         func(w *world) int { w.enqueueIntents(invoice.IntentClose, commitments(3)...); return 1 },
		"sweep":         func(w *world) int { w.deposit("m", 5, 7); return 2 },
		"authorization": func(w *world) int { w.acceptOf(w.payer(7)); w.acceptOf(w.payer(7)); return 0 },
		"deployment": func(w *world) int {
			_, account, _, sign := w.account(common.Address{}, nil)
			w.accept(account, sign)
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			parallelOnSQLite(t, func(t *testing.T, w *world) {
				former := w.writer(w.gasless, w.sweeping(atOnce))
				kind := begin(w)
				w.saveAboveCap(former, [...]work{former.works[0], former.registry, former.sweeps}[kind])
				must(t, former.release(w.ctx))

				writer := w.writer(w.sweeping(atOnce)) // gasless payments are off
				for range 6 {
					writer.report(writer.tick(w.ctx))
					w.seal(1)
					w.indexAuthorizations()
				}
				stuck := w.txs()[0]
				if stuck.Status != TxFailed || len(stuck.Attempts) != 2 || w.gasOf(stuck) != 21_000 {
					t.Fatalf("the transaction is %s with %d attempts", stuck.Status, len(stuck.Attempts))
				}
				w.wantWriting(writer)
				if kind == 0 {
					must(t, writer.release(w.ctx))
					writer = w.writer(w.gasless)
					w.clock.Add(retryAuthorization)
					w.tick(writer)
					w.seal(1)
					w.tick(writer)
				}
				w.settled(writer)
				w.settled(writer)
				w.wantAllDone()
				w.wantSameContents()
			})
		})
	}
}

// saveAboveCap stores a transaction for the due items of a kind of work, with twice the gas that the network accepts.
func (w *world) saveAboveCap(writer *Writer, k work) {
	w.Helper()
	w.seal(finality)
	w.indexAuthorizations()
	ok, err := w.store.AcquireWorkLease(w.ctx, writer.lease, w.clock.Now(), w.clock.Now().Add(DefaultLeaseTTL))
	if err != nil || !ok {
		w.Fatalf("no lease: %v", err)
	}
	b, err := k.next(w.ctx)
	must(w, err)
	if len(b.items) == 0 {
		w.Fatal("nothing is due")
	}
	attempt, err := writer.sign(w.nonce(), b.to, 2*chain.DefaultMaxTxGas, b.pack(len(b.items)), fees{big.NewInt(2e9), big.NewInt(1e9)})
	must(w, err)
	must(w, SaveChainTx(w.ctx, w.store, writer.lease, ChainTx{
		ID: w.ids.New(invoice.PrefixTx), ChainKey: chain.Local, Sender: writer.sender, Nonce: w.nonce(), Kind: b.kind,
		Destination: invoice.Address(b.to), Status: TxSent, CreatedAt: w.clock.Now(), Attempts: []TxAttempt{attempt},
	}, b.items))
}

// TestAcceptanceThatIsNotRecorded has a node take a transaction, while its answer or the record of it is lost, and drop
// the transaction. However late, the next attempt has the same content.
func TestAcceptanceThatIsNotRecorded(t *testing.T) {
	for _, answers := range []bool{true, false} {
		w, sent := onSQLite(t), false
		lost := func() error {
			if sent {
				return errInjected
			}
			return nil
		}
		writer := w.writer(func(c *Config) {
			c.Store, c.Leases = db.Intercepted(c.Store, func(transaction func() error) error {
				if err := lost(); err != nil {
					return err
				}
				return transaction()
			}), c.Store
		})
		w.net.before = func(string, []any) error { return lost() }
		w.net.after = func(method string) error {
			if sent = sent || method == sendRaw; !answers {
				return lost()
			}
			return nil
		}
		w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
		if err := writer.tick(w.ctx); !errors.Is(err, errInjected) || len(w.net.sent) != 1 {
			t.Fatalf("the first broadcast: %v, %d transactions", err, len(w.net.sent))
		}
		sent, w.net.before, w.net.after = false, nil, nil
		w.dev.DropPending()
		w.sealEmpty(bumpBlocks)
		w.clock.Add(2 * harmlessAfter)
		w.tick(writer)
		if w.wantSameContents(); len(w.net.sent) < 2 {
			t.Error("it was not broadcast again")
		}
	}
}

// TestTransactionThatNoNodeTakes has nodes refuse transactions to the registry, for no reason that the writer knows.
// After harmlessAfter another transaction uses the nonce, and the items are sent again.
func TestTransactionThatNoNodeTakes(t *testing.T) {
	parallelOnSQLite(t, func(t *testing.T, w *world) { testTransactionThatNoNodeTakes(t, w, answer("no")) })
	t.Run("too large for a proxy", func(t *testing.T) {
		testTransactionThatNoNodeTakes(t, onSQLite(t), rpc.HTTPError{StatusCode: 413, Status: "413 Content Too Large"})
	})
}

func testTransactionThatNoNodeTakes(t *testing.T, w *world, refusal error) {
	writer := w.writer(w.gasless)
	ids := commitments(3)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.net.before = func(method string, args []any) error {
		tx := new(types.Transaction)
		if method == sendRaw && tx.UnmarshalBinary(rawOf(args)) == nil && *tx.To() == w.registry {
			return refusal
		}
		return nil
	}
	a := w.acceptOf(w.payer(7))
	w.tick(writer) // the authorization goes first
	w.seal(1)
	for range harmlessAfter/rebroadcastAfter + 3 {
		writer.report(writer.tick(w.ctx))
		w.clock.Add(rebroadcastAfter)
	}
	if all := w.txs()[1].Attempts; len(all) != 2 || all[1].CreatedAt.Sub(all[0].CreatedAt) < harmlessAfter {
		t.Errorf("the attempts are %+v, want a second one after %s", all, harmlessAfter)
	}
	w.seal(1)
	w.net.before = nil
	w.tick(writer)
	w.seal(1)
	w.tick(writer)
	w.wantStatus(statusOpen, ids[0])
	if stuck := w.txs()[1]; stuck.Status != TxFailed || w.gasOf(stuck) != 21_000 {
		t.Errorf("the transaction that no node took is %s", stuck.Status)
	}
	w.wantWriting(writer)
	w.settled(writer)
	w.wantStates(ledger.AuthorizationPaid, a)
}

// scripted answers calls by their method; a method without an answer fails.
type scripted map[string]string

func (s scripted) CallContext(_ context.Context, result any, method string, _ ...any) error {
	answer, ok := s[method]
	if !ok {
		return errors.New("502 Bad Gateway")
	}
	return json.Unmarshal([]byte(answer), result)
}

func (s scripted) BatchCallContext(context.Context, []rpc.BatchElem) error {
	return errors.New("no batches")
}

// TestTip computes the usual tip from fee histories in nodes' notation, and uses the node's suggestion without a
// history.
func TestTip(t *testing.T) {
	for history, want := range map[string]int64{
		`{"reward":[["0x5"],["0x7"],["0x9"]]}`:         7,
		`{"reward":[["-0x5"],["0x7"],["-0x9"]]}`:       7,
		`{"reward":[["0x05"],["0x0007"],["0x9"]]}`:     7,
		`{"reward":[["-0x5"],["-0x1"]]}`:               3,
		`{"reward":[]}`:                                3,
		`{"reward":null}`:                              3,
		`{"reward":[[null],["0x1","0x2"],[],["0x8"]]}`: 8,
		`null`:                   3,
		`{"reward":[["words"]]}`: 3,
		``:                       3, // the node has no such method, whatever its error
	} {
		answers := scripted{"eth_maxPriorityFeePerGas": `"0x03"`}
		if history != "" {
			answers["eth_feeHistory"] = history
		}
		tip, err := node{answers}.tip(t.Context())
		if err != nil || tip.Int64() != want {
			t.Errorf("%s: the tip is %s, %v; want %d", history, tip, err, want)
		}
	}
	if _, err := (node{scripted{}}).tip(t.Context()); err == nil {
		t.Error("a node that answers nothing has a tip")
	}
}

func anyWei() *rapid.Generator[*big.Int] {
	return rapid.Custom(func(t *rapid.T) *big.Int { return big.NewInt(rapid.Int64Min(0).Draw(t, "wei")) })
}

func TestMarketFeesKeepWithinTheCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, paid, most := anyWei().Draw(t, "base"), anyWei().Draw(t, "paid"), anyWei().Draw(t, "most")
		floor, ceiling := anyWei().Draw(t, "floor"), anyWei().Draw(t, "ceiling")
		f, err := marketFees(base, paid, chain.SpendLimits{MaxFeeWei: most.Uint64(), MinTipWei: floor.Uint64(), MaxTipWei: ceiling.Uint64()})
		if base.Cmp(most) > 0 {
			if err == nil {
				t.Fatal("a base fee above the cap was accepted")
			}
			return
		}
		expect.OK(t, err)
		tip := least(greatest(greatest(paid, floor), wei(poolTipWei)), ceiling)
		if f.cap.Cmp(most) > 0 || f.tip.Cmp(ceiling) > 0 || f.tip.Cmp(f.cap) > 0 || f.cap.Cmp(base) < 0 {
			t.Fatalf("fees are %s and %s", f.cap, f.tip)
		}
		ideal := new(big.Int).Add(new(big.Int).Lsh(base, 1), tip)
		if ideal.Cmp(most) <= 0 && (f.cap.Cmp(ideal) != 0 || f.tip.Cmp(tip) != 0) {
			t.Fatalf("fees are %s and %s, want %s and %s", f.cap, f.tip, ideal, tip)
		}
	})
}

func TestRaisedFeesReplaceEverywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// A transaction's tip is never above its cap.
		old := fees{cap: anyWei().Draw(t, "cap"), tip: anyWei().Draw(t, "tip")}
		old.tip = least(old.tip, old.cap)
		market := fees{cap: anyWei().Draw(t, "market cap"), tip: anyWei().Draw(t, "market tip")}
		limit := fees{cap: anyWei().Draw(t, "most"), tip: anyWei().Draw(t, "most tip")}
		f, ok := bump(old, market, limit)
		if !ok {
			if f != old || minReplacement(old.cap).Cmp(limit.cap) <= 0 && minReplacement(old.tip).Cmp(limit.tip) <= 0 {
				t.Fatalf("fees were not raised from %v within %v", old, limit)
			}
			return
		}
		if f.cap.Cmp(limit.cap) > 0 || f.tip.Cmp(limit.tip) > 0 || f.tip.Cmp(f.cap) > 0 {
			t.Fatalf("fees are %s and %s, want at most %v", f.cap, f.tip, limit)
		}
		for _, pair := range [][2]*big.Int{{old.cap, f.cap}, {old.tip, f.tip}} {
			was, is := pair[0], pair[1]
			eighths := new(big.Int).Mul(was, big.NewInt(9))
			if is.Cmp(was) <= 0 || new(big.Int).Lsh(is, 3).Cmp(eighths) < 0 {
				t.Fatalf("a fee rose from %s to %s, want strictly and by an eighth", was, is)
			}
		}
	})
}

func TestReplacing(t *testing.T) {
	for old, want := range map[int64]int64{0: 1, 1: 2, 8: 9, 9: 11, 16: 18, 1_000_000_000: 1_125_000_000} {
		if got := minReplacement(big.NewInt(old)); got.Int64() != want {
			t.Errorf("replacing(%d) is %s, want %d", old, got, want)
		}
	}
}
