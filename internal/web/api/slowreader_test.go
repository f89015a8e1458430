package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
)

// slowConn is a connection with a client that does not read.
type slowConn struct {
	*net.TCPConn
	blocked  chan struct{}      // closed when a long write began
	deadline chan time.Duration // of each write, from the time when it was set
	began    bool
}

func (c *slowConn) Write(p []byte) (int, error) {
	if len(p) > 16<<10 && !c.began {
		c.began = true
		close(c.blocked)
	}
	return c.TCPConn.Write(p)
}

func (c *slowConn) SetWriteDeadline(at time.Time) error {
	select {
	case c.deadline <- time.Until(at):
	default: // only the first ones are examined
	}
	return c.TCPConn.SetWriteDeadline(at)
}

// slowListener accepts slowConns with small buffers.
type slowListener struct {
	net.Listener
	accepted chan *slowConn
}

func (l slowListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &slowConn{TCPConn: conn.(*net.TCPConn), blocked: make(chan struct{}), deadline: make(chan time.Duration, 1)}
	l.accepted <- c
	return c, c.SetWriteBuffer(4 << 10)
}

// TestClientsThatDoNotRead opens streams on sockets that are not read, while the feed is full. A
// stream holds a part of the events in memory, and ends when a write reaches its deadline.
func TestClientsThatDoNotRead(t *testing.T) {
	const clients, size = 20, 16 << 10
	b := &lockedBackend{backend: newEventBackend(0)}
	feed := webhooks.NewFeed(webhooks.FeedConfig{Log: b, Watchdog: clock.New(0), Logger: slog.New(slog.DiscardHandler)})
	a := api.New(api.Config{Reader: b, Events: b, Feed: feed, Authenticator: b, Now: testClock, Logger: slog.New(slog.DiscardHandler)})
	ended := make(chan struct{}, clients)
	h := a.Handler()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	slow := slowListener{server.Listener, make(chan *slowConn, clients)}
	server.Listener = slow
	server.Start()
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		feed.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-stopped })

	expect.Success(t)(feed.Head(t.Context()))
	body := append(append([]byte(`{"note":"`), bytes.Repeat([]byte("x"), size)...), `"}`...)
	const events = webhooks.MaxBytes / (size + 20)
	b.change(func(b *backend) {
		for range events {
			b.addEvent()
			b.events[len(b.events)-1].Body = body
		}
	})
	feed.Wake()
	expect.Success(t)(feed.Next(t.Context(), webhooks.Position{Event: events - 1}))
	before := heap()
	var conns []*slowConn
	for range clients {
		client, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		expect.OK(t, err)
		t.Cleanup(func() { _ = client.Close() }) // the server has closed it
		expect.OK(t, client.(*net.TCPConn).SetReadBuffer(4<<10))
		expect.Success(t)(fmt.Fprint(client, "GET /api/events/stream?after=start HTTP/1.1\r\nHost: service.example\r\n\r\n"))
		c := <-slow.accepted
		conns = append(conns, c)
	}
	for _, c := range conns {
		<-c.blocked
	}
	if each := (heap() - before) / clients; each > 1<<20 {
		t.Errorf("a stream that is not read holds %d KiB", each>>10)
	}
	for _, c := range conns {
		if d := <-c.deadline; d > webpage.ChunkTimeout || d < webpage.ChunkTimeout-10*time.Second {
			t.Errorf("a write has %v, want %v", d, webpage.ChunkTimeout)
		}
		if err := c.TCPConn.SetWriteDeadline(time.Now()); err != nil { // as if the time had passed
			t.Fatal(err)
		}
	}
	for range conns {
		<-ended
	}
}

// heap returns the bytes of the objects in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
