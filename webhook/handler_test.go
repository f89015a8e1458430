package webhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

// serve sends body with the given signature headers to a handler of v. It returns the answer and the body that the next
// handler got, or nil if it was not called.
func serve(t *testing.T, v webhook.Verifier, body io.Reader, headers ...string) (*httptest.ResponseRecorder, []byte) {
	t.Helper()
	var got []byte
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("next reads the body: %v", err)
		}
		got = append([]byte{}, read...)
		w.WriteHeader(http.StatusNoContent)
	})
	r := httptest.NewRequest(http.MethodPost, "/hooks", body)
	name := v.Header
	if name == "" {
		name = "X-Service-Signature"
	}
	for _, header := range headers {
		r.Header.Add(name, header)
	}
	if v.Now == nil {
		v.Now = func() time.Time { return at }
	}
	w := httptest.NewRecorder()
	v.Handler(next).ServeHTTP(w, r)
	return w, got
}

// wantProblem checks that an answer is a problem with the given status and code.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	var problem struct {
		Type   string
		Title  string
		Status int
		Detail string
		Code   string
	}
	if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil {
		t.Fatalf("answer %q: %v", w.Body, err)
	}
	if w.Code != status || problem.Status != status || problem.Code != code {
		t.Errorf("answered %d %+v, want %d %s", w.Code, problem, status, code)
	}
	if problem.Type != "about:blank" || problem.Title != http.StatusText(status) || problem.Detail == "" {
		t.Errorf("not a whole problem: %+v", problem)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q", got)
	}
	if got := w.Header().Get("WWW-Authenticate"); (got != "") != (status == http.StatusUnauthorized) {
		t.Errorf("WWW-Authenticate %q with status %d", got, status)
	}
}

// Every vector has the same result through HTTP as through Verify.
func TestHandlerVectors(t *testing.T) {
	for _, v := range readVectors(t).Vectors {
		t.Run(v.Name, func(t *testing.T) {
			var headers []string
			if v.Header != nil {
				headers = []string{*v.Header}
			}
			verifier := webhook.Verifier{
				Secrets: []string{v.Secret},
				Now:     func() time.Time { return time.Unix(v.Now, 0) },
			}
			w, got := serve(t, verifier, bytes.NewReader(v.body()), headers...)
			if v.Want != "ok" {
				wantProblem(t, w, http.StatusUnauthorized, v.Want)
				if got != nil {
					t.Error("next was called")
				}
				return
			}
			if w.Code != http.StatusNoContent {
				t.Errorf("answered %d %s, want 204", w.Code, w.Body)
			}
			if got == nil || !bytes.Equal(got, v.body()) {
				t.Errorf("next got %q, want %q", got, v.body())
			}
		})
	}
}

func TestHandlerWithoutSecret(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	webhook.Handler("", http.NotFoundHandler())
}

func TestHandlerBodyLimit(t *testing.T) {
	v := webhook.Verifier{Secrets: []string{secret}}
	body := bytes.Repeat([]byte("x"), 1<<20)
	if w, got := serve(t, v, bytes.NewReader(body), webhook.Sign(secret, at, body)); w.Code != http.StatusNoContent ||
		!bytes.Equal(got, body) {
		t.Errorf("1 MiB: answered %d, next got %d bytes", w.Code, len(got))
	}
	body = append(body, 'x')
	w, got := serve(t, v, bytes.NewReader(body), webhook.Sign(secret, at, body))
	wantProblem(t, w, http.StatusRequestEntityTooLarge, "body_too_large")
	if got != nil {
		t.Error("next was called with a body over the limit")
	}
}

func TestHandlerRefusesHeaderBeforeBody(t *testing.T) {
	unread := iotest.ErrReader(errors.New("the body was read"))
	v := webhook.Verifier{Secrets: []string{secret}}
	for code, header := range map[string]string{
		"missing_header":   "",
		"malformed_header": "t=1",
		"stale_timestamp":  "t=1,v1=ab",
	} {
		w, _ := serve(t, v, unread, header)
		wantProblem(t, w, http.StatusUnauthorized, code)
	}
}

func TestHandlerTruncatedBody(t *testing.T) {
	body := io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF))
	w, got := serve(t, webhook.Verifier{Secrets: []string{secret}}, body, webhook.Sign(secret, at, []byte("{")))
	wantProblem(t, w, http.StatusBadRequest, "invalid_payload")
	if got != nil {
		t.Error("next was called with half a body")
	}
}

func TestHandlerTwoSignatures(t *testing.T) {
	header := webhook.Sign(secret, at, []byte("{}"))
	w, _ := serve(t, webhook.Verifier{Secrets: []string{secret}}, strings.NewReader("{}"), header, header)
	wantProblem(t, w, http.StatusUnauthorized, "malformed_header")
	// One signature in two lines is one list.
	pair := strings.Split(header, ",")
	w, _ = serve(t, webhook.Verifier{Secrets: []string{secret}}, strings.NewReader("{}"), pair...)
	if w.Code != http.StatusNoContent {
		t.Errorf("answered %d %s, want 204", w.Code, w.Body)
	}
}

func TestHandlerLookupAndHeader(t *testing.T) {
	v := webhook.Verifier{
		Secrets: []string{"unused"},
		Header:  webhook.HeaderProviderSignature,
		Lookup:  func(r *http.Request) ([]string, error) { return []string{"secret of " + r.URL.Path, "old"}, nil },
	}
	for key, want := range map[string]int{"secret of /hooks": 204, "old": 204, "unused": 401} {
		w, _ := serve(t, v, strings.NewReader("{}"), webhook.Sign(key, at, []byte("{}")))
		if w.Code != want {
			t.Errorf("signed with %q: answered %d, want %d", key, w.Code, want)
		}
	}
}

func TestHandlerLookupFails(t *testing.T) {
	var log bytes.Buffer
	// The error wraps one of ours, which must not turn a fault of the receiver into a refusal.
	fault := fmt.Errorf("vault is sealed: %w", webhook.ErrBadSignature)
	v := webhook.Verifier{
		Lookup: func(*http.Request) ([]string, error) { return nil, fault },
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	w, got := serve(t, v, strings.NewReader("{}"), webhook.Sign(secret, at, []byte("{}")))
	wantProblem(t, w, http.StatusInternalServerError, "internal")
	if got != nil {
		t.Error("next was called")
	}
	if strings.Contains(w.Body.String(), "vault") {
		t.Errorf("the response is %s", w.Body)
	}
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "vault is sealed") {
		t.Errorf("the log has %q", log.String())
	}
}

// The short form over a real connection, with the real clock.
func TestHandlerOverHTTP(t *testing.T) {
	event := webhook.Event{ID: "evt_1", Type: webhook.InvoicePaid, CreatedAt: 1, Data: json.RawMessage(`{"invoice":{}}`)}
	body := expect.Must(json.Marshal(event))
	server := httptest.NewServer(webhook.Handler(secret, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read, err := io.ReadAll(r.Body)
		expect.NoError(t, err)
		got, err := webhook.ParseEvent(read)
		expect.NoError(t, err)
		expect.NoDiff(t, cmp.Diff(event, got), "event")
		w.WriteHeader(http.StatusNoContent)
	})))
	defer server.Close()
	for key, want := range map[string]int{secret: http.StatusNoContent, "other": http.StatusUnauthorized} {
		// The reader has no known length, so the request is chunked.
		r := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, io.NopCloser(bytes.NewReader(body))))
		r.Header.Set(webhook.HeaderSignature, webhook.Sign(key, time.Now(), body))
		response, err := server.Client().Do(r)
		expect.OK(t, err)
		expect.NoError(t, response.Body.Close())
		if response.StatusCode != want {
			t.Errorf("signed with %q: answered %d, want %d", key, response.StatusCode, want)
		}
	}
}
