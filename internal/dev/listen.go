package dev

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
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// Waits of Listen.
const (
	// listenInterval is the wait before a broken stream is continued, and between two polls
	// without new events.
	listenInterval = 250 * time.Millisecond
	// firstBackoff and maxBackoff are the first and the longest wait while the service does
	// not answer. It doubles in between.
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 8 * time.Second
)

// ListenConfig is the configuration of Listen. API, Filter, Out and Now are required.
type ListenConfig struct {
	API       *client.Client
	Filter    client.EventFilter
	FromStart bool               // begin with the oldest stored event
	Redeliver []string           // ids of events to redeliver at the start
	To        *webhooks.Endpoint // events are forwarded to it; nil: they are only printed
	Out       Printer
	Now       func() time.Time
	// Ready, if set, is called once before the first event is printed. Later events are not missed.
	Ready func()
}

// Listen follows the events until ctx ends, and then returns nil. It fails if the service does not answer the first
// request, or rejects a later one. It retries other failures, and continues after the last event.
func Listen(ctx context.Context, cfg ListenConfig) error {
	f := &follower{cfg: cfg, after: client.AfterEnd, ready: func() {}}
	if cfg.Ready != nil {
		f.ready = sync.OnceFunc(cfg.Ready)
	}
	if cfg.FromStart {
		f.after = client.AfterStart
	}
	if cfg.To != nil {
		c := webhooks.NewClient(webhooks.ClientConfig{Guard: webhooks.NewGuard(anywhere)})
		defer c.CloseIdleConnections()
		f.poster = webhooks.NewPoster(webhooks.PosterConfig{Client: c, Now: cfg.Now})
	}
	answered, err := f.stream(ctx)
	if answered {
		err = f.follow(ctx)
	} else if isTooOld(err) {
		f.cfg.Out.note("This service has no streams of deliveries: it is asked for new events, and events redeliver does not reach this terminal.")
		err = f.poll(ctx)
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
	cfg    ListenConfig
	after  string // position of the last event
	begun  bool   // the service has answered
	lost   bool   // a note was printed that the service does not answer
	ready  func() // calls cfg.Ready the first time
	poster *webhooks.Poster
}

// stream reads one stream to its end. It returns whether the stream began, and why it ended.
func (f *follower) stream(ctx context.Context) (answered bool, err error) {
	for message, err := range f.cfg.API.StreamDeliveries(ctx, f.cfg.Filter, f.after) {
		if err != nil {
			return answered, err
		}
		answered = true
		if message.Record != nil {
			if err := f.take(ctx, *message.Record); err != nil {
				return true, err
			}
		}
		f.after = message.Position
		if err := f.found(ctx); err != nil {
			return true, err
		}
	}
	return answered, ctx.Err()
}

// found records that the service answers. The first time it takes the events to redeliver.
func (f *follower) found(ctx context.Context) error {
	if f.lost {
		f.cfg.Out.note("The service answers again.")
		f.lost = false
	}
	if f.begun {
		return nil
	}
	f.begun = true
	f.ready()
	return f.redeliver(ctx)
}

// lose records that the service does not answer.
func (f *follower) lose(err error) {
	if !f.lost {
		f.cfg.Out.note("The service does not answer, will retry: " + err.Error())
		f.lost = true
	}
}

// follow continues the stream, which has ended, until ctx ends. It prints no note about a stream that
// it can continue immediately.
func (f *follower) follow(ctx context.Context) (err error) {
	var backoff time.Duration // 0 while the service answers
	for {
		if !clock.Sleep(ctx, max(backoff, listenInterval), nil) {
			return ctx.Err()
		}
		var answered bool
		switch answered, err = f.stream(ctx); {
		case ctx.Err() != nil:
			return ctx.Err()
		case answered:
			backoff = 0
		case f.skip(err):
		case refusedEvent(err) && !isTooOld(err): // another replica may be older
			return err
		default:
			f.lose(err)
			backoff = min(max(firstBackoff, 2*backoff), maxBackoff)
		}
	}
}

// poll asks for new events until ctx ends.
func (f *follower) poll(ctx context.Context) error {
	var backoff time.Duration // 0 while the service answers
	for {
		more, err := f.pollOnce(ctx)
		switch {
		case err == nil:
			backoff = 0
		case f.skip(err):
			more = true
		case ctx.Err() != nil || !f.begun || refusedEvent(err):
			return err
		default:
			f.lose(err)
			backoff = min(max(firstBackoff, 2*backoff), maxBackoff)
		}
		if !more && !clock.Sleep(ctx, max(backoff, listenInterval), nil) {
			return ctx.Err()
		}
	}
}

// skip continues after lost events.
func (f *follower) skip(err error) bool {
	var lost *client.EventsLostError
	if !errors.As(err, &lost) {
		return false
	}
	f.cfg.Out.note("Events are lost: " + lost.Detail)
	f.after = lost.Position
	return true
}

// refusedEvent reports whether a retry would fail too.
func refusedEvent(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) && answer.Status >= 400 && answer.Status < 500 && answer.Status != http.StatusTooManyRequests
}

// isTooOld reports whether the service is too old for streams of deliveries.
func isTooOld(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) &&
		(answer.Code == apitypes.CodeNotFound || answer.Code == apitypes.CodeInvalidField && answer.Field == "include")
}

// pollOnce prints the next events, and reports whether there were any.
func (f *follower) pollOnce(ctx context.Context) (more bool, err error) {
	events, next, err := f.cfg.API.EventsAfter(ctx, f.cfg.Filter, f.after)
	if err != nil {
		return false, err
	}
	f.after = next
	if err := f.found(ctx); err != nil {
		return false, err
	}
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
		e.Attempts = nil // as in lists of events
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
	a := f.poster.Try(ctx, *f.cfg.To, webhooks.Message{ID: deliveryID(e, l.id), Event: l.typ, Body: e.Event})
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
