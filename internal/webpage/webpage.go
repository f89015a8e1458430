// Package webpage sends pages, the files that they load, and the data of the API, compressed
// where the client takes that.
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
	"strings"
	"sync"
)

// File is a file that pages load. Its path contains a hash of its content, so that browsers
// may keep it without a limit.
type File struct {
	Path      string
	mediaType string
	body      []byte
	gzipped   func() []byte // body, compressed when it is first asked for; nil if that is no smaller
}

// mediaTypes are the media types of files by the ends of their names.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// NewFile returns the file with a name and a body, at a path in a folder. It panics if the
// name has an unknown end.
func NewFile(folder, name string, body []byte) File {
	sum, ext := sha256.Sum256(body), path.Ext(name)
	if mediaTypes[ext] == "" {
		panic("webpage: no media type of " + name)
	}
	return File{
		Path:      path.Join(folder, strings.TrimSuffix(name, ext)+"."+hex.EncodeToString(sum[:8])+ext),
		mediaType: mediaTypes[ext], body: body,
		gzipped: sync.OnceValue(func() []byte { return compress(body, newGzipWriter(gzip.BestCompression)) }),
	}
}

// SetHeaders sets the headers of a response that is shown as a page, or loaded by one: it is
// not kept, not indexed and not framed, and loads what the Content-Security-Policy allows.
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

// Forever is the header Cache-Control of a file at its own path.
const Forever = "public, max-age=31536000, immutable"

// Send answers with the file and a header Cache-Control. Errors are of the connection.
func (f File) Send(w http.ResponseWriter, r *http.Request, cacheControl string) error {
	w.Header().Set("Cache-Control", cacheControl)
	return send(w, r, http.StatusOK, f.mediaType, f.body, f.gzipped)
}

// CopyHeader is a header of every response of an isolated copy of the service.
const CopyHeader = "X-Service-Copy"

// copyNotice is what pages of an isolated copy begin with.
const copyNotice = `<p role="note" lang="en"><mark>This is an isolated copy of the service, for a test. Pay nothing here: what happens here is unknown to the live service.</mark></p>`

// SendHTML answers with a page. If the response has the CopyHeader, the page says that it is a copy. Errors are of the
// connection.
func SendHTML(w http.ResponseWriter, r *http.Request, status int, body []byte) error {
	if w.Header().Get(CopyHeader) != "" {
		if start, rest, ok := bytes.Cut(body, []byte("<body")); ok {
			tag, after, _ := bytes.Cut(rest, []byte(">"))
			body = slices.Concat(start, []byte("<body"), tag, []byte(">"+copyNotice), after)
		}
	}
	return send(w, r, status, "text/html; charset=utf-8", body, func() []byte { return compressPage(body) })
}

// SendData answers with a body that is not for a browser to show. Errors are of the connection.
func SendData(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) error {
	return send(w, r, status, mediaType, body, func() []byte {
		if len(body) < MinCompressed {
			return nil
		}
		return compressPage(body)
	})
}

func send(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte, gzipped func() []byte) error {
	varies(w)
	header := w.Header()
	if acceptsGzip(r) {
		if small := gzipped(); small != nil {
			header.Set("Content-Encoding", "gzip")
			body = small
		}
	}
	header.Set("Content-Type", mediaType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("write response: %w", err)
	}
	return nil
}
