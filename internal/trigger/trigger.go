// Package trigger makes an event happen in a development world: it creates an
// invoice and does to it, over the API and the chain's JSON-RPC, what leads to
// the event in earnest. Nothing of it is made up.
package trigger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev"
)

// Types are those of the events that can be made to happen.
var Types = []apitypes.EventType{
	apitypes.EventInvoiceCreated, apitypes.EventPaymentReceived, apitypes.EventInvoicePaid,
	apitypes.EventPaymentRefunded, apitypes.EventInvoiceExpired,
}

// What is sold.
const (
	price = "4900000" // minor units: 4.90 USDC
	label = "Sent by quittance trigger"
	// longLife and shortLife are how long invoices can be paid, in seconds: the
	// latter of one that is to expire. The chain may be dated up to 2 s ahead.
	longLife  = 3600
	shortLife = 3
)

// eventPoll is how often the service is asked whether the event is there.
const eventPoll = 100 * time.Millisecond

// Config says where what is to happen. All members are required.
type Config struct {
	World dev.Info
	API   *client.Client // of the world
	Out   io.Writer      // is told each step
	Now   func() time.Time
}

// Run makes an event of the type, which is one of Types, happen, and returns
// it.
func Run(ctx context.Context, cfg Config, typ apitypes.EventType) (apitypes.EventRecord, error) {
	t := &teller{Config: cfg}
	if err := t.create(ctx, typ == apitypes.EventInvoiceExpired); err != nil {
		return apitypes.EventRecord{}, fmt.Errorf("create an invoice: %w", err)
	}
	if slices.Contains([]apitypes.EventType{apitypes.EventPaymentReceived, apitypes.EventInvoicePaid, apitypes.EventPaymentRefunded}, typ) {
		if err := t.move(ctx, typ == apitypes.EventPaymentRefunded); err != nil {
			return apitypes.EventRecord{}, err
		}
	}
	return t.await(ctx, typ)
}

// teller is a run of what happens to one invoice.
type teller struct {
	Config
	made apitypes.CreateInvoiceResponse
}

func (t *teller) create(ctx context.Context, expires bool) (err error) {
	life := int64(longLife)
	if expires {
		life = shortLife
	}
	t.made, err = t.API.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{
		MerchantID: t.World.Merchant.ID, MerchantAddress: t.World.Merchant.Address, Amount: price, Currency: chain.USDC,
		ChainKey: t.World.Chain.ChainKey, LineItems: []apitypes.LineItem{{Label: label, Amount: price}}, ExpiresAt: t.Now().Unix() + life,
	})
	if err != nil {
		return err
	}
	return t.tell("invoice created", "%s, %s", t.made.ID, t.API.URL(t.made.CheckoutURL))
}

// move pays the invoice, and pays it back once it is paid.
func (t *teller) move(ctx context.Context, back bool) error {
	node, done, err := chain.Dial(ctx, t.World.Chain.RPCURL)
	if err != nil {
		return fmt.Errorf("reach the chain: %w", err)
	}
	defer done()
	amount := t.made.Invoice.TransferAmount
	if amount == "" { // all suffixes are taken
		amount = price
	}
	to := t.World.Merchant.Address
	if err := t.transfer(ctx, node, "paid", t.World.Payer.PrivateKey, to, amount, common.FromHex(t.made.OnChainInvoiceID)); err != nil || !back {
		return err
	}
	if _, err := t.await(ctx, apitypes.EventInvoicePaid); err != nil {
		return err
	}
	return t.transfer(ctx, node, "refunded", t.World.Merchant.PrivateKey, t.World.Payer.Address, amount, nil)
}

func (t *teller) transfer(ctx context.Context, node *ethclient.Client, what, key, to, amount string, trailing []byte) error {
	from, err := openWallet(node, t.World.Chain, key)
	if err != nil {
		return err
	}
	tx, err := from.transfer(ctx, to, amount, trailing)
	if err != nil {
		return err
	}
	return t.tell(what, "%s minor units, transaction %s", amount, tx.Hex())
}

// await waits for an event about the invoice.
func (t *teller) await(ctx context.Context, typ apitypes.EventType) (apitypes.EventRecord, error) {
	ticker := time.NewTicker(eventPoll)
	defer ticker.Stop()
	filter := client.EventFilter{InvoiceID: t.made.ID, Type: typ}
	for {
		events, _, err := t.API.EventsAfter(ctx, filter, client.AfterStart)
		switch {
		case err == nil && len(events) > 0:
			return events[0], t.tell("event recorded", "%s %s", typ, events[0].ID())
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return apitypes.EventRecord{}, fmt.Errorf("wait for %s: %w", typ, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return apitypes.EventRecord{}, fmt.Errorf("%s did not come in time about %s: %w", typ, t.made.ID, ctx.Err())
		}
	}
}

// tell writes a step.
func (t *teller) tell(what, format string, args ...any) error {
	_, err := fmt.Fprintf(t.Out, "%-15s %s\n", what, fmt.Sprintf(format, args...))
	return err
}
