package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
)

const (
	// checkInterval is how often the certificates of an ACME server are checked.
	checkInterval = time.Hour
	// acmeTimeout bounds a request to the ACME server.
	acmeTimeout = 30 * time.Second
)

// ACMEProtocols are the protocols of a tls.Config with certificates from ACME. The last one is for the
// challenge tls-alpn-01.
var ACMEProtocols = []string{"h2", "http/1.1", acme.ALPNProto}

// Leases has the leases on orders. Times are on the replicas' common clock.
type Leases interface {
	AcquireWorkLease(ctx context.Context, l db.WorkLease, now, until time.Time) (bool, error)
	ReleaseWorkLease(ctx context.Context, l db.WorkLease) error
}

// ACMEConfig is the configuration of ACME. Directory, Email and Roots are optional.
type ACMEConfig struct {
	Hosts     []string       // names to get certificates for, at least one
	Directory string         // URL of the server's directory; empty: Let's Encrypt
	Email     string         // for the account
	Roots     *x509.CertPool // to check the server's own certificate with; nil: the system's
	Cache     autocert.Cache
	Orders    Leases
	Now       func() time.Time
	Logger    *slog.Logger
}

// ACME provides certificates from an ACME server (RFC 8555), and renews them before they expire.
type ACME struct {
	cfg     ACMEConfig
	manager autocert.Manager

	mu       sync.Mutex
	expiries map[string]time.Time // of the certificates in use, by host
	problems map[string]string    // by host
}

// NewACME returns a source of certificates for the hosts.
func NewACME(cfg ACMEConfig) *ACME {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.Roots}, DisableKeepAlives: true}
	return &ACME{cfg: cfg, expiries: make(map[string]time.Time), problems: make(map[string]string), manager: autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: newOrders(cfg), HostPolicy: autocert.HostWhitelist(cfg.Hosts...), Email: cfg.Email,
		Client: &acme.Client{DirectoryURL: cfg.Directory, HTTPClient: &http.Client{Transport: transport, Timeout: acmeTimeout}, UserAgent: "quittance"},
	}}
}

// Certificate returns the certificate of a client's host, or of the first host if the client names no
// host. It is the GetCertificate of a tls.Config.
func (a *ACME) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if hello.ServerName == "" {
		named := *hello
		named.ServerName = a.cfg.Hosts[0]
		hello = &named
	}
	pair, err := a.manager.GetCertificate(hello)
	if !errors.Is(err, errOrdered) && slices.Contains(a.cfg.Hosts, hello.ServerName) && !slices.Contains(hello.SupportedProtos, acme.ALPNProto) {
		a.record(hello.ServerName, pair, err)
	}
	return pair, err
}

// record updates the status of a host, and logs a problem when it begins.
func (a *ACME) record(host string, pair *tls.Certificate, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		delete(a.problems, host)
		if pair.Leaf != nil {
			a.expiries[host] = pair.Leaf.NotAfter
		}
		return
	}
	if a.problems[host] == "" {
		a.cfg.Logger.Error("no TLS certificate from the ACME server, will retry", "host", host, "err", err)
	}
	a.problems[host] = fmt.Sprintf("no certificate for %s: %v", host, err)
}

// Run requests missing certificates, immediately and then at an interval, until ctx ends. A request in
// progress then ends later.
func (a *ACME) Run(ctx context.Context) {
	for {
		for _, host := range a.cfg.Hosts {
			go func() { _, _ = a.request(ctx, host) }() // record has the error
		}
		if !clock.Sleep(ctx, checkInterval, nil) {
			return
		}
	}
}

// request requests a certificate, or waits until another replica has.
func (a *ACME) request(ctx context.Context, host string) (*tls.Certificate, error) {
	// The handshake's parameters choose a certificate with an ECDSA key.
	hello := &tls.ClientHelloInfo{ServerName: host, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}
	for {
		pair, err := a.Certificate(hello)
		if !errors.Is(err, errOrdered) || !clock.Sleep(ctx, orderPoll, nil) {
			return pair, err
		}
	}
}

// Status returns the status of the certificate that expires first, or of a host without one.
func (a *ACME) Status() (s Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for host, end := range a.expiries {
		if s.NotAfter.IsZero() || end.Before(s.NotAfter) {
			s.NotAfter = end
		}
		if a.cfg.Now().After(end) && s.Problem == "" {
			s.Problem = fmt.Sprintf("the certificate for %s expired at %s", host, clock.Format(end, time.UTC, time.RFC3339))
		}
	}
	for _, host := range a.cfg.Hosts {
		if problem := a.problems[host]; problem != "" {
			s.Problem = problem
		}
	}
	return s
}
