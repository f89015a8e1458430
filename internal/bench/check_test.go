package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCheck measures parts whose ratios are scripted, and requires the runs and the verdict.
func TestCheck(t *testing.T) {
	const kept, lost, unmeasured = 0.75, 0.74, -1 // of a committed 1.00
	for _, test := range []struct {
		name   string
		ratios map[string][]float64 // by part, run for run
		runs   int
		want   string
	}{
		{"nothing lost", map[string][]float64{"a": {kept}, "b": {2}}, 1, ""},
		{"once", map[string][]float64{"a": {lost, kept, kept}, "b": {1}}, 3, ""},
		{"first and second", map[string][]float64{"a": {lost, lost}, "b": {1}}, 2, "sqlite: a: less than 0.75 in two runs"},
		{"first and third", map[string][]float64{"a": {lost, kept, lost}, "b": {1}}, 3, "sqlite: a: less than 0.75 in two runs"},
		{"one is not in the file", map[string][]float64{"a": {1}, "b": {1}, "c": {1}}, 1, `has no ratio for "sqlite: c"`},
		{"one is not measured", map[string][]float64{"a": {1}, "b": {unmeasured}}, 1, `"sqlite: b", of`},
		{"one is not asked for", map[string][]float64{"a": {1}}, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.MkdirAll(filepath.Dir(ratiosFile), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(ratiosFile, []byte(`{"a": {"sqlite: a": 1}, "b": {"sqlite: b": 1}, "other": {"sqlite: other": 1}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			b := bench{report: newReport()}
			var parts []part
			for name, ratios := range test.ratios {
				parts = append(parts, part{name: name, measure: func(_ context.Context, kind string) error {
					if len(ratios) == 0 {
						return fmt.Errorf("%s is measured again", name)
					}
					if ratios[0] != unmeasured {
						b.report.ratio(kind, name, "", "", ratios[0], "")
					}
					ratios = ratios[1:]
					return nil
				}})
			}
			err := b.check(t.Context(), "sqlite", parts)
			if text := fmt.Sprint(err); (err == nil) != (test.want == "") || !strings.Contains(text, test.want) {
				t.Errorf("the check ended with %v, want %q", err, test.want)
			}
			if b.round != test.runs {
				t.Errorf("%d runs, want %d", b.round, test.runs)
			}
		})
	}
}

// TestUpdateRatios requires the medians of what was measured, and the ratios of the other database.
func TestUpdateRatios(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(ratiosFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ratiosFile, []byte(`{"a": {"sqlite: gone": 1, "postgres: a": 0.3}, "b": {"sqlite: b": 0.4}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := bench{report: newReport()}
	ratios := []float64{0.5, 0.9, 0.7}
	measured := part{name: "a", measure: func(_ context.Context, kind string) error {
		b.report.ratio(kind, "a", "", "", ratios[0], "")
		ratios = ratios[1:]
		return nil
	}}
	if err := b.update(t.Context(), "sqlite", []part{measured}); err != nil {
		t.Fatal(err)
	}
	got, err := readRatios(ratiosFile)
	if want := map[string]map[string]float64{"a": {"sqlite: a": 0.7, "postgres: a": 0.3}, "b": {"sqlite: b": 0.4}}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("the file has %v, %v, want %v", got, err, want)
	}
}

// TestRounds requires the row of the median for each figure of a part that is repeated, and the spread.
func TestRounds(t *testing.T) {
	t.Parallel()
	b := bench{report: newReport(), rounds: 3}
	ratios, figures := []string{"0.90", "1.10", "0.70"}, []any{90 * time.Millisecond, 2 * time.Second, 100 * time.Millisecond}
	rounds := 0
	repeated := part{name: repeatedParts[0], measure: func(_ context.Context, kind string) error {
		b.report.row(kind, "a ratio", rounds, "", ratios[rounds], "")
		b.report.row(kind, "a time", figures[rounds], "", "", "of one")
		rounds++
		return nil
	}}
	once := part{name: "lists", measure: func(_ context.Context, kind string) error {
		b.report.row(kind, "a ratio", 1, "", "1.00", "")
		return nil
	}}
	if err := b.measureAll(t.Context(), "sqlite", []part{repeated, once}); err != nil {
		t.Fatal(err)
	}
	want := []row{
		{"sqlite", "a ratio", "0", "", "0.90", "0.70 to 1.10 in 3 rounds"},
		{"sqlite", "a time", "100ms", "", "", "of one; 90ms to 2s in 3 rounds"},
		{"sqlite", "a ratio", "1", "", "1.00", ""},
	}
	if diff := cmp.Diff(want, b.report.rows, cmp.AllowUnexported(row{})); diff != "" {
		t.Error(diff)
	}
}
