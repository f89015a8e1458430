package e2e

import (
	"context"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/devtest"
)

// TestExtraListenSurvivesRestarts kills the service while invoices are created and a terminal
// listens. The terminal forwards every event, under one delivery id, and has one line for
// each outage and one for its end. Then an event is redelivered to it: the merchant has no
// endpoint.
func TestExtraListenSurvivesRestarts(t *testing.T) {
	t.Parallel()
	const restarts, secret = 3, "whsec_bGlzdGVuIHRvIHdoYXQgdGhlIGNoYWluIHNheXM="
	ctx := within(t, 3*time.Minute)
	r := newReceiver(t)
	r.setSecret(secret)
	w := newWorld(t, "--block-time", quick)
	w.args[slices.Index(w.args, "127.0.0.1:0")] = devtest.FreeAddress(t) // where it starts again
	c := w.start()
	at := w.info.Load().BaseURL
	terminal := launch(t, "listen", "--url", at, "--forward-to", r.URL, "--secret", secret)
	if err := await(ctx, func() bool { return strings.Contains(terminal.stdout.String(), "Listening to") }); err != nil {
		t.Fatal(err)
	}

	created := w.createUntil(ctx, func() {
		for range restarts {
			before := len(w.events(ctx))
			c.kill()
			c = w.start()
			if err := await(ctx, func() bool { return len(w.events(ctx)) > before+5 }); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, id := range created {
		r.await(ctx, string(apitypes.EventInvoiceCreated), id)
	}
	all := w.events(ctx)
	for _, e := range all {
		r.await(ctx, string(e.Envelope().Type), e.InvoiceID)
	}
	text := terminal.stdout.String()
	if lost, back := strings.Count(text, "does not answer"), strings.Count(text, "answers again"); lost > restarts || back != lost {
		t.Errorf("%d lines about outages and %d about their ends, after %d restarts", lost, back, restarts)
	}
	t.Logf("%d events, %d lines on the terminal", len(all), strings.Count(text, "\n"))

	again := all[0].ID()
	was := r.attemptsOf(again)
	redeliver := launch(t, "events", "redeliver", again, "--url", at)
	if code := redeliver.exit(t, patience); code != 0 || !strings.Contains(redeliver.stdout.String(), "1 event is sent again") {
		t.Fatalf("redeliver: exit code %d", code)
	}
	if err := await(ctx, func() bool { return r.attemptsOf(again) > was }); err != nil {
		t.Fatal(err)
	}
	if code := terminal.stop(t, syscall.SIGTERM, patience); code != 0 {
		t.Errorf("the terminal ended with %d", code)
	}
	r.clean()
}

// createUntil creates invoices until during has returned, also while the service is away, and returns
// the ids of the acknowledged ones.
func (w *world) createUntil(ctx context.Context, during func()) (ids []string) {
	w.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := client.New(w.info.Load().BaseURL)
	if err != nil {
		w.Fatal(err)
	}
	draft := w.draft("4900000")
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			if made, err := c.CreateInvoice(ctx, draft); err == nil {
				ids = append(ids, made.ID)
			}
			if !sleep(ctx, 20*time.Millisecond) {
				return
			}
		}
	})
	during()
	cancel()
	group.Wait()
	return ids
}

// sleep waits, and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// events returns all events.
func (w *world) events(ctx context.Context) (all []apitypes.EventRecord) {
	w.Helper()
	for e, err := range w.api().Events(ctx, client.EventFilter{PageSize: 200}) {
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// attemptsOf returns how often an event was received.
func (r *receiver) attemptsOf(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.events[id]; e != nil {
		return e.attempts
	}
	return 0
}
