package dashboard

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/web/webpage"
)

// playTimeout bounds the play of a scenario.
const playTimeout = time.Minute

// Scenario is a course of events that a receiver must survive.
type Scenario struct{ Name, About string }

// Played is the result of a scenario.
type Played struct {
	InvoiceID string
	Steps     string // lines; also of a scenario that failed
	Events    []PlayedEvent
}

// PlayedEvent is an event of a scenario, in the order in which they came.
type PlayedEvent struct {
	apitypes.EventRecord
	Redelivered bool
}

// Player plays scenarios in a development world.
type Player interface {
	Scenarios() []Scenario
	// Play plays a scenario, or returns ErrNoScenario.
	Play(ctx context.Context, name string) (Played, error)
}

// ErrNoScenario is returned by a Player for a name that no scenario has.
var ErrNoScenario = errors.New("there is no such scenario")

// scenarioRoutes returns the routes of the scenario player. Only a development service has them.
func (d *Dashboard) scenarioRoutes() []webpage.Route {
	if d.cfg.Player == nil {
		return nil
	}
	return []webpage.Route{
		d.route("GET "+pathScenarios, "", d.scenarios, forOperator),
		d.route("POST "+pathScenarios, "", d.playScenario, forOperator, webpage.Long),
	}
}

// pathScenarios is the path of the scenario player.
const pathScenarios = "/dashboard/scenarios"

// scenarioView is the page of the scenario player.
type scenarioView struct {
	Scenarios []Scenario
	Name      string // name of the played one, or empty
	Error     string
	Steps     string
	InvoiceID string
	Events    []playedRow
}

// playedRow is an event of a scenario.
type playedRow struct {
	eventRow
	Redelivered bool
}

// scenarios lists the scenarios.
func (d *Dashboard) scenarios(w http.ResponseWriter, r *http.Request) error {
	return d.render(w, r, http.StatusOK, "scenarios.html", "nav.scenarios", scenarioView{Scenarios: d.cfg.Player.Scenarios()})
}

// playScenario plays a scenario, and shows its events. Only one is played at a time, because scenarios
// stop the chain and advance its clock.
func (d *Dashboard) playScenario(w http.ResponseWriter, r *http.Request) error {
	view := scenarioView{Scenarios: d.cfg.Player.Scenarios(), Name: r.PostFormValue("scenario")}
	if !d.playing.TryLock() {
		view.Error = visitOf(r).text.T("scenarios.busy", nil)
		return d.render(w, r, http.StatusConflict, "scenarios.html", "nav.scenarios", view)
	}
	defer d.playing.Unlock()
	if err := webpage.ClearDeadlines(w); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), playTimeout)
	defer cancel()
	played, err := d.cfg.Player.Play(ctx, view.Name)
	if errors.Is(err, ErrNoScenario) {
		return errNotFound
	}
	if err != nil {
		view.Error = err.Error()
	}
	if err := webpage.ExtendDeadlines(w); err != nil {
		return err
	}
	view.InvoiceID, view.Steps = played.InvoiceID, played.Steps
	view.Events = db.Each(played.Events, func(e PlayedEvent) playedRow { return playedRow{eventRowOf(e.EventRecord), e.Redelivered} })
	status := http.StatusOK
	if view.Error != "" {
		status = http.StatusConflict
	}
	return d.render(w, r, status, "scenarios.html", "nav.scenarios", view)
}
