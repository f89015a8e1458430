package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report has the rows of what was measured, in their order.
type report struct {
	rows    []row
	merged  int    // rows whose rounds were merged
	part    string // that is being measured
	reached map[string]reached
}

// row is a figure, and its ratio to a ceiling if it has one.
type row struct{ database, what, figure, ceiling, ratio, note string }

// reached is how near a row came to its ceiling. More is better.
type reached struct {
	part  string
	ratio float64
}

func newReport() *report { return &report{reached: make(map[string]reached)} }

// ratio adds a row of a figure that is the better, the nearer it is to its ceiling, and keeps
// their ratio for a check.
func (r *report) ratio(kind, what, figure, ceiling string, ratio float64, note string) {
	r.row(kind, what, figure, ceiling, fmt.Sprintf("%.2f", ratio), note)
	r.reached[kind+": "+what] = reached{r.part, ratio}
}

// slower adds a row of how long something takes, compared with a ceiling that takes less, and keeps
// the inverse ratio for a check.
func (r *report) slower(kind, what string, figure, ceiling time.Duration, note string) {
	r.row(kind, what, figure, ceiling, fmt.Sprintf("%.2f", figure.Seconds()/ceiling.Seconds()), note)
	r.reached[kind+": "+what] = reached{r.part, ceiling.Seconds() / figure.Seconds()}
}

func (r *report) row(kind, what string, figure, ceiling any, ratio, note string) {
	r.rows = append(r.rows, row{kind, what, fmt.Sprint(figure), fmt.Sprint(ceiling), ratio, note})
}

// merge leaves one row of those that n rounds added of the same figure: that of the median, with the
// spread in its note.
func (r *report) merge(n int) {
	defer func() { r.merged = len(r.rows) }()
	if n == 1 {
		return
	}
	rounds := make(map[string][]row)
	var names []string
	for _, row := range r.rows[r.merged:] {
		if rounds[row.what] == nil {
			names = append(names, row.what)
		}
		rounds[row.what] = append(rounds[row.what], row)
	}
	r.rows = r.rows[:r.merged]
	for _, name := range names {
		r.rows = append(r.rows, median(rounds[name]))
	}
}

// median returns the row with the median of the ratios, or of the figures of rows without one.
func median(rows []row) row {
	if len(rows) == 1 {
		return rows[0]
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(amount(a.measure()), amount(b.measure())) })
	middle := rows[(len(rows)-1)/2]
	spread := fmt.Sprintf("%s to %s in %d rounds", rows[0].measure(), rows[len(rows)-1].measure(), len(rows))
	middle.note = strings.TrimPrefix(middle.note+"; "+spread, "; ")
	return middle
}

// measure returns what rounds are compared by.
func (r row) measure() string { return cmp.Or(r.ratio, r.figure) }

// amount returns the number that a measure begins with, of seconds if it is a duration.
func amount(measure string) float64 {
	if d, err := time.ParseDuration(measure); err == nil {
		return d.Seconds()
	}
	number, _, _ := strings.Cut(strings.TrimSuffix(measure, "/s"), " ")
	n, _ := strconv.ParseFloat(number, 64) // words are all alike
	return n
}

// write writes the rows as a table.
func (r *report) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([]row{{"DATABASE", "WHAT", "FIGURE", "CEILING", "RATIO", "NOTE"}}, r.rows...) {
		fmt.Fprintln(w, strings.Join([]string{row.database, row.what, row.figure, row.ceiling, row.ratio, row.note}, "\t"))
	}
	return w.Flush()
}
