package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/quittance/quittance/internal/guard"
	"github.com/quittance/quittance/internal/store"
)

// policy lets the page load what this service serves, and nothing else: no
// script or style in the page itself, no frame around it, no other host.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// serve returns the handler as net/http wants it: with the headers of every
// answer, no unsafe request of another origin, a deadline, and errors and panics turned into pages.
func (c *Checkout) serve(h guard.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Frame-Options", "DENY")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		header.Set("X-Robots-Tag", "noindex")
		// Not no-referrer: browsers would send the test payment's form without
		// the origin that it is judged by.
		header.Set("Referrer-Policy", "same-origin")
		if c.sameOrigin.Check(r) != nil {
			c.fail(w, r, errCrossOrigin)
			return
		}
		if err := guard.Run(h, w, r, RequestTimeout); err != nil {
			c.fail(w, r, err)
		}
	})
}

// refusal is an error whose text the customer sees.
type refusal struct {
	Status int
	Title  string
	Text   string
}

// Error returns the title.
func (e *refusal) Error() string { return e.Title }

var (
	errNotFound = &refusal{http.StatusNotFound, "There is no such invoice",
		"The link may be mistyped or cut off. Open it again from where you got it, or ask the merchant for a new one."}
	errCrossOrigin = &refusal{http.StatusForbidden, "This was not sent from the checkout page",
		"Open the invoice's own page and press the button there."}
	errTestWallet = &refusal{http.StatusBadGateway, "The test wallet could not pay",
		"Nothing was sent. Go back to the invoice and try again; the service's log says why it failed."}
	errBadForm = &refusal{http.StatusBadRequest, "This is not what the form sends",
		"Go back to the invoice and try again from there."}
	errTooOften = &refusal{http.StatusTooManyRequests, "Too many questions at once",
		"Wait a minute, and load this page again. A payment that you have sent is not lost."}
	errBusy = &refusal{http.StatusServiceUnavailable, "This takes longer than it should",
		"The service is busy. A payment that you have sent is not lost; load this page again in a moment."}
	errInternal = &refusal{http.StatusInternalServerError, "This page cannot be shown right now",
		"The fault is ours. A payment that you have sent is not lost; load this page again in a moment."}
)

func notFound(http.ResponseWriter, *http.Request) error { return errNotFound }

func methodNotAllowed(allow string) guard.Handler {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Allow", allow)
		return &refusal{http.StatusMethodNotAllowed, "This address does not work that way", "Open the invoice's page from its link."}
	}
}

// explain returns what the customer is told of an error. Of those that are
// nobody's fault but ours, that is nothing but the fact.
func explain(err error) *refusal {
	var known *refusal
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, store.ErrNotFound):
		return errNotFound
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), store.Unavailable(err):
		return errBusy
	}
	return errInternal
}

// fail answers with a page about the error, and logs it when the fault is
// ours.
func (c *Checkout) fail(w http.ResponseWriter, r *http.Request, err error) {
	told := explain(err)
	level := slog.LevelDebug
	if told.Status >= http.StatusInternalServerError && r.Context().Err() == nil { // else the caller has gone
		level = slog.LevelError
	}
	c.logger.Log(r.Context(), level, "checkout failed",
		"method", r.Method, "path", r.URL.Path, "status", told.Status, "error", err)
	if told.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	if err := c.render(w, r, told.Status, "message.html", told); err != nil {
		c.logger.ErrorContext(r.Context(), "error page not rendered", "error", err)
		http.Error(w, told.Title, told.Status)
	}
}

// render answers with a template, which is executed in full before anything
// is sent.
func (c *Checkout) render(w http.ResponseWriter, r *http.Request, status int, template string, data any) error {
	var body bytes.Buffer
	if err := templates.ExecuteTemplate(&body, template, data); err != nil {
		return fmt.Errorf("render %s: %w", template, err)
	}
	c.send(w, r, status, "text/html; charset=utf-8", body.Bytes())
	return nil
}

func (c *Checkout) send(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		c.logger.DebugContext(r.Context(), "answer not written", "error", err) // the caller has gone
	}
}
