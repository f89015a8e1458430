package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

// policy allows the page to load only files of this service, and the icons that wallets bring
// along as data: URLs: no inline script except the reloader, no styles, no frames, no other host.
var policy = "default-src 'none'; script-src 'self' " + reloader.source + "; style-src 'none'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// allow replaces 'none' by sources in a directive of a response's policy.
func allow(header http.Header, directive, sources string) {
	const name = "Content-Security-Policy"
	header.Set(name, strings.Replace(header.Get(name), directive+" 'none'", directive+" "+sources, 1))
}

// handler answers a request, or returns an error before it writes a response.
type handler func(w http.ResponseWriter, r *http.Request) error

// serve returns an http.Handler that rejects unsafe requests of foreign origins, and
// writes the errors of h as pages.
func (c *Checkout) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w)
		if c.conf.Origins.Check(r) != nil {
			c.WriteError(w, r, errCrossOrigin)
			return
		}
		if err := h(w, r); err != nil {
			c.WriteError(w, r, err)
		}
	})
}

// setHeaders sets the headers of every response.
func setHeaders(w http.ResponseWriter) { webpage.SetHeaders(w, policy) }

// pageError is an error that is shown as a page.
type pageError struct {
	Status int
	Title  string // id of a text
	Text   string // id of a text
}

// Error returns the id of the title.
func (e *pageError) Error() string { return e.Title }

var (
	errNotFound         = &pageError{http.StatusNotFound, "error.noPage", "error.link"}
	errNoReceipt        = &pageError{http.StatusNotFound, "error.noReceipt.title", "error.noReceipt.text"}
	errLinkArchived     = &pageError{http.StatusGone, "error.archived.title", "error.archived.text"}
	errMethodNotAllowed = &pageError{http.StatusMethodNotAllowed, "error.form.title", "error.form.text"}
	errCrossOrigin      = &pageError{http.StatusForbidden, "error.form.title", "error.form.text"}
	errTestWallet       = &pageError{http.StatusBadGateway, "error.testWallet.title", "error.testWallet.text"}
	errBadForm          = &pageError{http.StatusBadRequest, "error.form.title", "error.form.text"}
	errTooOften         = &pageError{http.StatusTooManyRequests, "error.often.title", "error.again"}
	errBusy             = &pageError{http.StatusServiceUnavailable, "error.busy.title", "error.again"}
	errInternal         = &pageError{http.StatusInternalServerError, "error.internal.title", "error.again"}
)

// NotFound returns a handler that answers with the page of an unknown invoice.
func (c *Checkout) NotFound() http.Handler {
	return c.serve(func(http.ResponseWriter, *http.Request) error { return errNotFound })
}

// MethodNotAllowed returns a handler that answers 405 with a page, and with
// allow as the header Allow.
func (c *Checkout) MethodNotAllowed(allow string) http.Handler {
	return c.serve(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Allow", allow)
		return errMethodNotAllowed
	})
}

// pageFor returns the page of an error. It hides the text of internal errors.
func pageFor(err error) *pageError {
	var known *pageError
	var exceeded *limits.ExceededError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &exceeded):
		return errTooOften
	case errors.Is(err, limits.ErrBusy):
		return errBusy
	case errors.Is(err, db.ErrNotFound):
		return errNotFound
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), db.Unavailable(err):
		return errBusy
	}
	return errInternal
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

// WriteError answers with a page about err, and logs it as an error if its status is 500
// or more.
func (c *Checkout) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	setHeaders(w)
	page := pageFor(err)
	level := slog.LevelDebug
	if page.Status >= http.StatusInternalServerError && !errors.Is(err, limits.ErrBusy) { // the metrics count those
		level = slog.LevelError
	}
	c.conf.Logger.Log(r.Context(), level, "checkout failed",
		"method", r.Method, "path", loggedPath(r.URL.Path), "status", page.Status, "err", access.RedactError(err))
	switch exceeded := (*limits.ExceededError)(nil); {
	case errors.As(err, &exceeded):
		w.Header().Set("Retry-After", exceeded.RetryAfter)
		if slices.Contains(access.Quotas, exceeded.Limit) {
			c.conf.Refused(exceeded.Limit)
		}
	case page.Status == http.StatusTooManyRequests:
		w.Header().Set("Retry-After", strconv.Itoa(int(window/time.Second)))
	case page.Status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	if err := c.render(w, r, page.Status, "message.html", page); err != nil {
		c.conf.Logger.ErrorContext(r.Context(), "error page not rendered", "err", err)
		http.Error(w, locale.For(r).T(page.Title, nil), page.Status)
	}
}

// render answers with a template in the language of the request. It executes the template
// before it writes the response.
func (c *Checkout) render(w http.ResponseWriter, r *http.Request, status int, template string, data any) error {
	var body bytes.Buffer
	if err := templates()[locale.For(r)]().ExecuteTemplate(&body, template, data); err != nil {
		return fmt.Errorf("render %s: %w", template, err)
	}
	w.Header().Add("Vary", "Accept-Language")
	allow(w.Header(), "style-src", styleSources(data))
	if err := webpage.SendHTML(w, r, status, body.Bytes()); err != nil {
		c.conf.Logger.DebugContext(r.Context(), "checkout", "err", err) // the client has disconnected
	}
	return nil
}

func (c *Checkout) send(w http.ResponseWriter, r *http.Request, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if _, err := w.Write(body); err != nil { //nolint:gosec // templates escape what they write
		c.conf.Logger.DebugContext(r.Context(), "write response", "err", err) // the client has disconnected
	}
}

// parseForm parses the form of a request of MaxClaimForm bytes at most. The error is errBadForm.
func parseForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, MaxClaimForm)
	if r.ParseForm() != nil {
		return errBadForm
	}
	return nil
}
