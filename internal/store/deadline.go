package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// statementTimeout bounds a statement, its wait for a connection included, a
	// commit and a rollback, whoever asks for it. A connection that a firewall
	// dropped without a word then costs its user this long, and not for ever.
	statementTimeout = 10 * time.Second
	// migrateTimeout bounds bringing the schema up to date. An index of a large
	// table may take long.
	migrateTimeout = time.Hour
)

// ErrTimeout is matched by the error of a call that the database did not answer
// in time. Whether what was asked for has been done is not known then.
var ErrTimeout = errors.New("the database did not answer in time")

// bounded returns a context that ends after statementTimeout at the latest.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, statementTimeout, ErrTimeout)
}

// named returns err, as the trouble with the database for which the context
// ended, such as ErrTimeout, or as a connectionError if the network caused it.
func named(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && Unavailable(cause) && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return onTheWay(err)
}
