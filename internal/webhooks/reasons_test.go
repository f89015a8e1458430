package webhooks_test

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/webhooks"
)

// TestReasons expects a distinct reason for each fault that puts deliveries back.
func TestReasons(t *testing.T) {
	t.Parallel()
	for fault, want := range map[webhooks.Fault]string{webhooks.FaultAddress: "local port", webhooks.FaultStopped: "did not run", webhooks.FaultShortage: "ran out of a resource"} {
		if got := webhooks.Reasons[fault]; !strings.Contains(got, want) {
			t.Errorf("fault %d is logged as %q, want %q", fault, got, want)
		}
	}
}
