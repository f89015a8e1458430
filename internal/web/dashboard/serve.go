package dashboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

// policy allows pages to load only files of this service: no inline scripts or styles, no
// frames, no other host.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// handler answers a request, or returns an error before it writes a response.
type handler func(w http.ResponseWriter, r *http.Request) error

// serve returns an http.Handler that writes the errors of h as pages. An action that people must approve leads to the page
// on which they do.
func (d *Dashboard) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w)
		err := parseForm(w, r)
		if err == nil {
			err = d.cfg.Sessions.RequestApproval(r.Context(), h(w, r))
		}
		if page := visitOf(r).approvalPage(err); page != "" {
			seeOther(w, r, page)
		} else if err != nil {
			d.WriteError(w, r, err)
		}
	})
}

// setHeaders sets the headers of every response.
func setHeaders(w http.ResponseWriter) { webpage.SetHeaders(w, policy) }

// pageError is an error that is shown as a page.
type pageError struct {
	Status int
	Title  string // id of a text
	Text   string // id of a text, or empty
	Detail string // explanation by the interface, in English, or empty
}

// Error returns the id of the title and the detail.
func (e *pageError) Error() string { return e.Title + ": " + e.Detail }

var (
	errNotFound         = &pageError{Status: http.StatusNotFound, Title: "error.notFound.title", Text: "error.notFound.text"}
	errForbidden        = &pageError{Status: http.StatusForbidden, Title: "error.forbidden.title", Text: "error.forbidden.text"}
	errOrigin           = &pageError{Status: http.StatusForbidden, Title: "error.origin.title", Text: "error.origin.text"}
	errEnded            = &pageError{Status: http.StatusUnauthorized, Title: "error.ended.title", Text: "error.ended.text"}
	errMethodNotAllowed = &pageError{Status: http.StatusMethodNotAllowed, Title: "error.method.title"}
	errTooOften         = &pageError{Status: http.StatusTooManyRequests, Title: "error.often.title", Text: "error.busy.text"}
	errBusy             = &pageError{Status: http.StatusServiceUnavailable, Title: "error.busy.title", Text: "error.busy.text"}
	errSentTwice        = &pageError{Status: http.StatusConflict, Title: "error.twice.title", Text: "error.twice.text"}
	errInternal         = &pageError{Status: http.StatusInternalServerError, Title: "error.internal.title", Text: "error.internal.text"}
)

// NotFound returns a handler that answers 404 with a page.
func (d *Dashboard) NotFound() http.Handler {
	return d.serve(func(http.ResponseWriter, *http.Request) error { return errNotFound })
}

// ForbiddenOrigin returns a handler that answers a request that a page of another origin made.
func (d *Dashboard) ForbiddenOrigin() http.Handler {
	return d.serve(func(http.ResponseWriter, *http.Request) error { return errOrigin })
}

// MethodNotAllowed returns a handler that answers 405 with a page, and with allow as the
// header Allow.
func (d *Dashboard) MethodNotAllowed(allow string) http.Handler {
	return d.serve(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Allow", allow)
		return errMethodNotAllowed
	})
}

// pageFor returns the page of an error. It hides the text of internal errors.
func pageFor(err error) *pageError {
	var known *pageError
	var refused *problem
	var exceeded *limits.ExceededError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		return pageOf(refused)
	case errors.As(err, &exceeded):
		return errTooOften
	case errors.Is(err, access.ErrMayNotApprove), errors.Is(err, access.ErrUnconfirmed):
		return errForbidden
	case errors.Is(err, access.ErrApprovalEnded):
		return &pageError{Status: http.StatusConflict, Title: "error.refused.title", Text: "approval.ended"}
	case errors.Is(err, access.ErrTooManyApprovals):
		return &pageError{Status: http.StatusForbidden, Title: "error.refused.title", Text: "approval.many"}
	case errors.Is(err, errSignedOut):
		return errEnded
	case errors.Is(err, db.ErrNotFound):
		return errNotFound
	case errors.Is(err, limits.ErrBusy), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), db.Unavailable(err):
		return errBusy
	}
	return errInternal
}

// pageOf returns the page of an error of the interface.
func pageOf(p *problem) *pageError {
	switch p.Status {
	case http.StatusNotFound:
		return errNotFound
	case http.StatusForbidden:
		return &pageError{Status: p.Status, Title: errForbidden.Title, Text: errForbidden.Text, Detail: p.Detail}
	case http.StatusTooManyRequests:
		return errTooOften
	case http.StatusServiceUnavailable:
		return errBusy
	case http.StatusInternalServerError:
		return errInternal
	}
	return &pageError{Status: p.Status, Title: "error.refused.title", Detail: p.Detail}
}

// WriteError answers with a page about err, and logs it as an error if its status is 500 or
// more.
func (d *Dashboard) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	setHeaders(w)
	page := pageFor(err)
	level := slog.LevelDebug
	if page.Status >= http.StatusInternalServerError && !errors.Is(err, limits.ErrBusy) { // the metrics count those
		level = slog.LevelError
	}
	d.cfg.Logger.Log(r.Context(), level, "dashboard failed",
		"method", r.Method, "path", access.Redact(r.URL.Path), "status", page.Status, "err", access.RedactError(err))
	switch exceeded := (*limits.ExceededError)(nil); {
	case errors.As(err, &exceeded):
		w.Header().Set("Retry-After", exceeded.RetryAfter)
	case page.Status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	if err := d.write(w, r, page.Status, "message.html", page.Title, page); err != nil {
		d.cfg.Logger.ErrorContext(r.Context(), "error page not rendered", "err", err)
		http.Error(w, texts().English().T(page.Title, nil), page.Status)
	}
}

// page is the data of a page's template.
type page struct {
	*visit
	Title     string        // id of a text
	Body      any           // data of the page's own template
	Main      template.HTML // what it has shown
	Languages []*locale.Text
	Now       int64 // Unix seconds
}

// render answers with a page in the language of the visit. It executes the template of the file before
// it writes the response. title is the id of a text.
func (d *Dashboard) render(w http.ResponseWriter, r *http.Request, status int, file, title string, body any) error {
	v := visitOf(r)
	if v.Can(access.PaymentsRead) {
		if _, err := d.inboxCounts(r.Context(), v); err != nil { // a secret is shown only once
			d.cfg.Logger.WarnContext(r.Context(), "count inbox", "err", err)
		}
	}
	if v.merchant != "" && v.Can(access.EventsRead) {
		var err error
		if v.approvals, err = d.cfg.Sessions.OpenApprovals(r.Context(), v.principal, v.merchant); err != nil {
			d.cfg.Logger.WarnContext(r.Context(), "count approvals", "err", err)
		}
	}
	return d.write(w, r, status, file, title, body)
}

// write is render without counts in the navigation, unless the page has counted.
func (d *Dashboard) write(w http.ResponseWriter, r *http.Request, status int, file, title string, body any) error {
	v := visitOf(r)
	templates := templatesIn(v.text, v.Zone())
	data := page{visit: v, Title: title, Body: body, Languages: texts().Languages(), Now: d.cfg.Now().Unix()}
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, file, data); err != nil {
		return fmt.Errorf("render %s: %w", file, err)
	}
	data.Main = template.HTML(text.String()) //nolint:gosec // of a template, which has escaped it
	text.Reset()
	if err := templates.ExecuteTemplate(&text, "layout", data); err != nil {
		return fmt.Errorf("render layout of %s: %w", file, err)
	}
	w.Header().Add("Vary", "Accept-Language")
	if err := webpage.SendHTML(w, r, status, text.Bytes()); err != nil {
		d.cfg.Logger.DebugContext(r.Context(), "dashboard", "err", err) // the client has disconnected
	}
	return nil
}

// seeOther sends the browser to a page of the dashboard with GET.
func seeOther(w http.ResponseWriter, r *http.Request, page string) {
	http.Redirect(w, r, page, http.StatusSeeOther) //nolint:gosec // a path of the dashboard, which Link or next made
}

// file answers with a file that pages load.
func (d *Dashboard) file(f webpage.File) http.Handler {
	return d.serve(func(w http.ResponseWriter, r *http.Request) error {
		if err := f.Send(w, r, webpage.Forever); err != nil {
			d.cfg.Logger.DebugContext(r.Context(), "dashboard", "err", err) // the client has disconnected
		}
		return nil
	})
}

// detail returns the interface's explanation of why it refused a form's request, to be shown next to
// the form, and nil; or "" and the error if it is of another kind.
func detail(err error) (string, error) {
	var p *problem
	if errors.As(err, &p) {
		switch p.Status {
		case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
			return p.Detail, nil
		}
	}
	return "", err
}
