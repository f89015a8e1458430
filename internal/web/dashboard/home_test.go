package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/dashboard"
)

// TestHome shows the settled amounts, the waiting items, and how far the chain is read.
func TestHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.paid(member{})
	w.paid(member{})
	w.invoice("acme", member{})
	w.invoice("globex", member{})
	if page := w.person("acme", access.Read).get("/dashboard"); strings.Contains(page.words(), "Needs a decision") {
		t.Error("something needs a decision before anything happened")
	}
	w.payment("4700000")
	acme := w.person("acme", access.Read)
	acme.get("/dashboard").want(t, http.StatusOK, "Needs a decision", "No invoice 1", "Settled today", "9.80", "Yesterday: –", "USDC received by day", "1 invoice · house", "No event has failed.",
		"house Behind: ")
	w.person("globex", access.Read).get("/dashboard").want(t, http.StatusOK, "Settled today –", "1 invoice · house")
	w.operator.get("/dashboard").want(t, http.StatusOK, "9.80", "2 invoices · house")
	w.operator.get("/dashboard?merchantId=globex").want(t, http.StatusOK, "Settled today –", "1 invoice · house")
}

// TestHomeWithoutPayments leads a person who may not see payments to another page.
func TestHomeWithoutPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.person("acme", access.NewScopes(access.InvoicesRead)).get("/dashboard").want(t, http.StatusOK, "Invoices")
}

// TestHomeInTimezone adds up days in the merchant's time zone.
func TestHomeInTimezone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.api("POST", "/api/merchants", member{"id": "initech", "name": "Initech", "timezone": "Pacific/Kiritimati"}, nil)
	w.operator.get("/dashboard?merchantId=initech").want(t, http.StatusOK, "Time zone: Pacific/Kiritimati.")
	w.person("acme", access.Read).get("/dashboard").want(t, http.StatusOK, "Time zone: UTC.")
}

// TestForeignOrigin answers forms from a page of another origin with a page.
func TestForeignOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.person("acme", access.Admin)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/dashboard/sign-out", nil)
	expect.OK(t, err)
	r.Header.Set("Origin", "https://evil.example")
	resp, err := p.Do(r)
	expect.OK(t, err)
	text, err := io.ReadAll(resp.Body)
	expect.OK(t, errors.Join(err, resp.Body.Close()))
	if resp.StatusCode != http.StatusForbidden || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") || !strings.Contains(string(text), "Another website sent this") {
		t.Errorf("another origin's form is answered %d %s\n%s", resp.StatusCode, resp.Header.Get("Content-Type"), text)
	}
	p.get("/dashboard").want(t, http.StatusOK, "Sign out")
}

// TestLanguageOfSession keeps the language that a person chose, and begins with the browser's.
func TestLanguageOfSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.person("acme", access.Read)
	w.paid(member{})
	page := p.get("/dashboard/invoices").want(t, http.StatusOK, "Paid")
	p.submit(page, "/dashboard/language", url.Values{"language": {"de"}}).want(t, http.StatusOK, "Rechnungen", "Bezahlt")
	if page := p.get("/dashboard").want(t, http.StatusOK, "Heute eingegangen"); page.named("html")[0].attrs["lang"] != "de" {
		t.Errorf("the page is in %q", page.named("html")[0].attrs["lang"])
	}
}

// player is a player. Its first scenario waits until end is closed.
type player struct{ begun, end chan struct{} }

func (player) Scenarios() []dashboard.Scenario {
	return []dashboard.Scenario{{Name: "reorg", About: "a payment <b> is dropped"}, {Name: "broken", About: "it fails"}}
}

func (p player) Play(ctx context.Context, name string) (dashboard.Played, error) {
	switch name {
	case "broken":
		return dashboard.Played{Steps: "invoice created"}, errors.New("the chain has stopped")
	case "reorg":
		close(p.begun)
		select {
		case <-p.end:
		case <-ctx.Done():
		}
		event := json.RawMessage(`{"id":"evt_1","type":"invoice.paid","createdAt":1764000000}`)
		return dashboard.Played{InvoiceID: "inv_1", Steps: "paid <i>", Events: []dashboard.PlayedEvent{{EventRecord: apitypes.EventRecord{Event: event}, Redelivered: true}}}, nil
	}
	return dashboard.Played{}, dashboard.ErrNoScenario
}

// TestScenarios plays scenarios, one at a time, and only where there is a player.
func TestScenarios(t *testing.T) {
	t.Parallel()
	const path = "/dashboard/scenarios"
	p := player{make(chan struct{}), make(chan struct{})}
	w := newWorld(t, func(c *server.Config) { c.Player = p })
	op := w.operator
	if !slices.Contains(op.get("/dashboard/invoices").links(), path) {
		t.Error("there is no link to the scenarios")
	}
	page := op.get(path).want(t, 200, "reorg", "a payment <b> is dropped")
	played := make(chan answer)
	go func() { played <- op.submit(page, path, url.Values{"scenario": {"reorg"}}) }()
	<-p.begun
	w.person("", access.Admin).post(path, url.Values{"scenario": {"broken"}}).want(t, 409, "Another scenario is being played")
	close(p.end)
	(<-played).want(t, 200, "paid <i>", "invoice.paid", "sent again", "The invoice")
	op.post(path, url.Values{"scenario": {"broken"}}).want(t, 409, "the chain has stopped", "invoice created")
	op.post(path, url.Values{"scenario": {"nonsense"}}).want(t, 404)
	owner := w.person("acme", access.Admin)
	owner.get(path).want(t, 403)
	owner.post(path, url.Values{"scenario": {"broken"}}).want(t, 403)
	if slices.Contains(owner.get("/dashboard/invoices").links(), path) {
		t.Error("an owner has a link to the scenarios")
	}
}

// TestNoScenarios asks for scenarios at a service that is not a development service.
func TestNoScenarios(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.get("/dashboard/scenarios").want(t, 404)
	w.operator.post("/dashboard/scenarios", url.Values{"scenario": {"reorg"}}).want(t, 404)
}
