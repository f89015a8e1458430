package webhooks

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
)

// receiver is a receiver with HTTPS and a certificate for example.com, and the headers that it received.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	headers []http.Header
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := new(receiver)
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.headers = append(r.headers, req.Header)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) received() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.headers
}

// ca returns the certificate of the receiver's issuer in PEM.
func (r *receiver) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
}

// forwardProxy is a proxy that connects every request to one address, and records the requested addresses.
type forwardProxy struct {
	*httptest.Server
	to     string
	status int
	mu     sync.Mutex
	asked  []string
}

func newForwardProxy(t *testing.T, to string, status int) *forwardProxy {
	t.Helper()
	p := &forwardProxy{to: to, status: status}
	var open sync.WaitGroup
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.Host)
		p.mu.Unlock()
		if p.status != http.StatusOK {
			w.WriteHeader(p.status)
			return
		}
		there, err := new(net.Dialer).DialContext(r.Context(), "tcp", p.to)
		if err != nil {
			t.Error(err)
			return
		}
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			t.Error(err)
		}
		for _, pair := range [][2]net.Conn{{here, there}, {there, here}} {
			open.Go(func() {
				_, _ = io.Copy(pair[0], pair[1]) // it ends with either connection
				_, _ = pair[0].Close(), pair[1].Close()
			})
		}
	}))
	t.Cleanup(func() {
		p.Close()
		open.Wait()
	})
	return p
}

func (p *forwardProxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// hosts is a lookup of fixed names.
func hosts(t *testing.T, all map[string][]string) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, host string) (found []netip.Addr, err error) {
		if all[host] == nil {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		for _, text := range all[host] {
			found = append(found, netip.MustParseAddr(text))
		}
		if t.Context().Err() != nil {
			t.Error("a lookup after the test")
		}
		return found, nil
	}
}

// post posts a message with a client.
func post(t *testing.T, c ClientConfig, to Endpoint) Answer {
	t.Helper()
	client := NewClient(c)
	defer client.CloseIdleConnections()
	return NewPoster(PosterConfig{Client: client, Now: time.Now}).Post(t.Context(), to, Message{ID: "dlv_1", Event: PingEvent, Body: []byte("{}")})
}

func TestPrivateCA(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	to := Endpoint{URL: r.URL, Secret: "whsec_0123456789"}
	if a := post(t, ClientConfig{Guard: NewGuard(Loopback())}, to); a.Err == nil || !strings.Contains(a.Err.Error(), "certificate") {
		t.Errorf("without the CA: %+v", a)
	}
	if a := post(t, ClientConfig{Guard: NewGuard(Loopback()), CA: r.ca()}, to); a.Err != nil {
		t.Errorf("with the CA: %v", a.Err)
	}
}

// TestOwnHeaders expects the headers of an endpoint to be sent, the service's headers to be unchanged, and no value to
// be shown.
func TestOwnHeaders(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	to := Endpoint{URL: r.URL, Secret: "whsec_0123456789", Headers: []access.WebhookHeader{{Name: "Authorization", Value: "Bearer of the gateway"}, {Name: "X-Tenant", Value: "cafe"}}}
	if a := post(t, ClientConfig{Guard: NewGuard(Loopback()), CA: r.ca()}, to); a.Err != nil {
		t.Fatal(a.Err)
	}
	got := r.received()[0]
	if got.Get("Authorization") != "Bearer of the gateway" || got.Get("X-Tenant") != "cafe" || got.Get("Content-Type") != "application/json" || got.Get("X-Service-Delivery") != "dlv_1" {
		t.Errorf("received %v", got)
	}
	to.Headers = append(to.Headers, access.WebhookHeader{Name: "X-Api-Key", Value: "0123456789abcdef"})
	if text := to.redact(`no: Bearer of the gateway, "0123456789abcdef"`, false); strings.Contains(text, "gateway") || strings.Contains(text, "0123456789abcdef") {
		t.Errorf("shown: %s", text)
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	p := newForwardProxy(t, r.Listener.Addr().String(), http.StatusOK)
	at := expect.Must(url.Parse(p.URL))
	c := ClientConfig{Guard: NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}), CA: r.ca(), Proxy: at, lookup: hosts(t, map[string][]string{
		"xn--bcher-kva.example": {"1.1.1.1"}, "example.com": {"1.1.1.1", "2606:4700::1111"}, "inside.example.com": {"10.0.0.7"}, "both.example.com": {"1.1.1.1", "10.0.0.7"},
	})}
	if a := post(t, c, Endpoint{URL: "https://example.com/hook", Secret: "whsec_0123456789"}); a.Err != nil || len(r.received()) != 1 {
		t.Errorf("through the proxy: %+v", a)
	}
	const refused = "no address of this host was found that webhooks may reach"
	for url, want := range map[string]string{
		"https://inside.example.com/": refused, "https://both.example.com/": refused,
		"https://10.0.0.7/": refused, "https://[::ffff:1.1.1.1]/": refused, "https://169.254.169.254/": refused,
		"http://example.com/": "without TLS", "https://unknown.example.com/": refused,
	} {
		if a := post(t, c, Endpoint{URL: url, Secret: "whsec_0123456789"}); a.Err == nil || !strings.Contains(a.Err.Error(), want) || a.Fault != FaultTheirs {
			t.Errorf("%s: %+v, want %q", url, a, want)
		}
	}
	expect.Equal(t, strings.Join(p.requests(), ", "), "CONNECT example.com:443", "the proxy was asked for")
	if a := post(t, c, Endpoint{URL: "https://bücher.example/", Secret: "whsec_0123456789"}); a.Err == nil || !strings.Contains(a.Err.Error(), "certificate") { // of example.com
		t.Errorf("an international name: %+v", a)
	}
	expect.Equal(t, strings.Join(p.requests(), ", "), "CONNECT example.com:443, CONNECT xn--bcher-kva.example:443", "the proxy was asked for")
	// A receiver in a range of webhooks.allow is reached directly.
	if a := post(t, c, Endpoint{URL: r.URL, Secret: "whsec_0123456789"}); a.Err != nil || len(r.received()) != 2 || len(p.requests()) != 2 {
		t.Errorf("an own receiver: %+v, through the proxy: %v", a, p.requests())
	}
}

const (
	textProxy   = "no answer: the proxy of the service cannot be used"
	textRefused = "no answer: the proxy of the service answered %d instead of connecting to this host"
)

// throughProxy posts to a host through a proxy at a URL. The exchange times out when late is closed. The answer must
// not show the proxy's address.
func throughProxy(t *testing.T, proxy string, late <-chan struct{}) Answer {
	t.Helper()
	at := expect.Must(url.Parse(proxy))
	client := NewClient(ClientConfig{Guard: NewGuard(nil), Proxy: at, lookup: hosts(t, map[string][]string{"example.com": {"1.1.1.1"}})})
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		select {
		case <-late:
			cancel(errTimeout)
		case <-ctx.Done():
		}
	}()
	p := NewPoster(PosterConfig{Client: client, Now: time.Now, Timeout: 7 * time.Second})
	a := p.send(ctx, Endpoint{URL: "https://example.com/hook", Secret: "whsec_0123456789"}, Message{ID: "dlv_1", Event: PingEvent, Body: []byte("{}")}, time.Now())
	if a.Err == nil {
		t.Fatalf("%s: no error", proxy)
	}
	if strings.Contains(a.Err.Error(), at.Port()) {
		t.Errorf("%v shows the address %s", a.Err, at.Host)
	}
	return a
}

// TestProxyRefuses has a proxy that answers without connecting to the receiver.
func TestProxyRefuses(t *testing.T) {
	t.Parallel()
	for status, fault := range map[int]Fault{
		http.StatusProxyAuthRequired: FaultShortage, http.StatusTooManyRequests: FaultTheirs,
		http.StatusNoContent: FaultTheirs, http.StatusBadRequest: FaultTheirs, http.StatusForbidden: FaultTheirs,
		http.StatusInternalServerError: FaultTheirs, http.StatusBadGateway: FaultTheirs, http.StatusServiceUnavailable: FaultTheirs, http.StatusGatewayTimeout: FaultTheirs,
	} {
		want := fmt.Sprintf(textRefused, status)
		if fault == FaultShortage {
			want = textProxy
		}
		if a := throughProxy(t, newForwardProxy(t, "", status).URL, nil); a.Err.Error() != want || a.Fault != fault {
			t.Errorf("%d: %+v, want %q", status, a, want)
		}
	}
}

// rawProxy listens, and passes each connection to serve. It returns its address.
func rawProxy(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.OK(t, err)
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			open.Go(func() {
				serve(conn)
				_ = conn.Close() // the peer may have closed it
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // the loop ends
		open.Wait()
	})
	return l.Addr().String()
}

// TestProxyFails has a proxy that cannot be used. That is not the receiver's fault, and merchants must not see where
// the proxy is.
func TestProxyFails(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	private := httptest.NewTLSServer(nil)
	t.Cleanup(private.Close)
	reset := func(c net.Conn) { expect.NoError(t, c.(*net.TCPConn).SetLinger(0)) }
	hangs := rawProxy(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }) // until the service closes the connection
	for name, proxy := range map[string]string{
		"does not listen":                 closed.URL,
		"has a certificate of unknown CA": private.URL,
		"speaks no TLS":                   "https://" + newForwardProxy(t, "", http.StatusOK).Listener.Addr().String(),
		"closes, with TLS":                "https://" + rawProxy(t, func(net.Conn) {}),
		"resets, with TLS":                "https://" + rawProxy(t, reset),
		"does not answer, with TLS":       "https://" + hangs,
	} {
		if a := throughProxy(t, proxy, nil); a.Err.Error() != textProxy || a.Fault != FaultShortage || a.Detail == "" || strings.Contains(a.Detail, "/hook") {
			t.Errorf("a proxy that %s: %+v", name, a)
		}
	}
}

// TestProxyFailsOneReceiver has a proxy that fails once it is connected. It may be the proxy's way to refuse one receiver,
// so that merchant's endpoint is at fault, and the others are not delayed.
func TestProxyFailsOneReceiver(t *testing.T) {
	t.Parallel()
	ask := func(text string, end func(net.Conn)) string {
		return "http://" + rawProxy(t, func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
				t.Error(err)
			}
			if _, err := io.WriteString(c, text); err != nil {
				t.Error(err)
			}
			end(c)
		})
	}
	closes := func(net.Conn) {}
	late := make(chan struct{})
	for name, c := range map[string]struct {
		proxy string
		late  <-chan struct{}
	}{
		"closes":                   {ask("", closes), nil},
		"resets":                   {ask("", func(c net.Conn) { expect.NoError(t, c.(*net.TCPConn).SetLinger(0)) }), nil},
		"closes within its answer": {ask("HTTP/1.1 200 OK\r\n", closes), nil},
		"speaks another protocol":  {ask("SSH-2.0-x\r\n\r\n", closes), nil},
		"does not answer":          {ask("", func(c net.Conn) { close(late); _, _ = io.Copy(io.Discard, c) }), late},
	} {
		if a := throughProxy(t, c.proxy, c.late); a.Fault != FaultTheirs || a.Err.Error() == textProxy {
			t.Errorf("a proxy that %s: %+v", name, a)
		}
	}
}

// TestReceiverFailsBehindProxy has a receiver that fails after the proxy connected it: that is the receiver's fault.
func TestReceiverFailsBehindProxy(t *testing.T) {
	t.Parallel()
	r := newReceiver(t) // with a certificate that the service does not know
	if a := throughProxy(t, newForwardProxy(t, r.Listener.Addr().String(), http.StatusOK).URL, nil); a.Fault != FaultTheirs || !strings.Contains(a.Err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %+v", a)
	}
	closes := rawProxy(t, func(net.Conn) {})
	if a := throughProxy(t, newForwardProxy(t, closes, http.StatusOK).URL, nil); a.Fault != FaultTheirs || a.Err.Error() == textProxy {
		t.Errorf("a closed connection: %+v", a)
	}
}

// TestErrorsShowNoAddresses posts to a forbidden address, to a closed port, to a name that does not exist, and to a
// connection that breaks. A merchant sees why it failed, and no address of the service's network.
func TestErrorsShowNoAddresses(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close() // resets it
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	address := regexp.MustCompile(`\d+\.\d+\.\d+\.\d+|::1|` + port)
	const hidden = "no answer: no address of this host was found that webhooks may reach; if it has one that is not public, the operator can allow it under webhooks.allow"
	for _, c := range []struct {
		allow     []netip.Prefix
		url, want string
	}{
		{nil, "https://localhost:" + port, hidden}, // an existing internal name looks like an unknown one
		{nil, "http://localhost:" + port, hidden},
		{nil, "https://nowhere.invalid", hidden},
		{nil, "http://nowhere.invalid", hidden},
		{nil, "http://8.8.8.8:" + port, "without TLS"},
		{Loopback(), "http://localhost:1", "refused"},
		{Loopback(), "http://localhost:" + port, ""},
	} {
		client := NewClient(ClientConfig{Guard: NewGuard(c.allow)})
		a := NewPoster(PosterConfig{Client: client, Now: time.Now}).Try(t.Context(), Endpoint{URL: c.url, Secret: "secret of an endpoint"}, Message{ID: "dlv_1", Event: "invoice.paid", Body: []byte("{}")})
		if a.Error == "" || !strings.Contains(a.Error, c.want) || address.MatchString(a.Error) {
			t.Errorf("%s: %q; want %q and no address", c.url, a.Error, c.want)
		}
		if c.want == hidden && (a.Error != hidden || a.Lookup != 0 || a.Connect != 0 || a.StatusCode != 0) {
			t.Errorf("%s: %+v tells whether the name exists", c.url, a)
		}
		client.CloseIdleConnections()
	}
	expect.NoError(t, listener.Close())
	<-done
}

func TestCheckHeaders(t *testing.T) {
	many := func(n int) (all []access.WebhookHeader) {
		for i := range n {
			all = append(all, access.WebhookHeader{Name: "X-" + strconv.Itoa(i), Value: "v"})
		}
		return all
	}
	for name, c := range map[string]struct {
		headers []access.WebhookHeader
		index   int // -2: they are accepted
	}{
		"none":                   {nil, -2},
		"one":                    {[]access.WebhookHeader{{Name: "Authorization", Value: "Bearer a b~"}}, -2},
		"as many as possible":    {many(MaxHeaders), -2},
		"one more":               {many(MaxHeaders + 1), -1},
		"the longest":            {[]access.WebhookHeader{{Name: strings.Repeat("n", MaxHeaderName), Value: strings.Repeat("v", MaxHeaderValue)}}, -2},
		"a longer name":          {[]access.WebhookHeader{{Name: strings.Repeat("n", MaxHeaderName+1), Value: "v"}}, 0},
		"a longer value":         {[]access.WebhookHeader{{Name: "X-A", Value: strings.Repeat("v", MaxHeaderValue+1)}}, 0},
		"no name":                {[]access.WebhookHeader{{Name: "X-A", Value: "v"}, {Name: "", Value: "v"}}, 1},
		"no value":               {[]access.WebhookHeader{{Name: "X-A", Value: ""}}, 0},
		"a blank in the name":    {[]access.WebhookHeader{{Name: "X A", Value: "v"}}, 0},
		"a line break":           {[]access.WebhookHeader{{Name: "X-A", Value: "v\r\nX-Service-Event: x"}}, 0},
		"a line break in a name": {[]access.WebhookHeader{{Name: "X-A\n", Value: "v"}}, 0},
		"a blank at the end":     {[]access.WebhookHeader{{Name: "X-A", Value: "v "}}, 0},
		"another alphabet":       {[]access.WebhookHeader{{Name: "X-A", Value: "é"}}, 0},
		"twice":                  {[]access.WebhookHeader{{Name: "X-A", Value: "v"}, {Name: "x-a", Value: "w"}}, 1},
		"of the connection":      {[]access.WebhookHeader{{Name: "Host", Value: "v"}}, 0},
		"of the body":            {[]access.WebhookHeader{{Name: "content-TYPE", Value: "v"}}, 0},
		"of the signature":       {[]access.WebhookHeader{{Name: "X-Service-Signature", Value: "v"}}, 0},
		"of the standard":        {[]access.WebhookHeader{{Name: "WEBHOOK-ID", Value: "v"}}, 0},
		"of the proxy":           {[]access.WebhookHeader{{Name: "Proxy-Authorization", Value: "v"}}, 0},
	} {
		err := CheckHeaders(c.headers)
		var wrong *HeaderError
		switch {
		case c.index == -2 && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.index != -2 && (!errors.As(err, &wrong) || wrong.Index != c.index):
			t.Errorf("%s: %v, want header %d to be refused", name, err, c.index)
		}
	}
}
