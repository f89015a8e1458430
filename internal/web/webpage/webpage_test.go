package webpage_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/webpage"
)

// TestSend sends a page and a file to browsers that take gzip and to others.
func TestSend(t *testing.T) {
	t.Parallel()
	long, short := bytes.Repeat([]byte("word "), 100), []byte("word")
	for accepted, gzipped := range map[string]bool{
		"": false, "br": false, "identity": false, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;Q=0": false, "gzip ; q = 0": false, "gzip;q=0;x=1": false, "gzip;x=1;q=0": false, "br;q=0, gzip;Q=0.001": true, "gzip": true, "br, gzip": true, "GZIP;q=0.5": true,
	} {
		for _, body := range [][]byte{long, short} {
			for name, send := range map[string]func(w http.ResponseWriter, r *http.Request) error{
				"page": func(w http.ResponseWriter, r *http.Request) error {
					return webpage.SendHTML(w, r, http.StatusOK, body)
				},
				"file": func(w http.ResponseWriter, r *http.Request) error {
					return webpage.NewFile("/f", "a.css", body).Send(w, r, webpage.Forever)
				},
			} {
				w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
				r.Header.Set("Accept-Encoding", accepted)
				expect.OK(t, send(w, r))
				want := ""
				if gzipped && len(body) == len(long) {
					want = "gzip"
				}
				if got := w.Header().Get("Content-Encoding"); got != want || w.Header().Get("Vary") != "Accept-Encoding" {
					t.Errorf("%s for %q: Content-Encoding %q, want %q; Vary %q", name, accepted, got, want, w.Header().Get("Vary"))
				}
				if got := read(t, w, want); got != string(body) {
					t.Errorf("%s for %q: %q", name, accepted, got)
				}
			}
		}
	}
}

func read(t *testing.T, w *httptest.ResponseRecorder, encoding string) string {
	t.Helper()
	var from io.Reader = w.Body
	if encoding == "gzip" {
		unpacked, err := gzip.NewReader(w.Body)
		expect.OK(t, err)
		from = unpacked
	}
	text, err := io.ReadAll(from)
	expect.OK(t, err)
	return string(text)
}

// TestPaths wants different paths for different contents.
func TestPaths(t *testing.T) {
	t.Parallel()
	a, b := webpage.NewFile("/f", "a.css", []byte("1")).Path, webpage.NewFile("/f", "a.css", []byte("2")).Path
	if a == b || !strings.HasPrefix(a, "/f/a.") || !strings.HasSuffix(a, ".css") {
		t.Errorf("the paths are %s and %s", a, b)
	}
}
