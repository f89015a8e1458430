package webpage

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"
)

// File is a file that pages load. Its path contains a hash of its content, so that browsers
// may keep it without a limit.
type File struct {
	Path      string
	mediaType string
	body      Body
}

// Body is the body of a response, which is compressed for clients that accept that.
type Body struct {
	plain   []byte
	gzipped func() []byte // nil if it is no smaller
}

// NewBody returns a body that is sent many times. It is compressed at the first request for it.
func NewBody(plain []byte) Body {
	return Body{plain, sync.OnceValue(func() []byte { return compress(plain, newGzipWriter(gzip.BestCompression)) })}
}

// For returns the body for a request, and sets the headers of the response that depend on whether it is compressed.
func (b Body) For(w http.ResponseWriter, r *http.Request) (body []byte, compressed bool) {
	varies(w)
	if acceptsGzip(r) {
		if small := b.gzipped(); small != nil {
			w.Header().Set("Content-Encoding", "gzip")
			return small, true
		}
	}
	return b.plain, false
}

// mediaTypes are the media types of files by the ends of their names.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// NewFile returns the file with a name and a body, at a path in a folder: below it, in a folder named by the body's
// hash. It panics if the name has an unknown extension.
func NewFile(folder, name string, body []byte) File {
	sum, ext := sha256.Sum256(body), path.Ext(name)
	if mediaTypes[ext] == "" {
		panic("webpage: no media type of " + name)
	}
	return File{
		Path:      path.Join(folder, hex.EncodeToString(sum[:8]), name),
		mediaType: mediaTypes[ext], body: NewBody(body),
	}
}

// SetHeaders sets the headers of a response that is shown as a page, or loaded by one: it is not
// cached, not indexed and not framed, and loads only what the Content-Security-Policy allows.
func SetHeaders(w http.ResponseWriter, policy string) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Robots-Tag", "noindex")
	// With no-referrer, browsers would send forms with Origin: null.
	header.Set("Referrer-Policy", "same-origin")
}

// Forever is the Cache-Control of a file with a hash in its path.
const Forever = "public, max-age=31536000, immutable"

// Send answers with the file and a header Cache-Control. Errors come from the connection.
func (f File) Send(w http.ResponseWriter, r *http.Request, cacheControl string) error {
	w.Header().Set("Cache-Control", cacheControl)
	return send(w, r, http.StatusOK, f.mediaType, f.body)
}

// CopyHeader is a header of every response of an isolated copy of the service.
const CopyHeader = "X-Service-Copy"

// copyNotice is the beginning of pages of an isolated copy.
const copyNotice = `<p role="note" lang="en"><mark>This is an isolated copy of the service, for a test. Pay nothing here: what happens here is unknown to the live service.</mark></p>`

// SendHTML answers with a page. If the response has the CopyHeader, the page is marked as a copy.
// Errors come from the connection.
func SendHTML(w http.ResponseWriter, r *http.Request, status int, body []byte) error {
	if w.Header().Get(CopyHeader) != "" {
		if start, rest, ok := bytes.Cut(body, []byte("<body")); ok {
			tag, after, _ := bytes.Cut(rest, []byte(">"))
			body = slices.Concat(start, []byte("<body"), tag, []byte(">"+copyNotice), after)
		}
	}
	return send(w, r, status, "text/html; charset=utf-8", Body{body, func() []byte { return compressPage(body) }})
}

// SendData answers with a body that browsers do not show. Errors come from the connection.
func SendData(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) error {
	return send(w, r, status, mediaType, Body{body, func() []byte {
		if len(body) < MinCompressed {
			return nil
		}
		return compressPage(body)
	}})
}

func send(w http.ResponseWriter, r *http.Request, status int, mediaType string, body Body) error {
	content, _ := body.For(w, r)
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(status)
	if _, err := w.Write(content); err != nil {
		return fmt.Errorf("write response: %w", err)
	}
	return nil
}
