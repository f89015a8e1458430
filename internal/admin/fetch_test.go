package admin_test

import (
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
		err := admin.CheckReady(t.Context(), server.URL, "chains")
		server.Close()
		if (err != nil) != (want != "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d: the error is %v, want %q", status, err, want)
		}
		if err := admin.CheckReady(t.Context(), server.URL, "chains"); !errors.Is(err, admin.ErrNoService) {
			t.Errorf("where nothing listens: %v", err)
		}
	}
}
