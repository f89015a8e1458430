package deliver

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/quittance/quittance/internal/descriptors"
)

// errNoConnection is the error of a dial while as many connections are open as
// may be.
var errNoConnection = errors.New("as many connections are open as this process may have")

// boundDialer dials no more connections than may be open at once.
type boundDialer struct {
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	most     int64 // 0 for any number
	dropIdle func()
	open     atomic.Int64 // including those that are being dialled
}

// dialContext is http.Transport's. At the bound it closes idle connections, and
// when the system grants no more, too, for those that come next.
func (d *boundDialer) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if n := d.open.Add(1); d.most > 0 && n > d.most {
		d.dropIdle()
		if d.open.Load() > d.most {
			d.open.Add(-1)
			return nil, errNoConnection
		}
	}
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		d.open.Add(-1)
		if descriptors.IsShortage(err) {
			d.dropIdle()
		}
		return nil, err
	}
	return &boundConn{Conn: conn, closed: sync.OnceFunc(func() { d.open.Add(-1) })}, nil
}

// boundConn is counted until it is closed.
type boundConn struct {
	net.Conn
	closed func()
}

// Close is net.Conn's.
func (c *boundConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// fault says whose fault an exchange's failure is.
type fault int

const (
	// faultTheirs is that of the endpoint, or of the network on the way to it.
	faultTheirs fault = iota
	// faultAddress is that no local port is left for connections to its address.
	faultAddress
	// faultStopped is that this process did not run for a while.
	faultStopped
	// faultShortage is that this process or machine has run out of something:
	// every other exchange would fail likewise.
	faultShortage
)

// faultOf tells whose fault an error is. For a while after a shortage lookups
// are not believed when they fail: the resolver's configuration may not have
// been read.
func faultOf(err error, shortOfLate bool) fault {
	if errors.Is(err, errNoConnection) || descriptors.IsShortage(err) {
		return faultShortage
	}
	var lookup *net.DNSError
	if errors.As(err, &lookup) && (shortOfLate || descriptors.SaysShortage(lookup.Err) || outOfDescriptors()) {
		return faultShortage
	}
	// Without IPv6 on this machine, every address of it is "not available": that
	// is the endpoint's to know, who has no other.
	var op *net.OpError
	if errors.Is(err, syscall.EADDRNOTAVAIL) && errors.As(err, &op) {
		if at, ok := op.Addr.(*net.TCPAddr); ok && at.IP.To4() != nil {
			return faultAddress
		}
	}
	return faultTheirs
}

// outOfDescriptors reports whether no file can be opened now.
func outOfDescriptors() bool {
	f, err := os.Open(os.DevNull)
	if err == nil {
		err = f.Close()
	}
	return descriptors.IsShortage(err)
}
