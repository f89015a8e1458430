package api

import (
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/webpage"
)

// handler answers a request, or returns an error before it writes a response.
type handler func(w http.ResponseWriter, r *http.Request) error

// serve returns an http.Handler that writes the errors of h as problems.
func (a *API) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w)
		if err := h(w, r); err != nil {
			a.WriteError(w, r, err)
		}
	})
}

// noStore and noSniff are values of headers. They are shared, which costs less than Set.
var noStore, noSniff = []string{"no-store"}, []string{"nosniff"}

// setHeaders sets the headers of every response.
func setHeaders(w http.ResponseWriter) {
	h := w.Header()
	h["Cache-Control"], h["X-Content-Type-Options"] = noStore, noSniff
}

// WriteError answers with the problem of err, and logs it as an error if its status is 500 or more.
func (a *API) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	setHeaders(w)
	if a.conf.Approvals != nil {
		err = a.conf.Approvals.RequestApproval(r.Context(), err)
	}
	p := problemFor(err).document()
	if p.Code == apitypes.CodeInvalidField {
		p.Detail += ignoredMembers(w.Header())
	}
	p.RequestID = access.OriginFrom(r.Context()).RequestID
	a.conf.OnProblem(r.Context(), p)
	if p.Code == apitypes.CodeUnauthorized {
		w.Header().Set("WWW-Authenticate", challenge(err))
	}
	a.countBusy(err)
	level := slog.LevelDebug
	if p.Status >= http.StatusInternalServerError && !errors.Is(err, limits.ErrBusy) { // the metrics count those
		level = slog.LevelError
	}
	if a.conf.Logger.Enabled(r.Context(), level) {
		a.conf.Logger.Log(r.Context(), level, "request failed",
			"method", r.Method, "path", access.Redact(r.URL.Path), "status", p.Status, "code", p.Code, "err", access.RedactError(err))
	}
	if exceeded := (*limits.ExceededError)(nil); p.Code == apitypes.CodeRateLimited && errors.As(err, &exceeded) {
		w.Header().Set("Retry-After", exceeded.RetryAfter)
	}
	if p.Code == apitypes.CodeIdempotencyInProgress || p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	if err := write(w, r, p.Status, "application/problem+json", p); err != nil {
		a.conf.Logger.DebugContext(r.Context(), "write response", "err", err)
	}
}

// countBusy counts a request that was refused because the database is too busy, or because a merchant
// has stored too much.
func (a *API) countBusy(err error) {
	switch exceeded := (*limits.ExceededError)(nil); {
	case errors.As(err, &exceeded) && slices.Contains(access.Quotas, exceeded.Limit):
		a.conf.Refused(exceeded.Limit)
	case errors.Is(err, db.ErrBusy):
		a.conf.Refused("connections")
	case errors.Is(err, ledger.ErrCreatesWait):
		a.conf.Refused("creates")
	}
}

// writeJSON answers with a JSON body if err is nil. It returns err.
func (a *API) writeJSON(w http.ResponseWriter, r *http.Request, status int, body any, err error) error {
	if err != nil {
		return err
	}
	if err := write(w, r, status, "application/json", body); err != nil {
		a.conf.Logger.DebugContext(r.Context(), "write response", "err", err) // the client has disconnected
	}
	return nil
}

// created answers 201 with an object and its path if err is nil. It returns err.
func (a *API) created(w http.ResponseWriter, r *http.Request, once ledger.Once, path string, body any, err error) error {
	if err == nil {
		markReplay(w, once)
		w.Header().Set("Location", path)
	}
	return a.writeJSON(w, r, http.StatusCreated, body, err)
}

// noContent answers 204 if err is nil. It returns err.
func noContent(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// write writes a JSON response. The types of package apitypes always encode, so an error
// means that the connection is broken.
func write(w http.ResponseWriter, r *http.Request, status int, mediaType string, body any) error {
	text, err := apiconv.JSON(body)
	if err != nil {
		return err
	}
	return webpage.SendData(w, r, status, mediaType, text)
}

// Errors of a request body. They do not wrap the connection's error, which contains the service's address.
var (
	errBodyTooLarge = problemf(apitypes.CodeBodyTooLarge, "The body must be at most %d bytes.", MaxBody)
	errSlowBody     = errors.New("it did not arrive in time")
	errBrokenBody   = errors.New("it broke off, or its transfer encoding is wrong")
)

// readBody returns the request's body. It rejects a body of more than MaxBody bytes, without reading
// it if Content-Length is too large. Other errors mean that the body is incomplete.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return readUpTo(w, r, MaxBody, errBodyTooLarge)
}

// readUpTo is readBody for another limit, with the error of a larger body.
func readUpTo(w http.ResponseWriter, r *http.Request, most int64, tooLarge error) ([]byte, error) {
	if r.ContentLength > most {
		w.Header().Set("Connection", "close") // so that net/http does not read the rest
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errSlowBody
	}
	return nil, errBrokenBody
}

// wantJSON rejects a body that is not declared as JSON in UTF-8 without a content coding.
func wantJSON(r *http.Request) error {
	const want = "The body must be JSON, with Content-Type: application/json"
	values := r.Header.Values("Content-Type")
	declared := strings.Join(values, ", ")
	mediaType, params, err := mime.ParseMediaType(declared)
	if err != nil || len(values) != 1 || mediaType != "application/json" {
		return problemf(apitypes.CodeUnsupportedMediaType, "%s; Content-Type is %.80q.", want, declared)
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return problemf(apitypes.CodeUnsupportedMediaType, "%s, in UTF-8; the charset is %.80q.", want, charset)
	}
	if coding := strings.Join(r.Header.Values("Content-Encoding"), ", "); coding != "" && !strings.EqualFold(coding, "identity") {
		return problemf(apitypes.CodeUnsupportedMediaType, "%s, without Content-Encoding; it is %.80q.", want, coding)
	}
	return nil
}
