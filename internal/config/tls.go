package config

import (
	"crypto/tls"
	"crypto/x509"
	"net/mail"
)

// TLS configures where the certificate of the service comes from.
type TLS struct {
	// CertificateFile and KeyFile are the paths of a certificate with its chain, and of
	// its private key, in PEM.
	CertificateFile, KeyFile string
	// ACME, if set, configures where to get a certificate instead.
	ACME *ACME
}

// ACME describes an ACME server (RFC 8555) and the names to get certificates for.
type ACME struct {
	Hosts     []string
	Directory string // URL of its directory; empty: Let's Encrypt
	Email     string
	Roots     *x509.CertPool // to check its own certificate with; nil: the system's
}

type tlsFile struct {
	CertificateFile string   `yaml:"certificateFile"`
	KeyFile         string   `yaml:"keyFile"`
	ACME            acmeFile `yaml:"acme,omitzero"`
}

type acmeFile struct {
	Hosts     []string `yaml:"hosts"`
	Directory string   `yaml:"directory"`
	Email     string   `yaml:"email"`
	CAFile    string   `yaml:"caFile"`
}

// tls checks the settings of TLS. It returns nil without settings. It reads the files only to check
// them, because they are read again when they change.
func (r *resolver) tls(f tlsFile, hasMasterKey bool) *TLS {
	files := f.CertificateFile != "" || f.KeyFile != ""
	switch {
	case len(f.ACME.Hosts) > 0 && files:
		r.fail("tls", "want either certificateFile and keyFile, or acme")
		return &TLS{}
	case len(f.ACME.Hosts) > 0:
		if !hasMasterKey {
			r.fail("tls.acme", "needs a master key, which encrypts the private keys in the database; want masterKeyEnv or masterKeyFile")
		}
		return &TLS{ACME: r.acme(f.ACME)}
	case f.ACME.Directory != "" || f.ACME.Email != "" || f.ACME.CAFile != "":
		r.fail("tls.acme.hosts", "want at least one name")
		return &TLS{}
	case !files:
		return nil
	}
	t := &TLS{CertificateFile: r.path(f.CertificateFile), KeyFile: r.path(f.KeyFile)}
	if f.CertificateFile == "" || f.KeyFile == "" {
		r.fail("tls", "want both certificateFile and keyFile")
		return t
	}
	certificate, err := r.src.File(t.CertificateFile)
	if err != nil {
		r.fail("tls.certificateFile", "%w", err)
		return t
	}
	key, err := r.src.File(t.KeyFile)
	if err != nil {
		r.fail("tls.keyFile", "%w", err)
		return t
	}
	r.checkMode("tls.keyFile", t.KeyFile)
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		r.fail("tls", "the certificate and the key are not usable: %w", err)
	}
	return t
}

// acme checks the settings of ACME.
func (r *resolver) acme(f acmeFile) *ACME {
	a := &ACME{Hosts: r.hosts("tls.acme.hosts", f.Hosts), Directory: f.Directory, Email: f.Email}
	if f.Directory != "" {
		if err := checkURL(f.Directory, "https"); err != nil {
			r.fail("tls.acme.directory", "%w", err)
		}
	}
	if f.Email != "" {
		if at, err := mail.ParseAddress(f.Email); err != nil || at.Address != f.Email {
			r.fail("tls.acme.email", "is %.80q; want an address such as admin@example.com", f.Email)
		}
	}
	a.Roots = r.roots("tls.acme.caFile", f.CAFile)
	return a
}
