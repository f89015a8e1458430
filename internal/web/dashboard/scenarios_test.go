package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/web/dashboard"
)

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
