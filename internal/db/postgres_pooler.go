package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// connectPostgres makes one connection to the server to find out how to use it.
//
// A pooler such as PgBouncer cannot pass on the server's process ids, because its clients share the
// processes. If there is one, it may be in transaction mode. So the service relies on no part of a
// session: no setting, no prepared statement and no lock outlives its transaction.
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
