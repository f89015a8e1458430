package api

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
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

// either reports whether a parameter has the second of two values. It has the first one if it is absent.
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

// localize writes the decimal numbers of a row in the given format. header has the names of the columns.
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

// wantsCSV reports whether the header Accept prefers text/csv to application/json
// (RFC 9110, section 12.5.1). A header that does not parse prefers neither.
func wantsCSV(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return quality(accept, "text", "csv") > quality(accept, "application", "json")
}

// quality returns the weight of a media type in thousandths, which is the weight of the most specific
// range that matches.
func quality(accept, typ, subtype string) int {
	best, weight := 0, 0
	for element := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(element, ";")
		specific := 0
		switch strings.ToLower(strings.TrimSpace(name)) {
		case typ + "/" + subtype:
			specific = 3
		case typ + "/*":
			specific = 2
		case "*/*":
			specific = 1
		}
		if specific > best {
			best, weight = specific, qvalue(params)
		}
	}
	return weight
}

// qvalueForm is the form of a weight (RFC 9110, section 12.4.2).
var qvalueForm = regexp.MustCompile(`^(0(\.[0-9]{0,3})?|1(\.0{0,3})?)$`)

// qvalue returns the parameter q in thousandths: 1000 if it is absent, and 0 if it does not parse.
func qvalue(params string) int {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		if !qvalueForm.MatchString(value) {
			return 0
		}
		thousandths, _ := strconv.Atoi((strings.Replace(value, ".", "", 1) + "000")[:len("1000")])
		return thousandths
	}
	return 1000
}
