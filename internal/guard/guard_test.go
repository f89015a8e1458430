package guard_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/guard"
)

func run(ctx context.Context, h guard.Handler) error {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	return guard.Run(h, httptest.NewRecorder(), r, time.Minute)
}

func TestRun(t *testing.T) {
	refused := errors.New("refused")
	if err := run(t.Context(), func(http.ResponseWriter, *http.Request) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("an error became %v", err)
	}
	err := run(t.Context(), func(http.ResponseWriter, *http.Request) error { panic("boom") })
	if err == nil || !strings.Contains(err.Error(), "panic: boom") || !strings.Contains(err.Error(), "guard_test.go") {
		t.Errorf("a panic became %v, want what and where", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := run(ended, func(_ http.ResponseWriter, r *http.Request) error {
		if _, ok := r.Context().Deadline(); !ok {
			t.Error("there is no deadline")
		}
		return r.Context().Err()
	}); err != nil {
		t.Errorf("the caller closed its half of the connection: %v", err)
	}
}

// TestAbort leaves net/http's own way to cut an answer off to net/http.
func TestAbort(t *testing.T) {
	defer func() {
		if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // net/http compares the panic's value too
			t.Errorf("recovered %v", p)
		}
	}()
	err := run(t.Context(), func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) })
	t.Errorf("the panic became %v", err)
}
