// Package listen follows a service's events for the developer of a merchant: it
// prints each as it comes, and posts it to a receiver on his machine as the
// service would.
package listen

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/wait"
)

// How often the service is asked.
const (
	// pollInterval is the time between two looks when nothing is new.
	pollInterval = 250 * time.Millisecond
	// firstPause and longestPause bound the time until a service that does not
	// answer is asked again. Each pause is twice the one before.
	firstPause   = 500 * time.Millisecond
	longestPause = 8 * time.Second
)

// Config says what to follow. API, Filter, Out and Now are used always; the
// zero value of the others is of use.
type Config struct {
	API       *client.Client
	Filter    client.EventFilter
	FromStart bool             // begin with the oldest event that is kept
	To        *poster.Endpoint // where events are posted; nil for nowhere
	Out       Printer
	Now       func() time.Time
	// Ready, when set, is called once before the first event is printed: none
	// that comes from then on is missed.
	Ready func()
}

// Run follows the events until the context ends, and returns nil then. It
// begins only with a service that answers. When it stops to answer later, Run
// asks until it does again, and goes on where it was; it returns an error when
// the service refuses the request.
func Run(ctx context.Context, cfg Config) error {
	f := &follower{Config: cfg, after: client.AfterEnd}
	if cfg.FromStart {
		f.after = client.AfterStart
	}
	if cfg.To != nil {
		c := poster.NewClient(poster.ClientConfig{Guard: poster.NewGuard(anywhere)})
		defer c.CloseIdleConnections()
		f.poster = poster.New(poster.Config{Client: c, Now: cfg.Now})
	}
	more, err := f.look(ctx)
	if err == nil {
		err = f.follow(ctx, more)
	}
	if errors.Is(err, ctx.Err()) {
		return nil // it was to end
	}
	return err
}

// anywhere are all addresses: whoever runs the command says himself where
// events go, and that is his own machine as a rule.
var anywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

type follower struct {
	Config
	after  string // where to go on
	poster *poster.Poster
}

// follow looks again and again. more says that the last look left something.
func (f *follower) follow(ctx context.Context, more bool) error {
	var pause time.Duration // 0 while the service answers
	for {
		if !more {
			if !wait.Sleep(ctx, max(pause, pollInterval), nil) {
				return ctx.Err()
			}
		}
		var err error
		more, err = f.look(ctx)
		switch {
		case err == nil && pause > 0:
			f.Out.note("The service answers again.")
			pause = 0
		case err == nil:
		case ctx.Err() != nil || refused(err):
			return err
		case pause == 0:
			f.Out.note("The service does not answer, and is asked until it does: " + err.Error())
			pause = firstPause
		default:
			pause = min(2*pause, longestPause)
		}
	}
}

// refused reports whether asking again would not help.
func refused(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) && answer.Status >= 400 && answer.Status < 500 && answer.Status != http.StatusTooManyRequests
}

// look takes the next events, and reports whether there were any.
func (f *follower) look(ctx context.Context) (more bool, err error) {
	events, next, err := f.API.EventsAfter(ctx, f.Filter, f.after)
	if err != nil {
		return false, err
	}
	f.after = next
	if f.Ready != nil {
		f.Ready()
		f.Ready = nil
	}
	for _, e := range events {
		l, err := read(e)
		if err != nil {
			f.Out.note(err.Error())
			continue
		}
		if f.To == nil {
			f.Out.event(l, nil)
			continue
		}
		a := f.poster.Try(ctx, *f.To, poster.Message{ID: deliveryID(e, l.id), Event: l.typ, Body: e.Event})
		if err := ctx.Err(); err != nil {
			return false, err
		}
		f.Out.event(l, &a)
	}
	return len(events) > 0, nil
}

// deliveryID is that of the event's delivery. When there is none, since the
// merchant wants no events, it is made of the event's, so that it is the same
// whenever the event is posted.
func deliveryID(e apitypes.EventRecord, eventID string) string {
	if e.Delivery != nil {
		return e.Delivery.ID
	}
	return invoice.PrefixDelivery + strings.TrimPrefix(eventID, invoice.PrefixEvent)
}
