package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
)

// Times of a Share.
const (
	// roundEvery is how often a replica extends its leases and looks at the others' leases.
	roundEvery = time.Second
	// leaseTTL is how long a lease lasts without an extension. A dead replica's work is taken over after
	// that and one round.
	leaseTTL = 3 * time.Second
	// unwantedAfter is how long a replica leaves work to others that it was unable to do.
	unwantedAfter = time.Minute
)

// replicaStore is the part of the database that a Share needs. Times are on the replicas' common clock.
type replicaStore interface {
	ShareWork(ctx context.Context, holder string, works, wanted []string, now, until time.Time) (map[string]db.SharedWork, error)
	AcquireWorkLease(ctx context.Context, l db.WorkLease, now, until time.Time) (bool, error)
	ReleaseWorkLease(ctx context.Context, l db.WorkLease) error
	LeaveWork(ctx context.Context, holder string) error
}

// replicaConfig configures a Share. All fields are required.
type replicaConfig struct {
	Store  replicaStore
	Holder string   // a random id of the replica
	Works  []string // the pieces of work that this replica can do
	// Able reports whether this replica succeeds in a piece of work. If not, it leaves the work to another
	// replica that would take it.
	Able func(work string) bool
	// Changed is called when this replica gets a piece of work.
	Changed func(work string)
	Now     func() time.Time
	Logger  *slog.Logger
}

// Share is the share of a replica. It is safe for concurrent use.
type Share struct {
	conf replicaConfig

	// The fields below belong to the goroutine of Run.
	free     map[string]bool      // works that had no owner in the last round
	unwanted map[string]time.Time // until when works are left to others
	failed   bool                 // the last round failed

	mu    sync.Mutex
	until map[string]time.Time // until when this replica's works are certainly its own
}

// newReplicas returns a share without work.
func newReplicas(conf replicaConfig) *Share {
	return &Share{conf: conf, free: make(map[string]bool), unwanted: make(map[string]time.Time), until: make(map[string]time.Time)}
}

// Has reports whether a piece of work is this replica's.
func (s *Share) Has(work string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conf.Now().Before(s.until[work])
}

// Join takes the free work. So a single replica has all of its work when it begins.
func (s *Share) Join(ctx context.Context) {
	err := s.round(ctx, s.conf.Now())
	if err != nil && !s.failed && ctx.Err() == nil {
		s.conf.Logger.Warn("dividing work among replicas failed, will retry", "err", err)
	}
	s.failed = err != nil
}

// Run takes part until ctx ends, and then gives its work back. Call Join before.
func (s *Share) Run(ctx context.Context) error {
	for clock.Sleep(ctx, roundEvery, nil) {
		s.Join(ctx)
	}
	s.set(nil, time.Time{})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	return s.conf.Store.LeaveWork(ctx, s.conf.Holder)
}

// round extends this replica's leases, and takes or gives up work.
func (s *Share) round(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTTL)
	defer cancel()
	var wanted, unable []string
	for _, work := range s.conf.Works {
		switch {
		case !s.conf.Able(work):
			unable = append(unable, work)
		case !now.Before(s.unwanted[work]):
			wanted = append(wanted, work)
		}
	}
	works, err := s.conf.Store.ShareWork(ctx, s.conf.Holder, s.conf.Works, wanted, now, now.Add(leaseTTL))
	if err != nil {
		return err
	}
	p := makePlan(s.conf.Holder, s.conf.Works, works, s.free, unable)
	for _, work := range p.take {
		taken, err := s.conf.Store.AcquireWorkLease(ctx, db.WorkLease{Name: work, Holder: s.conf.Holder}, now, now.Add(leaseTTL))
		if err != nil {
			return fmt.Errorf("take %s: %w", work, err)
		}
		if taken {
			p.has = append(p.has, work)
		}
	}
	s.free = p.free
	began := s.set(p.has, now.Add(leaseTTL))
	for _, work := range p.give {
		if slices.Contains(unable, work) {
			s.unwanted[work] = now.Add(unwantedAfter)
		}
		if err := s.conf.Store.ReleaseWorkLease(ctx, db.WorkLease{Name: work, Holder: s.conf.Holder}); err != nil {
			return fmt.Errorf("give %s away: %w", work, err)
		}
		s.conf.Logger.Info("work is left to another replica", "work", work)
	}
	for _, work := range began {
		s.conf.Logger.Info("work of this replica", "work", work)
		s.conf.Changed(work)
	}
	return nil
}

// set replaces the works of this replica, and returns the new ones.
func (s *Share) set(works []string, until time.Time) (began []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.until
	s.until = make(map[string]time.Time, len(works))
	for _, work := range works {
		if _, had := before[work]; !had {
			began = append(began, work)
		}
		s.until[work] = until
	}
	return began
}
