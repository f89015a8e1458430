package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// connectPostgres finds out how to use the server, by one connection to it.
//
// A pooler such as PgBouncer cannot pass on the server's process ids, since it shares
// the processes among its clients. Where there is one, it may be in transaction mode.
// So nothing of a session is relied on: no setting, no prepared statement and no lock
// outlives its transaction.
func connectPostgres(ctx context.Context, cfg *pgx.ConnConfig) (_ *postgresDB, err error) {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var pid uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid); err != nil {
		return nil, fmt.Errorf("look for a pooler: %w", err)
	}
	pooled := pid != conn.PgConn().PID()
	if pooled && cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return newPostgresDB(cfg, pooled), nil
}
