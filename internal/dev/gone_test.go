package dev

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/expect"
)

// gone answers that the log cannot be continued from a position.
func gone(reason, after string) func(http.ResponseWriter) error {
	return func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusGone)
		return json.NewEncoder(w).Encode(apitypes.Problem{
			Type: "https://x.example/", Title: "Gone", Status: http.StatusGone, Code: apitypes.CodeCursorGone, Detail: "They are too old.", Reason: reason, After: after,
		})
	}
}

// TestGone follows a service that is restored, and a service that removes events before they were read.
func TestGone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers []func(http.ResponseWriter) error
		asked   []string
	}{
		"streams": {[]func(http.ResponseWriter) error{
			streams(message("c1", record(1, nil))), gone("restored", "d0"), streams(message("d1", record(1, nil)), message("d2", record(2, nil))),
			gone("removed", "e"), streams(message("e3", record(3, nil))), problem(http.StatusForbidden, apitypes.CodeForbidden),
		}, []string{"start", "c1", "d0", "d2", "e", "e3"}},
		"pages": {old(
			page("c1", record(1, nil)), gone("restored", "d0"), page("d2", record(1, nil), record(2, nil)),
			gone("removed", "e"), page("e3", record(3, nil)), problem(http.StatusForbidden, apitypes.CodeForbidden),
		), []string{"start", "start", "c1", "d0", "d2", "e", "e3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, asked := answers(t, test.answers...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var out strings.Builder
			if err := Listen(ctx, ListenConfig{API: api, FromStart: true, Out: Printer{Out: &out, Notes: &out}, Now: time.Now}); err == nil {
				t.Error("it does not end with the error")
			}
			for _, want := range []string{"evt_" + key + "1", "evt_" + key + "2", "evt_" + key + "3", "Events are lost: They are too old."} {
				if n := strings.Count(out.String(), want); n != 1 {
					t.Errorf("it prints %q %d times:\n%s", want, n, &out)
				}
			}
			var got []string
			for range test.asked {
				got = append(got, <-asked)
			}
			expect.NoDiff(t, cmp.Diff(test.asked, got), "positions")
		})
	}
}
