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

// story is the life of one invoice.
type story struct {
	name   string // short, stands before each step
	title  string // for the table
	events int    // that the merchant is told
	tell   func(ctx context.Context, t *teller) error
	teller *teller
}

func stories() []*story {
	return []*story{
		{name: "transfer", title: "paid by a plain transfer", events: 3, tell: tellTransfer},
		{name: "registry", title: "paid through the registry", events: 3, tell: tellRegistry},
		{name: "expiry", title: "expired and closed on chain", events: 2, tell: tellExpiry},
		{name: "refund", title: "paid, then refunded", events: 4, tell: tellRefund},
	}
}

// teller tells one story: it acts as the merchant and the payer, and waits
// for what must follow.
type teller struct {
	*printer
	story    *story
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

func tellTransfer(ctx context.Context, t *teller) error {
	if err := t.sell(ctx, "12340000", "Two tickets"); err != nil {
		return err
	}
	return t.commitment(ctx, contracts.StatusClosed, "closed, so that the registry takes no second payment")
}

func tellRegistry(ctx context.Context, t *teller) error {
	if err := t.create(ctx, "250000000", longLife, "A chair"); err != nil {
		return err
	}
	terms, err := t.terms()
	if err != nil {
		return err
	}
	hash, err := t.world.Node.Pay(ctx, t.world.Node.Keys.Payer, terms)
	if err != nil {
		return err
	}
	t.tellStep("payer calls pay()", "registry pay(terms), transaction "+hash.Hex())
	if err := t.paid(ctx, hash); err != nil {
		return err
	}
	return t.commitment(ctx, contracts.StatusPaid, "paid, on the registry's own record")
}

func tellExpiry(ctx context.Context, t *teller) error {
	if err := t.create(ctx, "990000", shortLife, "A coffee that nobody drinks"); err != nil {
		return err
	}
	if err := t.event(ctx, webhook.InvoiceExpired); err != nil {
		return err
	}
	if err := t.check(ctx, func(inv apitypes.Invoice) string {
		return differs("status", string(inv.Status), "expired")
	}); err != nil {
		return err
	}
	return t.commitment(ctx, contracts.StatusClosed, "closed on chain")
}

func tellRefund(ctx context.Context, t *teller) error {
	if err := t.sell(ctx, "40000000", "A lamp that will not shine"); err != nil {
		return err
	}
	sent := t.invoice.AmountPaid
	amount, ok := new(big.Int).SetString(sent, 10)
	if !ok {
		return fmt.Errorf("the invoice has the amountPaid %q", sent)
	}
	back, err := t.world.Node.SendToken(ctx, t.world.Node.Keys.Merchant,
		common.HexToAddress(t.world.Info.Payer.Address), amount, t.commitmentID[:])
	if err != nil {
		return err
	}
	t.tellStep("merchant refunds", usdc(sent)+" to "+t.world.Info.Payer.Address+", transaction "+back.Hex())
	if err := t.event(ctx, webhook.PaymentRefunded); err != nil {
		return err
	}
	return t.check(ctx, func(inv apitypes.Invoice) string {
		return differs("status", string(inv.Status), "paid") + differs("amountRefunded", inv.AmountRefunded, sent)
	})
}

// create creates the story's invoice and sees that the merchant is told.
func (t *teller) create(ctx context.Context, amount string, lifetime int64, label string) error {
	made, err := t.api.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{
		MerchantID: t.world.Info.Merchant.ID, MerchantAddress: t.world.Info.Merchant.Address,
		Amount: amount, Currency: chain.USDC, ChainKey: t.world.Info.Chain.ChainKey,
		LineItems: []apitypes.LineItem{{Label: label, Amount: amount}}, ExpiresAt: t.now().Unix() + lifetime,
	})
	if err != nil {
		return err
	}
	t.invoice, t.commitmentID = made.Invoice, common.HexToHash(made.OnChainInvoiceID)
	t.tellStep("invoice created", fmt.Sprintf("%s over %s: %s", made.ID, usdc(amount), label))
	return t.event(ctx, webhook.InvoiceCreated)
}

// sell creates the story's invoice and sees it paid by a plain transfer.
func (t *teller) sell(ctx context.Context, amount, label string) error {
	if err := t.create(ctx, amount, longLife, label); err != nil {
		return err
	}
	hash, err := t.transfer(ctx, t.invoice.TransferAmount)
	if err != nil {
		return err
	}
	return t.paid(ctx, hash)
}

// transfer pays the amount from the payer's account by a plain transfer.
func (t *teller) transfer(ctx context.Context, amount string) (common.Hash, error) {
	n, ok := new(big.Int).SetString(amount, 10)
	if !ok {
		return common.Hash{}, fmt.Errorf("the invoice has the transfer amount %q", amount)
	}
	hash, err := t.world.Node.SendToken(ctx, t.world.Node.Keys.Payer, common.HexToAddress(t.world.Info.Merchant.Address), n, nil)
	if err == nil {
		t.tellStep("payer transfers", usdc(amount)+", transaction "+hash.Hex())
	}
	return hash, err
}

// paid waits until the merchant knows of the payment, seen and confirmed, and
// holds the API against it.
func (t *teller) paid(ctx context.Context, tx common.Hash) error {
	for _, typ := range []string{webhook.PaymentReceived, webhook.InvoicePaid} {
		if err := t.event(ctx, typ); err != nil {
			return err
		}
	}
	if err := t.check(ctx, func(inv apitypes.Invoice) string {
		return differs("status", string(inv.Status), "paid") + differs("settledTxHash", inv.SettledTxHash, tx.Hex())
	}); err != nil {
		return err
	}
	for p, err := range t.api.Payments(ctx, client.PaymentFilter{MerchantID: t.invoice.MerchantID}) {
		if err != nil {
			return err
		}
		if p.InvoiceID == t.invoice.ID && p.TxHash == tx.Hex() {
			t.tellStep("payment listed", fmt.Sprintf("%s in block %d", p.ID, p.BlockNumber))
			return nil
		}
	}
	return fmt.Errorf("GET /api/payments does not list transaction %s", tx.Hex())
}

// event waits for a webhook about the invoice.
func (t *teller) event(ctx context.Context, typ string) error {
	e, err := t.merchant.await(ctx, typ, t.invoice.ID)
	if err == nil {
		t.tellStep("webhook verified", typ+" "+e.ID)
	}
	return err
}

// check fetches the invoice and returns an error when the function finds
// something wrong with it.
func (t *teller) check(ctx context.Context, wrong func(apitypes.Invoice) string) error {
	inv, err := t.api.Invoice(ctx, t.invoice.ID)
	if err != nil {
		return err
	}
	t.invoice = inv
	if text := wrong(inv); text != "" {
		return fmt.Errorf("GET /api/invoices/%s: %s", inv.ID, text)
	}
	return nil
}

// differs says that a member is not as it should be, or nothing.
func differs(member, is, want string) string {
	if is == want {
		return ""
	}
	return fmt.Sprintf("%s is %q, not %q; ", member, is, want)
}

// commitmentPoll is how often the registry is asked for a commitment's state.
const commitmentPoll = 200 * time.Millisecond

// commitment waits until the registry has the invoice's commitment in a state.
func (t *teller) commitment(ctx context.Context, want contracts.Status, words string) error {
	ticker := time.NewTicker(commitmentPoll)
	defer ticker.Stop()
	for {
		is, err := t.world.Node.StatusOf(ctx, t.commitmentID)
		if err != nil {
			return err
		}
		if is == want {
			t.tellStep("commitment", t.commitmentID.Hex()+" is "+words)
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("the commitment %s did not become %s: it is %s", t.commitmentID.Hex(), want, is)
		}
	}
}

// terms are the invoice's terms as anyone can write them down from what the
// API says.
func (t *teller) terms() (contracts.Terms, error) {
	amount, err := invoice.ParseAmount(t.invoice.Amount)
	if err != nil {
		return contracts.Terms{}, err
	}
	merchant, err := invoice.ParseAddress(t.invoice.MerchantAddress)
	if err != nil {
		return contracts.Terms{}, err
	}
	terms := chain.ContractTerms(invoice.Terms{
		Merchant: merchant, Token: invoice.Address(t.world.Node.Token), Amount: amount, ExpiresAt: t.invoice.ExpiresAt,
	}, t.invoice.ID)
	if id := terms.ID(t.world.Node.ChainID(), t.world.Node.Registry); id != t.commitmentID {
		return terms, fmt.Errorf("the terms hash to %s; the API says %s", id.Hex(), t.commitmentID.Hex())
	}
	return terms, nil
}

func (t *teller) tellStep(what, detail string) { t.step(t.story.name, what, detail) }

// usdc writes minor units for people.
func usdc(minor string) string {
	a, err := invoice.ParseAmount(minor)
	if err != nil {
		return minor
	}
	return strings.Join([]string{a.Major(6), chain.USDC}, " ")
}
