package api_test

import (
	"compress/gzip"
	"io"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
)

// TestCompression asks for large and small answers with and without compression.
func TestCompression(t *testing.T) {
	b, lists := newEventBackend(450), newListBackend(450)
	b.invoices, b.payments = lists.invoices, lists.payments
	h := newAPI(t, b)
	for _, test := range []struct {
		path, accept string
		compressed   bool
	}{
		{"/api/invoices", "", true},
		{"/api/invoices?limit=200", "", true},
		{"/api/events?limit=200", "", true}, // in several parts
		{"/api/invoices", "text/csv", true}, // in several parts
		{"/api/payments?merchantId=acme", "text/csv", true},
		{"/api/invoices?merchantId=nobody", "text/csv", false}, // only a header row
		{"/api/invoices?merchantId=nobody", "", false},
		{"/api/invoices?limit=0", "", false},
	} {
		plain := do(h, "GET", test.path, "", "Accept", test.accept)
		packed := do(h, "GET", test.path, "", "Accept", test.accept, "Accept-Encoding", "br, gzip")
		if got := packed.Header().Get("Content-Encoding") == "gzip"; got != test.compressed || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s as %q: answers %v, and %v without compression", test.path, test.accept, packed.Header(), plain.Header())
			continue
		}
		for _, w := range []*httptest.ResponseRecorder{plain, packed} {
			if !slices.Contains(w.Header()["Vary"], "Accept-Encoding") || w.Code != plain.Code {
				t.Errorf("%s as %q: %d %v", test.path, test.accept, w.Code, w.Header())
			}
		}
		length, want := packed.Body.Len(), plain.Body.String()
		if got := unpacked(t, packed); got != want {
			t.Errorf("%s as %q: %d bytes, want %d", test.path, test.accept, len(got), len(want))
		}
		if test.compressed && length*4 > len(want) {
			t.Errorf("%s as %q: %d bytes of %d", test.path, test.accept, length, len(want))
		}
	}
}

// unpacked returns the body of an answer without its compression.
func unpacked(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	if w.Header().Get("Content-Encoding") == "" {
		return w.Body.String()
	}
	plain, err := gzip.NewReader(w.Body)
	expect.OK(t, err)
	text, err := io.ReadAll(plain)
	expect.OK(t, err)
	return string(text)
}
