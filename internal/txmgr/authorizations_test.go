package txmgr

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// authorizationUsed is the first topic of the token's log of an authorization.
var authorizationUsed = crypto.Keccak256Hash([]byte("AuthorizationUsed(address,bytes32)"))

// gasless makes a writer send authorizations, by the embedded chain's relay.
func (w *world) gasless(c *Config) {
	c.Gasless, c.Chain.AuthorizationRelay = true, invoice.Address(w.dev.AuthorizationRelay)
}

// payer returns the key of a new account with tokens.
func (w *world) payer(tokens int64) *ecdsa.PrivateKey {
	w.Helper()
	key, err := crypto.GenerateKey()
	must(w, err)
	w.giveTokens(devchain.Address(key), tokens)
	return key
}

// giveTokens gives an account tokens.
func (w *world) giveTokens(to common.Address, tokens int64) {
	w.Helper()
	_, err := w.dev.SendToken(w.ctx, w.dev.Keys.Payer, to, big.NewInt(tokens), nil)
	must(w, err)
	w.seal(1)
}

// accept stores an accepted authorization over 7 tokens, of a key's account or of another account with signatures from
// sign. The changes apply to its row.
func (w *world) accept(from common.Address, sign func(contracts.Authorization) []byte, changes ...func(*ledger.Authorization)) ledger.Authorization {
	w.Helper()
	amount := invoice.NewAmount(7)
	inv := invoice.Invoice{
		ID: w.ids.New(invoice.PrefixInvoice), CommitmentID: commitments(1)[0], MerchantID: "m", ChainKey: chain.Local, Currency: chain.USDC,
		Status: invoice.Open, CreatedAt: invoice.Unix(1),
		Terms: invoice.Terms{Merchant: invoice.Address(devchain.Address(w.dev.Keys.Merchant)), Token: invoice.Address(w.dev.Token), Amount: amount, ExpiresAt: invoice.Unix(9_000_000_000)},
	}
	a := ledger.Authorization{
		ID: w.ids.New(invoice.PrefixAuthorization), ChainKey: chain.Local, Token: inv.Token, InvoiceID: inv.ID, MerchantID: "m", Gas: 60_000, CreatedAt: time.Unix(1, 0),
		Authorization: invoice.Authorization{
			From: invoice.Address(from), To: inv.Merchant, Value: amount, ValidAfter: invoice.Unix(0), ValidBefore: invoice.Unix(8_000_000_000), Nonce: inv.CommitmentID,
		},
	}
	a.Signature = sign(contracts.Authorization{
		From: from, To: common.Address(a.To), Value: big.NewInt(7), ValidAfter: new(big.Int), ValidBefore: big.NewInt(8_000_000_000), Nonce: common.Hash(a.Nonce),
	})
	for _, change := range changes {
		change(&a)
	}
	must(w, w.store.Update(w.ctx, func(tx *db.Tx) error {
		all := []access.SettlementAddress{{ChainKey: chain.Local, Address: inv.Merchant, MerchantID: "m"}}
		if err := access.InsertSettlementAddresses(w.ctx, tx, all, invoice.Unix(1)); err != nil {
			return err
		}
		if _, err := ledger.InsertInvoices(w.ctx, tx, []invoice.Invoice{inv}); err != nil {
			return err
		}
		return ledger.InsertAuthorization(w.ctx, tx, a)
	}))
	return a
}

// acceptOf is accept for a key's account.
func (w *world) acceptOf(key *ecdsa.PrivateKey, changes ...func(*ledger.Authorization)) ledger.Authorization {
	w.Helper()
	return w.accept(devchain.Address(key), func(a contracts.Authorization) []byte { return w.signed(a, key) }, changes...)
}

func (w *world) signed(a contracts.Authorization, key *ecdsa.PrivateKey) []byte {
	w.Helper()
	sig, err := a.Sign(contracts.TestUSDCDomain(w.dev.ChainID(), w.dev.Token), key)
	must(w, err)
	return sig.Bytes()
}

// indexAuthorizations stores the payments of authorizations as the service's indexer does, on a chain without reorgs.
func (w *world) indexAuthorizations() {
	w.Helper()
	w.index()
	logs, err := w.client.FilterLogs(w.ctx, ethereum.FilterQuery{
		FromBlock: new(big.Int).SetUint64(w.start), Addresses: []common.Address{w.dev.Token}, Topics: [][]common.Hash{{authorizationUsed}},
	})
	must(w, err)
	final := w.head() - finality
	must(w, w.store.Update(w.ctx, func(tx *db.Tx) error {
		for _, l := range logs {
			a, err := ledger.NewReader(tx).AuthorizationByNonce(w.ctx, chain.Local, invoice.Address(l.Address), invoice.Address(l.Topics[1][12:]), invoice.Hash(l.Topics[2]))
			if err != nil {
				return err
			}
			id := invoice.TransferID(invoice.PrefixPayment, chain.Local, invoice.Hash(l.TxHash), int(l.Index))
			p := ledger.PaymentRow{SeenID: id, Payment: invoice.Payment{
				ID: id, InvoiceID: a.InvoiceID, MerchantID: "m", Method: invoice.ByAuthorization, Status: invoice.Pending, ObservedAt: invoice.Unix(1),
				Transfer: invoice.Transfer{
					Position: invoice.Position{BlockNumber: l.BlockNumber, BlockHash: invoice.Hash(l.BlockHash), BlockTime: invoice.Unix(1), LogIndex: int(l.Index)},
					ChainKey: chain.Local, TxHash: invoice.Hash(l.TxHash), Ordinal: int(l.Index), Token: a.Token, Currency: chain.USDC,
					From: a.From, To: a.To, Amount: a.Value, Evidence: invoice.Evidence{Authorization: a.Nonce},
				},
			}}
			if l.BlockNumber <= final {
				p.Status, p.ConfirmedAt = invoice.Confirmed, invoice.Unix(1)
			}
			if err := ledger.SavePayments(w.ctx, tx, []ledger.PaymentRow{p}); err != nil {
				return err
			}
			if err := ledger.SetAuthorizationPayments(w.ctx, tx, map[string]string{a.ID: p.ID}); err != nil {
				return err
			}
		}
		return ledger.EndAuthorizations(w.ctx, tx, chain.Local, invoice.Unix(2), invoice.RefusedWindowClosed, time.Unix(2, 0))
	}))
}

// readUntil sets the time of the newest block that the indexer has read.
func (w *world) readUntil(at time.Time) {
	w.Helper()
	must(w, w.store.Update(w.ctx, func(tx *db.Tx) error {
		cursor, err := ledger.NewReader(tx).Cursor(w.ctx, chain.Local)
		cursor.Indexed.Time = at
		return errors.Join(err, ledger.SaveCursor(w.ctx, tx, chain.Local, cursor))
	}))
}

func (w *world) stored(a ledger.Authorization) ledger.Authorization {
	w.Helper()
	now, err := ledger.NewReader(w.store).Authorization(w.ctx, a.ID)
	must(w, err)
	return now
}

// wantStates requires the states of authorizations.
func (w *world) wantStates(want ledger.AuthorizationStatus, all ...ledger.Authorization) {
	w.Helper()
	for i, a := range all {
		if now := w.stored(a); now.Status != want {
			w.Errorf("authorization %d is %s (%s), want %s", i, now.Status, now.Reason, want)
		}
	}
}

// wantMerchantHas requires the merchant's number of tokens.
func (w *world) wantMerchantHas(want int64) {
	w.Helper()
	got, err := w.dev.Balance(w.ctx, devchain.Address(w.dev.Keys.Merchant))
	must(w, err)
	if got.Cmp(big.NewInt(want)) != 0 {
		w.Errorf("the merchant has %s tokens, want %d", got, want)
	}
}

// settled seals and indexes blocks until the mined ones are final.
func (w *world) settled(writer *Writer) {
	w.Helper()
	w.seal(finality + 1)
	w.indexAuthorizations()
	w.tick(writer)
}

// create deploys a contract.
func (w *world) create(code []byte) common.Address {
	w.Helper()
	hash, err := w.dev.Create(w.ctx, w.dev.Keys.Deployer, code)
	must(w, err)
	w.seal(1)
	receipt, err := w.dev.Mined(w.ctx, hash)
	must(w, err)
	return receipt.ContractAddress
}

// acceptOfContract is accept for a smart account with tokens. It returns a function that deploys the account, too.
func (w *world) acceptOfContract() (a ledger.Authorization, deploy func()) {
	w.Helper()
	factory := w.create(common.FromHex(hostile.SmartAccountFactoryMetaData.Bin))
	owner := w.dev.Keys.Payer
	code := append(common.FromHex(hostile.SmartAccountMetaData.Bin), hostile.NewSmartAccount().PackConstructor(devchain.Address(owner))...)
	account := crypto.CreateAddress2(factory, [32]byte{}, crypto.Keccak256(code))
	w.giveTokens(account, 7)
	call := hostile.NewSmartAccountFactory().PackDeploy(devchain.Address(owner))
	a = w.accept(account, func(a contracts.Authorization) []byte {
		wrapped, err := contracts.WrapSignature(factory, call, append([]byte{0}, w.signed(a, owner)...))
		must(w, err)
		return wrapped
	})
	return a, func() {
		_, err := w.dev.SendWithGas(w.ctx, w.dev.Keys.Deployer, factory, call, 1_000_000)
		must(w, err)
		w.seal(1)
	}
}

// TestAuthorizationsShareATransaction sends authorizations of keys, and one of an account that the relay has to deploy.
// They are paid at one transaction's cost, and no transaction is sent again.
func TestAuthorizationsShareATransaction(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		writer := w.writer(w.gasless)
		ofContract, _ := w.acceptOfContract()
		all := []ledger.Authorization{w.acceptOf(w.payer(7)), w.acceptOf(w.payer(7)), ofContract}
		w.tick(writer)
		w.wantStates(ledger.AuthorizationSent, all...)
		if tx := w.wantTxs(TxSent)[0]; tx.Kind != TxAuthorization || tx.Destination != invoice.Address(w.dev.AuthorizationRelay) {
			t.Errorf("the transaction is of kind %s, to %s", tx.Kind, tx.Destination)
		}
		w.seal(1)
		w.tick(writer)
		w.wantMerchantHas(21)
		w.settled(writer)
		w.wantStates(ledger.AuthorizationPaid, all...)
		w.settled(writer)
		w.wantTxs(TxMined)
	})
}

// TestGaslessIsTurnedOff has a writer follow the transaction of authorizations that an earlier writer sent, do other
// work, and refuse authorizations that were not sent, except one that the payer has sent.
func TestGaslessIsTurnedOff(t *testing.T) {
	parallelOnSQLite(t, func(t *testing.T, w *world) {
		writer := w.writer(w.gasless)
		sent := w.acceptOf(w.payer(7))
		w.tick(writer)
		w.wantStates(ledger.AuthorizationSent, sent)
		must(t, writer.release(w.ctx))

		writer = w.writer()
		key := w.payer(7)
		later, itself := w.acceptOf(w.payer(7)), w.acceptOf(key)
		_, err := w.dev.TransferWithAuthorization(w.ctx, w.dev.Keys.Deployer, key, contracts.Authorization{
			From: common.Address(itself.From), To: common.Address(itself.To), Value: big.NewInt(7),
			ValidAfter: new(big.Int), ValidBefore: big.NewInt(itself.ValidBefore.Unix()), Nonce: common.Hash(itself.Nonce),
		})
		must(t, err)
		w.seal(1)
		w.tick(writer)
		w.wantTxs(TxMined)
		w.wantStates(ledger.AuthorizationRefused, later)
		expect.Equal(t, w.stored(later).Reason, invoice.RefusedGaslessOff, "it is refused for")
		w.wantStates(ledger.AuthorizationAccepted, itself)
		w.settled(writer)
		w.wantStates(ledger.AuthorizationPaid, sent, itself)
		w.tick(writer)
		w.wantMerchantHas(14)
		w.wantTxs(TxMined)
	})
}

// TestOneAuthorizationCallsTheToken sends a single authorization without the relay, before intents.
func TestOneAuthorizationCallsTheToken(t *testing.T) {
	parallelOnSQLite(t, func(t *testing.T, w *world) {
		writer := w.writer(w.gasless)
		a := w.acceptOf(w.payer(7))
		w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
		w.tick(writer)
		if tx := w.wantTxs(TxSent)[0]; tx.Kind != TxAuthorization || tx.Destination != invoice.Address(w.dev.Token) {
			t.Errorf("the transaction is of kind %s, to %s", tx.Kind, tx.Destination)
		}
		w.seal(1)
		w.tick(writer) // sends the intent
		w.wantMerchantHas(7)
		w.settled(writer)
		w.wantStates(ledger.AuthorizationPaid, a)
		w.wantTxs(TxMined, TxMined)
	})
}

// TestOnePayerInABatch sends two authorizations of an account with enough tokens for one, one after the other: the
// second costs nothing.
func TestOnePayerInABatch(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		writer := w.writer(w.gasless)
		payer := w.payer(7)
		first, second := w.acceptOf(payer), w.acceptOf(payer)
		w.tick(writer)
		w.seal(1)
		w.tick(writer)
		w.settled(writer)
		w.wantMerchantHas(7)
		paid, refused := 0, 0
		for _, a := range []ledger.Authorization{w.stored(first), w.stored(second)} {
			switch {
			case a.Status == ledger.AuthorizationPaid:
				paid++
			case a.Status == ledger.AuthorizationRefused && a.Reason == invoice.RefusedReverts:
				refused++
			}
		}
		if paid != 1 || refused != 1 {
			t.Errorf("%d are paid and %d refused, want one of each", paid, refused)
		}
		w.wantTxs(TxMined)
	})
}

// TestRefusedBeforeItIsSent expects no transaction for an authorization that would be reverted, and for one of a closed
// invoice.
func TestRefusedBeforeItIsSent(t *testing.T) {
	parallelOnSQLite(t, func(t *testing.T, w *world) {
		writer := w.writer(w.gasless)
		poor, closed := w.acceptOf(w.payer(6)), w.acceptOf(w.payer(7))
		must(t, w.store.Update(w.ctx, func(tx *db.Tx) error {
			inv, err := ledger.NewReader(tx).Invoice(w.ctx, closed.InvoiceID)
			if err != nil {
				return err
			}
			inv.Status = invoice.Void
			return ledger.UpdateInvoices(w.ctx, tx, []invoice.Invoice{inv})
		}))
		w.tick(writer)
		w.wantStates(ledger.AuthorizationRefused, poor, closed)
		expect.Equal(t, w.stored(poor).Reason, invoice.RefusedReverts, "the poor payer is refused for")
		expect.Equal(t, w.stored(closed).Reason, invoice.RefusedInvoiceClosed, "the closed invoice is refused for")
		w.wantTxs()
	})
}

// TestLapsedBeforeItIsSent refuses an authorization that lapsed unsent, without waiting for a final block.
func TestLapsedBeforeItIsSent(t *testing.T) {
	parallelOnSQLite(t, func(t *testing.T, w *world) {
		writer := w.writer(w.gasless)
		lapsed := w.acceptOf(w.payer(7), func(a *ledger.Authorization) { a.ValidBefore = invoice.Unix(2) })
		w.readUntil(w.clock.Now())
		w.tick(writer)
		w.wantStates(ledger.AuthorizationRefused, lapsed)
		expect.Equal(t, w.stored(lapsed).Reason, invoice.RefusedReverts, "it is refused for")
		w.wantTxs()
	})
}

// TestFailedAuthorizationIsSentAgain has an authorization fail on the chain. It must be neither refused nor sent while
// it would fail, and sent once it would succeed.
func TestFailedAuthorizationIsSentAgain(t *testing.T) {
	parallelOnSQLite(t, func(t *testing.T, w *world) {
		writer := w.writer(w.gasless)
		payer := w.dev.Keys.Payer // this payer can pay for gas, too
		a := w.acceptOf(payer)
		has, err := w.dev.Balance(w.ctx, devchain.Address(payer))
		must(t, err)
		w.tick(writer)
		w.wantStates(ledger.AuthorizationSent, a)
		// The payer transfers the tokens first.
		data := contracts.NewTestUSDC().PackTransfer(common.Address{1}, has)
		own, err := w.dev.Sign(payer, w.nonceOf(devchain.Address(payer)), w.dev.Token, data)
		must(t, err)
		ours := new(types.Transaction)
		must(t, ours.UnmarshalBinary(w.txs()[0].Attempts[0].Raw))
		must(t, w.dev.Fork(w.ctx, 0, []*types.Transaction{own, ours}))
		w.tick(writer)
		w.wantTxs(TxFailed)
		w.wantStates(ledger.AuthorizationAccepted, a)
		w.tick(writer)
		w.clock.Add(retryAuthorization)
		w.tick(writer)
		w.wantStates(ledger.AuthorizationAccepted, a)
		w.wantTxs(TxFailed)

		_, err = w.dev.Send(w.ctx, w.dev.Keys.Deployer, w.dev.Token, contracts.NewTestUSDC().PackMint(devchain.Address(payer), big.NewInt(7)))
		must(t, err)
		w.seal(1)
		w.clock.Add(2 * retryAuthorization)
		w.tick(writer)
		w.wantStates(ledger.AuthorizationSent, a)
		w.seal(1)
		w.tick(writer)
		w.settled(writer)
		w.wantStates(ledger.AuthorizationPaid, a)
		w.wantMerchantHas(7)
	})
}

// TestStrangerIsFaster has another account submit an authorization before the writer sends it: it is neither refused
// nor sent, and its payment is found.
func TestStrangerIsFaster(t *testing.T) {
	parallelOnSQLite(t, func(t *testing.T, w *world) {
		writer := w.writer(w.gasless)
		key := w.payer(7)
		a := w.acceptOf(key)
		_, err := w.dev.TransferWithAuthorization(w.ctx, w.dev.Keys.Deployer, key, contracts.Authorization{
			From: common.Address(a.From), To: common.Address(a.To), Value: big.NewInt(7),
			ValidAfter: new(big.Int), ValidBefore: big.NewInt(a.ValidBefore.Unix()), Nonce: common.Hash(a.Nonce),
		})
		must(t, err)
		w.seal(1)
		w.tick(writer)
		w.wantStates(ledger.AuthorizationAccepted, a)
		w.clock.Add(retryAuthorization)
		w.tick(writer)
		w.wantStates(ledger.AuthorizationAccepted, a)
		w.settled(writer)
		w.wantStates(ledger.AuthorizationPaid, a)
		w.wantMerchantHas(7)
		w.wantTxs()
	})
}

// TestFailingAuthorizationIsSentRarely has a payer make each transaction with his authorization fail, after a
// simulation in which it succeeds: the pauses double.
func TestFailingAuthorizationIsSentRarely(t *testing.T) {
	parallelOnSQLite(t, func(t *testing.T, w *world) {
		writer := w.writer(w.gasless)
		payer := w.dev.Keys.Payer
		a := w.acceptOf(payer)
		has, err := w.dev.Balance(w.ctx, devchain.Address(payer))
		must(t, err)
		want := []TxStatus{TxSent}
		for _, pause := range []time.Duration{retryAuthorization, 2 * retryAuthorization, 4 * retryAuthorization} {
			w.tick(writer)
			txs := w.wantTxs(want...)
			own, err := w.dev.Sign(payer, w.nonceOf(devchain.Address(payer)), w.dev.Token, contracts.NewTestUSDC().PackTransfer(common.Address{1}, has))
			must(t, err)
			ours := new(types.Transaction)
			must(t, ours.UnmarshalBinary(txs[len(txs)-1].Attempts[0].Raw))
			must(t, w.dev.Fork(w.ctx, 0, []*types.Transaction{own, ours}))
			_, err = w.dev.Send(w.ctx, w.dev.Keys.Deployer, w.dev.Token, contracts.NewTestUSDC().PackMint(devchain.Address(payer), has))
			must(t, err)
			w.seal(1)
			want[len(want)-1] = TxFailed
			w.tick(writer)
			w.clock.Add(pause - time.Second)
			w.tick(writer)
			w.wantTxs(want...)
			w.clock.Add(time.Second)
			want = append(want, TxSent)
		}
		w.wantStates(ledger.AuthorizationAccepted, a)
	})
}

// TestManyAuthorizationsDelayNoOther has a merchant's authorizations fill two pages. A transaction carried them, they have
// lapsed or would be reverted, and they wait for finality. Another merchant's authorization lapses after all of them,
// and is sent in the first round.
func TestManyAuthorizationsDelayNoOther(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer(w.gasless)
	w.tick(writer)
	var sent []string
	for i := range 2 * maxDueAuthorizations {
		key, err := crypto.GenerateKey()
		must(t, err)
		lapses := w.clock.Now().Add(time.Duration(i/maxDueAuthorizations) * time.Hour)
		sent = append(sent, w.acceptOf(key, func(a *ledger.Authorization) { a.ValidBefore = lapses }).ID)
	}
	failed := ChainTx{
		ID: "ctx_1", ChainKey: chain.Local, Sender: invoice.Address{9}, Kind: TxAuthorization, Status: TxSent, CreatedAt: w.clock.Now(),
		Attempts: []TxAttempt{{TxHash: invoice.Hash{1}, Raw: []byte{1}, FeeCap: big.NewInt(1), TipCap: big.NewInt(1), CreatedAt: w.clock.Now()}},
	}
	must(t, SaveChainTx(w.ctx, w.store, writer.lease, failed, sent))
	must(t, SetTxStatus(w.ctx, w.store, writer.lease, failed.ID, TxFailed, nil))
	must(t, w.store.Update(w.ctx, func(tx *db.Tx) error {
		return access.InsertSettlementAddresses(w.ctx, tx, []access.SettlementAddress{{ChainKey: chain.Local, Address: invoice.Address{1}, MerchantID: "n"}}, invoice.Unix(1))
	}))
	w.readUntil(w.clock.Now())
	honest := w.acceptOf(w.payer(7), func(a *ledger.Authorization) { a.MerchantID = "n" })
	estimates := 0
	w.net.before = func(method string, _ []any) error {
		if method == "eth_estimateGas" {
			estimates++
		}
		return nil
	}
	w.tick(writer)
	w.wantStates(ledger.AuthorizationSent, honest)
	if most := 4 * maxSimulations; estimates > most {
		t.Errorf("the round made %d estimates, want %d at most", estimates, most)
	}
}

// TestFailingSimulationDelaysNoOther has the node fail each simulation of three authorizations. A later
// one is sent in the next round.
func TestFailingSimulationDelaysNoOther(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer(w.gasless)
	var bad [][]byte
	for range 3 {
		a := w.acceptOf(w.payer(7))
		bad = append(bad, a.Nonce[:])
	}
	honest := w.acceptOf(w.payer(7))
	w.net.before = func(method string, args []any) error {
		if method != "eth_estimateGas" {
			return nil
		}
		data, _ := args[0].(map[string]any)["data"].(hexutil.Bytes)
		if slices.ContainsFunc(bad, func(nonce []byte) bool { return bytes.Contains(data, nonce) }) {
			return rpc.HTTPError{StatusCode: http.StatusBadGateway, Status: "502 Bad Gateway"}
		}
		return nil
	}
	writer.report(writer.tick(w.ctx))
	writer.report(writer.tick(w.ctx))
	w.wantStates(ledger.AuthorizationSent, honest)
}

// TestPausesAfterFailuresOfNodes has two simulations of an authorization fail. The second pause is as long as the first if the node was
// called too often or was down, and twice as long if it answered an error.
func TestPausesAfterFailuresOfNodes(t *testing.T) {
	for _, test := range []struct {
		failure error
		pause   time.Duration
	}{
		{rpc.HTTPError{StatusCode: http.StatusTooManyRequests, Status: "429"}, retryAuthorization},
		{rpc.HTTPError{StatusCode: http.StatusBadGateway, Status: "502"}, retryAuthorization},
		{errCut, retryAuthorization},
		{answer("internal error"), 2 * retryAuthorization},
		{context.DeadlineExceeded, 2 * retryAuthorization},
	} {
		t.Run(test.failure.Error(), func(t *testing.T) {
			w := onSQLite(t)
			writer := w.writer(w.gasless)
			a := w.acceptOf(w.payer(7))
			w.net.before = func(method string, _ []any) error {
				if method == "eth_estimateGas" {
					return test.failure
				}
				return nil
			}
			round := func() { writer.report(writer.tick(w.ctx)) }
			round()
			w.clock.Add(retryAuthorization)
			round()
			w.net.before = nil
			w.clock.Add(test.pause - 1)
			round()
			w.wantStates(ledger.AuthorizationAccepted, a)
			w.clock.Add(1)
			round()
			w.wantStates(ledger.AuthorizationSent, a)
		})
	}
}

// TestExtraKilledWriterOfAuthorizations kills writers, each a process, at a random request to
// the node, while authorizations come and go: each is carried out once.
func TestExtraKilledWriterOfAuthorizations(t *testing.T) {
	dbtest.EachURL(t, func(t *testing.T, url string) {
		w := newWorld(t, newChain(t), dbtest.Open(t, url))
		line, near := newFaultyProxy(t, w.dev.RPCURL())
		env := strings.Join([]string{
			url, near, w.dev.Registry.Hex(), hex.EncodeToString(crypto.FromECDSA(w.dev.Keys.Operator)), w.dev.AuthorizationRelay.Hex(),
		}, "\n")
		var payers []*ecdsa.PrivateKey
		for range 8 {
			payers = append(payers, w.payer(1_000_000))
		}
		k := newKiller(t, line, env)
		var all []ledger.Authorization
		w.traffic(func(int) bool { return !k.done() }, func() {
			if !k.done() && len(all) < 300 {
				all = append(all, w.acceptOf(payers[rand.IntN(len(payers))]))
			}
			w.indexAuthorizations()
			k.replaceDead()
		})
		w.awaitPaid(all)
		k.child.stop(t)
		w.wantMerchantHas(7 * int64(len(all)))
		t.Logf("%d authorizations in %d transactions survived %d kills", len(all), len(w.txs()), k.killed)
	})
}

// awaitPaid seals blocks until all authorizations are paid.
func (w *world) awaitPaid(all []ledger.Authorization) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	clock := time.NewTicker(trafficTime)
	defer clock.Stop()
	for {
		open := 0
		for _, a := range all {
			now := w.stored(a)
			if now.Status == ledger.AuthorizationRefused {
				w.Fatalf("%s is refused: %s", a.ID, now.Reason)
			}
			if now.Status != ledger.AuthorizationPaid {
				open++
			}
		}
		if open == 0 {
			return
		}
		w.seal(1)
		w.indexAuthorizations()
		select {
		case <-clock.C:
		case <-ctx.Done():
			w.Fatal(fmt.Sprintf("%d of %d authorizations are not paid", open, len(all)))
		}
	}
}

// denying is a node that refuses all calls, with a code or by their gas, and to have carried out a transfer.
type denying struct {
	Client
	gas string // the estimate; empty for code 3
}

func (r denying) CallContext(ctx context.Context, result any, method string, args ...any) error {
	if method == "eth_estimateGas" && r.gas == "" {
		return coded{3, "no"}
	}
	err := r.Client.CallContext(ctx, result, method, args...)
	switch answer := result.(type) {
	case *chain.Quantity:
		if call, ok := args[0].(map[string]any); ok && method == "eth_estimateGas" && call["to"] != call["from"] {
			return answer.UnmarshalJSON([]byte(r.gas))
		}
	case *hexutil.Bytes:
		if method == "eth_call" && len(*answer) >= 32*14 {
			clear((*answer)[32*8 : 32*9]) // transferred
		}
	}
	return err
}

// granting is a node that refuses no call.
type granting struct{ Client }

func (g granting) CallContext(ctx context.Context, result any, method string, args ...any) error {
	if answer, ok := result.(*chain.Quantity); ok && method == "eth_estimateGas" {
		return answer.UnmarshalJSON([]byte(`"0x10000"`))
	}
	return g.Client.CallContext(ctx, result, method, args...)
}

// TestNodesVoteAboutAnAuthorization has nodes that are honest (h) and nodes that are not: they refuse each
// authorization (l) or grant it (g). Without a majority it is sent only if the first node grants it, and otherwise
// neither sent nor refused, until the second node decides.
func TestNodesVoteAboutAnAuthorization(t *testing.T) {
	states := map[string]string{
		"rich l": "refused", "rich lh": "open", "rich lhh": "sent", "rich llh": "refused",
		"rich hl": "sent", "rich hlh": "sent", "rich hlhh": "sent",
		"poor h": "refused", "poor hg": "open", "poor hhg": "refused",
	}
	for name, want := range states {
		for kind, gas := range map[string]string{"reverts": "", "gas": `"0xfffffffff"`} {
			w := onSQLite(t)
			payer, letters, _ := strings.Cut(name, " ")
			var nodes []Client
			for _, letter := range letters {
				nodes = append(nodes, map[rune]Client{'h': w.net, 'l': denying{w.net, gas}, 'g': granting{w.net}}[letter])
			}
			writer := w.writer(w.gasless, func(c *Config) { c.Client, c.Nodes = nodes[0], func() []Client { return nodes } })
			a := w.acceptOf(w.payer(map[string]int64{"rich": 7, "poor": 6}[payer]))
			state := func() string {
				now := w.stored(a)
				switch {
				case now.TxID != "":
					return "sent"
				case now.Status == ledger.AuthorizationRefused:
					return "refused"
				}
				return "open"
			}
			if err := writer.tick(w.ctx); (want == "open") != errors.Is(err, errDivided) {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
			expect.Equal(t, state(), want, "%s, %s: it is", name, kind)
			if want == "open" {
				w.clock.Add(retryAuthorization)
				w.tick(writer)
				expect.Equal(t, state(), "sent", "%s, %s: a while later it is", name, kind)
			}
		}
	}
}

// TestPostponedAuthorizationEnds has two nodes disagree about a payer without the money until the window of his
// authorization is over. It ends like any that was not sent.
func TestPostponedAuthorizationEnds(t *testing.T) {
	parallelOnSQLite(t, func(t *testing.T, w *world) {
		nodes := []Client{w.net, granting{w.net}}
		writer := w.writer(w.gasless, func(c *Config) { c.Client, c.Nodes = nodes[0], func() []Client { return nodes } })
		a := w.acceptOf(w.payer(6), func(a *ledger.Authorization) { a.ValidBefore = invoice.Unix(2) })
		expect.Error(t, errDivided, "the nodes vote")(writer.tick(w.ctx))
		w.wantStates(ledger.AuthorizationAccepted, a)
		w.indexAuthorizations()
		w.wantStates(ledger.AuthorizationRefused, a)
		expect.Equal(t, w.stored(a).Reason, invoice.RefusedWindowClosed, "it is refused for")
		w.clock.Add(retryAuthorization)
		w.tick(writer)
		w.wantTxs()
	})
}

// mistaken is a node that is wrong about which accounts have code.
type mistaken struct{ Client }

func (m mistaken) CallContext(ctx context.Context, result any, method string, args ...any) error {
	err := m.Client.CallContext(ctx, result, method, args...)
	if code, ok := result.(*hexutil.Bytes); ok && method == "eth_getCode" {
		*code = make([]byte, max(0, 1-len(*code)))
	}
	return err
}

// TestOneNodeDecidesNoDeployment has a node be wrong about whether a payer's account exists. An authorization of it is
// refused only if the account has to be deployed, and there is no relay.
func TestOneNodeDecidesNoDeployment(t *testing.T) {
	for _, relayed := range []bool{true, false} {
		for _, exists := range []bool{true, false} {
			w := onSQLite(t)
			nodes := []Client{mistaken{w.net}, w.net}
			writer := w.writer(w.gasless, func(c *Config) {
				c.Client, c.Nodes = nodes[0], func() []Client { return nodes }
				if !relayed {
					c.Chain.AuthorizationRelay = invoice.Address{}
				}
			})
			a, deploy := w.acceptOfContract()
			if exists {
				deploy()
			}
			w.tick(writer)
			got := w.stored(a)
			if sent := got.TxID != ""; sent != (relayed || exists) || !sent && got.Reason != invoice.RefusedNotDeployed {
				t.Errorf("relayed %t, exists %t: it is %+v", relayed, exists, got)
			}
			w.settled(writer)
			w.wantMerchantHas(map[bool]int64{true: 7, false: 0}[relayed || exists])
		}
	}
}
