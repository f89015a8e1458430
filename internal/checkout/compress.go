package checkout

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"strings"
)

// compress returns the gzip of body at a level, or nil if it is no smaller.
func compress(body []byte, level int) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		panic(err) // the level is valid
	}
	_, err = w.Write(body)
	if err := errors.Join(err, w.Close()); err != nil || b.Len() >= len(body) {
		return nil
	}
	return b.Bytes()
}

// acceptsGzip reports whether the client takes gzip. A quality of zero refuses it.
func acceptsGzip(r *http.Request) bool {
	for listed := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, quality, _ := strings.Cut(strings.TrimSpace(listed), ";")
		value, given := strings.CutPrefix(strings.TrimSpace(quality), "q=")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") && (!given || strings.Trim(value, "0.") != "") {
			return true
		}
	}
	return false
}

// sendPage sends a page of HTML, compressed if the client takes that.
func (c *Checkout) sendPage(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	if acceptsGzip(r) {
		if small := compress(body, gzip.BestSpeed); small != nil {
			w.Header().Set("Content-Encoding", "gzip")
			body = small
		}
	}
	c.send(w, r, status, "text/html; charset=utf-8", body)
}
