package webpage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/limits"
)

// Handler answers a request, or returns an error before it writes a response.
type Handler func(w http.ResponseWriter, r *http.Request) error

// PageError is an error that is shown as a page.
type PageError struct {
	Status int
	Title  string // id of a text
	Text   string // id of a text, or empty
	Detail string // explanation in English, or empty
}

// Error returns the id of the title and the detail.
func (e *PageError) Error() string { return strings.TrimSuffix(e.Title+": "+e.Detail, ": ") }

// PageErrors are the pages of the errors that all pages have.
type PageErrors struct{ NotFound, MethodNotAllowed, TooOften, Busy, Internal *PageError }

// Pages answers requests with pages, and shows errors as pages. All fields except Refuse, Of and Exceeded are required.
type Pages struct {
	Policy string // the Content-Security-Policy
	Logger *slog.Logger
	Errors PageErrors
	// Refuse returns the page of a request that is refused before all else, or nil.
	Refuse func(r *http.Request) *PageError
	// Of returns the page of another error, or nil.
	Of func(err error) *PageError
	// Show answers with the page of an error.
	Show func(w http.ResponseWriter, r *http.Request, page *PageError) error
	// Exceeded is called for each request beyond a limit.
	Exceeded func(limit string)
}

// Serve returns an http.Handler that shows the errors of h as pages.
func (p *Pages) Serve(h Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		SetHeaders(w, p.Policy)
		if p.Refuse != nil {
			if page := p.Refuse(r); page != nil {
				p.WriteError(w, r, page)
				return
			}
		}
		if err := h(w, r); err != nil {
			p.WriteError(w, r, err)
		}
	})
}

// NotFound returns a handler that answers 404 with a page.
func (p *Pages) NotFound() http.Handler {
	return p.Serve(func(http.ResponseWriter, *http.Request) error { return p.Errors.NotFound })
}

// MethodNotAllowed returns a handler that answers 405 with a page, and with allow as the header Allow.
func (p *Pages) MethodNotAllowed(allow string) http.Handler {
	return p.Serve(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Allow", allow)
		return p.Errors.MethodNotAllowed
	})
}

// PageOf returns the page of an error. It hides the text of internal errors.
func (p *Pages) PageOf(err error) *PageError {
	var known *PageError
	if errors.As(err, &known) {
		return known
	}
	if p.Of != nil {
		if known = p.Of(err); known != nil {
			return known
		}
	}
	switch {
	case errors.As(err, new(*limits.ExceededError)):
		return p.Errors.TooOften
	case errors.Is(err, db.ErrNotFound):
		return p.Errors.NotFound
	case errors.Is(err, limits.ErrBusy), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), db.Unavailable(err):
		return p.Errors.Busy
	}
	return p.Errors.Internal
}

// WriteError answers with a page about err, and logs it as an error if its status is 500 or more.
func (p *Pages) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	SetHeaders(w, p.Policy)
	page := p.PageOf(err)
	level := slog.LevelDebug
	if page.Status >= http.StatusInternalServerError && !errors.Is(err, limits.ErrBusy) { // the metrics count those
		level = slog.LevelError
	}
	p.Logger.Log(r.Context(), level, "page failed",
		"method", r.Method, "path", loggedPath(r.URL.Path), "status", page.Status, "err", access.RedactError(err))
	switch exceeded := (*limits.ExceededError)(nil); {
	case errors.As(err, &exceeded):
		w.Header().Set("Retry-After", exceeded.RetryAfter)
		if p.Exceeded != nil {
			p.Exceeded(exceeded.Limit)
		}
	case page.Status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	if err := p.Show(w, r, page); err != nil {
		p.Logger.ErrorContext(r.Context(), "error page not rendered", "err", err)
		http.Error(w, http.StatusText(page.Status), page.Status)
	}
}

// loggedPath returns a path without secrets: keys, and tokens of the pages of refunds and mails.
func loggedPath(path string) string {
	for _, pages := range []string{"/refunds/", "/mails/"} {
		if strings.HasPrefix(path, pages) {
			return pages + "REDACTED"
		}
	}
	return access.Redact(path)
}

// Send answers with a page in the language of the request.
func (p *Pages) Send(w http.ResponseWriter, r *http.Request, status int, page []byte) {
	w.Header().Add("Vary", "Accept-Language")
	p.Sent(r, SendHTML(w, r, status, page))
}

// Write answers with a body that is not a page.
func (p *Pages) Write(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err := w.Write(body)
	p.Sent(r, err)
}

// WriteJSON answers a script.
func (p *Pages) WriteJSON(w http.ResponseWriter, r *http.Request, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	p.Write(w, r, status, "application/json", body)
	return nil
}

// SendFile answers with a file of pages that the path names. During an upgrade, pages of the other release name it with
// another hash. They get this release's file, which is then not cached.
func (p *Pages) SendFile(w http.ResponseWriter, r *http.Request, files map[string]File) error {
	f, ok := files[r.PathValue("file")]
	if !ok {
		return p.Errors.NotFound
	}
	cached := "no-cache"
	if f.Path == r.URL.Path {
		cached = Forever
	}
	p.Sent(r, f.Send(w, r, cached))
	return nil
}

// Sent logs the error of a response, which means that the client has disconnected.
func (p *Pages) Sent(r *http.Request, err error) {
	if err != nil {
		p.Logger.DebugContext(r.Context(), "write response", "err", err)
	}
}
