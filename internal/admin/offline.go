package admin

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
)

// Config is the part of a service's configuration that OfflineStatus and
// changes need.
type Config struct {
	Database string // as db.Open takes it
	Chains   []chain.Chain
	Now      func() time.Time
}

// replicaPatience is the longest time for which a killed replica counts as running.
const replicaPatience = 5 * time.Second

// ErrReplicaRuns is the error of a command that needs exclusive use of the database while a replica
// runs.
var ErrReplicaRuns = errors.New("another replica of the service uses the database; stop every replica, and run this again")

// CheckAlone returns ErrReplicaRuns if a replica uses the database. For a SQLite database, which is
// locked, db.LockService checks that.
func CheckAlone(ctx context.Context, store *db.DB, now func() time.Time, logger *slog.Logger) error {
	if !store.Shared() {
		return nil
	}
	c, err := db.OpenClock(ctx, db.ClockConfig{Store: store, Wall: now, Logger: logger})
	if err != nil {
		return err
	}
	for waited := time.Duration(0); ; waited += time.Second {
		live, err := store.HasLiveReplica(ctx, c.Now())
		if err != nil || !live {
			return err
		}
		if waited >= replicaPatience {
			return ErrReplicaRuns
		}
		if !clock.Sleep(ctx, time.Second, nil) {
			return ctx.Err()
		}
	}
}

// WithLedger opens the service's ledger for a function. A running service notices what the function changes within
// seconds.
func (c Config) WithLedger(ctx context.Context, do func(*ledger.Service) error) error {
	return WithStore(ctx, c.Database, func(store *db.DB) error {
		return do(ledger.New(ledger.Config{Store: store, Chains: c.Chains, Now: c.Now}))
	})
}

// WithStore opens a service's database for a function. It does not create one.
func WithStore(ctx context.Context, database string, do func(*db.DB) error) error {
	return withOpened(ctx, database, db.OpenExisting, do)
}

// Read is WithStore for a function with a result.
func Read[T any](ctx context.Context, database string, do func(*db.DB) (T, error)) (result T, err error) {
	err = WithStore(ctx, database, func(store *db.DB) error {
		result, err = do(store)
		return err
	})
	return result, err
}

// InLedger is WithLedger for a function with a result.
func InLedger[T any](ctx context.Context, c Config, do func(*ledger.Service) (T, error)) (result T, err error) {
	err = c.WithLedger(ctx, func(service *ledger.Service) error {
		result, err = do(service)
		return err
	})
	return result, err
}

// withOpened is WithStore with a function that opens the database.
func withOpened(ctx context.Context, database string, open func(context.Context, string) (*db.DB, error), do func(*db.DB) error) (err error) {
	store, err := open(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return do(store)
}

// OfflineStatus determines the status of the chains without the service: from its database, and by
// querying each node. A chain's Error lists the values that could not be determined.
func OfflineStatus(ctx context.Context, c Config) Status {
	st := Status{Chains: make([]Chain, len(c.Chains))}
	var group sync.WaitGroup
	for i, ch := range c.Chains {
		group.Go(func() { st.Chains[i] = c.queryNodes(ctx, ch) })
	}
	group.Wait()
	err := c.WithLedger(ctx, func(service *ledger.Service) error {
		for i := range st.Chains {
			if err := st.Chains[i].addStored(ctx, service, c.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range st.Chains {
		if out := &st.Chains[i]; err != nil && out.Error == "" {
			out.Error = err.Error()
		}
	}
	return st
}

// queryNodes returns the status of a chain that its nodes report.
func (c Config) queryNodes(ctx context.Context, ch chain.Chain) Chain {
	out := Chain{ChainKey: ch.Key, ChainID: ch.ID, Finality: ch.Finality.String(), Quorum: max(1, ch.Quorum), Checks: Checks(ch, "unknown", "unknown")}
	pool, err := chain.OpenPool(chain.PoolConfig{Chain: ch, Now: c.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		out.Error = err.Error()
		return out
	}
	defer pool.Close()
	pool.RefreshHeads(ctx)
	out.Providers = Providers(pool)
	for i, p := range out.Providers {
		out.Head = max(out.Head, p.Head)
		out.Providers[i].Until = 0 // no retry will follow
	}
	return out
}

// addStored adds the chain's status in the database.
func (c *Chain) addStored(ctx context.Context, service *ledger.Service, now time.Time) error {
	cur, err := service.Cursor(ctx, c.ChainKey)
	if err != nil {
		return err
	}
	if !cur.Started {
		c.Error = ledger.ErrNotStarted.Error()
		return nil
	}
	c.Indexed, c.Confirmed, c.Halted = cur.Indexed.Number, cur.Confirmed.Number, cur.Halted
	c.Lag = LagOf(c.Head, c.Indexed, cur.Indexed.Time, now)
	if cur.Gap != nil {
		c.Backfill = NewProgress(cur.Gap.Next, cur.Gap.Last, cur.Gap.Next, 0)
	}
	c.Unread, err = service.CountUnread(ctx, c.ChainKey)
	return err
}
