package webpage

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/test/expect"
)

// TestSendDataIsBounded fills all places but one, and then all, for bodies of the smallest compressed
// size and of one byte less.
func TestSendDataIsBounded(t *testing.T) {
	for taken, want := range map[int]string{maxCompressing - 1: "gzip", maxCompressing: ""} {
		for range taken {
			compressing <- struct{}{}
		}
		for size, want := range map[int]string{MinCompressed: want, MinCompressed - 1: ""} {
			body := bytes.Repeat([]byte("1"), size)
			w := httptest.NewRecorder()
			expect.OK(t, SendData(w, request(t, "gzip"), http.StatusOK, "application/json", body))
			if got := w.Header().Get("Content-Encoding"); got != want || w.Header().Get("Vary") != "Accept-Encoding" {
				t.Errorf("%d bytes with %d others: Content-Encoding is %q, want %q; %v", size, taken, got, want, w.Header())
			}
		}
		for range taken {
			<-compressing
		}
	}
}

// TestStream compresses bodies that are written in parts.
func TestStream(t *testing.T) {
	for accepted, isLarge := range map[string]bool{"br": true, "gzip": false} {
		w := httptest.NewRecorder()
		s := NewStream(w, request(t, accepted), isLarge)
		if _, err := io.WriteString(s, "abc"); err != nil || s.Close() != nil || w.Body.String() != "abc" {
			t.Errorf("%s: %v, %q", accepted, err, w.Body)
		}
		if w.Header().Get("Content-Encoding") != "" || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %v", accepted, w.Header())
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SliceOf(rapid.ByteRange('a', 'c'))).Draw(t, "parts")
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		s := NewStream(w, r, true)
		for _, part := range parts {
			if n, err := s.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		expect.OK(t, s.Close())
		plain, err := gzip.NewReader(w.Body)
		expect.OK(t, err)
		plain.Multistream(false) // one member, because some clients read only one
		if text, err := io.ReadAll(plain); err != nil || !bytes.Equal(text, slices.Concat(parts...)) || w.Body.Len() != 0 {
			t.Errorf("%q, %v; %d bytes follow", text, err, w.Body.Len())
		}
	})
}

func request(t *testing.T, accepted string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", accepted)
	return r
}
