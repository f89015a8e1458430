package server

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
)

// keepAlive opens a connection and leaves it idle after the requests.
func keepAlive(t *testing.T, base string, requests int) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	expect.OK(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	for range requests {
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", response, err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	return conn
}

// TestIdleConnectionsMakeRoom opens three times as many connections as the limit and
// leaves them idle. New clients are answered at once.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	s := startServer(t, Config{OpenFiles: 256})
	const limit = (256 - 80) / 2
	var idle []net.Conn
	for range 3 * limit {
		idle = append(idle, keepAlive(t, s.url, 1))
	}
	begun := time.Now()
	if a := ask(t, http.MethodGet, s.url+"/healthz", ""); a.status != http.StatusOK || time.Since(begun) > time.Second {
		t.Errorf("a new client was answered %d after %s", a.status, time.Since(begun))
	}
	text := ask(t, http.MethodGet, s.url+"/metrics", "").body
	if !strings.Contains(text, "quittance_http_connections 8") || strings.Contains(text, "quittance_http_idle_connections_closed_total 0") {
		t.Errorf("the metrics lack the connections:\n%s", text)
	}
	// The newest connections are open: those idle for longest were closed.
	newest := idle[len(idle)-1]
	if _, err := io.WriteString(newest, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(newest).ReadString('\n'); err != nil || !strings.Contains(line, "200 OK") {
		t.Errorf("the newest connection answers %q, %v", line, err)
	}
}

// failing is a listener. Its first Accepts fail because descriptors are used up.
type failing struct {
	net.Listener
	times int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.times > 0 {
		f.times--
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

// TestFailedAcceptsAreLogged makes Accept fail a few times. The failures are logged
// once, counted each time, and retried.
func TestFailedAcceptsAreLogged(t *testing.T) {
	listener, err := Listen(t.Context(), Address{Listen: "127.0.0.1:0"})
	expect.OK(t, err)
	listener.Listener = &failing{listener.Listener, 5}
	log, registry := new(logtest.Buffer), prometheus.NewRegistry()
	conns := newConnections(listener, 10, ofNobody, newMetrics(registry), slog.New(slog.NewTextHandler(log, nil)))
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	expect.OK(t, err)
	conn, err := conns.Accept()
	expect.OK(t, err)
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "too many open files") {
		t.Errorf("it logged %s", log.String())
	}
	families, err := registry.Gather()
	expect.OK(t, err)
	for _, f := range families {
		if n := f.GetMetric()[0].GetCounter().GetValue(); f.GetName() == "quittance_http_accept_failures_total" && n != 5 {
			t.Errorf("%v failures were counted; want 5", n)
		}
	}
	if err := errors.Join(client.Close(), conn.Close(), conns.Close()); err != nil {
		t.Error(err)
	}
	if _, err := conns.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
}
