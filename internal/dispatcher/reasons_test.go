package dispatcher_test

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/dispatcher"
	"github.com/quittance/quittance/internal/poster"
)

// TestReasons expects a distinct reason for each fault that puts deliveries back.
func TestReasons(t *testing.T) {
	t.Parallel()
	for fault, want := range map[poster.Fault]string{poster.FaultAddress: "local port", poster.FaultStopped: "did not run", poster.FaultShortage: "ran out of a resource"} {
		if got := dispatcher.Reasons[fault]; !strings.Contains(got, want) {
			t.Errorf("fault %d is logged as %q, want %q", fault, got, want)
		}
	}
}
