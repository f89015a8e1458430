package config

import "crypto/tls"

// TLS says where the certificate of the service comes from.
type TLS struct {
	// CertificateFile and KeyFile are the paths of a certificate with its chain, and of
	// its private key, in PEM.
	CertificateFile, KeyFile string
}

type tlsFile struct {
	CertificateFile string `yaml:"certificateFile"`
	KeyFile         string `yaml:"keyFile"`
}

// tls checks the settings of TLS. It returns nil without any. The files are read here
// only to check them, because they are read again when they change.
func (r *resolver) tls(f tlsFile) *TLS {
	if f == (tlsFile{}) {
		return nil
	}
	t := &TLS{CertificateFile: f.CertificateFile, KeyFile: f.KeyFile}
	if f.CertificateFile == "" || f.KeyFile == "" {
		r.fail("tls", "want both certificateFile and keyFile")
		return t
	}
	certificate, err := r.src.File(f.CertificateFile)
	if err != nil {
		r.fail("tls.certificateFile", "%w", err)
		return t
	}
	key, err := r.src.File(f.KeyFile)
	if err != nil {
		r.fail("tls.keyFile", "%w", err)
		return t
	}
	r.checkMode("tls.keyFile", f.KeyFile)
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		r.fail("tls", "the certificate and the key are not usable: %w", err)
	}
	return t
}
