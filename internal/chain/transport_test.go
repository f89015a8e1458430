package chain

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/quittance/quittance/internal/test/expect"
)

// TestResponseLimit reads answers around the limit, in large and small pieces.
func TestResponseLimit(t *testing.T) {
	const limit = 10
	for size, want := range map[int]error{0: nil, limit - 1: nil, limit: nil, limit + 1: ErrResponseTooLarge, 100 * limit: ErrResponseTooLarge} {
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("x", size)) //nolint:errcheck // the client may hang up
		}))
		client := http.Client{Transport: transport{&http.Transport{DisableKeepAlives: true}, limit}}
		for name, pieces := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytewise": iotest.OneByteReader,
		} {
			resp, err := client.Get(node.URL)
			expect.OK(t, err)
			read, err := io.ReadAll(pieces(resp.Body))
			if !errors.Is(err, want) || len(read) != min(size, limit) {
				t.Errorf("%d bytes, %s: read %d, %v; want %v", size, name, len(read), err, want)
			}
			expect.NoError(t, resp.Body.Close())
		}
		node.Close()
	}
}

func TestIsLocal(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "::1": true, "10.1.2.3": true, "192.168.0.7": true, "fd00::1": true,
		"": false, "8.8.8.8": false, "2001:db8::1": false, "node.example": false, "localhost.example": false,
	} {
		if got := isLocal(host); got != want {
			t.Errorf("isNear(%q) = %t", host, got)
		}
	}
}
