package client_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
)

// outcome is the outcome of a request: an error or a response.
type outcome struct {
	err    error
	hangs  bool // until the request's context ends
	status int
	header http.Header
	body   io.Reader
}

// exchanges is a transport that gives the outcomes in turn, and records the requests.
type exchanges struct {
	outcomes []outcome
	sent     []string
	keys     []string
	queries  []url.Values

	authorization string // of the last request
}

func (e *exchanges) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	e.sent = append(e.sent, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	e.keys = append(e.keys, r.Header.Get("Idempotency-Key"))
	e.queries = append(e.queries, r.URL.Query())
	e.authorization = r.Header.Get("Authorization")
	if len(e.outcomes) < len(e.sent) {
		return nil, errors.New("one request too many")
	}
	o := e.outcomes[len(e.sent)-1]
	if o.hangs {
		<-r.Context().Done()
		o.err = r.Context().Err()
	}
	if o.err != nil {
		return nil, o.err
	}
	return &http.Response{StatusCode: o.status, Header: o.header, Body: io.NopCloser(o.body)}, nil
}

func answers(status int, body string, header ...string) outcome {
	h := http.Header{"Content-Type": {"application/json"}}
	if !strings.HasPrefix(body, "{") {
		h.Set("Content-Type", "text/event-stream")
	}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return outcome{status: status, header: h, body: strings.NewReader(body)}
}

func breaks(err error) outcome { return outcome{err: err} }

func problem(status int, code apitypes.ErrorCode, header ...string) outcome {
	return answers(status, fmt.Sprintf(`{"status":%d,"code":%q,"detail":"D."}`, status, code), header...)
}

var (
	errReset      = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
	errNoListener = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
)

// issued is the response to a create, with the required members.
const issued = `{"id":"inv_1","onChainInvoiceId":"0x1","checkoutUrl":"/checkout/inv_1","invoice":{"id":"inv_1"}}`

// created returns the response to a create.
func created() outcome { return answers(http.StatusCreated, issued) }

// clock records how long it was asked to wait, and does not wait.
type clock struct{ waited []time.Duration }

func (*clock) Now() time.Time { return time.Unix(1_700_000_000, 0) }

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.waited = append(c.waited, d)
	return ctx.Err()
}

// zeros is a source of randomness, so that delays have no jitter.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// with returns a client over a transport with these outcomes.
func with(t *testing.T, outcomes ...outcome) (*client.Client, *exchanges, *clock) {
	t.Helper()
	e, k := &exchanges{outcomes: outcomes}, new(clock)
	c := expect.Must(client.New("http://service.example", client.WithHTTPClient(&http.Client{Transport: e}), client.WithClock(k), client.WithRandom(zeros{})))
	return c, e, k
}

// TestCreateIsRepeatedUnderOneKey has every temporary failure, one after the other.
func TestCreateIsRepeatedUnderOneKey(t *testing.T) {
	for name, o := range map[string]outcome{
		"in progress":     problem(409, apitypes.CodeIdempotencyInProgress, "Retry-After", "1"),
		"rate limited":    problem(429, apitypes.CodeRateLimited),
		"too slow":        answers(408, ""),
		"a page":          answers(200, "<html>", "Content-Type", "text/html"),
		"another's JSON":  answers(200, "{}"),
		"internal":        problem(500, apitypes.CodeInternal),
		"a proxy":         answers(502, "<html>"),
		"unavailable":     problem(503, apitypes.CodeUnavailable),
		"connection lost": breaks(errReset),
		"no connection":   breaks(errNoListener),
		"answer cut off":  {status: http.StatusCreated, body: io.MultiReader(strings.NewReader(`{"id":`), failing{})},
	} {
		c, e, _ := with(t, o, created())
		got, err := c.CreateInvoice(t.Context(), apitypes.CreateInvoiceRequest{Amount: "1"})
		if err != nil || got.ID != "inv_1" {
			t.Errorf("%s: %v", name, err)
		}
		if len(e.sent) != 2 || e.sent[0] != e.sent[1] || e.keys[0] == "" || e.keys[0] != e.keys[1] {
			t.Errorf("%s: sent %q with the keys %q", name, e.sent, e.keys)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestWhatWillNotChangeIsNotRepeated(t *testing.T) {
	for name, o := range map[string]outcome{
		"invalid field": problem(400, apitypes.CodeInvalidField),
		"unauthorized":  problem(401, apitypes.CodeUnauthorized),
		"not found":     problem(404, apitypes.CodeNotFound),
		"conflict":      problem(409, apitypes.CodeAlreadyAttributed),
		"key mismatch":  problem(422, apitypes.CodeIdempotencyMismatch),
		"a redirect":    answers(307, "", "Location", "http://other.example/"),
		"a long wait":   problem(503, apitypes.CodeUnavailable, "Retry-After", "31"),
		"2^32 s":        problem(503, apitypes.CodeUnavailable, "Retry-After", "4294967296"),
		"no end":        problem(503, apitypes.CodeUnavailable, "Retry-After", "99999999999999999999"),
		"a late date":   problem(503, apitypes.CodeUnavailable, "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"),
	} {
		c, e, k := with(t, o)
		if _, err := c.CreateInvoice(t.Context(), apitypes.CreateInvoiceRequest{}); err == nil || len(e.sent) != 1 || len(k.waited) != 0 {
			t.Errorf("%s: %v after %d requests", name, err, len(e.sent))
		}
	}
}

// TestUnsafeCalls expects a repetition of a request that is not idempotent only if the service has not processed it.
func TestUnsafeCalls(t *testing.T) {
	key := apitypes.CreateKeyRequest{Name: "x", Scopes: []string{"read"}}
	for name, o := range map[string]outcome{
		"unavailable": problem(503, apitypes.CodeUnavailable), "connection lost": breaks(errReset), "too slow": answers(408, ""), "a page": answers(200, "<html>"),
	} {
		c, e, _ := with(t, o)
		if _, _, err := c.CreateKey(t.Context(), key); err == nil || len(e.sent) != 1 {
			t.Errorf("%s: %v after %d requests", name, err, len(e.sent))
		}
	}
	for name, o := range map[string]outcome{
		"rate limited": problem(429, apitypes.CodeRateLimited), "no connection": breaks(errNoListener),
	} {
		c, e, _ := with(t, o, answers(http.StatusCreated, `{"key":{"id":"key_1"},"secret":"qk"}`))
		if _, secret, err := c.CreateKey(t.Context(), key); err != nil || secret != "qk" || len(e.sent) != 2 {
			t.Errorf("%s: %v after %d requests", name, err, len(e.sent))
		}
	}
}

func TestDelays(t *testing.T) {
	down := func() outcome { return problem(503, apitypes.CodeUnavailable) }
	c, e, k := with(t, down(), down(), down(), down())
	_, err := c.Invoice(t.Context(), "inv_1")
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != 503 || !strings.Contains(err.Error(), "(4 attempts)") || len(e.sent) != 1+client.DefaultRetries {
		t.Errorf("%v after %d requests", err, len(e.sent))
	}
	expect.NoDiff(t, cmp.Diff([]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}, k.waited), "waits")

	// Retry-After only lengthens a delay. 30 s is the longest accepted one.
	date := time.Unix(1_700_000_007, 0).UTC().Format(http.TimeFormat)
	for header, want := range map[string]time.Duration{
		"0": 500 * time.Millisecond, "3": 3 * time.Second, "30": 30 * time.Second, "soon": 500 * time.Millisecond, "-1": 500 * time.Millisecond, "1e9": 500 * time.Millisecond,
		"Thu, 01 Jan 1970 00:00:00 GMT": 500 * time.Millisecond, date: 7 * time.Second,
	} {
		c, _, k := with(t, problem(429, apitypes.CodeRateLimited, "Retry-After", header), answers(http.StatusOK, `{"invoice":{"id":"inv_1"}}`))
		if _, err := c.Invoice(t.Context(), "inv_1"); err != nil || len(k.waited) != 1 || k.waited[0] != want {
			t.Errorf("Retry-After %q: waited %v, %v", header, k.waited, err)
		}
	}
}

func TestJitter(t *testing.T) {
	for range 100 {
		e, k := &exchanges{outcomes: []outcome{breaks(errReset), breaks(errReset)}}, new(clock)
		c := expect.Must(client.New("http://service.example", client.WithHTTPClient(&http.Client{Transport: e}), client.WithClock(k),
			client.WithRandom(rand.Reader), client.WithRetries(1)))
		if _, err := c.Invoice(t.Context(), "inv_1"); err == nil {
			t.Fatal("no error")
		}
		if w := k.waited[0]; w <= client.FirstDelay/2 || w > client.FirstDelay {
			t.Errorf("waited %s", w)
		}
	}
}

// TestTimeouts has a service that never answers.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &exchanges{outcomes: []outcome{{hangs: true}, {hangs: true}, {hangs: true}, {hangs: true}}}
		c := expect.Must(client.New("http://service.example", client.WithHTTPClient(&http.Client{Transport: e})))
		start := time.Now()
		if _, err := c.Invoice(t.Context(), "inv_1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		if took := time.Since(start); took != client.DefaultTimeout || len(e.sent) != 3 {
			t.Errorf("it took %s and %d requests", took, len(e.sent))
		}

		// The caller's context ends a wait.
		e.outcomes, e.sent = []outcome{breaks(errNoListener)}, nil
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		start = time.Now()
		if _, err := c.Invoice(ctx, "inv_1"); !errors.Is(err, context.Canceled) || !errors.Is(err, errNoListener) || time.Since(start) != time.Millisecond {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

// TestSlowReport has a service that takes as long for a report as it may.
func TestSlowReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := &slow{kind: "application/json", parts: []part{{api.ReportTimeout, `{"report": {}, "statement": {}}`}}}
		c := expect.Must(client.New("http://service.example", client.WithHTTPClient(&http.Client{Transport: late})))
		_, err := c.SettlementReport(t.Context(), client.ReportFilter{From: "2026-11-01", To: "2026-12-01"})
		expect.OK(t, err)
		_, err = c.Statement(t.Context(), "acme", "2026-11", "")
		expect.OK(t, err)
		if late.requests != 2 {
			t.Errorf("%d requests were sent", late.requests)
		}
	})
}

// TestRedirects expects that the key is not sent to another host.
func TestRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the redirect to %s was followed", r.URL) }))
	t.Cleanup(other.Close)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }, true)
	var refused *client.Error
	if _, err := c.Invoice(t.Context(), "inv_1"); !errors.As(err, &refused) || refused.Status != http.StatusFound {
		t.Errorf("the error is %v", err)
	}
}

func TestRequestID(t *testing.T) {
	for _, o := range []outcome{
		answers(400, `{"status":400,"code":"invalid_json","requestId":"req_1"}`), answers(502, "<html>", "X-Request-Id", "req_1"),
	} {
		c, _, _ := with(t, o)
		var refused *client.Error
		if _, _, err := c.CreateKey(t.Context(), apitypes.CreateKeyRequest{}); !errors.As(err, &refused) || refused.RequestID != "req_1" {
			t.Errorf("the error is %+v", err)
		}
	}
}

func TestFromEnv(t *testing.T) {
	t.Setenv("QUITTANCE_API_KEY", "qk_test_1")
	t.Setenv("QUITTANCE_URL", "")
	if _, err := client.FromEnv(); err == nil || !strings.Contains(err.Error(), "QUITTANCE_URL is not set") {
		t.Errorf("without a URL the error is %v", err)
	}
	e := &exchanges{outcomes: []outcome{created()}}
	t.Setenv("QUITTANCE_URL", "http://service.example")
	t.Setenv("QUITTANCE_API_KEY", "")
	if _, err := client.FromEnv(); err == nil || !strings.Contains(err.Error(), "QUITTANCE_API_KEY is not set") {
		t.Errorf("without a key the error is %v", err)
	}
	t.Setenv("QUITTANCE_API_KEY", "qk_test_1")
	if _, err := client.Must(client.FromEnv(client.WithHTTPClient(&http.Client{Transport: e}))).CreateInvoice(t.Context(), apitypes.CreateInvoiceRequest{}); err != nil || e.authorization != "Bearer qk_test_1" {
		t.Errorf("sent the key %q: %v", e.authorization, err)
	}
}

// TestKeyOfAllCalls makes a client with an idempotency key, which would make all of its creates the same one.
func TestKeyOfAllCalls(t *testing.T) {
	if _, err := client.New("https://h.example", client.IdempotencyKey("order-1")); err == nil || !strings.Contains(err.Error(), "give it to the call") {
		t.Errorf("the error is %v", err)
	}
}

func TestMust(t *testing.T) {
	if c := client.Must(client.New("https://h.example")); c == nil {
		t.Error("no client")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	client.Must(client.New(""))
}

func TestMustEnv(t *testing.T) {
	t.Setenv("ADDR", "127.0.0.1:9000")
	if got := client.MustEnv("ADDR"); got != "127.0.0.1:9000" {
		t.Errorf("it is %q", got)
	}
	t.Setenv("ADDR", "")
	defer func() {
		if err := recover(); err == nil || !strings.Contains(fmt.Sprint(err), "variable ADDR is not set") {
			t.Errorf("it panics with %v", err)
		}
	}()
	client.MustEnv("ADDR")
}

// TestNoRandomness expects an error and no request without a key.
func TestNoRandomness(t *testing.T) {
	e := new(exchanges)
	c := expect.Must(client.New("http://service.example", client.WithHTTPClient(&http.Client{Transport: e}), client.WithRandom(bytes.NewReader(nil))))
	if _, err := c.CreateInvoice(t.Context(), apitypes.CreateInvoiceRequest{}); err == nil || len(e.sent) != 0 {
		t.Errorf("%v after %d requests", err, len(e.sent))
	}
}

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
	for _, name := range []string{
		"CreateKey", "RotateKey", "PutWebhook", "Decide", "DeleteInvoice",
		"StageWebhookSecret", "PromoteWebhookSecret", "RedeliverEvent", "DropWebhookSecret", // without a body
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
			c := expect.Must(client.New("http://"+listener.Addr().String(), client.WithHTTPClient(&http.Client{Transport: transport}), client.WithClock(new(clock))))
			if _, err := c.Invoice(t.Context(), "inv_1"); err == nil {
				t.Error("an invoice was found")
			}
			_, err = calls()[name](c)
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
