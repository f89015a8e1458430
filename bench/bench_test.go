package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// scripted returns the figure of a part.
func scripted(part string, ratio float64) figure {
	return figure{Part: part, Database: "sqlite", What: part, Ratio: ratio, MoreIsBetter: true}
}

// TestCheck measures parts with scripted ratios, and requires the runs and the verdict.
func TestCheck(t *testing.T) {
	const kept, lost, unmeasured = 0.75, 0.74, -1 // of a committed 1.00
	type ratios map[string][]float64              // by part, one per run
	for _, test := range []struct {
		name   string
		ratios ratios
		runs   int
		want   string
	}{
		{"no loss", ratios{"a": {kept}, "b": {2}}, 1, ""},
		{"once", ratios{"a": {lost, kept, kept}, "b": {1}}, 3, ""},
		{"first and second", ratios{"a": {lost, lost}, "b": {1}}, 2, "a, sqlite: a: less than 0.75 in two runs"},
		{"first and third", ratios{"a": {lost, kept, lost}, "b": {1}}, 3, "a, sqlite: a: less than 0.75 in two runs"},
		{"one is not in the file", ratios{"a": {1}, "b": {1}, "c": {1}}, 1, `has no ratio for "c, sqlite: c"`},
		{"one is not measured", ratios{"a": {1}, "b": {unmeasured}}, 1, `"b, sqlite: b", of`},
		{"one is not asked for", ratios{"a": {1}}, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeRatios(t, `{"a, sqlite: a": 1, "a, postgres: a": 1, "b, sqlite: b": 1, "other, sqlite: other": 1}`)
			var chosen []part
			for name := range test.ratios {
				chosen = append(chosen, part{name: name})
			}
			runs := 0
			err := check(io.Discard, chosen, "sqlite", func(parts []part) (figures []figure, err error) {
				runs++
				for _, p := range parts {
					ratios := test.ratios[p.name]
					if len(ratios) == 0 {
						return nil, fmt.Errorf("%s is measured again", p.name)
					}
					if ratios[0] != unmeasured {
						figures = append(figures, scripted(p.name, ratios[0]))
					}
					test.ratios[p.name] = ratios[1:]
				}
				return figures, nil
			})
			if text := fmt.Sprint(err); (err == nil) != (test.want == "") || !strings.Contains(text, test.want) {
				t.Errorf("the check ended with %v, want %q", err, test.want)
			}
			if runs != test.runs {
				t.Errorf("%d runs, want %d", runs, test.runs)
			}
		})
	}
}

// TestUpdateRatios expects the measured ratios, and keeps the ratios of the other database and of other parts.
func TestUpdateRatios(t *testing.T) {
	t.Chdir(t.TempDir())
	writeRatios(t, `{"a, sqlite: gone": 1, "a, postgres: a": 0.3, "b, sqlite: b": 0.4}`)
	unchecked := figure{Part: "a", Database: "sqlite", What: "unchecked", Ratio: 1, unchecked: true}
	if err := update([]figure{scripted("a", 0.7), unchecked}); err != nil {
		t.Fatal(err)
	}
	got, err := readRatios()
	want := map[string]float64{"a, sqlite: a": 0.7, "a, postgres: a": 0.3, "b, sqlite: b": 0.4}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("the file has %v, %v, want %v", got, err, want)
	}
}

// TestMedians expects the figure with the median ratio, or with the median value if there is no ratio, and the spread.
func TestMedians(t *testing.T) {
	t.Parallel()
	got := medians([]figure{
		{What: "a ratio", Value: 1, Ratio: 0.9}, {What: "a time", Value: 90}, {What: "once", Value: 1},
		{What: "a ratio", Value: 2, Ratio: 1.1}, {What: "a time", Value: 2000},
		{What: "a ratio", Value: 3, Ratio: 0.7}, {What: "a time", Value: 100},
	})
	want := []figure{
		{What: "a ratio", Value: 1, Ratio: 0.9, Low: 0.7, High: 1.1, Rounds: 3},
		{What: "a time", Value: 100, Low: 90, High: 2000, Rounds: 3},
		{What: "once", Value: 1},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(figure{})); diff != "" {
		t.Error(diff)
	}
}

// TestRecord expects a dated file for the commit, with all runs of that day.
func TestRecord(t *testing.T) {
	t.Parallel()
	folder, began := filepath.Join(t.TempDir(), "results"), time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	for _, what := range []string{"first", "second"} {
		r := &record{Began: began, Commit: "0123456789ab", Options: options{Events: 7}}
		if err := r.write(io.Discard, folder, []figure{{What: what}}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "2026-01-31-0123456789ab.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []record
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Figures[0].What != "first" || all[1].Figures[0].What != "second" ||
		all[1].Options.Events != 7 {
		t.Errorf("the file has %+v", all)
	}
}

func writeRatios(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(ratiosFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
