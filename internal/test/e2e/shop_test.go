package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// shop is a merchant with one customer, who makes one order after the other. Each has its
// own account, so shops do not wait for each other.
type shop struct {
	*world
	id        string
	till      *wallet // the merchant's settlement account
	customer  *wallet
	rand      *rand.Rand
	chainTime *atomic.Int64 // the newest block time that any shop has seen
	orders    []*order
}

// order is an invoice that a shop requests, with its transactions. The amounts of a shop's orders differ.
type order struct {
	kind     kind
	request  apitypes.CreateInvoiceRequest
	answer   *apitypes.CreateInvoiceResponse // nil without a response
	payments map[common.Hash]bool            // by transaction, whether it fits only while the invoice is open
	refunds  map[common.Hash]bool
}

// kind is the plan for an order.
type kind int

const (
	plain      kind = iota // pay the transfer amount
	registry               // pay through the registry
	tagged                 // pay the amount with the commitment's id in the calldata
	bare                   // pay the bare amount
	halves                 // pay by two tagged transfers
	refunded               // pay the transfer amount, and get all or a part of it back
	nearExpiry             // pay when the invoice may have expired
	unpaid                 // do not pay
	keyless                // create without Idempotency-Key, and pay only after a response
	kinds
)

// Lifetimes of invoices, in seconds. Unpaid ones must expire before recovery ends.
const (
	longLife  = 60
	shortLife = 12
)

// trade carries out one order.
func (s *shop) trade(ctx context.Context) error {
	o := &order{
		kind: kind(s.rand.IntN(int(kinds))), payments: make(map[common.Hash]bool), refunds: make(map[common.Hash]bool),
	}
	// The difference between amounts is larger than the suffix of a transfer amount.
	amount := big.NewInt(int64(len(s.orders)+1) * 10_000)
	life := int64(longLife/2 + s.rand.IntN(longLife/2))
	if o.kind == unpaid || o.kind == nearExpiry {
		life = int64(1 + s.rand.IntN(shortLife))
	}
	if header := s.customer.head(ctx); header != nil {
		s.chainTime.Store(max(s.chainTime.Load(), int64(header.Time)))
	}
	o.request = apitypes.CreateInvoiceRequest{
		MerchantID: s.id, MerchantAddress: s.till.address.Hex(), Amount: amount.String(), Currency: "USDC",
		ChainKey: s.info.Load().Chain.ChainKey, ExpiresAt: max(time.Now().Unix()+2, s.chainTime.Load()+life),
	}
	s.orders = append(s.orders, o)
	if err := s.order(ctx, o); err != nil || o.answer == nil {
		return err
	}
	return s.settle(ctx, o, amount)
}

// order creates the invoice. A request with an idempotency key is repeated until it succeeds, and sometimes once more.
func (s *shop) order(ctx context.Context, o *order) error {
	if o.kind == keyless {
		made, err := s.api().CreateInvoice(ctx, o.request)
		if err == nil {
			o.answer = &made
		}
		if o.tooLate(err) {
			return nil
		}
		return unexpected(err)
	}
	key := client.IdempotencyKey(s.id + "-" + o.request.Amount)
	var refused error
	err := await(ctx, func() bool {
		made, err := s.api().CreateInvoice(ctx, o.request, key)
		if o.tooLate(err) {
			return true
		}
		if refused = unexpected(err); err != nil {
			return refused != nil
		}
		if o.answer != nil && o.answer.ID != made.ID {
			refused = fmt.Errorf("one key made the invoices %s and %s", o.answer.ID, made.ID)
			return true
		}
		o.answer = &made
		return s.rand.IntN(8) != 0
	})
	return errors.Join(refused, err)
}

// tooLate reports whether a create was refused because the invoice would have expired by then: the program was down, or
// the machine is slow. An answered request is never too late.
func (o *order) tooLate(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Code == apitypes.CodeInvalidField && refused.Field == "expiresAt" &&
		o.answer == nil && time.Now().Unix() >= o.request.ExpiresAt
}

// unexpected returns the error of a create, unless the service was down or another request
// with the idempotency key was in progress.
func unexpected(err error) error {
	var answer *client.Error
	if !errors.As(err, &answer) || answer.Code == apitypes.CodeUnavailable || answer.Code == apitypes.CodeIdempotencyInProgress {
		return nil
	}
	return err
}

// settle pays the order by its kind.
func (s *shop) settle(ctx context.Context, o *order, amount *big.Int) error {
	tag := common.HexToHash(o.answer.OnChainInvoiceID)
	asked := units(s, o.answer.Invoice.TransferAmount)
	switch o.kind {
	case unpaid:
		return nil
	case registry:
		return s.payThroughRegistry(ctx, o)
	case tagged:
		return s.send(ctx, o, amount, tag[:], false)
	case bare:
		return s.send(ctx, o, amount, nil, true)
	case halves:
		half := new(big.Int).Rsh(amount, 1)
		return errors.Join(s.send(ctx, o, half, tag[:], false), s.send(ctx, o, new(big.Int).Sub(amount, half), tag[:], false))
	case refunded:
		if err := s.send(ctx, o, asked, nil, false); err != nil {
			return err
		}
		if err := s.awaitPaid(ctx, o); err != nil {
			return err
		}
		back := new(big.Int).Rsh(asked, uint(s.rand.IntN(2)))
		_, err := s.till.transfer(ctx, s.customer.address, back, tag[:], func(tx common.Hash) { o.refunds[tx] = true })
		return err
	default:
		return s.send(ctx, o, asked, nil, false)
	}
}

// awaitPaid waits until the service reports the order as paid or expired. A payment that is refunded
// before it is final does not cover the invoice.
func (s *shop) awaitPaid(ctx context.Context, o *order) error {
	return await(ctx, func() bool {
		inv, err := s.api().Invoice(ctx, o.answer.ID)
		return err == nil && inv.Status != apitypes.StatusOpen
	})
}

// send pays by a transfer. onlyOpen is true if the transfer is attributed to the invoice only while that is open.
func (s *shop) send(ctx context.Context, o *order, amount *big.Int, trailing []byte, onlyOpen bool) error {
	_, err := s.customer.transfer(ctx, s.till.address, amount, trailing, func(tx common.Hash) { o.payments[tx] = onlyOpen })
	return err
}

func (s *shop) payThroughRegistry(ctx context.Context, o *order) error {
	terms := s.terms(o.answer.Invoice)
	receipt, err := s.customer.pay(ctx, chain.ContractTerms(terms, o.answer.ID), func(tx common.Hash) { o.payments[tx] = false })
	if err != nil || receipt.Status == types.ReceiptStatusSuccessful {
		return err
	}
	delete(o.payments, receipt.TxHash)
	if header := s.customer.head(ctx); header != nil && int64(header.Time) <= terms.ExpiresAt.Unix() {
		return fmt.Errorf("the registry refused a payment of invoice %s before it expired", o.answer.ID)
	}
	return nil
}

// terms returns an invoice's terms for the registry.
func (w *world) terms(inv apitypes.Invoice) invoice.Terms {
	w.Helper()
	amount := expect.Must(invoice.ParseAmount(inv.Amount))
	return invoice.Terms{
		Merchant: invoice.Address(common.HexToAddress(inv.MerchantAddress)),
		Token:    invoice.Address(common.HexToAddress(w.info.Load().Chain.Token)),
		Amount:   amount, ExpiresAt: invoice.Unix(inv.ExpiresAt),
	}
}

// openShops opens shops with customers that have ether, tokens and an allowance for the registry.
func (w *world) openShops(ctx context.Context, n int, random *rand.Rand) []*shop {
	w.Helper()
	bank := w.payer()
	ether := new(big.Int).Exp(big.NewInt(10), big.NewInt(18), nil)
	chainTime := new(atomic.Int64)
	shops := make([]*shop, n)
	for i := range shops {
		s := &shop{
			world: w, id: "shop-" + strconv.Itoa(i), till: w.newWallet(""), customer: w.newWallet(""),
			rand: rand.New(rand.NewPCG(random.Uint64(), random.Uint64())), chainTime: chainTime,
		}
		for _, a := range []*wallet{s.till, s.customer} {
			expect.Success(w)(bank.send(ctx, a.address, ether, nil, nil))
		}
		expect.Success(w)(bank.transfer(ctx, s.customer.address, big.NewInt(1_000_000_000_000), nil, nil))
		expect.OK(w, s.customer.approve(ctx))
		shops[i] = s
	}
	return shops
}
