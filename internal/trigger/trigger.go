// Package trigger causes an event in a development world: it creates an invoice, and
// pays or refunds it over the chain's JSON-RPC, as merchants and payers do.
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

// Types are the types of events that Run can cause.
var Types = []apitypes.EventType{
	apitypes.EventInvoiceCreated, apitypes.EventPaymentReceived, apitypes.EventInvoicePaid,
	apitypes.EventPaymentRefunded, apitypes.EventInvoiceExpired,
}

// The invoice.
const (
	price = "4900000" // minor units: 4.90 USDC
	label = "Sent by quittance trigger"
	// longLife and shortLife are the lifetimes of invoices, in seconds. shortLife is
	// for one that is to expire; block times may be up to 2 s ahead.
	longLife  = 3600
	shortLife = 3
)

// eventPoll is how often the service is polled for the event.
const eventPoll = 100 * time.Millisecond

// Config is the configuration of Run. All fields are required.
type Config struct {
	World dev.Info
	API   *client.Client // of the world
	Out   io.Writer      // for the steps
}

// Run causes an event of the type, which must be one of Types, and returns it.
func Run(ctx context.Context, cfg Config, typ apitypes.EventType) (apitypes.EventRecord, error) {
	r := &run{cfg: cfg}
	if err := r.create(ctx, typ == apitypes.EventInvoiceExpired); err != nil {
		return apitypes.EventRecord{}, fmt.Errorf("create an invoice: %w", err)
	}
	if slices.Contains([]apitypes.EventType{apitypes.EventPaymentReceived, apitypes.EventInvoicePaid, apitypes.EventPaymentRefunded}, typ) {
		if err := r.pay(ctx, typ == apitypes.EventPaymentRefunded); err != nil {
			return apitypes.EventRecord{}, err
		}
	}
	return r.await(ctx, typ)
}

// run is one call of Run.
type run struct {
	cfg  Config
	made apitypes.CreateInvoiceResponse
}

func (r *run) create(ctx context.Context, expires bool) (err error) {
	life := int64(longLife)
	if expires {
		life = shortLife
	}
	clock, err := dev.Clock(ctx, r.cfg.World.BaseURL)
	if err != nil {
		return err
	}
	r.made, err = r.cfg.API.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{
		MerchantID: r.cfg.World.Merchant.ID, MerchantAddress: r.cfg.World.Merchant.Address, Amount: price, Currency: chain.USDC,
		ChainKey: r.cfg.World.Chain.ChainKey, LineItems: []apitypes.LineItem{{Label: label, Amount: price}}, ExpiresAt: clock.Now + life,
	})
	if err != nil {
		return err
	}
	return r.print("invoice created", "%s, %s", r.made.ID, r.cfg.API.URL(r.made.CheckoutURL))
}

// pay pays the invoice and, with refund, refunds it once it is paid.
func (r *run) pay(ctx context.Context, refund bool) error {
	node, done, err := chain.Dial(ctx, r.cfg.World.Chain.RPCURL)
	if err != nil {
		return fmt.Errorf("reach the chain: %w", err)
	}
	defer done()
	amount := r.made.Invoice.TransferAmount
	if amount == "" { // all suffixes are taken
		amount = price
	}
	to := r.cfg.World.Merchant.Address
	if err := r.transfer(ctx, node, "paid", r.cfg.World.Payer.PrivateKey, to, amount, common.FromHex(r.made.OnChainInvoiceID)); err != nil || !refund {
		return err
	}
	if _, err := r.await(ctx, apitypes.EventInvoicePaid); err != nil {
		return err
	}
	return r.transfer(ctx, node, "refunded", r.cfg.World.Merchant.PrivateKey, r.cfg.World.Payer.Address, amount, nil)
}

func (r *run) transfer(ctx context.Context, node *ethclient.Client, what, key, to, amount string, trailing []byte) error {
	from, err := openWallet(node, r.cfg.World.Chain, key)
	if err != nil {
		return err
	}
	tx, err := from.transfer(ctx, to, amount, trailing)
	if err != nil {
		return err
	}
	return r.print(what, "%s minor units, transaction %s", amount, tx.Hex())
}

// await waits for an event about the invoice.
func (r *run) await(ctx context.Context, typ apitypes.EventType) (apitypes.EventRecord, error) {
	ticker := time.NewTicker(eventPoll)
	defer ticker.Stop()
	filter := client.EventFilter{InvoiceID: r.made.ID, Type: typ}
	for {
		events, _, err := r.cfg.API.EventsAfter(ctx, filter, client.AfterStart)
		switch {
		case err == nil && len(events) > 0:
			return events[0], r.print("event recorded", "%s %s", typ, events[0].ID())
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return apitypes.EventRecord{}, fmt.Errorf("wait for %s: %w", typ, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return apitypes.EventRecord{}, fmt.Errorf("no %s for %s in time: %w", typ, r.made.ID, ctx.Err())
		}
	}
}

// print writes a step.
func (r *run) print(what, format string, args ...any) error {
	_, err := fmt.Fprintf(r.cfg.Out, "%-15s %s\n", what, fmt.Sprintf(format, args...))
	return err
}
