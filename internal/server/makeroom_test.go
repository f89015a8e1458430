package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/web/webpage"
)

// ofNobody makes connections count for no client.
func ofNobody(net.Addr) []limits.Claim[sharer] { return nil }

// ofAddresses makes connections count for the clients of their addresses, also of loopback ones.
func ofAddresses(remote net.Addr) []limits.Claim[sharer] {
	l := requestLimits{proxied: true}
	return l.networks(netip.MustParseAddrPort(remote.String()).Addr())
}

// newTestConnections returns connections of a new listener.
func newTestConnections(t *testing.T, limit int) *connections {
	t.Helper()
	listener, err := Listen(t.Context(), Address{Listen: "127.0.0.1:0"})
	expect.OK(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return newConnections(listener, limit, ofAddresses, newMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
}

// dialFrom connects from an address.
func dialFrom(t *testing.T, c *connections, from string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(t.Context(), "tcp", c.Addr().String())
	expect.OK(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestConnectionsOfANetwork connects from one client address until its share is used up. One more
// connection is closed, and another address's is accepted.
func TestConnectionsOfANetwork(t *testing.T) {
	t.Parallel()
	const limit = 10
	c := newTestConnections(t, limit)
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			conn, err := c.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	wanted := func(client net.Conn) {
		t.Helper()
		if got := <-accepted; got.RemoteAddr().String() != client.LocalAddr().String() {
			t.Fatalf("the connection of %v was accepted, want that of %v", got.RemoteAddr(), client.LocalAddr())
		}
	}
	for range limit / 2 {
		wanted(dialFrom(t, c, "127.0.0.2"))
	}
	if n, err := dialFrom(t, c, "127.0.0.2").Read(make([]byte, 1)); err == nil {
		t.Errorf("a connection beyond the share: read %d", n)
	}
	wanted(dialFrom(t, c, "127.0.0.3"))
	c.mu.Lock()
	for conn := range c.open {
		conn.state = http.StateIdle // so that the network's own connection is closed for a new one
	}
	c.mu.Unlock()
	for again := true; again; { // no connection is searched for scanInterval after the search above
		conn, refused := dialFrom(t, c, "127.0.0.2"), make(chan struct{})
		go func() {
			defer close(refused)
			_, _ = conn.Read(make([]byte, 1))
		}()
		select {
		case <-accepted:
			again = false
		case <-refused:
		}
	}
	expect.NoError(t, c.Listener.Close())
	for range accepted {
		t.Error("another connection was accepted")
	}
}

// TestNetworksOfPeers checks the clients for which connections count.
func TestNetworksOfPeers(t *testing.T) {
	t.Parallel()
	proxies := limits.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}
	for _, test := range []struct {
		proxies limits.Proxies
		remote  string
		want    []string // networks, with their weights
	}{
		{proxies, "198.51.100.1:1", []string{"198.51.100.1/32 1"}},
		{proxies, "[2001:db8:1:2::3]:1", []string{"2001:db8:1:2::/64 1", "2001:db8:1::/48 2"}},
		{proxies, "10.1.2.3:1", nil},
		{proxies, "10.2.2.3:1", []string{"10.2.2.3/32 1"}},
		{limits.Proxies{}, "10.1.2.3:1", nil},
		{limits.Proxies{}, "127.0.0.1:1", nil},
		{limits.Proxies{}, "198.51.100.1:1", []string{"198.51.100.1/32 1"}},
	} {
		s := &Server{cfg: Config{Proxies: test.proxies}, limits: &requestLimits{proxied: len(test.proxies.Trusted) > 0}}
		var got []string
		for _, c := range s.networksOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(test.remote))) {
			got = append(got, fmt.Sprint(c.Client.network, " ", c.Weight))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s with the proxies %v: %s", test.remote, test.proxies.Trusted, diff)
		}
	}
}

// TestWhichConnectionMakesRoom closes connections as long as it can.
func TestWhichConnectionMakesRoom(t *testing.T) {
	t.Parallel()
	c, now := newTestConnections(t, 100), time.Now()
	names := make(map[*connection]string)
	add := func(name, client string, state http.ConnState, working int, ago time.Duration) {
		claims := ofAddresses(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(client), 1)))
		expect.OK(t, c.shares.Take(1, claims...))
		conn := c.add(new(net.TCPConn), claims)
		conn.state, conn.working, conn.since = state, working, now.Add(-ago)
		names[conn] = name
	}
	const a, b = "198.51.100.1", "198.51.100.2"
	add("idle for long", a, http.StateIdle, 0, time.Minute)
	add("idle", b, http.StateIdle, 0, time.Second)
	add("silent", a, http.StateNew, 0, newConnectionGrace+time.Second/2)
	add("new", a, http.StateNew, 0, 0)
	add("slow, of few", a, http.StateActive, 0, time.Hour)
	add("slow for long, of many", b, http.StateActive, 0, time.Minute)
	add("slow, of many", b, http.StateActive, 0, arrivalGrace+time.Second)
	add("arriving", b, http.StateActive, 0, 0)
	add("worked on", b, http.StateActive, 1, time.Hour)
	add("taken over", b, http.StateHijacked, 0, time.Hour)
	closedBy := func(claims []limits.Claim[sharer]) string {
		if !c.closeOne(claims) {
			return ""
		}
		for conn, name := range names {
			if !c.open[conn] {
				delete(names, conn)
				return name
			}
		}
		return "none"
	}
	ofB := ofAddresses(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(b + ":1")))
	if got := closedBy(ofB); got != "idle" {
		t.Errorf("of b %q was closed", got)
	}
	for _, want := range []string{"idle for long", "silent", "slow for long, of many", "slow, of many", "slow, of few", ""} {
		if got := closedBy(nil); got != want {
			t.Errorf("%q was closed, want %q", got, want)
		}
	}
	if c.closeOwn(ofB) {
		t.Error("a connection of b was closed")
	}
	for conn := range c.open {
		conn.state = http.StateIdle
	}
	if c.closeOwn(ofB) {
		t.Error("the connections of b were searched again at once")
	}
	if c.scanned = now.Add(-scanInterval); !c.closeOwn(ofB) {
		t.Error("no connection of b was closed")
	}
}

// TestArrivingRequestsAreNotWorkedOn sends a body in two parts. Until the body has arrived, the
// connection may be closed to make room for another one.
func TestArrivingRequestsAreNotWorkedOn(t *testing.T) {
	t.Parallel()
	c, l := newTestConnections(t, 10), newLimited(Config{})
	entered, leave := make(chan *connection), make(chan struct{})
	handler := l.capped(webpage.Route{Pattern: "POST /x", Door: webpage.PublicDoor, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		entered <- connectionFrom(r.Context())
		<-leave
	})}, l.writeError)
	server := &http.Server{
		Handler:     l.entered(limits.NewShares[sharer]("requests", 10), handler),
		ConnContext: withConnection, ConnState: c.observe, ReadHeaderTimeout: readHeaderTimeout,
		BaseContext: func(net.Listener) context.Context { return t.Context() },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(c) }()
	client := dialFrom(t, c, "127.0.0.2")
	expect.Success(t)(io.WriteString(client, "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"))
	answer := bufio.NewReader(client)
	if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("%q, %v", line, err)
	}
	long := time.Now().Add(time.Hour)
	c.mu.Lock()
	for conn := range c.open { // one
		if !conn.slow(long) {
			t.Errorf("while the body arrives, %d are worked on in state %v", conn.working, conn.state)
		}
	}
	c.mu.Unlock()
	expect.Success(t)(io.WriteString(client, "xy"))
	conn := <-entered
	c.mu.Lock()
	if conn.working != 1 || conn.slow(long) {
		t.Errorf("when the body has arrived, %d are worked on", conn.working)
	}
	c.mu.Unlock()
	close(leave)
	if _, err := answer.ReadString('\n'); err != nil { // the empty line after 100 Continue
		t.Fatal(err)
	}
	if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Errorf("%q, %v", line, err)
	}
	expect.NoError(t, server.Close())
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	if conn.working != 0 {
		t.Errorf("at the end, %d are worked on", conn.working)
	}
}

// keepAlive opens a connection and leaves it idle after the requests.
func keepAlive(t *testing.T, base string, requests int) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	expect.OK(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	for range requests {
		expect.Success(t)(io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", response, err)
		}
		expect.Success(t)(io.Copy(io.Discard, response.Body))
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
	expect.Success(t)(io.WriteString(newest, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
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
	expect.NoError(t, errors.Join(client.Close(), conn.Close(), conns.Close()))
	if _, err := conns.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
}
