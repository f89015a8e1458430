package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// writeTable writes a table. fill writes its lines, with a tab after each cell but the
// last.
func writeTable(out io.Writer, fill func(table io.Writer)) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fill(table)
	if err := table.Flush(); err != nil {
		return err
	}
	return writeTrimmed(out, text.String())
}

// writeTrimmed writes a text without trailing spaces in its lines, which tables have.
func writeTrimmed(out io.Writer, text string) error {
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// orDash returns a text, or "-" for an empty one.
func orDash(text string) string { return cmp.Or(text, "-") }

// timeOrDash formats a time, or "-" for the zero time.
func timeOrDash(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return clock(t.Unix())
}
