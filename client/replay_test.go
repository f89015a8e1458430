package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

// losing is a service that keeps connections. It carries out a write on a connection that was used before, and closes
// the connection without an answer.
type losing struct {
	mu     sync.Mutex
	writes int
}

func (l *losing) serve(t *testing.T, conn net.Conn) {
	t.Helper()
	defer func() { expect.NoError(t, conn.Close()) }()
	const missing = `{"status":404,"code":"not_found","detail":"D."}`
	in := bufio.NewReader(conn)
	for used := false; ; used = true {
		r, err := http.ReadRequest(in)
		if err != nil {
			return // the client closed it
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if used && r.Method != http.MethodGet {
			l.mu.Lock()
			l.writes++
			l.mu.Unlock()
			return
		}
		if r.Method != http.MethodGet {
			t.Errorf("%s %s came on a new connection", r.Method, r.URL.Path)
		}
		if _, err := fmt.Fprintf(conn, "HTTP/1.1 404 X\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\n\r\n%s", len(missing), missing); err != nil {
			return
		}
	}
}

// TestTransportDoesNotRepeat makes writes that must not be repeated, on connections that break after the request. The
// transport of package http repeats a request with an idempotency key, unless the client prevents it.
func TestTransportDoesNotRepeat(t *testing.T) {
	for name, call := range map[string]func(context.Context, *client.Client) error{
		"CreateKey": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.CreateKey(ctx, apitypes.CreateKeyRequest{Name: "x", Scopes: []string{"read"}})
			return err
		},
		"RotateKey": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.RotateKey(ctx, "key_1", time.Hour)
			return err
		},
		"PutWebhook": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.PutWebhook(ctx, "acme", "https://m.example/h")
			return err
		},
		"Decide": func(ctx context.Context, c *client.Client) error {
			_, err := c.Decide(ctx, apitypes.DecideRequest{})
			return err
		},
		// without a body
		"StageWebhookSecret": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.StageWebhookSecret(ctx, "acme")
			return err
		},
		"PromoteWebhookSecret": func(ctx context.Context, c *client.Client) error {
			_, err := c.PromoteWebhookSecret(ctx, "acme")
			return err
		},
		"RedeliverEvent": func(ctx context.Context, c *client.Client) error {
			_, err := c.RedeliverEvent(ctx, "evt_1")
			return err
		},
		"DeleteInvoice":     func(ctx context.Context, c *client.Client) error { return c.DeleteInvoice(ctx, "inv_1") },
		"DropWebhookSecret": func(ctx context.Context, c *client.Client) error { return c.DropWebhookSecret(ctx, "acme") },
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			expect.OK(t, err)
			service := new(losing)
			var served sync.WaitGroup
			served.Go(func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					served.Go(func() { service.serve(t, conn) })
				}
			})
			transport := new(http.Transport)
			c, err := client.New("http://"+listener.Addr().String(), client.WithHTTPClient(&http.Client{Transport: transport}), client.WithClock(new(clock)))
			expect.OK(t, err)
			if _, err := c.Invoice(t.Context(), "inv_1"); err == nil {
				t.Error("an invoice was found")
			}
			err = call(t.Context(), c)
			transport.CloseIdleConnections()
			expect.NoError(t, listener.Close())
			served.Wait()
			var broken *client.ConnectionError
			if !errors.As(err, &broken) || broken.Unsent || service.writes != 1 {
				t.Errorf("carried out %d times, and the error is %v; want once and a ConnectionError", service.writes, err)
			}
		})
	}
}
