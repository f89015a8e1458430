package chain_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/expect"
)

// hijacked answers every request, and then leaves the connection open until the client closes it.
func hijacked(t *testing.T, answer string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close() //nolint:errcheck // the test is over in any case
		if _, err := io.WriteString(conn, answer); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, bufio.NewReader(buffered))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// mute returns the address of a listener that accepts connections and never sends a byte.
func mute(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	t.Cleanup(func() { expect.NoError(t, listener.Close()) })
	return listener.Addr().String() // the backlog accepts
}

// TestHostileNodes has nodes answer in ways that would make net/http or go-ethereum's client wait without a limit, or
// longer than the client's timeout.
func TestHostileNodes(t *testing.T) {
	const whole = `{"jsonrpc":"2.0","id":1,"result":"0x5"}`
	for name, test := range map[string]struct {
		url  string
		want error
	}{
		"switches protocols": {hijacked(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"), chain.ErrSwitched},
		"no header":          {"http://" + mute(t), chain.ErrTimeout},
		"header in parts":    {hijacked(t, "HTTP/1.1 200 OK\r\nContent-"), chain.ErrTimeout},
		"endless body":       {hijacked(t, "HTTP/1.1 200 OK\r\n\r\n{"), chain.ErrTimeout},
		"endless error page": {hijacked(t, "HTTP/1.1 500 Oh\r\n\r\n{"), chain.ErrTimeout},
		"more than an answer": {hijacked(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"27\r\n"+whole+"\r\n"), chain.ErrTimeout},
		"WebSocket without handshake": {"ws://" + mute(t), chain.ErrTimeout},
		"WebSocket without answer": {"ws" + strings.TrimPrefix(hijacked(t, "HTTP/1.1 101 Switching Protocols\r\n"+
			"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"), "http"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := newClientOf(t, chain.ClientConfig{URL: test.url, Timeout: 100 * time.Millisecond})
			var result string
			err := e.CallContext(t.Context(), &result, "eth_chainId")
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if _, err := e.LogsInRange(t.Context(), 1, 2, chain.LogFilter{}); err == nil {
				t.Error("logs were answered")
			}
			if err := e.SubscribeHeads(t.Context(), func() {}); err == nil {
				t.Error("the subscription ended well")
			}
		})
	}
}

// TestDialDoesNotHoldOthers has one caller wait long for a connection, and another one with less time.
func TestDialDoesNotHoldOthers(t *testing.T) {
	e := newClientOf(t, chain.ClientConfig{URL: "ws://" + mute(t), Timeout: time.Hour})
	first := make(chan error)
	began := make(chan struct{})
	go func() {
		close(began)
		var result string
		first <- e.CallContext(context.WithoutCancel(t.Context()), &result, "eth_chainId")
	}()
	<-began
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var result string
	if err := e.CallContext(impatient, &result, "eth_chainId"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the impatient caller got %v, want its own deadline", err)
	}
	e.Close()
	if err := <-first; err == nil {
		t.Error("the patient caller got an answer")
	}
}

// TestRedirectIsNotFollowed has a node redirect, with the access key in the URL, to a server that must not receive it.
func TestRedirectIsNotFollowed(t *testing.T) {
	var heard atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		heard.Add(1)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"0x5"}`)
	}))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		node := httptest.NewServer(http.RedirectHandler(other.URL+"/v3/secretkey", status))
		t.Cleanup(node.Close)
		p := pool(t, start(), node.URL+"/v3/secretkey")
		var result string
		err := p.Writer().CallContext(t.Context(), &result, "eth_chainId")
		if !errors.Is(err, chain.ErrRedirected) || !strings.Contains(err.Error(), other.URL) || strings.Contains(err.Error(), "secretkey") {
			t.Errorf("%d: got %v, want an ErrRedirected that names %s and no key", status, err, other.URL)
		}
		if h := p.Health()[0]; h.State != chain.StateBackoff {
			t.Errorf("%d: the node is %s, want it in backoff", status, h.State)
		}
	}
	if n := heard.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}
