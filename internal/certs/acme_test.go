package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	pebbledb "github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
	"golang.org/x/crypto/acme/autocert"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
)

const host = "pay.example.com"

// pebble starts Let's Encrypt's test server. It checks names at 127.0.0.1 and tlsPort. It
// returns the directory's URL and the roots of the server's own certificate.
func pebble(t *testing.T, tlsPort int) (directory string, roots *x509.CertPool) {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "0")
	quiet, memory := log.New(io.Discard, "", 0), pebbledb.NewMemoryStore()
	authority := ca.New(quiet, memory, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "test", ValidityPeriod: 7776000}})
	validation := va.New(quiet, 0, tlsPort, true, nameServer(t), memory)
	front := wfe.New(quiet, memory, validation, authority, nil, true, false, 1, 1)
	server := httptest.NewTLSServer(front.Handler())
	t.Cleanup(server.Close)
	roots = x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server.URL + wfe.DirectoryPath, roots
}

// nameServer starts a DNS server that resolves every name to 127.0.0.1.
func nameServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	server := &dns.Server{Listener: listener, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		answer := new(dns.Msg).SetReply(r)
		for _, q := range r.Question {
			if q.Qtype == dns.TypeA {
				answer.Answer = append(answer.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(127, 0, 0, 1)})
			}
		}
		_ = w.WriteMsg(answer) // the client repeats its question
	})}
	started := make(chan struct{})
	server.NotifyStartedFunc = func() { close(started) }
	go func() { _ = server.ActivateAndServe() }() // it ends with Shutdown
	<-started
	t.Cleanup(func() { _ = server.Shutdown() })
	return listener.Addr().String()
}

// newCache returns a cache in a new database.
func newCache(t *testing.T) *Cache {
	t.Helper()
	s, err := db.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "quittance.db"))
	expect.OK(t, err)
	t.Cleanup(func() { expect.NoError(t, s.Close()) })
	return &Cache{Store: s, Keyring: newKeyring(t, 1), Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
}

func newKeyring(t *testing.T, seed byte) *access.Keyring {
	t.Helper()
	raw := make([]byte, access.KeySize)
	for i := range raw {
		raw[i] = byte(i*i) + seed
	}
	key := expect.Must(access.ParseMasterKey(hex.EncodeToString(raw)))
	return access.NewKeyring(key)
}

// TestACME gets a certificate from Pebble by tls-alpn-01. The challenge reaches a replica that shares
// its cache with the requesting one.
func TestACME(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	directory, roots := pebble(t, listener.Addr().(*net.TCPAddr).Port)
	cache := newCache(t)
	var log logtest.Buffer
	cfg := ACMEConfig{Hosts: []string{host}, Directory: directory, Roots: roots, Cache: cache, Orders: cache.Store, Now: time.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	first, second := NewACME(cfg), NewACME(cfg)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.NotFoundHandler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: second.Certificate, NextProtos: ACMEProtocols}}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})

	pairs := make([]*tls.Certificate, 4)
	var group sync.WaitGroup
	for i := range pairs { // replicas that start at the same time
		replica := NewACME(cfg)
		if i == 0 {
			replica = first
		}
		group.Go(func() {
			var err error
			if pairs[i], err = replica.request(t.Context(), host); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	pair := pairs[0]
	for _, other := range pairs {
		if !other.Leaf.Equal(pair.Leaf) {
			t.Error("two replicas ordered a certificate each")
		}
	}
	expect.NoError(t, pair.Leaf.VerifyHostname(host))
	if s := first.Status(); s.Problem != "" || !s.NotAfter.Equal(pair.Leaf.NotAfter) {
		t.Errorf("the status is %+v", s)
	}
	// The other replica serves the same certificate, also to a client that names no host.
	for _, name := range []string{host, ""} {
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{ServerName: name, InsecureSkipVerify: true})
		expect.OK(t, err)
		if got := conn.ConnectionState().PeerCertificates[0]; !got.Equal(pair.Leaf) {
			t.Errorf("for %q the other replica serves %s", name, got.Subject)
		}
		_ = conn.Close()
	}
	if _, err := first.Certificate(&tls.ClientHelloInfo{ServerName: "other.example.com"}); err == nil || first.Status().Problem != "" {
		t.Errorf("a foreign host: %v, %+v", err, first.Status())
	}
	e, err := findACMEEntry(t.Context(), cache.Store, host)
	if err != nil || strings.Contains(string(e.Sealed), "PRIVATE KEY") {
		t.Errorf("stored in the clear: %v", err)
	}
}

// TestACMEProblem requests a certificate from a server that is down.
func TestACMEProblem(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	var log logtest.Buffer
	cache := newCache(t)
	a := NewACME(ACMEConfig{Hosts: []string{host}, Directory: server.URL, Cache: cache, Orders: cache.Store, Now: time.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	hello := &tls.ClientHelloInfo{ServerName: host, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}
	for range 2 {
		if _, err := a.Certificate(hello); err == nil {
			t.Error("there is a certificate")
		}
	}
	if s := a.Status(); !strings.Contains(s.Problem, "no certificate for "+host) || strings.Count(log.String(), "level=ERROR") != 1 {
		t.Errorf("%+v, logged:\n%s", s, &log)
	}
}

// TestCache reads with another master key what was stored under the first.
func TestCache(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	ctx := context.Background()
	if _, err := c.Get(ctx, "a"); err != autocert.ErrCacheMiss { //nolint:errorlint // autocert compares it
		t.Error(err)
	}
	expect.OK(t, c.Put(ctx, "a", []byte("secret")))
	if got, err := c.Get(ctx, "a"); err != nil || string(got) != "secret" {
		t.Errorf("%q, %v", got, err)
	}
	other := *c
	other.Keyring = newKeyring(t, 2)
	if _, err := other.Get(ctx, "a"); err != autocert.ErrCacheMiss { //nolint:errorlint // autocert compares it
		t.Errorf("with another master key: %v", err)
	}
	expect.NoError(t, c.Delete(ctx, "a"))
	if _, err := c.Get(ctx, "a"); err != autocert.ErrCacheMiss { //nolint:errorlint // autocert compares it
		t.Error(err)
	}
}
