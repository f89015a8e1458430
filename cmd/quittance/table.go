package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
)

// writeTable writes a table. fill writes its lines, with a tab after each cell except the last.
func writeTable(out io.Writer, fill func(table io.Writer)) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fill(table)
	if err := table.Flush(); err != nil {
		return err
	}
	return writeTrimmed(out, text.String())
}

// writeTrimmed writes a text without the trailing spaces of its lines, which tables produce.
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

// tableOf writes a table with a line for each element, or that there are no such things.
func tableOf[T any](out io.Writer, things string, all []T, header string, cells func(T) []any) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(out, "There are no such %s.\n", things)
		return err
	}
	return writeTable(out, func(table io.Writer) {
		fmt.Fprintln(table, header)
		for _, one := range all {
			values := cells(one)
			fmt.Fprintf(table, strings.Repeat("%v\t", len(values)-1)+"%v\n", values...)
		}
	})
}

// writeTable writes a table to standard output, cut to the width of the terminal.
func (env environment) writeTable(fill func(table io.Writer)) error {
	return writeTable(env.cut(), fill)
}

// cut returns standard output, with lines cut to the width of the terminal.
func (env environment) cut() io.Writer { return cutter{env.stdout, env.width} }

// printRows writes the rows that have a value.
func printRows(table io.Writer, rows [][2]string) {
	for _, row := range rows {
		if row[1] != "" && row[1] != "-" {
			fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
		}
	}
}

// cutter cuts lines to a width, in characters. Each Write is one line.
type cutter struct {
	out   io.Writer
	width int // 0 means no limit
}

// Write writes a line, with … at the end if it was cut.
func (c cutter) Write(line []byte) (int, error) {
	text := []rune(strings.TrimSuffix(string(line), "\n"))
	if c.width > 0 && len(text) > c.width {
		if _, err := fmt.Fprintln(c.out, string(text[:c.width-1])+"…"); err != nil {
			return 0, err
		}
		return len(line), nil
	}
	return c.out.Write(line)
}

// localTime formats a time in the user's zone, or "-" for 0.
func (env environment) localTime(at int64) string {
	return orDash(clock.Format(clock.Unix(at), cmp.Or(env.zone, time.UTC), "2006-01-02 15:04:05 MST"))
}

// decimals is the number of decimals of each currency that is shown in units.
var decimals = map[string]int{"USDC": 6}

// units formats an amount in units of its currency, such as "4.90 USDC". It returns the amount
// unchanged if the currency is unknown.
func units(amount, currency string) string {
	if amount == "" {
		return "-"
	}
	a, err := invoice.ParseAmount(amount)
	places, known := decimals[currency]
	if err != nil || !known {
		return printable(amount + " minor units of " + currency)
	}
	return a.Major(places) + " " + currency
}

// minorUnits parses an amount in units of a currency, such as "4.90".
func minorUnits(text, currency string) (string, error) {
	places, known := decimals[currency]
	if !known {
		return "", fmt.Errorf("amounts of the currency %q are not known; this command creates invoices in USDC", currency)
	}
	a, err := invoice.ParseDecimal(text, places)
	if err != nil {
		return "", fmt.Errorf("the amount %q %w", text, err)
	}
	return a.String(), nil
}
