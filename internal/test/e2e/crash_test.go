package e2e

import (
	"context"
	"flag"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/test/expect"
)

var (
	seed  = flag.Uint64("seed", 0, "random choices of TestExtraCrash; 0 chooses")
	kills = flag.Int("kills", 6, "how often TestExtraCrash kills the program in the middle of its work")
)

const (
	// startKills is the number of kills during the first start, which creates keys, chain and database.
	startKills = 4
	// startTime exceeds the duration of a first start on an idle machine.
	startTime = 400 * time.Millisecond
	// maxUptime is the longest time between two kills.
	maxUptime = 2 * time.Second
	// shopCount is the number of orders in progress at the same time.
	shopCount = 6
	// tradeTime bounds the time of all kills, and recovery the time until all work is done after the last one. They
	// end a test of a program that is stuck: on an idle machine the kills take half a minute, and the last deliveries
	// are retried 36 s later.
	tradeTime = 6 * time.Minute
	recovery  = 3 * time.Minute
)

// TestExtraCrash kills the program at random moments while invoices are created, paid, refunded
// and expire, and compares their final state with the chain.
func TestExtraCrash(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("the same choices again: go test ./internal/test/e2e -run '^TestExtraCrash$' -seed %d -kills %d", *seed, *kills)
	random := rand.New(rand.NewPCG(*seed, 0))
	ctx := within(t, tradeTime)
	r := newReceiver(t)
	w := newWorld(t, "--block-time", "200ms", "--webhook-url", r.URL)
	for range startKills {
		c := w.begin()
		elapse(c, time.Duration(random.Int64N(int64(startTime))))
		c.kill()
	}
	c := w.start()
	r.setSecret(w.info.Load().Merchant.WebhookSecret)
	shops := w.openShops(ctx, shopCount, random)

	// After the last kill, shops finish their orders.
	closing := make(chan struct{})
	trade, ctx := errgroup.WithContext(ctx)
	for _, s := range shops {
		trade.Go(func() error {
			for {
				select {
				case <-closing:
					return nil
				default:
				}
				if err := s.trade(ctx); err != nil {
					return err
				}
			}
		})
	}
	t.Cleanup(func() { _ = trade.Wait() }) // the context of a failed test has ended
	for n := range *kills {
		// The receiver fails early enough for second retries to be in time.
		r.behave(nil)
		if n%5 == 1 && n < *kills/2 {
			r.behave(hangUp)
		}
		if random.IntN(4) == 0 {
			elapse(c, time.Duration(random.Int64N(int64(startTime)))) // during its start
		} else if w.ready(c) {
			elapse(c, time.Duration(random.Int64N(int64(maxUptime))))
		}
		if c.ended() {
			t.Fatalf("the program ended by itself before kill %d:\n%s", n+1, c.stderr.String())
		}
		c.kill()
		c = w.begin()
	}
	if !w.ready(c) {
		t.Fatalf("the program did not come up again:\n%s", c.stderr.String())
	}
	close(closing)
	expect.OK(t, trade.Wait())
	awaitSettled(t, &auditor{world: w, shops: shops, receiver: r}, c)
}

// awaitSettled waits for the expected state, stops the program gracefully, and checks the state again.
func awaitSettled(t *testing.T, a *auditor, c *child) {
	t.Helper()
	ctx := within(t, recovery)
	var err error
	if a.chain, err = a.shops[0].customer.movements(ctx); err != nil {
		t.Fatal(err)
	}
	begun, left := time.Now(), 0
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for faults := a.audit(ctx); len(faults) > 0; faults = a.audit(ctx) {
		if len(faults) != left {
			left = len(faults)
			t.Logf("%.1fs after the last kill: %d things are not as they must be", time.Since(begun).Seconds(), left)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("after %s still %d things are not as they must be:\n%s", recovery, len(faults), shown(a.audit(context.WithoutCancel(ctx))))
		}
	}
	if code := c.stop(t, syscall.SIGTERM, patience); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	// All deliveries that were in flight have arrived.
	a.wrong = nil
	if a.events(); len(a.wrong) > 0 {
		t.Errorf("after the end:\n%s", shown(a.wrong))
	}
	a.summary()
}

// elapse waits for a time, or until the child ends.
func elapse(c *child, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.done:
	}
}
