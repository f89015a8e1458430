package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
)

// timeout bounds the demo.
const timeout = 55 * time.Second

// blockTime is the time between the blocks of the demo's chain.
const blockTime = time.Second

// DemoConfig is the configuration of RunDemo. Only Color is optional.
type DemoConfig struct {
	Out    io.Writer
	Color  bool // Out is a terminal
	Now    func() time.Time
	Rand   io.Reader
	Logger *slog.Logger
}

// RunDemo runs the demo. It returns nil only if every expected outcome was observed.
func RunDemo(ctx context.Context, cfg DemoConfig) (err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	p := &printer{out: cfg.Out, color: cfg.Color, now: cfg.Now, begun: cfg.Now()}
	p.line(p.style(bold, "Quittance demo: the life of six invoices on a real EVM chain") + "\n")
	dir, err := os.MkdirTemp("", "quittance-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	merchant := newReceiver()
	if err := merchant.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, merchant.stop(context.WithoutCancel(ctx))) }()

	// The world runs until the scenarios have ended.
	worldCtx, end := context.WithCancel(ctx)
	defer end()
	ready := make(chan *World, 1)
	world := make(chan error, 1)
	go func() {
		world <- Run(worldCtx, Config{
			Dir: dir, Listen: "127.0.0.1:0", BlockTime: blockTime, WebhookURL: merchant.url,
			Now: cfg.Now, Rand: cfg.Rand, Logger: cfg.Logger,
		}, func(w *World) { ready <- w })
	}()
	select {
	case w := <-ready:
		err = play(ctx, cfg, p, w, merchant)
	case err := <-world:
		return err
	}
	end()
	return errors.Join(err, <-world)
}

// play runs the scenarios concurrently and prints a summary.
func play(ctx context.Context, cfg DemoConfig, p *printer, w *World, merchant *receiver) error {
	merchant.setSecret(w.Info.Merchant.WebhookSecret)
	api, key, err := merchantClient(ctx, w.Info)
	if err != nil {
		return err
	}
	p.step("world", "API", w.Info.BaseURL)
	p.step("world", "merchant's key", fmt.Sprintf("%s… with %s", key.Hint, strings.Join(key.Scopes, ", ")))
	p.step("world", "chain", fmt.Sprintf("%s (id %d), blocks every %s, JSON-RPC at %s",
		w.Info.Chain.ChainKey, w.Info.Chain.ChainID, blockTime, w.Info.Chain.RPCURL))
	p.step("world", "token, registry", w.Info.Chain.Token+", "+w.Info.Chain.Registry)
	p.step("world", "merchant's webhooks", merchant.url)

	all := scenarios()
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range all {
		a := &actor{scenario: s, printer: p, world: w, merchant: merchant, api: api, random: cfg.Rand}
		s.actor = a
		group.Go(func() error {
			if err := s.run(ctx, a); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			return nil
		})
	}
	stop := showProgress(ctx, p, w, merchant, all)
	err = group.Wait()
	stop()
	return errors.Join(err, summarize(p, all, merchant, err == nil))
}

// merchantClient creates a key of the merchant, and returns a client with that key.
func merchantClient(ctx context.Context, info Info) (*client.Client, apitypes.Key, error) {
	operator, err := client.New(info.BaseURL)
	if err != nil {
		return nil, apitypes.Key{}, err
	}
	key, secret, err := operator.CreateKey(ctx, apitypes.CreateKeyRequest{Name: "demo", MerchantID: info.Merchant.ID, Scopes: []string{access.PresetStandard}})
	if err != nil {
		return nil, apitypes.Key{}, fmt.Errorf("create the merchant's key: %w", err)
	}
	c, err := client.New(info.BaseURL, client.WithKey(secret))
	return c, key, err
}

// progressInterval is how often the progress is printed.
const progressInterval = 200 * time.Millisecond

// showProgress prints the progress until stop is called.
func showProgress(ctx context.Context, p *printer, w *World, merchant *receiver, all []*scenario) (stop func()) {
	wanted := 0
	for _, s := range all {
		wanted += s.events
	}
	ctx, cancel := context.WithCancel(ctx)
	var shown sync.WaitGroup
	shown.Go(func() {
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			if head, err := w.Node.Client().BlockNumber(ctx); err == nil {
				p.progress(fmt.Sprintf("%5.1fs  block %d, %d of %d events verified …", p.elapsed(), head, merchant.summary().events, wanted))
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); shown.Wait() }
}

// summarize prints the table, and returns an error for each unexpected outcome.
func summarize(p *printer, all []*scenario, merchant *receiver, complete bool) error {
	got := merchant.summary()
	rows := [][]string{{"INVOICE", "STORY", "STATUS", "AMOUNT", "PAID", "REFUNDED", "EVENTS"}}
	wanted := 0
	var errs []error
	for _, s := range all {
		inv := s.actor.invoice
		wanted += s.events
		if complete && got.byInvoice[inv.ID] != s.events {
			errs = append(errs, fmt.Errorf("%s: received %d events, want %d", s.name, got.byInvoice[inv.ID], s.events))
		}
		rows = append(rows, []string{inv.ID, s.title, string(inv.Status), usdc(inv.Amount), usdc(inv.AmountPaid), usdc(inv.AmountRefunded),
			strconv.Itoa(got.byInvoice[inv.ID])})
	}
	p.line("")
	if err := p.table(rows); err != nil {
		errs = append(errs, err)
	}
	p.line(fmt.Sprintf("\n%d events delivered, %d with a signature that held, %d refused", got.events+got.refused, got.events, got.refused))
	for _, problem := range got.problems {
		errs = append(errs, errors.New(problem))
	}
	if got.refused > 0 {
		errs = append(errs, fmt.Errorf("%d deliveries had a signature that did not hold", got.refused))
	}
	if complete && got.events != wanted {
		errs = append(errs, fmt.Errorf("received %d events, want %d", got.events, wanted))
	}
	if err := errors.Join(errs...); err != nil || !complete {
		return err
	}
	p.line(p.style(green, "Everything was observed: in the API, on the chain and in the webhooks."))
	return nil
}
