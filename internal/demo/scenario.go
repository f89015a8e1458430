package demo

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev"
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
	}
}

// actor runs one scenario: it acts as the merchant and the payer, and waits for the
// outcome.
type actor struct {
	*printer
	scenario *scenario
	world    *dev.World
	merchant *receiver
	api      *client.Client

	invoice      apitypes.Invoice
	commitmentID common.Hash
}

// Lifetimes of the demo's invoices, in seconds.
const (
	longLife  = 600
	shortLife = 5
)

func runTransfer(ctx context.Context, a *actor) error {
	if err := a.sell(ctx, "12340000", "Two tickets"); err != nil {
		return err
	}
	return a.commitment(ctx, contracts.StatusClosed, "closed, so that the registry takes no second payment")
}

func runRegistry(ctx context.Context, a *actor) error {
	if err := a.create(ctx, "250000000", longLife, "A chair"); err != nil {
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
	if err := a.create(ctx, "990000", shortLife, "A coffee that nobody drinks"); err != nil {
		return err
	}
	if err := a.event(ctx, webhook.InvoiceExpired); err != nil {
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
	if err := a.sell(ctx, "40000000", "A lamp that will not shine"); err != nil {
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
	if err := a.event(ctx, webhook.PaymentRefunded); err != nil {
		return err
	}
	return a.check(ctx, func(inv apitypes.Invoice) string {
		return differs("status", string(inv.Status), "paid") + differs("amountRefunded", inv.AmountRefunded, sent)
	})
}

// create creates the scenario's invoice and waits for its webhook.
func (a *actor) create(ctx context.Context, amount string, lifetime int64, label string) error {
	made, err := a.api.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{
		MerchantID: a.world.Info.Merchant.ID, MerchantAddress: a.world.Info.Merchant.Address,
		Amount: amount, Currency: chain.USDC, ChainKey: a.world.Info.Chain.ChainKey,
		LineItems: []apitypes.LineItem{{Label: label, Amount: amount}}, ExpiresAt: a.now().Unix() + lifetime,
	})
	if err != nil {
		return err
	}
	a.invoice, a.commitmentID = made.Invoice, common.HexToHash(made.OnChainInvoiceID)
	a.printStep("invoice created", fmt.Sprintf("%s over %s: %s", made.ID, usdc(amount), label))
	return a.event(ctx, webhook.InvoiceCreated)
}

// sell creates the scenario's invoice and pays it by a plain transfer.
func (a *actor) sell(ctx context.Context, amount, label string) error {
	if err := a.create(ctx, amount, longLife, label); err != nil {
		return err
	}
	hash, err := a.transfer(ctx, a.invoice.TransferAmount)
	if err != nil {
		return err
	}
	return a.paid(ctx, hash)
}

// transfer pays the amount from the payer's account by a plain transfer.
func (a *actor) transfer(ctx context.Context, amount string) (common.Hash, error) {
	n, ok := new(big.Int).SetString(amount, 10)
	if !ok {
		return common.Hash{}, fmt.Errorf("the invoice has the transfer amount %q", amount)
	}
	hash, err := a.world.Node.SendToken(ctx, a.world.Node.Keys.Payer, common.HexToAddress(a.world.Info.Merchant.Address), n, nil)
	if err == nil {
		a.printStep("payer transfers", usdc(amount)+", transaction "+hash.Hex())
	}
	return hash, err
}

// paid waits for the webhooks of the payment, and checks the invoice and the payment in
// the API.
func (a *actor) paid(ctx context.Context, tx common.Hash) error {
	for _, typ := range []string{webhook.PaymentReceived, webhook.InvoicePaid} {
		if err := a.event(ctx, typ); err != nil {
			return err
		}
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

// event waits for a webhook about the invoice.
func (a *actor) event(ctx context.Context, typ string) error {
	e, err := a.merchant.await(ctx, typ, a.invoice.ID)
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

// commitmentPoll is how often the registry is polled for a commitment's status.
const commitmentPoll = 200 * time.Millisecond

// commitment waits until the registry has the status want for the invoice.
func (a *actor) commitment(ctx context.Context, want contracts.Status, words string) error {
	ticker := time.NewTicker(commitmentPoll)
	defer ticker.Stop()
	for {
		is, err := a.world.Node.StatusOf(ctx, a.commitmentID)
		if err != nil {
			return err
		}
		if is == want {
			a.printStep("commitment", a.commitmentID.Hex()+" is "+words)
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("the commitment %s did not become %s: it is %s", a.commitmentID.Hex(), want, is)
		}
	}
}

// terms returns the invoice's terms, computed from the API's data alone.
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
