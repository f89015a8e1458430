package dev

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/web/dashboard"
)

// Player plays scenarios in a development world, for its dashboard.
type Player struct{ World Info }

// Scenarios implements dashboard.Player.
func (Player) Scenarios() []dashboard.Scenario {
	all := make([]dashboard.Scenario, len(Scenarios))
	for i, s := range Scenarios {
		all[i] = dashboard.Scenario{Name: s.Name, About: s.About}
	}
	return all
}

// Play implements dashboard.Player.
func (p Player) Play(ctx context.Context, name string) (played dashboard.Played, err error) {
	i := slices.IndexFunc(Scenarios, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return played, dashboard.ErrNoScenario
	}
	api, err := client.New(p.World.BaseURL, client.WithRetries(0))
	if err != nil {
		return played, err
	}
	var steps bytes.Buffer
	result, err := Play(ctx, TriggerConfig{World: p.World, API: api, Out: &steps}, Scenarios[i])
	played.InvoiceID, played.Steps = result.InvoiceID, strings.TrimSpace(steps.String())
	for _, e := range result.Events {
		played.Events = append(played.Events, dashboard.PlayedEvent{EventRecord: e.EventRecord, Redelivered: e.Redelivered})
	}
	return played, err
}
