package indexer

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// party is a merchant. A lenient one accepts a little less than the amount.
type party struct {
	id      string
	address invoice.Address
	lenient bool
}

// order is an invoice, as it was created.
type order struct {
	invoice.Invoice
	amount, enough, exact uint64 // the amount requested, the least that counts as paid, and the amount with its suffix
	number                int    // number of transactions before it
}

// action is a transaction with its purpose. After a reorg it may be mined in another
// block.
type action struct {
	tx      chaintest.Tx
	number  int // number of transactions before it
	moves   []*move
	records []registryNote     // of the registry
	at      []*chaintest.Block // all blocks in which it was mined
}

// registryNote is an event of the registry about an order.
type registryNote struct {
	kind ledger.RegistryEventKind
	of   *order
}

// attributionKind is what attributes a transfer to its order.
type attributionKind int

const (
	atNone    attributionKind = iota
	named                     // the registry, an authorization or calldata
	byExact                   // the transfer amount
	byBare                    // the amount
	byLenient                 // an amount within the tolerance
)

// move is a transfer of the watched token: a payment to a merchant, or a refund.
type move struct {
	of              *action
	ordinal         int
	from, to        invoice.Address
	amount          uint64
	attributionKind attributionKind
	order           *order // nil without an order
	back            *move  // the payment that it refunds
	sweeps          *order // the order that owns the deposit address it comes from; nil for other moves
	refunded        uint64 // how much other transfers refund of it
	afterEnd        bool   // it refunds a payment of an invoice that was no longer open
}

// order creates an invoice.
func (s *scenario) order() { s.orderOf(pick(s, s.parties...)) }

// orderOf creates an invoice of a merchant. Its amount differs by far from all others, or it equals the amount of
// another order.
func (s *scenario) orderOf(p party) {
	amount := uint64(len(s.orders)+1) * 1_000_000
	if len(s.orders) >= len(s.parties) && s.chance(15) {
		twin := pick(s, s.orders...)
		amount = twin.amount
		p = s.parties[slices.IndexFunc(s.parties, func(p party) bool { return p.id == twin.MerchantID })]
	}
	life := int64(5 + s.IntN(60))
	if s.chance(50) {
		life = 5000
	}
	collection := pick(s, invoice.Direct, invoice.Direct, invoice.Direct, invoice.Deposit)
	inv, err := s.service.Create(s.Context(), ledger.CreateRequest{Draft: invoice.Draft{
		MerchantID: p.id, Merchant: p.address, Amount: invoice.NewAmount(amount), Currency: chain.USDC,
		ChainKey: s.name, ExpiresAt: invoice.Unix(s.clock.Load() + life), Collection: collection,
	}})
	expect.OK(s, err)
	o := &order{Invoice: inv, number: len(s.actions), amount: amount, enough: amount, exact: small(inv.TransferAmount)}
	if p.lenient {
		o.enough -= amount / 100
	}
	if !inv.IsDeposit() && (o.exact <= amount || o.exact > amount+999 || slices.ContainsFunc(s.orders, func(other *order) bool { return other.exact == o.exact })) {
		s.Fatalf("invoice %s over %d asks for %d", inv.ID, amount, o.exact)
	}
	s.orders = append(s.orders, o)
	s.count("invoices")
}

// small returns an amount that fits 64 bits.
func small(a invoice.Amount) (n uint64) {
	word := a.Bytes()
	for _, b := range word[24:] {
		n = n<<8 | uint64(b)
	}
	return n
}

// draft is a transaction under construction.
type draft struct {
	*scenario
	action *action
	tag    *order // the order in the input's tag, if any
	tagged *move  // the transfer that the calldata tag is for, if any
}

// compose makes a transaction of one or several independent parts.
func (s *scenario) compose() *action {
	d := &draft{scenario: s, action: &action{number: len(s.actions)}}
	parts := 1
	if s.chance(25) {
		parts += 1 + s.IntN(3)
	}
	if s.chance(2) {
		parts = 12
	}
	d.action.tx.From = common.Address(d.address("sender ", len(d.actions)))
	for range parts {
		d.part()
	}
	if d.tag == nil && s.chance(5) {
		d.tag = pick(s, s.orders...)
	}
	d.name()
	d.action.tx.Hash = chaintest.NamedTx(fmt.Sprint(s.name, " ", len(s.actions))).Hash
	s.actions = append(s.actions, d.action)
	s.count("transactions")
	return d.action
}

func (d *draft) log(l chaintest.Log) { d.action.tx.Logs = append(d.action.tx.Logs, l) }

// move adds a transfer of the token.
func (d *draft) move(m move) *move {
	m.of, m.ordinal = d.action, len(d.action.tx.Logs)
	d.log(chaintest.Transfer(token, m.from, m.to, invoice.NewAmount(m.amount)))
	d.action.moves = append(d.action.moves, &m)
	return &m
}

// payer returns a new account.
func (d *draft) payer() invoice.Address {
	return d.address("payer ", len(d.actions), " ", len(d.action.tx.Logs))
}

// name appends the order's id to the transaction's input. It applies to a payment by the
// sender, and to a transfer that the sender makes for an owner who allowed it.
func (d *draft) name() {
	if d.tag == nil {
		return
	}
	d.action.tx.Input = slices.Concat(make([]byte, selectorLen+2*wordLen), d.tag.CommitmentID[:])
	if m := d.tagged; m != nil && m.from != invoice.Address(d.action.tx.From) {
		amount := invoice.NewAmount(m.amount).Bytes()
		d.action.tx.To = new(common.Address(token))
		d.action.tx.Input = slices.Concat(transferFrom, common.LeftPadBytes(m.from[:], wordLen), common.LeftPadBytes(m.to[:], wordLen),
			amount[:], d.tag.CommitmentID[:])
	}
}

// stray returns an amount that differs by far from every order's.
func (s *scenario) stray() uint64 { return uint64(1+s.IntN(20))*1_000_000 + 500_000 + s.Uint64N(1000) }

// part adds a random part to the transaction.
func (d *draft) part() {
	s, o, from := d.scenario, pick(d.scenario, d.orders...), d.payer()
	if o.IsDeposit() {
		d.depositPart(o, from)
		return
	}
	pay := move{from: from, to: o.Merchant, order: o}
	sum := pick(s, o.amount, o.amount, o.amount, o.amount/2, o.amount/2, o.amount+7777, o.exact)
	switch s.IntN(18) {
	case 0, 1, 2: // the transfer amount
		pay.amount, pay.attributionKind = o.exact, byExact
		d.move(pay)
	case 3, 4: // only the amount
		pay.amount, pay.attributionKind = o.amount, byBare
		d.move(pay)
	case 5, 6: // through the registry
		pay.amount, pay.attributionKind = o.amount, named
		d.move(pay)
		d.log(chaintest.Paid(registry, o.CommitmentID, from, o.Merchant, token, invoice.NewAmount(o.amount)))
		d.action.records = append(d.action.records, registryNote{ledger.RegistryPaid, o})
	case 7, 8: // by an authorization
		pay.amount, pay.attributionKind = sum, named
		d.log(chaintest.AuthorizationUsed(token, from, o.CommitmentID))
		d.move(pay)
	case 9: // with the order's id in the transaction's input
		pay.amount, pay.attributionKind = pick(s, sum, s.stray()), named
		if d.tag != nil {
			pay.amount, pay.attributionKind, pay.order = s.stray(), atNone, nil // the input has the id of another order
			d.move(pay)
			return
		}
		if s.chance(70) {
			pay.from = invoice.Address(d.action.tx.From)
		}
		d.tag, d.tagged = o, d.move(pay)
	case 10: // a little less than the amount
		pay.amount, pay.attributionKind = o.amount-1-s.Uint64N(o.amount/100), byLenient
		if o.enough == o.amount {
			pay.attributionKind, pay.order = atNone, nil
		}
		d.move(pay)
	case 11: // some amount, with an event of a false registry
		amount := s.stray()
		d.move(move{from: from, to: o.Merchant, amount: amount})
		l := chaintest.Paid(registry, o.CommitmentID, from, o.Merchant, token, invoice.NewAmount(amount))
		l.Address = common.Address(other)
		d.log(l)
	case 12: // the order's id in a transfer to another account
		elsewhere := s.parties[0].address
		if elsewhere == o.Merchant {
			elsewhere = s.parties[1].address
		}
		d.log(chaintest.AuthorizationUsed(token, from, o.CommitmentID))
		d.move(move{from: from, to: elsewhere, amount: s.stray()})
	case 13, 14:
		d.refund()
	case 15:
		d.registryEvent(o)
	case 16:
		d.lookalike(o, from)
	case 17: // from the address to itself
		d.move(move{from: o.Merchant, to: o.Merchant, amount: pick(s, o.amount, o.exact)})
	}
}

// depositPart adds a payment of any amount to the deposit address of the order, or a sweep of it, possibly with the
// amount of another order.
func (d *draft) depositPart(o *order, from invoice.Address) {
	other := pick(d.scenario, d.orders...)
	amount := pick(d.scenario, o.amount, o.amount/2, d.stray(), other.amount, max(other.exact, other.amount))
	switch d.IntN(6) {
	case 0, 1:
		d.move(move{from: o.DepositAddress, to: o.Merchant, amount: amount, sweeps: o})
		return
	case 2:
		d.log(chaintest.AuthorizationUsed(token, from, other.CommitmentID))
	}
	d.move(move{from: from, to: o.DepositAddress, amount: amount, attributionKind: named, order: o})
}

// refund adds a refund of part of a payment that certainly belongs to its order.
func (d *draft) refund() {
	var of []*move
	for _, paid := range d.actions {
		for _, m := range paid.moves {
			if (m.attributionKind == named || m.attributionKind == byExact) && m.refunded < m.amount {
				of = append(of, m)
			}
		}
	}
	if len(of) == 0 {
		return
	}
	m := pick(d.scenario, of...)
	amount := m.amount - m.refunded
	if d.chance(50) {
		amount = 1 + d.Uint64N(amount)
	}
	m.refunded += amount
	inv, err := ledger.NewReader(d.db.store).Invoice(d.Context(), m.order.ID)
	expect.OK(d, err)
	d.move(move{from: m.order.Merchant, to: m.from, amount: amount, back: m, afterEnd: inv.Status != invoice.Open})
}

// registryEvent emits a registry event about the order.
func (d *draft) registryEvent(o *order) {
	if d.chance(50) {
		d.log(chaintest.Opened(registry, o.CommitmentID))
		d.action.records = append(d.action.records, registryNote{ledger.RegistryOpened, o})
		return
	}
	d.log(chaintest.Closed(registry, o.CommitmentID))
	d.action.records = append(d.action.records, registryNote{ledger.RegistryClosed, o})
}

// lookalike adds a log that resembles a transfer of the token to the order's address.
func (d *draft) lookalike(o *order, from invoice.Address) {
	l := chaintest.Transfer(token, from, o.Merchant, invoice.NewAmount(o.exact))
	switch d.IntN(6) {
	case 0:
		l.Address = common.Address(other)
	case 1:
		l = chaintest.Transfer(token, from, o.Merchant, invoice.Amount{})
	case 2:
		l.Topics = append(l.Topics, common.Hash{31: 1})
	case 3:
		l.Data = append(l.Data, make([]byte, wordLen)...)
	case 4:
		l = chaintest.Transfer(token, from, alice, invoice.NewAmount(o.exact))
	case 5:
		l.Topics[2][0] = 1
	}
	d.log(l)
}

// Methods of faults.
var (
	receiptMethods = []string{"eth_getTransactionReceipt", "eth_getBlockReceipts"}
	methods        = []string{
		"eth_chainId", "eth_getBlockByNumber", "eth_getLogs", "eth_getTransactionReceipt", "eth_getTransactionByHash",
		"eth_getBlockReceipts",
	}
)

// clearFaults removes the faults of the nodes. At the end of a history, one node of three
// may keep its faults, and so may a failing one of two if one vote suffices. It reports
// whether a node kept them.
func (s *scenario) clearFaults() (spared bool) {
	spared = s.chance(30) && (s.nodes == 3 || s.nodes == 2 && s.quorum == 1 && !s.falsifies)
	for i, p := range s.proxies {
		if i != s.dishonest || !spared {
			p.SetFaults()
		}
	}
	return spared
}

// injectFaults replaces the nodes' faults. While the dishonest node falsifies answers, the
// nodes that can detect it answer; see falseAnswers.
func (s *scenario) injectFaults() {
	s.pass(2 * time.Minute) // until the backoff of every node has ended
	for _, p := range s.proxies {
		p.SetFaults()
	}
	s.falsifies = s.chance(50)
	if s.falsifies {
		if answers := s.falseAnswers(); len(answers) > 0 {
			s.proxies[s.dishonest].SetFaults(pick(s, answers...)())
			s.count("lies")
			if s.quorum < 2 {
				return
			}
		}
	}
	for i, p := range s.proxies {
		if i == s.dishonest && s.falsifies || s.chance(50) {
			continue
		}
		var faults []chaintest.Fault
		for range 1 + s.IntN(2) {
			faults = append(faults, s.failure())
		}
		p.SetFaults(faults...)
		s.count("failures")
	}
}

// failure returns a fault that does not falsify a block.
func (s *scenario) failure() chaintest.Fault {
	var f chaintest.Fault
	switch s.IntN(13) {
	case 0:
		f = chaintest.Refuse{Status: http.StatusTooManyRequests, RetryAfter: pick(s, "", "2", "30")}
	case 1:
		f = chaintest.Refuse{Status: pick(s, http.StatusInternalServerError, http.StatusBadGateway, http.StatusRequestEntityTooLarge)}
	case 2:
		f = chaintest.Garbage{}
	case 3:
		f = chaintest.Truncate{}
	case 4:
		f = chaintest.Disconnect{Middle: s.chance(50)}
	case 5:
		f = chaintest.PartialBatch{}
	case 6:
		f = chaintest.Fail{Code: pick(s, -32000, -32005, -32603), Message: pick(s, "internal error", "rate limit exceeded", "header not found")}
	case 7:
		f = chaintest.Only{Methods: []string{pick(s, methods...)}, Fault: chaintest.Fail{Code: -32601, Message: "the method does not exist"}}
	case 8:
		f = chaintest.Only{Methods: []string{pick(s, methods...)}, Fault: chaintest.Null{}}
	case 9:
		return chaintest.LimitLogs{Blocks: 1 + s.Uint64N(64), Logs: 1 + s.Uint64N(20), Wording: pick(s, chaintest.Wordings...)}
	case 10:
		return chaintest.Stale{Behind: 1 + s.Uint64N(5)}
	case 11:
		return chaintest.Sometimes{Percent: 50, Fault: chaintest.Stale{Behind: 1 + s.Uint64N(5)}}
	case 12:
		return chaintest.Stale{At: s.net.Head().Number + 1}
	}
	if s.stalls && s.chance(40) {
		f = chaintest.Stall{}
	}
	if s.chance(60) {
		f = chaintest.Sometimes{Percent: 10 + s.Uint64N(60), Fault: f}
	}
	return f
}

// falseAnswers are the faults of the dishonest node that can be detected from its own answers or from the other nodes'
// answers, under these assumptions:
//
//   - Receipts that are missing or name another block contradict its logs.
//   - Omitting all logs of a block contradicts the block's bloom filter, if the
//     filter has every log and the block is read by its hash.
//   - Inconsistent hashes, and an invented chain, are detected by comparison with
//     another node, while the other nodes answer.
//   - Omitting some logs of a block, inventing logs, and omitting logs of a range
//     are detected only if a second node must agree. An example of the last is a
//     node of which a part is more than maxBlocks behind. Refunds can be missed
//     even then, because no mark identifies a transfer as a refund.
func (s *scenario) falseAnswers() []func() chaintest.Fault {
	near := func() uint64 {
		low := s.floor
		if s.chance(40) {
			low = s.Uint64N(low + 1) // for the time when blocks are read again
		}
		return low + s.Uint64N(s.net.Head().Number-low+4)
	}
	answers := []func() chaintest.Fault{
		func() chaintest.Fault { return chaintest.Only{Methods: receiptMethods, Fault: chaintest.FalseChain{}} },
		func() chaintest.Fault { return chaintest.Only{Methods: receiptMethods[:1], Fault: chaintest.Null{}} },
	}
	dropped := func() chaintest.Fault { return chaintest.DropLogs{From: near()} }
	if s.fullBloom && !s.long || s.quorum > 1 {
		answers = append(answers, dropped)
	}
	if s.nodes > 1 && !s.stalls {
		answers = append(answers,
			func() chaintest.Fault { return chaintest.WrongHash{At: near()} },
			func() chaintest.Fault { return chaintest.FalseChain{From: near()} },
		)
	}
	if s.quorum > 1 {
		forge := func() chaintest.Fault { return s.forge(near()) }
		answers = append(answers, forge, forge, func() chaintest.Fault {
			s.partial = true
			return chaintest.DropLogs{From: near(), Percent: 30 + s.Uint64N(60)}
		})
	}
	return answers
}

// forge returns the log of an invented payment of an order's amount.
func (s *scenario) forge(at uint64) chaintest.Fault {
	o := pick(s, s.orders...)
	f := chaintest.Forge{
		At:   at,
		Logs: []chaintest.Log{chaintest.Transfer(token, alice, o.Merchant, invoice.NewAmount(pick(s, o.exact, o.amount)))},
	}
	s.forgedPayments = append(s.forgedPayments, f)
	return f
}

// judge checks that a block that was reported as final is on the chain.
func (s *scenario) judge(final invoice.Header) {
	s.mu.Lock()
	blocks, floor := s.net.Blocks(), s.floor
	s.mu.Unlock()
	switch {
	case final.Number > floor:
		s.report(extraPayments, "block %d was called final, but block %d is the newest that can be", final.Number, floor)
	case invoice.Hash(blocks[final.Number].Hash) != final.Hash:
		s.report(extraPayments, "block %d was called final as %s, and is %s", final.Number, final.Hash, blocks[final.Number].Hash)
	}
}

// mine adds a block with new transactions, and with some that a reorg removed.
func (s *scenario) mine() {
	s.clock.Add(int64(1 + s.IntN(15)))
	var of []*action
	for range s.IntN(4) {
		of = append(of, s.compose())
	}
	for len(s.loose) > 0 && s.chance(60) {
		i := s.IntN(len(s.loose))
		of = append(of, s.loose[i])
		s.loose = slices.Delete(s.loose, i, i+1)
	}
	s.mineBlock(of)
	s.moveTag()
}

// mineBlock adds a block. Its time may equal its parent's time, and may be a little behind the clock, but is not
// earlier than the creation of an invoice minus the tolerated skew.
func (s *scenario) mineBlock(of []*action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var txs []chaintest.Tx
	for _, d := range of {
		txs = append(txs, d.tx)
	}
	at := max(s.net.Head().Time+int64(s.IntN(2)), s.clock.Load()-int64(s.IntN(15)))
	s.clock.Store(max(s.clock.Load(), at-3))
	b := s.net.MineAt(at, txs...)
	for _, d := range of {
		d.at = append(d.at, b)
	}
	s.highest = max(s.highest, b.Number)
	s.settle()
}

// settle computes the highest block that a node can have reported as final.
func (s *scenario) settle() {
	if line, ok := s.finality.Height(s.highest, s.tag); ok {
		s.floor = max(s.floor, line)
	}
}

// tagAt moves the tag "finalized" to a block.
func (s *scenario) tagAt(number uint64) {
	s.tag = number
	s.net.Tag(s.finality.Tag, number)
	s.settle()
}

// moveTag moves the tag "finalized" towards the head.
func (s *scenario) moveTag() {
	if s.finality.Tag == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if head := s.net.Head().Number; s.tag < head && s.chance(60) {
		s.tagAt(s.tag + 1 + s.Uint64N(min(head-s.tag, 4)))
	}
}

// silence adds blocks without transactions.
func (s *scenario) silence() {
	n := 1 + s.IntN(6)
	if s.long && s.chance(50) {
		n = 3*maxBlocks + s.IntN(3*maxBlocks)
	}
	for range n {
		s.clock.Add(int64(s.IntN(10)))
		s.mineBlock(nil)
	}
	if n > 10 && s.finality.Tag != "" {
		s.mu.Lock()
		s.tagAt(s.net.Head().Number - s.Uint64N(4))
		s.mu.Unlock()
	}
	s.moveTag()
}

// planFork returns a function that replaces blocks that no node can have reported as final,
// and mines some of their transactions in the new blocks.
func (s *scenario) planFork() func() {
	s.mu.Lock()
	head := s.net.Head().Number
	s.mu.Unlock()
	most := head - s.floor
	if most == 0 {
		return func() {}
	}
	depth := 1 + s.Uint64N(most)
	var dropped []*action
	for _, b := range s.net.Blocks()[head-depth+1:] {
		for _, tx := range b.Txs {
			dropped = append(dropped, s.actionOf(tx.Hash))
		}
	}
	if s.chance(30) {
		s.Shuffle(len(dropped), func(i, j int) { dropped[i], dropped[j] = dropped[j], dropped[i] })
	}
	var again [][]*action
	for range s.Uint64N(depth + 2) {
		n := s.IntN(len(dropped) + 1)
		again = append(again, dropped[:n])
		dropped = dropped[n:]
	}
	seconds := int64(s.IntN(10))
	return func() {
		s.count("reorgs")
		s.mu.Lock()
		s.net.Fork(int(depth))
		if head := s.net.Head().Number; s.finality.Tag != "" && s.tag > head {
			s.tagAt(head)
		}
		s.mu.Unlock()
		s.clock.Add(seconds)
		for _, of := range again {
			s.mineBlock(of)
		}
		s.loose = append(s.loose, dropped...)
	}
}

func (s *scenario) actionOf(tx common.Hash) *action {
	i := slices.IndexFunc(s.actions, func(d *action) bool { return d.tx.Hash == tx })
	return s.actions[i]
}
