package e2e

import (
	"flag"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

var (
	histories    = flag.Int("histories", 3, "how many histories are played on each kind of node")
	firstHistory = flag.Uint64("history", 1, "seed of the first history; the next ones count on from it")
)

// backend is a service in its own process, on a chain that a history controls.
type backend interface {
	testing.TB
	startService()  // starts the service
	killService()   // kills the service
	awaitIndexing() // waits until the service has indexed the chain, and confirmed the final blocks
	parties() parties
	client() *client.Client
	receiver() *receiver // the merchant's endpoint

	node() *ethclient.Client
	// The methods below change the chain. If minesOnDemand is true, transactions are
	// pending until mineBlock. Otherwise each is mined at once, in its own block.
	minesOnDemand() bool
	sendTransfer(refund bool, amount *big.Int, tag []byte) common.Hash
	sendRegistryPayment(made apitypes.CreateInvoiceResponse) common.Hash
	sendAuthorizedPayment(made apitypes.CreateInvoiceResponse) common.Hash
	setNextBlockTime(unix int64) // sets the time of the next block, unless the chain has passed it
	mineBlock()
	// replaceBlocks replaces the newest blocks. back has the transactions of the new
	// blocks, in order.
	replaceBlocks(depth int, back [][]*types.Transaction)
	undoAfter(what func()) // calls what, and then removes the blocks that were mined since
}

// parties are the merchant, its customer and the token of a backend.
type parties struct {
	token, customer, shop common.Address
	chainKey, merchantID  string
}

// way is how a bill is paid.
type way int

const (
	byTransferAmount way = iota
	byBareAmount
	byTag
	byHalves // two tagged transfers
	byHalf   // one of them
	byRegistry
	byAuthorization
	ways
)

// bill is an invoice with the way in which it will be paid. All amounts differ.
type bill struct {
	way      way
	amount   *big.Int
	made     apitypes.CreateInvoiceResponse
	paid     bool // as the customer believes; a reorg may have dropped the payment
	refunded bool
}

const (
	// billStep is the difference between the amounts of two bills. It is larger
	// than the suffix of a transfer amount.
	billStep = 10_000
	// shortLived and longLived are times until bills expire, in seconds.
	shortLived = 60
	longLived  = 1_000_000
	// historySteps is the number of actions in a history.
	historySteps = 40
)

// history is a random sequence of invoices, payments, refunds, reorgs of blocks that are not
// final, and kills of the service. It is a function of its seed.
type history struct {
	backend
	rand    *rand.Rand
	running bool
	floor   uint64 // the head before the history
	top     uint64 // the highest head so far
	waiting int    // number of pending transactions
	bills   []*bill
	payment map[common.Hash]*bill // by transaction; nil for one that pays no bill
	refund  map[common.Hash]*bill
}

// play plays a history, and compares the final state of the service with the chain.
func play(s backend, seed uint64, mayUndo bool) {
	s.Helper()
	test, _, _ := strings.Cut(s.Name(), "/")
	s.Logf("the same choices again: go test ./internal/test/e2e -run '^%s$' -histories 1 -history %d", test, seed)
	h := &history{
		backend: s, rand: rand.New(rand.NewPCG(seed, 0)),
		payment: make(map[common.Hash]*bill), refund: make(map[common.Hash]*bill),
	}
	h.floor = h.head()
	h.top = h.floor
	for range 4 {
		h.bill()
	}
	steps := []func(){
		h.bill, h.pay, h.pay, h.pay, h.pay, h.payAgain, h.dust, h.payAtExpiry, h.payAtExpiry, h.payBack, h.mine, h.mine, h.reorg, h.reorg, h.reorg, h.killAndRestart,
	}
	if mayUndo {
		steps = append(steps, h.undo, h.undo)
	}
	for range historySteps {
		steps[h.rand.IntN(len(steps))]()
		h.top = max(h.top, h.head())
		if h.rand.IntN(2) == 0 {
			h.observe()
		}
	}
	h.end()
	h.check()
}

func (h *history) head() uint64 {
	h.Helper()
	n, err := h.node().BlockNumber(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	return n
}

// chainTime returns the newest block's time in Unix seconds.
func (h *history) chainTime() int64 {
	h.Helper()
	header, err := h.node().HeaderByNumber(h.Context(), nil)
	if err != nil {
		h.Fatal(err)
	}
	return int64(header.Time)
}

// bill creates an invoice.
func (h *history) bill() { h.billFor(way(h.rand.IntN(int(ways))), longLived) }

func (h *history) billFor(w way, life int64) *bill {
	h.Helper()
	h.run()
	b := &bill{way: w, amount: big.NewInt(int64(len(h.bills)+1) * billStep)}
	shop := h.parties()
	made, err := h.client().CreateInvoice(h.Context(), apitypes.CreateInvoiceRequest{
		MerchantID: shop.merchantID, MerchantAddress: shop.shop.Hex(), Amount: b.amount.String(), Currency: "USDC",
		ChainKey: shop.chainKey, ExpiresAt: max(time.Now().Unix(), h.chainTime()) + life,
	})
	if err != nil {
		h.Fatal(err)
	}
	b.made = made
	h.bills = append(h.bills, b)
	return b
}

// run starts the service unless it runs.
func (h *history) run() {
	if !h.running {
		h.startService()
		h.running = true
	}
}

// observe waits until the service has indexed the chain, if it runs and the chain is at
// its highest head.
func (h *history) observe() {
	h.flush()
	if h.running && h.head() >= h.top {
		h.awaitIndexing()
	}
}

// killAndRestart kills the service. At random it stays down for a while.
func (h *history) killAndRestart() {
	if h.running {
		h.killService()
		h.running = false
	}
	if h.rand.IntN(2) == 0 {
		h.run()
	}
}

// pick returns a random bill that matches, or nil.
func (h *history) pick(wanted func(*bill) bool) *bill {
	var found []*bill
	for _, b := range h.bills {
		if wanted(b) {
			found = append(found, b)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[h.rand.IntN(len(found))]
}

// pay pays a bill.
func (h *history) pay() {
	b := h.pick(func(b *bill) bool { return !b.paid })
	if b == nil {
		return
	}
	h.payBill(b)
	h.mineMaybe()
}

func (h *history) payBill(b *bill) {
	h.Helper()
	b.paid = true
	tag := id(b.made)
	half := new(big.Int).Rsh(b.amount, 1)
	switch b.way {
	case byTransferAmount:
		h.send(b, units(h, b.made.Invoice.TransferAmount), nil)
	case byBareAmount:
		h.send(b, b.amount, nil)
	case byTag:
		h.send(b, b.amount, tag[:])
	case byHalves:
		h.send(b, half, tag[:])
		h.send(b, half, tag[:])
	case byHalf:
		h.send(b, half, tag[:])
	case byRegistry:
		h.paidBy(b, h.sendRegistryPayment(b.made))
	case byAuthorization:
		h.paidBy(b, h.sendAuthorizedPayment(b.made))
	case ways:
	}
}

func (h *history) send(b *bill, amount *big.Int, tag []byte) {
	h.Helper()
	h.paidBy(b, h.sendTransfer(false, amount, tag))
}

func (h *history) paidBy(b *bill, tx common.Hash) {
	h.payment[tx] = b
	h.waiting++
}

// payAgain pays a part of a paid bill, or twice its amount.
func (h *history) payAgain() {
	// With another payment, the bare amount would be ambiguous.
	b := h.pick(func(b *bill) bool { return b.paid && b.way != byBareAmount })
	if b == nil {
		return
	}
	tag := id(b.made)
	h.send(b, new(big.Int).Rsh(new(big.Int).Lsh(b.amount, 1), 2*uint(h.rand.IntN(2))), tag[:])
	h.mineMaybe()
}

// dust sends a tiny transfer for no bill.
func (h *history) dust() {
	h.send(nil, big.NewInt(int64(1+h.rand.IntN(9))), nil)
	h.mineMaybe()
}

// payAtExpiry pays a bill in its last second, or a second late.
func (h *history) payAtExpiry() {
	b := h.billFor([]way{byTransferAmount, byTag, byHalf}[h.rand.IntN(3)], shortLived)
	h.flush()
	h.setNextBlockTime(b.made.Invoice.ExpiresAt + int64(h.rand.IntN(2)))
	h.payBill(b)
	h.flush()
}

// payBack refunds half of a bill if its payment is on the chain.
func (h *history) payBack() {
	h.flush()
	b := h.pick(func(b *bill) bool { return b.paid && !b.refunded })
	if b == nil || !h.onChain(b) {
		return
	}
	b.refunded = true
	tag := id(b.made)
	h.refund[h.sendTransfer(true, new(big.Int).Rsh(b.amount, 1), tag[:])] = b
	h.waiting++
	h.mineMaybe()
}

// onChain reports whether a payment of the bill is on the chain.
func (h *history) onChain(b *bill) bool {
	for tx, other := range h.payment {
		if other == b {
			if _, err := h.node().TransactionReceipt(h.Context(), tx); err == nil {
				return true
			}
		}
	}
	return false
}

// mine adds a block or two.
func (h *history) mine() {
	for range 1 + h.rand.IntN(2) {
		h.block()
	}
}

func (h *history) block() {
	h.mineBlock()
	h.waiting = 0
}

// mineMaybe adds a block, or leaves the pending transactions to the next one.
func (h *history) mineMaybe() {
	if h.rand.IntN(3) > 0 {
		h.flush()
	}
}

// flush adds a block if transactions are pending.
func (h *history) flush() {
	if h.minesOnDemand() && h.waiting > 0 {
		h.block()
	}
	h.waiting = 0
}

// reorg replaces blocks that are not final. A random selection of their transactions is mined again,
// in the same or in other blocks.
func (h *history) reorg() {
	h.Helper()
	h.flush()
	head := h.head()
	lowest := max(h.floor, max(h.top, head)-finality) // blocks up to lowest stay
	if head <= lowest {
		return
	}
	depth := 1 + h.rand.IntN(int(head-lowest))
	var txs []*types.Transaction
	for n := head - uint64(depth) + 1; n <= head; n++ {
		block, err := h.node().BlockByNumber(h.Context(), new(big.Int).SetUint64(n))
		if err != nil {
			h.Fatal(err)
		}
		txs = append(txs, block.Transactions()...)
	}
	kept := []int{0, len(txs), h.rand.IntN(len(txs) + 1)}[h.rand.IntN(3)]
	back := make([][]*types.Transaction, depth)
	at := 0
	for _, tx := range txs[:kept] {
		at += h.rand.IntN(depth - at)
		back[at] = append(back[at], tx)
	}
	h.replaceBlocks(depth, back)
	h.forget(txs[kept:])
}

// forget marks random bills as unpaid if their payments are no longer on the chain, so that they can
// be paid again.
func (h *history) forget(txs []*types.Transaction) {
	for _, tx := range txs {
		if b := h.payment[tx.Hash()]; b != nil && h.rand.IntN(3) > 0 && !h.onChain(b) {
			b.paid = false
		}
	}
}

// undo makes payments, lets the service observe them, and orphans them.
func (h *history) undo() {
	h.flush()
	if h.head() < h.top {
		return // more blocks could not all be undone
	}
	var undone []*bill
	h.undoAfter(func() {
		for range 1 + h.rand.IntN(finality) {
			b := h.pick(func(b *bill) bool { return !b.paid && b.way != byHalves })
			if b == nil {
				h.block()
				continue
			}
			h.payBill(b)
			h.flush()
			undone = append(undone, b)
		}
		h.top = max(h.top, h.head())
		h.observe()
	})
	for _, b := range undone {
		b.paid = false
	}
}

// end adds blocks until all transactions are final and every short-lived bill has expired.
func (h *history) end() {
	h.flush()
	h.run()
	last := h.chainTime()
	for _, b := range h.bills {
		if expiry := b.made.Invoice.ExpiresAt; expiry < last+longLived/2 {
			last = max(last, expiry)
		}
	}
	h.setNextBlockTime(last + 1)
	h.block()
	for more := max(h.top, h.head()) + finality; h.head() <= more; {
		h.block()
	}
	h.awaitIndexing()
}
