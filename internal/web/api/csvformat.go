package api

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// byteOrderMark is the UTF-8 form of U+FEFF. Excel takes a file that does not begin with it for
// one in the encoding of the machine's country.
const byteOrderMark = "\ufeff"

// csvParameters are the parameters of the form of a table.
var csvParameters = []string{"bom", "separator", "decimal"}

// csvFormat is how a table is written as CSV.
type csvFormat struct {
	zone         *time.Location // of times
	bom          bool           // begin with a byte order mark
	semicolon    bool           // between cells, instead of a comma
	decimalComma bool           // in the columns of decimal numbers, instead of a point
}

// csvFormat parses the parameters of the form of a table. They are refused for JSON.
func (q *query) csvFormat(export bool, zone *time.Location) csvFormat {
	for _, name := range csvParameters {
		if _, given := q.get(name); given && !export {
			q.reject(name, "applies to CSV alone (Accept: text/csv)")
		}
	}
	return csvFormat{
		zone: zone, bom: q.either("bom", "0", "1"), semicolon: q.either("separator", "comma", "semicolon"), decimalComma: q.either("decimal", "point", "comma"),
	}
}

// either reports whether a parameter has the second of two values. It has the first one if it
// is absent.
func (q *query) either(name, first, second string) bool {
	text, given := q.get(name)
	if given && text != first && text != second {
		q.reject(name, "must be %s or %s; it is %.40q", first, second, text)
	}
	return text == second
}

// at formats a time.
func (f csvFormat) at(t time.Time) string { return clock.Format(t, f.zone, time.RFC3339) }

// writer returns a writer of rows, and writes what precedes them.
func (f csvFormat) writer(to *bytes.Buffer) *csv.Writer {
	if f.bom {
		to.WriteString(byteOrderMark)
	}
	w := csv.NewWriter(to)
	w.UseCRLF = true
	if f.semicolon {
		w.Comma = ';'
	}
	return w
}

// decimalSuffix ends the names of the columns of decimal numbers.
const decimalSuffix = "Decimal"

// localize writes the decimal numbers of a row in the given format. header has the names of the
// columns.
func (f csvFormat) localize(header, row []string) {
	if !f.decimalComma {
		return
	}
	for i, name := range header {
		if strings.HasSuffix(name, decimalSuffix) {
			row[i] = strings.Replace(row[i], ".", ",", 1)
		}
	}
}

// typeCSV is the media type of a file of CSV.
const typeCSV = "text/csv; charset=utf-8; header=present"

// setCSV sets the headers of a file of CSV. The name of the file is without .csv.
func setCSV(header http.Header, name string) {
	header.Set("Content-Type", typeCSV)
	header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name+".csv"))
}
