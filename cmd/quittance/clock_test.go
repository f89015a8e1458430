package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/dev"
)

// TestClock advances the clock of a world. A command about invoices uses the world's time.
func TestClock(t *testing.T) {
	t.Parallel()
	url := baseURL(t, startDev(t, "--data", t.TempDir(), "--block-time", "50ms"))
	quittance := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(t.Context(), environment{stdout: &out, stderr: &errs}, append([]string{args[0], args[1], "--url", url}, args[2:]...)); code != want {
			t.Errorf("%q: exit code %d, want %d\n%s%s", args, code, want, &out, &errs)
		}
		return out.String(), errs.String()
	}
	quittance(0, "clock", "advance", "1h")
	out, _ := quittance(0, "clock", "advance", "30d")
	if !strings.Contains(out, "721h0m0s ahead of real time") {
		t.Errorf("it printed %s", out)
	}
	out, _ = quittance(0, "clock", "show", "--json")
	var c dev.ClockInfo
	if err := json.Unmarshal([]byte(out), &c); err != nil || c.AheadSeconds != 721*3600 {
		t.Errorf("clock show --json printed %s: %v", out, err)
	}
	quittance(0, "trigger", "invoice.paid")
	for _, bad := range []string{"1", "0s", "31d", "1500ms", "-1h"} {
		if _, errs := quittance(2, "clock", "advance", "--", bad); !strings.Contains(errs, "1s to 30d") {
			t.Errorf("clock advance %s: %s", bad, errs)
		}
	}
}
