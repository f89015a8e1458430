package webhooks_test

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// cutConn is a client's connection that can be cut without an error at either end: reads
// block and writes are discarded.
type cutConn struct {
	net.Conn
	cut, closed chan struct{}
	once        sync.Once
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case <-c.cut:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *cutConn) Write(p []byte) (int, error) {
	select {
	case <-c.cut:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

func (c *cutConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}

// TestDeadConnection cuts an idle HTTP/2 connection. The client must detect that and use a
// new connection for the next request.
func TestDeadConnection(t *testing.T) {
	server := httptest.NewUnstartedServer(status(http.StatusOK))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	client := webhooks.NewClient(webhooks.ClientConfig{Guard: loopback, DialTimeout: patience})
	transport := client.Transport.(chain.Transport).Base.(*http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	if c := transport.HTTP2; c == nil || c.SendPingTimeout <= 0 || c.PingTimeout <= 0 || c.SendPingTimeout+c.PingTimeout >= time.Minute {
		t.Fatalf("HTTP/2 is configured as %+v; want a dead connection noticed within a minute", c)
	}
	transport.HTTP2.SendPingTimeout, transport.HTTP2.PingTimeout = 100*time.Millisecond, 100*time.Millisecond
	transport.TLSClientConfig.RootCAs = x509.NewCertPool()
	transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())
	dial := transport.DialContext
	conns := make(chan *cutConn, 2)
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		d := &cutConn{Conn: c, cut: make(chan struct{}), closed: make(chan struct{})}
		conns <- d
		return d, nil
	}

	post := func() {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
		expect.OK(t, err)
		resp, err := client.Do(req)
		expect.OK(t, err)
		defer resp.Body.Close() //nolint:errcheck // it was read
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.ProtoMajor != 2 {
			t.Errorf("answered by %s, %v; want HTTP/2", resp.Proto, err)
		}
	}
	post()
	first := <-conns
	close(first.cut)
	<-first.closed
	post()
	<-conns // a new connection
}
