package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/certs"
)

// TLS configures where the certificate of the service comes from.
type TLS struct {
	// CertificateFile and KeyFile are the paths of a certificate and its private key.
	CertificateFile, KeyFile string
	// ACME, if set, configures where to get a certificate instead. It needs Config.Keyring.
	ACME *ACME
}

// ACME describes an ACME server and the names to get certificates for.
type ACME struct {
	Hosts            []string
	Directory, Email string         // optional
	Roots            *x509.CertPool // that the server's own certificate is checked with; nil: the system's
}

// certificates provides the certificate of the service.
type certificates interface {
	// Certificate is the GetCertificate of a tls.Config.
	Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
	Status() certs.Status
	// Run keeps the certificate up to date until ctx ends.
	Run(ctx context.Context)
}

// openCertificates opens the source of the certificate if a listener needs it.
func (s *Server) openCertificates() (err error) {
	if !slices.ContainsFunc(s.cfg.Listeners, func(l *Listener) bool { return l.https }) {
		return nil
	}
	if s.cfg.TLS == nil {
		return errors.New("a door is served over HTTPS, but there is no certificate")
	}
	switch a := s.cfg.TLS.ACME; {
	case a == nil:
		s.certs, err = certs.OpenFiles(certs.FilesConfig{
			Certificate: s.cfg.TLS.CertificateFile, Key: s.cfg.TLS.KeyFile, Now: s.cfg.Now, Logger: s.cfg.Logger,
		})
	case s.cfg.Keyring == nil:
		err = errors.New("ACME needs a master key")
	default:
		s.certs = certs.NewACME(certs.ACMEConfig{
			Hosts: a.Hosts, Directory: a.Directory, Email: a.Email, Roots: a.Roots, Now: s.cfg.Now, Logger: s.cfg.Logger,
			Orders: clockedStore{s.store, s.clock}, Cache: &certs.Cache{Store: s.store, Keyring: s.cfg.Keyring, Now: s.cfg.Now, Logger: s.cfg.Logger},
		})
	}
	if err != nil {
		return err
	}
	s.registry.MustRegister(collector(s.collectCertificate))
	return nil
}

// tlsConfig returns the configuration of TLS. http.Server adds HTTP/2 to it.
func (s *Server) tlsConfig() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certs.Certificate}
	if s.cfg.TLS.ACME != nil {
		c.NextProtos = certs.ACMEProtocols
	}
	return c
}

// hsts is the value of Strict-Transport-Security (RFC 6797): a year, in seconds.
const hsts = "max-age=31536000"

// withHSTS returns a handler that adds Strict-Transport-Security to responses.
func withHSTS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", hsts)
		next.ServeHTTP(w, r)
	})
}

// isSecure reports whether browsers reach the pages of a listener over HTTPS.
func (s *Server) isSecure(l *Listener) bool {
	return l.https || strings.HasPrefix(s.cfg.PublicURL, "https://")
}

var (
	certificateExpiry = prometheus.NewDesc("quittance_tls_certificate_expiry_timestamp_seconds",
		"When the TLS certificate in use expires, as Unix time.", nil, nil)
	certificateProblem = prometheus.NewDesc("quittance_tls_certificate_problem",
		"1 while a newer TLS certificate cannot be used, or the one in use has expired.", nil, nil)
)

// collectCertificate collects the status of the certificate.
func (s *Server) collectCertificate(send sendValue) {
	status := s.certs.Status()
	send.state(certificateProblem, status.Problem != "")
	if !status.NotAfter.IsZero() {
		send.gauge(certificateExpiry, float64(status.NotAfter.Unix()))
	}
}
