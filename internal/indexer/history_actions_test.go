package indexer

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// party is a merchant. A lenient one takes a little less than the amount.
type party struct {
	id      string
	address invoice.Address
	lenient bool
}

// order is an invoice as it was created.
type order struct {
	invoice.Invoice
	amount, enough, exact uint64 // asked for, enough to be paid, and with the suffix
	number                int    // of transactions that were there before it
}

// action is a transaction, and what it is meant to be. It may be mined in
// several blocks, one after the other.
type action struct {
	tx      chaintest.Tx
	number  int // of transactions that were there before it
	moves   []*move
	records []registryNote     // of the registry
	at      []*chaintest.Block // where it was ever mined
}

// registryNote is an event of the registry about an order.
type registryNote struct {
	kind settle.RegistryEventKind
	of   *order
}

// attributionKind is how a transfer says which order it is for.
type attributionKind int

const (
	atNone    attributionKind = iota
	named                     // by the registry, an authorization or calldata
	byExact                   // by the transfer amount
	byBare                    // by the amount
	byLenient                 // by a little less than the amount
)

// move is a transfer of the watched token to a merchant, or one back.
type move struct {
	of              *action
	ordinal         int
	from, to        invoice.Address
	amount          uint64
	attributionKind attributionKind
	order           *order // nil when it is for none
	back            *move  // the payment that it refunds
	refunded        uint64 // how much of it is paid back by others
}

// order creates an invoice.
func (s *scenario) order() { s.orderOf(pick(s, s.parties...)) }

// orderOf creates an invoice of a merchant, or a twin of another. The amounts
// of all but twins are far apart.
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
	inv, err := s.service.Create(s.Context(), settle.CreateRequest{Draft: invoice.Draft{
		MerchantID: p.id, Merchant: p.address, Amount: invoice.NewAmount(amount), Currency: chain.USDC,
		ChainKey: s.name, ExpiresAt: invoice.Unix(s.clock.Load() + life),
	}})
	if err != nil {
		s.Fatal(err)
	}
	o := &order{Invoice: inv, number: len(s.actions), amount: amount, enough: amount, exact: small(inv.TransferAmount)}
	if p.lenient {
		o.enough -= amount / 100
	}
	if o.exact <= amount || o.exact > amount+999 || slices.ContainsFunc(s.orders, func(other *order) bool { return other.exact == o.exact }) {
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

// draft is a transaction that is being composed.
type draft struct {
	*scenario
	action *action
	tag    *order // that the input names, if any
	tagged *move  // the transfer that the calldata tag is for, if any
}

// compose makes a transaction of one or several parts, which have nothing to
// do with each other.
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

// payer returns an account that did nothing yet.
func (d *draft) payer() invoice.Address {
	return d.address("payer ", len(d.actions), " ", len(d.action.tx.Logs))
}

// name has the transaction's input end with the order's id. That speaks for
// what its sender pays, or what it transfers for another who allowed that.
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

// stray is an amount that no order has, nor any near to it.
func (s *scenario) stray() uint64 { return uint64(1+s.IntN(20))*1_000_000 + 500_000 + s.Uint64N(1000) }

// part adds something to the transaction.
func (d *draft) part() {
	s, o, from := d.scenario, pick(d.scenario, d.orders...), d.payer()
	pay := move{from: from, to: o.Merchant, order: o}
	sum := pick(s, o.amount, o.amount, o.amount, o.amount/2, o.amount/2, o.amount+7777, o.exact)
	switch s.IntN(18) {
	case 0, 1, 2: // as the checkout asks for
		pay.amount, pay.attributionKind = o.exact, byExact
		d.move(pay)
	case 3, 4: // the amount alone
		pay.amount, pay.attributionKind = o.amount, byBare
		d.move(pay)
	case 5, 6: // through the registry
		pay.amount, pay.attributionKind = o.amount, named
		d.move(pay)
		d.log(chaintest.Paid(registry, o.CommitmentID, from, o.Merchant, token, invoice.NewAmount(o.amount)))
		d.action.records = append(d.action.records, registryNote{settle.RegistryPaid, o})
	case 7, 8: // by an authorization
		pay.amount, pay.attributionKind = sum, named
		d.log(chaintest.AuthorizationUsed(token, from, o.CommitmentID))
		d.move(pay)
	case 9: // named by the transaction's input
		pay.amount, pay.attributionKind = pick(s, sum, s.stray()), named
		if d.tag != nil {
			pay.amount, pay.attributionKind, pay.order = s.stray(), atNone, nil // it names another
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

// refund pays back some of a payment that surely has an order.
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
	d.move(move{from: m.to, to: m.from, amount: amount, back: m})
}

// registryEvent emits a registry event about the order.
func (d *draft) registryEvent(o *order) {
	if d.chance(50) {
		d.log(chaintest.Opened(registry, o.CommitmentID))
		d.action.records = append(d.action.records, registryNote{settle.RegistryOpened, o})
		return
	}
	d.log(chaintest.Closed(registry, o.CommitmentID))
	d.action.records = append(d.action.records, registryNote{settle.RegistryClosed, o})
}

// lookalike adds what is no transfer of the token to the order's address.
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
