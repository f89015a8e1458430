package api_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// TestIncompleteBody sends bodies that end with a connection error. The response names
// the problem, and does not contain the service's address.
func TestIncompleteBody(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	at := &net.TCPAddr{IP: net.IPv4(10, 9, 8, 7), Port: 8080}
	for want, err := range map[string]error{
		"it did not arrive in time": &net.OpError{Op: "read", Net: "tcp", Source: at, Addr: at, Err: os.ErrDeadlineExceeded},
		"it broke off":              &net.OpError{Op: "read", Net: "tcp", Source: at, Addr: at, Err: errors.New("connection reset by peer")},
		"or its transfer encoding":  errors.New("invalid byte in chunk length"),
	} {
		for path, code := range map[string]string{"/api/invoices": "invalid_json", "/api/webhooks/circle": "invalid_payload"} {
			r := newRequest("POST", path, "")
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"am`), iotest.ErrReader(err)))
			w := send(h, r)
			wantProblem(t, w, http.StatusBadRequest, code, "")
			if body := w.Body.String(); !strings.Contains(body, want) || strings.Contains(body, "10.9.8.7") {
				t.Errorf("%s: %s; want %q and no address", path, body, want)
			}
		}
	}
}

// TestDeclaredLength sends a Content-Length that is too large. It is rejected before the body is read.
func TestDeclaredLength(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	for _, path := range []string{"/api/invoices", "/api/webhooks/circle"} {
		r := newRequest("POST", path, "")
		r.ContentLength = 99_999_999_999
		r.Body = io.NopCloser(iotest.ErrReader(errors.New("the body was read")))
		w := send(h, r)
		wantProblem(t, w, http.StatusRequestEntityTooLarge, "body_too_large", "")
		if w.Header().Get("Connection") != "close" {
			t.Errorf("%s: the connection is kept, so its body is read all the same", path)
		}
	}
}
