package ledger

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
)

var (
	memorySeed  = flag.Uint64("memory.seed", 1, "seed of the first history in memory")
	memoryCount = flag.Uint64("memory.count", 400, "how many histories in memory to play; a tenth with -short")
)

// TestHistoriesInMemory plays creates, payments, authorizations, refunds, prepared ones, sweeps, voids, reorgs and
// confirmations with decisions alone, without a database. After each step:
//
//   - Blocks that are read at once change the same as when they are read one by one.
//   - A payment of the transfer amount of an invoice that is payable and not covered counts for that invoice.
//   - A payment to a deposit address counts for its invoice, and for none in another currency. A transfer from
//     a deposit address is only a sweep.
//   - A payment that is mined again keeps its invoice.
//   - The sums of each invoice and payment are those of its payments and refunds.
//
// In the end all blocks are final. Without reorgs, refunds, voids and payments of what remains by its transfer amount,
// a ledger that reads the same chain for the first time then arrives at the same payments and invoices.
func TestHistoriesInMemory(t *testing.T) {
	t.Parallel()
	count := *memoryCount
	if testing.Short() {
		count = (count + 9) / 10
	}
	failed := 0
	for seed := *memorySeed; seed < *memorySeed+count && failed < 5; seed++ {
		g := newMemoryGame(seed)
		if g.play(); len(g.wrong) > 0 {
			failed++
			t.Errorf("seed %d: %s\nagain: go test ./internal/ledger -run '^%s$' -memory.seed=%d -memory.count=1",
				seed, strings.Join(g.wrong, "; "), t.Name(), seed)
		}
	}
}

// memoryGame is a history in memory.
type memoryGame struct {
	*rand.Rand
	atOnce, oneByOne *memory
	made             []invoice.Invoice  // as they were created
	transfers        []invoice.Transfer // all that were ever mined
	seenAs           map[string]string  // the invoices that payments were first attributed to, by payment
	blocks           []Block
	line             int // blocks up to this index are final
	ids              *invoice.IDs
	forks, voids     int
	remainders       int // transfers of what remains of an invoice, by its transfer amount
	wrong            []string
}

var (
	memoryTokens    = []invoice.Address{{0x70}, {0x71}}
	memoryMerchants = []invoice.Address{{0xaa}, {0xab}}
	memoryPayers    = []invoice.Address{{0xbb}, {0xbc}}
)

func newMemoryGame(seed uint64) *memoryGame {
	g := &memoryGame{Rand: rand.New(rand.NewPCG(seed, 0)), atOnce: newMemory(memoryChain), oneByOne: newMemory(memoryChain), seenAs: make(map[string]string)}
	g.oneByOne.fittingFirst = 1 + g.IntN(2)
	g.ids = invoice.NewIDs(func() time.Time { return memoryNow }, rand.NewChaCha8([32]byte{}))
	first := invoice.Header{Number: 100, Hash: memoryHash("first"), Time: invoice.Unix(1_700_000_000)}
	g.blocks = []Block{{Header: first}}
	g.must(g.atOnce.Start(first, first.Number+1))
	g.must(g.oneByOne.Start(first, first.Number+1))
	return g
}

func memoryHash(parts ...any) invoice.Hash { return sha256.Sum256(fmt.Append(nil, parts...)) }

func (g *memoryGame) head() invoice.Header { return g.blocks[len(g.blocks)-1].Header }

// must notes an error.
func (g *memoryGame) must(err error) {
	if err != nil {
		g.wrong = append(g.wrong, err.Error())
	}
}

func (g *memoryGame) play() {
	for range 8 + g.IntN(20) {
		switch g.IntN(10) {
		case 0, 1:
			g.create()
		case 8:
			g.void()
		case 9:
			g.prepare()
		case 2:
			if n := len(g.blocks) - 1 - g.line; n > 0 {
				g.reorg(1 + g.IntN(n))
			}
		case 3:
			g.confirm(g.line + g.IntN(len(g.blocks)-g.line))
		default:
			g.mine()
		}
		g.compare("at once and one by one", g.atOnce, g.oneByOne)
		g.checkSums()
	}
	g.confirm(len(g.blocks) - 1)
	g.compare("at once and one by one, when final", g.atOnce, g.oneByOne)
	g.readLate()
}

// create makes an invoice over a usual amount, or over the transfer amount of another one.
func (g *memoryGame) create() {
	n := len(g.made)
	inv := invoice.Invoice{
		ID: fmt.Sprintf("inv_%03d", n), CommitmentID: memoryHash("commitment", n), MerchantID: "acme", ChainKey: memoryChain, Status: invoice.Open,
		Terms: invoice.Terms{
			Merchant: memoryMerchants[g.IntN(2)], Token: memoryTokens[0], Amount: invoice.NewAmount(1_000_000 * (1 + g.Uint64N(3))),
			ExpiresAt: invoice.Unix(g.head().Time.Unix() + 20 + g.Int64N(100)),
		},
		Currency: "USDC", FromBlock: g.atOnce.cur.Indexed.Number,
	}
	switch g.IntN(5) {
	case 0:
		inv.Collection, inv.DepositAddress = invoice.Deposit, invoice.Address{0xdd, byte(n)}
	case 1:
		if n > 0 {
			if other := g.made[g.IntN(n)]; !other.TransferAmount.IsZero() {
				inv.Amount = other.TransferAmount
			}
		}
	}
	if !inv.IsDeposit() {
		inv.TransferAmount = g.freeAmount(inv)
	}
	g.made = append(g.made, inv)
	for _, m := range []*memory{g.atOnce, g.oneByOne} {
		m.insert(inv)
		m.bound[memoryHash("nonce", inv.ID)] = BoundAuthorization{ID: inv.ID, InvoiceID: inv.ID, To: inv.Merchant, Value: inv.Amount}
	}
}

// void makes an invoice void, unless it is covered or has ended.
func (g *memoryGame) void() {
	if len(g.made) == 0 {
		return
	}
	id := g.made[g.IntN(len(g.made))].ID
	if err := g.oneByOne.Void(id); !errors.Is(g.atOnce.Void(id), err) {
		g.wrongf("one ledger makes %s void: %v", id, err)
	}
	g.voids++
}

// prepare prepares a refund of a final payment, which is sent in the next block with or without its tag.
func (g *memoryGame) prepare() {
	final := g.oneByOne.paid(func(p PaymentRow) bool { return p.Status == invoice.Confirmed && p.DepositOf == "" })
	if len(final) == 0 {
		return
	}
	p, id := final[g.IntN(len(final))], g.ids.New(invoice.PrefixRefund)
	r, err := g.oneByOne.prepare(p.ID, id)
	if _, other := g.atOnce.prepare(p.ID, id); !errors.Is(other, err) {
		g.wrongf("one ledger prepares a refund of %s: %v, %v", p.ID, err, other)
	}
	if err != nil {
		return
	}
	t := invoice.Transfer{
		ChainKey: memoryChain, TxHash: memoryHash("tx", len(g.transfers)), Token: r.Token, Currency: "USDC", From: r.From, To: r.To, Amount: r.Amount,
	}
	if g.IntN(3) > 0 {
		t.Evidence.Calldata = r.Tag
	}
	g.transfers = append(g.transfers, t) // it is mined like one that a reorg left
}

// freeAmount returns a transfer amount that no invoice has.
func (g *memoryGame) freeAmount(inv invoice.Invoice) invoice.Amount {
	for suffix := uint64(1); ; suffix++ {
		a := inv.Amount.Plus(invoice.NewAmount(suffix))
		if !slices.ContainsFunc(g.atOnce.amounts, func(b memoryAmount) bool { return b.amount == a }) {
			return a
		}
	}
}

// mine mines some blocks. One ledger reads them at once.
func (g *memoryGame) mine() {
	var blocks []Block
	on := make(map[invoice.Hash]bool)
	for _, b := range g.blocks {
		for _, t := range b.Transfers {
			on[t.TxHash] = true
		}
	}
	for range 1 + g.IntN(3) {
		parent := g.head()
		b := Block{Header: invoice.Header{
			Number: parent.Number + 1, Parent: parent.Hash, Time: parent.Time.Add(time.Duration(1+g.IntN(20)) * time.Second),
			Hash: memoryHash(parent.Hash, g.forks, len(g.blocks)),
		}}
		for i := range g.IntN(4) {
			t, ok := g.transfer(on)
			if !ok {
				continue
			}
			on[t.TxHash] = true
			t.Position = invoice.Position{BlockNumber: b.Number, BlockHash: b.Hash, BlockTime: b.Time, LogIndex: i}
			b.Transfers = append(b.Transfers, t)
		}
		g.blocks, blocks = append(g.blocks, b), append(blocks, b)
	}
	g.must(g.atOnce.Observe(blocks...))
	for _, b := range blocks {
		waiting := g.waiting(b)
		g.must(g.oneByOne.Observe(b))
		g.judge(b, waiting)
	}
}

// transfer makes a transfer, or has one mined again that a reorg left. ok is false if there is nothing to pay.
func (g *memoryGame) transfer(on map[invoice.Hash]bool) (t invoice.Transfer, ok bool) {
	for _, t := range g.transfers {
		if !on[t.TxHash] && g.IntN(2) == 0 {
			return t, true
		}
	}
	if len(g.made) == 0 {
		return t, false
	}
	inv := g.oneByOne.invoices[g.made[g.IntN(len(g.made))].ID]
	t = invoice.Transfer{
		ChainKey: memoryChain, TxHash: memoryHash("tx", len(g.transfers)), Token: memoryTokens[0], Currency: "USDC",
		From: memoryPayers[g.IntN(2)], To: inv.Merchant, Amount: inv.TransferAmount,
	}
	if inv.IsDeposit() {
		t.To, t.Amount = inv.DepositAddress, invoice.NewAmount(500_000*(1+g.Uint64N(6)))
	}
	switch g.IntN(10) {
	case 0:
		t.Amount = inv.Amount
	case 1:
		t.Amount, t.Evidence.Calldata = invoice.NewAmount(400_000*(1+g.Uint64N(5))), inv.CommitmentID
	case 2:
		if t.Amount = inv.RemainingTransfer; !t.Amount.IsZero() {
			g.remainders++
		}
	case 3:
		t.Evidence.Registry = inv.CommitmentID
	case 7:
		t.Evidence.Authorization = memoryHash("nonce", inv.ID)
	case 4: // a refund, or a sweep
		t.From, t.To = t.To, t.From
		if len(g.transfers) > 0 {
			t.Amount = g.transfers[g.IntN(len(g.transfers))].Amount
		}
		if g.IntN(3) == 0 {
			t.Evidence.Calldata = inv.CommitmentID
		}
	case 5:
		t.Token, t.Currency = memoryTokens[1], "EURC"
	case 6: // between merchants
		t.From = memoryMerchants[g.IntN(2)]
	}
	if t.Amount.IsZero() || t.From == t.To {
		return t, false
	}
	g.transfers = append(g.transfers, t)
	return t, true
}

// waiting returns the invoices that await the transfers of a block, by the transfers' hashes: payable there, not covered,
// and with the amount as transfer amount.
func (g *memoryGame) waiting(b Block) map[invoice.Hash]string {
	waiting := make(map[invoice.Hash]string)
	for i, t := range b.Transfers {
		for _, inv := range g.made {
			stored := g.oneByOne.invoices[inv.ID]
			covered := stored.Covered() || i > 0 // an earlier transfer of the block may cover it
			if inv.TransferAmount == t.Amount && inv.Accepts(t) && stored.PayableAt(t.Position) && !covered && !inv.IsDeposit() {
				waiting[t.TxHash] = inv.ID
			}
		}
	}
	return waiting
}

// judge notes which transfers of a block did not go where they must.
func (g *memoryGame) judge(b Block, waiting map[invoice.Hash]string) {
	m := g.oneByOne
	for _, t := range b.Transfers {
		p, paid := m.payments[memoryID(invoice.PrefixPayment, t)]
		if m.deposits[t.From] != "" {
			s, swept := m.sweeps[memoryID(invoice.PrefixSweep, t)]
			_, refunded := m.refunds[memoryID(invoice.PrefixRefund, t)]
			if paid || refunded || !swept || s.InvoiceID != m.deposits[t.From] {
				g.wrongf("the sweep of %s is a payment %v, a refund %v, a sweep of %q", t.Amount, paid, refunded, s.InvoiceID)
			}
			continue
		}
		if id := m.deposits[t.To]; id != "" && (t.Token == memoryTokens[0]) != (p.InvoiceID == id) {
			g.wrongf("%s %s to the deposit address of %s went to %q", t.Amount, t.Currency, id, p.InvoiceID)
		}
		was, seen := g.seenAs[p.ID]
		if seen && was != p.InvoiceID {
			g.wrongf("mined again, %s moved from %q to %q", t.Amount, was, p.InvoiceID)
		}
		if id := waiting[t.TxHash]; paid && !seen && id != "" && t.Evidence == (invoice.Evidence{}) && p.InvoiceID != id && !m.settlements[t.From] {
			g.wrongf("%s was for %s and went to %q by %q", t.Amount, id, p.InvoiceID, p.Method)
		}
		if paid {
			g.seenAs[p.ID] = p.InvoiceID
		}
	}
}

func (g *memoryGame) wrongf(format string, args ...any) {
	g.wrong = append(g.wrong, fmt.Sprintf(format, args...))
}

func (g *memoryGame) confirm(line int) {
	g.line = line
	for _, m := range []*memory{g.atOnce, g.oneByOne} {
		g.must(m.Confirm(g.blocks[line].Header))
	}
}

func (g *memoryGame) reorg(n int) {
	g.blocks = g.blocks[:len(g.blocks)-n]
	g.forks++
	for _, m := range []*memory{g.atOnce, g.oneByOne} {
		g.must(m.Rollback(g.head()))
	}
}

// compare notes how two ledgers differ.
func (g *memoryGame) compare(what string, a, b *memory) {
	same(g, "payments, "+what, asSeen(a.payments), asSeen(b.payments))
	same(g, "invoices, "+what, asEnded(a.invoices), asEnded(b.invoices))
	same(g, "refunds, "+what, a.refunds, b.refunds)
	same(g, "sweeps, "+what, a.sweeps, b.sweeps)
	same(g, "events, "+what, a.events, b.events)
}

// asSeen returns payments without the number of the newest event when they were first seen.
func asSeen(payments map[string]PaymentRow) map[string]PaymentRow {
	seen := make(map[string]PaymentRow, len(payments))
	for id, p := range payments {
		p.SeenAfter, p.Use = 0, "" // the use is computed when it is read
		seen[id] = p
	}
	return seen
}

// asEnded returns invoices without the block up to which the chain was read when they ended.
func asEnded(invoices map[string]invoice.Invoice) map[string]invoice.Invoice {
	ended := make(map[string]invoice.Invoice, len(invoices))
	for id, inv := range invoices {
		inv.ClosedBlock = 0
		ended[id] = inv
	}
	return ended
}

// same notes how two values differ.
func same[V any](g *memoryGame, what string, a, b V) {
	if !reflect.DeepEqual(a, b) {
		g.wrongf("%s:\n%s", what, cmp.Diff(a, b, cmp.Comparer(func(a, b invoice.Amount) bool { return a == b })))
	}
}

// checkSums compares the sums of invoices and payments with their payments and refunds.
func (g *memoryGame) checkSums() {
	m := g.oneByOne
	for _, id := range slices.Sorted(maps.Keys(m.invoices)) {
		inv := m.invoices[id]
		if inv.Sums.Stale {
			continue // they are added up again when they are needed
		}
		payments := asRead(m.paid(func(p PaymentRow) bool { return p.InvoiceID == id }))
		want := inv.Recount(payments)
		if want.Remaining = (invoice.Amount{}); want.Status == invoice.Open {
			want.Remaining = invoice.NewHistory(want, payments).Remainder()
		}
		want.Sums.Newest = inv.Sums.Newest // a bound, which a reorg leaves too high
		same(g, "invoice "+id+" (-of its payments +stored)", want, inv)
	}
	refunded := make(map[string]RefundedSum)
	for _, r := range m.refunds {
		refunded[r.PaymentID] = refunded[r.PaymentID].plus(r)
	}
	for id := range m.payments {
		if m.refunded[id] != refunded[id] {
			g.wrongf("%+v of payment %s was refunded, and %+v is stored", refunded[id], id, m.refunded[id])
		}
	}
}

// readLate has a new ledger read the chain, all of it final, and compares it with the one that followed the chain.
func (g *memoryGame) readLate() {
	if g.forks+g.voids+g.remainders > 0 || len(g.oneByOne.refunds)+len(g.oneByOne.records) > 0 {
		// A decision about a payment that was mined again stays, and a refund counts as of when it was read. A
		// transfer amount of what remains is assigned when the part is read, so it attributes no transfer in an older
		// block.
		return
	}
	late := newMemory(memoryChain)
	late.bound = g.oneByOne.bound
	for _, inv := range g.made {
		late.insert(inv)
	}
	g.must(late.Start(g.head(), 101))
	for late.cur.Gap != nil {
		next := late.cur.Gap.Next
		through := min(next+g.Uint64N(4), late.cur.Gap.Last)
		g.must(late.Fill(next, g.blocks[through-100].Header, g.blocks[next-100:through-99]...))
	}
	g.compare("as they came and late", g.oneByOne, late)
}
