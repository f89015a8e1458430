// Package observability_test checks the alerts, the dashboard and the scrape configuration for
// Prometheus and Grafana, with promtool and against the exported metrics.
package observability_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/quittance/quittance/internal/test/alerttest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

// rules returns the alert rules.
func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	expect.OK(t, yaml.UnmarshalWithOptions([]byte(read(t, "alerts.yml")), &file, yaml.DisallowUnknownField()))
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// read returns a file's text.
func read(t *testing.T, path string) string {
	t.Helper()
	text := expect.Must(os.ReadFile(path))
	return string(text)
}

// promtool runs promtool.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), alerttest.Promtool(t), args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestExtraPromtool checks the files by promtool, and runs the unit tests of the alerts.
func TestExtraPromtool(t *testing.T) {
	promtool(t, "check", "rules", "alerts.yml")
	promtool(t, "check", "config", "prometheus.yml")
	promtool(t, "test", "rules", "alerts_test.yml")
}

// TestEachAlertIsTested wants a unit test in which each alert fires, and its metrics in the test in
// which no alert fires.
func TestEachAlertIsTested(t *testing.T) {
	tests := read(t, "alerts_test.yml")
	healthy, _, _ := strings.Cut(tests, "promql_expr_test:")
	for _, r := range rules(t) {
		if !strings.Contains(tests, fmt.Sprintf("- {labels: '{alertname=%q}', value: 1}", r.Alert)) {
			t.Errorf("no unit test has %s fire: add a case to deploy/observability/alerts_test.yml with input_series that make it fire, and its name in exp_samples", r.Alert)
		}
		for _, metric := range regexp.MustCompile(`\bquittance_\w+`).FindAllString(r.Expr, -1) {
			if !strings.Contains(healthy, "'"+metric+"{") {
				t.Errorf("%s is not tested with a healthy %s: add a series of it to the first case of deploy/observability/alerts_test.yml, in which nothing fires", r.Alert, metric)
			}
		}
	}
}

// TestRunbooks wants a section of docs/runbooks.md for each alert, in the same order, and
// in each alert its URL, a severity and a summary.
func TestRunbooks(t *testing.T) {
	const url = "https://github.com/quittance/quittance/blob/main/docs/runbooks.md#"
	var alerts []string
	for _, r := range rules(t) {
		alerts = append(alerts, r.Alert)
		if got, want := r.Annotations["runbook_url"], url+strings.ToLower(r.Alert); got != want {
			t.Errorf("%s has the runbook %s, want %s", r.Alert, got, want)
		}
		if severity := r.Labels["severity"]; !slices.Contains([]string{"page", "ticket", "info"}, severity) {
			t.Errorf("%s has the severity %q", r.Alert, severity)
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", r.Alert)
		}
	}
	text := read(t, testdeps.Repo("docs/runbooks.md"))
	var sections []string
	for _, heading := range regexp.MustCompile(`(?m)^### (Quittance\w+)$`).FindAllStringSubmatch(text, -1) {
		sections = append(sections, heading[1])
	}
	if diff := cmp.Diff(alerts, sections); diff != "" {
		t.Errorf("alerts (-) and sections of docs/runbooks.md (+):\n%s", diff)
	}
}

// dashboard is the part of a Grafana dashboard that is checked.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Query any    `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID         int    `json:"id"`
	Type       string `json:"type"`
	Title      string `json:"title"`
	GridPos    struct{ X, Y, W, H int }
	Datasource *struct{ Type, UID string } `json:"datasource"`
	Targets    []struct {
		Expr  string `json:"expr"`
		RefID string `json:"refId"`
	} `json:"targets"`
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	expect.OK(t, json.Unmarshal([]byte(read(t, "dashboard.json")), &d))
	return d
}

// expressions returns the dashboard's expressions by panel, with its variables replaced.
func expressions(t *testing.T, d dashboard) map[string]string {
	t.Helper()
	all := make(map[string]string)
	variables := strings.NewReplacer("$__rate_interval", "5m", "$chain", ".+", "$instance", ".+")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			expr := variables.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%s: %s has an unknown variable", p.Title, target.Expr)
			}
			all[p.Title+" "+target.RefID] = expr
		}
	}
	return all
}

// TestDashboard checks the dashboard's structure.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" || len(d.Panels) < 20 {
		t.Errorf("dashboard %q, %q has %d panels", d.UID, d.Title, len(d.Panels))
	}
	ids := make(map[int]bool)
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d, %q, at %+v", p.ID, p.Title, p.GridPos)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Datasource == nil || p.Datasource.UID != "${datasource}" {
			t.Errorf("%s has %d targets and the datasource %v", p.Title, len(p.Targets), p.Datasource)
		}
	}
}

// TestExtraDashboardParses parses the dashboard's expressions with promtool, as rules.
func TestExtraDashboardParses(t *testing.T) {
	type record struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	exprs, records := expressions(t, readDashboard(t)), []record(nil)
	for i, title := range slices.Sorted(maps.Keys(exprs)) {
		records = append(records, record{fmt.Sprintf("panel:%d", i), exprs[title]})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []map[string]any{{"name": "dashboard", "rules": records}}})
	expect.OK(t, err)
	file := filepath.Join(t.TempDir(), "rules.yml")
	expect.OK(t, os.WriteFile(file, text, 0o600))
	promtool(t, "check", "rules", file)
}

// TestMetricsExist compares the metrics and labels that the alerts and the dashboard name with the
// exported ones: the metrics of docs/operations.md, which another test compares with the code, and the
// metrics of the Go runtime and the process.
func TestMetricsExist(t *testing.T) {
	exported := exportedMetrics(t)
	exprs := expressions(t, readDashboard(t))
	for _, r := range rules(t) {
		exprs[r.Alert] = r.Expr
	}
	for title, expr := range exprs {
		for _, complaint := range unknownNames(expr, exported) {
			t.Errorf("%s: %s in %s", title, complaint, expr)
		}
	}
	for expr, want := range map[string]string{ // the check itself
		"quittance_chain_bloc":                         "quittance_chain_bloc is not exported",
		`quittance_ready{chain="x"}`:                   "quittance_ready has no label chain",
		`sum by (chains) (quittance_chain_halted)`:     "chains is no label",
		`rate(quittance_events_total{type="a"}[5m])`:   "",
		`up{job="quittance"} == 0 and quittance_ready`: "",
	} {
		if got := strings.Join(unknownNames(expr, exported), "; "); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// exportedMetrics returns the labels of each exported series.
func exportedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	exported := map[string][]string{"up": nil}
	row := regexp.MustCompile("(?m)^\\| `(quittance_[a-z_]+)` \\| ([a-z, ]*?) *\\|")
	for _, found := range row.FindAllStringSubmatch(read(t, testdeps.Repo("docs/operations.md")), -1) {
		labels := strings.Split(found[2], ", ")
		exported[found[1]] = labels
		if strings.HasSuffix(found[1], "_duration_seconds") {
			exported[found[1]+"_bucket"] = append(slices.Clone(labels), "le")
			exported[found[1]+"_count"], exported[found[1]+"_sum"] = labels, labels
			delete(exported, found[1]) // a histogram has no series with exactly its name
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	families, err := registry.Gather()
	expect.OK(t, err)
	for _, f := range families {
		exported[f.GetName()] = nil
	}
	return exported
}

var (
	comparedText = regexp.MustCompile(`"[^"]*"`)
	duration     = regexp.MustCompile(`\[[0-9a-z:]+\]`)
	grouping     = regexp.MustCompile(`\b(by|without|ignoring|on|group_left|group_right)\s*\(([^)]*)\)`)
	selector     = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*\{([^}]*)\}`)
	identifier   = regexp.MustCompile(`\b[a-zA-Z_:][a-zA-Z0-9_:]*`)
)

// words are the functions and operators of PromQL that are used.
var words = strings.Fields("sum max min count abs rate increase changes time clamp_min histogram_quantile avg_over_time and or unless topk vector")

// unknownNames returns complaints about the names in an expression.
func unknownNames(expr string, exported map[string][]string) (complaints []string) {
	target := []string{"instance", "job"} // labels that Prometheus adds
	known := slices.Concat(target, slices.Concat(slices.Collect(maps.Values(exported))...))
	expr = duration.ReplaceAllString(comparedText.ReplaceAllString(expr, ""), "")
	expr = grouping.ReplaceAllStringFunc(expr, func(clause string) string {
		for _, label := range identifier.FindAllString(grouping.FindStringSubmatch(clause)[2], -1) {
			if !slices.Contains(append(known, "block"), label) {
				complaints = append(complaints, label+" is no label")
			}
		}
		return ""
	})
	expr = selector.ReplaceAllStringFunc(expr, func(text string) string {
		found := selector.FindStringSubmatch(text)
		for _, label := range identifier.FindAllString(found[2], -1) {
			if labels, ok := exported[found[1]]; ok && !slices.Contains(append(target, labels...), label) {
				complaints = append(complaints, found[1]+" has no label "+label)
			}
		}
		return found[1]
	})
	for _, name := range identifier.FindAllString(expr, -1) {
		if _, ok := exported[name]; !ok && !slices.Contains(words, name) {
			complaints = append(complaints, name+" is not exported")
		}
	}
	return complaints
}
