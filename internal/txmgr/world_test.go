package txmgr

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"math/big"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/clocktest"
	"github.com/quittance/quittance/internal/test/expect"
)

// finality is how many blocks must be above a block for the tests' indexer to take it as final.
const finality = 2

// world is a chain, a database, and everything else that a writer needs.
type world struct {
	rapid.TB
	ctx      context.Context
	dev      *devchain.Chain // nil on other nodes
	client   *ethclient.Client
	operator *ecdsa.PrivateKey
	registry common.Address
	store    *db.DB
	ids      *invoice.IDs
	net      *faults
	start    uint64 // the head at the start

	hashes   map[uint64]common.Hash // of the blocks that the indexer has read
	missed   []invoice.Hash         // commitments with events that the node leaves out
	deposits deposits

	clock *clocktest.Clock
}

func newChain(tb testing.TB) *devchain.Chain {
	tb.Helper()
	dev, err := devchain.Start(tb.Context(), devchain.Config{})
	must(tb, err)
	tb.Cleanup(func() { must(tb, dev.Close()) })
	return dev
}

// newWorld returns a world with the embedded chain.
func newWorld(tb rapid.TB, dev *devchain.Chain, s *db.DB) *world {
	tb.Helper()
	w := worldOn(tb, dev.Client(), dev.Keys.Operator, dev.Registry, s)
	w.dev = dev
	return w
}

// worldOn returns a world on any node; its indexer begins at the head.
func worldOn(
	tb rapid.TB, client *ethclient.Client, operator *ecdsa.PrivateKey, registry common.Address, s *db.DB,
) *world {
	tb.Helper()
	w := &world{
		TB: tb, ctx: context.Background(), client: client, operator: operator, registry: registry,
		store: s, ids: invoice.NewIDs(time.Now, rand.Reader),
		net: &faults{Client: client.Client()}, hashes: make(map[uint64]common.Hash),
		clock: clocktest.New(time.Unix(1_800_000_000, 0)),
	}
	w.net.sending = w.wantSaved
	w.start = w.head()
	must(tb, s.Update(w.ctx, func(tx *db.Tx) error {
		_, err := ledger.InsertChain(w.ctx, tx, chain.Local, invoice.Header{Number: w.start}, nil)
		return err
	}))
	return w
}

func must(tb rapid.TB, err error) {
	tb.Helper()
	expect.OK(tb, err)
}

// writer returns a writer of the chain, with changes to its configuration.
func (w *world) writer(changes ...func(*Config)) *Writer {
	w.Helper()
	conf := Config{Chain: w.chain(), Key: w.operator, Client: w.net, Store: w.store, Now: w.clock.Now}
	for _, change := range changes {
		change(&conf)
	}
	writer, err := New(conf)
	must(w, err)
	return writer
}

// chain returns the chain's configuration.
func (w *world) chain() chain.Chain {
	w.Helper()
	c, _ := chain.Lookup(chain.Local)
	id, err := w.client.ChainID(w.ctx)
	must(w, err)
	c.ID, c.Registry = id.Uint64(), invoice.Address(w.registry)
	return c
}

// tick runs a round of the writer, which must succeed.
func (w *world) tick(writer *Writer) {
	w.Helper()
	must(w, writer.tick(w.ctx))
}

func (w *world) seal(blocks int) {
	w.Helper()
	for range blocks {
		must(w, w.dev.Seal(w.ctx))
	}
}

// sealEmpty adds blocks without transactions from the pool.
func (w *world) sealEmpty(blocks int) {
	w.Helper()
	must(w, w.dev.Fork(w.ctx, 0, make([][]*types.Transaction, blocks)...))
}

func (w *world) head() uint64 {
	w.Helper()
	n, err := w.client.BlockNumber(w.ctx)
	must(w, err)
	return n
}

// nonce returns how many transactions of the operator are in the chain.
func (w *world) nonce() uint64 {
	w.Helper()
	return w.nonceOf(crypto.PubkeyToAddress(w.operator.PublicKey))
}

func (w *world) nonceOf(a common.Address) uint64 {
	w.Helper()
	n, err := w.client.NonceAt(w.ctx, a, nil)
	must(w, err)
	return n
}

// enqueueIntents inserts intents of one kind for invoices. It inserts the invoices if they do not exist.
func (w *world) enqueueIntents(kind invoice.IntentKind, commitments ...invoice.Hash) {
	w.Helper()
	must(w, enqueueIntents(w.ctx, w.store, w.ids, invoice.Address(w.registry), kind, commitments...))
}

func enqueueIntents(ctx context.Context, s *db.DB, ids *invoice.IDs, registry invoice.Address, kind invoice.IntentKind, commitments ...invoice.Hash) error {
	merchant := invoice.Address{1}
	return s.Update(ctx, func(tx *db.Tx) error {
		err := access.InsertSettlementAddresses(ctx, tx, []access.SettlementAddress{{ChainKey: chain.Local, Address: merchant, MerchantID: "m"}}, invoice.Unix(1))
		if err != nil {
			return err
		}
		amount, err := invoice.ParseAmount("1000000")
		if err != nil {
			return err
		}
		var names []string
		for _, c := range commitments {
			names = append(names, "inv_"+c.String())
		}
		known, err := ledger.InvoicesWithoutLines(ctx, tx, names)
		if err != nil {
			return err
		}
		var invoices []invoice.Invoice
		var intents []ledger.Intent
		for i, c := range commitments {
			invoices = append(invoices, invoice.Invoice{
				ID: names[i], CommitmentID: c, MerchantID: "m", ChainKey: chain.Local, Currency: chain.USDC,
				Status: invoice.Open, CreatedAt: invoice.Unix(1),
				Terms: invoice.Terms{Merchant: merchant, Token: invoice.Address{2}, Amount: amount, ExpiresAt: invoice.Unix(2)},
			})
			intents = append(intents, ledger.Intent{
				ID: ids.New(invoice.PrefixIntent), ChainKey: chain.Local, InvoiceID: names[i], CommitmentID: c, Registry: registry, Kind: kind, CreatedAt: invoice.Unix(1),
			})
		}
		if len(known) == 0 {
			if _, err := ledger.InsertInvoices(ctx, tx, invoices); err != nil {
				return err
			}
		}
		return ledger.InsertIntents(ctx, tx, intents)
	})
}

// commitments returns new commitment ids.
func commitments(n int) []invoice.Hash {
	all := make([]invoice.Hash, n)
	for i := range all {
		rand.Read(all[i][:])
		binary.BigEndian.PutUint64(all[i][:], uint64(i))
	}
	return all
}

// index reads the chain as the service's indexer does.
func (w *world) index() {
	w.Helper()
	cursor, err := ledger.NewReader(w.store).Cursor(w.ctx, chain.Local)
	must(w, err)
	shared := cursor.Indexed.Number
	for shared > w.start && w.hashOf(shared) != w.hashes[shared] {
		shared--
	}
	head := w.head()
	var logs []types.Log
	if head > shared {
		logs, err = w.client.FilterLogs(w.ctx, ethereum.FilterQuery{
			FromBlock: new(big.Int).SetUint64(shared + 1), ToBlock: new(big.Int).SetUint64(head),
			Addresses: []common.Address{w.registry},
		})
		must(w, err)
	}
	var pending []types.Log
	must(w, w.store.Update(w.ctx, func(tx *db.Tx) error {
		if err := ledger.UnmarkIntentsObserved(w.ctx, tx, chain.Local, shared); err != nil {
			return err
		}
		var observed []ledger.IntentObservation
		for _, l := range logs {
			id := invoice.Hash(l.Topics[1])
			if slices.Contains(w.missed, id) {
				continue
			}
			for _, kind := range satisfies(l) {
				observed = append(observed, ledger.IntentObservation{Registry: invoice.Address(w.registry), CommitmentID: id, Kind: kind, Block: l.BlockNumber})
			}
		}
		if err := ledger.MarkIntentsObserved(w.ctx, tx, chain.Local, observed); err != nil {
			return err
		}
		cursor.Indexed.Number = head
		cursor.Confirmed.Number = max(cursor.Confirmed.Number, head-min(head, finality))
		if err := ledger.FinishIntents(w.ctx, tx, chain.Local, cursor.Confirmed.Number); err != nil {
			return err
		}
		if pending, err = w.indexSweeps(tx, shared+1, cursor.Confirmed.Number); err != nil {
			return err
		}
		return ledger.SaveCursor(w.ctx, tx, chain.Local, cursor)
	}))
	w.deposits.pending = pending
	for n := shared + 1; n <= head; n++ {
		w.hashes[n] = w.hashOf(n)
	}
}

func (w *world) hashOf(number uint64) common.Hash {
	w.Helper()
	header, err := w.client.HeaderByNumber(w.ctx, new(big.Int).SetUint64(number))
	if err != nil {
		return common.Hash{} // beyond the head
	}
	return header.Hash()
}

// satisfies returns the intents that an event of the registry satisfies.
func satisfies(l types.Log) []invoice.IntentKind {
	switch l.Topics[0] {
	case contracts.OpenedTopic:
		return []invoice.IntentKind{invoice.IntentOpen}
	case contracts.ClosedTopic, contracts.PaidTopic:
		return []invoice.IntentKind{invoice.IntentOpen, invoice.IntentClose}
	}
	return nil
}

// States of commitments.
const (
	statusNone   = contracts.StatusNone
	statusOpen   = contracts.StatusOpen
	statusPaid   = contracts.StatusPaid
	statusClosed = contracts.StatusClosed
)

// wantStatus requires the state of commitments in the registry.
func (w *world) wantStatus(want contracts.Status, ids ...invoice.Hash) {
	w.Helper()
	for i, id := range ids {
		status, err := contracts.ReadStatus(w.ctx, w.client, w.registry, common.Hash(id))
		must(w, err)
		if status != want {
			w.Fatalf("commitment %d of %d is %s, want %s", i, len(ids), status, want)
		}
	}
}

func (w *world) node() node { return node{w.client.Client()} }

// wantDue requires the number of due intents.
func (w *world) wantDue(want int) {
	w.Helper()
	due, _, err := ledger.DueCount(w.ctx, w.store, chain.Local, invoice.Address(w.registry))
	must(w, err)
	if due != int64(want) {
		w.Fatalf("%d intents are due, want %d", due, want)
	}
}

var errUndo = errors.New("undone on purpose")

// allDone reports whether all intents are done and all deposits are swept. An intent with an event that was only seen
// does not count as done: allDone clears that mark, in a transaction that it rolls back.
func (w *world) allDone() bool {
	w.Helper()
	var left int64
	err := w.store.Update(w.ctx, func(tx *db.Tx) error {
		due, _, err := ledger.DueCount(w.ctx, tx, chain.Local, invoice.Address(w.registry))
		if err == nil {
			err = ledger.UnmarkIntentsObserved(w.ctx, tx, chain.Local, 0)
		}
		if err != nil {
			return err
		}
		unsettled, err := UnsettledTxs(w.ctx, tx, chain.Local)
		if err != nil {
			return err
		}
		left = due + int64(len(unsettled))
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		w.Fatal(err)
	}
	if w.deposits.token != (common.Address{}) {
		n, err := ledger.CountSweeps(w.ctx, w.store, chain.Local, []invoice.Address{invoice.Address(w.deposits.token)})
		must(w, err)
		left += n.Waiting + n.InFlight
	}
	return left == 0
}

func (w *world) wantAllDone() {
	w.Helper()
	if !w.allDone() {
		w.Fatal("some intents are not done")
	}
}

// txs returns all transactions that writers saved.
func (w *world) txs() []ChainTx {
	w.Helper()
	all, err := ChainTxsFrom(w.ctx, w.store, chain.Local, invoice.Address(crypto.PubkeyToAddress(w.operator.PublicKey)), 0)
	must(w, err)
	return all
}

// wantTxs requires the states of the transactions, by nonce.
func (w *world) wantTxs(want ...TxStatus) []ChainTx {
	w.Helper()
	all := w.txs()
	var got []TxStatus
	for _, t := range all {
		got = append(got, t.Status)
	}
	if !slices.Equal(got, want) {
		w.Fatalf("transactions are %v, want %v", got, want)
	}
	return all
}

// external sends a registry call that is not the writer's, into the pool.
func (w *world) external(key *ecdsa.PrivateKey, data []byte) {
	w.Helper()
	_, err := w.dev.Send(w.ctx, key, w.registry, data)
	must(w, err)
}

// pay sends the payment of an invoice through the registry, into the pool, and returns the invoice's commitment.
func (w *world) pay() invoice.Hash {
	w.Helper()
	terms := contracts.Terms{
		Merchant: devchain.Address(w.dev.Keys.Merchant), Token: w.dev.Token, Amount: big.NewInt(5),
		ExpiresAt: uint64(time.Now().Add(time.Hour).Unix()), Salt: contracts.Salt(w.ids.New(invoice.PrefixInvoice)),
	}
	_, err := w.dev.Pay(w.ctx, w.dev.Keys.Payer, terms)
	must(w, err)
	return invoice.Hash(terms.ID(w.dev.ChainID(), w.registry))
}

// wantSaved requires that a transaction is saved before it is broadcast.
func (w *world) wantSaved(raw []byte) {
	w.Helper()
	tx := new(types.Transaction)
	must(w, tx.UnmarshalBinary(raw))
	sender, err := types.Sender(types.LatestSignerForChainID(tx.ChainId()), tx)
	must(w, err)
	if tx.Gas() > chain.DefaultMaxTxGas {
		w.Errorf("transaction %s has a gas limit of %d, which networks refuse", tx.Hash(), tx.Gas())
	}
	saved, err := ChainTxsFrom(w.ctx, w.store, chain.Local, invoice.Address(sender), tx.Nonce())
	must(w, err)
	if len(saved) == 0 || !slices.ContainsFunc(saved[0].Attempts, func(a TxAttempt) bool { return bytes.Equal(a.Raw, raw) }) {
		w.Errorf("transaction %s is broadcast and was not saved", tx.Hash())
	}
}

// faults is a client with injected network faults.
type faults struct {
	Client
	mu      sync.Mutex
	before  func(method string, args []any) error // replaces the call if it returns an error
	after   func(method string) error             // replaces the answer if it returns an error
	sending func(raw []byte)                      // called before a broadcast
	sent    [][]byte                              // every transaction that reached the node
}

func (f *faults) CallContext(ctx context.Context, result any, method string, args ...any) error {
	if err := f.injectFault(method, args); err != nil {
		return err
	}
	err := f.Client.CallContext(ctx, result, method, args...)
	return f.answer(method, args, err)
}

func (f *faults) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	if err := f.injectFault(batch[0].Method, nil); err != nil {
		return err
	}
	return f.answer(batch[0].Method, nil, f.Client.BatchCallContext(ctx, batch))
}

// rawOf returns the transaction that a call broadcasts.
func rawOf(args []any) []byte { return args[0].(hexutil.Bytes) }

func (f *faults) injectFault(method string, args []any) error {
	if method == sendRaw {
		f.sending(rawOf(args))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before == nil {
		return nil
	}
	return f.before(method, args)
}

func (f *faults) answer(method string, args []any, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if method == sendRaw {
		f.sent = append(f.sent, rawOf(args))
	}
	if f.after != nil {
		if fault := f.after(method); fault != nil {
			return fault
		}
	}
	return err
}

const sendRaw = "eth_sendRawTransaction"
