package indexer

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
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
