package dev

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/webhook"
)

// scenario is the life of one invoice.
type scenario struct {
	name   string // printed with each step
	title  string // for the table
	events int    // number of events that the merchant receives
	run    func(ctx context.Context, a *actor) error
	actor  *actor
}

func scenarios() []*scenario {
	return []*scenario{
		{name: "transfer", title: "paid by a plain transfer", events: 3, run: runTransfer},
		{name: "registry", title: "paid through the registry", events: 3, run: runRegistry},
		{name: "expiry", title: "expired and closed on chain", events: 2, run: runExpiry},
		{name: "refund", title: "paid, then refunded", events: 4, run: runRefund},
		{name: "exchange", title: "paid to a deposit address", events: 4, run: runExchange},
		{name: "agent", title: "paid by a program (x402)", events: 3, run: runAgent},
	}
}

// actor runs one scenario: it acts as the merchant and the payer, and waits for the
// outcome.
type actor struct {
	*printer
	scenario *scenario
	world    *World
	merchant *receiver
	api      *client.Client
	random   io.Reader

	invoice      apitypes.Invoice
	commitmentID common.Hash
}

// Lifetimes of the demo's invoices, in seconds.
const (
	longLife  = 600
	shortLife = 5
)

func runTransfer(ctx context.Context, a *actor) error {
	if err := a.sell(ctx, order{amount: "12340000", label: "Two tickets"}); err != nil {
		return err
	}
	return a.commitment(ctx, contracts.StatusClosed, "closed, so that the registry takes no second payment")
}

func runRegistry(ctx context.Context, a *actor) error {
	if err := a.create(ctx, order{amount: "250000000", label: "A chair"}); err != nil {
		return err
	}
	terms, err := a.terms()
	if err != nil {
		return err
	}
	hash, err := a.world.Node.Pay(ctx, a.world.Node.Keys.Payer, terms)
	if err != nil {
		return err
	}
	a.printStep("payer calls pay()", "registry pay(terms), transaction "+hash.Hex())
	if err := a.paid(ctx, hash); err != nil {
		return err
	}
	return a.commitment(ctx, contracts.StatusPaid, "paid, on the registry's own record")
}

func runExpiry(ctx context.Context, a *actor) error {
	if err := a.create(ctx, order{amount: "990000", label: "A coffee that nobody drinks", lifetime: shortLife}); err != nil {
		return err
	}
	if err := a.event(ctx, webhook.InvoiceExpired, a.invoice.ID); err != nil {
		return err
	}
	if err := a.check(ctx, func(inv apitypes.Invoice) string {
		return differs("status", string(inv.Status), "expired")
	}); err != nil {
		return err
	}
	return a.commitment(ctx, contracts.StatusClosed, "closed on chain")
}

func runRefund(ctx context.Context, a *actor) error {
	if err := a.sell(ctx, order{amount: "40000000", label: "A lamp that will not shine"}); err != nil {
		return err
	}
	sent := a.invoice.AmountPaid
	amount, ok := new(big.Int).SetString(sent, 10)
	if !ok {
		return fmt.Errorf("the invoice has the amountPaid %q", sent)
	}
	back, err := a.world.Node.SendToken(ctx, a.world.Node.Keys.Merchant,
		common.HexToAddress(a.world.Info.Payer.Address), amount, a.commitmentID[:])
	if err != nil {
		return err
	}
	a.printStep("merchant refunds", usdc(sent)+" to "+a.world.Info.Payer.Address+", transaction "+back.Hex())
	if err := a.event(ctx, webhook.PaymentRefunded, back.Hex()); err != nil {
		return err
	}
	return a.check(ctx, func(inv apitypes.Invoice) string {
		return differs("status", string(inv.Status), "paid") + differs("amountRefunded", inv.AmountRefunded, sent)
	})
}

// order is an order in the merchant's shop.
type order struct {
	amount     string // minor units
	label      string
	lifetime   int64 // of the invoice; 0 means longLife
	collection apitypes.Collection
}

// create creates the scenario's invoice and waits for its webhook.
func (a *actor) create(ctx context.Context, o order) error {
	made, err := a.api.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{
		MerchantID: a.world.Info.Merchant.ID, MerchantAddress: a.world.Info.Merchant.Address,
		Amount: o.amount, Currency: chain.USDC, ChainKey: a.world.Info.Chain.ChainKey, Collection: o.collection,
		LineItems: []apitypes.LineItem{{Label: o.label, Amount: o.amount}}, ExpiresAt: a.now().Unix() + cmp.Or(o.lifetime, longLife),
	})
	if err != nil {
		return err
	}
	a.invoice, a.commitmentID = made.Invoice, common.HexToHash(made.OnChainInvoiceID)
	a.printStep("invoice created", fmt.Sprintf("%s over %s: %s", made.ID, usdc(o.amount), o.label))
	return a.event(ctx, webhook.InvoiceCreated, made.ID)
}

// sell creates the scenario's invoice and pays it by a plain transfer.
func (a *actor) sell(ctx context.Context, o order) error {
	if err := a.create(ctx, o); err != nil {
		return err
	}
	hash, err := a.transfer(ctx, "payer", a.invoice.TransferAmount)
	if err != nil {
		return err
	}
	return a.paid(ctx, hash)
}

// transfer sends the amount from the payer's account to the address that the invoice is
// paid to.
func (a *actor) transfer(ctx context.Context, who, amount string) (common.Hash, error) {
	n, ok := new(big.Int).SetString(amount, 10)
	if !ok {
		return common.Hash{}, fmt.Errorf("the API gives the amount %q to transfer", amount)
	}
	to := common.HexToAddress(cmp.Or(a.invoice.DepositAddress, a.invoice.MerchantAddress))
	hash, err := a.world.Node.SendToken(ctx, a.world.Node.Keys.Payer, to, n, nil)
	if err == nil {
		a.printStep(who+" transfers", usdc(amount)+", transaction "+hash.Hex())
	}
	return hash, err
}

// paid waits for the webhooks of the payment that completes the amount, and checks the
// invoice and the payment in the API.
func (a *actor) paid(ctx context.Context, tx common.Hash) error {
	if err := a.event(ctx, webhook.PaymentReceived, tx.Hex()); err != nil {
		return err
	}
	if err := a.event(ctx, webhook.InvoicePaid, a.invoice.ID); err != nil {
		return err
	}
	if err := a.check(ctx, func(inv apitypes.Invoice) string {
		return differs("status", string(inv.Status), "paid") + differs("settledTxHash", inv.SettledTxHash, tx.Hex())
	}); err != nil {
		return err
	}
	for p, err := range a.api.Payments(ctx, client.PaymentFilter{MerchantID: a.invoice.MerchantID}) {
		if err != nil {
			return err
		}
		if p.InvoiceID == a.invoice.ID && p.TxHash == tx.Hex() {
			a.printStep("payment listed", fmt.Sprintf("%s in block %d", p.ID, p.BlockNumber))
			return nil
		}
	}
	return fmt.Errorf("GET /api/payments does not list transaction %s", tx.Hex())
}

// event waits for a webhook about an invoice or a transaction.
func (a *actor) event(ctx context.Context, typ, about string) error {
	e, err := a.merchant.await(ctx, typ, about)
	if err == nil {
		a.printStep("webhook verified", typ+" "+e.ID)
	}
	return err
}

// check fetches the invoice, and returns an error if wrong returns a text.
func (a *actor) check(ctx context.Context, wrong func(apitypes.Invoice) string) error {
	inv, err := a.api.Invoice(ctx, a.invoice.ID)
	if err != nil {
		return err
	}
	a.invoice = inv
	if text := wrong(inv); text != "" {
		return fmt.Errorf("GET /api/invoices/%s: %s", inv.ID, text)
	}
	return nil
}

// differs returns a text if a member differs from its expected value, else "".
func differs(member, is, want string) string {
	if is == want {
		return ""
	}
	return fmt.Sprintf("%s is %q, not %q; ", member, is, want)
}

// pollInterval is the interval of queries to the chain and the API.
const pollInterval = 200 * time.Millisecond

// poll calls done until it returns true.
func poll(ctx context.Context, done func() (bool, error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// commitment waits until the registry has the status want for the invoice.
func (a *actor) commitment(ctx context.Context, want contracts.Status, words string) error {
	var is contracts.Status
	err := poll(ctx, func() (_ bool, err error) {
		is, err = a.world.Node.StatusOf(ctx, a.commitmentID)
		return is == want, err
	})
	if err != nil {
		return fmt.Errorf("the commitment %s did not become %s: it is %s: %w", a.commitmentID.Hex(), want, is, err)
	}
	a.printStep("commitment", a.commitmentID.Hex()+" is "+words)
	return nil
}

// terms returns the invoice's terms, computed only from the API's data.
func (a *actor) terms() (contracts.Terms, error) {
	amount, err := invoice.ParseAmount(a.invoice.Amount)
	if err != nil {
		return contracts.Terms{}, err
	}
	merchant, err := invoice.ParseAddress(a.invoice.MerchantAddress)
	if err != nil {
		return contracts.Terms{}, err
	}
	terms := chain.ContractTerms(invoice.Terms{
		Merchant: merchant, Token: invoice.Address(a.world.Node.Token), Amount: amount, ExpiresAt: invoice.Unix(a.invoice.ExpiresAt),
	}, a.invoice.ID)
	if id := terms.ID(a.world.Node.ChainID(), a.world.Node.Registry); id != a.commitmentID {
		return terms, fmt.Errorf("the terms hash to %s; the API says %s", id.Hex(), a.commitmentID.Hex())
	}
	return terms, nil
}

func (a *actor) printStep(what, detail string) { a.step(a.scenario.name, what, detail) }

// usdc formats minor units as an amount of USDC.
func usdc(minor string) string {
	amount, err := invoice.ParseAmount(minor)
	if err != nil {
		return minor
	}
	return strings.Join([]string{amount.Major(6), chain.USDC}, " ")
}
