// Package listen follows a service's events for the developer of a receiver: it prints
// each event, and forwards it to a receiver as the service would deliver it.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/wait"
)

// Polling of the service.
const (
	// pollInterval is the wait between two polls without new events.
	pollInterval = 250 * time.Millisecond
	// firstBackoff and maxBackoff are the first and the longest wait after a failed
	// poll. It doubles in between.
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 8 * time.Second
)

// Config is the configuration of Run. API, Filter, Out and Now are required.
type Config struct {
	API       *client.Client
	Filter    client.EventFilter
	FromStart bool             // begin with the oldest stored event
	Redeliver []string         // ids of events that come once more, at the start
	To        *poster.Endpoint // events are forwarded to it; nil: they are only printed
	Out       Printer
	Now       func() time.Time
	// Ready, when set, is called once before the first event is printed. Later events
	// are not missed.
	Ready func()
}

// Run follows the events until ctx ends, and returns nil then. It fails if the first
// poll fails, or if the service rejects a later one. Other failures are retried, and
// Run continues after the last event.
func Run(ctx context.Context, cfg Config) error {
	f := &follower{cfg: cfg, after: client.AfterEnd, ready: func() {}}
	if cfg.Ready != nil {
		f.ready = sync.OnceFunc(cfg.Ready)
	}
	if cfg.FromStart {
		f.after = client.AfterStart
	}
	if cfg.To != nil {
		c := poster.NewClient(poster.ClientConfig{Guard: poster.NewGuard(anywhere)})
		defer c.CloseIdleConnections()
		f.poster = poster.New(poster.Config{Client: c, Now: cfg.Now})
	}
	more, err := f.poll(ctx)
	if err == nil {
		err = f.redeliver(ctx)
	}
	if err == nil {
		err = f.follow(ctx, more)
	}
	if errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// anywhere allows all addresses, because the user of the command chooses the receiver,
// which usually runs on the same machine.
var anywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

type follower struct {
	cfg    Config
	after  string // position of the last event
	ready  func() // calls cfg.Ready the first time
	poster *poster.Poster
}

// follow polls until ctx ends. more says that the last poll returned events.
func (f *follower) follow(ctx context.Context, more bool) error {
	var backoff time.Duration // 0 while the service answers
	for {
		if !more {
			if !wait.Sleep(ctx, max(backoff, pollInterval), nil) {
				return ctx.Err()
			}
		}
		var err error
		more, err = f.poll(ctx)
		switch {
		case err == nil && backoff > 0:
			f.cfg.Out.note("The service answers again.")
			backoff = 0
		case err == nil:
		case ctx.Err() != nil || refused(err):
			return err
		case backoff == 0:
			f.cfg.Out.note("The service does not answer, will retry: " + err.Error())
			backoff = firstBackoff
		default:
			backoff = min(2*backoff, maxBackoff)
		}
	}
}

// refused reports whether a retry would fail too.
func refused(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) && answer.Status >= 400 && answer.Status < 500 && answer.Status != http.StatusTooManyRequests
}

// poll prints the next events, and reports whether there were any.
func (f *follower) poll(ctx context.Context) (more bool, err error) {
	events, next, err := f.cfg.API.EventsAfter(ctx, f.cfg.Filter, f.after)
	if err != nil {
		return false, err
	}
	f.after = next
	f.ready()
	for _, e := range events {
		if err := f.take(ctx, e); err != nil {
			return false, err
		}
	}
	return len(events) > 0, nil
}

// redeliver prints the events of cfg.Redeliver, and forwards them.
func (f *follower) redeliver(ctx context.Context) error {
	for _, id := range f.cfg.Redeliver {
		e, err := f.cfg.API.Event(ctx, id)
		if err != nil {
			return fmt.Errorf("redeliver %s: %w", id, err)
		}
		e.Attempts = nil // as in lists
		if err := f.take(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// take prints an event, and forwards it. It fails only if ctx ends.
func (f *follower) take(ctx context.Context, e apitypes.EventRecord) error {
	l, err := read(e)
	if err != nil {
		f.cfg.Out.note(err.Error())
		return nil
	}
	if f.cfg.To == nil {
		f.cfg.Out.event(l, nil)
		return nil
	}
	a := f.poster.Try(ctx, *f.cfg.To, poster.Message{ID: deliveryID(e, l.id), Event: l.typ, Body: e.Event})
	if err := ctx.Err(); err != nil {
		return err
	}
	f.cfg.Out.event(l, &a)
	return nil
}

// deliveryID returns the id of the event's delivery. An event of a merchant without
// an endpoint has no delivery; its id is derived from the event's, so that it is stable.
func deliveryID(e apitypes.EventRecord, eventID string) string {
	if e.Delivery != nil {
		return e.Delivery.ID
	}
	return invoice.PrefixDelivery + strings.TrimPrefix(eventID, invoice.PrefixEvent)
}
