package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// figure is a measured value and its baseline.
type figure struct {
	Part     string
	Database string
	What     string
	Value    float64
	Unit     string
	// Baseline is the value to compare with; 0 if there is no baseline. It was measured in the same run.
	Baseline   float64 `json:",omitempty"`
	BaselineIs string  `json:",omitempty"`
	Ratio      float64 `json:",omitempty"`
	// Low and High are the lowest and the highest ratio of several rounds, or of values without a baseline.
	Low, High float64 `json:",omitempty"`
	Rounds    int     `json:",omitempty"`
	// Previous is the value of the previous program, measured in turns with this one.
	Previous float64 `json:",omitempty"`
	Note     string  `json:",omitempty"`

	// MoreIsBetter is set if a larger value is better.
	MoreIsBetter bool `json:",omitempty"`
	unchecked    bool // a check does not compare it
}

// faster adds a figure for which more is better.
func (r *measurement) faster(f figure) {
	f.MoreIsBetter = true
	r.slower(f)
}

// slower adds a figure for which less is better.
func (r *measurement) slower(f figure) {
	f.Part, f.Database = r.part, r.database
	if f.Baseline != 0 {
		f.Ratio = f.Value / f.Baseline
	}
	r.figures = append(r.figures, f)
}

// reached returns the ratio of the figure to its baseline. More is better.
func (f figure) reached() float64 {
	if f.MoreIsBetter {
		return f.Ratio
	}
	return 1 / f.Ratio
}

// checked reports whether a check compares the figure.
func (f figure) checked() bool { return f.Ratio != 0 && !f.unchecked }

// key identifies the figure in a file of ratios.
func (f figure) key() string { return f.Part + ", " + f.Database + ": " + f.What }

// medians merges figures with the same text into one, with the median ratio, or with the median value if there is no
// ratio.
func medians(figures []figure) (merged []figure) {
	rounds := make(map[string][]figure)
	for _, f := range figures {
		if rounds[f.What] == nil {
			merged = append(merged, f)
		}
		rounds[f.What] = append(rounds[f.What], f)
	}
	for i, f := range merged {
		all := rounds[f.What]
		if len(all) == 1 {
			continue
		}
		measure := func(f figure) float64 { return cmp.Or(f.Ratio, f.Value) }
		slices.SortStableFunc(all, func(a, b figure) int { return cmp.Compare(measure(a), measure(b)) })
		merged[i] = all[(len(all)-1)/2]
		merged[i].Low, merged[i].High, merged[i].Rounds = measure(all[0]), measure(all[len(all)-1]), len(all)
	}
	return merged
}

// writeTable writes figures for a reader.
func writeTable(out io.Writer, figures []figure) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DATABASE\tWHAT\tFIGURE\tBASELINE\tRATIO\tNOTE")
	for _, f := range figures {
		var baseline, ratio string
		var notes []string
		if f.Baseline != 0 {
			baseline, ratio = number(f.Baseline)+" "+f.Unit, fmt.Sprintf("%.2f", f.Ratio)
			notes = append(notes, "baseline: "+f.BaselineIs)
		}
		if f.Note != "" {
			notes = append(notes, f.Note)
		}
		if f.Rounds > 1 {
			notes = append(notes, fmt.Sprintf("%s to %s in %d rounds", number(f.Low), number(f.High), f.Rounds))
		}
		if f.Previous != 0 {
			notes = append(notes, fmt.Sprintf("%.2f of the previous program's", f.Value/f.Previous))
		}
		row := []string{f.Database, f.What, number(f.Value) + " " + f.Unit, baseline, ratio, strings.Join(notes, "; ")}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// number writes a number with three digits or more.
func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// quantile returns the q-quantile of durations in milliseconds.
func quantile(all []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return 1000 * sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Seconds()
}

// perSecond returns how often something happened per second.
func perSecond[N int | int64](n N, took time.Duration) float64 { return float64(n) / took.Seconds() }
