// Package certs provides the TLS certificate of the service: from files, which are read
// again when they change, or from an ACME server.
package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// pollInterval is how often files are read to check for changes.
const pollInterval = 10 * time.Second

// Status describes the certificate in use.
type Status struct {
	NotAfter time.Time // when it expires; zero before there is one
	// Problem is why a newer certificate is not in use, or that the one in use has expired. It is empty
	// without a problem.
	Problem string
}

// FilesConfig is the configuration of Files. All fields are required.
type FilesConfig struct {
	Certificate, Key string // paths of the files, in PEM
	Now              func() time.Time
	Logger           *slog.Logger
}

// Files provides a certificate from files. An unusable pair of files, for example because only one was
// replaced so far, does not replace the current certificate.
type Files struct {
	cfg FilesConfig

	mu      sync.Mutex
	read    [2][]byte // content of the files when they were last read
	current *tls.Certificate
	failed  string // why read is not in use, or empty
	problem string // as logged last
}

// OpenFiles reads the files. It returns an error if they are not usable, but accepts a certificate
// that has expired, so that work without a certificate continues.
func OpenFiles(cfg FilesConfig) (*Files, error) {
	f := &Files{cfg: cfg}
	pair, read, err := f.load()
	if err != nil {
		return nil, err
	}
	f.current, f.read = pair, read
	f.report()
	return f, nil
}

// load reads the files and returns the certificate and their content.
func (f *Files) load() (pair *tls.Certificate, read [2][]byte, err error) {
	for i, path := range []string{f.cfg.Certificate, f.cfg.Key} {
		if read[i], err = os.ReadFile(path); err != nil {
			return nil, read, err
		}
	}
	parsed, err := tls.X509KeyPair(read[0], read[1])
	if err != nil {
		return nil, read, fmt.Errorf("%s and %s: %w", f.cfg.Certificate, f.cfg.Key, err)
	}
	if parsed.Leaf == nil {
		if parsed.Leaf, err = x509.ParseCertificate(parsed.Certificate[0]); err != nil {
			return nil, read, err
		}
	}
	return &parsed, read, nil
}

// Reload reads the files again and uses them if they have changed and are usable. It
// logs a change, and a problem when it begins.
func (f *Files) Reload() {
	pair, read, err := f.load()
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := !bytes.Equal(read[0], f.read[0]) || !bytes.Equal(read[1], f.read[1])
	switch {
	case err != nil:
		f.failed = err.Error()
	case !changed && f.failed == "":
	case f.cfg.Now().After(pair.Leaf.NotAfter) && pair.Leaf.NotAfter.Before(f.current.Leaf.NotAfter):
		f.failed = fmt.Sprintf("%s expired at %s", f.cfg.Certificate, clock.Format(pair.Leaf.NotAfter, time.UTC, time.RFC3339))
	default:
		f.failed, f.current = "", pair
		if changed {
			f.cfg.Logger.Info("TLS certificate loaded", "names", pair.Leaf.DNSNames, "not_after", pair.Leaf.NotAfter.UTC())
		}
	}
	f.read = read
	f.report()
}

// report updates the problem, and logs it if it is new. The caller holds mu.
func (f *Files) report() {
	problem := f.failed
	if end := f.current.Leaf.NotAfter; problem == "" && f.cfg.Now().After(end) {
		problem = fmt.Sprintf("the certificate in use expired at %s", clock.Format(end, time.UTC, time.RFC3339))
	}
	if problem != "" && problem != f.problem {
		f.cfg.Logger.Error("TLS certificate not usable, the one in use stays", "err", problem, "in_use_not_after", f.current.Leaf.NotAfter.UTC())
	}
	f.problem = problem
}

// Run reads the files at an interval until ctx ends.
func (f *Files) Run(ctx context.Context) {
	for clock.Sleep(ctx, pollInterval, nil) {
		f.Reload()
	}
}

// Certificate returns the certificate in use. It is the GetCertificate of a
// tls.Config.
func (f *Files) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current, nil
}

// Status returns the status of the certificate.
func (f *Files) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Status{NotAfter: f.current.Leaf.NotAfter, Problem: f.problem}
}
