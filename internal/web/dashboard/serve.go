package dashboard

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"net/http"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

// policy allows pages to load only files of this service: no inline scripts or styles, no frames, no other host.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// handler answers a request, or returns an error before it writes a response.
type handler = webpage.Handler

// pageError is an error that is shown as a page.
type pageError = webpage.PageError

// newPages returns what answers the requests of a dashboard.
func newPages(d *Dashboard) *webpage.Pages {
	return &webpage.Pages{
		Policy: policy, Logger: d.cfg.Logger, Of: pageOf,
		Errors: webpage.PageErrors{
			NotFound: errNotFound, MethodNotAllowed: errMethodNotAllowed, TooOften: errTooOften, Busy: errBusy, Internal: errInternal,
		},
		Show: func(w http.ResponseWriter, r *http.Request, page *pageError) error {
			return d.write(w, r, page.Status, "message.html", page.Title, page)
		},
	}
}

// serve returns an http.Handler that writes the errors of h as pages. An action that people must approve leads to the page
// on which they do.
func (d *Dashboard) serve(h handler) http.Handler {
	return d.Serve(func(w http.ResponseWriter, r *http.Request) error {
		r = withVisit(r)
		if err := parseForm(w, r); err != nil {
			return err
		}
		err := d.cfg.Sessions.RequestApproval(r.Context(), h(w, r))
		if page := visitOf(r).approvalPage(err); page != "" {
			return lead(w, r, page)
		}
		return err
	})
}

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

// ForbiddenOrigin returns a handler that answers a request that a page of another origin made.
func (d *Dashboard) ForbiddenOrigin() http.Handler {
	return d.serve(func(http.ResponseWriter, *http.Request) error { return errOrigin })
}

// pages are the pages of errors of package access.
var pages = []struct {
	err  error
	page *pageError
}{
	{access.ErrMayNotApprove, errForbidden},
	{access.ErrUnconfirmed, errForbidden},
	{errSignedOut, errEnded},
	{access.ErrLink, errInvitation}, // others are shown in the form that signs in
	{access.ErrPasskey, errPasskey},
	{access.ErrTooManyPasskeys, errPasskey},
	{access.ErrApprovalEnded, &pageError{Status: http.StatusConflict, Title: "error.refused.title", Text: "approval.ended"}},
	{access.ErrTooManyApprovals, &pageError{Status: http.StatusForbidden, Title: "error.refused.title", Text: "approval.many"}},
	{access.ErrFilterName, &pageError{Status: http.StatusBadRequest, Title: "error.refused.title", Text: "filter.error.name"}},
	{access.ErrFilterQuery, &pageError{Status: http.StatusBadRequest, Title: "error.refused.title", Text: "filter.error.query"}},
	{access.ErrFilters, &pageError{Status: http.StatusConflict, Title: "error.refused.title", Text: "filter.error.many"}},
	{access.ErrUnproven, &pageError{Status: http.StatusConflict, Title: "invitation.title", Text: "invite.error.proof"}},
	{access.ErrMayNotReplace, &pageError{Status: http.StatusConflict, Title: "invitation.title", Text: "invite.error.replace"}},
	{access.ErrTooMany, &pageError{Status: http.StatusConflict, Title: "invitation.title", Text: "invite.error.many"}},
	{access.ErrTooManyMemberships, &pageError{Status: http.StatusConflict, Title: "invitation.title", Text: "invite.error.many"}},
}

// pageOf returns the page of an error that is not of every page, or nil.
func pageOf(err error) *pageError {
	if refused := (*problem)(nil); errors.As(err, &refused) {
		return pageOfProblem(refused)
	}
	for _, p := range pages {
		if errors.Is(err, p.err) {
			return p.page
		}
	}
	return nil
}

// pageOfProblem returns the page of an error of the interface.
func pageOfProblem(p *problem) *pageError {
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
	if v.err != nil {
		return v.err
	}
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
	d.Send(w, r, status, text.Bytes())
	return nil
}

// lead sends the browser to a page of the dashboard with GET.
func lead(w http.ResponseWriter, r *http.Request, page string) error {
	http.Redirect(w, r, page, http.StatusSeeOther) //nolint:gosec // a path of the dashboard, which Link or next made
	return nil
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
