// Package alerttest checks which of the alerts of deploy/observability fire on metrics
// that the program exports. Only tests import it.
package alerttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// Promtool returns the path of promtool, and downloads it if it is missing.
func Promtool(t testing.TB) string {
	t.Helper()
	testdeps.Extra(t, "promtool")
	path, err := testdeps.Unpacked(t.Context(), "alerttest", "prometheus", "promtool")
	expect.OK(t, err)
	return path
}

// rules is the path of the alert rules from the folder of a package that uses this one.
var rules = testdeps.Repo("deploy/observability/alerts.yml")

// sample is a line of metrics in Prometheus' text format.
var sample = regexp.MustCompile(`(?m)^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([-+.0-9eE]+)$`)

// Fire checks that exactly the given alerts fire at some time in the first hour or so after a service begins to export
// the metrics, in Prometheus' text format. Counters rise from 0 in its sixth minute; all other values stay.
func Fire(t testing.TB, metrics string, alerts ...string) {
	t.Helper()
	var series, want strings.Builder
	for _, m := range sample.FindAllStringSubmatch(metrics, -1) {
		name, labels, value := m[1], m[2], m[3]
		if !strings.HasPrefix(name, "quittance_") {
			continue
		}
		if labels != "" {
			labels += ","
		}
		values := value + "x70"
		if strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_count") {
			values = "0x5 " + value + "x64"
		}
		fmt.Fprintf(&series, "  - {series: %s, values: %q}\n", quote(name+"{"+labels+`instance="a:8080",job="quittance"}`), values)
	}
	want.WriteString(" []")
	if slices.Sort(alerts); len(alerts) > 0 {
		want.Reset()
		for _, a := range alerts {
			fmt.Fprintf(&want, "\n      - {labels: '{alertname=%q}', value: 1}", a)
		}
	}
	const form = `rule_files: [%s]
evaluation_interval: 1m
tests:
- interval: 1m
  input_series:
%s  promql_expr_test:
  - expr: 'count by (alertname) (count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[70m])))'
    eval_time: 70m
    exp_samples:%s
`
	path := expect.Must(filepath.Abs(rules))
	file := filepath.Join(t.TempDir(), "test.yml")
	expect.OK(t, os.WriteFile(file, fmt.Appendf(nil, form, quote(path), &series, &want), 0o600))
	if out, err := exec.CommandContext(t.Context(), Promtool(t), "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// quote returns a text as a single-quoted YAML scalar.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
