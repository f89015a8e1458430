package dev_test

import (
	"errors"
	"testing"

	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/web/dashboard"
)

// TestPlayer lists all scenarios for the dashboard, and refuses others.
func TestPlayer(t *testing.T) {
	t.Parallel()
	var player dashboard.Player = dev.Player{}
	all := player.Scenarios()
	for i, s := range dev.Scenarios {
		if len(all) != len(dev.Scenarios) || all[i].Name != s.Name || all[i].About != s.About {
			t.Fatalf("the scenarios are %+v", all)
		}
	}
	if _, err := player.Play(t.Context(), "nonsense"); !errors.Is(err, dashboard.ErrNoScenario) {
		t.Errorf("a scenario that does not exist: %v", err)
	}
}
