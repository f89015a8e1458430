package dev_test

import (
	"testing"

	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/expect"
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
	expect.Error(t, dashboard.ErrNoScenario, "a scenario that does not exist")(player.Play(t.Context(), "nonsense"))
}
