package chain_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/expect"
)

// client returns a client. Its connections are closed when the test ends.
func client(t *testing.T) *http.Client {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: chain.Transport{Base: base}}
}

// hijacking answers every request and leaves the connection open until the client closes it, which closes gone.
func hijacking(t *testing.T, answer string) (url string, gone <-chan struct{}) {
	t.Helper()
	closed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close() //nolint:errcheck // it is over in any case
		if _, err := io.WriteString(conn, answer); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, bufio.NewReader(buffered))
		close(closed)
	}))
	t.Cleanup(server.Close)
	return server.URL, closed
}

func post(ctx context.Context, t *testing.T, c *http.Client, url string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	expect.OK(t, err)
	return c.Do(r)
}

func TestSwitchingProtocolsIsRefused(t *testing.T) {
	url, gone := hijacking(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: whatever\r\n\r\n")
	resp, err := post(t.Context(), t, client(t), url)
	if err == nil {
		_ = resp.Body.Close() // the test fails in any case
	}
	if !errors.Is(err, chain.ErrSwitched) {
		t.Errorf("got %v, want ErrSwitched", err)
	}
	<-gone
}

// stubborn is an answer with a body that ends only when it is closed.
type stubborn struct {
	io.Reader
	io.Closer
}

func (s stubborn) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: s}, nil
}

func TestBodyEndsWithTheContext(t *testing.T) {
	// net/http ends its own bodies; it does not know this one.
	r, w := io.Pipe()
	defer w.Close() //nolint:errcheck // it is over in any case
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := post(ctx, t, &http.Client{Transport: chain.Transport{Base: stubborn{r, r}}}, "http://node.example")
	expect.OK(t, err)
	defer resp.Body.Close() //nolint:errcheck // it is over in any case
	go func() {
		_, _ = io.WriteString(w, "{") // the reader has begun
		cancel()
	}()
	got, err := io.ReadAll(resp.Body)
	if string(got) != "{" || !errors.Is(err, context.Canceled) {
		t.Errorf("read %q and %v, want the beginning and context.Canceled", got, err)
	}
}

func TestTricklingBodyEndsWithTheContext(t *testing.T) {
	url, gone := hijacking(t, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := post(ctx, t, client(t), url)
	expect.OK(t, err)
	defer resp.Body.Close() //nolint:errcheck // it is over in any case
	expect.Success(t)(io.ReadFull(resp.Body, make([]byte, 1)))
	cancel()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	<-gone
}
