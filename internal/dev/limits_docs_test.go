package dev

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// TestLimitsAreDocumented compares the row of quittance dev in the table of limits with the constants.
func TestLimitsAreDocumented(t *testing.T) {
	text := expect.Must(os.ReadFile(testdeps.Repo("docs/operations.md")))
	const day = 24 * time.Hour
	want := fmt.Sprintf("| `quittance dev`: an advance of the clock, its sum; blocks held, sealed, replaced; an outage of JSON-RPC | %d s to %d d, %d years; %d s, %d, %d; %d s |",
		MinAdvance/time.Second, MaxAdvance/day, MaxAhead/(365*day), maxHold, maxMine, devchain.FinalityDepth, maxOutage)
	if !strings.Contains(string(text), want) {
		t.Errorf("docs/operations.md lacks %q", want)
	}
}
