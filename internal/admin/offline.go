package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
)

// Config is what Look and the changes need of a service's configuration.
type Config struct {
	Database string // as store.Open takes it
	Chains   []chain.Chain
	Now      func() time.Time
}

// errNoDatabase says that a service of the configuration has never run.
var errNoDatabase = errors.New("there is no database yet; quittance serve makes it when it starts")

// with opens the service's ledger for a function.
func (c Config) with(ctx context.Context, do func(*settle.Service) error) error {
	return opened(ctx, c.Database, func(db *store.Store) error {
		return do(settle.New(settle.Config{Store: db, Chains: c.Chains, Now: c.Now}))
	})
}

// opened opens a service's database for a function. It makes none.
func opened(ctx context.Context, database string, do func(*store.Store) error) (err error) {
	if path, ok := strings.CutPrefix(database, "sqlite:"); ok {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", path, errNoDatabase)
		}
	}
	db, err := store.Open(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(db)
}

// Look finds out how the chains do without the service: from its database, and
// by asking each node for its head and whether it fits the configuration. What cannot be
// found out about a chain is described by its Error.
func Look(ctx context.Context, c Config) Status {
	st := Status{Chains: make([]Chain, len(c.Chains))}
	var group sync.WaitGroup
	for i, ch := range c.Chains {
		group.Go(func() { st.Chains[i] = c.ask(ctx, ch) })
	}
	group.Wait()
	err := c.with(ctx, func(ledger *settle.Service) error {
		for i := range st.Chains {
			if err := st.Chains[i].recall(ctx, ledger, c.Now()); err != nil {
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

// ask asks a chain's nodes.
func (c Config) ask(ctx context.Context, ch chain.Chain) Chain {
	out := Chain{ChainKey: ch.Key, ChainID: ch.ID, Finality: ch.Finality.String(), Quorum: max(1, ch.Quorum), Checks: Checks(ch, "unknown")}
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
		out.Providers[i].Until = 0 // nobody will ask it again
	}
	return out
}

// recall adds what the database knows of the chain.
func (c *Chain) recall(ctx context.Context, ledger *settle.Service, now time.Time) error {
	cur, err := ledger.Cursor(ctx, c.ChainKey)
	if err != nil {
		return err
	}
	if !cur.Started {
		c.Error = settle.ErrNotStarted.Error()
		return nil
	}
	c.Indexed, c.Confirmed, c.Halted = cur.Indexed.Number, cur.Confirmed.Number, cur.Halted
	c.Lag = LagOf(c.Head, c.Indexed, cur.Indexed.Time, now)
	if cur.Gap != nil {
		c.Backfill = NewProgress(cur.Gap.Next, cur.Gap.Last, cur.Gap.Next, 0)
	}
	return nil
}
