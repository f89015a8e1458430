package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/quittance/quittance/apitypes"
)

// service is the REST interface, called in this process on behalf of the principal in the context. So
// the dashboard shows and changes only what the interface permits to that principal.
type service struct{ handler http.Handler }

// problem is an error response of the REST API, with a Detail for people.
type problem struct{ apitypes.Problem }

// Error returns the code and the detail.
func (p *problem) Error() string {
	return fmt.Sprintf("answered %d %s: %s", p.Status, p.Code, p.Detail)
}

// get returns the interface's answer to a GET for the page of a request. After the first error it asks nothing more and
// returns zero answers, and every other request to the interface fails: render and redirect return that error. So code
// that fills in a page need not check each answer.
func get[A any](d *Dashboard, r *http.Request, path string, query url.Values) (answer A) {
	if v := visitOf(r); v.err == nil {
		v.err = d.service.get(r.Context(), path, query, &answer)
	}
	return answer
}

// find is get for an object that may not exist.
func find[A any](d *Dashboard, r *http.Request, path string) (answer A, ok bool) {
	v := visitOf(r)
	if v.err != nil {
		return answer, false
	}
	answer = get[A](d, r, path, nil)
	if ok = v.err == nil; isNotFound(v.err) {
		v.err = nil
	}
	return answer, ok
}

// isNotFound reports whether the interface has not found an object.
func isNotFound(err error) bool {
	var p *problem
	return errors.As(err, &p) && p.Status == http.StatusNotFound
}

// get decodes the answer to a GET. Errors are *problem and internal errors. If a list does not
// continue from the cursor, it is read from the cursor in the answer.
func (s service) get(ctx context.Context, path string, query url.Values, answer any) error {
	err := s.call(ctx, http.MethodGet, path, query, "", nil, answer)
	var refused *problem
	if query.Has("cursor") && errors.As(err, &refused) && refused.Code == apitypes.CodeCursorGone {
		query.Set("cursor", refused.After)
		err = s.call(ctx, http.MethodGet, path, query, "", nil, answer)
	}
	return err
}

// send sends a body as JSON, and decodes the answer unless that is nil. Errors are *problem and internal errors.
func (s service) send(ctx context.Context, method, path string, body, answer any) error {
	return s.sendOnce(ctx, method, path, "", body, answer)
}

// sendOnce is send for a request that makes only one object if it is repeated with the same key.
func (s service) sendOnce(ctx context.Context, method, path, key string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the body of %s %s: %w", method, path, err)
	}
	return s.call(ctx, method, path, nil, key, text, answer)
}

func (s service) call(ctx context.Context, method, path string, query url.Values, key string, body []byte, answer any) error {
	if err := visitIn(ctx).err; err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body)) //nolint:gosec // a handler of this process answers it, so it is not sent
	if err != nil {
		return err
	}
	r.URL.RawQuery = query.Encode()
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := &recorder{header: make(http.Header), status: http.StatusOK}
	s.handler.ServeHTTP(w, r)
	switch {
	case w.status >= http.StatusMultipleChoices:
		return w.problem(ctx, method, path)
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(w.body.Bytes(), answer); err != nil {
		return fmt.Errorf("decode the answer to %s %s: %w", method, path, err)
	}
	return nil
}

// pass answers a request with the interface's answer to a GET, such as an export. If that is an error, it is not written.
// Errors are *problem and internal errors.
func (s service) pass(w http.ResponseWriter, r *http.Request, path string, query url.Values, header http.Header) error {
	inner := r.Clone(r.Context())
	inner.Method, inner.Body, inner.ContentLength = http.MethodGet, http.NoBody, 0
	inner.URL = &url.URL{Path: path, RawQuery: query.Encode()}
	inner.Header = header
	answer := &passing{ResponseWriter: w}
	s.handler.ServeHTTP(answer, inner)
	if answer.refused == nil {
		return nil
	}
	w.Header().Del("Content-Type")
	return answer.refused.problem(r.Context(), http.MethodGet, path)
}

// passing is a response that is written unless it is an error.
type passing struct {
	http.ResponseWriter
	refused *recorder // the error; nil without one
}

// Unwrap returns the response for http.ResponseController.
func (w *passing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *passing) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		w.refused = &recorder{status: status}
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *passing) Write(p []byte) (int, error) {
	if w.refused != nil {
		return w.refused.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// id returns the path of an object: a folder of the interface and an escaped id.
func id(folder, id string) string { return folder + "/" + url.PathEscape(id) }

// recorder is a response in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) { w.status = status }

// problem returns the error that the response is.
func (w *recorder) problem(ctx context.Context, method, path string) error {
	p := new(problem)
	if err := json.Unmarshal(w.body.Bytes(), &p.Problem); err != nil {
		return fmt.Errorf("%s %s was answered %d without a problem: %w", method, path, w.status, err)
	}
	p.Detail = visitIn(ctx).explain(p.Problem)
	return p
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }
