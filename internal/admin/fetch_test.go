package admin_test

import (
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/admin"
)

func TestCheckReady(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusOK:                 "",
		http.StatusServiceUnavailable: `is not ready: 503 {"ready":false,"database":"unreachable"}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.String() != "/readyz?exclude=chains" {
				t.Errorf("it asks %s %s", r.Method, r.URL)
			}
			w.WriteHeader(status)
			if _, err := io.WriteString(w, `{"ready":false,"database":"unreachable"}`+"\n"); err != nil {
				t.Error(err)
			}
		}))
		err := admin.CheckReady(t.Context(), admin.Service{URL: server.URL}, "chains")
		server.Close()
		if (err != nil) != (want != "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d: the error is %v, want %q", status, err, want)
		}
		if err := admin.CheckReady(t.Context(), admin.Service{URL: server.URL}, "chains"); !errors.Is(err, admin.ErrNoService) {
			t.Errorf("where nothing listens: %v", err)
		}
	}
}

// TestDialedService connects to where a service listens although its name leads elsewhere,
// and verifies the certificate for the name.
func TestDialedService(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.Host, ":9090") {
			t.Errorf("the host is %s", r.Host)
		}
		if r.URL.Path == "/status" {
			if _, err := io.WriteString(w, `{"chains":[]}`); err != nil {
				t.Error(err)
			}
		}
	}))
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	at := admin.Service{URL: "https://example.com:9090", Dial: server.Listener.Addr().String(), Roots: roots}
	if err := admin.CheckReady(t.Context(), at); err != nil {
		t.Error(err)
	}
	if _, err := admin.FetchStatus(t.Context(), at, ""); err != nil {
		t.Error(err)
	}
	other := at
	other.URL = "https://pay.test:9090"
	var name x509.HostnameError
	if err := admin.CheckReady(t.Context(), other); !errors.As(err, &name) || name.Host != "pay.test" {
		t.Errorf("with the certificate of another host: %v", err)
	}
	at.Dial, at.URL = "127.0.0.1:1", "https://me:s3cr3t@example.com:9090/s3cr3t?key=s3cr3t"
	if err := admin.CheckReady(t.Context(), at); !errors.Is(err, admin.ErrNoService) || !strings.Contains(err.Error(), "no answer at https://example.com:9090 on 127.0.0.1:1: ") || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("where nothing listens: %v", err)
	}
}
