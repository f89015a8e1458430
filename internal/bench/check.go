package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

const (
	// ratiosFile has the ratios that a check compares with, by part, and by database and row.
	ratiosFile = "internal/bench/testdata/ratios.json"
	// checkedParts are measured by a check if the command names none.
	checkedParts = "attribution,creates,deliveries,backfill"
	// mayLose is the part of a ratio that may be lost: machines are noisy.
	mayLose = 0.25
	// checkRuns bounds the runs of a check. A row fails that loses in two of them.
	checkRuns = 3
)

// measureAll measures parts on databases.
func (b *bench) measureAll(ctx context.Context, databases string, parts []part) error {
	b.round++
	for _, db := range strings.Split(databases, ",") {
		for _, p := range parts {
			rounds := 1
			if slices.Contains(repeatedParts, p.name) {
				rounds = b.rounds
			}
			for range rounds {
				fmt.Fprintf(os.Stderr, "%s %s …\n", db, p.name)
				b.report.part = p.name
				if err := errors.Join(p.measure(ctx, db), b.dropDatabases(ctx, db)); err != nil {
					return fmt.Errorf("%s: %s: %w", db, p.name, err)
				}
			}
			b.report.merge(rounds)
		}
	}
	return nil
}

// check measures parts, and compares the ratios with those of the file. What lost more than
// mayLose is measured again, and is an error if it did so in two runs of checkRuns.
func (b *bench) check(ctx context.Context, databases string, parts []part) error {
	all, err := readRatios(ratiosFile)
	if err != nil {
		return err
	}
	want := make(map[string]float64)
	for _, p := range parts {
		maps.Copy(want, all[p.name])
	}
	losses, partOf := make(map[string]int), make(map[string]string)
	for run := range checkRuns {
		clear(b.report.reached)
		if err := b.measureAll(ctx, databases, parts); err != nil {
			return err
		}
		lost, err := lostRatios(want, b.report.reached, run == 0)
		if err != nil {
			return err
		}
		for _, row := range lost {
			losses[row]++
			partOf[row] = b.report.reached[row].part
		}
		var again []string
		for row, n := range losses {
			if n == 1 {
				again = append(again, partOf[row])
			}
		}
		parts = slices.DeleteFunc(parts, func(p part) bool { return !slices.Contains(again, p.name) })
		if len(parts) == 0 {
			break
		}
	}
	return lossError(losses, want)
}

// lostRatios returns the rows that have lost. If all were measured, a row that lacks in one of
// the two is an error.
func lostRatios(want map[string]float64, got map[string]reached, all bool) (lost []string, err error) {
	for _, row := range slices.Sorted(maps.Keys(got)) {
		switch ratio, known := want[row]; {
		case !known:
			err = errors.Join(err, fmt.Errorf("%s has no ratio for %q; write it with -update", ratiosFile, row))
		case got[row].ratio < ratio*(1-mayLose):
			lost = append(lost, row)
		}
	}
	for _, row := range slices.Sorted(maps.Keys(want)) {
		if _, measured := got[row]; all && !measured {
			err = errors.Join(err, fmt.Errorf("%q, of %s, was not measured", row, ratiosFile))
		}
	}
	return lost, err
}

// lossError returns an error that names the rows that lost in two runs.
func lossError(losses map[string]int, want map[string]float64) (err error) {
	for _, row := range slices.Sorted(maps.Keys(losses)) {
		if losses[row] >= 2 {
			err = errors.Join(err, fmt.Errorf("%s: less than %.2f in two runs, which is %.0f %% below %.2f", row, want[row]*(1-mayLose), 100*mayLose, want[row]))
		}
	}
	return err
}

// update measures parts checkRuns times and writes the medians of their ratios, in place of those of the same databases.
func (b *bench) update(ctx context.Context, databases string, parts []part) error {
	file, err := readRatios(ratiosFile)
	if errors.Is(err, os.ErrNotExist) {
		file, err = make(map[string]map[string]float64), nil
	}
	if err != nil {
		return err
	}
	all := make(map[string][]reached)
	for range checkRuns {
		clear(b.report.reached)
		if err := b.measureAll(ctx, databases, parts); err != nil {
			return err
		}
		for row, r := range b.report.reached {
			all[row] = append(all[row], r)
		}
	}
	for _, p := range parts { // of other databases, its rows stay
		if file[p.name] == nil {
			file[p.name] = make(map[string]float64)
		}
		for _, db := range strings.Split(databases, ",") {
			maps.DeleteFunc(file[p.name], func(row string, _ float64) bool { return strings.HasPrefix(row, db+": ") })
		}
	}
	for row, runs := range all {
		slices.SortFunc(runs, func(a, b reached) int { return cmp.Compare(a.ratio, b.ratio) })
		file[runs[0].part][row] = float64(int(100*runs[len(runs)/2].ratio)) / 100
	}
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(ratiosFile, append(text, '\n'), 0o644) //nolint:gosec // it is committed
}

// readRatios reads the ratios of rows, by part.
func readRatios(file string) (ratios map[string]map[string]float64, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &ratios); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return ratios, nil
}
