package certs

import (
	"bytes"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/certstest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
)

// opened is Files under test.
type opened struct {
	*Files
	t    *testing.T
	log  *logtest.Buffer
	now  time.Time
	cert string
	key  string
}

func open(t *testing.T, first certstest.Pair, now time.Time) *opened {
	t.Helper()
	dir := t.TempDir()
	o := &opened{t: t, log: new(logtest.Buffer), now: now, cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
	o.write(first)
	var err error
	o.Files, err = OpenFiles(FilesConfig{
		Certificate: o.cert, Key: o.key, Now: func() time.Time { return o.now }, Logger: slog.New(slog.NewTextHandler(o.log, nil)),
	})
	expect.OK(t, err)
	return o
}

func (o *opened) write(p certstest.Pair) {
	o.t.Helper()
	certstest.Write(o.t, o.cert, p.Certificate, o.key, p.Key)
}

// wants fails unless the certificate in use is p's, and the problem contains problem.
func (o *opened) wants(step string, p certstest.Pair, problem string) {
	o.t.Helper()
	block, _ := pem.Decode(p.Certificate)
	if c, err := o.Certificate(nil); err != nil || !bytes.Equal(c.Certificate[0], block.Bytes) {
		o.t.Errorf("%s: another certificate is in use, %v", step, err)
	}
	if got := o.Status().Problem; !strings.Contains(got, problem) || (got == "") != (problem == "") {
		o.t.Errorf("%s: the problem is %q; want %q", step, got, problem)
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	now := time.Now()
	first, second, third := certstest.New(t, now.Add(time.Hour)), certstest.New(t, now.Add(2*time.Hour)), certstest.New(t, now.Add(3*time.Hour))
	expired := certstest.New(t, now.Add(-time.Hour))
	f := open(t, first, now)
	f.wants("at first", first, "")
	f.Reload()
	f.wants("unchanged", first, "")

	f.write(certstest.Pair{Certificate: second.Certificate, Key: first.Key})
	f.Reload()
	f.Reload()
	f.wants("a certificate without its key", first, "private key does not match")
	if n := strings.Count(f.log.String(), "level=ERROR"); n != 1 {
		t.Errorf("a problem was logged %d times:\n%s", n, f.log)
	}
	f.write(second)
	f.Reload()
	f.wants("the key as well", second, "")
	if !strings.Contains(f.log.String(), `msg="TLS certificate loaded"`) {
		t.Errorf("the log lacks the change:\n%s", f.log)
	}

	f.write(expired)
	f.Reload()
	f.Reload()
	f.wants("an expired certificate", second, "expired at")
	f.write(certstest.Pair{Certificate: []byte("no PEM"), Key: third.Key})
	f.Reload()
	f.wants("no certificate", second, "failed to find any PEM data")
	expect.OK(t, os.Remove(f.key))
	f.Reload()
	f.wants("a missing key", second, "tls.key")
	f.write(third)
	f.Reload()
	f.wants("a new pair", third, "")
	f.write(second)
	f.Reload()
	f.wants("an older pair that is valid", second, "")
}

// TestExpiryInUse lets the certificate in use expire.
func TestExpiryInUse(t *testing.T) {
	t.Parallel()
	now := time.Now()
	first, second := certstest.New(t, now.Add(time.Hour)), certstest.New(t, now.Add(4*time.Hour))
	f := open(t, first, now)
	f.now = now.Add(2 * time.Hour)
	f.Reload()
	f.wants("after its end", first, "the certificate in use expired at")
	if !strings.Contains(f.log.String(), "level=ERROR") {
		t.Errorf("the log lacks it:\n%s", f.log)
	}
	f.write(second)
	f.Reload()
	f.wants("replaced", second, "")
	if got := f.Status().NotAfter; got.Unix() != now.Add(4*time.Hour).Unix() {
		t.Errorf("it expires at %s", got)
	}
	f = open(t, certstest.New(t, now.Add(-time.Hour)), now)
	if f.Status().Problem == "" || !strings.Contains(f.log.String(), "level=ERROR") {
		t.Error("an expired certificate was opened quietly")
	}
}

// TestSymlinkSwap replaces the files as Kubernetes does: by a link to another folder.
func TestSymlinkSwap(t *testing.T) {
	t.Parallel()
	now := time.Now()
	first, second := certstest.New(t, now.Add(time.Hour)), certstest.New(t, now.Add(2*time.Hour))
	dir := t.TempDir()
	for name, p := range map[string]certstest.Pair{"..1": first, "..2": second} {
		expect.OK(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		certstest.Write(t, filepath.Join(dir, name, "tls.crt"), p.Certificate, filepath.Join(dir, name, "tls.key"), p.Key)
	}
	link := func(target string) {
		t.Helper()
		next := filepath.Join(dir, "..data_tmp")
		expect.OK(t, os.Symlink(target, next))
		expect.OK(t, os.Rename(next, filepath.Join(dir, "..data")))
	}
	link("..1")
	f := &opened{t: t}
	var err error
	f.Files, err = OpenFiles(FilesConfig{
		Certificate: filepath.Join(dir, "..data", "tls.crt"), Key: filepath.Join(dir, "..data", "tls.key"),
		Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler),
	})
	expect.OK(t, err)
	link("..2")
	f.Reload()
	f.wants("swapped", second, "")
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	p, other := certstest.New(t, time.Now().Add(time.Hour)), certstest.New(t, time.Now().Add(time.Hour))
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c"), filepath.Join(dir, "k")
	cfg := FilesConfig{Certificate: cert, Key: key, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	if _, err := OpenFiles(cfg); err == nil {
		t.Error("missing files were opened")
	}
	certstest.Write(t, cert, p.Certificate, key, other.Key)
	if _, err := OpenFiles(cfg); err == nil {
		t.Error("a pair that does not fit was opened")
	}
}
