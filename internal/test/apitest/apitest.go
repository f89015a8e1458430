// Package apitest checks responses and event bodies against openapi.yaml.
package apitest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/quittance/quittance"
)

// Check wraps h. t fails if a response of h to a path below /api/ violates the
// specification.
func Check(t testing.TB, h http.Handler) http.Handler {
	s := load(t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, r)
		answer := recorder.Result()
		body, err := decoded(answer, recorder.Body.Bytes())
		if err != nil {
			t.Errorf("%s %s: decompress the answer: %v", r.Method, r.URL, err)
		}
		s.report(t, r, answer, body)
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.StatusCode)
		if _, err := w.Write(recorder.Body.Bytes()); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
			t.Logf("%s %s: write the answer: %v", r.Method, r.URL, err)
		}
	})
}

// decoded returns a response's body without its compression.
func decoded(answer *http.Response, body []byte) ([]byte, error) {
	if answer.Header.Get("Content-Encoding") != "gzip" {
		return body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// Transport wraps base. t fails if a response to a path below /api/ violates the
// specification.
func Transport(t testing.TB, base http.RoundTripper) http.RoundTripper {
	return transport{t, load(t), base}
}

type transport struct {
	t    testing.TB
	spec *spec
	base http.RoundTripper
}

// RoundTrip sends the request and reads the whole response.
func (c transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	c.spec.report(c.t, r, answer, body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// Event returns an error if an event's body violates the specification of its type.
func Event(t testing.TB, body []byte) error {
	s := load(t)
	var event map[string]any
	if err := json.Unmarshal(body, &event); err != nil {
		return fmt.Errorf("the event is no JSON object: %w", err)
	}
	typ, _ := event["type"].(string)
	hook := s.doc.Webhooks[typ]
	if hook == nil {
		return fmt.Errorf("the specification has no event of type %q", typ)
	}
	return s.validate(hook.Post.RequestBody.Value.Content.Get("application/json").Schema, event)
}

// spec is openapi.yaml.
type spec struct {
	doc     *openapi3.T
	router  routers.Router
	schemas *schemas
}

var loadOnce = sync.OnceValues(func() (*spec, error) {
	doc, err := openapi3.NewLoader().LoadFromData(quittance.OpenAPI)
	if err != nil {
		return nil, err
	}
	doc.Servers = nil // each test has its own server
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	schemas, err := newSchemas(doc)
	return &spec{doc, router, schemas}, err
})

func load(t testing.TB) *spec {
	t.Helper()
	s, err := loadOnce()
	if err != nil {
		t.Fatalf("load openapi.yaml: %v", err)
	}
	return s
}

// report fails t if the response violates the specification.
func (s *spec) report(t testing.TB, r *http.Request, answer *http.Response, body []byte) {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		return
	}
	if err := s.check(r, answer, body); err != nil {
		t.Errorf("%s %s: the answer is not as openapi.yaml says: %v\n%d %v\n%s",
			r.Method, r.URL, err, answer.StatusCode, answer.Header, body)
	}
}

func (s *spec) check(r *http.Request, answer *http.Response, body []byte) error {
	asked := *r
	asked.URL = &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery} // without the host
	if asked.Method == http.MethodHead {
		body = nil
		if _, _, err := s.router.FindRoute(&asked); err != nil {
			asked.Method = http.MethodGet
		}
	}
	route, params, err := s.router.FindRoute(&asked)
	switch {
	case errors.Is(err, routers.ErrPathNotFound):
		return s.checkUnknown(answer, body, http.StatusNotFound, "not_found")
	case errors.Is(err, routers.ErrMethodNotAllowed):
		return s.checkUnknown(answer, body, http.StatusMethodNotAllowed, "method_not_allowed")
	case err != nil:
		return err
	}
	// The body is checked below, because openapi3filter compiles its schema at each call.
	options := &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: true}
	err = openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: &asked, PathParams: params, Route: route, Options: options},
		Status:                 answer.StatusCode,
		Header:                 answer.Header,
		Options:                options,
	})
	if err == nil {
		err = checkHeaders(route.Operation, answer)
	}
	if err == nil && r.Method != http.MethodHead {
		err = s.checkBody(route.Operation, answer, body)
	}
	if err == nil && answer.StatusCode >= http.StatusBadRequest && r.Method != http.MethodHead {
		err = consistent(body, answer.StatusCode)
	}
	return err
}

// general are the headers that openapi.yaml need not name at each response, because its introduction
// or HTTP defines when responses have them.
var general = []string{
	"Allow", "Cache-Control", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Preference-Applied", "Quittance-Ignored-Members", "Ratelimit", "Ratelimit-Policy",
	"Strict-Transport-Security", "Transfer-Encoding", "Vary", "Www-Authenticate", "X-Content-Type-Options", "X-Service-Copy",
}

// checkHeaders checks that the specification names the response's headers.
func checkHeaders(operation *openapi3.Operation, answer *http.Response) error {
	response := operation.Responses.Status(answer.StatusCode)
	if response == nil {
		return nil
	}
	for name := range answer.Header {
		name = http.CanonicalHeaderKey(name)
		documented := slices.ContainsFunc(slices.Collect(maps.Keys(response.Value.Headers)), func(d string) bool {
			return http.CanonicalHeaderKey(d) == name
		})
		if !documented && !slices.Contains(general, name) {
			return fmt.Errorf("the specification does not name the header %s of this response", name)
		}
	}
	return nil
}

// checkBody checks the response's media type, and the schema of a JSON body.
func (s *spec) checkBody(operation *openapi3.Operation, answer *http.Response, body []byte) error {
	response := operation.Responses.Status(answer.StatusCode)
	if response == nil {
		response = operation.Responses.Default()
	}
	if response == nil || len(response.Value.Content) == 0 {
		return nil
	}
	media := answer.Header.Get("Content-Type")
	content := response.Value.Content.Get(media)
	if content == nil {
		return fmt.Errorf("Content-Type is %q", media)
	}
	if content.Schema == nil || !strings.HasSuffix(media, "json") {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	return s.validate(content.Schema, value)
}

// validate checks a JSON value.
func (s *spec) validate(schema *openapi3.SchemaRef, value any) error {
	compiled, err := s.schemas.of(schema)
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}

// checkUnknown checks the response to a request that is not in the specification.
func (s *spec) checkUnknown(answer *http.Response, body []byte, status int, code string) error {
	if answer.StatusCode != status {
		return fmt.Errorf("the specification has no such operation: want %d", status)
	}
	if got := answer.Header.Get("Content-Type"); got != "application/problem+json" {
		return fmt.Errorf("Content-Type is %q", got)
	}
	if body == nil { // HEAD
		return nil
	}
	return s.problem(body, status, code)
}

// problem checks a problem's schema and the consistency of its members.
func (s *spec) problem(body []byte, status int, code string) error {
	var p map[string]any
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	if err := s.validate(s.doc.Components.Schemas["Problem"], p); err != nil {
		return err
	}
	if p["code"] != code {
		return fmt.Errorf("the problem's code is %v, want %s", p["code"], code)
	}
	return consistent(body, status)
}

// consistent checks that the members of a problem are consistent with each other and
// with the response's status.
func consistent(body []byte, status int) error {
	var p struct {
		Status int     `json:"status"`
		Code   string  `json:"code"`
		Field  *string `json:"field"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	if p.Status != status {
		return fmt.Errorf("the problem's status is %d, the answer's is %d", p.Status, status)
	}
	if (p.Field != nil) != (p.Code == "invalid_field") {
		return errors.New("a problem has a field if and only if its code is invalid_field")
	}
	return nil
}
