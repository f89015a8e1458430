package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

const (
	// ratiosFile has the ratios for the comparison, by part, database and figure.
	ratiosFile = "ratios.json"
	// checkedParts are measured by a check if the command names no part.
	checkedParts = "creates,deliveries,backfill,bursts"
	// mayLose is the allowed loss of a ratio, because machines are noisy.
	mayLose = 0.25
	// checkRuns bounds the runs of a check. A figure fails if it loses in two of them.
	checkRuns = 3
)

// check measures parts on databases, and compares the ratios with the ones in the file. Figures that lost more than
// mayLose are measured again. It fails if a figure lost in two runs of checkRuns.
func check(out io.Writer, chosen []part, databases string, measure func([]part) ([]figure, error)) error {
	want, err := readRatios()
	if err != nil {
		return err
	}
	maps.DeleteFunc(want, func(key string, _ float64) bool {
		name, rest, _ := strings.Cut(key, ", ")
		database, _, _ := strings.Cut(rest, ": ")
		return !slices.ContainsFunc(chosen, func(p part) bool { return p.name == name }) || !slices.Contains(strings.Split(databases, ","), database)
	})
	losses := make(map[string]int)
	for run := range checkRuns {
		figures, err := measure(chosen)
		if err := errors.Join(err, writeTable(out, figures)); err != nil {
			return err
		}
		lost, err := lostRatios(want, figures, run == 0)
		if err != nil {
			return err
		}
		for _, key := range lost {
			losses[key]++
		}
		if chosen = lostOnce(chosen, losses); len(chosen) == 0 {
			break
		}
	}
	for _, key := range slices.Sorted(maps.Keys(losses)) {
		if losses[key] >= 2 {
			err = errors.Join(err, fmt.Errorf("%s: less than %.2f in two runs, which is %.0f %% below %.2f",
				key, want[key]*(1-mayLose), 100*mayLose, want[key]))
		}
	}
	return err
}

// lostOnce returns the parts with figures that have lost in one run.
func lostOnce(chosen []part, losses map[string]int) (again []part) {
	for _, p := range chosen {
		for key, n := range losses {
			if n == 1 && strings.HasPrefix(key, p.name+", ") {
				again = append(again, p)
				break
			}
		}
	}
	return again
}

// lostRatios returns the figures that have lost. If all were measured, a figure that is missing on one side is an
// error.
func lostRatios(want map[string]float64, figures []figure, all bool) (lost []string, err error) {
	measured := make(map[string]bool)
	for _, f := range figures {
		if !f.checked() {
			continue
		}
		measured[f.key()] = true
		switch ratio, known := want[f.key()]; {
		case !known:
			err = errors.Join(err, fmt.Errorf("%s has no ratio for %q; run make bench-ratios", ratiosFile, f.key()))
		case f.reached() < ratio*(1-mayLose):
			lost = append(lost, f.key())
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if all && !measured[key] {
			err = errors.Join(err, fmt.Errorf("%q, of %s, was not measured", key, ratiosFile))
		}
	}
	return lost, err
}

// update replaces the ratios in the file for the figures' parts and databases.
func update(figures []figure) error {
	ratios, err := readRatios()
	if err != nil {
		return err
	}
	for _, f := range figures {
		maps.DeleteFunc(ratios, func(key string, _ float64) bool {
			return strings.HasPrefix(key, strings.TrimSuffix(f.key(), f.What))
		})
	}
	for _, f := range figures {
		if f.checked() {
			ratios[f.key()] = float64(int(100*f.reached())) / 100
		}
	}
	text, err := json.MarshalIndent(ratios, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(ratiosFile, append(text, '\n'), 0o644) //nolint:gosec // the file is committed
}

// readRatios reads the ratios of figures.
func readRatios() (ratios map[string]float64, err error) {
	text, err := os.ReadFile(ratiosFile)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &ratios); err != nil {
		return nil, fmt.Errorf("%s: %w", ratiosFile, err)
	}
	return ratios, nil
}
