package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// withoutCancel returns a connector with connections that send no cancel request when the context of a
// statement ends.
//
// PostgreSQL answers a cancel request during a commit that waits for a synchronous standby by ending
// the wait: the transaction becomes visible although no standby has it, and after a failover other
// clients may have read lost data. Without the request it stays invisible until a standby has it.
// Other statements of a lost client end by statement_timeout.
func withoutCancel(cfg *pgx.ConnConfig, options ...stdlib.OptionOpenDB) driver.Connector {
	cfg = cfg.Copy()
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if ctx.Value(connecting{}) == nil {
			return nil, errNoCancel
		}
		return dial(ctx, network, address)
	}
	return connector{stdlib.GetConnector(*cfg, options...)}
}

var errNoCancel = errors.New("statements are not canceled")

// connecting is the context key that distinguishes a connect from a cancel request, which pgx dials
// with another context.
type connecting struct{}

type connector struct{ driver.Connector }

// Connect is driver.Connector's.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	return c.Connector.Connect(context.WithValue(ctx, connecting{}, true))
}
