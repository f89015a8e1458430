// Package deliver posts events to the endpoints of merchants.
//
// The schedule is in the database, so a worker owns nothing: it leases
// deliveries that are due, commits, posts them, and records each outcome while
// it still holds the lease. Any number of workers share one database. What a
// worker leaves behind when it is killed falls due again when its leases end;
// an event whose receipt was not recorded by then is posted once more, under
// the same delivery id.
package deliver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Store is the schedule of deliveries, as *store.Store keeps it.
type Store interface {
	LeaseDeliveries(ctx context.Context, r store.LeaseRequest) ([]store.Delivery, error)
	FinishDelivery(ctx context.Context, o store.Outcome) error
	ReleaseDeliveries(ctx context.Context, leaseID string) (int64, error)
	DeliveryAgenda(ctx context.Context, nowMS int64) (store.Agenda, error)
}

// Endpoint is where a merchant receives events.
type Endpoint struct {
	URL    string // http or https
	Secret string // keys the signature, prefix included
}

// Worker posts what is due. All fields but Wake, Metrics and Limits are
// required.
type Worker struct {
	Store Store
	// Endpoints returns a merchant's endpoint as it is now, false when none is
	// configured. It is asked at every attempt.
	Endpoints func(merchantID string) (Endpoint, bool)
	Client    *http.Client // made by NewClient
	Now       func() time.Time
	Rand      io.Reader // of jitter and lease ids; safe for concurrent use
	Logger    *slog.Logger
	Wake      <-chan struct{} // says that something new is due; never closed
	Metrics   *Metrics        // made by NewMetrics; nil for none
	Limits    Limits
}

// lane is a share of the worker's exchanges, which the other lane cannot use:
// first attempts do not wait behind the retries of dead endpoints, nor retries
// behind a burst of events.
type lane struct {
	name  store.Lane
	slots int
	busy  int
	after string // the merchant that had the last turn
}

// finished tells that an exchange is over.
type finished struct {
	lane    *lane
	leaseID string
	// abandoned is set when the delivery is still leased because the worker
	// stops, and is to be given back.
	abandoned bool
}

// run is the state of one call of Run, used by its goroutine alone.
type run struct {
	*Worker
	ids   *invoice.IDs
	lanes []*lane
	// work ends a grace after the caller's context.
	work      context.Context
	finished  chan finished // holds one for every slot: sending never blocks
	abandoned map[string]bool
}

// Run works until the context ends. Then it leases nothing more, lets the
// exchanges under way finish within Limits.Grace, gives back the others and
// returns nil, or an error when giving back failed: those wait for the end of
// their leases. An error of the database is logged and tried again.
func (w *Worker) Run(ctx context.Context) error {
	configured := *w
	configured.Limits = w.Limits.orDefaults()
	if configured.Metrics == nil {
		configured.Metrics = NewMetrics(nil)
	}
	limits := configured.Limits
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	defer context.AfterFunc(ctx, func() {
		timer := time.NewTimer(limits.Grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			abandon()
		case <-work.Done():
		}
	})()
	r := &run{
		Worker:    &configured,
		ids:       invoice.NewIDs(w.Now, w.Rand),
		lanes:     []*lane{{name: store.FirstLane, slots: limits.First}, {name: store.RetryLane, slots: limits.Retries}},
		work:      work,
		finished:  make(chan finished, limits.First+limits.Retries),
		abandoned: make(map[string]bool),
	}
	for ctx.Err() == nil {
		r.wait(ctx, r.fill(ctx))
	}
	return r.stop()
}

// fill leases as much as the lanes have room for and starts it. It returns
// when to do so again at the latest.
func (r *run) fill(ctx context.Context) time.Duration {
	for _, l := range r.lanes {
		if l.busy == l.slots {
			continue
		}
		if err := r.fillLane(l); err != nil {
			r.Logger.ErrorContext(ctx, "webhook deliveries cannot be leased; trying again", "error", err)
			return r.Limits.Poll
		}
	}
	storeCtx, cancel := context.WithTimeout(r.work, storeTimeout)
	defer cancel()
	now := r.Now().UnixMilli()
	agenda, err := r.Store.DeliveryAgenda(storeCtx, now)
	if err != nil {
		r.Logger.ErrorContext(ctx, "the schedule of webhook deliveries cannot be read; trying again", "error", err)
		return r.Limits.Poll
	}
	r.Metrics.observeOldest(agenda.OldestMS, now)
	if agenda.NextMS == 0 {
		return r.Limits.Poll
	}
	return min(r.Limits.Poll, time.Duration(agenda.NextMS-now)*time.Millisecond)
}

func (r *run) fillLane(l *lane) error {
	ctx, cancel := context.WithTimeout(r.work, storeTimeout)
	defer cancel()
	now := r.Now()
	until := now.Add(r.Limits.Lease)
	leaseID := r.ids.New("lse_")
	leased, err := r.Store.LeaseDeliveries(ctx, store.LeaseRequest{
		LeaseID: leaseID, NowMS: now.UnixMilli(), UntilMS: until.UnixMilli(),
		Lane: l.name, Limit: l.slots - l.busy, PerMerchant: r.Limits.PerMerchant, After: l.after,
	})
	if err != nil {
		return err
	}
	for _, d := range leased {
		l.busy++
		l.after = d.MerchantID
		r.Metrics.inFlight.Inc()
		go func() {
			recorded := r.deliver(r.work, job{d, leaseID, until})
			r.finished <- finished{lane: l, leaseID: leaseID, abandoned: !recorded && r.work.Err() != nil}
		}()
	}
	return nil
}

// wait returns when there may be something to lease, or the context ends.
func (r *run) wait(ctx context.Context, atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.Wake:
	case <-timer.C:
	case f := <-r.finished:
		r.free(f)
		// Exchanges end in groups, as their outcomes are committed in groups.
		for len(r.finished) > 0 {
			r.free(<-r.finished)
		}
	}
}

func (r *run) free(f finished) {
	f.lane.busy--
	r.Metrics.inFlight.Dec()
	if f.abandoned {
		r.abandoned[f.leaseID] = true
	}
}

// stop waits for what is under way and gives back what was not finished.
func (r *run) stop() error {
	for _, l := range r.lanes {
		for l.busy > 0 {
			r.free(<-r.finished)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.work), storeTimeout)
	defer cancel()
	var errs []error
	for leaseID := range r.abandoned {
		n, err := r.Store.ReleaseDeliveries(ctx, leaseID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.Logger.InfoContext(ctx, "webhook deliveries given back unfinished", "deliveries", n)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the webhook worker: deliveries that were not given back fall due when their leases end: %w", err)
	}
	return nil
}
