package config

import (
	"cmp"
	"crypto/x509"
	"net/mail"
	"net/netip"
)

// Modes of TLS with an SMTP server.
const (
	TLSStart    = "starttls" // STARTTLS; a server without it gets no mail
	TLSImplicit = "implicit" // from the first byte on
	TLSNone     = "none"     // for a server on this machine
)

// SMTP is the server that takes mails about invoices and sign-in links.
type SMTP struct {
	Host           string
	Port           int
	TLS            string         // a mode
	Roots          *x509.CertPool // to check its certificate with; nil: the system's
	User, Password string         // empty: no authentication
	From           mail.Address
}

type smtpFile struct {
	Host         string `yaml:"host"`
	Port         scalar `yaml:"port"`
	TLS          string `yaml:"tls"`
	CAFile       string `yaml:"caFile"`
	User         string `yaml:"user"`
	PasswordEnv  string `yaml:"passwordEnv"`
	PasswordFile string `yaml:"passwordFile"`
	From         string `yaml:"from"`
}

// smtp checks the settings of the SMTP server. It returns nil without settings.
func (r *resolver) smtp(f *smtpFile, publicURL string) *SMTP {
	if *f == (smtpFile{}) {
		return nil
	}
	f.TLS = cmp.Or(f.TLS, TLSStart)
	s := &SMTP{Host: f.Host, User: f.User, TLS: f.TLS}
	if f.Host == "" {
		r.fail("smtp.host", "want the name or address of the server")
	}
	if publicURL == "" {
		r.fail("smtp", "needs publicUrl, to which the mails link")
	}
	ports := map[string]scalar{TLSStart: "587", TLSImplicit: "465", TLSNone: "25"}
	port, ok := ports[f.TLS]
	switch {
	case !ok:
		r.fail("smtp.tls", "is %q; want starttls, implicit or none", f.TLS)
	case f.TLS == TLSNone && !IsLoopback(f.Host):
		r.fail("smtp.tls", "is none, which is for localhost alone; want starttls or implicit")
	}
	if f.Port = cmp.Or(f.Port, port); f.Port != "" {
		s.Port = int(r.number("smtp.port", f.Port, 1, 65535))
	}
	hasPassword := f.PasswordEnv != "" || f.PasswordFile != ""
	switch {
	case f.User != "":
		s.Password = r.secret("smtp.password", f.PasswordEnv, f.PasswordFile)
	case hasPassword:
		r.fail("smtp.user", "want the name that the password belongs to")
	}
	from, err := mail.ParseAddress(f.From)
	if err != nil {
		r.fail("smtp.from", "is %.80q; want an address such as Receipts <receipts@example.com>", f.From)
	} else {
		s.From = *from
	}
	s.Roots = r.roots("smtp.caFile", f.CAFile)
	return s
}

// IsLoopback reports whether a host is this machine: localhost, or a loopback address.
func IsLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// roots reads the certificates of a file in PEM. It returns nil without a file.
func (r *resolver) roots(path, file string) *x509.CertPool {
	raw := r.certificates(path, file)
	if raw == nil {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(raw)
	return pool
}

// certificates reads a file with certificates in PEM. It returns nil without a file, or if it
// cannot be used.
func (r *resolver) certificates(path, file string) []byte {
	if file == "" {
		return nil
	}
	file = r.path(file)
	raw, err := r.src.File(file)
	switch {
	case err != nil:
		r.fail(path, "%w", err)
		return nil
	case !x509.NewCertPool().AppendCertsFromPEM(raw):
		r.fail(path, "%s has no certificate in PEM", file)
		return nil
	}
	return raw
}
