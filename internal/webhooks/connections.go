package webhooks

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/quittance/quittance/internal/limits"
)

// errNoConnection is the error of a dial at the limit of open connections.
var errNoConnection = errors.New("as many connections are open as this process may have")

// boundDialer limits the number of open connections.
type boundDialer struct {
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	limit    int64 // 0 means no limit
	dropIdle func()
	open     atomic.Int64 // including connections that are being dialed
}

// dialContext implements http.Transport's DialContext. At the limit, and when the system refuses more connections, it
// closes idle ones.
func (d *boundDialer) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if n := d.open.Add(1); d.limit > 0 && n > d.limit {
		d.dropIdle()
		if d.open.Load() > d.limit {
			d.open.Add(-1)
			return nil, errNoConnection
		}
	}
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		d.open.Add(-1)
		if limits.IsShortage(err) {
			d.dropIdle()
		}
		return nil, err
	}
	return &boundConn{Conn: conn, closed: sync.OnceFunc(func() { d.open.Add(-1) })}, nil
}

// boundConn counts as open until it is closed.
type boundConn struct {
	net.Conn
	closed func()
}

// Close closes the connection.
func (c *boundConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}
