package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
)

// TestCheck measures parts whose ratios are scripted, and requires the runs and the verdict.
func TestCheck(t *testing.T) {
	const kept, lost = 0.75, 0.74 // of a committed 1.00
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
		{"one is not measured", map[string][]float64{"a": {1}}, 1, `"sqlite: b", of`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.MkdirAll(filepath.Dir(ratiosFile), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(ratiosFile, []byte(`{"sqlite: a": 1, "sqlite: b": 1}`), 0o600); err != nil {
				t.Fatal(err)
			}
			b := bench{report: report{w: tabwriter.NewWriter(io.Discard, 0, 0, 2, ' ', 0), reached: make(map[string]reached)}}
			var parts []part
			for name, ratios := range test.ratios {
				parts = append(parts, part{name: name, measure: func(_ context.Context, kind string) error {
					if len(ratios) == 0 {
						return fmt.Errorf("%s is measured again", name)
					}
					b.report.ratio(kind, name, "", "", ratios[0], "")
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

// TestUpdateRatios requires the medians of what was measured.
func TestUpdateRatios(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(ratiosFile), 0o700); err != nil {
		t.Fatal(err)
	}
	b := bench{report: report{w: tabwriter.NewWriter(io.Discard, 0, 0, 2, ' ', 0), reached: make(map[string]reached)}}
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
	if err != nil || len(got) != 1 || got["sqlite: a"] != 0.7 {
		t.Errorf("the file has %v, %v", got, err)
	}
}
