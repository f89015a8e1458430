package api

import (
	"bytes"
	"context"
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/webpage"
)

// Limits of exports.
const (
	// MaxExports bounds the exports that are served at a time.
	MaxExports = 8
	// MaxOwnExports bounds the exports of one owner of keys at a time.
	MaxOwnExports = 2
	// exportRows is how many rows of an export are read at once.
	exportRows = 200
	// exportBuffer is about how many bytes are written at once.
	exportBuffer = 64 << 10
	// exportPauses is how long an export pauses after each read, in times of the read. It
	// leaves the processor and the database to other requests.
	exportPauses = 4
)

// headerRows is the trailer with the number of an export's rows.
const headerRows = "Quittance-Rows"

// table converts the elements of a list to CSV.
type table[T any] struct {
	columns []string
	// rows returns the cells of each element. at formats a time.
	rows func(ctx context.Context, elements []T, at func(time.Time) string) ([][]string, error)
}

// tableOf returns a table of elements that are converted one by one.
func tableOf[T any](columns []string, row func(e T, at func(time.Time) string) []string) *table[T] {
	return &table[T]{columns, func(_ context.Context, elements []T, at func(time.Time) string) ([][]string, error) {
		return db.Each(elements, func(e T) []string { return row(e, at) }), nil
	}}
}

// parseFormat checks the parameters that depend on the form of a list. format is the format of an export.
func (l listing[T]) parseFormat(r *http.Request) (format csvFormat, export bool) {
	q := l.query
	export = l.table != nil && wantsCSV(r)
	format = q.csvFormat(export, q.timezone())
	if _, given := q.get("timezone"); given && !export {
		q.reject("timezone", "applies to CSV alone (Accept: text/csv)")
	}
	if _, given := q.get("limit"); given && export {
		q.reject("limit", "does not apply to CSV, which has all elements")
	}
	return format, export
}

// serveCSV answers with the whole list as CSV (RFC 4180). It returns an error if it fails before the
// first byte; after that, it aborts the connection.
func (l listing[T]) serveCSV(a *API, w http.ResponseWriter, r *http.Request, format csvFormat) error {
	leave, err := a.exports.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := webpage.RequestContext(a.conf.Stopping, r)
	defer cancel()
	e := export[T]{listing: l, w: w, r: r, format: format, checkKey: func() error { return a.checkKey(ctx, r) }, checked: time.Now()}
	e.csv = format.writer(&e.buffer)
	header := w.Header()
	setCSV(header, l.name+"-"+clock.Format(a.conf.Now(), format.zone, "2006-01-02T150405"))
	header.Set("Trailer", headerRows)
	if r.Method == http.MethodHead {
		webpage.NewStream(w, r, false) // a GET is compressed if the list is large, which is not read here
		return nil
	}
	if err = e.run(ctx); err == nil {
		header.Set(headerRows, strconv.Itoa(e.written))
		return nil
	}
	if !e.begun {
		for _, name := range []string{"Content-Disposition", "Trailer"} {
			header.Del(name)
		}
		return err
	}
	level := a.conf.Logger.ErrorContext
	if ctx.Err() != nil || e.gone || access.IsRefusal(err) {
		level = a.conf.Logger.DebugContext
	}
	level(r.Context(), "export cut off", "path", access.Redact(r.URL.Path), "rows", e.written, "err", err)
	panic(http.ErrAbortHandler) // so that the client does not take the export for complete
}

// export writes a list as CSV.
type export[T any] struct {
	listing  listing[T]
	w        http.ResponseWriter
	r        *http.Request
	body     *webpage.Stream // nil until the first part is sent
	format   csvFormat
	checkKey func() error // returns an error if the request's key is no longer accepted
	checked  time.Time    // when the key was checked
	buffer   bytes.Buffer
	csv      *csv.Writer // into buffer
	written  int         // rows
	begun    bool        // something was sent
	gone     bool        // a write has failed
}

// run writes the header and all rows. Between reads it holds no database connection.
func (e *export[T]) run(ctx context.Context) error {
	if err := e.csv.Write(e.listing.table.columns); err != nil {
		return err
	}
	var last *T
	for {
		begun := time.Now()
		elements, rows, more, err := e.read(ctx, last)
		if err != nil {
			return err
		}
		if err := e.append(rows); err != nil {
			return err
		}
		if !more {
			return e.send(true)
		}
		if !e.begun || e.buffer.Len() >= exportBuffer { // a client bounds its wait for the first byte
			if err := e.send(false); err != nil {
				return err
			}
		}
		last = nil // a read that stopped early continues at its position
		if len(elements) == exportRows {
			last = &elements[exportRows-1]
		}
		if !clock.Sleep(ctx, exportPauses*time.Since(begun), nil) {
			return ctx.Err()
		}
	}
}

// append appends rows to the buffer.
func (e *export[T]) append(rows [][]string) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = e.format.harmless(cell)
		}
		e.format.localize(e.listing.table.columns, row)
		if err := e.csv.Write(row); err != nil {
			return err
		}
	}
	e.csv.Flush()
	e.written += len(rows)
	return nil
}

// read reads the elements after last, and their rows. If more is set, there may be others after them.
func (e *export[T]) read(ctx context.Context, last *T) (elements []T, rows [][]string, more bool, err error) {
	if time.Since(e.checked) >= keyCheckInterval {
		if err := e.checkKey(); err != nil {
			return nil, nil, false, err
		}
		e.checked = time.Now()
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	elements, stopped, err := e.listing.read(ctx, last, exportRows)
	if err != nil {
		return nil, nil, false, err
	}
	rows, err = e.listing.table.rows(ctx, elements, e.format.at)
	return elements, rows, stopped != "" || len(elements) == exportRows, err
}

// send sends the buffered part, which may be the last. A response that is one small part is not compressed.
func (e *export[T]) send(last bool) error {
	if !e.begun {
		e.begun, e.body = true, webpage.NewStream(e.w, e.r, !last || e.buffer.Len() >= webpage.MinCompressed)
	}
	err := webpage.ExtendDeadlines(e.w)
	if err == nil {
		_, err = e.body.Write(e.buffer.Bytes())
	}
	if err == nil && last {
		err = e.body.Close()
	}
	e.gone = err != nil
	e.buffer.Reset()
	return err
}

// harmless returns a cell in which no spreadsheet finds a formula. If the list separator is a semicolon, a spreadsheet
// splits lines there and at line breaks, even inside quotes; importers may split at tabs. If it is a comma, a
// spreadsheet splits a file with semicolons at commas, which are not in quotes there. So every part that begins like a
// formula gets an apostrophe before it, and so does a cell that begins with a tab or a line break.
func (f csvFormat) harmless(cell string) string {
	ends := ";\t\r\n"
	if f.semicolon {
		ends += ","
	}
	var b strings.Builder
	if strings.IndexAny(cell, "\t\r\n") == 0 {
		b.WriteByte('\'')
	}
	for cell != "" {
		end := strings.IndexAny(cell, ends) + 1
		if end == 0 {
			end = len(cell)
		}
		if beginsFormula(cell[:end]) {
			b.WriteByte('\'')
		}
		b.WriteString(cell[:end])
		cell = cell[end:]
	}
	return b.String()
}

// beginsFormula reports whether the first character of a text begins a formula. It skips quotes, and spaces and
// invisible characters, which some spreadsheets drop. Some take full-width characters as well.
func beginsFormula(text string) bool {
	text = strings.TrimLeftFunc(text, func(c rune) bool {
		return c == '"' || unicode.IsSpace(c) || unicode.IsControl(c) || unicode.Is(unicode.Cf, c)
	})
	return strings.IndexAny(text, "=+-@＝＋－＠") == 0
}

// units returns an amount in major units, or "" if the currency's decimals are not known.
func (a *API) units(amount invoice.Amount, chainKey, currency string) string {
	decimals, ok := a.decimals(chainKey, currency)
	if !ok {
		return ""
	}
	return amount.Major(decimals)
}
