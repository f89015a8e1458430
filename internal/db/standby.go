package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/semaphore"

	"github.com/quittance/quittance/internal/clock"
)

// Limits of a standby.
const (
	// StandbyConns bounds the connections of one process to the standby.
	StandbyConns = 8
	// StandbyWait is how long a read waits for a connection and for the standby to replay what it
	// requires, before it goes to the primary.
	StandbyWait = 100 * time.Millisecond
	// StandbyTimeout bounds a read at the standby. The primary has the rest of the statement's
	// time.
	StandbyTimeout = statementTimeout / 2
	// StandbyRetry is how long a standby that failed or was behind is not used.
	StandbyRetry = 5 * time.Second
	// positionTimeout bounds the query for the primary's position.
	positionTimeout = 2 * time.Second
)

// StandbyConfig is the configuration of a standby.
type StandbyConfig struct {
	// URL is the standby's, postgres://…; of several hosts, the first standby is used.
	URL string
	// Retry replaces StandbyRetry, unless it is 0.
	Retry time.Duration
	// OnRead is called for each statement that the standby may run, with the server that ran it and the
	// reason.
	OnRead func(server, reason string)
	Logger *slog.Logger
}

// standby is a read replica of a PostgreSQL database. It runs the statements of a Reader under a
// context from OnStandby, if it has replayed everything that was committed before; else the primary
// does.
//
// It is not used after it fails, lags or is no standby of the primary. Then the store, not a request,
// tries it every Retry, and uses it again after the first success.
type standby struct {
	cfg       StandbyConfig
	config    *pgx.ConnConfig
	positions *Batcher[struct{}, position]
	slots     *semaphore.Weighted
	// inUse is written by run, when a try succeeded, and by leave.
	inUse  atomic.Bool
	db     atomic.Pointer[postgresDB] // nil until the first connection
	left   chan error                 // the reason why the standby was left, for run
	cancel context.CancelFunc         // ends run
	ended  chan struct{}              // closed when run has ended
}

// OpenWithStandby opens the PostgreSQL database at the URL like Open, and a standby of it. The
// standby need not answer.
func OpenWithStandby(ctx context.Context, url string, c StandbyConfig) (*DB, error) {
	config, err := parsePostgres(c.URL, pgconn.ValidateConnectTargetSessionAttrsStandby)
	if err != nil {
		return nil, fmt.Errorf("standby: %w", err)
	}
	s, err := Open(ctx, url)
	if err != nil {
		return nil, err
	}
	if !s.OnPostgres() {
		return nil, errors.Join(errors.New("SQLite has no standby"), s.Close())
	}
	s.standby = newStandby(c, config, s.position)
	return s, nil
}

// newStandby returns a standby that it starts trying immediately. position asks the primary for its
// position.
func newStandby(c StandbyConfig, config *pgx.ConnConfig, ask func(context.Context) (walState, error)) *standby {
	if c.Retry == 0 {
		c.Retry = StandbyRetry
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &standby{
		cfg: c, config: config, slots: semaphore.NewWeighted(StandbyConns), left: make(chan error, 1),
		cancel: cancel, ended: make(chan struct{}),
		positions: NewBatcher(BatchConfig[struct{}, position]{
			Lanes: 1, Take: First[struct{}, position](math.MaxInt),
			Flush: func(ctx context.Context, calls []*Call[struct{}, position]) {
				ctx, cancel := context.WithTimeoutCause(WithShare(context.WithoutCancel(ctx), 0), positionTimeout, ErrTimeout)
				defer cancel()
				state, err := ask(ctx)
				for _, call := range calls {
					call.Finish(position{state, err})
				}
			},
		}),
	}
	go s.run(ctx)
	return s
}

// position is the primary's position, or why it is unknown.
type position struct {
	state walState
	err   error
}

// primaryPosition returns a position of the primary that includes all commits acknowledged before the
// call. Calls during a query for the position share the next query.
func (s *standby) primaryPosition(ctx context.Context) (walState, error) {
	select {
	case p := <-s.positions.Submit(ctx, struct{}{}):
		return p.state, p.err
	case <-ctx.Done():
		return walState{}, context.Cause(ctx)
	}
}

// run tries to connect to the standby until it succeeds, and again some time after the standby was
// left.
func (s *standby) run(ctx context.Context) {
	defer close(s.ended)
	logged := "" // why it is not in use
	warn := func(err error) {
		if reason, _ := verdict(err); reason != logged && ctx.Err() == nil {
			logged = reason
			// Not the error itself: the server's log leaves out repeated messages about an outage, and this is a
			// change.
			s.cfg.Logger.Warn("standby not in use, the primary serves lists", "standby", address(s.config), "err", err.Error())
		}
	}
	for ctx.Err() == nil {
		if err := s.try(ctx); err != nil {
			warn(err)
		} else {
			logged = ""
			s.cfg.Logger.Info("standby in use, it serves lists", "standby", address(s.config))
			s.inUse.Store(true)
			select {
			case err := <-s.left:
				warn(err)
			case <-ctx.Done():
			}
		}
		clock.Sleep(ctx, s.cfg.Retry, nil)
	}
}

// try returns nil if the standby can be used.
func (s *standby) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, StandbyTimeout, ErrTimeout)
	defer cancel()
	db := s.db.Load()
	if db == nil {
		var err error
		if db, err = connectPostgres(ctx, s.config); err != nil {
			return classify(ctx, err)
		}
		db.db.SetMaxOpenConns(StandbyConns)
		s.db.Store(db)
	}
	target, err := s.primaryPosition(ctx)
	if err != nil {
		return fmt.Errorf("ask the primary for its position: %w", err)
	}
	err = db.withConn(ctx, func(conn *pgx.Conn) error { return awaitReplay(ctx, conn, target) })
	if err != nil {
		db.retireConns(time.Now()) // the next ones may reach another host
	}
	return classify(ctx, err)
}

// leave stops the use of the standby.
func (s *standby) leave(err error) {
	if s.inUse.CompareAndSwap(true, false) {
		s.left <- err // it has room, since run received the error of the last time
	}
}

// close closes the connections. Statements must have ended.
func (s *standby) close() error {
	s.cancel()
	<-s.ended
	<-s.positions.Idle()
	if db := s.db.Load(); db != nil {
		return db.close()
	}
	return nil
}
