package webhooks_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// attemptAt makes one attempt at a URL and returns its outcome.
func attemptAt(t *testing.T, url string) outcome {
	t.Helper()
	s := dbtest.Open(t, dbtest.SQLite(t))
	dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
	w := newWorld(t, s, url)
	w.start(t)
	return w.outcome(t)
}

// attemptWithin1s makes one attempt with a time limit of 1 s. It fails the test if the exchange took so long that the
// default limit of 5 s may have ended it.
func attemptWithin1s(t *testing.T, url string) outcome {
	t.Helper()
	s := dbtest.Open(t, dbtest.SQLite(t))
	dbtest.Schedule(t, s, "m", 0, 1, time.Now().UnixMilli())
	w := newWorld(t, s, url)
	w.Now = time.Now
	w.Limits.Timeout = time.Second
	w.start(t)
	o := w.outcome(t)
	if took := o.Attempt.Duration; took < time.Second || took > 4*time.Second {
		t.Errorf("an exchange limited to 1 s took %d ms", took)
	}
	return o
}

func wantOutcome(t *testing.T, o outcome, status webhooks.Status, code int, err string) {
	t.Helper()
	if o.Status != status || o.Attempt.StatusCode != code || !strings.Contains(o.Attempt.Error, err) || (err == "") != (o.Attempt.Error == "") {
		t.Errorf("outcome %s, status %d, error %q; want %s, %d, %q", o.Status, o.Attempt.StatusCode, o.Attempt.Error, status, code, err)
	}
}

func TestStatuses(t *testing.T) {
	for code, want := range map[int]webhooks.Status{
		200: webhooks.Delivered, 299: webhooks.Delivered,
		300: webhooks.Pending, 410: webhooks.Pending, 503: webhooks.Pending, 999: webhooks.Pending,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			err := ""
			if want == webhooks.Pending {
				err = fmt.Sprintf("answered %d, expected 2xx", code)
			}
			wantOutcome(t, attemptAt(t, newReceiver(t, status(code)).URL), want, code, err)
		})
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	for _, code := range []int{302, 308} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			target := newReceiver(t, status(http.StatusOK))
			r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", target.URL+"/new?token=hidden")
				w.WriteHeader(code)
			})
			wantOutcome(t, attemptAt(t, r.URL), webhooks.Pending, code, fmt.Sprintf("answered %d, which leads to %s/new and is not followed, expected 2xx", code, target.URL))
			expect.Equal(t, len(target.requests()), 0, "requests to the target:")
		})
	}
}

// TestTimeout checks that the time limit applies to the whole exchange.
func TestTimeout(t *testing.T) {
	t.Run("slow header", func(t *testing.T) {
		t.Parallel()
		r := newReceiver(t, func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
		wantOutcome(t, attemptWithin1s(t, r.URL), webhooks.Pending, 0, "no answer within 1s")
	})
	t.Run("a byte of the body at a time", func(t *testing.T) {
		t.Parallel()
		r := newReceiver(t, func(w http.ResponseWriter, req *http.Request) {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for req.Context().Err() == nil {
				if _, err := w.Write([]byte("x")); err != nil {
					return
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					return
				}
				<-tick.C
			}
		})
		wantOutcome(t, attemptWithin1s(t, r.URL), webhooks.Pending, 200, "the answer was not complete within 1s")
	})
	t.Run("no handshake", func(t *testing.T) {
		t.Parallel()
		l := listen(t)
		wantOutcome(t, attemptWithin1s(t, "https://"+l.Addr().String()), webhooks.Pending, 0, "no answer within 1s")
	})
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return l
}

// raw answers every connection with the given bytes and closes it.
func raw(t *testing.T, answer string) string {
	t.Helper()
	l := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			_, readErr := conn.Read(buf)
			_, writeErr := conn.Write([]byte(answer))
			if err := errors.Join(readErr, writeErr, conn.Close()); err != nil {
				t.Logf("raw receiver: %v", err)
			}
		}
	}()
	t.Cleanup(func() {
		expect.NoError(t, l.Close())
		<-done
	})
	return "http://" + l.Addr().String()
}

func TestBrokenAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		code   int
		err    string
	}{
		"closed":             {"", 0, "no answer"},
		"no HTTP":            {"\x00\xff\r\n\r\n", 0, "no answer"},
		"status 0":           {"HTTP/1.1 000 none\r\nContent-Length: 0\r\n\r\n", 0, "answered 0"},
		"status 1000":        {"HTTP/1.1 1000 none\r\nContent-Length: 0\r\n\r\n", 0, "no answer"},
		"status 99":          {"HTTP/1.1 099 none\r\nContent-Length: 0\r\n\r\n", 0, "answered 99"},
		"body cut off":       {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 200, "the answer was cut off"},
		"header too long":    {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*webhooks.MaxResponseHeader) + "\r\n\r\n", 0, "no answer"},
		"switched protocols": {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", 101, "answered 101"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := attemptAt(t, raw(t, c.answer)+"/hush")
			wantOutcome(t, o, webhooks.Pending, c.code, c.err)
			if text := o.Attempt.Error; len(text) > webhooks.MaxError || strings.Contains(text, "hush") {
				t.Errorf("an error of %d bytes: %s", len(text), text)
			}
		})
	}
	if o := attemptAt(t, "://hush"); !strings.HasPrefix(o.Attempt.Error, "the webhook URL cannot be read") || strings.Contains(o.Attempt.Error, "hush") {
		t.Errorf("an unreadable URL: %s", o.Attempt.Error)
	}
}

// TestErrorsAreRedacted checks that the recorded error of a malformed response contains no
// secret of the endpoint, for short and long responses.
func TestErrorsAreRedacted(t *testing.T) {
	const token = "sk_live_0123456789"
	long := strings.Repeat("x", webhooks.MaxError-105)
	for name, answer := range map[string]string{
		"status line":   "HTTP/1.1 " + secret + " " + token + "\r\n\r\n",
		"no status":     secret + " " + token + "\r\n\r\n",
		"header":        "HTTP/1.1 200 OK\r\n" + secret + " " + token + "\r\n\r\n",
		"at the end":    "HTTP/1.1 200 OK\r\n" + long + secret + " " + token + "\r\n\r\n",
		"chunk's size":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "\r\n\r\n",
		"body's length": "HTTP/1.1 200 OK\r\nContent-Length: " + token + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := attemptAt(t, raw(t, answer)+"/"+token)
			wantOutcome(t, o, webhooks.Pending, 0, "no answer")
			if text := o.Attempt.Error; strings.Contains(text, secret[:8]) || strings.Contains(text, token) || !strings.Contains(text, "[r") {
				t.Errorf("the error is %q", text)
			}
		})
	}
}

// TestLongAnswers checks that only MaxResponse bytes of a body are read, and that the exchange does not wait for the
// rest.
func TestLongAnswers(t *testing.T) {
	for name, size := range map[string]int{"at the limit": webhooks.MaxResponse, "above": webhooks.MaxResponse + 1, "endless": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int64
			r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				block := make([]byte, 4096)
				for left := size; left != 0; {
					n := len(block)
					if size > 0 {
						n = min(n, left)
					}
					if _, err := w.Write(block[:n]); err != nil {
						return
					}
					sent.Add(int64(n))
					left -= n
				}
			})
			wantOutcome(t, attemptAt(t, r.URL), webhooks.Delivered, 200, "")
			r.Close() // waits for the handler, which returns when its connection is closed
			if n := sent.Load(); size > 0 && n != int64(size) {
				t.Errorf("sent %d bytes, want %d", n, size)
			}
		})
	}
}

func TestRetryAfterIsHeeded(t *testing.T) {
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	if o := attemptAt(t, r.URL); !o.NextDue.Equal(epoch.Add(2 * time.Minute)) {
		t.Errorf("next attempt after %s, want 2m", o.NextDue.Sub(epoch))
	}
}

func TestTLS(t *testing.T) {
	for _, c := range []struct {
		name    string
		version uint16
		trusted bool
		want    webhooks.Status
	}{
		{"TLS 1.2", tls.VersionTLS12, true, webhooks.Delivered},
		{"TLS 1.1", tls.VersionTLS11, true, webhooks.Pending},
		{"unknown authority", tls.VersionTLS13, false, webhooks.Pending},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewUnstartedServer(status(http.StatusOK))
			r.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: c.version}
			r.Config.ErrorLog = nil
			r.StartTLS()
			t.Cleanup(r.Close)
			s := dbtest.Open(t, dbtest.SQLite(t))
			dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
			w := newWorld(t, s, r.URL)
			if c.trusted {
				roots := x509.NewCertPool()
				roots.AddCert(r.Certificate())
				w.Client.Transport.(chain.Transport).Base.(*http.Transport).TLSClientConfig.RootCAs = roots
			}
			w.start(t)
			if o := w.outcome(t); o.Status != c.want {
				t.Errorf("%s (%s), want %s", o.Status, o.Attempt.Error, c.want)
			}
		})
	}
}

// TestExcerptIsKept checks that the attempt records the beginning of the response body.
func TestExcerptIsKept(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"short":       {"signature wrong", "signature wrong"},
		"above":       {strings.Repeat("x", webhooks.MaxExcerpt+1), strings.Repeat("x", webhooks.MaxExcerpt)},
		"at the edge": {strings.Repeat("x", webhooks.MaxExcerpt-9) + secret, strings.Repeat("x", webhooks.MaxExcerpt-9) + "[redacted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusUnauthorized)
				if _, err := io.WriteString(w, c.body); err != nil {
					t.Error(err)
				}
			})
			expect.Equal(t, attemptAt(t, r.URL).Attempt.Excerpt, c.want, "kept")
		})
	}
}

// TestCompressedBodyIsNotInflated sends a compressed body of 1 GB, which must not be decompressed.
func TestCompressedBodyIsNotInflated(t *testing.T) {
	var member bytes.Buffer
	z := gzip.NewWriter(&member)
	expect.Success(t)(z.Write(make([]byte, 1<<20)))
	expect.OK(t, z.Close())
	bomb := bytes.Repeat(member.Bytes(), 1024)
	asked := make(chan string, 1)
	r := newReceiver(t, func(w http.ResponseWriter, req *http.Request) {
		asked <- req.Header.Get("Accept-Encoding")
		w.Header().Set("Content-Encoding", "gzip")
		// The worker stops reading at its limit, so this may fail.
		_, _ = w.Write(bomb)
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	o := attemptAt(t, r.URL)
	runtime.ReadMemStats(&after)
	wantOutcome(t, o, webhooks.Delivered, 200, "")
	expect.Equal(t, <-asked, "", "asked for")
	const most = 64 << 20 // for database, server and worker; decompression would take a thousand times this
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > most {
		t.Errorf("allocated %d bytes", allocated)
	}
}

// TestPhases checks that only the phases that an exchange had are recorded.
func TestPhases(t *testing.T) {
	tick := &ticking{now: epoch}
	s := dbtest.Open(t, dbtest.SQLite(t))
	dbtest.Schedule(t, s, "m", 0, 2, epoch.UnixMilli())
	r := newReceiver(t, status(http.StatusOK))
	w := newWorld(t, s, r.URL)
	w.Now = tick.Now
	w.Limits.PerMerchant = 1
	w.start(t)
	first, second := w.outcome(t).Attempt, w.outcome(t).Attempt
	if first.Connect == 0 || first.Answer == 0 || first.Lookup != 0 || first.Handshake != 0 {
		t.Errorf("the first exchange, with a new connection, took %+v", first)
	}
	if second.Connect != 0 || second.Answer == 0 {
		t.Errorf("the second exchange, on an open connection, took %+v", second)
	}
}

// ticking is a clock that advances by 1 ms each time it is read.
type ticking struct {
	mu  sync.Mutex
	now time.Time
}

func (c *ticking) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Millisecond)
	return c.now
}

// TestOnlyHTTP1 has a receiver that speaks HTTP/2, too.
func TestOnlyHTTP1(t *testing.T) {
	r := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { _, _ = io.WriteString(w, req.Proto) }))
	r.EnableHTTP2 = true
	r.StartTLS()
	t.Cleanup(r.Close)
	client := webhooks.NewClient(webhooks.ClientConfig{Guard: loopback, CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})})
	t.Cleanup(client.CloseIdleConnections)
	p := webhooks.NewPoster(webhooks.PosterConfig{Client: client, Now: time.Now, Timeout: patience})
	if a := p.Ping(t.Context(), webhooks.Endpoint{URL: r.URL, Secret: secret}, "dlv_1", nil); a.Excerpt != "HTTP/1.1" {
		t.Errorf("posted by %q, %s; want HTTP/1.1", a.Excerpt, a.Error)
	}
}
