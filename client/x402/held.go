package x402

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"strings"
)

// errTooLarge is the error of a write beyond the limit of a response.
var errTooLarge = errors.New("x402: the response exceeds Config.MaxResponse")

// heldResponse keeps the response of a handler until it is released. It implements
// http.ResponseWriter.
type heldResponse struct {
	header   http.Header
	status   int // 0 before WriteHeader
	body     bytes.Buffer
	limit    int // of the body, in bytes
	exceeded bool
}

// Header implements http.ResponseWriter.
func (h *heldResponse) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter. Informational statuses are dropped.
func (h *heldResponse) WriteHeader(status int) {
	if h.status == 0 && status >= http.StatusOK {
		h.status = status
	}
}

// Write implements http.ResponseWriter.
func (h *heldResponse) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	if h.body.Len()+len(p) > h.limit {
		h.exceeded = true
		return 0, errTooLarge
	}
	return h.body.Write(p)
}

// failed reports whether the response has a status of 400 or more.
func (h *heldResponse) failed() bool { return h.status >= http.StatusBadRequest }

// keepPrivate forbids shared caches to store the response, which others would get without a payment.
func (h *heldResponse) keepPrivate() {
	directives := strings.Join(h.header.Values("Cache-Control"), ",")
	for directive := range strings.SplitSeq(directives, ",") {
		if d := strings.ToLower(strings.TrimSpace(directive)); d == "private" || d == "no-store" {
			return
		}
	}
	h.header.Add("Cache-Control", "private")
}

// release sends the response.
func (h *heldResponse) release(w http.ResponseWriter) {
	maps.Copy(w.Header(), h.header)
	if h.status != 0 {
		w.WriteHeader(h.status)
	}
	_, _ = w.Write(h.body.Bytes()) // the client may have disconnected
}
