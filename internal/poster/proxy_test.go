package poster

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/delivery"
)

// receiver is a receiver with HTTPS and a certificate for example.com, and the headers that it
// received.
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

// forwardProxy is a proxy that connects everything to one address, and keeps what it was asked
// to connect to.
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
	return New(Config{Client: client, Now: time.Now}).Post(t.Context(), to, Message{ID: "dlv_1", Event: PingEvent, Body: []byte("{}")})
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

// TestOwnHeaders wants the headers of an endpoint sent, the service's headers unchanged, and no
// value shown.
func TestOwnHeaders(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	to := Endpoint{URL: r.URL, Secret: "whsec_0123456789", Headers: []delivery.Header{{Name: "Authorization", Value: "Bearer of the gateway"}, {Name: "X-Tenant", Value: "cafe"}}}
	if a := post(t, ClientConfig{Guard: NewGuard(Loopback()), CA: r.ca()}, to); a.Err != nil {
		t.Fatal(a.Err)
	}
	got := r.received()[0]
	if got.Get("Authorization") != "Bearer of the gateway" || got.Get("X-Tenant") != "cafe" || got.Get("Content-Type") != "application/json" || got.Get("X-Service-Delivery") != "dlv_1" {
		t.Errorf("received %v", got)
	}
	to.Headers = append(to.Headers, delivery.Header{Name: "X-Api-Key", Value: "0123456789abcdef"})
	if text := to.redact(`no: Bearer of the gateway, "0123456789abcdef"`, false); strings.Contains(text, "gateway") || strings.Contains(text, "0123456789abcdef") {
		t.Errorf("shown: %s", text)
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	p := newForwardProxy(t, r.Listener.Addr().String(), http.StatusOK)
	at, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := ClientConfig{Guard: NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}), CA: r.ca(), Proxy: at, lookup: hosts(t, map[string][]string{
		"example.com": {"1.1.1.1", "2606:4700::1111"}, "inside.example.com": {"10.0.0.7"}, "both.example.com": {"1.1.1.1", "10.0.0.7"},
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
	if got := strings.Join(p.requests(), ", "); got != "CONNECT example.com:443" {
		t.Errorf("the proxy was asked for %s", got)
	}
	// A receiver in a range of webhooks.allow is reached directly.
	if a := post(t, c, Endpoint{URL: r.URL, Secret: "whsec_0123456789"}); a.Err != nil || len(r.received()) != 2 || len(p.requests()) != 1 {
		t.Errorf("an own receiver: %+v, through the proxy: %v", a, p.requests())
	}
}

// TestProxyFails has a proxy that cannot be used, which is no fault of the receiver, and shows no
// merchant where it is.
func TestProxyFails(t *testing.T) {
	t.Parallel()
	lookup := hosts(t, map[string][]string{"example.com": {"1.1.1.1"}})
	for status, want := range map[int]struct {
		text  string
		fault Fault
	}{
		http.StatusProxyAuthRequired: {"the proxy of the service cannot be used", FaultShortage},
		http.StatusForbidden:         {"the proxy of the service answered 403 instead of connecting to this host", FaultTheirs},
		http.StatusBadGateway:        {"the proxy of the service answered 502 instead of connecting to this host", FaultTheirs},
		0:                            {"the proxy of the service cannot be used", FaultShortage}, // it does not listen
	} {
		p := newForwardProxy(t, "", status)
		if status == 0 {
			p.Close()
		}
		at, err := url.Parse(p.URL)
		if err != nil {
			t.Fatal(err)
		}
		a := post(t, ClientConfig{Guard: NewGuard(nil), Proxy: at, lookup: lookup}, Endpoint{URL: "https://example.com/", Secret: "whsec_0123456789"})
		if a.Err == nil || a.Err.Error() != "no answer: "+want.text || a.Fault != want.fault || strings.Contains(a.Err.Error(), at.Host) {
			t.Errorf("%d: %+v, want %v", status, a, want)
		}
	}
	missing := &url.URL{Scheme: "http", Host: "proxy.invalid:3128"}
	e := newEgress(NewGuard(nil), missing, net.Dialer{}, nil)
	e.dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "proxy.invalid", IsNotFound: true}
	}
	_, err := e.dialContext(t.Context(), "tcp", "proxy.invalid:3128")
	if got := withoutAddresses(&net.OpError{Op: "proxyconnect", Net: "tcp", Err: err}); !errors.Is(got, errProxy) || faultOf(err, false) != FaultShortage {
		t.Errorf("without the proxy's address: %v, %v", got, err)
	}
}
