// Package demo plays the life of four invoices in a development world and
// checks that what should happen does: in the API, on the chain, and in the
// webhooks that a merchant receives.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/dev"
)

// patience bounds the demo.
const patience = 55 * time.Second

// blockTime is the time between the blocks of the demo's chain.
const blockTime = time.Second

// Config is what the demo needs. All members but Color are required.
type Config struct {
	Out    io.Writer
	Color  bool // Out is a terminal
	Now    func() time.Time
	Rand   io.Reader
	Logger *slog.Logger
}

// Run plays the demo. It returns nil only when all of it was observed.
func Run(ctx context.Context, cfg Config) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p := &printer{out: cfg.Out, color: cfg.Color, now: cfg.Now, begun: cfg.Now()}
	p.line(p.style(bold, "Quittance demo: the life of four invoices on a real EVM chain") + "\n")
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

	// The world runs beside the stories and outlives them: it ends when they
	// have, or fails them all when it cannot run.
	worldCtx, end := context.WithCancel(ctx)
	defer end()
	ready := make(chan *dev.World, 1)
	world := make(chan error, 1)
	go func() {
		world <- dev.Run(worldCtx, dev.Config{
			Dir: dir, Listen: "127.0.0.1:0", BlockTime: blockTime, WebhookURL: merchant.url,
			Now: cfg.Now, Rand: cfg.Rand, Logger: cfg.Logger,
		}, func(w *dev.World) { ready <- w })
	}()
	select {
	case w := <-ready:
		err = play(ctx, p, w, merchant)
	case err := <-world:
		return err
	}
	end()
	return errors.Join(err, <-world)
}

// play runs the stories side by side and sums up.
func play(ctx context.Context, p *printer, w *dev.World, merchant *receiver) error {
	merchant.trust(w.Info.Merchant.WebhookSecret)
	api, err := client.New(w.Info.BaseURL)
	if err != nil {
		return err
	}
	p.step("world", "API", w.Info.BaseURL)
	p.step("world", "chain", fmt.Sprintf("%s (id %d), blocks every %s, JSON-RPC at %s",
		w.Info.Chain.ChainKey, w.Info.Chain.ChainID, blockTime, w.Info.Chain.RPCURL))
	p.step("world", "token, registry", w.Info.Chain.Token+", "+w.Info.Chain.Registry)
	p.step("world", "merchant's webhooks", merchant.url)

	all := stories()
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range all {
		t := &teller{story: s, printer: p, world: w, merchant: merchant, api: api}
		s.teller = t
		group.Go(func() error {
			if err := s.tell(ctx, t); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			return nil
		})
	}
	stop := showProgress(ctx, p, w, merchant, all)
	told := group.Wait()
	stop()
	return errors.Join(told, sumUp(p, all, merchant, told == nil))
}

// progressPace is how often the progress is shown.
const progressPace = 200 * time.Millisecond

// showProgress shows how far the world and the stories are until it is
// stopped.
func showProgress(ctx context.Context, p *printer, w *dev.World, merchant *receiver, all []*story) (stop func()) {
	wanted := 0
	for _, s := range all {
		wanted += s.events
	}
	ctx, cancel := context.WithCancel(ctx)
	var shown sync.WaitGroup
	shown.Go(func() {
		ticker := time.NewTicker(progressPace)
		defer ticker.Stop()
		for {
			if head, err := w.Node.Client().BlockNumber(ctx); err == nil {
				p.progress(fmt.Sprintf("%5.1fs  block %d, %d of %d events verified …", p.elapsed(), head, merchant.tally().events, wanted))
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

// sumUp prints the table and reports what is not as it should be.
func sumUp(p *printer, all []*story, merchant *receiver, complete bool) error {
	came := merchant.tally()
	rows := [][]string{{"INVOICE", "STORY", "STATUS", "AMOUNT", "PAID", "REFUNDED", "EVENTS"}}
	wanted := 0
	var errs []error
	for _, s := range all {
		inv := s.teller.invoice
		wanted += s.events
		if complete && came.byInvoice[inv.ID] != s.events {
			errs = append(errs, fmt.Errorf("%s: %d events came; there should be %d", s.name, came.byInvoice[inv.ID], s.events))
		}
		rows = append(rows, []string{inv.ID, s.title, string(inv.Status), usdc(inv.Amount), usdc(inv.AmountPaid), usdc(inv.AmountRefunded),
			strconv.Itoa(came.byInvoice[inv.ID])})
	}
	p.line("")
	if err := p.table(rows); err != nil {
		errs = append(errs, err)
	}
	p.line(fmt.Sprintf("\n%d events delivered, %d with a signature that held, %d refused", came.events+came.refused, came.events, came.refused))
	for _, problem := range came.problems {
		errs = append(errs, errors.New(problem))
	}
	if came.refused > 0 {
		errs = append(errs, fmt.Errorf("%d deliveries had a signature that did not hold", came.refused))
	}
	if complete && came.events != wanted {
		errs = append(errs, fmt.Errorf("%d events came; there should be %d", came.events, wanted))
	}
	if err := errors.Join(errs...); err != nil || !complete {
		return err
	}
	p.line(p.style(green, "Everything was observed: in the API, on the chain and in the webhooks."))
	return nil
}
