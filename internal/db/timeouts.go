package db

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// statementTimeout bounds each statement, including its wait for a connection, and each commit and
	// rollback of PostgreSQL. A firewall that silently drops a connection delays its user by at most this
	// much.
	statementTimeout = 10 * time.Second
	// migrateTimeout bounds the migration of the schema. Creating an index of a
	// large table takes long.
	migrateTimeout = time.Hour
)

// ErrTimeout matches the error of a call that the database did not answer in time. The statement may
// still have been carried out.
var ErrTimeout = errors.New("the database did not answer in time")

// withStatementTimeout returns a context that ends after statementTimeout at the latest.
func withStatementTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, statementTimeout, ErrTimeout)
}

// classify returns err, wrapped with the database failure that ended ctx, such as ErrTimeout, or as a
// connectionError if the network caused it.
func classify(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && Unavailable(cause) && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return wrapNetworkError(err)
}
